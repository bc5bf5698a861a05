//! The tensors of a model: their names, and what a committed row of each holds.
//!
//! Files of exact models and their `weight_root` both go by these names, in ascending order.

use alloc::{format, string::String};

use surety_exact::{Precision, groups};
use surety_types::model::{Architecture, ModelFamily};

/// Values in a committed row of a vector; the last may have fewer. As many as a group of quantized values, so
/// that a group's factors are one row.
pub const VECTOR_ROW: u32 = 128;

/// Bytes of one entry of the rotary table.
const TURNS_BYTES: u32 = 8;

/// One tensor of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tensor {
    /// A vector for each token.
    Tokens,
    /// BERT: a vector for each position.
    Positions,
    /// BERT: a vector for each kind of segment. Only the first is ever used.
    Types,
    /// BERT: weight of the norm of what the three give together.
    EmbeddingsNorm,
    /// Its bias.
    EmbeddingsNormBias,
    /// Decoders: how far each pair of a head turns from a position to the next.
    Turns,
    /// Decoders: weight of the norm after the last layer.
    FinalNorm,
    /// Decoders, unless the tokens' vectors serve: from a state to a logit for each token.
    Head,
    /// In a layer.
    Layer(u32, InLayer),
}

/// A tensor of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InLayer {
    /// What scales the input of query, key and value.
    AttentionSmoothing,
    /// Attention's queries.
    Query,
    /// Attention's keys.
    Key,
    /// Attention's values.
    Value,
    /// What scales the input of `Output`.
    OutputSmoothing,
    /// What attention found, back to the state's width.
    Output,
    /// Weight of attention's norm: after it with BERT, before it with decoders.
    AttentionNorm,
    /// BERT: its bias.
    AttentionNormBias,
    /// What scales the input of `Gate` and `Up`.
    InnerSmoothing,
    /// Decoders: what is let through.
    Gate,
    /// To the inner width.
    Up,
    /// What scales the input of `Down`.
    DownSmoothing,
    /// Back to the state's width.
    Down,
    /// Weight of the other norm: after `Down` with BERT, before `Gate` with decoders.
    Norm,
    /// BERT: its bias.
    NormBias,
    /// Qwen 3: weight of the norm of each head of queries.
    QueryNorm,
    /// Qwen 3: weight of the norm of each head of keys.
    KeyNorm,
}

/// All of a layer.
const IN_LAYER: [InLayer; 17] = [
    InLayer::AttentionSmoothing,
    InLayer::Query,
    InLayer::Key,
    InLayer::Value,
    InLayer::OutputSmoothing,
    InLayer::Output,
    InLayer::AttentionNorm,
    InLayer::AttentionNormBias,
    InLayer::InnerSmoothing,
    InLayer::Gate,
    InLayer::Up,
    InLayer::DownSmoothing,
    InLayer::Down,
    InLayer::Norm,
    InLayer::NormBias,
    InLayer::QueryNorm,
    InLayer::KeyNorm,
];

/// What the committed rows of a tensor hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightShape {
    /// Number of rows.
    pub rows: u32,
    /// Quantized values of a row.
    pub values: u32,
    /// int8 or int12, of quantized rows.
    pub precision: Precision,
    /// `f32` scales of a row; those of a vector are its values, and its last row may have fewer.
    pub scales: u32,
    /// Whether rows may have a bias; whether they do, a model says.
    pub biased: bool,
}

