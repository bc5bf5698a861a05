//! The quantised model over the calibration text, to see how large its activations get.
//!
//! It is the exact arithmetic, line by line: slow and plain, since nobody waits for it twice.

use std::panic::{catch_unwind, AssertUnwindSafe};

use surety_exact::{Fault, GROUP};
use surety_kernels::{
    add, attention, gelu, gelu_tanh, layer_norm, product, rms_norm, rotate, swiglu, Cache, Mask, Packed, Rows,
};
use tokenizers::Tokenizer;

use super::{
    calibration::{lines, observe, tokens_max, LayerMaxima, Maxima},
    ConvertError, Step,
};
use crate::{
    exact::weights::{Activation, BertLayer, BertWeights, Linear, LlamaLayer, LlamaWeights, Norm, Table},
    model_error::ModelError,
};

/// The calibration text in tokens of this model, each line cut to what it has positions for.
pub(super) fn tokens(
    tokenizer: &[u8],
    vocabulary: usize,
    positions: usize,
) -> Result<Vec<Vec<u32>>, ConvertError> {
    // The library is not written for hostile files.
    let encoded = catch_unwind(AssertUnwindSafe(|| {
        let mut tokenizer = Tokenizer::from_bytes(tokenizer)?;
        tokenizer.with_truncation(None)?.with_padding(None);
        lines()
            .map(|line| Ok(tokenizer.encode(line, true)?.get_ids().to_vec()))
            .collect::<Result<Vec<_>, tokenizers::Error>>()
    }));
    let mut rows = match encoded {
        Ok(Ok(rows)) => rows,
        Ok(Err(error)) => return Err(ModelError::Tokenizer(error.to_string()).into()),
        Err(_) => return Err(ModelError::Tokenizer("the tokenizer library panicked".into()).into()),
    };
    for row in &mut rows {
        row.truncate(tokens_max(positions));
        if let Some(token) = row.iter().find(|token| **token as usize >= vocabulary) {
            return Err(ModelError::Vocabulary {
                token: *token,
                vocabulary,
            }
            .into());
        }
    }
    rows.retain(|row| !row.is_empty());
    Ok(rows)
}

fn failed(fault: Fault) -> ConvertError {
    ConvertError::Calibration(format!("{fault:?}"))
}

fn lookup(table: &Table, index: usize, out: &mut [f32], write: impl Fn(&mut f32, f32)) -> Result<(), Fault> {
    let q = table.q.chunks_exact(table.width).nth(index).ok_or(Fault::Shape)?;
    let groups = table.width.div_ceil(GROUP);
    let scales = table.scales.chunks_exact(groups).nth(index).ok_or(Fault::Shape)?;
    let groups = out.chunks_mut(GROUP).zip(q.chunks(GROUP)).zip(scales);
    for ((out, q), scale) in groups {
        for (out, q) in out.iter_mut().zip(q) {
            write(out, f32::from(*q) * scale);
        }
    }
    Ok(())
}

/// Linear layers that share an input: notes its sizes and multiplies.
fn linears<const N: usize>(
    maxima: &mut Vec<f32>,
    rows: &[f32],
    layers: [(&Linear, &Packed); N],
) -> Result<[Vec<f32>; N], Fault> {
    let width = layers.first().map_or(0, |(layer, _)| layer.inputs);
    observe(maxima, rows, width)?;
    let mut quantised = Rows::new();
    quantised.quantise(rows, width, None)?;
    let mut results = [const { Vec::new() }; N];
    for ((layer, packed), out) in layers.iter().zip(&mut results) {
        out.resize(rows.len() / width.max(1) * layer.outputs, 0.0);
        product(&quantised, packed, out)?;
    }
    Ok(results)
}

fn normed(
    rows: &[f32],
    norm: &Norm,
    with: fn(&[f32], &Norm, &mut [f32]) -> Result<(), Fault>,
) -> Result<Vec<f32>, Fault> {
    let mut out = vec![0.0; rows.len()];
    with(rows, norm, &mut out)?;
    Ok(out)
}

/// What the layers of an encoder get to see.
pub(super) fn bert(
    weights: &BertWeights,
    text: &[Vec<u32>],
    step: &mut Step<'_>,
) -> Result<Maxima, ConvertError> {
    let mut states = text
        .iter()
        .map(|tokens| bert_embed(weights, tokens))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    step.total = weights.layers.len();
    let mut maxima = Maxima::default();
    // Layer by layer, so that one layer is packed at a time.
    for (number, layer) in weights.layers.iter().enumerate() {
        let mut of = LayerMaxima::default();
        bert_layer(weights, layer, &mut states, &mut of).map_err(failed)?;
        maxima.layers.push(of);
        step.done(number + 1);
    }
    Ok(maxima)
}

