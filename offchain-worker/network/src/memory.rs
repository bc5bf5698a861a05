//! A data plane within one process, for tests of what is built on it.
//!
//! The same peers may read the same things as over libp2p, and who may not is told the same. There is no disk
//! and no limit; a test says when a store is full. An endpoint's whole text stands for its peer's id, and
//! need not be an address.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use libp2p::bytes::Bytes;
use surety_proofs::content_hash;
use surety_types::{ContentHash, TaskId, multiaddr::Endpoint};
use tokio::sync::mpsc;

use crate::{
    Limits,
    access::{AccessGate, Asked, Audience, Decision, Grants, Readers, Ticket},
    address::endpoint_text,
    call::{CallError, CallListener, CallStream, Patience, pipe::pipe},
    counters::{Counters, Tally},
    plane::{Announcement, Attempt, DataPlane, FetchOptions, OutputLocation, PeerError, PlaneError},
    store::StoreError,
    stream::{StreamPage, StreamReader, StreamWriter},
};

/// How long a page waits for news: tests wait for nothing long.
const POLL_WAIT: Duration = Duration::from_millis(100);

/// Bytes of a call on their way, as over TCP.
const CALL_WINDOW: usize = 256 << 10;

struct Peer {
    blobs: HashMap<ContentHash, Bytes>,
    /// How often each is pinned.
    pins: HashMap<ContentHash, u32>,
    grants: Grants<Endpoint>,
    outputs: HashMap<TaskId, (Announcement, Audience<Endpoint>)>,
    streams: HashMap<TaskId, (StreamReader, Audience<Endpoint>)>,
    gate: Option<Arc<dyn AccessGate>>,
    calls: Option<mpsc::Sender<CallStream>>,
    tally: Tally,
    down: bool,
    full: bool,
}

impl Default for Peer {
    fn default() -> Self {
        Self {
            blobs: HashMap::new(),
            pins: HashMap::new(),
            grants: Grants::new(Limits::default().grants_max),
            outputs: HashMap::new(),
            streams: HashMap::new(),
            gate: None,
            calls: None,
            tally: Tally::default(),
            down: false,
            full: false,
        }
    }
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

    /// Makes a peer's store take nothing more, or something again.
    pub fn set_full(&self, endpoint: &Endpoint, full: bool) {
        if let Some(peer) = self.peers().get_mut(endpoint) {
            peer.full = full;
        }
    }

    /// A peer's process has ended: its blobs are still there, and nobody has pinned them.
    pub fn restart(&self, endpoint: &Endpoint) {
        if let Some(peer) = self.peers().get_mut(endpoint) {
            peer.pins.clear();
        }
    }

    /// Whether a peer has a blob.
    pub fn has(&self, endpoint: &Endpoint, hash: &ContentHash) -> bool {
        let peers = self.peers();
        peers
            .get(endpoint)
            .is_some_and(|peer| peer.blobs.contains_key(hash))
    }

    /// A peer's store is full, and makes room: what nobody has pinned is gone.
    pub fn fill(&self, endpoint: &Endpoint) {
        if let Some(Peer { blobs, pins, .. }) = self.peers().get_mut(endpoint) {
            blobs.retain(|hash, _| pins.get(hash).is_some_and(|pins| *pins > 0));
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
    fn with<T>(
        &self,
        endpoint: &Endpoint,
        read: impl FnOnce(&mut Peer) -> Result<T, PeerError>,
    ) -> Result<T, PeerError> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let peer = peers
            .get_mut(endpoint)
            .filter(|peer| !peer.down || *endpoint == self.own)
            .ok_or_else(|| PeerError::Unreachable("no such peer".into()))?;
        read(peer)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Peer) -> T) -> Result<T, PlaneError> {
        self.with(&self.own, |peer| Ok(change(peer)))
            .map_err(|_| PlaneError::Closed)
    }