impl InLayer {
    /// The name of it in its layer; nothing where the family has none.
    const fn name(self, family: ModelFamily) -> Option<&'static str> {
        match family {
            ModelFamily::Bert => self.bert(),
            ModelFamily::Llama => self.llama(),
            ModelFamily::Qwen3 => self.qwen3(),
        }
    }

    const fn bert(self) -> Option<&'static str> {
        Some(match self {
            Self::AttentionSmoothing => "attention.pre",
            Self::Query => "attention.self.query",
            Self::Key => "attention.self.key",
            Self::Value => "attention.self.value",
            Self::OutputSmoothing => "attention.output.dense.pre",
            Self::Output => "attention.output.dense",
            Self::AttentionNorm => "attention.output.LayerNorm.weight",
            Self::AttentionNormBias => "attention.output.LayerNorm.bias",
            Self::InnerSmoothing => "intermediate.dense.pre",
            Self::Gate => return None,
            Self::Up => "intermediate.dense",
            Self::DownSmoothing => "output.dense.pre",
            Self::Down => "output.dense",
            Self::Norm => "output.LayerNorm.weight",
            Self::NormBias => "output.LayerNorm.bias",
            Self::QueryNorm | Self::KeyNorm => return None,
        })
    }

    const fn llama(self) -> Option<&'static str> {
        Some(match self {
            Self::AttentionSmoothing => "attention.pre",
            Self::Query => "self_attn.q_proj",
            Self::Key => "self_attn.k_proj",
            Self::Value => "self_attn.v_proj",
            Self::OutputSmoothing => "self_attn.o_proj.pre",
            Self::Output => "self_attn.o_proj",
            Self::AttentionNorm => "input_layernorm.weight",
            Self::InnerSmoothing => "mlp.pre",
            Self::Gate => "mlp.gate_proj",
            Self::Up => "mlp.up_proj",
            Self::DownSmoothing => "mlp.down_proj.pre",
            Self::Down => "mlp.down_proj",
            Self::Norm => "post_attention_layernorm.weight",
            Self::AttentionNormBias | Self::NormBias | Self::QueryNorm | Self::KeyNorm => return None,
        })
    }

    const fn qwen3(self) -> Option<&'static str> {
        match self {
            Self::QueryNorm => Some("self_attn.q_norm.weight"),
            Self::KeyNorm => Some("self_attn.k_norm.weight"),
            shared => shared.llama(),
        }
    }

    fn exists(self, architecture: &Architecture) -> bool {
        match self {
            Self::AttentionSmoothing => architecture.smoothed.attention,
            Self::OutputSmoothing => architecture.smoothed.output,
            Self::InnerSmoothing => architecture.smoothed.inner,
            Self::DownSmoothing => architecture.smoothed.down,
            _ => true,
        }
    }

    fn shape(self, architecture: &Architecture) -> WeightShape {
        let Architecture { width, inner, .. } = *architecture;
        let queries = architecture.heads.saturating_mul(architecture.head_dim);
        let keys = architecture.kv_heads.saturating_mul(architecture.head_dim);
        let linear = |inputs, outputs| WeightShape {
            biased: true,
            ..WeightShape::table(architecture, inputs, outputs)
        };
        match self {
            Self::Query => linear(width, queries),
            Self::Key | Self::Value => linear(width, keys),
            Self::Output => linear(queries, width),
            Self::Gate | Self::Up => linear(width, inner),
            Self::Down => linear(inner, width),
            Self::OutputSmoothing => WeightShape::vector(queries),
            Self::DownSmoothing => WeightShape::vector(inner),
            Self::QueryNorm | Self::KeyNorm => WeightShape::vector(architecture.head_dim),
            _ => WeightShape::vector(width),
        }
    }
}

impl Tensor {
    /// Its name: that of a linear layer or a table is the stem of its parts' names in a file. Nothing where
    /// the family has no such tensor.
    pub fn name(self, family: ModelFamily) -> Option<String> {
        let Self::Layer(layer, part) = self else {
            return self.outside(family).map(Into::into);
        };
        let part = part.name(family)?;
        Some(match family {
            ModelFamily::Bert => format!("encoder.layer.{layer}.{part}"),
            ModelFamily::Llama | ModelFamily::Qwen3 => format!("model.layers.{layer}.{part}"),
        })
    }

