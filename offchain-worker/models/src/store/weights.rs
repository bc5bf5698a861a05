//! The bytes of a model's weights: in memory, or in their file.

use std::{fs::File, io, os::unix::fs::FileExt, sync::Arc};

use crate::error::ModelError;

/// A safetensors file.
///
/// One on disk is read in pieces while it is parsed, so that a model is in memory once, whatever its size. It
/// is not mapped: whoever cuts a mapped file short kills the process that reads it. Replacing the file is
/// without effect, because it stays open. Whoever changes bytes in it, between its hash and the reading,
/// changes numbers of the model: the manifest's weight root, which is taken over what is in memory, tells.
#[derive(Clone, Debug)]
pub enum WeightBytes {
    /// All of it.
    Memory(Vec<u8>),
    /// An open file.
    Disk(Arc<File>),
}

impl From<Vec<u8>> for WeightBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Memory(bytes)
    }
}

impl From<File> for WeightBytes {
    fn from(file: File) -> Self {
        Self::Disk(Arc::new(file))
    }
}

impl WeightBytes {
    /// How many.
    ///
    /// # Errors
    /// [`ModelError::Unreadable`].
    pub fn count(&self) -> Result<u64, ModelError> {
        match self {
            Self::Memory(bytes) => Ok(bytes.len() as u64),
            Self::Disk(file) => Ok(file.metadata().map_err(unreadable)?.len()),
        }
    }

    /// Fills `into` with the bytes from `offset` on.
    ///
    /// # Errors
    /// [`ModelError::Truncated`] where there are not so many, [`ModelError::Unreadable`].
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), ModelError> {
        match self {
            Self::Memory(bytes) => {
                let start = usize::try_from(offset).ok();
                let found = start.and_then(|start| bytes.get(start..start.checked_add(into.len())?));
                into.copy_from_slice(found.ok_or(ModelError::Truncated)?);
                Ok(())
            }
            Self::Disk(file) => file.read_exact_at(into, offset).map_err(unreadable),
        }
    }

    /// All of them, in memory.
    ///
    /// # Errors
    /// Those of [`Self::read_at`].
    pub fn into_memory(self) -> Result<Vec<u8>, ModelError> {
        match self {
            Self::Memory(bytes) => Ok(bytes),
            Self::Disk(_) => {
                let count = usize::try_from(self.count()?)
                    .map_err(|_| ModelError::Unreadable("it is larger than any memory".into()))?;
                let mut bytes = vec![0; count];
                self.read_at(0, &mut bytes)?;
                Ok(bytes)
            }
        }
    }
}

/// A file may have become shorter since it was opened.
fn unreadable(error: io::Error) -> ModelError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => ModelError::Truncated,
        _ => ModelError::Unreadable(error.to_string()),
    }
}
