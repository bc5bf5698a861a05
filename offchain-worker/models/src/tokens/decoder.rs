//! Tokenizers of decoders.

use serde_json::Value;
use tokenizers::{ModelWrapper, Tokenizer};

use crate::error::ModelError;

/// Patterns by which published models split text: GPT-2's, Llama 3's, Qwen 2's. Others may take time without
/// bound.
const PATTERNS: [&str; 3] = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
];

/// Parts of `tokenizer.json` and the kinds that are taken: these take time about linear in the text.
const KINDS: [(&str, &[&str]); 4] = [
    ("normalizer", &["Sequence", "Prepend", "Replace", "NFC"]),
    (
        "pre_tokenizer",
        &["Sequence", "ByteLevel", "Metaspace", "Digits", "Split"],
    ),
    ("post_processor", &["Sequence", "ByteLevel", "TemplateProcessing"]),
    (
        "decoder",
        &[
            "Sequence",
            "ByteLevel",
            "Metaspace",
            "ByteFallback",
            "Fuse",
            "Strip",
            "Replace",
        ],
    ),
];

/// How deep sequences of parts may be nested.
const DEPTH_MAX: usize = 4;

fn refused<T>(reason: impl Into<String>) -> Result<T, ModelError> {
    Err(ModelError::Tokenizer(reason.into()))
}

/// Reads `tokenizer.json`, for a model of so many tokens.
pub(super) fn load(json: &[u8], vocabulary: usize) -> Result<Tokenizer, ModelError> {
    let value: Value =
        serde_json::from_slice(json).map_err(|error| ModelError::Tokenizer(error.to_string()))?;
    for (part, kinds) in KINDS {
        check(part, value.get(part).unwrap_or(&Value::Null), kinds, 0)?;
    }
    // The library gets what was checked, not the file: a name given twice could be read in two ways.
    let library = |error: tokenizers::Error| ModelError::Tokenizer(error.to_string());
    let mut tokenizer = Tokenizer::from_bytes(value.to_string()).map_err(library)?;
    let ModelWrapper::BPE(model) = tokenizer.get_model() else {
        return refused("the model is not BPE");
    };
    if model.dropout.is_some() {
        return refused("dropout would be a matter of chance");
    }
    let highest = tokenizer.get_vocab(true).into_values().max().unwrap_or_default();
    if highest as usize >= vocabulary {
        return Err(ModelError::Vocabulary {
            token: highest,
            vocabulary,
        });
    }
    tokenizer.with_truncation(None).map_err(library)?;
    tokenizer.with_padding(None);
    Ok(tokenizer)
}

/// Whether a part is of a kind that is taken, and so is everything in it.
fn check(part: &str, value: &Value, kinds: &[&str], depth: usize) -> Result<(), ModelError> {
    if value.is_null() {
        return Ok(());
    }
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    if !kinds.contains(&kind) || depth > DEPTH_MAX {
        return refused(format!("a {part} of type `{kind}` is not taken"));
    }
    if let Some(Value::String(pattern)) = value.get("pattern").and_then(|pattern| pattern.get("Regex"))
        && !PATTERNS.contains(&&pattern[..])
    {
        return refused(format!("the pattern `{pattern}` is not one of those known"));
    }
    // A sequence's members go by one of these names.
    let members = ["normalizers", "pretokenizers", "processors", "decoders"];
    let members = members.into_iter().filter_map(|name| value.get(name)?.as_array());
    for member in members.flatten() {
        check(part, member, kinds, depth + 1)?;
    }
    Ok(())
}
