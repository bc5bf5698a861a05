//! The engine's side of `scripts/bench seconds`: streams of tokens with nothing around them.
//!
//! ```text
//! bench_streams HOME MODEL THREADS
//! ```
//!
//! Loads the model, prints `{"ready": true}`, and then a line of JSON for each line that it reads. With
//! `{"prompts": [[ID, ...], ...], "tokens": N}` all prompts are continued side by side, each with a reader of
//! its own; `first` has the milliseconds from asking to each stream's first token.

use std::{
    env,
    error::Error,
    io::{BufRead, Write, stdin, stdout},
    path::Path,
    sync::Arc,
    time::Instant,
};

use serde::Deserialize;
use serde_json::{Value, json};
use surety_engine::{
    Job, open,
    serving::{ClientKey, Handle, Limits, Server},
};
use surety_models::{ModelStore, tokens::TextFiles};
use surety_types::{
    input::{IdBounds, Settings, encode_prompt},
    model::Operation,
};
use tokio::runtime::Runtime;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Streams at once, at most.
const STREAMS_MAX: usize = 64;

#[derive(Deserialize)]
struct Command {
    prompts: Vec<Vec<u32>>,
    /// Most tokens of each answer.
    tokens: u32,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [home, model, threads] = &arguments[..] else {
        return Err("say the home, the model and how many threads; scripts/bench runs this".into());
    };
    let files = ModelStore::new(Path::new(home)).by_name(model)?.read()?;
    let bounds = TextFiles::from(&files).bounds()?;
    let decoder = open(files)?.decoder().ok_or("this model generates nothing")?;
    let limits = Limits {
        waiting_max: STREAMS_MAX,
        client_waiting_max: STREAMS_MAX,
        ..Limits::default()
    };
    let server = Server::start(decoder, limits, threads.parse()?)?;
    let readers = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    say(&json!({"ready": true}))?;
    for line in stdin().lock().lines() {
        let command: Command = serde_json::from_str(&line?)?;
        say(&streams(&server.handle(), &readers, &bounds, command)?)?;
    }
    Ok(())
}

fn say(answer: &Value) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{answer}")?;
    Ok(out.flush()?)
}

fn streams(handle: &Handle, readers: &Runtime, bounds: &IdBounds, command: Command) -> Result<Value> {
    let jobs: Vec<Job> = command
        .prompts
        .iter()
        .map(|prompt| job(prompt, command.tokens, bounds))
        .collect::<Result<_>>()?;
    let handle = Arc::new(handle.clone());
    let begun = Instant::now();
    let reading: Vec<_> = jobs
        .into_iter()
        .map(|job| readers.spawn(read(handle.clone(), job)))
        .collect();
    let (mut first, mut tokens) = (Vec::new(), 0);
    for stream in reading {
        let (milliseconds, count) = readers.block_on(stream)??;
        first.push(milliseconds);
        tokens += count;
    }
    Ok(json!({"tokens": tokens, "seconds": begun.elapsed().as_secs_f64(), "first": first}))
}

/// Milliseconds to the first token, and how many there were.
async fn read(handle: Arc<Handle>, job: Job) -> Result<(f64, usize)> {
    let asked = Instant::now();
    // All of them are asked for by one client: a gateway.
    let mut stream = handle.submit(ClientKey([1; 32]), &job)?;
    let (mut first, mut count) = (None, 0);
    while stream.next().await.is_some() {
        first.get_or_insert_with(|| asked.elapsed());
        count += 1;
    }
    stream.finish().await?;
    let first = first.ok_or("a stream has no token")?;
    Ok((first.as_secs_f64() * 1e3, count))
}

fn job(prompt: &[u32], tokens: u32, bounds: &IdBounds) -> Result<Job> {
    let settings = Settings {
        max_tokens: tokens,
        temperature_milli: 0,
        top_k: 0,
        top_p_milli: 1000,
        seed: 0,
    };
    let input = encode_prompt(prompt, &settings, bounds).map_err(|fault| fault.to_string())?;
    Ok(Job {
        operation: Operation::Generate,
        input,
        units_max: u32::try_from(prompt.len())?.saturating_add(tokens),
    })
}
