//! What a worker promised, on disk before it is said to the chain.
//!
//! [`Journal::append`] returns once its records are durable, all of them or none; only then may the effects
//! of the same step be carried out. [`Journal::load`] gives back what a restart has to know.
//!
//! The journal stays bounded by itself: a [`Record::Finished`] takes the place of everything else about its
//! task, and those that finished first go once there are 4,096 of them. What is left besides are the records
//! of the tasks at hand, which the core bounds.
//!
//! Opening checks the whole file. A journal that is damaged is refused rather than repaired by guessing: a
//! promise that got lost could be broken. The functions block for as long as the disk does.
//!
//! [`CallStore`] is another file: what is kept of calls over payment channels.
//!
//! Beside the file lies a reserve of 1 MiB. On a full disk it is given up, once, so that what was promised
//! can still be kept; [`Journal::is_short_of_room`] says so, and nothing new should be promised until it is
//! there again.

mod calls;
mod error;
mod format;
mod reserve;
mod storage;
#[cfg(test)]
mod tests;

use std::path::Path;

use surety_worker_core::Record;

pub use calls::CallStore;
pub use error::JournalError;

use reserve::Reserve;
use storage::{Opener, Reopened, Storage};

/// Where a worker makes its records durable: a [`Journal`], or something that stands around one.
pub trait RecordLog: Send + Sync {
    /// As [`Journal::append`].
    ///
    /// # Errors
    /// Those of [`Journal::append`].
    fn append(&self, records: &[Record]) -> Result<(), JournalError>;

    /// As [`Journal::is_short_of_room`].
    fn is_short_of_room(&self) -> bool;
}

impl RecordLog for Journal {
    fn append(&self, records: &[Record]) -> Result<(), JournalError> {
        Journal::append(self, records)
    }

    fn is_short_of_room(&self) -> bool {
        Journal::is_short_of_room(self)
    }
}

/// A journal, open and locked for this process.
pub struct Journal {
    storage: Reopened<Storage>,
    reserve: Reserve,
}

impl Journal {
    /// Opens the journal at `path`, or starts one there. Its folder must exist.
    ///
    /// # Errors
    /// When another process has it open, when it is damaged, or of a version we do not know, or when the disk
    /// fails.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        Self::with(Opener::file(path), path)
    }

    fn with(opener: Opener<Storage>, path: &Path) -> Result<Self, JournalError> {
        let journal = Self {
            storage: Reopened::new(opener)?,
            reserve: Reserve::of(path),
        };
        journal.keep_reserve();
        Ok(journal)
    }

    /// Writes records, all or none, and returns when they are durable.
    ///
    /// # Errors
    /// After an error, they may or may not have been written. Writing the same records again is safe, and may
    /// succeed, for example once there is space on the disk. Their effects must not be carried out before.
    pub fn append(&self, records: &[Record]) -> Result<(), JournalError> {
        if records.is_empty() {
            return Ok(());
        }
        let appended = self.storage.with(|storage| storage.append(records));
        match appended {
            Err(JournalError::DiskFull { path }) if self.reserve.give_up() => {
                tracing::warn!(path = %path.display(), "no space left: the reserve is used up now");
                self.storage.with(|storage| storage.append(records))
            }
            appended => appended,
        }
    }

    /// Whether the disk was full and has no room for the reserve yet. Looks again each time.
    pub fn is_short_of_room(&self) -> bool {
        !self.reserve.is_there() && !self.keep_reserve()
    }

    fn keep_reserve(&self) -> bool {
        let kept = self.reserve.keep();
        if let Err(error) = &kept {
            tracing::debug!(%error, "no room for the journal's reserve");
        }
        kept.is_ok()
    }

    /// Everything a restart has to know, each task's records in the order in which they were written.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load(&self) -> Result<Vec<Record>, JournalError> {
        self.storage.with(|storage| storage.load())
    }
}
