//! Blobs on disk, named by their content hash.
//!
//! Layout: `DIR/ab/abcd…` for blobs (`ab` is the first byte of the hash), `DIR/tmp/` for blobs being written.
//! A blob appears under its name only when all of it is on disk. When the quota is reached the oldest blobs
//! that nobody has pinned make room.
//!
//! The index in memory is locked for moments only, never while the disk is at work: whoever asks what is
//! here, the event loop among them, is not kept waiting by a disk that syncs. What is being written has its
//! room reserved, and hashes whose files are just being written or removed are marked, so that two threads
//! never work on one file.

mod error;

use std::{
    collections::{HashMap, HashSet},
    fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use surety_proofs::content_hash;
use surety_types::ContentHash;

pub use self::error::StoreError;
use self::error::io_error;
use crate::{outline, wire::CHUNK_BYTES};

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

/// What is known of one blob without reading it.
struct Entry {
    bytes: u64,
    /// Orders blobs by age; larger is younger. No two entries ever have the same.
    age: u64,
    pins: u32,
    /// The content hashes of its chunks; none: not yet asked for since the store was opened.
    outline: Option<Arc<[ContentHash]>>,
}

#[derive(Default)]
struct Index {
    entries: HashMap<ContentHash, Entry>,
    /// Blobs whose files are just being written or removed. They have no entry.
    busy: HashSet<ContentHash>,
    /// Bytes of all entries and of what is being written.
    total: u64,
    next_age: u64,
}

impl Index {
    fn insert(&mut self, hash: ContentHash, bytes: u64, pins: u32, outline: Option<Arc<[ContentHash]>>) {
        let age = self.next_age;
        self.next_age += 1;
        let entry = Entry {
            bytes,
            age,
            pins,
            outline,
        };
        self.entries.insert(hash, entry);
    }
}

type WriteFile = fn(&Path, &[u8]) -> io::Result<()>;

/// A directory of blobs. One process owns it at a time.
pub struct BlobStore {
    dir: PathBuf,
    limits: StoreLimits,
    index: Mutex<Index>,
    /// Told when something is no longer busy.
    settled: Condvar,
    next_temp: AtomicU64,
    pub(crate) write_file: WriteFile,
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
        own_folder(&dir).map_err(|e| io_error(&dir, 0, e))?;
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
            settled: Condvar::new(),
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
        self.put_with(bytes, 0)
    }

    /// The same, and pins it: no other blob comes in between and takes its room.
    ///
    /// # Errors
    /// As for [`Self::put`].
    pub fn put_pinned(&self, bytes: &[u8]) -> Result<ContentHash, StoreError> {
        self.put_with(bytes, 1)
    }

    fn put_with(&self, bytes: &[u8], pins: u32) -> Result<ContentHash, StoreError> {
        let size = bytes.len() as u64;
        if size > self.limits.blob_bytes_max {
            return Err(StoreError::TooLarge {
                bytes: size,
                max: self.limits.blob_bytes_max,
            });
        }
        let outline: Arc<[ContentHash]> = outline::outline(bytes).into();
        let hash = outline::root(&outline).unwrap_or_default();
        let Some(victims) = self.reserve(&hash, size, pins)? else {
            return Ok(hash);
        };
        let written = self.remove_all(victims).and_then(|()| self.write(&hash, bytes));
        let mut index = self.index();
        index.busy.remove(&hash);
        match &written {
            Ok(()) => index.insert(hash, size, pins, Some(outline)),
            Err(_) => index.total = index.total.saturating_sub(size),
        }
        self.settled.notify_all();
        written.map(|()| hash)
    }

    /// Takes room for a blob that is to be written, and says which others have to go for it; nothing when it
    /// is here. Waits while threads are busy with this blob, or with as much room as is missing.
    fn reserve(
        &self,
        hash: &ContentHash,
        size: u64,
        pins: u32,
    ) -> Result<Option<Vec<(ContentHash, Entry)>>, StoreError> {
        let mut index = self.index();
        loop {
            if let Some(entry) = index.entries.get_mut(hash) {
                entry.pins = entry.pins.saturating_add(pins);
                return Ok(None);
            }
            if !index.busy.contains(hash) {
                match self.choose_victims(&mut index, size) {
                    Ok(victims) => {
                        index.busy.insert(*hash);
                        index.total = index.total.saturating_add(size);
                        return Ok(Some(victims));
                    }
                    Err(e) if index.busy.is_empty() => return Err(e),
                    Err(_) => {}
                }
            }
            index = self.settled.wait(index).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A whole blob, checked against its hash.
    ///
    /// # Errors
    /// When it is not here, or damaged: then it is removed, so that it can be fetched again.
    pub fn get(&self, hash: &ContentHash) -> Result<Vec<u8>, StoreError> {
        let (size, age) = self.look_up(hash)?;
        let path = self.path(hash);
        let read = fs::read(&path);
        match read {
            Ok(bytes) if content_hash(&bytes) == *hash => Ok(bytes),
            Ok(_) => {
                self.forget(hash, age);
                Err(StoreError::Damaged(*hash))
            }
            Err(e) => Err(self.unreadable(hash, age, size, e)),
        }
    }

    /// Up to `len` bytes from `offset` on, and the blob's size. Not checked: whoever puts the parts together
    /// does that.
    ///
    /// # Errors
    /// When the blob is not here or ends before `offset`.
    pub fn read_part(&self, hash: &ContentHash, offset: u64, len: u32) -> Result<(Vec<u8>, u64), StoreError> {
        let (total, age) = self.look_up(hash)?;
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
        let bytes = read().map_err(|e| self.unreadable(hash, age, u64::from(len), e))?;
        Ok((bytes, total))
    }

    /// The content hashes of a blob's chunks, and its size.
    ///
    /// # Errors
    /// When it is not here, or damaged: then it is removed.
    pub(crate) fn outline(&self, hash: &ContentHash) -> Result<(Arc<[ContentHash]>, u64), StoreError> {
        let (size, age) = self.look_up(hash)?;
        if let Some(outline) = self.index().entries.get(hash).and_then(|e| e.outline.clone()) {
            return Ok((outline, size));
        }
        let path = self.path(hash);
        let read = || -> io::Result<Vec<ContentHash>> {
            let (mut file, mut outline) = (File::open(&path)?, Vec::new());
            let mut chunk = Vec::new();
            loop {
                chunk.clear();
                let read = (&mut file).take(u64::from(CHUNK_BYTES)).read_to_end(&mut chunk)?;
                if read > 0 || outline.is_empty() {
                    outline.push(content_hash(&chunk));
                }
                if read < CHUNK_BYTES as usize {
                    return Ok(outline);
                }
            }
        };
        let outline: Arc<[ContentHash]> = read().map_err(|e| self.unreadable(hash, age, size, e))?.into();
        if outline::root(&outline) != Some(*hash) {
            self.forget(hash, age);
            return Err(StoreError::Damaged(*hash));
        }
        if let Some(entry) = self.index().entries.get_mut(hash) {
            entry.outline = Some(outline.clone());
        }
        Ok((outline, size))
    }

    /// Undoes one [`Self::put_pinned`]. Unknown blobs are ignored.
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

    /// A blob's size and age.
    fn look_up(&self, hash: &ContentHash) -> Result<(u64, u64), StoreError> {
        let index = self.index();
        let entry = index.entries.get(hash).ok_or(StoreError::NotFound(*hash))?;
        Ok((entry.bytes, entry.age))
    }

    /// What it means that a blob cannot be read that was here a moment ago.
    fn unreadable(&self, hash: &ContentHash, age: u64, bytes: u64, error: io::Error) -> StoreError {
        if error.kind() == io::ErrorKind::NotFound {
            self.forget(hash, age);
            return StoreError::NotFound(*hash);
        }
        io_error(&self.path(hash), bytes, error)
    }

    /// Removes the blob of this age. One that has been stored anew since then is another.
    fn forget(&self, hash: &ContentHash, age: u64) {
        let mut index = self.index();
        if index.entries.get(hash).is_none_or(|entry| entry.age != age) {
            return;
        }
        take(&mut index, hash);
        index.busy.insert(*hash);
        drop(index);
        if let Err(e) = fs::remove_file(self.path(hash)) {
            tracing::debug!(error = %e, "damaged blob was already gone");
        }
        self.index().busy.remove(hash);
        self.settled.notify_all();
    }

    /// Takes the oldest blobs that nobody has pinned out of the index, until there is room for so many bytes.
    fn choose_victims(&self, index: &mut Index, bytes: u64) -> Result<Vec<(ContentHash, Entry)>, StoreError> {
        let max = self.limits.total_bytes_max;
        let mut victims = Vec::new();
        while index.total.saturating_add(bytes) > max {
            let oldest = index
                .entries
                .iter()
                .filter(|(_, e)| e.pins == 0)
                .min_by_key(|(_, e)| e.age)
                .map(|(hash, _)| *hash);
            let victim = oldest.and_then(|hash| Some((hash, take(index, &hash)?)));
            let Some(victim) = victim else {
                for (hash, entry) in victims {
                    put_back(index, hash, entry);
                }
                return Err(StoreError::QuotaExceeded { bytes, max });
            };
            victims.push(victim);
        }
        index.busy.extend(victims.iter().map(|(hash, _)| *hash));
        Ok(victims)
    }

    /// Removes the files of blobs that are out of the index; what cannot be removed is put back into it.
    fn remove_all(&self, victims: Vec<(ContentHash, Entry)>) -> Result<(), StoreError> {
        let mut result = Ok(());
        for (hash, entry) in victims {
            let path = self.path(&hash);
            let removed = match fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(io_error(&path, 0, e)),
                _ => Ok(()),
            };
            let mut index = self.index();
            index.busy.remove(&hash);
            if removed.is_err() {
                put_back(&mut index, hash, entry);
                result = removed;
            }
        }
        self.settled.notify_all();
        result
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
            // A half-written file would take the room that is missing; when it is already gone that is as
            // good.
            fs::remove_file(&temp).ok();
            io_error(&path, size, e)
        })
    }
}

fn take(index: &mut Index, hash: &ContentHash) -> Option<Entry> {
    let entry = index.entries.remove(hash)?;
    index.total = index.total.saturating_sub(entry.bytes);
    Some(entry)
}

fn put_back(index: &mut Index, hash: ContentHash, entry: Entry) {
    index.total = index.total.saturating_add(entry.bytes);
    index.entries.insert(hash, entry);
}

/// A folder that no other user of the machine reads: inputs and outputs are their clients'.
fn own_folder(dir: &Path) -> io::Result<()> {
    const OWNER_ONLY: u32 = 0o700;
    DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(dir)?;
    fs::set_permissions(dir, Permissions::from_mode(OWNER_ONLY))
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

pub(crate) fn write_and_sync(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
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
        index.total = index.total.saturating_add(bytes);
        index.insert(hash, bytes, 0, None);
    }
    Ok(index)
}

#[cfg(test)]
mod tests;
