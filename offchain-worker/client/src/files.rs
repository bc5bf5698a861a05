//! Files that are written whole.

use std::{fs, path::Path};

use crate::error::{ClientError, Result};

/// A reader never sees half a file.
///
/// # Errors
/// When the folder or the file cannot be written to.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or_else(|| Path::new("."));
    let write = || -> std::io::Result<()> {
        let file = tempfile::NamedTempFile::new_in(parent)?;
        fs::write(file.path(), bytes)?;
        file.as_file().sync_all()?;
        file.persist(path).map(drop).map_err(|e| e.error)
    };
    write().map_err(ClientError::file(path))
}
