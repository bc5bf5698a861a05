//! Prefill and decoding of a decoder whose weights are made up: speed does not depend on their values.

use std::{f64::consts::TAU, time::Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use surety_engine::exact::{LlamaModel, Sequence, TopLevel, kernels::Turns};
use surety_exact::{SplitMix64, greedy, groups};
use surety_models::weights::{Linear, LlamaLayer, LlamaWeights, Norm, Quanta, Table};

use crate::{
    Result,
    clock::{Blind, Clock, Look, Looking},
    talk::{answer, measured, say, threads},
};

const EPSILON: f32 = 1e-5;
const THETA: f64 = 10_000.0;

#[derive(Deserialize)]
pub struct Shape {
    hidden: usize,
    inner: usize,
    layers: usize,
    heads: usize,
    kv_heads: usize,
    vocabulary: usize,
    context: usize,
}

#[derive(Deserialize)]
struct Command {
    /// Tokens of the prompt.
    prompt: usize,
    /// Measure these, one by one after the prompt, instead of it.
    decode: Option<usize>,
    look: Looking,
}

pub fn run(shape: &str, count: usize) -> Result<()> {
    let weights = weights(&serde_json::from_str(shape)?);
    let begun = Instant::now();
    let pool = threads(count)?;
    let model = pool.install(|| LlamaModel::new(weights)).map_err(fault)?;
    say(&json!({"ready": true, "load_seconds": begun.elapsed().as_secs_f64()}))?;
    answer(|command: Command| {
        let mut clock = Clock::start();
        let mut trace = TopLevel::new(model.trace_shape());
        let answer = pool.install(|| match command.look {
            Looking::Blind => measure(&model, &command, &mut Blind),
            Looking::Traced => measure(&model, &command, &mut trace),
            Looking::Timed => measure(&model, &command, &mut clock),
        });
        let mut answer = answer?;
        if matches!(command.look, Looking::Timed) {
            answer["shares"] = clock.shares();
        }
        Ok(answer)
    })
}

/// Made-up weights of a shape.
pub fn weights(shape: &Shape) -> LlamaWeights {
    Random(SplitMix64::new(1)).weights(shape)
}

pub fn fault(fault: surety_exact::ArithmeticError) -> String {
    format!("the arithmetic refused: {fault:?}")
}

fn measure(model: &LlamaModel, command: &Command, look: &mut impl Look) -> Result<Value> {
    let decode = command.decode.unwrap_or_default();
    let mut sequence = Sequence::new(model, command.prompt + decode + 1);
    let prompt: Vec<u32> = (0..command.prompt as u32)
        .map(|i| 300 + i.wrapping_mul(7919) % 7000)
        .collect();
    let prefill = measured(|| {
        for chunk in prompt.chunks(model.chunk()) {
            model.forward(&mut sequence, chunk, look).map_err(fault)?;
        }
        Ok(prompt.len())
    })?;
    if command.decode.is_none() {
        return Ok(prefill);
    }
    // What came before is not part of it.
    look.begin();
    measured(|| {
        let mut token = 300;
        for _ in 0..decode {
            model.forward(&mut sequence, &[token], look).map_err(fault)?;
            token = greedy(&last_logits(model, &sequence)?).map_err(fault)?;
            look.chosen();
        }
        Ok(decode)
    })
}

fn last_logits(model: &LlamaModel, sequence: &Sequence) -> Result<Vec<f32>> {
    let states = sequence.states();
    let last = states.get(states.len() - model.width()..).ok_or("no states")?;
    let mut logits = Vec::new();
    model.logits(last, &mut logits).map_err(fault)?;
    Ok(logits)
}

/// Numbers without meaning, the same ones every time.
struct Random(SplitMix64);

impl Random {
    fn int8(&mut self, count: usize) -> Quanta {
        let mut values = Vec::with_capacity(count + 8);
        while values.len() < count {
            // -128 is no weight.
            values.extend(self.0.next().to_le_bytes().map(|byte| (byte as i8).max(-127)));
        }
        values.truncate(count);
        Quanta::Int8(values)
    }

    /// Of a size that keeps the states' size.
    fn linear(&mut self, inputs: usize, outputs: usize) -> Linear {
        Linear {
            inputs,
            outputs,
            q: self.int8(inputs * outputs),
            scales: vec![1.0 / (73.0 * (inputs as f32).sqrt()); outputs * groups(inputs)],
            bias: None,
        }
    }

    fn layer(&mut self, shape: &Shape) -> LlamaLayer {
        let (hidden, inner) = (shape.hidden, shape.inner);
        let kv = hidden / shape.heads * shape.kv_heads;
        LlamaLayer {
            attention_norm: norm(hidden),
            attention_smoothing: None,
            query: self.linear(hidden, hidden),
            key: self.linear(hidden, kv),
            value: self.linear(hidden, kv),
            head_norms: None,
            output_smoothing: None,
            output: self.linear(hidden, hidden),
            mlp_norm: norm(hidden),
            mlp_smoothing: None,
            gate: self.linear(hidden, inner),
            up: self.linear(hidden, inner),
            down_smoothing: None,
            down: self.linear(inner, hidden),
        }
    }

    fn weights(&mut self, shape: &Shape) -> LlamaWeights {
        let head_dim = shape.hidden / shape.heads;
        let table = self.linear(shape.hidden, shape.vocabulary);
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
            norm: norm(shape.hidden),
            head: None,
        }
    }
}

/// Turns per position of one pair of channels, as a fraction of 2^64.
fn turns(pair: usize, head_dim: usize) -> Turns {
    let angle = THETA.powf(-2.0 * pair as f64 / head_dim as f64);
    Turns((angle / TAU * 2f64.powi(64)) as u64)
}

fn norm(width: usize) -> Norm {
    Norm {
        weight: vec![1.0; width],
        bias: None,
        epsilon: EPSILON,
    }
}
