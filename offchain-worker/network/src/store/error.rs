//! What can go wrong with blobs on disk.

use std::{
    io,
    path::{Path, PathBuf},
};

use surety_types::ContentHash;

/// Why a blob could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The blob is larger than the store takes.
    #[error("blob of {bytes} bytes is over the limit of {max} bytes")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// The quota is used up by blobs that are needed.
    #[error(
        "blob store is full: {bytes} bytes more would exceed its quota of {max} bytes, and what it holds is in use"
    )]
    QuotaExceeded {
        /// What was to be added.
        bytes: u64,
        /// The quota.
        max: u64,
    },
    /// Another process uses it.
    #[error("{} is in use by another process; give this one a home of its own with --home", path.display())]
    InUse {
        /// The store.
        path: PathBuf,
    },
    /// The file system has no room.
    #[error("disk is full: {bytes} bytes could not be written to {}", path.display())]
    DiskFull {
        /// What was to be written.
        bytes: u64,
        /// Where.
        path: PathBuf,
    },
    /// There is no such blob.
    #[error("blob {0:?} is not in the store")]
    NotFound(ContentHash),
    /// What is on disk is not what was stored. The file has been removed.
    #[error("blob {0:?} is damaged on disk and was removed")]
    Damaged(ContentHash),
    /// A part outside the blob was asked for.
    #[error("blob has {total} bytes: there is nothing at {offset}")]
    OutOfRange {
        /// Where the part was to start.
        offset: u64,
        /// The blob's size.
        total: u64,
    },
    /// Anything else that the file system reported.
    #[error("{}: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What.
        source: io::Error,
    },
}

pub(super) fn io_error(path: &Path, bytes: u64, source: io::Error) -> StoreError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull { bytes, path },
        _ => StoreError::Io { path, source },
    }
}
