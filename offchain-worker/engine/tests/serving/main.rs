//! Continuous batching: each generation is as if it were alone, memory and rows are shared out fairly, and
//! readers set the pace of their own.

#![allow(clippy::unwrap_used)]

mod alone;
#[path = "../common/mod.rs"]
mod common;
mod fairness;
mod prefixes;
mod readers;
mod server;

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use common::{
    generating::{engine_stopped_by, quiet},
    synthetic::{self, Dice, END},
};
use surety_engine::{
    Engine, EngineError, Job, Outcome,
    exact::ExactLlama,
    serving::{Batcher, ClientKey, End, Ended, Limits, TokenStream},
};
use surety_models::weights::LlamaWeights;
use surety_types::{
    input::{IdBounds, Settings, encode_prompt},
    model::Operation,
};

/// Enough for everything, but no prefixes are kept.
const LIMITS: Limits = Limits {
    bytes_max: 1 << 30,
    client_bytes_max: 1 << 30,
    prefix_bytes_max: 0,
    step_rows: 16,
    ahead_max: 4,
    waiting_max: 200,
    client_waiting_max: 100,
    looked_at: 1,
    new_looked_at: 4,
};

/// A decoder that some frequent tokens stop.
fn decoder(weights: LlamaWeights) -> Arc<ExactLlama> {
    Arc::new(engine_stopped_by(weights, &[END, 7, 70, 170]))
}

/// A decoder that nothing stops.
fn endless() -> Arc<ExactLlama> {
    Arc::new(engine_stopped_by(synthetic::llama(30, true), &[]))
}

fn client(number: u8) -> ClientKey {
    ClientKey([number; 32])
}

/// Always the same tokens of a seed.
fn ids(seed: u64, count: usize) -> Vec<u32> {
    let dice = &mut Dice::new(seed);
    (0..count).map(|_| dice.below(256) as u32).collect()
}

fn job(prompt: &[u32], settings: Settings) -> Job {
    let bounds = IdBounds {
        vocabulary: 260,
        positions: 256,
    };
    Job {
        operation: Operation::Generate,
        input: encode_prompt(prompt, &settings, &bounds).unwrap(),
        units_max: 1000,
    }
}

/// Drawn with seed 7.
fn drawn(max_tokens: u32) -> Settings {
    Settings {
        max_tokens,
        temperature_milli: 800,
        top_k: 40,
        top_p_milli: 950,
        seed: 7,
    }
}

/// What a job comes to by itself.
fn alone(decoder: &ExactLlama, job: &Job) -> Outcome {
    decoder.run(job, &mut quiet).unwrap()
}

/// The same of so many tokens; nothing of none.
fn cut(decoder: &ExactLlama, job: &Job, tokens: usize) -> Option<Outcome> {
    let job = Job {
        units_max: (job.input.len() / 4 - 6 + tokens) as u32,
        ..job.clone()
    };
    (tokens > 0).then(|| alone(decoder, &job))
}

fn poll<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// The tokens that are there, no more than so many.
fn take(stream: &mut TokenStream, most: usize) -> Vec<u32> {
    let mut tokens = Vec::new();
    while tokens.len() < most
        && let Poll::Ready(Some(token)) = poll(pin!(stream.next()))
    {
        tokens.push(token);
    }
    tokens
}

/// Runs steps until it is there.
fn run_until<T>(batcher: &mut Batcher, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    for _ in 0..10_000 {
        if let Poll::Ready(found) = poll(future.as_mut()) {
            return found;
        }
        batcher.step();
    }
    panic!("it does not end");
}

fn finish(batcher: &mut Batcher, stream: TokenStream) -> Ended {
    run_until(batcher, stream.finish()).unwrap()
}
