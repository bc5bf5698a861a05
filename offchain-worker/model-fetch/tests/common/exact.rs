//! Tiny models to be converted, and their files in a folder.

use std::{fs, path::Path};

use safetensors::{Dtype, tensor::TensorView};
use serde_json::{Value, json};
use surety_models::ModelFiles;

use super::{Tensors, Tiny, files};

/// How the values of a published file are written.
#[derive(Clone, Copy)]
pub enum As {
    F32,
    F16,
    BF16,
}

/// Cuts values to what the type holds, so that all types say the same.
fn bytes(kind: As, value: f32) -> Vec<u8> {
    // Three bits of fraction: exact in each of the types.
    let value = f32::from_bits(value.to_bits() & 0xfff0_0000);
    match kind {
        As::F32 => value.to_le_bytes().to_vec(),
        As::BF16 => ((value.to_bits() >> 16) as u16).to_le_bytes().to_vec(),
        As::F16 => {
            let bits = value.to_bits();
            let sign = (bits >> 16) as u16 & 0x8000;
            let exponent = (bits >> 23 & 0xff) as i32 - 112;
            let half = match exponent {
                1..=30 => sign | (exponent as u16) << 10 | (bits >> 13 & 0x3ff) as u16,
                _ => panic!("{value} is not in range"),
            };
            half.to_le_bytes().to_vec()
        }
    }
}

/// A safetensors file of such values.
pub fn safetensors(tensors: &Tensors, kind: As) -> Vec<u8> {
    let dtype = match kind {
        As::F32 => Dtype::F32,
        As::F16 => Dtype::F16,
        As::BF16 => Dtype::BF16,
    };
    let data: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(name, (shape, values))| {
            let data = values.iter().flat_map(|value| bytes(kind, *value)).collect();
            (name.clone(), shape.clone(), data)
        })
        .collect();
    let views = data
        .iter()
        .map(|(name, shape, data)| (name, TensorView::new(dtype, shape.clone(), data).unwrap()));
    safetensors::serialize(views, None).unwrap()
}

/// A model as it is published.
#[derive(Clone)]
pub struct Published {
    pub tensors: Tensors,
    pub config: Value,
    pub tokenizer: Value,
}

impl Published {
    /// The encoder of [`Tiny`], with values of moderate size.
    pub fn bert() -> Self {
        let Tiny {
            mut tensors,
            config,
            tokenizer,
        } = Tiny::new();
        moderate(&mut tensors);
        Self {
            tensors,
            config,
            tokenizer,
        }
    }

    /// A decoder of 2 layers and width 8: 4 heads of queries that share 2 of keys and values.
    pub fn llama(tied: bool, biased: bool) -> Self {
        let mut tensors = Tensors::new();
        let mut add = |name: &str, shape: &[usize]| {
            let seed = tensors.len() as f32;
            let count: usize = shape.iter().product();
            let values = (0..count).map(|i| ((i as f32 + seed) * 0.7).sin()).collect();
            tensors.insert(name.to_owned(), (shape.to_vec(), values));
        };
        add("model.embed_tokens.weight", &[40, 8]);
        add("model.norm.weight", &[8]);
        if !tied {
            add("lm_head.weight", &[40, 8]);
        }
        for layer in ["model.layers.0", "model.layers.1"] {
            for norm in ["input_layernorm", "post_attention_layernorm"] {
                add(&format!("{layer}.{norm}.weight"), &[8]);
            }
            let linears = [
                ("self_attn.q_proj", 8, 8),
                ("self_attn.k_proj", 4, 8),
                ("self_attn.v_proj", 4, 8),
                ("self_attn.o_proj", 8, 8),
                ("mlp.gate_proj", 12, 8),
                ("mlp.up_proj", 12, 8),
                ("mlp.down_proj", 8, 12),
            ];
            for (linear, outputs, inputs) in linears {
                add(&format!("{layer}.{linear}.weight"), &[outputs, inputs]);
                if biased {
                    add(&format!("{layer}.{linear}.bias"), &[outputs]);
                }
            }
        }
        moderate(&mut tensors);
        let config = json!({
            "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 40, "hidden_size": 8,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 12,
            "hidden_act": "silu", "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
            "rope_scaling": null, "tie_word_embeddings": tied, "attention_bias": biased, "mlp_bias": biased,
            "eos_token_id": [2, 3],
        });
        Self {
            tensors,
            config,
            tokenizer: bytes_tokenizer(),
        }
    }

