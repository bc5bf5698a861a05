//! Text to tokens, as BERT does it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokenizers::{
    ModelWrapper, NormalizerWrapper, PostProcessor, PreTokenizerWrapper, Tokenizer, TruncationParams,
};

use crate::error::ModelError;

/// A sequence's tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokensOf {
    /// Indices into the vocabulary.
    pub ids: Vec<u32>,
    /// Which segment each belongs to.
    pub types: Vec<u32>,
}

/// A checked tokenizer that truncates and never pads.
pub struct Tokens {
    tokenizer: Tokenizer,
    max: usize,
}

impl Tokens {
    /// Reads `tokenizer.json`.
    ///
    /// An item is cut to the length that `tokenizer.json` states, or to what the model has positions for,
    /// whichever is less. Both files are part of the model's identity; a length from anywhere else would not
    /// be.
    pub fn load(json: &[u8], vocabulary: usize, positions: usize) -> Result<Self, ModelError> {
        // The library is not written for hostile files.
        catch_unwind(AssertUnwindSafe(|| load(json, vocabulary, positions)))
            .unwrap_or_else(|_| Err(ModelError::Tokenizer("the tokenizer library panicked".into())))
    }

    /// An item's tokens.
    ///
    /// # Errors
    /// What the library said.
    pub fn of(&self, item: &str) -> Result<TokensOf, String> {
        let encoding = self
            .tokenizer
            .encode(item, true)
            .map_err(|error| error.to_string())?;
        let ids = encoding.get_ids();
        if ids.len() > self.max {
            return Err(format!("{} tokens, more than {}", ids.len(), self.max));
        }
        Ok(TokensOf {
            ids: ids.to_vec(),
            types: encoding.get_type_ids().to_vec(),
        })
    }
}

fn load(json: &[u8], vocabulary: usize, positions: usize) -> Result<Tokens, ModelError> {
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
    let truncation = TruncationParams {
        max_length: max,
        ..TruncationParams::default()
    };
    tokenizer.with_truncation(Some(truncation)).map_err(refused)?;
    tokenizer.with_padding(None);
    Ok(Tokens { tokenizer, max })
}
