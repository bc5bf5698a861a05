//! The network that is trained: what is published as `LlamaForCausalLM`, with the embedding as its head.

use std::{collections::BTreeMap, sync::Arc};

use candle_core::{DType, Device, Result, Tensor, Var};

use super::{
    ops::{CausalSoftmax, CrossEntropy, RmsNorm, Rotate, SwiGlu},
    random::Random,
};

pub(super) const NORM_EPSILON: f64 = 1e-5;
pub(super) const ROPE_THETA: f32 = 10_000.0;

/// Spread of the initial embedding, and of a product's weights times the root of its inputs.
const EMBEDDING_SPREAD: f32 = 0.02;
const PRODUCT_SPREAD: f32 = 0.6;

/// Its dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimensions {
    /// Tokens it knows.
    pub vocabulary: usize,
    /// Width of a token's state.
    pub hidden: usize,
    /// Layers.
    pub layers: usize,
    /// Heads that ask.
    pub heads: usize,
    /// Heads that are asked; divides `heads`.
    pub kv_heads: usize,
    /// Width of a head; even.
    pub head_dim: usize,
    /// Width inside the feed-forward part.
    pub feed_forward: usize,
    /// Positions.
    pub context: usize,
}

impl Dimensions {
    /// Names and shapes of the parameters.
    fn parameters(&self) -> Vec<(String, Vec<usize>)> {
        let (hidden, queries, keys) = (
            self.hidden,
            self.heads * self.head_dim,
            self.kv_heads * self.head_dim,
        );
        let mut all = vec![
            ("model.embed_tokens.weight".into(), vec![self.vocabulary, hidden]),
            ("model.norm.weight".into(), vec![hidden]),
        ];
        for layer in 0..self.layers {
            let of_layer = [
                ("input_layernorm", vec![hidden]),
                ("self_attn.q_proj", vec![queries, hidden]),
                ("self_attn.k_proj", vec![keys, hidden]),
                ("self_attn.v_proj", vec![keys, hidden]),
                ("self_attn.o_proj", vec![hidden, queries]),
                ("post_attention_layernorm", vec![hidden]),
                ("mlp.gate_proj", vec![self.feed_forward, hidden]),
                ("mlp.up_proj", vec![self.feed_forward, hidden]),
                ("mlp.down_proj", vec![hidden, self.feed_forward]),
            ];
            all.extend(of_layer.map(|(part, shape)| (format!("model.layers.{layer}.{part}.weight"), shape)));
        }
        all
    }
}

/// Parameters, by published name.
pub(super) struct Network {
    pub(super) dimensions: Dimensions,
    pub(super) parameters: BTreeMap<String, Var>,
    angles: Arc<[(f32, f32)]>,
}

impl Network {
    /// A network that knows nothing.
    pub(super) fn new(dimensions: Dimensions, random: &mut Random) -> Result<Self> {
        let mut parameters = BTreeMap::new();
        for (name, shape) in dimensions.parameters() {
            let count = shape.iter().product();
            let values = match (&shape[..], spread(&name, &shape, dimensions.layers)) {
                ([_], _) => vec![1.0; count],
                (_, spread) => (0..count).map(|_| random.normal() * spread).collect(),
            };
            parameters.insert(name, Var::from_vec(values, shape, &Device::Cpu)?);
        }
        Ok(Self {
            dimensions,
            parameters,
            angles: angles(&dimensions),
        })
    }

    /// Parameters in all.
    pub(super) fn size(&self) -> usize {
        self.parameters.values().map(|p| p.elem_count()).sum()
    }

    fn parameter(&self, name: &str) -> Result<&Tensor> {
        match self.parameters.get(name) {
            Some(parameter) => Ok(parameter.as_tensor()),
            None => candle_core::bail!("no parameter {name}"),
        }
    }

    fn product(&self, rows: &Tensor, name: &str) -> Result<Tensor> {
        rows.matmul(&self.parameter(name)?.t()?)
    }

    fn norm(&self, rows: &Tensor, name: &str) -> Result<Tensor> {
        let epsilon = NORM_EPSILON as f32;
        rows.apply_op2(self.parameter(name)?, RmsNorm { epsilon })
    }

