//! All families by the functions of `surety-exact` alone, one cell after the other.

use std::collections::BTreeMap;

use surety_engine::exact::{Op, Step};
use surety_exact::{
    GROUP, Head, Precision, attention_row, gelu, gelu_tanh, groups, l2_normalize, layer_norm_row, mean_pool,
    product_cell, quantize_heads, quantize_row, rms_norm_row, rotate_row, rsqrt, scale_row, silu,
};
use surety_model_trace::quantized_bytes;
use surety_models::weights::{Activation, BertWeights, Linear, LlamaWeights, Norm, Table};
use surety_types::model::Pooling;

pub type Rows = Vec<Vec<f32>>;

/// What every step gave, each row as its bytes: numbers, or quantized values and then their scales.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps(pub BTreeMap<Step, Vec<Vec<u8>>>);

impl Steps {
    fn real(&mut self, layer: usize, op: Op, rows: &Rows) {
        let rows = rows.iter().map(|row| bytes(row)).collect();
        self.0.insert(step(layer, op), rows);
    }

    /// Products of quantized rows.
    fn linears<const N: usize>(
        &mut self,
        (layer, quant): (usize, Op),
        rows: &Rows,
        smoothing_scale: &Option<Vec<f32>>,
        by: [(Op, &Linear); N],
    ) -> [Rows; N] {
        let precision = by[0].1.q.precision();
        let quantized = rows
            .iter()
            .map(|row| quantized(row, precision, smoothing_scale.as_deref()));
        let quantized: Vec<_> = quantized.collect();
        let as_bytes =
            |(q, scales): &(Vec<i16>, Vec<f32>)| [quantized_bytes(precision, q), bytes(scales)].concat();
        self.0
            .insert(step(layer, quant), quantized.iter().map(as_bytes).collect());
        by.map(|(op, linear)| {
            let cells = |(q, scales): &(Vec<i16>, Vec<f32>)| {
                (0..linear.outputs).map(|o| cell(q, scales, linear, o)).collect()
            };
            let rows = quantized.iter().map(cells).collect();
            self.real(layer, op, &rows);
            rows
        })
    }
}

/// A row's heads, each with a scale.
struct Heads {
    q: Vec<i16>,
    scales: Vec<f32>,
}

impl Heads {
    fn new(row: &[f32], head_dim: usize) -> Self {
        let (mut q, mut scales) = (vec![0; row.len()], vec![0.0; row.len() / head_dim]);
        quantize_heads(row, head_dim, &mut q, &mut scales).unwrap();
        Self { q, scales }
    }

    fn head(&self, head: usize) -> Head<'_> {
        let width = self.q.len() / self.scales.len();
        Head {
            q: &self.q[head * width..(head + 1) * width],
            scale: self.scales[head],
        }
    }
}

fn step(layer: usize, op: Op) -> Step {
    let layer = layer as u32;
    Step { layer, op }
}

