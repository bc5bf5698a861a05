//! The real all-MiniLM-L6-v2 in its exact form: anybody's conversion is the known one, and says nearly the
//! same as the published weights.

#![allow(clippy::unwrap_used)]

mod common;

use common::{minilm, run};
use serde_json::Value;
use surety_engine::{Embeddings, exact::ExactCalibrator, open};
use surety_models::{ModelFiles, ModelStore, convert::convert_into, known, paths};

#[test]
fn a_conversion_here_is_the_known_model_and_near_the_published_one() {
    // Fetches the published files, where they are not here.
    let published = minilm();
    let store = ModelStore::new(&paths::cache_home().unwrap());
    let source = store.by_name("all-MiniLM-L6-v2").unwrap();
    let into = tempfile::tempdir().unwrap();
    let known = known::all_minilm_l6_v2_exact();
    let manifest = convert_into(
        &source.path,
        into.path(),
        &known.name(),
        None,
        &ExactCalibrator,
        &mut |_| (),
    )
    .unwrap();
    assert_eq!(manifest, known.manifest, "{manifest:#?}");

    let file = |name: &str| std::fs::read(into.path().join(name)).unwrap();
    let exact = open(ModelFiles {
        manifest,
        weights: file("model.safetensors").into(),
        tokenizer: file("tokenizer.json"),
        config: file("config.json"),
        template: None,
    })
    .unwrap();
    let golden: Value = serde_json::from_str(include_str!("golden/all-MiniLM-L6-v2.json")).unwrap();
    let items = golden["items"].as_array().unwrap();
    let texts: Vec<&str> = items.iter().map(|item| item["text"].as_str().unwrap()).collect();
    let [near, float] = [&exact, &published]
        .map(|engine| Embeddings::decode(&run(engine, 2, texts.join("\n")).output).unwrap());
    let cosines: Vec<f32> = near
        .rows()
        .zip(float.rows())
        .map(|(near, float)| near.iter().zip(float).map(|(a, b)| a * b).sum())
        .collect();
    let mean = cosines.iter().sum::<f32>() / cosines.len() as f32;
    assert!(mean > 0.999, "{mean} {cosines:?}");
    assert!(cosines.iter().all(|cosine| *cosine > 0.995), "{cosines:?}");
}
