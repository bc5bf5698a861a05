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

/// Most parts in one of them, those that hold others included. Published models have five.
const MEMBERS_MAX: u64 = 16;

/// Bytes that one of a text may become by one of them. Published models need three.
const GROWTH_MAX: u64 = 8;

/// Most bytes that are put before a text.
const PREPEND_BYTES_MAX: u64 = 16;

fn refused<T>(reason: impl Into<String>) -> Result<T, ModelError> {
    Err(ModelError::Tokenizer(reason.into()))
}

/// Reads `tokenizer.json`, for a model of so many tokens.
pub(super) fn load(json: &[u8], vocabulary: usize) -> Result<Tokenizer, ModelError> {
    let value: Value =
        serde_json::from_slice(json).map_err(|error| ModelError::Tokenizer(error.to_string()))?;
    for (part, kinds) in KINDS {
        let size = check(part, value.get(part).unwrap_or(&Value::Null), kinds, 0)?;
        if size.members > MEMBERS_MAX || size.growth > GROWTH_MAX {
            return refused(format!("a text could grow too much by its {part}"));
        }
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

/// How large a part is, with everything in it.
struct Size {
    members: u64,
    /// Bytes that one of a text can become.
    growth: u64,
}

/// Whether a part is of a kind that is taken, and so is everything in it.
fn check(part: &str, value: &Value, kinds: &[&str], depth: usize) -> Result<Size, ModelError> {
    let mut size = Size {
        members: 1,
        growth: 1,
    };
    if value.is_null() {
        return Ok(size);
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
    size.growth = growth(kind, value)?;
    // A sequence's members go by one of these names.
    let members = ["normalizers", "pretokenizers", "processors", "decoders"];
    let members = members.into_iter().filter_map(|name| value.get(name)?.as_array());
    for member in members.flatten() {
        let of_member = check(part, member, kinds, depth + 1)?;
        size.members = size.members.saturating_add(of_member.members);
        size.growth = size.growth.saturating_mul(of_member.growth);
    }
    Ok(size)
}

/// Bytes that one of a text can become by a part of this kind.
fn growth(kind: &str, value: &Value) -> Result<u64, ModelError> {
    let bytes = |value: Option<&Value>| value.and_then(Value::as_str).map_or(0, str::len) as u64;
    Ok(match kind {
        "Replace" => {
            // What matches one of the known patterns has a byte at least.
            let pattern = match value.get("pattern").and_then(|pattern| pattern.get("String")) {
                Some(pattern) => bytes(Some(pattern)),
                None => 1,
            };
            if pattern == 0 {
                return refused("it replaces what is empty");
            }
            bytes(value.get("content")).div_ceil(pattern).max(1)
        }
        "Prepend" if bytes(value.get("prepend")) > PREPEND_BYTES_MAX => {
            return refused("what it puts before a text is too long");
        }
        // A byte becomes a character of up to two bytes; a space one of up to four; and the worst character
        // for NFC three times as long.
        "ByteLevel" => 2,
        "Metaspace" => 4,
        "NFC" => 3,
        _ => 1,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn loaded(part: &str, value: Value) -> Result<Tokenizer, ModelError> {
        let vocabulary = json!({ "a": 0, "b": 1 });
        let mut file = json!({
            "version": "1.0",
            "added_tokens": [],
            "model": { "type": "BPE", "vocab": vocabulary, "merges": [] },
        });
        file[part] = value;
        load(file.to_string().as_bytes(), 2)
    }

    fn replace(pattern: &str, content: &str) -> Value {
        json!({ "type": "Replace", "pattern": { "String": pattern }, "content": content })
    }

    #[test]
    fn parts_by_which_a_text_grows_without_bound_are_refused() {
        let doubled = replace("a", "aa");
        let doubled_often = |name: &str| {
            let members = vec![doubled.clone(); 40];
            json!({ "type": "Sequence", name: members })
        };
        let nested = (0..4).fold(
            doubled.clone(),
            |inner, _| json!({ "type": "Sequence", "normalizers": [doubled.clone(), inner] }),
        );
        let prepend = json!({ "type": "Prepend", "prepend": "a".repeat(1 << 20) });
        let bytes = json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true });
        let bytes = json!({ "type": "Sequence", "pretokenizers": vec![bytes; 40] });
        let hostile = [
            ("normalizer", doubled_often("normalizers")),
            ("decoder", doubled_often("decoders")),
            ("normalizer", nested),
            ("normalizer", replace("a", &"a".repeat(1 << 20))),
            ("normalizer", replace("", "a")),
            ("normalizer", prepend),
            ("pre_tokenizer", bytes),
        ];
        for (part, value) in hostile {
            let refused = loaded(part, value).err();
            assert!(
                matches!(refused, Some(ModelError::Tokenizer(_))),
                "{part}: {refused:?}"
            );
        }
    }

    #[test]
    fn the_parts_of_published_models_are_taken() {
        let llama = json!({ "type": "Sequence", "normalizers": [
            { "type": "Prepend", "prepend": "\u{2581}" },
            replace(" ", "\u{2581}"),
        ] });
        let spoken = json!({ "type": "Sequence", "decoders": [
            replace("\u{2581}", " "),
            { "type": "ByteFallback" },
            { "type": "Fuse" },
            { "type": "Strip", "content": " ", "start": 1, "stop": 0 },
        ] });
        let split = json!({ "type": "Sequence", "pretokenizers": [
            { "type": "Split", "pattern": { "Regex": PATTERNS[2] }, "behavior": "Isolated", "invert": false },
            { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false },
        ] });
        let taken = [
            ("normalizer", llama),
            ("normalizer", json!({ "type": "NFC" })),
            ("decoder", spoken),
            ("pre_tokenizer", split),
        ];
        for (part, value) in taken {
            loaded(part, value).unwrap();
        }
    }
}
