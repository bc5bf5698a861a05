//! Which runtime wrote a block, and which one is in its state.
//!
//! They differ at the block that upgrades the chain: the old runtime wrote its events and storage, and the
//! new one, which its state has, moves storage over (migrates) when it makes the block after it.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sp_core::H256;
use tokio::sync::RwLock;

use super::{Inner, runtime::Runtime};
use surety_chain_client::ChainError;

/// Runtimes kept at hand: the present one, and those of blocks around an upgrade.
const RUNTIMES_MAX: usize = 4;
/// Blocks of which it is remembered which runtimes are theirs.
const BLOCKS_MAX: usize = 64;

/// Runtimes that were met, and in which blocks.
pub(super) struct Versions {
    /// By specification version; the last one is the present one.
    runtimes: RwLock<BTreeMap<u32, Arc<Runtime>>>,
    /// Specification version of the runtime in a block's state.
    versions: Mutex<HashMap<H256, u32>>,
    /// The block in whose state the runtime is that wrote a block.
    writers: Mutex<HashMap<H256, H256>>,
}

impl Versions {
    pub fn new(present: Runtime) -> Self {
        Self {
            runtimes: RwLock::new(BTreeMap::from([(present.spec_version(), Arc::new(present))])),
            versions: Mutex::default(),
            writers: Mutex::default(),
        }
    }
}

impl Inner {
    /// The runtime that wrote a block: what its events and its storage are read by.
    pub(super) async fn runtime_of(&self, hash: H256) -> Result<Arc<Runtime>, ChainError> {
        let writer = self.writer_of(hash).await?;
        self.runtime_after(writer).await
    }

    /// The block in whose state the runtime is that wrote block `hash`.
    pub(super) async fn writer_of(&self, hash: H256) -> Result<H256, ChainError> {
        let known = locked(&self.versions.writers).get(&hash).copied();
        match known {
            Some(writer) => Ok(writer),
            None => self.writer(hash).await,
        }
    }

    /// The runtime in a block's state: it answers what is asked of that state by calling it, and makes the
    /// block after it.
    pub(super) async fn runtime_after(&self, hash: H256) -> Result<Arc<Runtime>, ChainError> {
        let spec_version = self.version_after(hash).await?;
        let known = self.versions.runtimes.read().await.get(&spec_version).cloned();
        match known {
            Some(runtime) => Ok(runtime),
            None => self.upgraded(hash).await,
        }
    }

    /// As [`Self::writer_of`]: mostly the block itself. Its parent's state is asked for only where it
    /// differs, because nodes drop states, the parent's first.
    async fn writer(&self, hash: H256) -> Result<H256, ChainError> {
        let (after, wrote) = tokio::try_join!(self.version_after(hash), self.link.last_upgrade(hash))?;
        let writer = match wrote {
            Some(wrote) if wrote != after => self.link.parent(hash).await?,
            _ => hash,
        };
        note(&self.versions.writers, hash, writer);
        Ok(writer)
    }

    async fn version_after(&self, hash: H256) -> Result<u32, ChainError> {
        let known = locked(&self.versions.versions).get(&hash).copied();
        if let Some(version) = known {
            return Ok(version);
        }
        let version = self.link.version(hash).await?.0;
        note(&self.versions.versions, hash, version);
        Ok(version)
    }

    /// Learns a runtime that was not met before.
    async fn upgraded(&self, hash: H256) -> Result<Arc<Runtime>, ChainError> {
        let runtime = Arc::new(self.link.runtime(hash).await?);
        let spec_version = runtime.spec_version();
        match runtime.misfits() {
            [] => tracing::info!(spec_version, "the chain has another runtime now, which fits"),
            misfits => tracing::error!(
                spec_version,
                ?misfits,
                "the chain has another runtime now, and this program does not fit it in all: update it"
            ),
        }
        let mut runtimes = self.versions.runtimes.write().await;
        runtimes.insert(spec_version, runtime.clone());
        while runtimes.len() > RUNTIMES_MAX {
            runtimes.pop_first();
        }
        Ok(runtime)
    }
}

fn locked<T>(map: &Mutex<T>) -> MutexGuard<'_, T> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note<K: Eq + Hash, V>(map: &Mutex<HashMap<K, V>>, key: K, value: V) {
    let mut map = locked(map);
    if map.len() >= BLOCKS_MAX {
        map.clear();
    }
    map.insert(key, value);
}
