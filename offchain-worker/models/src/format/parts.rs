//! What an exact model is made of, by name. Files and the weight root both follow from this list.

use std::collections::BTreeMap;

use rayon::prelude::*;
use surety_exact::Turns;
use surety_model_trace::quantized_bytes;
use surety_proofs::{merkle_root, weight_row_leaf};
use surety_types::ContentHash;

use crate::weights::{BertWeights, Linear, LinearRows, LlamaWeights, Norm, Table, WeightRow};

/// Values of a vector in one row of the weight root: 512 bytes, so that showing one costs little.
const VECTOR_ROW: usize = 128;

/// One named part of a model.
#[derive(Debug)]
pub enum Part<'a, L = Linear> {
    /// A linear layer, under its stem.
    Linear(&'a L),
    /// A table, under its stem.
    Table(&'a Table),
    /// A vector, under its tensor's name.
    Vector(&'a [f32]),
    /// The rotary table, under its tensor's name.
    Turns(&'a [Turns]),
}

impl<L> Clone for Part<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Part<'_, L> {}

impl<L: LinearRows> Part<'_, L> {
    /// How many rows the weight root has of it.
    pub fn rows(&self) -> usize {
        match self {
            Self::Linear(linear) => linear.rows(),
            Self::Table(table) => table.rows,
            Self::Vector(values) => values.len().div_ceil(VECTOR_ROW),
            Self::Turns(_) => 1,
        }
    }

    /// One of them. A vector's rows are up to 128 scales each, the rotary table's one row the bytes of its
    /// integers, little-endian.
    pub fn row(&self, row: usize) -> Option<WeightRow> {
        match self {
            Self::Linear(linear) => linear.row(row),
            Self::Table(table) => table.row(row),
            Self::Vector(values) => values.chunks(VECTOR_ROW).nth(row).map(|scales| WeightRow {
                scales: scales.to_vec(),
                ..WeightRow::default()
            }),
            Self::Turns(turns) => (row == 0).then(|| WeightRow {
                q: turns
                    .iter()
                    .flat_map(|turns| turns.0.to_le_bytes())
                    .map(|byte| i16::from(byte.cast_signed()))
                    .collect(),
                ..WeightRow::default()
            }),
        }
    }
}

/// The parts of a model, whose linear layers are as a file has them or packed for the kernels.
#[derive(Clone, Debug)]
pub struct Parts<'a, L = Linear>(BTreeMap<String, Part<'a, L>>);

impl<'a, L> Parts<'a, L> {
    /// In ascending order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Part<'a, L>)> {
        self.0.iter().map(|(name, part)| (&name[..], *part))
    }

    /// The part of this name.
    pub fn get(&self, name: &str) -> Option<Part<'a, L>> {
        self.0.get(name).copied()
    }

    fn linear(&mut self, stem: String, linear: &'a L) {
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

impl<'a, L> From<&'a BertWeights<L>> for Parts<'a, L> {
    fn from(weights: &'a BertWeights<L>) -> Self {
        let mut parts = Self(BTreeMap::new());
        parts.table("embeddings.word_embeddings", &weights.word_embeddings);
        parts.table("embeddings.position_embeddings", &weights.position_embeddings);
        parts.table("embeddings.token_type_embeddings", &weights.token_type_embeddings);
        parts.norm("embeddings.LayerNorm", &weights.norm);
        for (number, layer) in weights.layers.iter().enumerate() {
            let stem = |part: &str| format!("encoder.layer.{number}.{part}");
            parts.vector(stem("attention.pre"), layer.attention_smoothing.as_ref());
            parts.linear(stem("attention.self.query"), &layer.query);
            parts.linear(stem("attention.self.key"), &layer.key);
            parts.linear(stem("attention.self.value"), &layer.value);
            parts.vector(
                stem("attention.output.dense.pre"),
                layer.output_smoothing.as_ref(),
            );
            parts.linear(stem("attention.output.dense"), &layer.output);
            parts.norm(&stem("attention.output.LayerNorm"), &layer.attention_norm);
            parts.vector(stem("intermediate.dense.pre"), layer.up_smoothing.as_ref());
            parts.linear(stem("intermediate.dense"), &layer.up);
            parts.vector(stem("output.dense.pre"), layer.down_smoothing.as_ref());
            parts.linear(stem("output.dense"), &layer.down);
            parts.norm(&stem("output.LayerNorm"), &layer.norm);
        }
        parts
    }
}

