//! The files that text needs, without the weights.

use serde::Deserialize;
use surety_types::{
    input::IdBounds,
    model::{ModelFamily, ModelManifest, TextForm},
};

use crate::{
    error::ModelError,
    store::{ModelFile, ModelFiles, ModelStore, StoreError, StoredModel},
    tokens::TextCodec,
};

/// What text becomes ids by: files whose hashes were checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFiles {
    /// The model's family.
    pub family: ModelFamily,
    /// What its manifest says of them.
    pub form: TextForm,
    /// `tokenizer.json`.
    pub tokenizer: Vec<u8>,
    /// `config.json`.
    pub config: Vec<u8>,
    /// `chat_template.jinja`, where there is one.
    pub template: Option<Vec<u8>>,
}

/// Why a model's text cannot be had here.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The files are not here, or others than the manifest says.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// They are, but make no tokenizer that is taken.
    #[error(transparent)]
    Model(#[from] ModelError),
}

#[derive(Deserialize)]
struct Sizes {
    vocab_size: u32,
    max_position_embeddings: u32,
}

impl TextFiles {
    /// What the ids of an input are checked against, as `config.json` has it.
    ///
    /// # Errors
    /// [`ModelError::Config`].
    pub fn bounds(&self) -> Result<IdBounds, ModelError> {
        let sizes: Sizes =
            serde_json::from_slice(&self.config).map_err(|error| ModelError::Config(error.to_string()))?;
        Ok(IdBounds {
            vocabulary: sizes.vocab_size,
            positions: sizes.max_position_embeddings,
        })
    }
}

impl From<&ModelFiles> for TextFiles {
    fn from(files: &ModelFiles) -> Self {
        Self {
            family: files.manifest.family,
            form: files.manifest.text.clone(),
            tokenizer: files.tokenizer.clone(),
            config: files.config.clone(),
            template: files.template.clone(),
        }
    }
}

impl StoredModel {
    /// What text becomes ids by.
    ///
    /// # Errors
    /// [`TextError`].
    pub fn text(&self) -> Result<TextCodec, TextError> {
        Ok(TextCodec::new(&self.text_files()?)?)
    }

    fn text_files(&self) -> Result<TextFiles, StoreError> {
        Ok(TextFiles {
            family: self.manifest.family,
            form: self.manifest.text.clone(),
            tokenizer: self.read_file(ModelFile::Tokenizer)?,
            config: self.read_file(ModelFile::Config)?,
            template: self.read_template()?,
        })
    }
}

impl ModelStore {
    /// What the text of a model becomes ids by: from its folder, or from one with these files alone
    /// ([`Self::text_folder`]).
    ///
    /// # Errors
    /// [`TextError`].
    pub fn text(&self, manifest: &ModelManifest) -> Result<TextCodec, TextError> {
        let stored = match self.find(manifest.id()) {
            Err(StoreError::NotInstalled { .. }) => StoredModel {
                manifest: manifest.clone(),
                path: self.text_folder(manifest),
            },
            found => found?,
        };
        stored.text()
    }
}
