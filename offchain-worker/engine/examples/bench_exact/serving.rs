//! Several generations in the steps of a batcher, and one after another.

use std::{ops::ControlFlow, sync::Arc};

use serde::Deserialize;
use serde_json::json;
use surety_engine::{
    Engine, Job,
    exact::ExactLlama,
    serving::{Batcher, ClientKey, Limits},
};
use surety_models::Form;
use surety_types::{
    input::{IdBounds, Settings, encode_prompt},
    model::{ModelManifest, Operation, Pooling, TextForm, Tier},
};

use crate::{
    Result,
    decoder::weights,
    talk::{answer, measured, say, threads},
};

#[derive(Deserialize)]
struct Command {
    /// Generations.
    streams: u8,
    /// Tokens of each prompt.
    prompt: u32,
    /// Tokens that are added to each.
    decode: u32,
    /// Side by side.
    batched: bool,
}

pub fn run(shape: &str, count: usize) -> Result<()> {
    let weights = weights(&serde_json::from_str(shape)?);
    let manifest = ModelManifest {
        name: Default::default(),
        family: weights.family(),
        tier: Tier::Exact,
        operations: vec![Operation::Generate].try_into().unwrap_or_default(),
        weights: Default::default(),
        weights_bytes: 0,
        // Nothing stops it.
        text: TextForm::default(),
        config: Default::default(),
        exact: Some(weights.form(Pooling::Mean)?),
    };
    let bounds = IdBounds {
        vocabulary: u32::try_from(weights.tokens.rows)?,
        positions: u32::try_from(weights.context)?,
    };
    let pool = threads(count)?;
    let decoder = Arc::new(pool.install(|| ExactLlama::new(manifest, weights))?);
    say(&json!({"ready": true}))?;
    answer(|command: Command| {
        let jobs = (0..command.streams).map(|stream| job(&command, stream, &bounds));
        let jobs = jobs.collect::<Result<Vec<_>>>()?;
        pool.install(|| {
            measured(|| {
                if command.batched {
                    side_by_side(&decoder, &jobs)?;
                } else {
                    for job in &jobs {
                        decoder.run(job, &mut |_| ControlFlow::Continue(()))?;
                    }
                }
                Ok(jobs.len() * command.decode as usize)
            })
        })
    })
}

fn side_by_side(decoder: &Arc<ExactLlama>, jobs: &[Job]) -> Result<()> {
    let limits = Limits {
        // Nobody reads before the end.
        ahead_max: 4096,
        client_waiting_max: jobs.len(),
        waiting_max: jobs.len(),
        ..Limits::default()
    };
    let mut batcher = Batcher::new(decoder.clone(), limits);
    let handle = batcher.handle();
    let streams: Vec<_> = jobs
        .iter()
        .map(|job| handle.submit(ClientKey::default(), job))
        .collect::<std::result::Result<_, _>>()?;
    while batcher.step() {}
    drop(streams);
    Ok(())
}

fn job(command: &Command, stream: u8, bounds: &IdBounds) -> Result<Job> {
    let prompt: Vec<u32> = (0..command.prompt)
        .map(|i| (300 + u32::from(stream) + i.wrapping_mul(7919)) % bounds.vocabulary)
        .collect();
    let settings = Settings {
        max_tokens: command.decode,
        temperature_milli: 0,
        top_k: 0,
        top_p_milli: 1000,
        seed: 0,
    };
    let input = encode_prompt(&prompt, &settings, bounds);
    Ok(Job {
        operation: Operation::Generate,
        input: input.map_err(|fault| fault.to_string())?,
        units_max: command.prompt + command.decode,
    })
}
