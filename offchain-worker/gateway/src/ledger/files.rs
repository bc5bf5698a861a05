//! Files of users: what batches read, and what they have written.

use redb::{ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Ledger, LedgerError};

/// By key and number.
const FILES: TableDefinition<(&str, u64), &[u8]> = TableDefinition::new("files");
/// By the file's number and the part's place in it.
const PARTS: TableDefinition<(u64, u32), &[u8]> = TableDefinition::new("file_parts");
/// Most files of a key, those that batches have written included.
const FILES_MAX: usize = 1_000;
/// Most bytes of a key's files when another is given, or a batch is begun.
const BYTES_MAX: u64 = 4 << 30;
/// Bytes of a part, but for the last.
pub(crate) const PART_BYTES: usize = 1 << 20;

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Requests of a batch.
    Batch,
    /// What a batch has written.
    BatchOutput,
}

/// A file, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its number.
    pub number: u64,
    /// What its owner calls it.
    pub name: String,
    /// What it is for.
    pub purpose: Purpose,
    /// Its size.
    pub bytes: u64,
    /// In how many parts it is kept.
    pub parts: u32,
    /// Seconds since 1970.
    pub created_unix: u64,
    /// Whether it is shown: what a batch writes is when that is over.
    pub is_shown: bool,
}

/// A file that is to be kept.
pub(crate) struct NewFile<'a> {
    pub name: &'a str,
    pub bytes: &'a [u8],
    pub now: u64,
}

/// Some of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// What comes after this one.
    pub after: Option<u64>,
    pub limit: usize,
    /// Oldest first.
    pub ascending: bool,
}

impl Page {
    /// What comes next of some numbers in ascending order, and whether more comes after it.
    pub fn cut<T>(self, mut all: Vec<(u64, T)>) -> (Vec<T>, bool) {
        if !self.ascending {
            all.reverse();
        }
        let is_after = |number: u64| match (self.after, self.ascending) {
            (None, _) => true,
            (Some(after), true) => number > after,
            (Some(after), false) => number < after,
        };
        let mut rest = all.into_iter().filter(|(number, _)| is_after(*number));
        let page = rest.by_ref().take(self.limit).map(|(_, one)| one).collect();
        (page, rest.next().is_some())
    }
}

/// Makes the tables, so that readers find them.
pub(super) fn make(write: &WriteTransaction) -> Result<(), LedgerError> {
    write.open_table(FILES)?;
    write.open_table(PARTS)?;
    Ok(())
}

/// Refuses what goes beyond the room that a key has.
pub(super) fn check_room(write: &WriteTransaction, key: &str, more: usize) -> Result<(), LedgerError> {
    let files = write.open_table(FILES)?;
    let (mut count, mut bytes) = (more, 0u64);
    for row in files.range((key, 0)..=(key, u64::MAX))? {
        let file: FileRecord = serde_json::from_slice(row?.1.value())?;
        count = count.saturating_add(1);
        bytes = bytes.saturating_add(file.bytes);
    }
    if count > FILES_MAX || bytes > BYTES_MAX {
        return Err(LedgerError::Full(format!(
            "this key has as many files as it may have ({FILES_MAX}, or {BYTES_MAX} bytes): delete some"
        )));
    }
    Ok(())
}

/// Adds a file without bytes, which nobody sees yet.
pub(super) fn add_hidden(
    write: &WriteTransaction,
    key: &str,
    (number, name): (u64, String),
    now: u64,
) -> Result<(), LedgerError> {
    let file = FileRecord {
        number,
        name,
        purpose: Purpose::BatchOutput,
        bytes: 0,
        parts: 0,
        created_unix: now,
        is_shown: false,
    };
    set(write, key, &file)
}

/// Writes more to the end of a file, if it is still there.
pub(super) fn append(
    write: &WriteTransaction,
    key: &str,
    number: u64,
    bytes: &[u8],
) -> Result<(), LedgerError> {
    let Some(mut file) = load(write, key, number)? else {
        return Ok(());
    };
    let mut parts = write.open_table(PARTS)?;
    for part in bytes.chunks(PART_BYTES) {
        parts.insert((number, file.parts), part)?;
        file.parts = file.parts.checked_add(1).ok_or(LedgerError::Overflow)?;
        file.bytes = file.bytes.saturating_add(part.len() as u64);
    }
    set(write, key, &file)
}

