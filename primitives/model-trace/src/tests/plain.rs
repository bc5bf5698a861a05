//! The same models as plain forward passes over the row functions of `surety-exact`, as the engine has them.
//! What they give is what the cells give, bit for bit.

use std::sync::Arc;

use surety_exact::{
    Head, Sampling, Turns, attention_row, gelu, groups, l2_normalize, layer_norm_row, mean_pool,
    product_cell, quantize_heads, quantize_row, rms_norm_row, rotate_row, rsqrt, sample, scale_row, silu,
};

use surety_types::model::{Architecture, ModelFamily, Pooling, Precision};

use super::small::{PROMPT, Prompt, Work, bert, claimed, continuation, embed, llama, qwen3};
use crate::{
    InLayer, Part, Records, Tensor, sampling_random,
    testsuite::{MemoryModel, generation_output},
};

type Row = Vec<f32>;

/// Values and scales.
type Quantized = (Vec<i16>, Row);

/// A row's heads, quantized.
fn heads(row: &[f32], width: usize) -> Quantized {
    let (mut q, mut scales) = (vec![0; row.len()], vec![0.0; row.len() / width]);
    quantize_heads(row, width, &mut q, &mut scales).unwrap();
    (q, scales)
}

struct Plain<'w>(&'w Work);

impl Plain<'_> {
    fn vector(&self, tensor: Tensor) -> Row {
        let rows = tensor.shape(self.0.model.architecture()).rows;
        let rows = (0..rows).map(|row| self.0.trace.weights(tensor, row).unwrap().scales.into_owned());
        rows.flatten().collect()
    }

    fn table(&self, tensor: Tensor, row: u32) -> Row {
        let row = self.0.trace.weights(tensor, row).unwrap();
        let scales = row.scales.iter().flat_map(|scale| [*scale; 128]);
        row.q
            .iter()
            .zip(scales)
            .map(|(q, scale)| f32::from(*q) * scale)
            .collect()
    }

    fn quantize(&self, row: &[f32], smoothing_scale: Option<Tensor>) -> Quantized {
        let mut scaled = row.to_vec();
        if let Some(smoothing_scale) = smoothing_scale {
            scale_row(row, &self.vector(smoothing_scale), &mut scaled).unwrap();
        }
        let (mut q, mut scales) = (vec![0; row.len()], vec![0.0; groups(row.len())]);
        let precision = self.0.model.architecture().precision.into();
        quantize_row(&scaled, precision, &mut q, &mut scales).unwrap();
        (q, scales)
    }

    fn product(&self, (q, scales): &Quantized, by: Tensor) -> Row {
        let outputs = by.shape(self.0.model.architecture()).rows;
        let cell = |row| {
            let by = self.0.trace.weights(by, row).unwrap();
            product_cell(q, scales, &by.q, &by.scales, by.bias.unwrap_or(0.0)).unwrap()
        };
        (0..outputs).map(cell).collect()
    }

    fn layer_norm(&self, row: &[f32], weight: Tensor, bias: Tensor) -> Row {
        let mut out = vec![0.0; row.len()];
        let epsilon = f32::from_bits(self.0.model.architecture().epsilon);
        layer_norm_row(row, &self.vector(weight), &self.vector(bias), epsilon, &mut out).unwrap();
        out
    }

    fn rms_norm(&self, row: &[f32], weight: Tensor) -> Row {
        let mut out = vec![0.0; row.len()];
        let epsilon = f32::from_bits(self.0.model.architecture().epsilon);
        rms_norm_row(row, &self.vector(weight), epsilon, &mut out).unwrap();
        out
    }

    /// All heads of one query over some positions.
    fn attention(&self, query: &[f32], keys: &[Quantized], values: &[Quantized]) -> Row {
        let architecture = self.0.model.architecture();
        let (width, group) = (
            architecture.head_dim as usize,
            (architecture.heads / architecture.kv_heads) as usize,
        );
        let mut out = vec![0.0; query.len()];
        for (head, (query, out)) in query.chunks(width).zip(out.chunks_mut(width)).enumerate() {
            fn of(row: &Quantized, head: usize, width: usize) -> Head<'_> {
                Head {
                    q: &row.0[head * width..(head + 1) * width],
                    scale: row.1[head],
                }
            }
            let query = heads(query, width);
            let key = |j: usize| of(&keys[j], head / group, width);
            let value = |j: usize| of(&values[j], head / group, width);
            let scale = rsqrt(width as f32);
            attention_row(of(&query, 0, width), key, value, keys.len(), scale, out).unwrap();
        }
        out
    }
}

