//! Blobs on disk, named by their content hash.
//!
//! Layout: `DIR/ab/abcd…` for blobs (`ab` is the first byte of the hash), `DIR/tmp/` for blobs being written. A blob
//! appears under its name only when all of it is on disk. When the quota is reached the oldest blobs that nobody has
//! pinned make room.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicU64, Ordering},
        Mutex, MutexGuard, PoisonError,
    },
    time::SystemTime,
};

use surety_types::ContentHash;
use surety_verification::content_hash;

/// What a store may take up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Largest blob, in bytes.
    pub blob_bytes_max: u64,
    /// All blobs together, in bytes.
    pub total_bytes_max: u64,
}

impl Default for StoreLimits {
    /// 64 MiB a blob: four times the largest input a dev chain takes. 4 GiB in all.
    fn default() -> Self {
        Self {
            blob_bytes_max: 64 << 20,
            total_bytes_max: 4 << 30,
        }
    }
}

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
    #[error("blob store is full: {bytes} bytes more would exceed its quota of {max} bytes, and what it holds is in use")]
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

/// What is known of one blob without reading it.
struct Entry {
    bytes: u64,
    /// Orders blobs by age; larger is younger.
    age: u64,
    pins: u32,
}

#[derive(Default)]
struct Index {
    entries: HashMap<ContentHash, Entry>,
    total: u64,
    next_age: u64,
}

type WriteFile = fn(&Path, &[u8]) -> io::Result<()>;

/// A directory of blobs. One process owns it at a time.
pub struct BlobStore {
    dir: PathBuf,
    limits: StoreLimits,
    index: Mutex<Index>,
    next_temp: AtomicU64,
    write_file: WriteFile,
    /// Held for as long as the store is open.
    _lock: File,
}

impl BlobStore {
    /// Opens `dir`, creating it when missing, and removes what an earlier process left half written.
    ///
    /// # Errors
    /// When the directory cannot be made or read, or another process has it open.
    pub fn open(dir: impl Into<PathBuf>, limits: StoreLimits) -> Result<Self, StoreError> {
        let dir = dir.into();
        fs::create_dir_all(&dir).map_err(|e| io_error(&dir, 0, e))?;
        let lock = lock(&dir)?;
        let temp = dir.join("tmp");
        if temp.exists() {
            fs::remove_dir_all(&temp).map_err(|e| io_error(&temp, 0, e))?;
        }
        fs::create_dir_all(&temp).map_err(|e| io_error(&temp, 0, e))?;
        let index = scan(&dir)?;
        Ok(Self {
            dir,
            limits,
            index: Mutex::new(index),
            next_temp: AtomicU64::new(0),
            write_file: write_and_sync,
            _lock: lock,
        })
    }

    /// The limits it was opened with.
    pub fn limits(&self) -> StoreLimits {
        self.limits
    }

    /// Bytes of all blobs.
    pub fn total_bytes(&self) -> u64 {
        self.index().total
    }

    /// The size of a blob, if it is here.
    pub fn size(&self, hash: &ContentHash) -> Option<u64> {
        self.index().entries.get(hash).map(|e| e.bytes)
    }

    /// Stores a blob and returns its hash. Storing it again changes nothing.
    ///
    /// # Errors
    /// When it is too large, or there is no room; nothing is changed then, except that old blobs may be gone.
    pub fn put(&self, bytes: &[u8]) -> Result<ContentHash, StoreError> {
        let size = bytes.len() as u64;
        if size > self.limits.blob_bytes_max {
            return Err(StoreError::TooLarge {
                bytes: size,
                max: self.limits.blob_bytes_max,
            });
        }
        let hash = content_hash(bytes);
        // Held while writing: the quota is then exact, and writers of one blob do not meet.
        let mut index = self.index();
        if index.entries.contains_key(&hash) {
            return Ok(hash);
        }
        self.make_room(&mut index, size)?;
        self.write(&hash, bytes)?;
        let age = index.next_age;
        index.next_age += 1;
        index.total += size;
        index.entries.insert(
            hash,
            Entry {
                bytes: size,
                age,
                pins: 0,
            },
        );
        Ok(hash)
    }

    /// A whole blob, checked against its hash.
    ///
    /// # Errors
    /// When it is not here, or damaged: then it is removed, so that it can be fetched again.
    pub fn get(&self, hash: &ContentHash) -> Result<Vec<u8>, StoreError> {
        let size = self.size(hash).ok_or(StoreError::NotFound(*hash))?;
        let path = self.path(hash);
        let read = fs::read(&path);
        match read {
            Ok(bytes) if content_hash(&bytes) == *hash => Ok(bytes),
            Ok(_) => {
                self.forget(hash);
                Err(StoreError::Damaged(*hash))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                self.forget(hash);
                Err(StoreError::NotFound(*hash))
            }
            Err(e) => Err(io_error(&path, size, e)),
        }
    }

