//! Text to ids and back, as a manifest says.

use std::panic::{AssertUnwindSafe, catch_unwind};

use surety_types::{
    input::IdBounds,
    model::{ModelFamily, TextForm},
};
use tokenizers::Tokenizer;

use super::{TextFiles, chat::ChatForm, decoder, encoder, special};
use crate::error::ModelError;

/// Why a text has no ids, or ids no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    /// A text would come out with an id that is the model's own business.
    #[error("the text becomes token {id}, which no text may")]
    Special {
        /// The id.
        id: u32,
    },
    /// What the library said.
    #[error("the tokenizer refuses: {0}")]
    Library(String),
}

/// A checked tokenizer: nobody's text becomes a special token, and those that belong before and after a
/// text are the manifest's.
pub struct TextCodec {
    pub(super) tokenizer: Tokenizer,
    pub(super) form: TextForm,
    bounds: IdBounds,
    /// Most ids of a text; nothing where none is cut.
    length: Option<usize>,
    pub(super) chat: ChatForm,
}

impl TextCodec {
    /// Reads the files of a model, which have the hashes of its manifest.
    ///
    /// # Errors
    /// [`ModelError`] when they are none that are taken, or not what the manifest says of them.
    pub fn new(files: &TextFiles) -> Result<Self, ModelError> {
        let bounds = files.bounds()?;
        let (tokenizer, length) = open(files.family, &files.tokenizer, &bounds)?;
        let found = special::of(&tokenizer, files, &bounds)?;
        if found != files.form {
            return Err(ModelError::Special {
                stated: Box::new(files.form.clone()),
                found: Box::new(found),
            });
        }
        Ok(Self {
            chat: ChatForm::new(files, &found)?,
            tokenizer,
            form: found,
            bounds,
            length,
        })
    }

    /// What the ids of an input are checked against.
    pub fn bounds(&self) -> IdBounds {
        self.bounds
    }

    /// The ids of a text, with those before and after it. An encoder's are cut to the length that its
    /// tokenizer states, or that the model has positions for.
    ///
    /// # Errors
    /// [`TextFault`].
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TextFault> {
        let encode = || self.tokenizer.encode_fast(text, false);
        let encoding = shielded(encode)?;
        let TextForm { before, after, .. } = &self.form;
        let own = encoding.get_ids();
        if let Some(id) = own
            .iter()
            .copied()
            .find(|id| special::is_reserved(&self.form, *id))
        {
            return Err(TextFault::Special { id });
        }
        let room = self.length.map_or(own.len(), |length| {
            length.saturating_sub(before.len() + after.len())
        });
        let own = own.get(..room).unwrap_or(own);
        Ok([before, own, after].concat())
    }

    /// The text of some ids, without the special ones and what ends a generation.
    ///
    /// # Errors
    /// [`TextFault::Library`].
    pub fn decode(&self, ids: &[u32]) -> Result<String, TextFault> {
        // Not every model that has been converted calls it special.
        let ends = |id: &&u32| self.form.stop.contains(id);
        let shown: Vec<u32> = ids.iter().filter(|id| !ends(id)).copied().collect();
        shielded(|| self.tokenizer.decode(&shown, true))
    }
}

/// The library was not written for hostile files.
pub(super) fn shielded<T>(run: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, TextFault> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(done) => done.map_err(|error| TextFault::Library(error.to_string())),
        Err(_) => Err(TextFault::Library("the tokenizer library panicked".into())),
    }
}

/// A checked tokenizer that neither truncates nor pads, and knows no special token in a text; the length
/// that an encoder's texts are cut to.
pub(super) fn open(
    family: ModelFamily,
    json: &[u8],
    bounds: &IdBounds,
) -> Result<(Tokenizer, Option<usize>), ModelError> {
    let vocabulary = bounds.vocabulary as usize;
    let load = || match family {
        ModelFamily::Bert => {
            let (tokenizer, length) = encoder::load(json, vocabulary, bounds.positions as usize)?;
            Ok((tokenizer, Some(length)))
        }
        ModelFamily::Llama | ModelFamily::Qwen3 => Ok((decoder::load(json, vocabulary)?, None)),
    };
    let loaded: Result<_, ModelError> = catch_unwind(AssertUnwindSafe(load))
        .unwrap_or_else(|_| Err(ModelError::Tokenizer("the tokenizer library panicked".into())));
    let (mut tokenizer, length) = loaded?;
    tokenizer.set_encode_special_tokens(true);
    Ok((tokenizer, length))
}
