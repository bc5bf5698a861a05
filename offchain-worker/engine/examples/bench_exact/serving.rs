//! Several generations in the steps of a batcher, and one after another.

use std::{fs, ops::ControlFlow, sync::Arc, time::Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use surety_engine::{
    Engine, Job,
    exact::ExactLlama,
    serving::{Batcher, ClientKey, Handle, Limits, TokenStream},
};
use surety_types::input::{IdBounds, Settings};

use crate::{
    Result, device, made_up,
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
    /// Tokens that go through the model in a step, of all generations together.
    step_rows: Option<usize>,
    /// Not how fast they are, but what memory they have while all are under way.
    #[serde(default)]
    held: bool,
}

pub fn run(shape: &str, count: usize, on: &str) -> Result<()> {
    let begun = Instant::now();
    let weights = made_up::decoder(&serde_json::from_str(shape)?);
    let manifest = made_up::manifest(&weights)?;
    let bounds = made_up::bounds(weights.tokens.rows, weights.context);
    let pool = threads(count)?;
    let devices = device::open(on)?;
    let decoder = pool.install(|| ExactLlama::new(manifest, weights)?.on(&devices))?;
    let decoder = Arc::new(decoder);
    say(&json!({"ready": true, "load_seconds": begun.elapsed().as_secs_f64()}))?;
    answer(|command: Command| {
        let jobs = (0..command.streams).map(|stream| job(&command, stream, &bounds));
        let jobs = jobs.collect::<Result<Vec<_>>>()?;
        if command.held {
            return pool.install(|| held(&decoder, &jobs, command.decode as usize));
        }
        pool.install(|| {
            measured(|| {
                if command.batched {
                    side_by_side(&decoder, &jobs, command.step_rows)?;
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

fn side_by_side(decoder: &Arc<ExactLlama>, jobs: &[Job], step_rows: Option<usize>) -> Result<()> {
    let defaults = Limits::default();
    let limits = Limits {
        step_rows: step_rows.unwrap_or(defaults.step_rows),
        // Nobody reads before the end.
        ahead_max: 4096,
        client_waiting_max: jobs.len(),
        waiting_max: jobs.len(),
        ..defaults
    };
    let mut batcher = Batcher::new(decoder.clone(), limits);
    let streams = submitted(&batcher.handle(), jobs)?;
    while batcher.step() {}
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    for stream in streams {
        runtime.block_on(stream.finish())?;
    }
    Ok(())
}

fn submitted(handle: &Handle, jobs: &[Job]) -> Result<Vec<TokenStream>> {
    let submit = |job| Ok(handle.submit(ClientKey::default(), job)?);
    jobs.iter().map(submit).collect()
}

/// Bytes that this process has in memory while each generation waits for its reader, with all but its last
/// token, and what 1,000 positions of one are counted for.
fn held(decoder: &Arc<ExactLlama>, jobs: &[Job], tokens: usize) -> Result<Value> {
    let limits = Limits {
        ahead_max: tokens.saturating_sub(1),
        client_waiting_max: jobs.len(),
        waiting_max: jobs.len(),
        ..Limits::default()
    };
    let mut batcher = Batcher::new(decoder.clone(), limits);
    let streams = submitted(&batcher.handle(), jobs)?;
    while batcher.step() {}
    let resident = resident_bytes()?;
    let reserved = batcher.handle().load().bytes;
    drop(streams);
    // Of whole blocks of positions.
    let bytes = decoder.bytes_of(128_000);
    Ok(json!({
        "resident_bytes": resident,
        "reserved_bytes": reserved,
        "keys_values_bytes_per_1000": bytes.keys_values / 128,
        "trace_bytes_per_1000": bytes.trace / 128,
    }))
}

fn resident_bytes() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    Ok(kib.ok_or("the system does not say")?.parse::<u64>()? * 1024)
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
    Ok(made_up::generation(&prompt, &settings, bounds)?)
}
