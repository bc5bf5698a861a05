//! What looks on while a model computes: the trace's recorders, a converter's calibration, or nothing.

use surety_kernels::Rows;

/// One step of a layer. What it gives is one row for each row of the state, except for [`Op::Pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// The first state: embeddings, with BERT summed and normalised.
    Embed,
    /// Llama: the state, normalised for attention.
    AttentionInput,
    /// Quantised input of the three products below.
    QuantQkv,
    /// Attention's queries.
    Query,
    /// Attention's keys.
    Key,
    /// Attention's values.
    Value,
    /// Llama: the queries, turned by their position.
    RotateQuery,
    /// Llama: the keys, turned by their position.
    RotateKey,
    /// What attention found.
    Attention,
    /// The same, quantised.
    QuantOutput,
    /// The same, brought back to the state's width.
    Output,
    /// That, added to the state; with BERT normalised too.
    AttentionSum,
    /// Llama: the state, normalised for the feed-forward part.
    MlpInput,
    /// Quantised input of that part.
    QuantMlp,
    /// Llama: what is let through.
    Gate,
    /// To the inner width.
    Up,
    /// The activation function; with Llama, gated.
    Activation,
    /// The same, quantised.
    QuantDown,
    /// The same, brought back to the state's width.
    Down,
    /// That, added to the state: the layer's result. With BERT normalised too.
    Sum,
    /// BERT: one vector of all states.
    Pool,
}

/// A step and the layer it belongs to. [`Op::Embed`] is the first layer's, [`Op::Pool`] the last's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// Layer, from 0.
    pub layer: usize,
    /// Step of the layer.
    pub op: Op,
}

/// Sees every step of a forward pass, in their order. It cannot change anything.
pub trait Probe {
    /// A step gave these rows of `width` numbers.
    fn real(&mut self, step: Step, rows: &[f32], width: usize);

    /// A step quantised `input`, rows of `width` numbers, to `rows`. The layer's `pre` is not in `input`.
    fn quantised(&mut self, step: Step, input: &[f32], width: usize, rows: &Rows);
}
