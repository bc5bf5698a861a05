//! Models whose weights are made up from a seed, the same ones every time, and jobs for them. Tests on
//! devices have them, too.

use std::f64::consts::TAU;

use serde::Deserialize;
use surety_engine::Job;
use surety_exact::{Precision, SplitMix64, Turns, groups};
use surety_models::{
    Form, ModelError,
    weights::{Activation, BertLayer, BertWeights, Linear, LlamaLayer, LlamaWeights, Norm, Quanta, Table},
};
use surety_types::{
    input::{IdBounds, InputFault, Settings, encode_items, encode_prompt},
    model::{ModelFamily, ModelManifest, Operation, Pooling, TextForm, Tier},
};

const EPSILON: f32 = 1e-5;
const THETA: f64 = 10_000.0;

/// A decoder's dimensions.
#[derive(Clone, Debug, Deserialize)]
pub struct DecoderShape {
    pub hidden: usize,
    pub inner: usize,
    pub layers: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub vocabulary: usize,
    pub context: usize,
    /// Whether the logits have a matrix of their own.
    #[serde(default)]
    pub untied: bool,
}

/// An encoder's dimensions.
#[derive(Clone, Debug, Deserialize)]
pub struct EncoderShape {
    pub hidden: usize,
    pub inner: usize,
    pub layers: usize,
    pub heads: usize,
    pub vocabulary: usize,
    pub positions: usize,
}

/// An int8 decoder.
pub fn decoder(shape: &DecoderShape) -> LlamaWeights {
    Random::new(Precision::Int8).decoder(shape)
}

/// An encoder.
pub fn encoder(shape: &EncoderShape, precision: Precision) -> BertWeights {
    Random::new(precision).encoder(shape)
}

/// A matrix of int8.
pub fn matrix(inputs: usize, outputs: usize) -> Linear {
    Random::new(Precision::Int8).linear(inputs, outputs, false)
}

/// What says such weights. Nothing ends a generation before its length.
///
/// # Errors
/// [`ModelError`] when they have no exact form.
pub fn manifest(weights: &impl Form) -> Result<ModelManifest, ModelError> {
    let family = weights.family();
    let operation = match family {
        ModelFamily::Bert => Operation::Embed,
        ModelFamily::Llama | ModelFamily::Qwen3 => Operation::Generate,
    };
    Ok(ModelManifest {
        name: Default::default(),
        family,
        tier: Tier::Exact,
        operations: vec![operation].try_into().unwrap_or_default(),
        weights: Default::default(),
        weights_bytes: 0,
        text: TextForm::default(),
        config: Default::default(),
        exact: Some(weights.form(Pooling::Mean)?),
    })
}

/// What ids of tokens may be.
pub fn bounds(vocabulary: usize, positions: usize) -> IdBounds {
    // A made-up model has far fewer of both.
    let count = |value| u32::try_from(value).unwrap_or(u32::MAX);
    IdBounds {
        vocabulary: count(vocabulary),
        positions: count(positions),
    }
}

/// So many tokens, few of them alike, and others for another seed.
pub fn tokens(seed: u64, count: usize, bounds: &IdBounds) -> Vec<u32> {
    let mut random = SplitMix64::new(seed.wrapping_mul(1 << 32));
    let token = |_| u32::try_from(random.below(bounds.vocabulary.into())).unwrap_or_default();
    (0..count).map(token).collect()
}

/// So many items of up to `longest` tokens: the first two are as short and as long as can be.
pub fn items(count: usize, longest: usize, bounds: &IdBounds) -> Vec<Vec<u32>> {
    let mut random = SplitMix64::new(7);
    let lengths = [1, longest].into_iter();
    let others = std::iter::repeat_with(|| 1 + random.below(longest as u64) as usize);
    let lengths = lengths.chain(others).take(count);
    (0..)
        .zip(lengths)
        .map(|(seed, length)| tokens(seed, length, bounds))
        .collect()
}

/// A job that embeds items.
///
/// # Errors
/// [`InputFault`] when no model takes them.
pub fn embedding(items: &[Vec<u32>], bounds: &IdBounds) -> Result<Job, InputFault> {
    Ok(Job {
        operation: Operation::Embed,
        input: encode_items(items, bounds)?,
        units_max: u32::try_from(items.len()).unwrap_or(u32::MAX),
    })
}

/// A job that adds as many tokens to a prompt as its settings say.
///
/// # Errors
/// [`InputFault`] when no model takes it.
pub fn generation(prompt: &[u32], settings: &Settings, bounds: &IdBounds) -> Result<Job, InputFault> {
    let length = u32::try_from(prompt.len()).unwrap_or(u32::MAX);
    Ok(Job {
        operation: Operation::Generate,
        input: encode_prompt(prompt, settings, bounds)?,
        units_max: length.saturating_add(settings.max_tokens),
    })
}

/// Numbers without meaning.
struct Random {
    numbers: SplitMix64,
    precision: Precision,
}

impl Random {
    fn new(precision: Precision) -> Self {
        let numbers = SplitMix64::new(1);
        Self { numbers, precision }
    }

