//! `config.json` of both architectures, and what stands beside it of pooling and of what ends a generation.
#![no_main]

use libfuzzer_sys::fuzz_target;
use surety_models::config::{family, pooling, stop_tokens, BertConfig, LlamaConfig};

fuzz_target!(|json: &[u8]| {
    family(json).ok();
    BertConfig::parse(json).ok();
    stop_tokens(br#"{"vocab_size":9}"#, Some(json)).ok();
    pooling(Some(json), Some(json)).ok();
    if let Ok(config) = LlamaConfig::parse(json) {
        // What later code divides by, and multiplies.
        let dims = &config.dims;
        assert!(dims.num_attention_heads % config.num_key_value_heads == 0 && config.head_dim % 2 == 0);
        assert!(dims.vocab_size.checked_mul(dims.hidden_size).is_some());
    }
});
