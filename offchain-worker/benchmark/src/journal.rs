//! The runs that were committed to, or are about to be: on disk before anything is sent.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use codec::{Decode, DecodeAll, Encode};
use sp_core::{H256, crypto::AccountId32};
use surety_gpu_proofs::Plan;

/// Most of them: of one round there are several where forks have drawn other seeds.
const PROMISES_MAX: usize = 8;

/// Grows with every change of the layout.
const VERSION: u32 = 1;

/// A round on one fork: its number, and what seeds were made with.
pub(crate) type Key = (u32, H256);

/// A run that is committed to.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Promise {
    /// Of which chain: the hash of its first block.
    pub(crate) genesis: H256,
    /// For whom: the stash.
    pub(crate) provider: AccountId32,
    /// In which round.
    pub(crate) round: u32,
    /// What the seed was made with.
    pub(crate) entropy: H256,
    /// How large it is.
    pub(crate) plan: Plan,
    /// What all of its rows hash to.
    pub(crate) root: H256,
    /// Time for it, in milliseconds.
    pub(crate) window_ms: u64,
    /// Height of the best block when it was made.
    pub(crate) block: u32,
}

impl Promise {
    pub(crate) const fn key(&self) -> Key {
        (self.round, self.entropy)
    }
}

/// The file, and what is in it.
#[derive(Clone)]
pub(crate) struct Journal {
    path: PathBuf,
    promises: Vec<Promise>,
}

impl Journal {
    /// What is in the file of a provider on a chain. What cannot be read was not promised: it is not shown,
    /// and measured again in the next round. Blocks.
    pub(crate) fn open(path: &Path, genesis: H256, provider: &AccountId32) -> Self {
        let read = || -> io::Result<Vec<Promise>> {
            let bytes = fs::read(path)?;
            match <(u32, Vec<Promise>)>::decode_all(&mut bytes.as_slice()) {
                Ok((VERSION, promises)) => Ok(promises),
                Ok((version, _)) => Err(io::Error::other(format!("it is of version {version}"))),
                Err(error) => Err(io::Error::other(error)),
            }
        };
        let mut promises = read().unwrap_or_else(|error| {
            if error.kind() != ErrorKind::NotFound {
                tracing::warn!(path = %path.display(), %error, "runs that were committed to are forgotten");
            }
            Vec::new()
        });
        promises.retain(|promise| promise.genesis == genesis && promise.provider == *provider);
        Self {
            path: path.to_owned(),
            promises,
        }
    }

    /// All of them, the oldest first.
    pub(crate) fn promises(&self) -> &[Promise] {
        &self.promises
    }

    pub(crate) fn get(&self, key: Key) -> Option<&Promise> {
        self.promises.iter().find(|promise| promise.key() == key)
    }

    /// This, with one more: to be written.
    pub(crate) fn with(&self, promise: Promise) -> Self {
        let mut journal = self.clone();
        let surplus = journal
            .promises
            .len()
            .saturating_sub(PROMISES_MAX.saturating_sub(1));
        journal.promises.drain(..surplus);
        journal.promises.push(promise);
        journal
    }

    /// This, without one: to be written.
    pub(crate) fn without(&self, key: Key) -> Self {
        let mut journal = self.clone();
        journal.promises.retain(|promise| promise.key() != key);
        journal
    }

    /// Returns once it is on disk, all of it or what was there before. Blocks.
    pub(crate) fn write(&self) -> io::Result<()> {
        let part = self.path.with_extension("part");
        let mut file = File::create(&part)?;
        file.write_all(&(VERSION, &self.promises).encode())?;
        file.sync_all()?;
        fs::rename(&part, &self.path)?;
        match self.path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}
