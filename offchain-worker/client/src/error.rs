//! What can go wrong for a client, beside what providers do.

use std::{io, path::PathBuf};

use surety_chain_client::ChainError;
use surety_network::PlaneError;

/// Why a client cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The chain, or the way to it.
    #[error("{0}")]
    Chain(#[from] ChainError),
    /// The data plane.
    #[error(transparent)]
    Data(#[from] PlaneError),
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A defect.
    #[error("internal error: {0}")]
    Internal(String),
}

impl ClientError {
    /// For `map_err`: an error of the file system about `path`.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::File { path, source }
    }
}

/// What the functions of this crate return, unless they say otherwise.
pub type Result<T> = std::result::Result<T, ClientError>;
