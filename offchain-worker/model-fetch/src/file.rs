//! One file on its way: `NAME.part` until its hash matches.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{FetchEvent, OnEvent, error::FetchError, hash::FileHash};

const CHUNK_BYTES: usize = 128 * 1024;

/// Often enough for a progress bar.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// A file, its known size and hash, and where it goes.
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) bytes: u64,
    hash: FileHash,
    path: PathBuf,
    pub(super) part: PathBuf,
}

impl Wanted {
    pub(super) fn new(folder: &Path, name: &str, bytes: u64, hash: FileHash) -> Self {
        Self {
            name: name.into(),
            bytes,
            hash,
            path: folder.join(name),
            part: folder.join(format!("{name}.part")),
        }
    }

    /// Whether an earlier run has brought it.
    pub(super) fn is_there(&self) -> Result<bool, FetchError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(FetchError::disk(&self.path)(error)),
        };
        let hash = |file: &File| {
            Ok(file.metadata()?.len() == self.bytes && self.hash.of(file, self.bytes)? == self.hash)
        };
        hash(&file).map_err(FetchError::disk(&self.path))
    }

    /// Its first bytes, so many or all that are here, of the whole file or of the unfinished one.
    pub(super) fn first(&self, bytes: u64) -> Result<Vec<u8>, FetchError> {
        let path = if self.part.exists() {
            &self.part
        } else {
            &self.path
        };
        let mut first = Vec::new();
        let read = File::open(path).and_then(|file| file.take(bytes).read_to_end(&mut first));
        read.map_err(FetchError::disk(path))?;
        Ok(first)
    }

    /// Bytes of it that an earlier attempt has left.
    pub(super) fn part_bytes(&self) -> u64 {
        fs::metadata(&self.part).map_or(0, |metadata| metadata.len())
    }

    /// The unfinished file, to go on at its end or to start again.
    pub(super) fn open_part(&self, resume: bool) -> Result<File, FetchError> {
        let mut options = OpenOptions::new();
        options.create(true);
        if resume {
            options.append(true)
        } else {
            options.write(true).truncate(true)
        };
        options.open(&self.part).map_err(FetchError::disk(&self.part))
    }

    /// Deletes the unfinished file.
    pub(super) fn discard(&self) {
        // It may not be there at all.
        fs::remove_file(&self.part).ok();
    }

    pub(super) fn wrong_size(&self, actual: u64) -> FetchError {
        FetchError::WrongSize {
            name: self.name.clone(),
            expected: self.bytes,
            actual,
        }
    }

    /// Gives the complete file its name, if it is the right one; deletes it if not.
    pub(super) fn settle(&self) -> Result<(), FetchError> {
        let disk = || FetchError::disk(&self.part);
        let file = File::open(&self.part).map_err(disk())?;
        file.sync_all().map_err(disk())?;
        let actual = self.hash.of(&file, self.bytes).map_err(disk())?;
        if actual != self.hash {
            self.discard();
            return Err(FetchError::WrongHash {
                name: self.name.clone(),
                expected: self.hash,
                actual,
            });
        }
        fs::rename(&self.part, &self.path).map_err(FetchError::disk(&self.path))
    }
}

/// How receiving ended when it did not fail for good.
pub(super) enum Received {
    /// All bytes are there.
    All,
    /// The sender stopped early.
    CutOff(String),
}

/// Writes what `from` gives, starting with `done` bytes present, until there are `until`; takes no byte more
/// than the file is to have.
pub(super) fn receive(
    wanted: &Wanted,
    mut from: impl Read,
    mut into: impl Write,
    (mut done, until): (u64, u64),
    on_event: OnEvent<'_>,
) -> Result<Received, FetchError> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut reported: Option<Instant> = None;
    loop {
        let due = reported.is_none_or(|at| at.elapsed() >= REPORT_INTERVAL);
        if due || done == wanted.bytes {
            reported = Some(Instant::now());
            on_event(FetchEvent::Progress {
                file: wanted.name.clone(),
                done,
                total: wanted.bytes,
            });
        }
        let read = match from.read(&mut chunk) {
            Ok(0) if done >= until => return Ok(Received::All),
            Ok(0) => return Ok(Received::CutOff(format!("it ended after {done} bytes"))),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Ok(Received::CutOff(error.to_string())),
        };
        done = done.saturating_add(read as u64);
        if done > wanted.bytes {
            return Err(wanted.wrong_size(done));
        }
        into.write_all(&chunk[..read])
            .map_err(FetchError::disk(&wanted.part))?;
        if done >= until && until < wanted.bytes {
            return Ok(Received::All);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use surety_models::file_hash;

    fn wanted(folder: &Path, content: &[u8]) -> Wanted {
        let hash = FileHash::Blake2(file_hash(content));
        Wanted::new(folder, "file", content.len() as u64, hash)
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = wanted(folder.path(), b"something");
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let received = receive(&wanted, &b"something"[..], full, (0, 9), &mut |_| ());
        let error = received.err().unwrap();
        assert!(matches!(error, FetchError::DiskFull { .. }), "{error}");
        assert!(error.is_local());
    }

    #[test]
    fn no_byte_more_than_wanted_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = wanted(folder.path(), b"four");
        let mut into = Vec::new();
        let received = receive(&wanted, &b"fourteen"[..], &mut into, (0, 4), &mut |_| ());
        assert!(matches!(
            received,
            Err(FetchError::WrongSize {
                expected: 4,
                actual: 8,
                ..
            })
        ));
        assert!(into.is_empty());
    }

    #[test]
    fn only_the_right_bytes_get_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = wanted(folder.path(), b"right");
        wanted.open_part(false).unwrap().write_all(b"wrong").unwrap();
        assert!(matches!(wanted.settle(), Err(FetchError::WrongHash { .. })));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        wanted.open_part(false).unwrap().write_all(b"rig").unwrap();
        assert_eq!(wanted.part_bytes(), 3);
        wanted.open_part(true).unwrap().write_all(b"ht").unwrap();
        assert!(!wanted.is_there().unwrap());
        wanted.settle().unwrap();
        assert!(wanted.is_there().unwrap());
    }
}