    /// Whether `endpoint`, which has the blob, lets us know of it.
    async fn let_in(
        &self,
        endpoint: &Endpoint,
        blob: ContentHash,
        task: Option<TaskId>,
        ticket: Option<&Ticket>,
    ) -> Result<(), PeerError> {
        let gate = self.with(endpoint, |peer| {
            if ticket.is_none() {
                peer.tally.requests_refused_reader.one();
            }
            Ok(peer.gate.clone())
        })?;
        let (Some(gate), Some(ticket)) = (gate, ticket) else {
            return Err(PeerError::Refused);
        };
        let asked = Asked {
            peer: &endpoint_text(&self.own),
            blob,
            task,
            ticket,
        };
        match gate.may_read(asked).await {
            Some(Decision::Allow) => Ok(()),
            Some(Decision::Refuse) | None => self.with(endpoint, |peer| {
                peer.tally.requests_refused_ticket.one();
                Err(PeerError::Refused)
            }),
        }
    }

    async fn fetch_from(
        &self,
        hash: ContentHash,
        endpoint: &Endpoint,
        options: &FetchOptions,
    ) -> Result<Bytes, PeerError> {
        let (bytes, listed) = self.with(endpoint, |peer| {
            let bytes = peer.blobs.get(&hash).cloned().ok_or(PeerError::NotFound)?;
            // Who shows a ticket reads by that alone.
            let listed = options.ticket.is_none() && peer.grants.may_read(&hash, &self.own);
            Ok((bytes, listed))
        })?;
        if !listed && *endpoint != self.own {
            self.let_in(endpoint, hash, None, options.ticket.as_ref()).await?;
        }
        let found = bytes.len() as u64;
        match (options.bytes, options.bytes_max) {
            (Some(expected), _) if expected != found => Err(PeerError::WrongSize { found, expected }),
            (_, Some(max)) if found > max => Err(PeerError::TooLarge { bytes: found, max }),
            _ => Ok(bytes),
        }
    }

    async fn locate(
        &self,
        task: TaskId,
        endpoint: &Endpoint,
        ticket: Option<&Ticket>,
    ) -> Result<OutputLocation, PeerError> {
        let (location, told) = self.with(endpoint, |peer| {
            let (output, audience) = peer.outputs.get(&task).ok_or(PeerError::NotFound)?;
            let bytes = peer.blobs.get(&output.hash).ok_or(PeerError::NotFound)?.len() as u64;
            let location = OutputLocation {
                hash: output.hash,
                bytes,
                statement: output.statement.clone(),
                leaves: output.leaves,
            };
            Ok((location, audience.has(&self.own)))
        })?;
        if !told {
            self.let_in(endpoint, location.hash, Some(task), ticket).await?;
        }
        Ok(location)
    }
}

fn audience(readers: Readers<'_>) -> Audience<Endpoint> {
    match readers {
        Readers::Everyone => Audience::Everyone,
        Readers::Only(endpoints) => Audience::Only(endpoints.to_vec()),
    }
}

#[async_trait]
impl DataPlane for MemoryPlane {
    fn peer_id(&self) -> String {
        endpoint_text(&self.own)
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        vec![self.own.clone()]
    }

    fn counters(&self) -> Counters {
        self.change(|peer| peer.tally.snapshot()).unwrap_or_default()
    }

    async fn stopped(&self) {
        std::future::pending().await
    }

    fn set_gate(&self, gate: Arc<dyn AccessGate>) {
        // A peer that has left the net serves nobody.
        self.change(|peer| peer.gate = Some(gate)).ok();
    }

    async fn set_named_peers(&self, _: &[Endpoint]) -> Result<(), PlaneError> {
        Ok(())
    }

    async fn publish(&self, bytes: Bytes) -> Result<ContentHash, PlaneError> {
        let hash = content_hash(&bytes);
        self.change(|peer| {
            if peer.full {
                let bytes = bytes.len() as u64;
                return Err(StoreError::QuotaExceeded { bytes, max: 0 }.into());
            }
            peer.blobs.insert(hash, bytes);
            *peer.pins.entry(hash).or_default() += 1;
            Ok(hash)
        })?
    }

