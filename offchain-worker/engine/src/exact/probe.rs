//! What looks on while a model computes: the trace's recorders, a converter's calibration, or nothing.

use surety_kernels::{Heads, Rows};
use surety_model_trace::{Step, TraceShape};

use super::trace::Digest;

/// Sees every step of a forward pass that gives one row for each row of the state, and the pooled vector, in
/// their order: the trace's [`Op`](surety_model_trace::Op)s but those that only a dispute takes apart. It
/// cannot change anything.
///
/// What runs on a device leaves it only if it is wanted, and all at the end of a pass. It shows
/// [`Probe::real`] and [`Probe::heads`] alone: what else was quantized is in no leaf. Where nothing but
/// digests is asked for ([`Probe::digests_of`]) it hashes rows itself, and shows [`Probe::digests`] alone.
pub trait Probe {
    /// How the rows are cut whose digests are all that is looked at, if they are.
    fn digests_of(&self) -> Option<&TraceShape> {
        None
    }

    /// A stride's rows have these digests, instead of all that they are made of.
    fn digests(&mut self, stride: u32, rows: &[Digest]) {
        let _ = (stride, rows);
    }

    /// Whether what a step gave is looked at. Others may be shown all the same.
    fn wants(&self, step: Step) -> bool {
        let _ = step;
        true
    }

    /// A step gave these rows of `width` numbers.
    fn real(&mut self, step: Step, rows: &[f32], width: usize);

    /// A step quantized `input`, rows of `width` numbers, to `rows`. The layer's `smoothing_scale` is not in
    /// `input`.
    fn quantized(&mut self, step: Step, input: &[f32], width: usize, rows: &Rows);

    /// A step quantized queries, keys or values.
    fn heads(&mut self, step: Step, heads: &Heads);
}

/// Two that look on: both are shown rows.
impl<A: Probe, B: Probe> Probe for (&mut A, &mut B) {
    fn wants(&self, step: Step) -> bool {
        self.0.wants(step) || self.1.wants(step)
    }

    fn real(&mut self, step: Step, rows: &[f32], width: usize) {
        self.0.real(step, rows, width);
        self.1.real(step, rows, width);
    }

    fn quantized(&mut self, step: Step, input: &[f32], width: usize, rows: &Rows) {
        self.0.quantized(step, input, width, rows);
        self.1.quantized(step, input, width, rows);
    }

    fn heads(&mut self, step: Step, heads: &Heads) {
        self.0.heads(step, heads);
        self.1.heads(step, heads);
    }
}

impl<P: Probe + ?Sized> Probe for &mut P {
    fn digests_of(&self) -> Option<&TraceShape> {
        (**self).digests_of()
    }

    fn digests(&mut self, stride: u32, rows: &[Digest]) {
        (**self).digests(stride, rows);
    }

    fn wants(&self, step: Step) -> bool {
        (**self).wants(step)
    }

    fn real(&mut self, step: Step, rows: &[f32], width: usize) {
        (**self).real(step, rows, width);
    }

    fn quantized(&mut self, step: Step, input: &[f32], width: usize, rows: &Rows) {
        (**self).quantized(step, input, width, rows);
    }

    fn heads(&mut self, step: Step, heads: &Heads) {
        (**self).heads(step, heads);
    }
}
