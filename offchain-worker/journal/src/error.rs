//! Why a journal cannot be used, and what to do about it.

use std::{io, path::PathBuf};

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file is not as it was written.
    #[error("the journal {} is damaged ({what}). {hint}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// What to do.
        hint: &'static str,
    },
    /// There is no space left.
    #[error("no space left for the journal {}: free some, the worker goes on from there", path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// Another process has it open.
    #[error(
        "the journal {} is in use by another worker with the same home folder, such as surety provider up: stop that \
         one first, or name another --home",
        path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// Another version of this program wrote it.
    #[error(
        "the journal {} has version {found}, and this program reads version {supported}: use the program that wrote it",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The version we know.
        supported: u64,
    },
    /// The file cannot be read or written.
    #[error("the journal {} cannot be used: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
}

/// What to do about a damaged journal.
pub(crate) const CORRUPT_HINT: &str = "Check the disk. Restore the file from a copy, or move it away and start \
    without it: results that were committed to are then computed again";

/// What to do about damage to what is kept of calls.
pub(crate) const CALLS_HINT: &str = "Check the disk. Put no older copy in its place while channels are open: \
    what was signed since is not in it, and signing something else costs the lock. Move the file away, start \
    without it, and close the channels: what was signed over them is not known any more";
