//! The weights of an exact model in memory.

pub use surety_kernels::weights::{Linear, Norm, Table};

use surety_exact::Turns;

/// Which function a BERT layer applies between its two feed-forward products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `x Φ(x)`
    Gelu,
    /// Its approximation by the hyperbolic tangent.
    GeluTanh,
}

/// One layer of a BERT. A `pre` multiplies the input of the products that it is named for, before quantisation.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // The names are the documentation.
pub struct BertLayer {
    pub attention_pre: Option<Vec<f32>>,
    pub query: Linear,
    pub key: Linear,
    pub value: Linear,
    pub output_pre: Option<Vec<f32>>,
    pub output: Linear,
    pub attention_norm: Norm,
    pub up_pre: Option<Vec<f32>>,
    pub up: Linear,
    pub down_pre: Option<Vec<f32>>,
    pub down: Linear,
    pub norm: Norm,
}

/// A BERT that makes embeddings.
#[derive(Clone, Debug, PartialEq)]
pub struct BertWeights {
    /// Attention heads.
    pub heads: usize,
    /// Between the feed-forward products.
    pub activation: Activation,
    /// Embeddings of tokens.
    pub words: Table,
    /// Embeddings of positions.
    pub positions: Table,
    /// Embeddings of segments.
    pub types: Table,
    /// After the sum of the embeddings.
    pub norm: Norm,
    /// First to last.
    pub layers: Vec<BertLayer>,
}

/// One layer of a Llama. A `pre` multiplies the input of the products that it is named for, before quantisation.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // The names are the documentation.
pub struct LlamaLayer {
    pub attention_norm: Norm,
    pub attention_pre: Option<Vec<f32>>,
    pub query: Linear,
    pub key: Linear,
    pub value: Linear,
    pub output_pre: Option<Vec<f32>>,
    pub output: Linear,
    pub mlp_norm: Norm,
    pub mlp_pre: Option<Vec<f32>>,
    pub gate: Linear,
    pub up: Linear,
    pub down_pre: Option<Vec<f32>>,
    pub down: Linear,
}

/// A Llama that writes text.
#[derive(Clone, Debug, PartialEq)]
pub struct LlamaWeights {
    /// Attention heads of queries.
    pub heads: usize,
    /// Attention heads of keys and values.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Positions at most.
    pub context: usize,
    /// Rotary positions: `[head_dim / 2]`.
    pub turns: Vec<Turns>,
    /// Embeddings of tokens.
    pub tokens: Table,
    /// First to last.
    pub layers: Vec<LlamaLayer>,
    /// After the last layer.
    pub norm: Norm,
    /// Gives the logits; `None`: `tokens` does.
    pub head: Option<Linear>,
    /// Tokens that end the text.
    pub end_tokens: Vec<u32>,
}
