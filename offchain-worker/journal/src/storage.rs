//! The tables, and the only code that touches the database.

use std::{
    fs::{File, OpenOptions},
    io,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};
use surety_types::TaskId;
use surety_worker_core::{BlockNumber, Record};

use crate::{
    error::{CORRUPT_HINT, JournalError},
    format,
};

/// Grows with every change of the layout, and with new kinds of records. 2: audits and moves. 3: answers for
/// committees, and inputs that are missed and demanded; programs that said 2 wrote those, too.
pub(crate) const VERSION: u64 = 4;
/// The oldest version whose records are read as they are.
const VERSION_MIN: u64 = 1;
/// How many finished tasks are remembered. One is needed only until the chain no longer lists its task, so
/// that those that finished first can go.
pub(crate) const FINISHED_MAX: u64 = 4096;
/// The journal is a few kilobytes; redb's default would be a gigabyte.
const CACHE_BYTES: usize = 4 * 1024 * 1024;

pub(crate) const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
pub(crate) const VERSION_KEY: &str = "version";
/// Records of tasks that are not finished.
pub(crate) const OPEN: TableDefinition<format::Key, &[u8]> = TableDefinition::new("open");
/// Finished tasks, and when they finished.
const FINISHED: TableDefinition<TaskId, BlockNumber> = TableDefinition::new("finished");

type OpenDatabase = dyn Fn(&Path) -> Result<Database, redb::Error> + Send + Sync;

/// What a database file holds.
pub(crate) trait Kept: Sized {
    /// What to do where it is damaged.
    const HINT: &'static str;
    /// Memory for its pages.
    const CACHE_BYTES: usize;

    /// Takes it up, or begins it, and checks it.
    fn start(database: Database, path: &Path) -> Result<Self, JournalError>;
}

/// Opens the database, now and after a failed write.
pub(crate) struct Opener<S> {
    path: PathBuf,
    open: Box<OpenDatabase>,
    kept: PhantomData<fn() -> S>,
}

impl<S: Kept> Opener<S> {
    pub fn file(path: &Path) -> Self {
        Self::new(path, |path| {
            let file = open_file(path)?;
            Ok(builder().set_cache_size(S::CACHE_BYTES).create_file(file)?)
        })
    }

    pub fn new(
        path: &Path,
        open: impl Fn(&Path) -> Result<Database, redb::Error> + Send + Sync + 'static,
    ) -> Self {
        Self {
            path: path.into(),
            open: Box::new(open),
            kept: PhantomData,
        }
    }

    fn open(&self) -> Result<S, JournalError> {
        self.guarded(|| {
            let mut database = (self.open)(&self.path).map_err(|error| explain::<S>(&self.path, error))?;
            let is_sound = database.check_integrity();
            if !is_sound.map_err(|error| explain::<S>(&self.path, error.into()))? {
                return Err(corrupt::<S>(&self.path, "its pages fail their checksums".into()));
            }
            S::start(database, &self.path)
        })
    }

    /// Turns a panic into an error: redb may panic over a page that makes no sense.
    fn guarded<T>(&self, act: impl FnOnce() -> Result<T, JournalError>) -> Result<T, JournalError> {
        catch_unwind(AssertUnwindSafe(act))
            .unwrap_or_else(|_| Err(corrupt::<S>(&self.path, "the database gave up on it".into())))
    }
}

/// A file that is opened anew after a failed write, which undoes what was half written.
pub(crate) struct Reopened<S> {
    opener: Opener<S>,
    storage: Mutex<Option<S>>,
}

impl<S: Kept> Reopened<S> {
    pub fn new(opener: Opener<S>) -> Result<Self, JournalError> {
        let storage = Mutex::new(Some(opener.open()?));
        Ok(Self { opener, storage })
    }

    pub fn with<T>(&self, act: impl FnOnce(&mut S) -> Result<T, JournalError>) -> Result<T, JournalError> {
        let mut guard = self.storage.lock().unwrap_or_else(PoisonError::into_inner);
        let mut storage = match guard.take() {
            Some(storage) => storage,
            None => self.opener.open()?,
        };
        let outcome = self.opener.guarded(|| act(&mut storage));
        if outcome.is_ok() {
            *guard = Some(storage);
        }
        outcome
    }
}

pub(crate) fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Opens or creates the file, readable by its owner alone: it holds salts that are secret until they are
/// revealed.
fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let file = options.create_new(true).open(path)?;
            // The file's name has to be durable too.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
            Ok(file)
        }
        other => other,
    }
}

/// What an error of the database means.
pub(crate) fn explain<S: Kept>(path: &Path, error: redb::Error) -> JournalError {
    match error {
        redb::Error::DatabaseAlreadyOpen => JournalError::Locked { path: path.into() },
        redb::Error::Io(source) => explain_io::<S>(path, source),
        other => corrupt::<S>(path, other.to_string()),
    }
}

fn explain_io<S: Kept>(path: &Path, source: io::Error) -> JournalError {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            JournalError::DiskFull { path: path.into() }
        }
        // The database reads only within what it has written before.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => corrupt::<S>(path, source.to_string()),
        _ => JournalError::Io {
            path: path.into(),
            source,
        },
    }
}

pub(crate) fn corrupt<S: Kept>(path: &Path, what: String) -> JournalError {
    JournalError::Corrupt {
        path: path.into(),
        what,
        hint: S::HINT,
    }
}

/// A transaction that is durable once it is committed.
pub(crate) fn write(database: &Database) -> Result<redb::WriteTransaction, redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    Ok(transaction)
}

/// An open database whose version and integrity have been checked.
pub(crate) struct Storage {
    database: Database,
    path: PathBuf,
    next: u64,
}