/// Shows a file that has bytes, and drops one that has none. Whether it is there.
pub(super) fn show(write: &WriteTransaction, key: &str, number: u64) -> Result<bool, LedgerError> {
    match load(write, key, number)? {
        Some(file) if file.bytes > 0 => {
            let shown = FileRecord {
                is_shown: true,
                ..file
            };
            set(write, key, &shown)?;
            Ok(true)
        }
        Some(_) => {
            write.open_table(FILES)?.remove((key, number))?;
            Ok(false)
        }
        None => Ok(false),
    }
}

fn load(write: &WriteTransaction, key: &str, number: u64) -> Result<Option<FileRecord>, LedgerError> {
    let files = write.open_table(FILES)?;
    match files.get((key, number))? {
        Some(row) => Ok(Some(serde_json::from_slice(row.value())?)),
        None => Ok(None),
    }
}

fn set(write: &WriteTransaction, key: &str, file: &FileRecord) -> Result<(), LedgerError> {
    let mut files = write.open_table(FILES)?;
    files.insert((key, file.number), serde_json::to_vec(file)?.as_slice())?;
    Ok(())
}

impl Ledger {
    /// Keeps a file of a key.
    pub(crate) fn add_file(&self, key: &str, new: &NewFile<'_>) -> Result<FileRecord, LedgerError> {
        self.transact(|write, all| {
            check_room(write, key, 1)?;
            let number = all.numbers(1)?;
            let file = FileRecord {
                number,
                name: new.name.to_owned(),
                purpose: Purpose::Batch,
                bytes: 0,
                parts: 0,
                created_unix: new.now,
                is_shown: true,
            };
            set(write, key, &file)?;
            append(write, key, number, new.bytes)?;
            load(write, key, number)?.ok_or(LedgerError::NoFile)
        })
    }

    /// A file that is shown.
    pub(crate) fn file(&self, key: &str, number: u64) -> Result<FileRecord, LedgerError> {
        let read = self.database.begin_read()?;
        let files = read.open_table(FILES)?;
        let row = files.get((key, number))?.ok_or(LedgerError::NoFile)?;
        let file: FileRecord = serde_json::from_slice(row.value())?;
        file.is_shown.then_some(file).ok_or(LedgerError::NoFile)
    }

    /// A part of a file's bytes.
    pub(crate) fn file_part(&self, number: u64, part: u32) -> Result<Option<Vec<u8>>, LedgerError> {
        let read = self.database.begin_read()?;
        let parts = read.open_table(PARTS)?;
        Ok(parts.get((number, part))?.map(|row| row.value().to_vec()))
    }

    /// Files that are shown, and whether there are more.
    pub(crate) fn files(
        &self,
        key: &str,
        purpose: Option<Purpose>,
        page: Page,
    ) -> Result<(Vec<FileRecord>, bool), LedgerError> {
        let read = self.database.begin_read()?;
        let files = read.open_table(FILES)?;
        let mut all = Vec::new();
        for row in files.range((key, 0)..=(key, u64::MAX))? {
            let file: FileRecord = serde_json::from_slice(row?.1.value())?;
            if file.is_shown && purpose.is_none_or(|purpose| purpose == file.purpose) {
                all.push((file.number, file));
            }
        }
        Ok(page.cut(all))
    }

    /// Forgets a file that is shown.
    pub(crate) fn remove_file(&self, key: &str, number: u64) -> Result<(), LedgerError> {
        self.transact(|write, _| {
            let file = load(write, key, number)?.filter(|file| file.is_shown);
            let file = file.ok_or(LedgerError::NoFile)?;
            write.open_table(FILES)?.remove((key, number))?;
            let mut parts = write.open_table(PARTS)?;
            for part in 0..file.parts {
                parts.remove((number, part))?;
            }
            Ok(())
        })
    }
}
