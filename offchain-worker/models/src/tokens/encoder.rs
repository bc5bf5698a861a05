//! Tokenizers of BERT.

use tokenizers::{ModelWrapper, NormalizerWrapper, PostProcessor, PreTokenizerWrapper, Tokenizer};

use crate::error::ModelError;

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
    if !matches!(tokenizer.get_model(), ModelWrapper::WordPiece(_)) {
        return Err(ModelError::Tokenizer("the model is not WordPiece".into()));
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
