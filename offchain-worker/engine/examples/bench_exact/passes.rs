//! Prefill and decoding on a device, of one sequence or of many side by side, with the trace and without.

use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value, json};
use surety_engine::exact::{DecoderPasses, ExactLlama, Probe};
use surety_exact::groups;
use surety_models::weights::LlamaWeights;
use surety_types::input::IdBounds;

use crate::{
    Result,
    clock::{Blind, Looking},
    device, made_up,
    talk::{answer, measured, say, threads},
};

#[derive(Deserialize)]
struct Command {
    /// Sequences.
    #[serde(default = "one")]
    streams: usize,
    /// Tokens of each prompt.
    prompt: usize,
    /// Measure these, one by one behind each prompt, instead of it.
    decode: Option<usize>,
    look: Looking,
}

fn one() -> usize {
    1
}

pub fn run(shape: &str, count: usize, on: &str) -> Result<()> {
    let begun = Instant::now();
    let weights = made_up::decoder(&serde_json::from_str(shape)?);
    let manifest = made_up::manifest(&weights)?;
    let bounds = made_up::bounds(weights.tokens.rows, weights.context);
    let (parameters, bytes) = read_in_a_pass(&weights);
    let pool = threads(count)?;
    let devices = device::open(on)?;
    let decoder = pool.install(|| ExactLlama::new(manifest, weights)?.on(&devices))?;
    say(&json!({
        "ready": true,
        "load_seconds": begun.elapsed().as_secs_f64(),
        "parameters": parameters,
        "bytes_in_a_pass": bytes,
    }))?;
    answer(|command: Command| pool.install(|| measure(&decoder, &command, &bounds)))
}

fn measure(decoder: &ExactLlama, command: &Command, bounds: &IdBounds) -> Result<Value> {
    let decode = command.decode.unwrap_or_default();
    let mut passes = decoder.passes(command.streams, command.prompt + decode + 1);
    let prompts: Vec<_> = (0..command.streams)
        .map(|stream| made_up::tokens(stream as u64, command.prompt, bounds))
        .collect();
    let (mut trace, mut blind) = (passes.recorder(), Blind);
    let probe: &mut dyn Probe = match command.look {
        Looking::Blind => &mut blind,
        Looking::Traced => &mut trace,
        Looking::Timed => return Err("steps are timed on the processor alone".into()),
    };
    let mut tokens = Vec::new();
    let prefill = measured(|| {
        tokens = read_prompts(&mut passes, &prompts, probe)?;
        Ok(prompts.len() * command.prompt)
    })?;
    if command.decode.is_none() {
        return Ok(prefill);
    }
    measured(|| {
        for _ in 0..decode {
            let next: Vec<Vec<u32>> = tokens.iter().map(|token| vec![*token]).collect();
            tokens = passes.choose(0, &next, probe)?;
        }
        Ok(prompts.len() * decode)
    })
}

/// The first token behind each prompt. As many prompts as fill a pass go through it together, and a longer
/// one goes through several.
fn read_prompts(
    passes: &mut DecoderPasses<'_>,
    prompts: &[Vec<u32>],
    probe: &mut dyn Probe,
) -> Result<Vec<u32>> {
    let longest = prompts.first().map_or(1, Vec::len).max(1);
    let (together, rows) = ((passes.rows() / longest).max(1), passes.rows());
    let mut first = Vec::new();
    for prompts in prompts.chunks(together) {
        let begin = first.len();
        for start in (0..longest).step_by(rows) {
            let part = |prompt: &Vec<u32>| prompt.iter().skip(start).take(rows).copied().collect();
            let parts: Vec<Vec<u32>> = prompts.iter().map(part).collect();
            if start + rows < longest {
                passes.add(begin, &parts, probe)?;
            } else {
                first.extend(passes.choose(begin, &parts, probe)?);
            }
        }
    }
    Ok(first)
}

/// How many parameters there are, and bytes of those that each pass reads whole: all but the tokens' vectors,
/// where the logits have a matrix of their own.
fn read_in_a_pass(weights: &LlamaWeights) -> (usize, usize) {
    let bytes = |inputs: usize, outputs: usize, of_each: usize| {
        outputs * (inputs * of_each + groups(inputs) * size_of::<f32>())
    };
    let (mut parameters, mut read) = (weights.tokens.q.len(), 0);
    for layer in &weights.layers {
        for linear in [
            &layer.query,
            &layer.key,
            &layer.value,
            &layer.output,
            &layer.gate,
            &layer.up,
            &layer.down,
        ] {
            parameters += linear.q.len();
            read += bytes(linear.inputs, linear.outputs, linear.q.precision().bytes());
        }
    }
    parameters += weights.head.as_ref().map_or(0, |head| head.q.len());
    let tokens = &weights.tokens;
    read += bytes(tokens.width, tokens.rows, tokens.q.precision().bytes());
    (parameters, read)
}