    /// Up to `len` bytes from `offset` on, and the blob's size. Not checked: whoever puts the parts together does that.
    ///
    /// # Errors
    /// When the blob is not here or ends before `offset`.
    pub fn read_part(&self, hash: &ContentHash, offset: u64, len: u32) -> Result<(Vec<u8>, u64), StoreError> {
        let total = self.size(hash).ok_or(StoreError::NotFound(*hash))?;
        if offset > total || (offset == total && total > 0) {
            return Err(StoreError::OutOfRange { offset, total });
        }
        let path = self.path(hash);
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(offset))?;
            let mut bytes = Vec::new();
            file.take(u64::from(len)).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|e| io_error(&path, u64::from(len), e))?;
        Ok((bytes, total))
    }

    /// Keeps a blob from making room for others until it is unpinned as often.
    ///
    /// # Errors
    /// When it is not here.
    pub fn pin(&self, hash: &ContentHash) -> Result<(), StoreError> {
        let mut index = self.index();
        let entry = index.entries.get_mut(hash).ok_or(StoreError::NotFound(*hash))?;
        entry.pins = entry.pins.saturating_add(1);
        Ok(())
    }

    /// Undoes one [`Self::pin`]. Unknown blobs are ignored.
    pub fn unpin(&self, hash: &ContentHash) {
        if let Some(entry) = self.index().entries.get_mut(hash) {
            entry.pins = entry.pins.saturating_sub(1);
        }
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        // The index is updated in single steps that cannot panic half way: a poisoned lock holds good data.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, hash: &ContentHash) -> PathBuf {
        let name = hex::encode(hash.0);
        self.dir.join(name.get(..2).unwrap_or_default()).join(name)
    }

    fn forget(&self, hash: &ContentHash) {
        let mut index = self.index();
        remove(&mut index, hash);
        drop(index);
        if let Err(e) = fs::remove_file(self.path(hash)) {
            tracing::debug!(error = %e, "damaged blob was already gone");
        }
    }

    fn make_room(&self, index: &mut Index, bytes: u64) -> Result<(), StoreError> {
        let max = self.limits.total_bytes_max;
        while index.total.saturating_add(bytes) > max {
            let oldest = index
                .entries
                .iter()
                .filter(|(_, e)| e.pins == 0)
                .min_by_key(|(_, e)| e.age)
                .map(|(hash, _)| *hash);
            let Some(hash) = oldest else {
                return Err(StoreError::QuotaExceeded { bytes, max });
            };
            let path = self.path(&hash);
            match fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(io_error(&path, 0, e)),
                _ => remove(index, &hash),
            }
        }
        Ok(())
    }

    fn write(&self, hash: &ContentHash, bytes: &[u8]) -> Result<(), StoreError> {
        let size = bytes.len() as u64;
        let number = self.next_temp.fetch_add(1, Ordering::Relaxed);
        let temp = self.dir.join("tmp").join(number.to_string());
        let path = self.path(hash);
        let parent = path.parent().unwrap_or(&self.dir);
        let result = (self.write_file)(&temp, bytes)
            .and_then(|()| fs::create_dir_all(parent))
            .and_then(|()| fs::rename(&temp, &path))
            // The name must survive a power cut as well as the contents.
            .and_then(|()| File::open(parent)?.sync_all());
        result.map_err(|e| {
            // A half-written file would take the room that is missing; when it is already gone that is as good.
            fs::remove_file(&temp).ok();
            io_error(&path, size, e)
        })
    }
}

fn remove(index: &mut Index, hash: &ContentHash) {
    if let Some(entry) = index.entries.remove(hash) {
        index.total = index.total.saturating_sub(entry.bytes);
    }
}

/// The system releases it when the process ends, however it ends.
fn lock(dir: &Path) -> Result<File, StoreError> {
    let path = dir.join("lock");
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(|e| io_error(&path, 0, e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse { path: dir.to_owned() }),
        Err(TryLockError::Error(e)) => Err(io_error(&path, 0, e)),
    }
}

fn write_and_sync(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn io_error(path: &Path, bytes: u64, source: io::Error) -> StoreError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull { bytes, path },
        _ => StoreError::Io { path, source },
    }
}

/// Finds the blobs of an earlier process, oldest first. Foreign files are left alone.
fn scan(dir: &Path) -> Result<Index, StoreError> {
    let mut found: Vec<(SystemTime, ContentHash, u64)> = Vec::new();
    let list = |path: &Path| -> Result<Vec<fs::DirEntry>, StoreError> {
        fs::read_dir(path)
            .and_then(|entries| entries.collect())
            .map_err(|e| io_error(path, 0, e))
    };
    for folder in list(dir)? {
        let path = folder.path();
        if folder.file_name().len() != 2 || !path.is_dir() {
            continue;
        }
        for file in list(&path)? {
            let mut hash = [0u8; 32];
            let name = file.file_name();
            if hex::decode_to_slice(name.as_encoded_bytes(), &mut hash).is_err() {
                continue;
            }
            let meta = file.metadata().map_err(|e| io_error(&file.path(), 0, e))?;
            let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            found.push((modified, ContentHash::from(hash), meta.len()));
        }
    }
    found.sort();
    let mut index = Index::default();
    for (_, hash, bytes) in found {
        let age = index.next_age;
        index.next_age += 1;
        index.total = index.total.saturating_add(bytes);
        index.entries.insert(hash, Entry { bytes, age, pins: 0 });
    }
    Ok(index)
}

#[cfg(test)]
mod tests;
