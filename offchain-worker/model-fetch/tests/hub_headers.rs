//! What cannot be converted is refused before its weights are loaded: by small files, then by the headers of
//! large ones.

#![allow(clippy::unwrap_used)]

mod common;

use common::{
    exact::{As, Published, safetensors},
    fetching::{Machine, name, tiny},
    server::{Act, MockHub, Running},
};
use serde_json::json;
use surety_model_fetch::FetchError;
use surety_models::shards::INDEX;

/// A model with more weights than are asked for at once.
fn large() -> Published {
    const TOKENS: usize = 3_000;
    let mut published = Published::bert();
    published.config["vocab_size"] = TOKENS.into();
    let words = (0..TOKENS * 8).map(|i| (i as f32 * 0.7).sin()).collect();
    let stem = "embeddings.word_embeddings.weight";
    published.tensors.insert(stem.into(), (vec![TOKENS, 8], words));
    published
}

/// The ranges of a file that were asked for; of all of it nothing.
fn ranges_asked_for(hub: &Running, file: &str) -> Vec<Option<String>> {
    let asked = hub.asked.lock().unwrap();
    let those = asked
        .iter()
        .filter(|request| !request.head && request.path.ends_with(file));
    let range = |text: &str| {
        let lines = text.lines().map(str::to_lowercase);
        lines
            .filter_map(|line| line.strip_prefix("range: bytes=").map(str::to_owned))
            .next()
    };
    those.map(|request| range(&request.text)).collect()
}

#[test]
fn what_its_small_files_refuse_is_said_before_its_weights_are_so_much_as_asked_about() {
    let configured = |field: &str, value: serde_json::Value| {
        let mut published = Published::bert();
        published.config[field] = value;
        MockHub::new(published.files())
    };
    let modules = br#"[{"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}]"#;
    for (hub, said) in [
        (configured("model_type", json!("gemma3")), "gemma3"),
        (configured("hidden_act", json!("relu")), "relu"),
        (
            configured("quantization_config", json!({"bits": 4})),
            "quantization_config",
        ),
        (
            configured("architectures", json!(["BertForSequenceClassification"])),
            "BertForSequenceClassification",
        ),
        (tiny().with("modules.json", modules), "Dense"),
        (tiny().with("tokenizer.json", b"{}"), "tokenizer"),
    ] {
        let hub = hub.start();
        let mut machine = Machine::new();
        let refused = machine.fetch(&hub).unwrap_err();
        assert!(matches!(refused, FetchError::Convert(_)), "{refused}");
        assert!(refused.to_string().contains(said), "{said}: {refused}");
        let asked = hub.asked.lock().unwrap();
        assert!(
            asked.iter().all(|request| !request.path.contains("safetensors")),
            "{said}"
        );
        assert_eq!(machine.left(), [""; 0]);
    }
}

#[test]
fn what_the_headers_of_its_weights_refuse_is_said_before_they_are_loaded() {
    const GONE: &str = "encoder.layer.1.output.dense.bias";
    let mut missing = large();
    missing.tensors.remove(GONE);
    let mut other = large();
    other.config["intermediate_size"] = 16.into();
    for (published, said) in [(missing, GONE), (other, "intermediate.dense.weight")] {
        let hub = MockHub::new(published.files()).start();
        let mut machine = Machine::new();
        let refused = machine.fetch(&hub).unwrap_err();
        assert!(refused.to_string().contains(said), "{refused}");
        assert_eq!(
            ranges_asked_for(&hub, "model.safetensors"),
            [Some("0-65535".to_owned())]
        );
        assert_eq!(machine.left(), [""; 0]);
    }
}

#[test]
fn of_weights_in_several_files_none_is_loaded_before_all_their_headers_are_known() {
    let published = large();
    let (mut first, mut second) = (common::Tensors::new(), published.tensors.clone());
    let words = second.remove("embeddings.word_embeddings.weight").unwrap();
    first.insert("embeddings.word_embeddings.weight".into(), words);
    second.remove("embeddings.LayerNorm.bias");
    let index = json!({ "weight_map": { "a": name(0), "b": name(1) } }).to_string();
    let hub = MockHub::new(published.files()).without("model.safetensors");
    let hub = hub
        .with(INDEX, index.as_bytes())
        .with(&name(0), &safetensors(&first, As::F32))
        .with(&name(1), &safetensors(&second, As::F32))
        .start();
    let refused = Machine::new().fetch(&hub).unwrap_err();
    assert!(
        refused.to_string().contains("embeddings.LayerNorm.bias"),
        "{refused}"
    );
    assert_eq!(ranges_asked_for(&hub, &name(0)), [Some("0-65535".to_owned())]);
}

#[test]
fn what_was_loaded_for_its_header_is_not_loaded_again() {
    let published = large();
    let hub = MockHub::new(published.files()).start();
    let mut machine = Machine::new();
    let stored = machine.fetch(&hub).unwrap();
    stored.verify().unwrap();
    assert_eq!(
        ranges_asked_for(&hub, "model.safetensors"),
        ["0-65535", "65536-"].map(|range| Some(range.to_owned()))
    );
    // Nor is what a hub lies about, once it is known to.
    let lying = MockHub::new(published.files())
        .script(&[Act::Serve, Act::Lie])
        .start();
    let refused = Machine::new().fetch(&lying).unwrap_err();
    assert!(matches!(refused, FetchError::WrongHash { .. }), "{refused}");
    assert_eq!(ranges_asked_for(&lying, "model.safetensors").len(), 2);
    // A hub that knows of no ranges sends all, twice.
    let whole = MockHub::new(published.files())
        .script(&[Act::IgnoreRange])
        .start();
    assert_eq!(Machine::new().fetch(&whole).unwrap().manifest, stored.manifest);
}

#[test]
fn a_header_of_any_length_is_read_whole() {
    let published = large();
    let weights = safetensors(&published.tensors, As::F32);
    let (front, rest) = weights.split_first_chunk::<8>().unwrap();
    let length = u64::from_le_bytes(*front) as usize;
    // A header may end in spaces.
    let padded = [&rest[..length], &[b' '; 100_000], &rest[length..]].concat();
    let padded = [&((length + 100_000) as u64).to_le_bytes()[..], &padded].concat();
    let needed = length + 100_008;
    let hub = MockHub::new(published.files())
        .with("model.safetensors", &padded)
        .start();
    let stored = Machine::new().fetch(&hub).unwrap();
    assert_eq!(
        ranges_asked_for(&hub, "model.safetensors"),
        [
            "0-65535".to_owned(),
            format!("65536-{}", needed - 1),
            format!("{needed}-")
        ]
        .map(Some)
    );
    let plain = Machine::new()
        .fetch(&MockHub::new(published.files()).start())
        .unwrap();
    assert_eq!(stored.manifest, plain.manifest);
}
