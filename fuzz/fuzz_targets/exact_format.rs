//! Weights of the exact tier. What is taken must also be written again as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use surety_models::format::{read, write};
use surety_types::model::ModelFamily;

const BERT: &[u8] = br#"{"model_type":"bert","vocab_size":3,"hidden_size":4,"num_hidden_layers":1,
    "num_attention_heads":1,"intermediate_size":4,"hidden_act":"gelu","max_position_embeddings":2,
    "type_vocab_size":1,"layer_norm_eps":1e-12}"#;
const LLAMA: &[u8] = br#"{"model_type":"llama","vocab_size":3,"hidden_size":4,"num_hidden_layers":1,
    "num_attention_heads":1,"intermediate_size":4,"hidden_act":"silu","max_position_embeddings":2,
    "rms_norm_eps":1e-5,"tie_word_embeddings":true}"#;
const QWEN3: &[u8] = br#"{"model_type":"qwen3","vocab_size":3,"hidden_size":4,"num_hidden_layers":1,
    "num_attention_heads":1,"num_key_value_heads":1,"head_dim":8,"intermediate_size":4,"hidden_act":"silu",
    "max_position_embeddings":2,"rms_norm_eps":1e-6,"tie_word_embeddings":true}"#;

fuzz_target!(|file: &[u8]| {
    let models = [
        (BERT, ModelFamily::Bert),
        (LLAMA, ModelFamily::Llama),
        (QWEN3, ModelFamily::Qwen3),
    ];
    for (config, family) in models {
        let Ok(weights) = read(file.to_vec(), config, family) else {
            continue;
        };
        let mut written = Vec::new();
        write(&weights.parts(), &mut written).expect("a vector takes everything");
        assert_eq!(read(written, config, family), Ok(weights));
    }
});