    /// Logits `[sequences * positions, vocabulary]` for sequences of equal length, one after the other.
    pub(super) fn logits(&self, tokens: &[u32], sequences: usize) -> Result<Tensor> {
        let table = self.parameter("model.embed_tokens.weight")?;
        let ids = Tensor::new(tokens, &Device::Cpu)?;
        let mut rows = table.index_select(&ids, 0)?;
        for layer in 0..self.dimensions.layers {
            let name = |part: &str| format!("model.layers.{layer}.{part}.weight");
            let normed = self.norm(&rows, &name("input_layernorm"))?;
            rows = (rows + self.attention(&normed, sequences, &name)?)?;
            let normed = self.norm(&rows, &name("post_attention_layernorm"))?;
            let gate = self.product(&normed, &name("mlp.gate_proj"))?;
            let up = self.product(&normed, &name("mlp.up_proj"))?;
            let gated = gate.apply_op2(&up, SwiGlu)?;
            rows = (rows + self.product(&gated, &name("mlp.down_proj"))?)?;
        }
        self.norm(&rows, "model.norm.weight")?.matmul(&table.t()?)
    }

    fn attention(&self, rows: &Tensor, sequences: usize, name: &impl Fn(&str) -> String) -> Result<Tensor> {
        let Dimensions {
            heads,
            kv_heads,
            head_dim,
            ..
        } = self.dimensions;
        let positions = rows.dim(0)? / sequences.max(1);
        let project = |part: &str, heads: usize| {
            self.product(rows, &name(part))?
                .reshape((sequences, positions, heads * head_dim))
        };
        let by_head = |rows: Tensor, heads: usize| {
            rows.reshape((sequences, positions, heads, head_dim))?
                .transpose(1, 2)?
                .contiguous()
        };
        let rotate = Rotate {
            angles: self.angles.clone(),
            head_dim,
            back: false,
        };
        let queries = project("self_attn.q_proj", heads)?.apply_op1(rotate.clone())?;
        let keys = project("self_attn.k_proj", kv_heads)?.apply_op1(rotate)?;
        let values = by_head(project("self_attn.v_proj", kv_heads)?, kv_heads)?;
        // Heads that share keys are neighbors: their rows stand below each other, and one product does for
        // all.
        let together = (sequences, kv_heads, heads / kv_heads * positions, head_dim);
        let queries = by_head(queries, heads)?.reshape(together)?;
        let scale = (head_dim as f32).sqrt().recip();
        let mixed = queries
            .matmul(&by_head(keys, kv_heads)?.t()?)?
            .apply_op1(CausalSoftmax { scale })?
            .matmul(&values)?
            .reshape((sequences, heads, positions, head_dim))?
            .transpose(1, 2)?
            .reshape((sequences * positions, heads * head_dim))?;
        self.product(&mixed, &name("self_attn.o_proj"))
    }

    /// Mean loss over windows of equal length, each one token longer than what is foretold.
    pub(super) fn loss(&self, windows: &[&[u32]]) -> Result<Tensor> {
        let mut inputs = Vec::new();
        let mut targets = Vec::new();
        for window in windows {
            let (Some((_, rest)), Some((_, start))) = (window.split_first(), window.split_last()) else {
                candle_core::bail!("an empty window");
            };
            inputs.extend_from_slice(start);
            targets.extend_from_slice(rest);
        }
        self.logits(&inputs, windows.len())?
            .apply_op1(CrossEntropy { targets })
    }

    /// Logits of what comes after these tokens.
    pub(super) fn next(&self, tokens: &[u32]) -> Result<Vec<f32>> {
        let logits = self.logits(tokens, 1)?.detach();
        let rows = logits.dim(0)?;
        logits
            .get(rows.saturating_sub(1))?
            .to_dtype(DType::F32)?
            .to_vec1()
    }
}

fn spread(name: &str, shape: &[usize], layers: usize) -> f32 {
    let inputs = shape.last().copied().unwrap_or(1) as f32;
    if name.contains("embed_tokens") {
        EMBEDDING_SPREAD
    } else if name.contains("o_proj") || name.contains("down_proj") {
        // What is added to the states: the more layers add, the less each should.
        PRODUCT_SPREAD / (inputs * 2.0 * layers as f32).sqrt()
    } else {
        PRODUCT_SPREAD / inputs.sqrt()
    }
}

fn angles(dimensions: &Dimensions) -> Arc<[(f32, f32)]> {
    let pairs = dimensions.head_dim / 2;
    let mut angles = Vec::with_capacity(dimensions.context * pairs);
    for position in 0..dimensions.context {
        for pair in 0..pairs {
            let exponent = 2.0 * pair as f64 / dimensions.head_dim as f64;
            let angle = position as f64 / f64::from(ROPE_THETA).powf(exponent);
            angles.push((angle.sin() as f32, angle.cos() as f32));
        }
    }
    angles.into()
}
