//! `config.json` of both architectures.
#![no_main]

use libfuzzer_sys::fuzz_target;
use surety_models::{
    config::{BertConfig, LlamaConfig},
    convert::family,
};

fuzz_target!(|json: &[u8]| {
    family(json).ok();
    BertConfig::parse(json).ok();
    if let Ok(config) = LlamaConfig::parse(json) {
        // What later code divides by, and multiplies.
        assert!(config.heads % config.kv_heads == 0 && config.head_dim % 2 == 0);
        assert!(config.vocabulary.checked_mul(config.width).is_some());
    }
});
