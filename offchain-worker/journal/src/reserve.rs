//! Room on the disk that is given up when there is no other.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Thousands of records.
const BYTES: usize = 1024 * 1024;

/// A file beside the journal that takes up room: what was promised before the disk filled up is kept in it.
pub(crate) struct Reserve(PathBuf);

impl Reserve {
    pub fn of(journal: &Path) -> Self {
        Self(journal.with_extension("reserve"))
    }

    pub fn is_there(&self) -> bool {
        self.0.exists()
    }

    /// Takes room up, unless it has it.
    pub fn keep(&self) -> io::Result<()> {
        if self.is_there() {
            return Ok(());
        }
        // Under another name until it is whole.
        let part = self.0.with_extension("part");
        let written = (|| {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .open(&part)?;
            // Not zeros: some disks keep those for nothing.
            let bytes: Vec<u8> = (0..BYTES as u32)
                .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
                .collect();
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&part, &self.0)
        })();
        if written.is_err() {
            // What is left of it is room, too.
            let _ = fs::remove_file(&part);
        }
        written
    }

    /// Gives it up. Says whether there was any.
    pub fn give_up(&self) -> bool {
        fs::remove_file(&self.0).is_ok()
    }
}
