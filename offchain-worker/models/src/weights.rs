//! The parameters of an exact model in memory.
//!
//! Everything here has been checked by whoever made it: lengths fit, numbers are finite, scales are not
//! negative. Linear layers are as a file has them, or packed for the kernels: `L`.

use surety_exact::Turns;
use surety_kernels::Packed;
pub use surety_kernels::weights::{Linear, Norm, Quanta, Table, WeightRow};
use surety_types::model::ModelFamily;

/// A linear layer's weights, row by row.
pub trait LinearRows {
    /// How many rows: one for each output.
    fn rows(&self) -> usize;

    /// One row; nothing where there is none.
    fn row(&self, output: usize) -> Option<WeightRow>;
}

impl LinearRows for Linear {
    fn rows(&self) -> usize {
        self.outputs
    }

    fn row(&self, output: usize) -> Option<WeightRow> {
        self.row(output)
    }
}

impl LinearRows for Packed {
    fn rows(&self) -> usize {
        self.outputs()
    }

    fn row(&self, output: usize) -> Option<WeightRow> {
        self.row(output)
    }
}

/// An encoder's activation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// [`surety_exact::gelu`].
    Gelu,
    /// [`surety_exact::gelu_tanh`].
    GeluTanh,
}

/// One layer of an encoder. A `smoothing_scale` scales the channels of the next linear layers' input; `None`
/// is all ones.
#[derive(Clone, Debug, PartialEq)]
pub struct BertLayer<L = Linear> {
    /// Before query, key and value.
    pub attention_smoothing: Option<Vec<f32>>,
    /// Attention's queries.
    pub query: L,
    /// Attention's keys.
    pub key: L,
    /// Attention's values.
    pub value: L,
    /// Before `output`.
    pub output_smoothing: Option<Vec<f32>>,
    /// What attention found, back to the state's width.
    pub output: L,
    /// After the sum of that and the state.
    pub attention_norm: Norm,
    /// Before `up`.
    pub up_smoothing: Option<Vec<f32>>,
    /// To the inner width.
    pub up: L,
    /// Before `down`.
    pub down_smoothing: Option<Vec<f32>>,
    /// Back to the state's width.
    pub down: L,
    /// After the sum of that and the state.
    pub norm: Norm,
}

/// An encoder for sentence embeddings.
#[derive(Clone, Debug, PartialEq)]
pub struct BertWeights<L = Linear> {
    /// Attention heads; they share the width evenly.
    pub heads: usize,
    /// Between `up` and `down`.
    pub activation: Activation,
    /// A vector for each token.
    pub word_embeddings: Table,
    /// A vector for each position.
    pub position_embeddings: Table,
    /// A vector for each kind of segment.
    pub token_type_embeddings: Table,
    /// After the sum of the three.
    pub norm: Norm,
    /// From first to last.
    pub layers: Vec<BertLayer<L>>,
}

/// What norms every head of a layer before it is turned by its position.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadNorms {
    /// Of queries, `[head_dim]`.
    pub query: Norm,
    /// Of keys, `[head_dim]`.
    pub key: Norm,
}

/// One layer of a decoder. A `smoothing_scale` scales the channels of the next linear layers' input; `None`
/// is all ones.
#[derive(Clone, Debug, PartialEq)]
pub struct LlamaLayer<L = Linear> {
    /// Before attention.
    pub attention_norm: Norm,
    /// Before query, key and value.
    pub attention_smoothing: Option<Vec<f32>>,
    /// Attention's queries.
    pub query: L,
    /// Attention's keys, fewer than the queries where heads share them.
    pub key: L,
    /// Attention's values, as many as keys.
    pub value: L,
    /// After `query` and `key`: Qwen 3's alone.
    pub head_norms: Option<HeadNorms>,
    /// Before `output`.
    pub output_smoothing: Option<Vec<f32>>,
    /// What attention found, back to the state's width.
    pub output: L,
    /// Before the gated layer.
    pub mlp_norm: Norm,
    /// Before `gate` and `up`.
    pub mlp_smoothing: Option<Vec<f32>>,
    /// How much of `up` is let through, before SiLU.
    pub gate: L,
    /// To the inner width.
    pub up: L,
    /// Before `down`.
    pub down_smoothing: Option<Vec<f32>>,
    /// Back to the state's width.
    pub down: L,
}

/// A decoder that generates text.
#[derive(Clone, Debug, PartialEq)]
pub struct LlamaWeights<L = Linear> {
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values; `heads` is a multiple of it.
    pub kv_heads: usize,
    /// Width of one head.
    pub head_dim: usize,
    /// Most positions of prompt and continuation together.
    pub context: usize,
    /// `[head_dim / 2]`.
    pub turns: Vec<Turns>,
    /// A vector for each token.
    pub tokens: Table,
    /// From first to last.
    pub layers: Vec<LlamaLayer<L>>,
    /// After the last layer.
    pub norm: Norm,
    /// From a state to a logit for each token. `None`: `tokens` serves as the matrix.
    pub head: Option<L>,
}

impl<L> LlamaWeights<L> {
    /// Which decoder it is, by its first layer.
    pub fn family(&self) -> ModelFamily {
        match self.layers.first() {
            Some(layer) if layer.head_norms.is_some() => ModelFamily::Qwen3,
            _ => ModelFamily::Llama,
        }
    }
}
