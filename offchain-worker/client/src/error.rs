//! What can go wrong for a client, beside what providers do.

use std::{io, path::PathBuf};

use surety_chain_client::ChainError;
use surety_engine::generation::GenerationError;
use surety_network::PlaneError;
use surety_types::TaskId;

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
    /// The chain knows no such task.
    #[error("the chain knows no task {0}; finished tasks are kept for a while only")]
    UnknownTask(TaskId),
    /// The task is settled, but nobody delivers its output.
    #[error("task {task} is settled, but its output could not be fetched:{attempts}")]
    Undelivered {
        /// Task id.
        task: TaskId,
        /// Each provider that was asked, and what it did.
        attempts: String,
    },
    /// The output was accepted, and is none of a generation.
    #[error("the output cannot be read: {0}")]
    NotGenerated(#[from] GenerationError),
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
