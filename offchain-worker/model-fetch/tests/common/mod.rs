//! A tiny published model that is built here. The tests of `surety-engine` use it too.

#![allow(dead_code, clippy::unwrap_used)] // Each test file uses its part.

pub mod exact;
pub mod fetching;
pub mod server;

use std::{collections::BTreeMap, fs, path::Path};

use safetensors::{Dtype, tensor::TensorView};
use serde_json::{Value, json};
use surety_models::{ModelFiles, WeightBytes, file_hash};
use surety_types::{
    ContentHash,
    model::{ModelFamily, ModelManifest, Operation, TextForm, Tier},
};

pub type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// A BERT of 2 layers and width 8 that knows the letters a to z.
#[derive(Clone)]
pub struct Tiny {
    pub tensors: Tensors,
    pub config: Value,
    pub tokenizer: Value,
}

impl Tiny {
    pub fn new() -> Self {
        let mut tiny = Self {
            tensors: Tensors::new(),
            config: tiny_config(),
            tokenizer: tiny_tokenizer(),
        };
        tiny.add("embeddings.word_embeddings.weight", &[30, 8]);
        tiny.add("embeddings.position_embeddings.weight", &[16, 8]);
        tiny.add("embeddings.token_type_embeddings.weight", &[2, 8]);
        tiny.add("embeddings.LayerNorm.weight", &[8]);
        tiny.add("embeddings.LayerNorm.bias", &[8]);
        for layer in ["encoder.layer.0", "encoder.layer.1"] {
            let square = ["self.query", "self.key", "self.value", "output.dense"];
            for linear in square.map(|name| format!("{layer}.attention.{name}")) {
                tiny.add(&format!("{linear}.weight"), &[8, 8]);
                tiny.add(&format!("{linear}.bias"), &[8]);
            }
            tiny.add(&format!("{layer}.intermediate.dense.weight"), &[12, 8]);
            tiny.add(&format!("{layer}.intermediate.dense.bias"), &[12]);
            tiny.add(&format!("{layer}.output.dense.weight"), &[8, 12]);
            tiny.add(&format!("{layer}.output.dense.bias"), &[8]);
            for norm in ["attention.output.LayerNorm", "output.LayerNorm"] {
                tiny.add(&format!("{layer}.{norm}.weight"), &[8]);
                tiny.add(&format!("{layer}.{norm}.bias"), &[8]);
            }
        }
        tiny
    }

    fn add(&mut self, name: &str, shape: &[usize]) {
        let seed = self.tensors.len() as f32;
        let values = (0..shape.iter().product())
            .map(|i: usize| ((i as f32 + seed) * 0.7).sin())
            .collect();
        self.tensors.insert(name.into(), (shape.to_vec(), values));
    }

    pub fn weights(&self) -> Vec<u8> {
        let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = self
            .tensors
            .iter()
            .map(|(name, (shape, values))| {
                let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                (name.clone(), shape.clone(), bytes)
            })
            .collect();
        let views = bytes
            .iter()
            .map(|(name, shape, bytes)| (name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap()));
        safetensors::serialize(views, None).unwrap()
    }

    /// Files with hashes that match, whatever is in them.
    pub fn files(&self) -> ModelFiles {
        files(
            self.weights(),
            self.tokenizer.to_string().into(),
            self.config.to_string().into(),
        )
    }
}

pub fn files(weights: Vec<u8>, tokenizer: Vec<u8>, config: Vec<u8>) -> ModelFiles {
    ModelFiles {
        manifest: ModelManifest {
            name: b"tiny".to_vec().try_into().unwrap(),
            family: ModelFamily::Bert,
            tier: Tier::HardwareClass,
            operations: vec![Operation::Embed].try_into().unwrap(),
            weights: file_hash(&weights),
            weights_bytes: weights.len() as u64,
            text: special(&tokenizer),
            config: file_hash(&config),
            exact: None,
        },
        weights: weights.into(),
        tokenizer,
        config,
        template: None,
    }
}

/// Those of weights that were made here.
pub fn bytes(weights: &WeightBytes) -> &[u8] {
    match weights {
        WeightBytes::Memory(bytes) => bytes,
        WeightBytes::Disk(_) => panic!("they are on disk"),
    }
}

/// What a manifest says of the tiny tokenizer.
fn special(tokenizer: &[u8]) -> TextForm {
    TextForm {
        tokenizer: file_hash(tokenizer),
        before: vec![2].try_into().unwrap(),
        after: vec![3].try_into().unwrap(),
        unknown: Some(1),
        padding: Some(0),
        ..TextForm::default()
    }
}

/// Writes files as a store keeps them.
pub fn store_files(home: &Path, name: &str, files: &ModelFiles) {
    let folder = home.join("models").join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("model.safetensors"), bytes(&files.weights)).unwrap();
    fs::write(folder.join("tokenizer.json"), &files.tokenizer).unwrap();
    fs::write(folder.join("config.json"), &files.config).unwrap();
    let hash = |hash: ContentHash| format!("{hash:?}");
    let manifest = json!({
        "name": name, "family": "bert", "tier": "hardware-class", "operations": ["embed"],
        "weights": hash(files.manifest.weights), "weights_bytes": files.manifest.weights_bytes,
        "text": {
            "tokenizer": hash(files.manifest.text.tokenizer), "before": [2], "after": [3], "unknown": 1, "padding": 0,
            "stop": [],
        },
        "config": hash(files.manifest.config),
    });
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
}

fn tiny_config() -> Value {
    json!({
        "vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 12, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "max_position_embeddings": 16, "type_vocab_size": 2, "initializer_range": 0.02,
        "layer_norm_eps": 1e-12, "pad_token_id": 0, "model_type": "bert",
    })
}

fn tiny_tokenizer() -> Value {
    let mut vocab = serde_json::Map::new();
    for (id, token) in ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].into_iter().enumerate() {
        vocab.insert(token.into(), id.into());
    }
    for (letter, id) in ('a'..='z').zip(4..) {
        vocab.insert(letter.into(), id.into());
    }
    json!({
        "version": "1.0",
        "truncation": null, "padding": null, "added_tokens": [], "decoder": null,
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true,
        },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": { "type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2] },
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocab,
        },
    })
}
