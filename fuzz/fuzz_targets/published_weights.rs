//! Weights as others publish them, on their way to the exact form.
#![no_main]

use std::{fs, sync::OnceLock};

use libfuzzer_sys::fuzz_target;
use surety_engine::exact::{kernels::Precision, ExactCalibrator};
use surety_models::convert::convert_into;
use tempfile::TempDir;

const CONFIG: &str = r#"{"model_type":"llama","vocab_size":3,"hidden_size":4,"num_hidden_layers":1,
    "num_attention_heads":1,"intermediate_size":4,"hidden_act":"silu","max_position_embeddings":2,
    "rms_norm_eps":1e-5,"tie_word_embeddings":true}"#;
const TOKENIZER: &str = r#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,
    "pre_tokenizer":null,"post_processor":null,"decoder":null,"model":{"type":"BPE","vocab":{"a":0,"e":1},
    "merges":[]}}"#;

static FOLDERS: OnceLock<(TempDir, TempDir)> = OnceLock::new();

fuzz_target!(|file: &[u8]| {
    let (from, into) = FOLDERS.get_or_init(|| {
        let (from, into) = (tempfile::tempdir(), tempfile::tempdir());
        let from = from.expect("a temporary folder");
        fs::write(from.path().join("config.json"), CONFIG).expect("room for a file");
        fs::write(from.path().join("tokenizer.json"), TOKENIZER).expect("room for a file");
        (from, into.expect("a temporary folder"))
    });
    fs::write(from.path().join("model.safetensors"), file).expect("room for a file");
    // int8 is also smoothed, by what the file says.
    for precision in [Precision::Int8, Precision::Int12] {
        convert_into(
            from.path(),
            into.path(),
            "fuzz",
            Some(precision),
            &ExactCalibrator,
            &mut |_| (),
        )
        .ok();
    }
});
