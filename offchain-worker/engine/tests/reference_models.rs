//! Exact models against what their authors' code gives: small models of every architecture that is converted,
//! with random weights, and the outputs of `transformers` and `sentence-transformers` in float32
//! (`golden/reference/generate.py`). What is left is what quantizing costs; docs/models.md has the numbers.

#![allow(clippy::unwrap_used)]

mod common;

use std::{env, fs, ops::ControlFlow, path::PathBuf};

use serde_json::Value;
use surety_engine::{
    Embeddings, Engine, Job,
    exact::{ExactCalibrator, LlamaModel, Sequence, TopLevel, kernels::Precision},
    generation::Generation,
    open,
};
use surety_models::{
    ModelStore, StoredModel,
    convert::{ConvertEvent, convert},
    format::{Weights, read},
    tokens::TextCodec,
};
use surety_types::{
    input::{Settings, encode_items, encode_prompt},
    model::{Operation, Pooling},
};
use tempfile::TempDir;

const ENCODERS: [(&str, Pooling); 2] = [("bert-mean", Pooling::Mean), ("bert-cls", Pooling::First)];
const DECODERS: [&str; 4] = ["llama", "qwen2", "mistral", "qwen3"];

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("tests/golden/reference")
        .join(name)
}

fn expected(name: &str) -> Value {
    serde_json::from_slice(&fs::read(folder(name).join("expected.json")).unwrap()).unwrap()
}

fn converted(name: &str, precision: Precision) -> (TempDir, StoredModel) {
    let home = tempfile::tempdir().unwrap();
    let store = ModelStore::new(home.path());
    let mut look = |event| assert_ne!(event, ConvertEvent::MeanAssumed);
    let stored = convert(
        &folder(name),
        &store,
        name,
        Some(precision),
        &ExactCalibrator,
        &mut look,
    );
    (home, stored.unwrap())
}

fn numbers(values: &Value) -> Vec<f64> {
    let values = values.as_array().unwrap().iter();
    values.map(|value| value.as_f64().unwrap()).collect()
}

