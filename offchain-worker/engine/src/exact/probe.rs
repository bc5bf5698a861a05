//! What looks on while a model computes: the trace's recorders, a converter's calibration, or nothing.

use surety_kernels::{Heads, Rows};
use surety_model_trace::Step;

/// Sees every step of a forward pass that gives one row for each row of the state, and the pooled vector, in
/// their order: the trace's [`Op`](surety_model_trace::Op)s but those that only a dispute takes apart. It
/// cannot change anything.
pub trait Probe {
    /// A step gave these rows of `width` numbers.
    fn real(&mut self, step: Step, rows: &[f32], width: usize);

    /// A step quantized `input`, rows of `width` numbers, to `rows`. The layer's `smoothing_scale` is not in
    /// `input`.
    fn quantized(&mut self, step: Step, input: &[f32], width: usize, rows: &Rows);

    /// A step quantized queries, keys or values.
    fn heads(&mut self, step: Step, heads: &Heads);
}
