//! What a payee and a payer have to know of their calls over channels, in a file of its own.

use std::{
    collections::BTreeMap,
    mem,
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use surety_channel_calls::{Row, Store, Table};

use crate::{
    error::{CALLS_HINT, JournalError},
    storage::{Kept, Opener, Reopened, corrupt, explain, write},
};

/// Grows with every change of the layout, and of what stands in the rows.
pub(crate) const VERSION: u64 = 1;

pub(crate) const META: TableDefinition<&str, u64> = TableDefinition::new("calls_meta");
pub(crate) const VERSION_KEY: &str = "version";

const fn definition(table: Table) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
    TableDefinition::new(table.name())
}

/// The rows of calls, on disk: a [`Store`] of a payee, a payer or both, open and locked for this process.
///
/// Everything blocks for as long as the disk does. `put` may be called by several threads at once: while one
/// transaction is being synced, what the others put is gathered, and written with the next one.
///
/// Opening checks the whole file, inputs and outputs included. After a failed write the file is opened anew.
pub struct CallStore {
    storage: Reopened<Tables>,
    groups: Mutex<Groups>,
    written: Condvar,
}

/// Rows that are written together, and those that were.
#[derive(Default)]
struct Groups {
    /// The rows of the group that is being gathered, in the order in which they were put.
    rows: Vec<Row>,
    /// How many threads put them.
    members: usize,
    /// Number of that group. All before it are written, or being written.
    gathering: u64,
    /// Groups before this one are through.
    done: u64,
    /// Whether a group is being written.
    is_writing: bool,
    /// Groups that could not be written, and how many threads do not know that yet.
    failed: BTreeMap<u64, usize>,
}

impl CallStore {
    /// Opens the file at `path`, or starts one there, readable by its owner alone. Its folder must exist.
    ///
    /// # Errors
    /// When another process has it open, when it is damaged, no such file, or of a version we do not know, or
    /// when the disk fails.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        Self::with(Opener::file(path))
    }

    pub(crate) fn with(opener: Opener<Tables>) -> Result<Self, JournalError> {
        Ok(Self {
            storage: Reopened::new(opener)?,
            groups: Mutex::default(),
            written: Condvar::new(),
        })
    }

    /// All rows that a state machine is loaded with: those of tables with [`Table::is_loaded`], table by
    /// table, in the order of their keys.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn load(&self) -> Result<Vec<Row>, JournalError> {
        let loaded = Table::ALL.into_iter().filter(|table| table.is_loaded());
        self.storage.with(|tables| tables.read(loaded, &[]))
    }

    /// The rows of a table whose keys begin with `prefix`, in the order of their keys.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn read(&self, table: Table, prefix: &[u8]) -> Result<Vec<Row>, JournalError> {
        self.storage.with(|tables| tables.read([table], prefix))
    }

    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many threads have put what is not being written yet.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.groups().members
    }

    /// Writes what was gathered. Its errors go to whoever calls, the other members are told to try alone.
    fn write_group(&self, mut groups: MutexGuard<'_, Groups>) -> Result<(), JournalError> {
        let group = groups.gathering;
        let (rows, members) = (mem::take(&mut groups.rows), mem::take(&mut groups.members));
        groups.gathering = group.saturating_add(1);
        groups.is_writing = true;
        drop(groups);
        let outcome = self.storage.with(|tables| tables.put(&rows));
        let mut groups = self.groups();
        groups.is_writing = false;
        groups.done = group.saturating_add(1);
        let others = members.saturating_sub(1);
        if outcome.is_err() && others > 0 {
            groups.failed.insert(group, others);
        }
        drop(groups);
        self.written.notify_all();
        outcome
    }
}

impl Groups {
    /// Whether a group was not written, asked once by each of its members but the one that tried.
    fn take_failure(&mut self, group: u64) -> bool {
        let Some(left) = self.failed.get_mut(&group) else {
            return false;
        };
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.failed.remove(&group);
        }
        true
    }
}

impl Store for CallStore {
    type Error = JournalError;

    fn put(&self, rows: &[Row]) -> Result<(), JournalError> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut groups = self.groups();
        let group = groups.gathering;
        groups.rows.extend_from_slice(rows);
        groups.members = groups.members.saturating_add(1);
        while groups.is_writing && groups.done <= group {
            groups = self.written.wait(groups).unwrap_or_else(PoisonError::into_inner);
        }
        if groups.done <= group {
            return self.write_group(groups);
        }
        let failed = groups.take_failure(group);
        drop(groups);
        if failed {
            // What others had put may be to blame, as by its size: each finds out for itself.
            return self.storage.with(|tables| tables.put(rows));
        }
        Ok(())
    }
}

/// An open database whose version and integrity have been checked.
pub(crate) struct Tables {
    database: Database,
    path: PathBuf,
}

impl Kept for Tables {
    const HINT: &'static str = CALLS_HINT;
    /// Enough for the accounts and calls at hand; inputs and outputs are written once and seldom read.
    const CACHE_BYTES: usize = 32 * 1024 * 1024;

    fn start(database: Database, path: &Path) -> Result<Self, JournalError> {
        let tables = Self {
            database,
            path: path.into(),
        };
        match tables.run(Self::claim)? {
            Some(VERSION) => Ok(tables),
            Some(found) => Err(JournalError::Version {
                path: path.into(),
                found,
                supported: VERSION,
            }),
            None => Err(corrupt::<Self>(path, "it is a file of something else".into())),
        }
    }
}

impl Tables {
    fn run<T>(&self, act: impl FnOnce(&Self) -> Result<T, redb::Error>) -> Result<T, JournalError> {
        act(self).map_err(|error| explain::<Self>(&self.path, error))
    }

    /// The file's version. A new file gets ours, and a file of ours the tables that it does not have yet; a
    /// file of something else is left as it is, and has none.
    fn claim(&self) -> Result<Option<u64>, redb::Error> {
        let transaction = write(&self.database)?;
        let is_new = transaction.list_tables()?.next().is_none();
        let found = {
            let mut meta = transaction.open_table(META)?;
            if is_new {
                meta.insert(VERSION_KEY, VERSION)?;
            }
            meta.get(VERSION_KEY)?.map(|version| version.value())
        };
        if found == Some(VERSION) {
            for table in Table::ALL {
                transaction.open_table(definition(table))?;
            }
            transaction.commit()?;
        } else {
            transaction.abort()?;
        }
        Ok(found)
    }

    fn put(&self, rows: &[Row]) -> Result<(), JournalError> {
        self.run(|tables| {
            let transaction = write(&tables.database)?;
            for Row { table, key, value } in rows {
                let mut table = transaction.open_table(definition(*table))?;
                match value {
                    Some(value) => table.insert(key.as_slice(), value.as_slice())?,
                    None => table.remove(key.as_slice())?,
                };
            }
            Ok(transaction.commit()?)
        })
    }

    /// Rows of these tables, as of one instant.
    fn read(&self, wanted: impl IntoIterator<Item = Table>, prefix: &[u8]) -> Result<Vec<Row>, JournalError> {
        self.run(|tables| {
            let transaction = tables.database.begin_read()?;
            let mut rows = Vec::new();
            for table in wanted {
                for entry in transaction.open_table(definition(table))?.range(prefix..)? {
                    let (key, value) = entry?;
                    if !key.value().starts_with(prefix) {
                        break;
                    }
                    rows.push(Row {
                        table,
                        key: key.value().to_vec(),
                        value: Some(value.value().to_vec()),
                    });
                }
            }
            Ok(rows)
        })
    }
}