    /// The name of one that is in no layer.
    const fn outside(self, family: ModelFamily) -> Option<&'static str> {
        use ModelFamily::{Bert, Llama, Qwen3};
        Some(match (self, family) {
            (Self::Tokens, Bert) => "embeddings.word_embeddings",
            (Self::Positions, Bert) => "embeddings.position_embeddings",
            (Self::Types, Bert) => "embeddings.token_type_embeddings",
            (Self::EmbeddingsNorm, Bert) => "embeddings.LayerNorm.weight",
            (Self::EmbeddingsNormBias, Bert) => "embeddings.LayerNorm.bias",
            (Self::Tokens, Llama | Qwen3) => "model.embed_tokens",
            (Self::Turns, Llama | Qwen3) => "rotary.turns",
            (Self::FinalNorm, Llama | Qwen3) => "model.norm.weight",
            (Self::Head, Llama | Qwen3) => "lm_head",
            _ => return None,
        })
    }

    /// What its rows hold. That there is such a tensor at all, [`tensors`] says; how many kinds of segments a
    /// model has is not known here, but for that there is a first.
    pub fn shape(self, architecture: &Architecture) -> WeightShape {
        let Architecture {
            width, vocabulary, ..
        } = *architecture;
        match self {
            Self::Tokens => WeightShape::table(architecture, width, vocabulary),
            Self::Positions => WeightShape::table(architecture, width, architecture.positions),
            Self::Types => WeightShape::table(architecture, width, 1),
            Self::EmbeddingsNorm | Self::EmbeddingsNormBias | Self::FinalNorm => WeightShape::vector(width),
            Self::Turns => WeightShape {
                rows: 1,
                values: (architecture.head_dim / 2).saturating_mul(TURNS_BYTES),
                // Single bytes, whatever the model's rows are.
                precision: Precision::Int8,
                scales: 0,
                biased: false,
            },
            // The engine's head has no bias.
            Self::Head => WeightShape::table(architecture, width, vocabulary),
            Self::Layer(_, part) => part.shape(architecture),
        }
    }
}

impl WeightShape {
    fn table(architecture: &Architecture, width: u32, rows: u32) -> Self {
        Self {
            rows,
            values: width,
            precision: architecture.precision.into(),
            scales: scales(width),
            biased: false,
        }
    }

    fn vector(values: u32) -> Self {
        Self {
            rows: values.div_ceil(VECTOR_ROW),
            values: 0,
            precision: Precision::default(),
            scales: values,
            biased: false,
        }
    }

    /// Scales of row `row`; nothing when there is no such row.
    pub fn scales_of(&self, row: u32) -> Option<u32> {
        if row >= self.rows {
            return None;
        }
        match self.values {
            0 => Some(
                self.scales
                    .checked_sub(row.checked_mul(VECTOR_ROW)?)?
                    .min(VECTOR_ROW),
            ),
            _ => Some(self.scales),
        }
    }
}

/// Scales of a row of so many values, one per group.
pub(super) fn scales(values: u32) -> u32 {
    groups(values as usize) as u32
}

/// The tensors of a model, those of its layers in the layers' order. Not in the order of their names.
pub fn tensors(family: ModelFamily, architecture: &Architecture) -> impl Iterator<Item = Tensor> + '_ {
    let of_layers = move |layer| tensors_of_layer(family, architecture, layer);
    tensors_outside(family, architecture).chain((0..architecture.layers).flat_map(of_layers))
}

/// Those outside of the layers.
pub(super) fn tensors_outside(
    family: ModelFamily,
    architecture: &Architecture,
) -> impl Iterator<Item = Tensor> {
    const OUTSIDE: [Tensor; 8] = [
        Tensor::Tokens,
        Tensor::Positions,
        Tensor::Types,
        Tensor::EmbeddingsNorm,
        Tensor::EmbeddingsNormBias,
        Tensor::Turns,
        Tensor::FinalNorm,
        Tensor::Head,
    ];
    let tied = architecture.tied;
    OUTSIDE
        .into_iter()
        .filter(move |tensor| *tensor != Tensor::Head || !tied)
        .filter(move |tensor| tensor.outside(family).is_some())
}

/// Those of a layer.
pub(super) fn tensors_of_layer(
    family: ModelFamily,
    architecture: &Architecture,
    layer: u32,
) -> impl Iterator<Item = Tensor> + '_ {
    let parts = IN_LAYER.into_iter().filter(|part| part.exists(architecture));
    parts
        .filter(move |part| part.name(family).is_some())
        .map(move |part| Tensor::Layer(layer, part))
}
