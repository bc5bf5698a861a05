//! What a client remembers of a task that it has posted, so that `surety task watch` can go on with it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use surety_chain_client::Hash;
use surety_types::TaskId;

use crate::error::{ClientError, Result};

/// One posted task: `HOME/tasks/GENESIS-TASK.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRecord {
    /// When it was posted, in milliseconds since 1970.
    pub posted_unix_ms: u64,
    /// Where its input is served.
    pub listen: Vec<String>,
}

impl ClientRecord {
    /// Task numbers start again on another chain: the genesis hash is part of the name.
    fn path(home: &Path, genesis: &Hash, task: TaskId) -> PathBuf {
        let chain = hex::encode(genesis.as_bytes().get(..4).unwrap_or_default());
        home.join("tasks").join(format!("{chain}-{task}.json"))
    }

    /// The record of a task; nothing where it was not posted from this home.
    ///
    /// # Errors
    /// When the file cannot be read, or is no record.
    pub fn load(home: &Path, genesis: &Hash, task: TaskId) -> Result<Option<Self>> {
        let path = Self::path(home, genesis, task);
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
        let folder = home.join("tasks");
        let files = match fs::read_dir(&folder) {
            Ok(files) => files,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(ClientError::file(folder)(e)),
        };
        let number = |path: PathBuf| {
            let task = path.file_stem()?.to_str()?.rsplit_once('-')?.1.parse().ok()?;
            (path == Self::path(home, genesis, task)).then_some(task)
        };
        let mut newest = None;
        for file in files {
            let file = file.map_err(ClientError::file(&folder))?;
            newest = newest.max(number(file.path()));
        }
        Ok(newest)
    }

    /// Keeps it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, home: &Path, genesis: &Hash, task: TaskId) -> Result<()> {
        let path = Self::path(home, genesis, task);
        let json = serde_json::to_vec_pretty(self).map_err(|e| ClientError::Internal(e.to_string()))?;
        let parent = home.join("tasks");
        fs::create_dir_all(&parent).map_err(ClientError::file(parent))?;
        crate::files::write_atomically(&path, &json)
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
}
