//! How many tokens a prompt has, for somebody who has the model's files and means to pay for it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Deserialize;
use tokenizers::Tokenizer;

use crate::store::{ModelFile, StoreError, StoredModel};

/// A prompt as a model sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptSize {
    /// Its tokens, those included that the tokenizer adds.
    pub tokens: u32,
    /// Positions that the model has, where its configuration says so.
    pub context: Option<u32>,
}

#[derive(Deserialize)]
struct Positions {
    max_position_embeddings: Option<u32>,
}

/// The size of `prompt` by the model's own tokenizer; nothing when that cannot be used here. Only to know
/// beforehand what a task will cost: what counts in the end is what engines find.
///
/// # Errors
/// When the model's files are not what its manifest says.
pub fn prompt_size(model: &StoredModel, prompt: &str) -> Result<Option<PromptSize>, StoreError> {
    let json = model.read_file(ModelFile::Tokenizer)?;
    let config = model.read_file(ModelFile::Config)?;
    let positions: Option<Positions> = serde_json::from_slice(&config).ok();
    Ok(tokens(&json, prompt).map(|tokens| PromptSize {
        tokens,
        context: positions.and_then(|positions| positions.max_position_embeddings),
    }))
}

fn tokens(json: &[u8], prompt: &str) -> Option<u32> {
    // The library was not written for hostile files.
    let count = || {
        let mut tokenizer = Tokenizer::from_bytes(json).ok()?;
        tokenizer.with_truncation(None).ok()?;
        tokenizer.with_padding(None);
        let encoding = tokenizer.encode(prompt, true).ok()?;
        u32::try_from(encoding.len()).ok()
    };
    catch_unwind(AssertUnwindSafe(count)).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tokenizer_counts_and_nonsense_counts_nothing() {
        let json = br#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,
            "pre_tokenizer":{"type":"WhitespaceSplit"},"post_processor":null,"decoder":null,
            "model":{"type":"WordLevel","vocab":{"a":0,"b":1,"?":2},"unk_token":"?"}}"#;
        assert_eq!(tokens(json, "a b  a other"), Some(4));
        assert_eq!(tokens(json, ""), Some(0));
        assert_eq!(tokens(b"{}", "a"), None);
    }
}