fn ids(values: &Value) -> Vec<u32> {
    let values = values.as_array().unwrap().iter();
    values
        .map(|value| u32::try_from(value.as_u64().unwrap()).unwrap())
        .collect()
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

/// The ids of each text, which have to be those of the authors' tokenizer.
fn encoded(codec: &TextCodec, expected: &Value) -> Vec<Vec<u32>> {
    let items = expected["items"].as_array().unwrap().iter();
    let encode = |item: &Value| {
        let found = codec.encode(item["text"].as_str().unwrap()).unwrap();
        assert_eq!(found, ids(&item["ids"]), "{}", item["text"]);
        found
    };
    items.map(encode).collect()
}

fn quiet(_: surety_engine::Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The vectors of a fixture's texts.
fn vectors(stored: &StoredModel, expected: &Value) -> Vec<Vec<f64>> {
    let codec = stored.text().unwrap();
    let items = encoded(&codec, expected);
    let job = Job {
        operation: Operation::Embed,
        input: encode_items(&items, &codec.bounds()).unwrap(),
        units_max: items.len() as u32,
    };
    let outcome = open(stored.read().unwrap())
        .unwrap()
        .run(&job, &mut quiet)
        .unwrap();
    let embeddings = Embeddings::decode(&outcome.output).unwrap();
    embeddings.rows().map(wide).collect()
}

#[test]
fn encoders_give_the_vectors_that_their_authors_code_gives() {
    for (name, pooling) in ENCODERS {
        for (precision, least) in [(Precision::Int12, 0.999_99), (Precision::Int8, 0.999_7)] {
            let (_home, mut stored) = converted(name, precision);
            let architecture = |stored: &mut StoredModel| {
                let exact = stored.manifest.exact.as_mut().unwrap();
                exact.architecture.clone()
            };
            assert_eq!(architecture(&mut stored).pooling, pooling);
            let expected = expected(name);
            let references = expected["items"].as_array().unwrap().iter();
            let references: Vec<Vec<f64>> = references.map(|item| numbers(&item["embedding"])).collect();
            let near = |stored: &StoredModel| {
                let found = vectors(stored, &expected);
                let cosines = found.iter().zip(&references).map(|(a, b)| cosine(a, b));
                cosines.fold((f64::MAX, f64::MIN), |(low, high), c| (low.min(c), high.max(c)))
            };
            let (lowest, _) = near(&stored);
            println!("{name} {precision:?}: cosines of {lowest:.7} and more");
            assert!(lowest > least, "{name} {precision:?}: {lowest}");
            // Pooled in the other way none is as near.
            stored.manifest.exact.as_mut().unwrap().architecture.pooling = match pooling {
                Pooling::Mean => Pooling::First,
                Pooling::First => Pooling::Mean,
            };
            surety_models::write_manifest(&stored.path, &stored.manifest).unwrap();
            let (_, highest) = near(&stored);
            println!("{name} {precision:?}, pooled otherwise: cosines of {highest:.7} and less");
            assert!(highest < 0.99, "{name} {precision:?}: {highest}");
        }
    }
}

/// The last position's logits after each text.
fn logits(stored: &StoredModel, prompts: &[Vec<u32>]) -> Vec<Vec<f64>> {
    let files = stored.read().unwrap();
    let Weights::Llama(weights) = read(files.weights, &files.config, files.manifest.family).unwrap() else {
        panic!("no decoder");
    };
    let model = LlamaModel::new(weights).unwrap();
    let one = |prompt: &Vec<u32>| {
        let mut sequence = Sequence::new(&model, prompt.len());
        let mut unseen = TopLevel::new(model.trace_shape());
        model.forward(&mut sequence, prompt, &mut unseen).unwrap();
        let mut logits = Vec::new();
        model.logits(sequence.states(), &mut logits).unwrap();
        wide(&logits[logits.len() - model.vocabulary()..])
    };
    prompts.iter().map(one).collect()
}

/// The tokens that the engine goes on with when it takes the likeliest.
fn continuation(engine: &dyn Engine, codec: &TextCodec, prompt: &[u32], most: usize) -> Vec<u32> {
    let settings = Settings {
        max_tokens: most as u32,
        temperature_milli: 0,
        top_k: 0,
        top_p_milli: 1000,
        seed: 0,
    };
    let job = Job {
        operation: Operation::Generate,
        input: encode_prompt(prompt, &settings, &codec.bounds()).unwrap(),
        units_max: codec.bounds().positions,
    };
    let outcome = engine.run(&job, &mut quiet).unwrap();
    Generation::decode(&outcome.output).unwrap().tokens
}

fn deviation(logits: &[f64]) -> f64 {
    let count = logits.len() as f64;
    let mean = logits.iter().sum::<f64>() / count;
    let squares = logits.iter().map(|value| (value - mean).powi(2));
    (squares.sum::<f64>() / count).sqrt()
}

/// Largest difference of a logit, in standard deviations of the logits.
fn apart(found: &[f64], expected: &[f64]) -> f64 {
    let differences = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f64::max) / deviation(expected)
}

#[test]
fn decoders_give_the_logits_and_tokens_that_their_authors_code_gives() {
    for name in DECODERS {
        let expected = expected(name);
        let items = expected["items"].as_array().unwrap();
        for (precision, most, share) in [(Precision::Int12, 0.02, 0.99), (Precision::Int8, 0.2, 0.3)] {
            let (_home, stored) = converted(name, precision);
            assert_eq!(stored.manifest.text.stop.to_vec(), ids(&expected["stop"]));
            let codec = stored.text().unwrap();
            let prompts = encoded(&codec, &expected);
            let (mut furthest, mut nearest) = (0.0, f64::MAX);
            for (found, item) in logits(&stored, &prompts).iter().zip(items) {
                let reference = numbers(&item["logits"]);
                furthest = apart(found, &reference).max(furthest);
                nearest = cosine(found, &reference).min(nearest);
            }
            let engine = open(stored.read().unwrap()).unwrap();
            let (mut same, mut all) = (0, 0);
            for (prompt, item) in prompts.iter().zip(items) {
                let right = ids(&item["continuation"]);
                let found = continuation(&*engine, &codec, prompt, right.len());
                same += found.iter().zip(&right).take_while(|(a, b)| a == b).count();
                all += right.len();
                // As far as no two tokens are so near to each other that the bound leaves it open.
                let open = 2.0 * most * deviation(&numbers(&item["logits"]));
                let margins = numbers(&item["margins"]);
                let clear = margins.iter().take_while(|margin| **margin > open).count();
                let both = (found.get(..clear), right.get(..clear));
                assert_eq!(both.0, both.1, "{name} {precision:?}: {}", item["text"]);
            }
            println!(
                "{name} {precision:?}: logits {furthest:.5} apart at most, cosines of {nearest:.7} and more, \
                 {same} of {all} tokens until the first other one"
            );
            assert!(furthest < most, "{name} {precision:?}: {furthest}");
            assert!(same as f64 > share * all as f64, "{name} {precision:?}: {same}");
        }
    }
}