pub fn bytes(row: &[f32]) -> Vec<u8> {
    row.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub fn quantized(row: &[f32], precision: Precision, smoothing_scale: Option<&[f32]>) -> (Vec<i16>, Vec<f32>) {
    let mut scaled = row.to_vec();
    if let Some(smoothing_scale) = smoothing_scale {
        scale_row(row, smoothing_scale, &mut scaled).unwrap();
    }
    let (mut q, mut scales) = (vec![0; row.len()], vec![0.0; groups(row.len())]);
    quantize_row(&scaled, precision, &mut q, &mut scales).unwrap();
    (q, scales)
}

pub fn cell(q: &[i16], scales: &[f32], linear: &Linear, o: usize) -> f32 {
    let count = groups(linear.inputs);
    let w = linear.q.row(linear.inputs, o).unwrap();
    let bias = linear.bias.as_ref().map_or(0.0, |bias| bias[o]);
    product_cell(q, scales, &w, &linear.scales[o * count..][..count], bias).unwrap()
}

fn look_up(table: &Table, row: u32) -> Vec<f32> {
    let row = row as usize;
    let count = groups(table.width);
    let q = table.q.row(table.width, row).unwrap();
    let element = |(i, q): (usize, i16)| f32::from(q) * table.scales[row * count + i / GROUP];
    q.into_iter().enumerate().map(element).collect()
}

fn added(a: &Rows, b: &Rows) -> Rows {
    let rows = a.iter().zip(b);
    rows.map(|(a, b)| a.iter().zip(b).map(|(a, b)| a + b).collect())
        .collect()
}

fn layer_normed(rows: &Rows, norm: &Norm) -> Rows {
    let one = |row: &Vec<f32>| {
        let mut out = row.clone();
        let bias = norm.bias.as_ref().unwrap();
        layer_norm_row(row, &norm.weight, bias, norm.epsilon, &mut out).unwrap();
        out
    };
    rows.iter().map(one).collect()
}

fn rms_normed(rows: &Rows, norm: &Norm) -> Rows {
    let one = |row: &Vec<f32>| {
        let mut out = row.clone();
        rms_norm_row(row, &norm.weight, norm.epsilon, &mut out).unwrap();
        out
    };
    rows.iter().map(one).collect()
}

impl Steps {
    fn heads(&mut self, layer: usize, op: Op, rows: &Rows, head_dim: usize) -> Vec<Heads> {
        let heads: Vec<Heads> = rows.iter().map(|row| Heads::new(row, head_dim)).collect();
        let as_bytes = |heads: &Heads| {
            let q: Vec<u8> = heads.q.iter().flat_map(|q| q.to_le_bytes()).collect();
            [q, bytes(&heads.scales)].concat()
        };
        self.0
            .insert(step(layer, op), heads.iter().map(as_bytes).collect());
        heads
    }

    /// `seen(i)` positions for row `i`.
    fn attended(
        &mut self,
        layer: usize,
        (query, key, value): (&Rows, &Rows, &Rows),
        head_dim: usize,
        seen: impl Fn(usize) -> usize,
    ) -> Rows {
        let heads_per_key = query[0].len() / key[0].len();
        let queries = self.heads(layer, Op::QuantQuery, query, head_dim);
        let keys = self.heads(layer, Op::QuantKey, key, head_dim);
        let values = self.heads(layer, Op::QuantValue, value, head_dim);
        let one = |(i, query): (usize, &Heads)| {
            let mut out = vec![0.0; query.q.len()];
            for (head, out) in out.chunks_mut(head_dim).enumerate() {
                let at = head / heads_per_key;
                attention_row(
                    query.head(head),
                    |j| keys[j].head(at),
                    |j| values[j].head(at),
                    seen(i),
                    rsqrt(head_dim as f32),
                    out,
                )
                .unwrap();
            }
            out
        };
        let mixed: Rows = queries.iter().enumerate().map(one).collect();
        self.real(layer, Op::Attention, &mixed);
        mixed
    }
}

/// An encoder's vector for a sequence, and every step on the way.
pub fn bert(weights: &BertWeights, pooling: Pooling, ids: &[u32]) -> (Vec<f32>, Steps) {
    let mut steps = Steps::default();
    let sums = (0u32..).zip(ids).map(|(position, id)| {
        let parts = [
            look_up(&weights.word_embeddings, *id),
            look_up(&weights.position_embeddings, position),
            look_up(&weights.token_type_embeddings, 0),
        ];
        (0..parts[0].len())
            .map(|i| (parts[0][i] + parts[1][i]) + parts[2][i])
            .collect()
    });
    let mut state = layer_normed(&sums.collect(), &weights.norm);
    steps.real(0, Op::Embed, &state);
    let count = ids.len();
    for (index, layer) in weights.layers.iter().enumerate() {
        let three = [
            (Op::Query, &layer.query),
            (Op::Key, &layer.key),
            (Op::Value, &layer.value),
        ];
        let [query, key, value] =
            steps.linears((index, Op::QuantQkv), &state, &layer.attention_smoothing, three);
        let head_dim = query[0].len() / weights.heads;
        let mixed = steps.attended(index, (&query, &key, &value), head_dim, |_| count);
        let output = [(Op::Output, &layer.output)];
        let [output] = steps.linears((index, Op::QuantOutput), &mixed, &layer.output_smoothing, output);
        state = layer_normed(&added(&output, &state), &layer.attention_norm);
        steps.real(index, Op::AttentionSum, &state);
        let [mut inner] = steps.linears(
            (index, Op::QuantMlp),
            &state,
            &layer.up_smoothing,
            [(Op::Up, &layer.up)],
        );
        for value in inner.iter_mut().flatten() {
            *value = match weights.activation {
                Activation::Gelu => gelu(*value),
                Activation::GeluTanh => gelu_tanh(*value),
            };
        }
        steps.real(index, Op::Activation, &inner);
        let down = [(Op::Down, &layer.down)];
        let [down] = steps.linears((index, Op::QuantDown), &inner, &layer.down_smoothing, down);
        state = layer_normed(&added(&down, &state), &layer.norm);
        steps.real(index, Op::Sum, &state);
    }
    let mut pooled = vec![0.0; state[0].len()];
    let of = match pooling {
        Pooling::Mean => &state[..],
        Pooling::First => &state[..1],
    };
    mean_pool(&of.concat(), &mut pooled).unwrap();
    l2_normalize(&mut pooled).unwrap();
    steps.real(weights.layers.len() - 1, Op::Pool, &vec![pooled.clone()]);
    (pooled, steps)
}

/// Every head of every row.
fn heads_normed(rows: &Rows, norm: &Norm) -> Rows {
    let one = |row: &Vec<f32>| {
        let heads = row.chunks(norm.weight.len()).map(<[f32]>::to_vec).collect();
        rms_normed(&heads, norm).concat()
    };
    rows.iter().map(one).collect()
}

fn rotated(rows: &Rows, weights: &LlamaWeights) -> Rows {
    let one = |(position, row): (u32, &Vec<f32>)| {
        let mut row = row.clone();
        for head in row.chunks_mut(weights.head_dim) {
            rotate_row(head, &weights.turns, position).unwrap();
        }
        row
    };
    (0u32..).zip(rows).map(one).collect()
}

/// A decoder's logits at every position, and every step on the way.
pub fn llama(weights: &LlamaWeights, tokens: &[u32]) -> (Rows, Steps) {
    let mut steps = Steps::default();
    let mut state: Rows = tokens
        .iter()
        .map(|token| look_up(&weights.tokens, *token))
        .collect();
    steps.real(0, Op::Embed, &state);
    for (index, layer) in weights.layers.iter().enumerate() {
        let normed = rms_normed(&state, &layer.attention_norm);
        steps.real(index, Op::AttentionInput, &normed);
        let three = [
            (Op::Query, &layer.query),
            (Op::Key, &layer.key),
            (Op::Value, &layer.value),
        ];
        let [mut query, mut key, value] =
            steps.linears((index, Op::QuantQkv), &normed, &layer.attention_smoothing, three);
        if let Some(norms) = &layer.head_norms {
            (query, key) = (heads_normed(&query, &norms.query), heads_normed(&key, &norms.key));
            steps.real(index, Op::NormQuery, &query);
            steps.real(index, Op::NormKey, &key);
        }
        let (query, key) = (rotated(&query, weights), rotated(&key, weights));
        steps.real(index, Op::RotateQuery, &query);
        steps.real(index, Op::RotateKey, &key);
        let mixed = steps.attended(index, (&query, &key, &value), weights.head_dim, |i| i + 1);
        let output = [(Op::Output, &layer.output)];
        let [output] = steps.linears((index, Op::QuantOutput), &mixed, &layer.output_smoothing, output);
        state = added(&state, &output);
        steps.real(index, Op::AttentionSum, &state);
        let normed = rms_normed(&state, &layer.mlp_norm);
        steps.real(index, Op::MlpInput, &normed);
        let two = [(Op::Gate, &layer.gate), (Op::Up, &layer.up)];
        let [mut gate, up] = steps.linears((index, Op::QuantMlp), &normed, &layer.mlp_smoothing, two);
        for (gate, up) in gate.iter_mut().flatten().zip(up.iter().flatten()) {
            *gate = silu(*gate) * up;
        }
        steps.real(index, Op::Activation, &gate);
        let down = [(Op::Down, &layer.down)];
        let [down] = steps.linears((index, Op::QuantDown), &gate, &layer.down_smoothing, down);
        state = added(&state, &down);
        steps.real(index, Op::Sum, &state);
    }
    let table = Linear {
        inputs: weights.tokens.width,
        outputs: weights.tokens.rows,
        q: weights.tokens.q.clone(),
        scales: weights.tokens.scales.clone(),
        bias: None,
    };
    let head = weights.head.as_ref().unwrap_or(&table);
    let logits = rms_normed(&state, &weights.norm).into_iter().map(|row| {
        let (q, scales) = quantized(&row, head.q.precision(), None);
        (0..head.outputs).map(|o| cell(&q, &scales, head, o)).collect()
    });
    (logits.collect(), steps)
}