fn bert_embed(weights: &BertWeights, tokens: &[u32]) -> Result<Vec<f32>, Fault> {
    let width = weights.words.width;
    let mut states = vec![0.0; tokens.len() * width];
    for (position, (token, row)) in tokens.iter().zip(states.chunks_mut(width)).enumerate() {
        lookup(&weights.words, *token as usize, row, |out, value| *out = value)?;
        lookup(&weights.positions, position, row, |out, value| *out += value)?;
        lookup(&weights.types, 0, row, |out, value| *out += value)?;
    }
    normed(&states, &weights.norm, layer_norm)
}

fn bert_layer(
    weights: &BertWeights,
    layer: &BertLayer,
    states: &mut [Vec<f32>],
    maxima: &mut LayerMaxima,
) -> Result<(), Fault> {
    let [query, key, value, output, up, down] = [
        &layer.query,
        &layer.key,
        &layer.value,
        &layer.output,
        &layer.up,
        &layer.down,
    ]
    .map(|linear| (linear, Packed::new(linear)));
    let width = layer.query.inputs;
    for state in states {
        let three = [&query, &key, &value].map(|(linear, packed)| (*linear, packed));
        let [queries, keys, values] = linears(&mut maxima.attention, state, three)?;
        let mut cache = Cache::new(weights.heads, width / weights.heads, state.len() / width);
        cache.append(&keys, &values)?;
        let mut mixed = vec![0.0; queries.len()];
        attention(&queries, &cache, weights.heads, Mask::Full, &mut mixed)?;
        let [mut sum] = linears(&mut maxima.output, &mixed, [(output.0, &output.1)])?;
        add(&mut sum, state)?;
        let middle = normed(&sum, &layer.attention_norm, layer_norm)?;
        let [mut inner] = linears(&mut maxima.up, &middle, [(up.0, &up.1)])?;
        match weights.activation {
            Activation::Gelu => gelu(&mut inner),
            Activation::GeluTanh => gelu_tanh(&mut inner),
        }
        let [mut sum] = linears(&mut maxima.down, &inner, [(down.0, &down.1)])?;
        add(&mut sum, &middle)?;
        *state = normed(&sum, &layer.norm, layer_norm)?;
    }
    Ok(())
}

/// What the layers of a decoder get to see.
pub(super) fn llama(
    weights: &LlamaWeights,
    text: &[Vec<u32>],
    step: &mut Step<'_>,
) -> Result<Maxima, ConvertError> {
    let mut states = text
        .iter()
        .map(|tokens| llama_embed(&weights.tokens, tokens))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    step.total = weights.layers.len();
    let mut maxima = Maxima::default();
    for (number, layer) in weights.layers.iter().enumerate() {
        let mut of = LayerMaxima::default();
        llama_layer(weights, layer, &mut states, &mut of).map_err(failed)?;
        maxima.layers.push(of);
        step.done(number + 1);
    }
    Ok(maxima)
}

fn llama_embed(table: &Table, tokens: &[u32]) -> Result<Vec<f32>, Fault> {
    let mut states = vec![0.0; tokens.len() * table.width];
    for (token, row) in tokens.iter().zip(states.chunks_mut(table.width)) {
        lookup(table, *token as usize, row, |out, value| *out = value)?;
    }
    Ok(states)
}

fn llama_layer(
    weights: &LlamaWeights,
    layer: &LlamaLayer,
    states: &mut [Vec<f32>],
    maxima: &mut LayerMaxima,
) -> Result<(), Fault> {
    let [query, key, value, output, gate, up, down] = [
        &layer.query,
        &layer.key,
        &layer.value,
        &layer.output,
        &layer.gate,
        &layer.up,
        &layer.down,
    ]
    .map(|linear| (linear, Packed::new(linear)));
    let (heads, kv_heads, dim) = (weights.heads, weights.kv_heads, weights.head_dim);
    let width = weights.tokens.width;
    for state in states {
        let normal = normed(state, &layer.attention_norm, rms_norm)?;
        let three = [&query, &key, &value].map(|(linear, packed)| (*linear, packed));
        let [mut queries, mut keys, values] = linears(&mut maxima.attention, &normal, three)?;
        rotate(&mut queries, heads, &weights.turns, 0)?;
        rotate(&mut keys, kv_heads, &weights.turns, 0)?;
        let mut cache = Cache::new(kv_heads, dim, state.len() / width);
        cache.append(&keys, &values)?;
        let mut mixed = vec![0.0; queries.len()];
        attention(&queries, &cache, heads, Mask::Causal { first: 0 }, &mut mixed)?;
        let [sum] = linears(&mut maxima.output, &mixed, [(output.0, &output.1)])?;
        add(state, &sum)?;
        let normal = normed(state, &layer.mlp_norm, rms_norm)?;
        let two = [&gate, &up].map(|(linear, packed)| (*linear, packed));
        let [mut gates, ups] = linears(&mut maxima.up, &normal, two)?;
        swiglu(&mut gates, &ups)?;
        let [sum] = linears(&mut maxima.down, &gates, [(down.0, &down.1)])?;
        add(state, &sum)?;
    }
    Ok(())
}