fn add(a: &[f32], b: &[f32]) -> Row {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn bits(row: &[f32]) -> Vec<u32> {
    row.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn an_encoders_vectors_are_those_of_a_plain_pass() {
    for precision in [Precision::Int8, Precision::Int12] {
        for pooling in [Pooling::Mean, Pooling::First] {
            check_encoder(Architecture {
                precision,
                pooling,
                ..bert()
            });
        }
    }
}

fn check_encoder(architecture: Architecture) {
    // The last has more than one block of positions.
    let long: Vec<u32> = (0..131).map(|i| i * i % 24).collect();
    let items: [&[u32]; 4] = [&[1, 9, 2], &[4], &[0, 23, 5, 5, 7, 11], &long];
    let architecture = Architecture {
        positions: 140,
        ..architecture
    };
    let work = embed(architecture.clone(), &items);
    let plain = Plain(&work);
    for (item, tokens) in (0u32..).zip(items) {
        let first = |(position, token): (u32, &u32)| {
            let sum = add(
                &plain.table(Tensor::Tokens, *token),
                &plain.table(Tensor::Positions, position),
            );
            let sum = add(&sum, &plain.table(Tensor::Types, 0));
            plain.layer_norm(&sum, Tensor::EmbeddingsNorm, Tensor::EmbeddingsNormBias)
        };
        let mut states: Vec<Row> = (0..).zip(tokens).map(first).collect();
        for layer in 0..2 {
            let of = |part| Tensor::Layer(layer, part);
            let qkv = |state: &Row| plain.quantize(state, Some(of(InLayer::AttentionSmoothing)));
            let all = |part| -> Vec<Row> {
                states
                    .iter()
                    .map(|state| plain.product(&qkv(state), of(part)))
                    .collect()
            };
            let queries: Vec<Row> = all(InLayer::Query);
            let quantized = |part| all(part).iter().map(|row| heads(row, 16)).collect();
            let (keys, values): (Vec<_>, Vec<_>) = (quantized(InLayer::Key), quantized(InLayer::Value));
            for (state, query) in states.iter_mut().zip(&queries) {
                let attended = plain.attention(query, &keys, &values);
                let output = plain.product(&plain.quantize(&attended, None), of(InLayer::Output));
                let sum = add(&output, state);
                let sum = plain.layer_norm(&sum, of(InLayer::AttentionNorm), of(InLayer::AttentionNormBias));
                let up = plain.product(&plain.quantize(&sum, None), of(InLayer::Up));
                let up: Row = up.into_iter().map(gelu).collect();
                let quantized = plain.quantize(&up, Some(of(InLayer::DownSmoothing)));
                let down = plain.product(&quantized, of(InLayer::Down));
                *state = plain.layer_norm(&add(&down, &sum), of(InLayer::Norm), of(InLayer::NormBias));
            }
        }
        let mut pooled = vec![0.0; 32];
        let of = architecture.pooling.rows(states.len());
        mean_pool(&states[..of].concat(), &mut pooled).unwrap();
        l2_normalize(&mut pooled).unwrap();
        let leaf = work.layout.leaf_of(Part::Rows {
            sequence: item,
            chunk: 0,
            stride: 1,
        });
        let recorded = work.trace.rows(leaf.unwrap()).unwrap();
        assert_eq!(bits(recorded.numbers(0).unwrap()), bits(&pooled), "{item}");
    }
}

#[test]
fn a_decoders_states_keys_values_and_tokens_are_those_of_a_plain_pass() {
    for precision in [Precision::Int8, Precision::Int12] {
        check_decoder(ModelFamily::Llama, Architecture { precision, ..llama() }, &PROMPT);
        check_decoder(ModelFamily::Qwen3, Architecture { precision, ..qwen3() }, &PROMPT);
    }
}

#[test]
fn a_decoders_tokens_after_a_block_of_positions_are_those_of_a_plain_pass() {
    let tokens: Vec<u32> = (0..127).map(|i| i * i % 24).collect();
    let prompt = Prompt {
        tokens: &tokens,
        ..PROMPT.adding(3)
    };
    let architecture = Architecture {
        positions: 140,
        ..llama()
    };
    check_decoder(ModelFamily::Llama, architecture, &prompt);
}

fn check_decoder(family: ModelFamily, architecture: Architecture, prompt: &Prompt<'_>) {
    let head_dim = architecture.head_dim as usize;
    let head = match architecture.tied {
        true => Tensor::Tokens,
        false => Tensor::Head,
    };
    let model = Arc::new(MemoryModel::arbitrary(family, architecture, 2));
    let tokens = continuation(&model, prompt);
    let output = generation_output(&tokens, false);
    let work = claimed(&model, prompt, output);
    let plain = Plain(&work);
    let fed = prompt.tokens.iter().chain(&tokens[..tokens.len() - 1]);
    let fed: Vec<u32> = fed.copied().collect();
    let table = work.trace.weights(Tensor::Turns, 0).unwrap();
    let turns: Vec<Turns> = table
        .q
        .chunks(8)
        .map(|bytes| {
            Turns(u64::from_le_bytes(std::array::from_fn(|i| {
                bytes[i].to_le_bytes()[0]
            })))
        })
        .collect();
    let (mut keys, mut values) = ([vec![], vec![]], [vec![], vec![]]);
    for (position, token) in (0u32..).zip(&fed) {
        let mut state = plain.table(Tensor::Tokens, *token);
        for layer in 0..2u32 {
            let of = |part| Tensor::Layer(layer, part);
            let normed = plain.rms_norm(&state, of(InLayer::AttentionNorm));
            let qkv = plain.quantize(&normed, None);
            let rotated = |part, norm| {
                let mut row = plain.product(&qkv, of(part));
                for head in row.chunks_mut(head_dim) {
                    if family == ModelFamily::Qwen3 {
                        head.copy_from_slice(&plain.rms_norm(head, of(norm)));
                    }
                    rotate_row(head, &turns, position).unwrap();
                }
                row
            };
            let query = rotated(InLayer::Query, InLayer::QueryNorm);
            let key = rotated(InLayer::Key, InLayer::KeyNorm);
            let (keys, values) = (&mut keys[layer as usize], &mut values[layer as usize]);
            keys.push(heads(&key, head_dim));
            values.push(heads(&plain.product(&qkv, of(InLayer::Value)), head_dim));
            let attended = plain.attention(&query, keys, values);
            let attended = plain.quantize(&attended, Some(of(InLayer::OutputSmoothing)));
            state = add(&state, &plain.product(&attended, of(InLayer::Output)));
            let normed = plain.rms_norm(&state, of(InLayer::Norm));
            let input = plain.quantize(&normed, Some(of(InLayer::InnerSmoothing)));
            let (gate, up) = (
                plain.product(&input, of(InLayer::Gate)),
                plain.product(&input, of(InLayer::Up)),
            );
            let inner: Row = gate
                .into_iter()
                .zip(up)
                .map(|(gate, up)| silu(gate) * up)
                .collect();
            state = add(
                &state,
                &plain.product(&plain.quantize(&inner, None), of(InLayer::Down)),
            );

            let (chunk, row) = (position / 2, position % 2);
            let leaf = work.layout.leaf_of(Part::Rows {
                sequence: 0,
                chunk,
                stride: layer,
            });
            let (q, words) = work.trace.rows(leaf.unwrap()).unwrap().quantized(row).unwrap();
            let (key, value) = (keys.last().unwrap(), values.last().unwrap());
            assert_eq!(q, [&key.0[..], &value.0].concat(), "{position} {layer}");
            let expected = [&state[..], &key.1, &value.1].concat();
            assert_eq!(bits(words), bits(&expected), "{position} {layer}");
        }
        let Some(index) = (position + 1).checked_sub(prompt.tokens.len() as u32) else {
            continue;
        };
        let logits = plain.product(
            &plain.quantize(&plain.rms_norm(&state, Tensor::FinalNorm), None),
            head,
        );
        let how = Sampling {
            temperature_milli: prompt.settings.temperature_milli,
            top_k: prompt.settings.top_k,
            top_p_milli: prompt.settings.top_p_milli,
        };
        let random = sampling_random(&work.layout.facts().input, prompt.settings.seed, index);
        let token = sample(&logits, &how, random, &mut vec![0; logits.len()]).unwrap();
        assert_eq!(token, tokens[index as usize]);
    }
}