    /// The same as a Qwen 3, whose heads are normed and twice as wide as their parts of a state.
    pub fn qwen3() -> Self {
        let mut published = Self::llama(true, false);
        let mut set = |name: String, shape: &[usize]| {
            let seed = name.len() as f32;
            let count: usize = shape.iter().product();
            let values = (0..count).map(|i| ((i as f32 + seed) * 0.9).sin()).collect();
            published.tensors.insert(name, (shape.to_vec(), values));
        };
        for layer in 0..2 {
            let stem = |part: &str| format!("model.layers.{layer}.self_attn.{part}.weight");
            set(stem("q_proj"), &[16, 8]);
            set(stem("k_proj"), &[8, 8]);
            set(stem("v_proj"), &[8, 8]);
            set(stem("o_proj"), &[8, 16]);
            set(stem("q_norm"), &[4]);
            set(stem("k_norm"), &[4]);
        }
        moderate(&mut published.tensors);
        let config = published.config.as_object_mut().unwrap();
        config.remove("mlp_bias");
        config.insert("model_type".into(), "qwen3".into());
        config.insert("architectures".into(), json!(["Qwen3ForCausalLM"]));
        config.insert("head_dim".into(), 4.into());
        published
    }

    /// The same with one value throughout the tensors whose names end so.
    pub fn with(mut self, end: &str, value: f32) -> Self {
        let tensors = self.tensors.iter_mut();
        for (_, (_, values)) in tensors.filter(|(name, _)| name.ends_with(end)) {
            values.fill(value);
        }
        self
    }

    /// The three files as a hub has them. Their manifest is of no use.
    pub fn files(&self) -> ModelFiles {
        let weights = safetensors(&self.tensors, As::F32);
        files(
            weights,
            self.tokenizer.to_string().into(),
            self.config.to_string().into(),
        )
    }

    /// Writes the three files.
    pub fn write(&self, folder: &Path, kind: As) {
        fs::write(folder.join("model.safetensors"), safetensors(&self.tensors, kind)).unwrap();
        self.write_small(folder);
    }

    /// Writes all but the weights.
    pub fn write_small(&self, folder: &Path) {
        fs::write(folder.join("config.json"), self.config.to_string()).unwrap();
        fs::write(folder.join("tokenizer.json"), self.tokenizer.to_string()).unwrap();
    }
}

/// Away from numbers so small that half precision writes them in its other way.
fn moderate(tensors: &mut Tensors) {
    let values = tensors.values_mut().flat_map(|(_, values)| values);
    for value in values {
        *value = value.abs().max(0.01).copysign(*value);
    }
}

/// A BPE that knows a few letters and falls back to an unknown token.
fn bytes_tokenizer() -> Value {
    let mut vocab = serde_json::Map::new();
    let tokens = ["<unk>", "<s>", "</s>", "<|end|>"].map(String::from);
    let letters = ('a'..='z').chain(['Ġ', '.', ',', '?']).map(String::from);
    for (id, token) in tokens.into_iter().chain(letters).enumerate() {
        vocab.insert(token, id.into());
    }
    vocab.insert("th".into(), 36.into());
    vocab.insert("the".into(), 37.into());
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        "post_processor": null,
        "decoder": { "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true },
        "model": {
            "type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab,
            "merges": ["t h", "th e"],
        },
    })
}