    async fn release(&self, hash: ContentHash) {
        self.change(|peer| {
            if let Some(pins) = peer.pins.get_mut(&hash) {
                *pins = pins.saturating_sub(1);
            }
        })
        .ok();
    }

    async fn grant(&self, task: TaskId, hash: ContentHash, readers: Readers<'_>) -> Result<(), PlaneError> {
        self.change(|peer| peer.grants.insert(task, hash, audience(readers)))
    }

    async fn fetch(
        &self,
        hash: ContentHash,
        sources: &[Endpoint],
        options: &FetchOptions,
    ) -> Result<Bytes, PlaneError> {
        if !options.anew
            && let Ok(bytes) = self.fetch_from(hash, &self.own, &FetchOptions::default()).await
        {
            return Ok(bytes);
        }
        if sources.is_empty() {
            return Err(PlaneError::NoSources(hash));
        }
        let mut attempts = Vec::new();
        for endpoint in sources {
            match self.fetch_from(hash, endpoint, options).await {
                Ok(bytes) => {
                    self.change(|peer| peer.blobs.insert(hash, bytes.clone()))?;
                    return Ok(bytes);
                }
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
        output: Announcement,
        readers: Readers<'_>,
    ) -> Result<(), PlaneError> {
        self.change(|peer| {
            peer.grants.insert(task, output.hash, audience(readers));
            peer.outputs.insert(task, (output, audience(readers)));
        })
    }

    async fn locate_output(
        &self,
        task: TaskId,
        endpoint: &Endpoint,
        ticket: Option<&Ticket>,
    ) -> Result<OutputLocation, PlaneError> {
        let found = self.locate(task, endpoint, ticket).await;
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
        self.change(|peer| {
            peer.streams.insert(task, (reader, audience(readers)));
            writer
        })
    }

    async fn close_stream(&self, task: TaskId) {
        // Closing what is not open is no error.
        self.change(|peer| peer.streams.remove(&task)).ok();
    }

    async fn read_stream(
        &self,
        task: TaskId,
        endpoint: &Endpoint,
        from: u32,
    ) -> Result<StreamPage, PeerError> {
        let stream = self.with(endpoint, |peer| {
            let (stream, audience) = peer.streams.get(&task).ok_or(PeerError::NotFound)?;
            audience
                .has(&self.own)
                .then(|| stream.clone())
                .ok_or(PeerError::NotFound)
        })?;
        Ok(stream.page(from, POLL_WAIT).await)
    }

    async fn open_call(&self, endpoints: &[Endpoint]) -> Result<CallStream, CallError> {
        let endpoint = endpoints.first().ok_or(CallError::NoEndpoint)?;
        let calls = self.with(endpoint, |peer| Ok(peer.calls.clone()));
        let calls = calls
            .map_err(CallError::Unreachable)?
            .ok_or(CallError::NotServed)?;
        let (ours, theirs) = pipe(CALL_WINDOW);
        let limits = Limits::default();
        let patience = Patience::of(&limits);
        let theirs = CallStream::new(theirs, &endpoint_text(&self.own), patience, Arc::new(()))
            .first_within(limits.request_timeout);
        match calls.try_send(theirs) {
            Ok(()) => Ok(CallStream::new(
                ours,
                &endpoint_text(endpoint),
                patience,
                Arc::new(()),
            )),
            Err(mpsc::error::TrySendError::Full(_)) => Err(CallError::Full),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(CallError::NotServed),
        }
    }

    fn calls(&self) -> Option<CallListener> {
        self.change(|peer| {
            if peer.calls.as_ref().is_some_and(|calls| !calls.is_closed()) {
                return None;
            }
            let (listener, calls) = CallListener::new(Limits::default().calls_max);
            peer.calls = Some(calls);
            Some(listener)
        })
        .ok()
        .flatten()
    }
}