impl<'a, L> From<&'a LlamaWeights<L>> for Parts<'a, L> {
    fn from(weights: &'a LlamaWeights<L>) -> Self {
        let mut parts = Self(BTreeMap::new());
        parts.0.insert("rotary.turns".into(), Part::Turns(&weights.turns));
        parts.table("model.embed_tokens", &weights.tokens);
        parts.norm("model.norm", &weights.norm);
        if let Some(head) = &weights.head {
            parts.linear("lm_head".into(), head);
        }
        for (number, layer) in weights.layers.iter().enumerate() {
            let stem = |part: &str| format!("model.layers.{number}.{part}");
            parts.norm(&stem("input_layernorm"), &layer.attention_norm);
            parts.vector(stem("attention.pre"), layer.attention_smoothing.as_ref());
            parts.linear(stem("self_attn.q_proj"), &layer.query);
            parts.linear(stem("self_attn.k_proj"), &layer.key);
            parts.linear(stem("self_attn.v_proj"), &layer.value);
            if let Some(norms) = &layer.head_norms {
                parts.norm(&stem("self_attn.q_norm"), &norms.query);
                parts.norm(&stem("self_attn.k_norm"), &norms.key);
            }
            parts.vector(stem("self_attn.o_proj.pre"), layer.output_smoothing.as_ref());
            parts.linear(stem("self_attn.o_proj"), &layer.output);
            parts.norm(&stem("post_attention_layernorm"), &layer.mlp_norm);
            parts.vector(stem("mlp.pre"), layer.mlp_smoothing.as_ref());
            parts.linear(stem("mlp.gate_proj"), &layer.gate);
            parts.linear(stem("mlp.up_proj"), &layer.up);
            parts.vector(stem("mlp.down_proj.pre"), layer.down_smoothing.as_ref());
            parts.linear(stem("mlp.down_proj"), &layer.down);
        }
        parts
    }
}

impl<L: LinearRows + Sync> Parts<'_, L> {
    /// The leaves under the weight root: every row of every part.
    pub fn leaves(&self) -> Vec<ContentHash> {
        let of_part = |(name, part): (&str, Part<'_, L>)| {
            let rows = (0..part.rows()).into_par_iter();
            rows.filter_map(|row| leaf(name, row, &part.row(row)?))
                .collect::<Vec<_>>()
        };
        self.iter().flat_map(of_part).collect()
    }

    /// Which of [`Self::leaves`] a row is.
    pub fn leaf_of(&self, name: &str, row: usize) -> Option<usize> {
        let rows = self.get(name)?.rows();
        let before = self.iter().take_while(|(other, _)| *other < name);
        let before = before.map(|(_, part)| part.rows());
        (row < rows).then(|| before.sum::<usize>() + row)
    }
}

fn leaf(name: &str, row: usize, weights: &WeightRow) -> Option<ContentHash> {
    let WeightRow { scales, bias, .. } = weights;
    let q = quantized_bytes(weights.precision, &weights.q);
    Some(weight_row_leaf(
        name.as_bytes(),
        u32::try_from(row).ok()?,
        &q,
        scales,
        *bias,
    ))
}

/// The root that a manifest commits to: over every row of every part, parts in ascending order of their
/// names.
///
/// A vector has a row for each 128 of its values, which are its scales. The rotary table is one row whose
/// int8 values are the bytes of its integers, little-endian.
pub fn weight_root<L: LinearRows + Sync>(parts: &Parts<'_, L>) -> ContentHash {
    merkle_root(parts.leaves().into_iter())
}
