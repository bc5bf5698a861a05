//! What an exact model is made of, by name. Files and the weight root both follow from this list.

use std::collections::BTreeMap;

use surety_exact::{groups, Turns};
use surety_types::ContentHash;
use surety_verification::{merkle_root, weight_row_leaf};

use crate::exact::weights::{BertWeights, Linear, LlamaWeights, Norm, Table};

/// One named part of a model.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// A linear layer, under its stem.
    Linear(&'a Linear),
    /// A table, under its stem.
    Table(&'a Table),
    /// A vector, under its tensor's name.
    Vector(&'a [f32]),
    /// The rotary table, under its tensor's name.
    Turns(&'a [Turns]),
}

/// All parts, in ascending order of their names.
pub type PartsByName<'a> = BTreeMap<String, Part<'a>>;

/// The parts of a model.
#[derive(Clone, Debug, Default)]
pub struct Parts<'a>(PartsByName<'a>);

impl<'a> Parts<'a> {
    /// In ascending order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Part<'a>)> {
        self.0.iter().map(|(name, part)| (&name[..], *part))
    }

    fn linear(&mut self, stem: String, linear: &'a Linear) {
        self.0.insert(stem, Part::Linear(linear));
    }

    fn table(&mut self, stem: &str, table: &'a Table) {
        self.0.insert(stem.into(), Part::Table(table));
    }

    fn vector(&mut self, name: String, vector: Option<&'a Vec<f32>>) {
        if let Some(vector) = vector {
            self.0.insert(name, Part::Vector(vector));
        }
    }

    fn norm(&mut self, stem: &str, norm: &'a Norm) {
        self.vector(format!("{stem}.weight"), Some(&norm.weight));
        self.vector(format!("{stem}.bias"), norm.bias.as_ref());
    }
}

impl<'a> From<&'a BertWeights> for Parts<'a> {
    fn from(weights: &'a BertWeights) -> Self {
        let mut parts = Self::default();
        parts.table("embeddings.word_embeddings", &weights.words);
        parts.table("embeddings.position_embeddings", &weights.positions);
        parts.table("embeddings.token_type_embeddings", &weights.types);
        parts.norm("embeddings.LayerNorm", &weights.norm);
        for (number, layer) in weights.layers.iter().enumerate() {
            let stem = |part: &str| format!("encoder.layer.{number}.{part}");
            parts.vector(stem("attention.pre"), layer.attention_pre.as_ref());
            parts.linear(stem("attention.self.query"), &layer.query);
            parts.linear(stem("attention.self.key"), &layer.key);
            parts.linear(stem("attention.self.value"), &layer.value);
            parts.vector(stem("attention.output.dense.pre"), layer.output_pre.as_ref());
            parts.linear(stem("attention.output.dense"), &layer.output);
            parts.norm(&stem("attention.output.LayerNorm"), &layer.attention_norm);
            parts.vector(stem("intermediate.dense.pre"), layer.up_pre.as_ref());
            parts.linear(stem("intermediate.dense"), &layer.up);
            parts.vector(stem("output.dense.pre"), layer.down_pre.as_ref());
            parts.linear(stem("output.dense"), &layer.down);
            parts.norm(&stem("output.LayerNorm"), &layer.norm);
        }
        parts
    }
}

impl<'a> From<&'a LlamaWeights> for Parts<'a> {
    fn from(weights: &'a LlamaWeights) -> Self {
        let mut parts = Self::default();
        parts.0.insert("rotary.turns".into(), Part::Turns(&weights.turns));
        parts.table("model.embed_tokens", &weights.tokens);
        parts.norm("model.norm", &weights.norm);
        if let Some(head) = &weights.head {
            parts.linear("lm_head".into(), head);
        }
        for (number, layer) in weights.layers.iter().enumerate() {
            let stem = |part: &str| format!("model.layers.{number}.{part}");
            parts.norm(&stem("input_layernorm"), &layer.attention_norm);
            parts.vector(stem("attention.pre"), layer.attention_pre.as_ref());
            parts.linear(stem("self_attn.q_proj"), &layer.query);
            parts.linear(stem("self_attn.k_proj"), &layer.key);
            parts.linear(stem("self_attn.v_proj"), &layer.value);
            parts.vector(stem("self_attn.o_proj.pre"), layer.output_pre.as_ref());
            parts.linear(stem("self_attn.o_proj"), &layer.output);
            parts.norm(&stem("post_attention_layernorm"), &layer.mlp_norm);
            parts.vector(stem("mlp.pre"), layer.mlp_pre.as_ref());
            parts.linear(stem("mlp.gate_proj"), &layer.gate);
            parts.linear(stem("mlp.up_proj"), &layer.up);
            parts.vector(stem("mlp.down_proj.pre"), layer.down_pre.as_ref());
            parts.linear(stem("mlp.down_proj"), &layer.down);
        }
        parts
    }
}

/// The root that a manifest commits to: over every row of every part, parts in ascending order of their names.
///
/// A vector is one row whose scales are its values. The rotary table is one row whose int8 values are the bytes of
/// its integers, little-endian.
pub fn weight_root(parts: &Parts<'_>) -> ContentHash {
    merkle_root(parts.iter().flat_map(|(name, part)| leaves(name, part)))
}

fn leaves<'a>(name: &'a str, part: Part<'a>) -> Box<dyn Iterator<Item = ContentHash> + 'a> {
    match part {
        Part::Linear(linear) => {
            let biases = linear.bias.as_deref();
            let bias = move |row: usize| biases.and_then(|biases| biases.get(row)).copied();
            Box::new(rows(name, &linear.q, linear.inputs, &linear.scales, bias))
        }
        Part::Table(table) => Box::new(rows(name, &table.q, table.width, &table.scales, |_| None)),
        Part::Vector(values) => Box::new(std::iter::once(weight_row_leaf(
            name.as_bytes(),
            0,
            &[],
            values,
            None,
        ))),
        Part::Turns(turns) => {
            let bytes: Vec<i8> = turns
                .iter()
                .flat_map(|turns| turns.0.to_le_bytes())
                .map(u8::cast_signed)
                .collect();
            Box::new(std::iter::once(weight_row_leaf(
                name.as_bytes(),
                0,
                &bytes,
                &[],
                None,
            )))
        }
    }
}

fn rows<'a>(
    name: &'a str,
    q: &'a [i8],
    width: usize,
    scales: &'a [f32],
    bias: impl Fn(usize) -> Option<f32> + 'a,
) -> impl Iterator<Item = ContentHash> + 'a {
    // A width of 0 never passes the checks; here it must only not panic.
    let q = q.chunks_exact(width.max(1));
    let scales = scales.chunks_exact(groups(width).max(1));
    q.zip(scales)
        .zip(0u32..)
        .map(move |((q, scales), row)| weight_row_leaf(name.as_bytes(), row, q, scales, bias(row as usize)))
}
