//! Tokenizers of BERT.

use tokenizers::{ModelWrapper, NormalizerWrapper, PostProcessor, PreTokenizerWrapper, Tokenizer};

use crate::error::ModelError;

/// Longest word that is looked up. Published models say 100.
const WORD_CHARS_MAX: usize = 200;

/// Reads `tokenizer.json`, and the length that texts are cut to.
///
/// A text is cut to the length that `tokenizer.json` states, or to what the model has positions for,
/// whichever is less. Both files are part of the model's identity; a length from anywhere else would not be.
pub(super) fn load(
    json: &[u8],
    vocabulary: usize,
    positions: usize,
) -> Result<(Tokenizer, usize), ModelError> {
    let refused = |error: tokenizers::Error| ModelError::Tokenizer(error.to_string());
    let mut tokenizer = Tokenizer::from_bytes(json).map_err(refused)?;
    // These parts take time linear in the text. Others may carry patterns whose time is not bounded.
    let ModelWrapper::WordPiece(model) = tokenizer.get_model() else {
        return Err(ModelError::Tokenizer("the model is not WordPiece".into()));
    };
    // For each piece of a word all of its rest is looked up, and then with one character less.
    if model.max_input_chars_per_word > WORD_CHARS_MAX {
        return Err(ModelError::Tokenizer(format!(
            "words of more than {WORD_CHARS_MAX} characters take too long"
        )));
    }
    if !matches!(
        tokenizer.get_normalizer(),
        Some(NormalizerWrapper::BertNormalizer(_))
    ) {
        return Err(ModelError::Tokenizer(
            "the normalizer is not BertNormalizer".into(),
        ));
    }
    if !matches!(
        tokenizer.get_pre_tokenizer(),
        Some(PreTokenizerWrapper::BertPreTokenizer(_))
    ) {
        return Err(ModelError::Tokenizer(
            "the pre-tokenizer is not BertPreTokenizer".into(),
        ));
    }
    let highest = tokenizer.get_vocab(true).into_values().max().unwrap_or_default();
    let known = usize::try_from(highest).is_ok_and(|token| token < vocabulary);
    if !known {
        return Err(ModelError::Vocabulary {
            token: highest,
            vocabulary,
        });
    }
    let stated = tokenizer
        .get_truncation()
        .map_or(usize::MAX, |truncation| truncation.max_length);
    let max = stated.min(positions);
    let added = tokenizer
        .get_post_processor()
        .map_or(0, |processor| processor.added_tokens(false));
    if max <= added {
        return Err(ModelError::Tokenizer(format!(
            "a length of {max} leaves no room beside {added} special tokens"
        )));
    }
    tokenizer.with_truncation(None).map_err(refused)?;
    tokenizer.with_padding(None);
    Ok((tokenizer, max))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn loaded(word_chars: usize) -> Result<(Tokenizer, usize), ModelError> {
        let model = json!({
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": word_chars,
            "vocab": { "[UNK]": 0, "a": 1 },
        });
        let normalizer = json!({
            "type": "BertNormalizer",
            "clean_text": true,
            "handle_chinese_chars": true,
            "strip_accents": null,
            "lowercase": true,
        });
        let file = json!({
            "version": "1.0",
            "added_tokens": [],
            "normalizer": normalizer,
            "pre_tokenizer": { "type": "BertPreTokenizer" },
            "model": model,
        });
        load(file.to_string().as_bytes(), 2, 8)
    }

    #[test]
    fn a_file_that_has_words_without_bound_looked_up_is_refused() {
        assert!(loaded(100).is_ok() && loaded(WORD_CHARS_MAX).is_ok());
        for word_chars in [WORD_CHARS_MAX + 1, usize::MAX] {
            let refused = loaded(word_chars).err();
            assert!(matches!(refused, Some(ModelError::Tokenizer(_))), "{refused:?}");
        }
    }
}
