//! A data plane within one process, for tests of what is built on it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use libp2p::bytes::Bytes;
use surety_types::{multiaddr::Endpoint, ContentHash, TaskId};
use surety_verification::content_hash;

use crate::{
    address::endpoint_text,
    plane::{Attempt, DataPlane, Fault, OutputLocation, PlaneError, Readers, Statement},
    stream::{StreamPage, StreamReader, StreamWriter},
};

/// How long a page waits for news: tests wait for nothing long.
const POLL_WAIT: Duration = Duration::from_millis(100);

/// Who may read something; nothing: everyone.
type Allowed = Option<Vec<Endpoint>>;

#[derive(Default)]
struct Peer {
    blobs: HashMap<ContentHash, Bytes>,
    outputs: HashMap<TaskId, (ContentHash, Option<Statement>, Allowed)>,
    streams: HashMap<TaskId, (StreamReader, Allowed)>,
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

    fn is_among(&self, allowed: &Allowed) -> bool {
        allowed.as_ref().is_none_or(|readers| readers.contains(&self.own))
    }
}

fn allowed(readers: Readers<'_>) -> Allowed {
    match readers {
        Readers::Everyone => None,
        Readers::Only(endpoints) => Some(endpoints.to_vec()),
    }
}

#[async_trait]
impl DataPlane for MemoryPlane {
    fn endpoints(&self) -> Vec<Endpoint> {
        vec![self.own.clone()]
    }

    async fn publish(&self, bytes: Bytes) -> Result<ContentHash, PlaneError> {
        let hash = content_hash(&bytes);
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
        statement: Option<Statement>,
        readers: Readers<'_>,
    ) -> Result<(), PlaneError> {
        self.with(&self.own, |peer| {
            peer.outputs.insert(task, (hash, statement, allowed(readers)));
            Some(())
        })
        .map_err(|_| PlaneError::Closed)
    }

    async fn locate_output(&self, task: TaskId, endpoint: &Endpoint) -> Result<OutputLocation, PlaneError> {
        let found = self.with(endpoint, |peer| {
            let (hash, statement, readers) = peer.outputs.get(&task)?;
            let hash = self.is_among(readers).then_some(*hash)?;
            let bytes = peer.blobs.get(&hash)?.len() as u64;
            let statement = statement.clone();
            Some(OutputLocation {
                hash,
                bytes,
                statement,
            })
        });
        found.map_err(|fault| PlaneError::AllFailed {
            what: format!("the output of task {task}"),
            attempts: vec![Attempt {
                endpoint: endpoint_text(endpoint),
                fault,
            }],
        })
    }

    async fn open_stream(&self, task: TaskId, readers: Readers<'_>) -> Result<StreamWriter, PlaneError> {
        let (writer, reader) = StreamWriter::new();
        self.with(&self.own, |peer| {
            peer.streams.insert(task, (reader, allowed(readers)));
            Some(writer)
        })
        .map_err(|_| PlaneError::Closed)
    }

    async fn close_stream(&self, task: TaskId) {
        // Closing what is not open is no error.
        self.with(&self.own, |peer| peer.streams.remove(&task)).ok();
    }

    async fn read_stream(&self, task: TaskId, endpoint: &Endpoint, from: u32) -> Result<StreamPage, Fault> {
        let stream = self.with(endpoint, |peer| {
            let (stream, readers) = peer.streams.get(&task)?;
            self.is_among(readers).then(|| stream.clone())
        })?;
        Ok(stream.page(from, POLL_WAIT).await)
    }
}
