//! Files that make no model, and stores that are damaged: each its own error, and never a panic.

#![allow(clippy::unwrap_used)]

mod common;

use std::{fs, path::Path};

use common::{Tiny, bytes, files, run, store_files};
use serde_json::json;
use surety_engine::{Embeddings, EngineError, open};
use surety_models::{ModelError, ModelFiles, ModelStore, StoreError};
use surety_types::{ModelId, model::Tier};

fn refused(files: ModelFiles) -> ModelError {
    match open(files) {
        Err(EngineError::Model(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was taken"),
    }
}

fn with(change: impl FnOnce(&mut Tiny)) -> ModelFiles {
    let mut tiny = Tiny::new();
    change(&mut tiny);
    tiny.files()
}

const QUERY: &str = "encoder.layer.1.attention.self.query.weight";

#[test]
fn a_well_made_model_runs() {
    let engine = open(Tiny::new().files()).unwrap();
    let outcome = run(&engine, 1, "a b c\nz");
    let embeddings = Embeddings::decode(&outcome.output).unwrap();
    assert_eq!((embeddings.len(), embeddings.width()), (2, 8));
}

#[test]
fn weights_that_are_cut_off_are_refused() {
    let whole = Tiny::new().files();
    for len in [0, 7, 8, 100, bytes(&whole.weights).len() - 1] {
        let cut = files(
            bytes(&whole.weights)[..len].to_vec(),
            whole.tokenizer.clone(),
            whole.config.clone(),
        );
        assert_eq!(refused(cut), ModelError::Truncated, "{len}");
    }
}

#[test]
fn hostile_headers_are_refused() {
    let whole = Tiny::new().files();
    let header = |length: u64, text: &str, data: usize| {
        let weights = [&length.to_le_bytes(), text.as_bytes(), &vec![0; data]].concat();
        refused(files(weights, whole.tokenizer.clone(), whole.config.clone()))
    };
    let sized = |text: &str, data| header(text.len() as u64, text, data);
    assert!(matches!(header(u64::MAX, "{}", 0), ModelError::Malformed(_)));
    assert!(matches!(sized("not json", 0), ModelError::Malformed(_)));
    // Shapes whose product overflows, offsets beyond the file, and overlapping ones.
    let overflow = r#"{"a":{"dtype":"F32","shape":[18446744073709551615,8],"data_offsets":[0,4]}}"#;
    assert!(matches!(sized(overflow, 4), ModelError::Malformed(_)));
    let beyond = r#"{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}"#;
    assert_eq!(sized(beyond, 8), ModelError::Truncated);
    let overlap = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    assert!(matches!(sized(overlap, 4), ModelError::Malformed(_)));
}

#[test]
fn tensors_must_be_there_with_the_right_shape_and_finite() {
    let missing = with(|tiny| drop(tiny.tensors.remove(QUERY)));
    assert_eq!(refused(missing), ModelError::MissingTensor(QUERY.into()));
    let shape = with(|tiny| tiny.tensors.get_mut(QUERY).unwrap().0 = vec![4, 16]);
    assert_eq!(
        refused(shape),
        ModelError::WrongShape {
            name: QUERY.into(),
            expected: vec![8, 8],
            actual: vec![4, 16]
        }
    );
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let poisoned = with(|tiny| tiny.tensors.get_mut(QUERY).unwrap().1[63] = value);
        assert_eq!(refused(poisoned), ModelError::NotFinite(QUERY.into()));
    }
    let whole = Tiny::new().files();
    let text = String::from_utf8_lossy(bytes(&whole.weights));
    let at = text.find("\"F32\"").unwrap();
    let mut weights = bytes(&whole.weights).to_vec();
    weights[at..at + 5].copy_from_slice(b"\"I32\"");
    let typed = refused(files(weights, whole.tokenizer, whole.config));
    assert!(matches!(typed, ModelError::WrongType { .. }), "{typed}");
}

#[test]
fn tensors_that_nobody_reads_are_left_alone() {
    let extra = with(|tiny| {
        tiny.tensors.insert("bert".into(), (vec![1], vec![f32::NAN]));
    });
    assert!(open(extra).is_ok());
}

#[test]
fn configurations_out_of_bounds_are_refused() {
    let config = |field: &str, value| refused(with(|tiny| tiny.config[field] = value));
    assert!(matches!(
        config("hidden_size", json!(usize::MAX)),
        ModelError::Dimension {
            field: "hidden_size",
            ..
        }
    ));
    assert!(matches!(
        config("num_attention_heads", json!(0)),
        ModelError::Dimension { .. }
    ));
    assert!(matches!(
        config("num_attention_heads", json!(3)),
        ModelError::Config(_)
    ));
    assert!(matches!(config("hidden_size", json!(-1)), ModelError::Config(_)));
    assert!(matches!(
        config("hidden_act", json!("swish")),
        ModelError::Config(_)
    ));
    assert!(matches!(
        config("model_type", json!("gpt2")),
        ModelError::Config(_)
    ));
    assert!(matches!(
        config("layer_norm_eps", json!(0)),
        ModelError::Config(_)
    ));
    assert!(matches!(
        config("vocab_size", json!(31)),
        ModelError::WrongShape { .. }
    ));
}

#[test]
fn tokenizers_that_do_not_fit_are_refused() {
    let tokenizer = |part: &str, value| refused(with(|tiny| tiny.tokenizer[part] = value));
    assert!(matches!(tokenizer("model", json!(7)), ModelError::Tokenizer(_)));
    assert!(matches!(
        tokenizer("normalizer", json!(null)),
        ModelError::Tokenizer(_)
    ));
    let pattern =
        json!({ "type": "Split", "pattern": { "Regex": "(a+)+$" }, "behavior": "Removed", "invert": false });
    assert!(matches!(
        tokenizer("pre_tokenizer", pattern),
        ModelError::Tokenizer(_)
    ));
    let short = json!({ "max_length": 2, "strategy": "LongestFirst", "stride": 0 });
    assert!(matches!(tokenizer("truncation", short), ModelError::Tokenizer(_)));
    let words = with(|tiny| tiny.tokenizer["model"]["vocab"]["far"] = json!(30));
    assert_eq!(
        refused(words),
        ModelError::Vocabulary {
            token: 30,
            vocabulary: 30
        }
    );
    let nothing = files(
        Tiny::new().weights(),
        vec![],
        Tiny::new().config.to_string().into(),
    );
    assert!(matches!(refused(nothing), ModelError::Tokenizer(_)));
}

#[test]
fn no_engine_poses_as_one_of_another_tier() {
    let mut files = Tiny::new().files();
    files.manifest.tier = Tier::Tolerance;
    assert!(matches!(open(files.clone()), Err(EngineError::NoEngine { .. })));
    // Published weights are not in the exact form.
    files.manifest.tier = Tier::Exact;
    assert!(matches!(open(files), Err(EngineError::Model(_))));
}

#[test]
fn an_empty_store_has_no_models() {
    let home = tempfile::tempdir().unwrap();
    let store = ModelStore::new(home.path());
    assert!(store.list().unwrap().is_empty());
    let missing = store.load(ModelId::zero());
    assert!(matches!(missing, Err(StoreError::NotInstalled { .. })));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn names_stay_within_the_store() {
    let store = ModelStore::new(Path::new("/nowhere"));
    for name in ["", ".", "..", "../x", "a/b", ".hidden", "a\\b", "a\0"] {
        let found = store.by_name(name);
        assert!(matches!(found, Err(StoreError::InvalidName(_))), "{name}");
    }
}

#[test]
fn files_are_checked_before_they_are_parsed() {
    let home = tempfile::tempdir().unwrap();
    let store = ModelStore::new(home.path());
    let tiny = Tiny::new().files();
    store_files(home.path(), "tiny", &tiny);
    let stored = store.by_name("tiny").unwrap();
    assert_eq!(stored.manifest, tiny.manifest);
    stored.verify().unwrap();
    let id = stored.manifest.id();
    assert!(open(store.load(id).unwrap()).is_ok());

    let weights = stored.path.join("model.safetensors");
    let mut damaged = bytes(&tiny.weights).to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&weights, &damaged).unwrap();
    assert!(matches!(store.load(id), Err(StoreError::WrongHash { .. })));
    assert!(matches!(stored.verify(), Err(StoreError::WrongHash { .. })));

    fs::write(&weights, &damaged[..50]).unwrap();
    assert!(matches!(
        store.load(id),
        Err(StoreError::WrongSize { actual: 50, .. })
    ));
    assert!(matches!(stored.verify(), Err(StoreError::WrongSize { .. })));

    fs::write(&weights, bytes(&tiny.weights)).unwrap();
    let tokenizer = stored.path.join("tokenizer.json");
    fs::write(&tokenizer, &tiny.tokenizer[1..]).unwrap();
    assert!(matches!(store.load(id), Err(StoreError::WrongHash { .. })));
    fs::remove_file(&tokenizer).unwrap();
    assert!(matches!(store.load(id), Err(StoreError::Io { .. })));

    let config = stored.path.join("config.json");
    fs::File::create(&config)
        .unwrap()
        .set_len(2 * 1024 * 1024)
        .unwrap();
    fs::write(&tokenizer, &tiny.tokenizer).unwrap();
    assert!(matches!(store.load(id), Err(StoreError::TooLarge { .. })));
}

#[test]
fn a_broken_manifest_hides_no_other_model() {
    let home = tempfile::tempdir().unwrap();
    let store = ModelStore::new(home.path());
    let tiny = Tiny::new().files();
    store_files(home.path(), "tiny", &tiny);
    let broken = home.path().join("models/broken");
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("manifest.json"), "{").unwrap();
    fs::create_dir(home.path().join("models/.other.fetch")).unwrap();
    let listed = store.list().unwrap();
    assert_eq!(listed.len(), 2);
    assert!(matches!(listed[0], Err(StoreError::Manifest { .. })));
    assert!(store.find(listed[1].as_ref().unwrap().manifest.id()).is_ok());
}
