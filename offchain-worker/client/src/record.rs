//! What a client remembers of a task that it has posted, so that `surety task watch` can go on with it.
//!
//! A task has no number before it is in a block. Until then it is remembered by its input.

use std::{
    fmt::Display,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use surety_chain_client::Hash;
use surety_types::{ContentHash, TaskId};

use crate::error::{ClientError, Result};

/// Behind the hash of an input, in the name of a file.
const POSTING: &str = ".posting";

/// One posted task: `HOME/tasks/GENESIS-TASK.json`, and until it has a number `GENESIS-INPUT.posting.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRecord {
    /// When it was posted, in milliseconds since 1970.
    pub posted_unix_ms: u64,
    /// Where its input is served.
    pub listen: Vec<String>,
}

impl ClientRecord {
    /// Task numbers start again on another chain: the genesis hash is part of the name.
    fn path(home: &Path, genesis: &Hash, of: impl Display) -> PathBuf {
        let chain = hex::encode(genesis.as_bytes().get(..4).unwrap_or_default());
        home.join("tasks").join(format!("{chain}-{of}.json"))
    }

    fn path_of_posting(home: &Path, genesis: &Hash, input: &ContentHash) -> PathBuf {
        let input = hex::encode(input.as_bytes());
        Self::path(home, genesis, format_args!("{input}{POSTING}"))
    }

    /// The record of a task; nothing where it was not posted from this home.
    ///
    /// # Errors
    /// When the file cannot be read, or is no record.
    pub fn load(home: &Path, genesis: &Hash, task: TaskId) -> Result<Option<Self>> {
        Self::read(Self::path(home, genesis, task))
    }

    /// The record of a task that was about to be posted, by its input.
    ///
    /// # Errors
    /// When the file cannot be read, or is no record.
    pub fn load_posting(home: &Path, genesis: &Hash, input: &ContentHash) -> Result<Option<Self>> {
        Self::read(Self::path_of_posting(home, genesis, input))
    }

    fn read(path: PathBuf) -> Result<Option<Self>> {
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(ClientError::file(path)(e)),
        };
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|e| ClientError::file(path)(e.into()))
    }

    /// The newest task that was posted from this home.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn newest(home: &Path, genesis: &Hash) -> Result<Option<TaskId>> {
        let numbers = Self::names(home, genesis)?.into_iter();
        Ok(numbers.filter_map(|name| name.parse().ok()).max())
    }

    /// Inputs of tasks of which it is not known whether they were posted.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn postings(home: &Path, genesis: &Hash) -> Result<Vec<ContentHash>> {
        let input = |name: String| {
            let bytes = hex::decode(name.strip_suffix(POSTING)?).ok()?;
            (bytes.len() == 32).then(|| ContentHash::from_slice(&bytes))
        };
        Ok(Self::names(home, genesis)?
            .into_iter()
            .filter_map(input)
            .collect())
    }

    /// What this home's records of a chain are of.
    fn names(home: &Path, genesis: &Hash) -> Result<Vec<String>> {
        let folder = home.join("tasks");
        let files = match fs::read_dir(&folder) {
            Ok(files) => files,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(ClientError::file(folder)(e)),
        };
        let name = |path: PathBuf| {
            let name = path.file_stem()?.to_str()?.rsplit_once('-')?.1.to_owned();
            (path == Self::path(home, genesis, &name)).then_some(name)
        };
        let mut names = Vec::new();
        for file in files {
            let file = file.map_err(ClientError::file(&folder))?;
            names.extend(name(file.path()));
        }
        Ok(names)
    }

    /// Keeps it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, home: &Path, genesis: &Hash, task: TaskId) -> Result<()> {
        self.write(home, &Self::path(home, genesis, task))
    }

    /// Keeps it of a task that is about to be posted.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save_posting(&self, home: &Path, genesis: &Hash, input: &ContentHash) -> Result<()> {
        self.write(home, &Self::path_of_posting(home, genesis, input))
    }

    fn write(&self, home: &Path, path: &Path) -> Result<()> {
        let json = serde_json::to_vec_pretty(self).map_err(|e| ClientError::Internal(e.to_string()))?;
        let parent = home.join("tasks");
        fs::create_dir_all(&parent).map_err(ClientError::file(parent))?;
        crate::files::write_atomically(path, &json)
    }

    /// Forgets a number that a task had in a block that was replaced.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn forget(home: &Path, genesis: &Hash, task: TaskId) -> Result<()> {
        remove(Self::path(home, genesis, task))
    }

    /// Forgets that a task was about to be posted.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn forget_posting(home: &Path, genesis: &Hash, input: &ContentHash) -> Result<()> {
        remove(Self::path_of_posting(home, genesis, input))
    }
}

fn remove(path: PathBuf) -> Result<()> {
    match fs::remove_file(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(ClientError::file(path)(e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_record_is_found_again_on_its_own_chain_only() {
        let dir = tempfile::tempdir().unwrap();
        let record = ClientRecord {
            posted_unix_ms: 7,
            listen: vec!["/ip4/127.0.0.1/tcp/1".into()],
        };
        let (ours, other) = (Hash::repeat_byte(1), Hash::repeat_byte(2));
        assert_eq!(ClientRecord::newest(dir.path(), &ours).unwrap(), None);
        for task in [10, 9] {
            record.save(dir.path(), &ours, task).unwrap();
        }
        record.save(dir.path(), &other, 11).unwrap();
        assert_eq!(ClientRecord::newest(dir.path(), &ours).unwrap(), Some(10));
        record.save(dir.path(), &ours, 3).unwrap();
        assert_eq!(ClientRecord::load(dir.path(), &ours, 3).unwrap(), Some(record));
        assert_eq!(ClientRecord::load(dir.path(), &other, 3).unwrap(), None);
        let path = ClientRecord::path(dir.path(), &ours, 3);
        fs::write(path, "{").unwrap();
        assert!(ClientRecord::load(dir.path(), &ours, 3).is_err());
    }

    #[test]
    fn what_is_about_to_be_posted_is_known_by_its_input_and_has_no_number() {
        let dir = tempfile::tempdir().unwrap();
        let record = ClientRecord {
            posted_unix_ms: 7,
            listen: Vec::new(),
        };
        let (ours, other, input) = (
            Hash::repeat_byte(1),
            Hash::repeat_byte(2),
            ContentHash::repeat_byte(0x10),
        );
        record.save_posting(dir.path(), &ours, &input).unwrap();
        assert_eq!(ClientRecord::postings(dir.path(), &ours).unwrap(), [input]);
        assert_eq!(ClientRecord::postings(dir.path(), &other).unwrap(), []);
        assert_eq!(ClientRecord::newest(dir.path(), &ours).unwrap(), None);
        let loaded = ClientRecord::load_posting(dir.path(), &ours, &input).unwrap();
        assert_eq!(loaded, Some(record));
        for _ in 0..2 {
            ClientRecord::forget_posting(dir.path(), &ours, &input).unwrap();
            assert_eq!(ClientRecord::postings(dir.path(), &ours).unwrap(), []);
        }
    }
}
