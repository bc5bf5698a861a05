//! A data plane within one process, for tests of what is built on it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use libp2p::bytes::Bytes;
use sp_crypto_hashing::blake2_256;
use surety_types::{multiaddr::Endpoint, ContentHash, TaskId};

use crate::{
    address::endpoint_text,
    plane::{Attempt, DataPlane, Fault, OutputLocation, PlaneError, Readers},
};

#[derive(Default)]
struct Peer {
    blobs: HashMap<ContentHash, Bytes>,
    outputs: HashMap<TaskId, (ContentHash, Option<Vec<Endpoint>>)>,
    down: bool,
}

type Peers = Arc<Mutex<HashMap<Endpoint, Peer>>>;

/// Peers that can reach one another.
#[derive(Clone, Default)]
pub struct MemoryNet(Peers);

impl MemoryNet {
    /// A new peer, named by any endpoint.
    pub fn join(&self, endpoint: Endpoint) -> MemoryPlane {
        self.peers().insert(endpoint.clone(), Peer::default());
        MemoryPlane {
            peers: self.0.clone(),
            own: endpoint,
        }
    }

    /// Makes a peer unreachable, or reachable again.
    pub fn set_down(&self, endpoint: &Endpoint, down: bool) {
        if let Some(peer) = self.peers().get_mut(endpoint) {
            peer.down = down;
        }
    }

    fn peers(&self) -> MutexGuard<'_, HashMap<Endpoint, Peer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One peer of a [`MemoryNet`].
pub struct MemoryPlane {
    peers: Peers,
    own: Endpoint,
}

impl MemoryPlane {
    fn with<T>(&self, endpoint: &Endpoint, read: impl FnOnce(&mut Peer) -> Option<T>) -> Result<T, Fault> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let peer = peers
            .get_mut(endpoint)
            .filter(|peer| !peer.down || *endpoint == self.own)
            .ok_or_else(|| Fault::Unreachable("no such peer".into()))?;
        read(peer).ok_or(Fault::NotFound)
    }
}

#[async_trait]
impl DataPlane for MemoryPlane {
    fn endpoints(&self) -> Vec<Endpoint> {
        vec![self.own.clone()]
    }

    async fn publish(&self, bytes: Bytes) -> Result<ContentHash, PlaneError> {
        let hash = ContentHash::from(blake2_256(&bytes));
        self.with(&self.own, |peer| {
            peer.blobs.insert(hash, bytes);
            Some(hash)
        })
        .map_err(|_| PlaneError::Closed)
    }

    async fn release(&self, _: ContentHash) {}

    async fn fetch(
        &self,
        hash: ContentHash,
        _: Option<u64>,
        sources: &[Endpoint],
    ) -> Result<Bytes, PlaneError> {
        let mut attempts = Vec::new();
        for endpoint in std::iter::once(&self.own).chain(sources) {
            match self.with(endpoint, |peer| peer.blobs.get(&hash).cloned()) {
                Ok(bytes) => return self.publish(bytes.clone()).await.map(|_| bytes),
                Err(fault) => attempts.push(Attempt {
                    endpoint: endpoint_text(endpoint),
                    fault,
                }),
            }
        }
        Err(PlaneError::AllFailed {
            what: format!("blob {hash:?}"),
            attempts,
        })
    }

    async fn announce_output(
        &self,
        task: TaskId,
        hash: ContentHash,
        readers: Readers<'_>,
    ) -> Result<(), PlaneError> {
        let readers = match readers {
            Readers::Everyone => None,
            Readers::Only(endpoints) => Some(endpoints.to_vec()),
        };
        self.with(&self.own, |peer| {
            peer.outputs.insert(task, (hash, readers));
            Some(())
        })
        .map_err(|_| PlaneError::Closed)
    }

    async fn locate_output(&self, task: TaskId, endpoint: &Endpoint) -> Result<OutputLocation, PlaneError> {
        let found = self.with(endpoint, |peer| {
            let (hash, readers) = peer.outputs.get(&task)?;
            let may_know = readers.as_ref().is_none_or(|readers| readers.contains(&self.own));
            let hash = may_know.then_some(*hash)?;
            let bytes = peer.blobs.get(&hash)?.len() as u64;
            Some(OutputLocation { hash, bytes })
        });
        found.map_err(|fault| PlaneError::AllFailed {
            what: format!("the output of task {task}"),
            attempts: vec![Attempt {
                endpoint: endpoint_text(endpoint),
                fault,
            }],
        })
    }
}
