//! A tiny model to be fetched into a store of its own.

use std::{fs, path::Path, time::Duration};

use surety_exact::ArithmeticError;
use surety_model_fetch::{
    FetchError, FetchEvent, FetchOptions, HubModel, Source, Token, fetch, fetch_from_hub,
};
use surety_models::{
    KnownModel, ModelFiles, ModelStore, StoredModel,
    convert::calibration::{Calibrator, Inputs, Sequences},
    known::Wheel,
    weights::{BertWeights, LlamaWeights},
};
use tempfile::TempDir;

use super::{
    Tiny,
    exact::Published,
    server::{MockHub, Running},
};

/// The tiny model is converted to int12, for which nothing is calibrated.
pub struct Unasked;

impl Calibrator for Unasked {
    fn bert(&self, _: &BertWeights, _: &Sequences) -> Result<Inputs, ArithmeticError> {
        unreachable!("int12 needs no calibration")
    }

    fn llama(&self, _: &LlamaWeights, _: &Sequences) -> Result<Inputs, ArithmeticError> {
        unreachable!("int12 needs no calibration")
    }
}

pub struct Fixture {
    pub home: TempDir,
    pub files: ModelFiles,
    pub model: KnownModel,
    pub events: Vec<FetchEvent>,
}

impl Fixture {
    pub fn new() -> Self {
        let files = Tiny::new().files();
        let model = KnownModel {
            manifest: files.manifest.clone(),
            tokenizer_bytes: files.tokenizer.len() as u64,
            converted_from: None,
            config_bytes: files.config.len() as u64,
            template_bytes: 0,
            hub: ("owner/tiny", "main"),
            wheel: Wheel {
                package: "tiny",
                version: "1.0",
                folder: "tiny/model",
                bytes: 1024 * 1024,
            },
        };
        Self {
            home: tempfile::tempdir().unwrap(),
            files,
            model,
            events: Vec::new(),
        }
    }

    pub fn store(&self) -> ModelStore {
        ModelStore::new(self.home.path())
    }

    pub fn fetch(&mut self, options: &FetchOptions) -> Result<StoredModel, FetchError> {
        let events = &mut self.events;
        fetch(
            &ModelStore::new(self.home.path()),
            &self.model,
            options,
            &Unasked,
            &mut |event| events.push(event),
        )
    }

    pub fn fetch_from(&mut self, url: &str) -> Result<StoredModel, FetchError> {
        self.fetch(&hub(url))
    }

    /// Everything below the store.
    pub fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        walk(self.store().path(), &mut left);
        left.sort();
        left
    }

    pub fn resumed(&self) -> usize {
        let resuming = |event: &&FetchEvent| matches!(event, FetchEvent::Resuming { .. });
        self.events.iter().filter(resuming).count()
    }
}

fn walk(folder: &Path, left: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, left)
        } else {
            left.push(path.file_name().unwrap().to_string_lossy().into_owned())
        }
    }
}

pub fn hub(url: &str) -> FetchOptions {
    FetchOptions {
        source: Source::Hub,
        hub_url: url.into(),
        connect_timeout: Duration::from_secs(2),
        stall_timeout: Duration::from_secs(2),
        ..FetchOptions::default()
    }
}

/// What a complete model is made of.
pub const COMPLETE: [&str; 4] = [
    "config.json",
    "manifest.json",
    "model.safetensors",
    "tokenizer.json",
];

/// A machine that fetches `owner/tiny`.
pub struct Machine {
    pub home: TempDir,
    pub token: Option<Token>,
    pub events: Vec<FetchEvent>,
}

impl Machine {
    pub fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            token: None,
            events: Vec::new(),
        }
    }

    pub fn with_token(token: &str) -> Self {
        Self {
            token: Some(token.parse().unwrap()),
            ..Self::new()
        }
    }

    pub fn fetch(&mut self, hub: &Running) -> Result<StoredModel, FetchError> {
        self.fetch_from(&hub.url)
    }

    pub fn fetch_from(&mut self, url: &str) -> Result<StoredModel, FetchError> {
        let options = FetchOptions {
            token: self.token.clone(),
            ..hub(url)
        };
        let model: HubModel = "owner/tiny".parse().unwrap();
        let store = ModelStore::new(self.home.path());
        let events = &mut self.events;
        fetch_from_hub(&store, &model, "tiny", &options, &Unasked, &mut |event| {
            events.push(event)
        })
    }

    /// The names in the store: of models, and of what is kept for another run.
    pub fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.home.path().join("models"))
            .into_iter()
            .flatten();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

/// What a hub has as `owner/tiny`, unless told otherwise.
pub fn tiny() -> MockHub {
    MockHub::new(Published::bert().files())
}

/// The name of one of two shards.
pub fn name(shard: usize) -> String {
    format!("model-{shard:05}-of-00002.safetensors")
}
