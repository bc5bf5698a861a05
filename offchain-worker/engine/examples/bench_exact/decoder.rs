//! Prefill and decoding of a decoder whose weights are made up: speed does not depend on their values.

use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value, json};
use surety_engine::exact::{LlamaModel, Sequence, TopLevel};
use surety_exact::greedy;

use crate::{
    Result,
    clock::{Blind, Clock, Look, Looking},
    made_up,
    talk::{answer, measured, say, threads},
};

#[derive(Deserialize)]
struct Command {
    /// Tokens of the prompt.
    prompt: usize,
    /// Measure these, one by one after the prompt, instead of it.
    decode: Option<usize>,
    look: Looking,
}

pub fn run(shape: &str, count: usize) -> Result<()> {
    let weights = made_up::decoder(&serde_json::from_str(shape)?);
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
