//! Why there is no new model.

use std::{io, path::Path, path::PathBuf};

/// Why a training failed. Nothing has been written then, or what was there before still is.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A setting outside its range.
    #[error("{field} is {value}, but must be between {min} and {max}")]
    OutOfRange {
        /// Name of the option.
        field: &'static str,
        /// What was given.
        value: usize,
        /// Least allowed.
        min: usize,
        /// Most allowed.
        max: usize,
    },
    /// Heads that cannot be shared out or rotated.
    #[error("{heads} heads cannot share {kv_heads}, or a head's width of {head_dim} is odd")]
    Heads {
        /// Heads that ask.
        heads: usize,
        /// Heads that are asked.
        kv_heads: usize,
        /// Width of a head.
        head_dim: usize,
    },
    /// Too little text.
    #[error("the text has {tokens} tokens; training needs {least}")]
    TooShort {
        /// Tokens of the text.
        tokens: usize,
        /// Tokens needed.
        least: usize,
    },
    /// The folder holds something other than a model.
    #[error("{} holds {found:?}, which no model has: choose another folder", path.display())]
    Occupied {
        /// Folder that was to take the model.
        path: PathBuf,
        /// What was found in it.
        found: String,
    },
    /// The tokenizers library refused.
    #[error("the vocabulary cannot be learnt: {0}")]
    Tokenizer(String),
    /// The tensor library refused.
    #[error("training failed: {0}")]
    Library(String),
    /// The threads could not be started.
    #[error("cannot start the training threads: {0}")]
    Threads(String),
    /// It was asked to stop.
    #[error("the training was stopped")]
    Cancelled,
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

impl TrainError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Io {
            path: path.into(),
            source,
        }
    }
}

impl From<candle_core::Error> for TrainError {
    fn from(error: candle_core::Error) -> Self {
        Self::Library(error.to_string())
    }
}
