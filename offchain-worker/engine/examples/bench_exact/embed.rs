//! Whole jobs: from a text to vectors and a claim, as a provider does them.

use std::{fs, ops::ControlFlow, path::Path, path::PathBuf, sync::Arc, time::Instant};

use serde::Deserialize;
use serde_json::json;
use surety_engine::{Engine, Event, Job, Outcome, open_on};
use surety_models::{
    ModelStore,
    tokens::{TextCodec, TextFiles},
};
use surety_types::{input::encode_items, model::Operation};

use crate::{
    Result, device,
    talk::{answer, measured, say, threads},
};

#[derive(Deserialize)]
#[serde(untagged)]
enum Command {
    /// Write all vectors there.
    Vectors { vectors: PathBuf },
    /// Measure with every so many-th sentence.
    Measure { stride: usize },
}

pub fn run(home: &Path, model: &str, sentences: &Path, count: usize, on: &str) -> Result<()> {
    let sentences = fs::read_to_string(sentences)?;
    let sentences: Vec<&str> = sentences.lines().collect();
    let begun = Instant::now();
    let pool = threads(count)?;
    let files = ModelStore::new(home).by_name(model)?.read()?;
    let codec = TextCodec::new(&TextFiles::from(&files))?;
    let devices = device::open(on)?;
    let engine = pool.install(|| open_on(files, &devices))?;
    say(&json!({"ready": true, "load_seconds": begun.elapsed().as_secs_f64()}))?;
    answer(|command| {
        let (stride, vectors) = match command {
            Command::Vectors { vectors } => (1, Some(vectors)),
            Command::Measure { stride } => (stride, None),
        };
        let chosen: Vec<&str> = sentences.iter().copied().step_by(stride.max(1)).collect();
        let mut output = Vec::new();
        let answer = measured(|| {
            output = pool.install(|| embed(&engine, &codec, &chosen))?.output;
            Ok(chosen.len())
        })?;
        if let Some(path) = vectors {
            fs::write(path, &output)?;
        }
        Ok(answer)
    })
}

fn embed(engine: &Arc<dyn Engine>, codec: &TextCodec, sentences: &[&str]) -> Result<Outcome> {
    let items = sentences.iter().map(|sentence| codec.encode(sentence));
    let items: Vec<Vec<u32>> = items.collect::<std::result::Result<_, _>>()?;
    let job = Job {
        operation: Operation::Embed,
        input: encode_items(&items, &codec.bounds())?,
        units_max: u32::try_from(sentences.len())?,
    };
    Ok(engine.run(&job, &mut |_: Event| ControlFlow::Continue(()))?)
}