impl Kept for Storage {
    const HINT: &'static str = CORRUPT_HINT;
    const CACHE_BYTES: usize = CACHE_BYTES;

    fn start(database: Database, path: &Path) -> Result<Self, JournalError> {
        let mut storage = Self {
            database,
            path: path.into(),
            next: 0,
        };
        let version = storage.run(|storage| storage.claim_version())?;
        if !(VERSION_MIN..=VERSION).contains(&version) {
            return Err(JournalError::Version {
                path: path.into(),
                found: version,
                supported: VERSION,
            });
        }
        storage.next = storage.run(|storage| storage.first_free())?;
        // Reads every record once, so that damage shows now.
        let records = storage.load()?;
        tracing::debug!(path = %path.display(), records = records.len(), "journal opened");
        Ok(storage)
    }
}

impl Storage {
    fn run<T>(&self, act: impl FnOnce(&Self) -> Result<T, redb::Error>) -> Result<T, JournalError> {
        act(self).map_err(|error| explain::<Self>(&self.path, error))
    }

    /// The file's version. A new file gets ours, and its tables; one that we can go on with gets ours too, so
    /// that no older program takes it up.
    fn claim_version(&self) -> Result<u64, redb::Error> {
        let transaction = write(&self.database)?;
        let found = {
            let mut meta = transaction.open_table(META)?;
            let found = meta.get(VERSION_KEY)?.map(|version| version.value());
            if found.is_none_or(|found| (VERSION_MIN..VERSION).contains(&found)) {
                meta.insert(VERSION_KEY, VERSION)?;
            }
            found
        };
        if found.is_some_and(|found| !(VERSION_MIN..VERSION).contains(&found)) {
            transaction.abort()?;
        } else {
            transaction.open_table(OPEN)?;
            transaction.open_table(FINISHED)?;
            transaction.commit()?;
        }
        Ok(found.unwrap_or(VERSION))
    }

    fn first_free(&self) -> Result<u64, redb::Error> {
        let transaction = self.database.begin_read()?;
        let table = transaction.open_table(OPEN)?;
        let mut next = 0;
        for entry in table.iter()? {
            let (key, _) = entry?;
            next = next.max(key.value().1.saturating_add(1));
        }
        Ok(next)
    }

    pub fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        self.next = self.run(|storage| storage.append_from(storage.next, records))?;
        Ok(())
    }

    fn append_from(&self, mut next: u64, records: &[Record]) -> Result<u64, redb::Error> {
        let transaction = write(&self.database)?;
        {
            let mut open = transaction.open_table(OPEN)?;
            let mut finished = transaction.open_table(FINISHED)?;
            for record in records {
                if let Record::Finished { task, at } = record {
                    open.retain_in(of_task(*task), |_, _| false)?;
                    finished.insert(*task, *at)?;
                } else {
                    if is_promise(record) {
                        // Finished by mistake, and taken up again: the new promise holds.
                        finished.remove(record.task())?;
                    }
                    let key = (record.task(), next);
                    open.insert(key, format::encode(key, record).as_slice())?;
                    next = next.saturating_add(1);
                }
            }
            drop_oldest(&mut finished)?;
        }
        transaction.commit()?;
        Ok(next)
    }

    pub fn load(&self) -> Result<Vec<Record>, JournalError> {
        let (finished, open) = self.run(|storage| storage.read_all())?;
        let mut records: Vec<_> = finished
            .into_iter()
            .map(|(task, at)| Record::Finished { task, at })
            .collect();
        for (key, bytes) in open {
            let record = format::decode(key, &bytes).map_err(|what| corrupt::<Self>(&self.path, what))?;
            records.push(record);
        }
        Ok(records)
    }

    #[allow(clippy::type_complexity)] // The two tables, once.
    fn read_all(&self) -> Result<(Vec<(TaskId, BlockNumber)>, Vec<(format::Key, Vec<u8>)>), redb::Error> {
        let transaction = self.database.begin_read()?;
        let mut finished = Vec::new();
        for entry in transaction.open_table(FINISHED)?.iter()? {
            let (task, at) = entry?;
            finished.push((task.value(), at.value()));
        }
        let mut open = Vec::new();
        for entry in transaction.open_table(OPEN)?.iter()? {
            let (key, bytes) = entry?;
            open.push((key.value(), bytes.value().to_vec()));
        }
        Ok((finished, open))
    }
}

/// Whether a record binds us to something, rather than noting how far it is.
fn is_promise(record: &Record) -> bool {
    matches!(
        record,
        Record::BidMade { .. }
            | Record::ResultMade { .. }
            | Record::AuditMade { .. }
            | Record::ItemsAudited { .. }
            | Record::AuditCompared { .. }
            | Record::AuditServed { .. }
            | Record::MoveMade { .. }
            | Record::VoteMade { .. }
            | Record::InputDemandMade { .. }
    )
}

/// Keeps the tasks that finished last: those may still be listed by a node that lags behind, whatever their
/// numbers.
fn drop_oldest(finished: &mut redb::Table<TaskId, BlockNumber>) -> Result<(), redb::Error> {
    let surplus = redb::ReadableTableMetadata::len(finished)?.saturating_sub(FINISHED_MAX);
    if surplus == 0 {
        return Ok(());
    }
    let mut by_age = Vec::new();
    for entry in finished.iter()? {
        let (task, at) = entry?;
        by_age.push((at.value(), task.value()));
    }
    by_age.sort_unstable();
    let surplus = usize::try_from(surplus).unwrap_or(usize::MAX);
    for (_, task) in by_age.into_iter().take(surplus) {
        finished.remove(task)?;
    }
    Ok(())
}

fn of_task(task: TaskId) -> std::ops::RangeInclusive<format::Key> {
    (task, 0)..=(task, u64::MAX)
}