    fn q(&mut self, count: usize) -> Quanta {
        match self.precision {
            Precision::Int8 => {
                let mut values = Vec::with_capacity(count + 8);
                while values.len() < count {
                    // -128 is no weight.
                    let bytes = self.numbers.next().to_le_bytes();
                    values.extend(bytes.map(|byte| byte.cast_signed().max(-127)));
                }
                values.truncate(count);
                Quanta::Int8(values)
            }
            Precision::Int12 => {
                let ends = self.precision.max() + 1;
                let values = (0..count).map(|_| self.numbers.next() as i16 % ends);
                Quanta::Int12(values.collect())
            }
        }
    }

    fn reals(&mut self, count: usize, middle: f32, reach: f32) -> Vec<f32> {
        (0..count).map(|_| middle + reach * self.numbers.real()).collect()
    }

    /// No two scales are alike: whose scale it was is seen in the result.
    fn scales(&mut self, count: usize, of_int8: f32) -> Vec<f32> {
        let scale = of_int8 * 127.0 / f32::from(self.precision.max());
        self.reals(count, scale, scale * 0.3)
    }

    /// Of a size that keeps the states' size.
    fn linear(&mut self, inputs: usize, outputs: usize, has_bias: bool) -> Linear {
        Linear {
            inputs,
            outputs,
            q: self.q(inputs * outputs),
            scales: self.scales(outputs * groups(inputs), 1.0 / (73.0 * (inputs as f32).sqrt())),
            bias: has_bias.then(|| self.reals(outputs, 0.0, 0.2)),
        }
    }

    fn table(&mut self, rows: usize, width: usize) -> Table {
        Table {
            rows,
            width,
            q: self.q(rows * width),
            scales: self.scales(rows * groups(width), 0.01),
        }
    }

    fn norm(&mut self, width: usize, has_bias: bool) -> Norm {
        Norm {
            weight: self.reals(width, 1.0, 0.3),
            bias: has_bias.then(|| self.reals(width, 0.0, 0.3)),
            epsilon: EPSILON,
        }
    }

    fn encoder(&mut self, shape: &EncoderShape) -> BertWeights {
        let (width, inner) = (shape.hidden, shape.inner);
        BertWeights {
            heads: shape.heads,
            activation: Activation::Gelu,
            word_embeddings: self.table(shape.vocabulary, width),
            position_embeddings: self.table(shape.positions, width),
            token_type_embeddings: self.table(2, width),
            norm: self.norm(width, true),
            layers: (0..shape.layers)
                .map(|_| BertLayer {
                    attention_smoothing: Some(self.reals(width, 1.0, 0.5)),
                    query: self.linear(width, width, true),
                    key: self.linear(width, width, true),
                    value: self.linear(width, width, true),
                    output_smoothing: None,
                    output: self.linear(width, width, true),
                    attention_norm: self.norm(width, true),
                    up_smoothing: None,
                    up: self.linear(width, inner, true),
                    down_smoothing: Some(self.reals(inner, 1.0, 0.5)),
                    down: self.linear(inner, width, true),
                    norm: self.norm(width, true),
                })
                .collect(),
        }
    }

    fn layer(&mut self, shape: &DecoderShape) -> LlamaLayer {
        let (hidden, inner) = (shape.hidden, shape.inner);
        let kv = hidden / shape.heads * shape.kv_heads;
        LlamaLayer {
            attention_norm: self.norm(hidden, false),
            attention_smoothing: None,
            query: self.linear(hidden, hidden, false),
            key: self.linear(hidden, kv, false),
            value: self.linear(hidden, kv, false),
            head_norms: None,
            output_smoothing: None,
            output: self.linear(hidden, hidden, false),
            mlp_norm: self.norm(hidden, false),
            mlp_smoothing: None,
            gate: self.linear(hidden, inner, false),
            up: self.linear(hidden, inner, false),
            down_smoothing: None,
            down: self.linear(inner, hidden, false),
        }
    }

    fn decoder(&mut self, shape: &DecoderShape) -> LlamaWeights {
        let head_dim = shape.hidden / shape.heads;
        let table = self.linear(shape.hidden, shape.vocabulary, false);
        LlamaWeights {
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            head_dim,
            context: shape.context,
            turns: (0..head_dim / 2).map(|i| turns(i, head_dim)).collect(),
            tokens: Table {
                rows: shape.vocabulary,
                width: shape.hidden,
                q: table.q,
                scales: table.scales,
            },
            layers: (0..shape.layers).map(|_| self.layer(shape)).collect(),
            norm: self.norm(shape.hidden, false),
            head: shape
                .untied
                .then(|| self.linear(shape.hidden, shape.vocabulary, false)),
        }
    }
}

/// Turns per position of one pair of channels, as a fraction of 2^64.
fn turns(pair: usize, head_dim: usize) -> Turns {
    let angle = THETA.powf(-2.0 * pair as f64 / head_dim as f64);
    Turns((angle / TAU * 2f64.powi(64)) as u64)
}
