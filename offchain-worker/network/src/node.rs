//! The data plane over libp2p.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use libp2p::{PeerId, bytes::Bytes, multiaddr::Multiaddr};
use surety_types::{ContentHash, TaskId, multiaddr::Endpoint};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, mpsc, oneshot},
    task::JoinHandle,
    time::Instant,
};

use crate::{
    access::{AccessGate, Audience, Readers, Ticket},
    address::{Scope, announceable, endpoint_text, parse_endpoint, resolve, split_endpoint},
    call::{CallError, CallListener, CallStream},
    counters::Counters,
    event_loop::{Command, EventLoop, Question, Reply},
    fetch::{Ask, Fetch},
    identity,
    limits::Limits,
    places::Named,
    plane::{Announcement, Attempt, DataPlane, FetchOptions, OutputLocation, PeerError, PlaneError},
    shared::Shared,
    store::{BlobStore, StoreError},
    stream::{StreamPage, StreamWriter},
    swarm,
    wire::{PageRequest, PageResponse, Request, Response, Wanted},
};

/// What a node needs to start.
#[derive(Clone, Debug)]
pub struct NetworkConfig {
    /// File of the peer's key; made when missing.
    pub key_file: PathBuf,
    /// Where to listen, such as `/ip4/0.0.0.0/udp/4001/quic-v1`. None: only dial.
    pub listen: Vec<String>,
    /// Addresses, without peer id, at which others reach this node; what it listens on when empty.
    pub external: Vec<String>,
    /// Genesis hash of the chain whose tasks are spoken of.
    pub genesis: ContentHash,
    /// Limits.
    pub limits: Limits,
}

/// A running node. Dropping it, or [`Node::stop`], ends it.
pub struct Node {
    commands: mpsc::Sender<Command>,
    event_loop: JoinHandle<()>,
    shared: Arc<Shared>,
    genesis: ContentHash,
    limits: Limits,
    fetches: Semaphore,
    turns: Turns,
    peer: PeerId,
    endpoints: Vec<Endpoint>,
}

impl Node {
    /// Starts listening, and the event loop.
    ///
    /// # Errors
    /// When the key, an address or a port cannot be used.
    pub async fn start(config: NetworkConfig, store: Arc<BlobStore>) -> Result<Self, PlaneError> {
        let key = identity::load_or_create(&config.key_file)?;
        let peer = key.public().to_peer_id();
        let shared = Arc::new(Shared::new(store, &config.limits));
        let mut swarm = swarm::build(key, &config.limits, &shared)?;
        let listening = swarm::listen(&mut swarm, &config.listen).await?;
        let endpoints = if config.external.is_empty() {
            announceable(&listening, peer)
        } else {
            config
                .external
                .iter()
                .map(|text| parse_endpoint(&format!("{text}/p2p/{peer}")))
                .collect::<Result<_, _>>()?
        };
        // Commands are answered at once or counted in the loop's own tables: a short queue is enough.
        let (commands, receiver) = mpsc::channel(32);
        let scope = endpoints.iter().filter_map(Scope::of_endpoint).min();
        let event_loop = EventLoop::new(
            swarm,
            receiver,
            shared.clone(),
            config.genesis,
            config.limits.clone(),
            scope.unwrap_or(Scope::Global),
        );
        tracing::info!(%peer, endpoints = ?endpoints.iter().map(endpoint_text).collect::<Vec<_>>(), "data plane is up");
        Ok(Self {
            commands,
            event_loop: tokio::spawn(event_loop.run()),
            shared,
            genesis: config.genesis,
            fetches: Semaphore::new(config.limits.fetches_max),
            turns: Turns::new(config.limits.fetches_per_peer_max),
            limits: config.limits,
            peer,
            endpoints,
        })
    }

    /// The store behind it.
    pub fn store(&self) -> &Arc<BlobStore> {
        &self.shared.store
    }

    /// Closes all connections.
    pub async fn stop(self) {
        drop(self.commands);
        if let Err(e) = self.event_loop.await {
            tracing::error!(error = %e, "the data plane's event loop failed");
        }
    }

    async fn with_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&BlobStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, PlaneError> {
        let shared = self.shared.clone();
        tokio::task::spawn_blocking(move || work(&shared.store))
            .await
            .map_err(|_| PlaneError::Closed)?
            .map_err(PlaneError::from)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn genesis(&self) -> ContentHash {
        self.genesis
    }

    pub(crate) async fn send(&self, command: Command) -> Result<(), PlaneError> {
        self.commands.send(command).await.map_err(|_| PlaneError::Closed)
    }
}

impl Node {
    pub(crate) async fn put<R>(
        &self,
        endpoint: &Endpoint,
        question: impl FnOnce(Reply<R>) -> Question,
    ) -> Result<R, PeerError> {
        let (address, peer) = split_endpoint(endpoint).map_err(PeerError::Address)?;
        let addresses = resolve(&address).await.map_err(PeerError::Address)?;
        let stopped = || PeerError::Unreachable("the data plane has stopped".into());
        let (reply, answer) = oneshot::channel();
        let command = Command::Ask {
            peer,
            addresses,
            question: question(reply),
        };
        self.send(command).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

impl Node {
    /// The blob from other peers, within the caller's time.
    async fn fetch_from(
        &self,
        hash: ContentHash,
        sources: &[Endpoint],
        options: &FetchOptions,
    ) -> Result<Bytes, PlaneError> {
        let time = options.timeout.unwrap_or(self.limits.fetch_timeout);
        let mut fetch = Fetch::new(&self.limits, hash, options);
        let outcome = tokio::time::timeout(time, fetch.run(&Asking(self), sources)).await;
        let attempts = fetch.into_attempts();
        self.shared.tally.sources_failed.add(attempts.len() as u64);
        let what = format!("blob {hash:?}");
        match outcome {
            Ok(Some(blob)) => Ok(blob.into()),
            Ok(None) => Err(PlaneError::AllFailed { what, attempts }),
            Err(_) => Err(PlaneError::OutOfTime {
                what,
                seconds: time.as_secs(),
                attempts,
            }),
        }
    }
}

/// Peers that are being asked for blobs, each for a few at once.
struct Turns {
    peers: Mutex<HashMap<PeerId, Arc<Semaphore>>>,
    per_peer: usize,
}

impl Turns {
    fn new(per_peer: usize) -> Self {
        Self {
            peers: Mutex::default(),
            per_peer,
        }
    }

    fn of(&self, peer: PeerId) -> Arc<Semaphore> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever waits or asks holds one: the others are of no use.
        peers.retain(|_, turns| Arc::strong_count(turns) > 1);
        peers
            .entry(peer)
            .or_insert_with(|| Arc::new(Semaphore::new(self.per_peer)))
            .clone()
    }
}

/// The peer's turn first, then one of the places for fetches: who waits for a slow peer takes no place.
pub(crate) struct Turn<'a> {
    _peer: OwnedSemaphorePermit,
    _place: SemaphorePermit<'a>,
}

/// A node as one fetch sees it.
struct Asking<'a>(&'a Node);

#[async_trait]
impl<'a> Ask for Asking<'a> {
    type Turn = Turn<'a>;

    async fn turn(&self, endpoint: &Endpoint) -> Result<Turn<'a>, PeerError> {
        let (_, peer) = split_endpoint(endpoint).map_err(PeerError::Address)?;
        let stopped = |_| PeerError::Unreachable("the data plane has stopped".into());
        let of_peer = self.0.turns.of(peer);
        Ok(Turn {
            _peer: of_peer.acquire_owned().await.map_err(stopped)?,
            _place: self.0.fetches.acquire().await.map_err(stopped)?,
        })
    }

    async fn ask(&self, endpoint: &Endpoint, request: Request) -> Result<Response, PeerError> {
        let answer = self
            .0
            .put(endpoint, |reply| Question::Blob(request, reply))
            .await?;
        if let Response::Chunk { bytes, .. } = &answer {
            self.0.shared.tally.bytes_fetched.add(bytes.len() as u64);
        }
        Ok(answer)
    }
}

impl Node {
    /// Asks once where an output is.
    async fn output(&self, peer: &Endpoint, request: Request) -> Result<OutputLocation, PeerError> {
        match self.put(peer, |reply| Question::Blob(request, reply)).await? {
            Response::Output {
                hash,
                bytes,
                statement,
                leaves,
            } => Ok(OutputLocation {
                hash,
                bytes,
                statement,
                leaves,
            }),
            Response::NotFound => Err(PeerError::NotFound),
            Response::Refused => Err(PeerError::Refused),
            Response::Busy => Err(PeerError::Busy),
            _ => Err(PeerError::Protocol("unexpected answer".into())),
        }
    }
}

/// The peers at the readers' endpoints.
fn audience(readers: Readers<'_>) -> Audience<PeerId> {
    match readers {
        Readers::Everyone => Audience::Everyone,
        Readers::Only(endpoints) => Audience::Only(named(endpoints).map(|(_, peer)| peer).collect()),
    }
}

/// The peers at endpoints. What is no endpoint names nobody: it comes from others, and the rest of them are
/// not to suffer.
fn named(endpoints: &[Endpoint]) -> impl Iterator<Item = (Multiaddr, PeerId)> + '_ {
    endpoints.iter().filter_map(|endpoint| {
        split_endpoint(endpoint)
            .inspect_err(|e| tracing::warn!(error = %e, "an endpoint names no peer"))
            .ok()
    })
}

/// What is said when one peer was asked in vain.
fn in_vain(what: String, peer: &Endpoint, fault: PeerError) -> PlaneError {
    PlaneError::AllFailed {
        what,
        attempts: vec![Attempt {
            endpoint: endpoint_text(peer),
            fault,
        }],
    }
}

#[async_trait]
impl DataPlane for Node {
    fn peer_id(&self) -> String {
        self.peer.to_base58()
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        self.endpoints.clone()
    }

    fn counters(&self) -> Counters {
        self.shared.tally.snapshot()
    }

    async fn stopped(&self) {
        self.commands.closed().await;
    }

    fn set_gate(&self, gate: Arc<dyn AccessGate>) {
        self.shared.set_gate(gate);
    }

    async fn set_named_peers(&self, endpoints: &[Endpoint]) -> Result<(), PlaneError> {
        self.send(Command::Name(Named::new(named(endpoints)))).await
    }

    async fn publish(&self, bytes: Bytes) -> Result<ContentHash, PlaneError> {
        self.with_store(move |store| store.put_pinned(&bytes)).await
    }

    async fn release(&self, hash: ContentHash) {
        self.shared.store.unpin(&hash);
    }

    async fn grant(&self, task: TaskId, hash: ContentHash, readers: Readers<'_>) -> Result<(), PlaneError> {
        let command = Command::Grant {
            task,
            blob: hash,
            audience: audience(readers),
        };
        self.send(command).await
    }

    async fn fetch(
        &self,
        hash: ContentHash,
        sources: &[Endpoint],
        options: &FetchOptions,
    ) -> Result<Bytes, PlaneError> {
        let max = self.limits.blob_bytes_max;
        if let Some(bytes) = options.bytes.filter(|bytes| *bytes > max) {
            return Err(PlaneError::TooLarge { bytes, max });
        }
        if !options.anew {
            match self.with_store(move |store| store.get(&hash)).await {
                Ok(bytes) => return Ok(bytes.into()),
                Err(PlaneError::Store(StoreError::NotFound(_))) => {}
                Err(PlaneError::Store(e @ StoreError::Damaged(_))) => {
                    tracing::warn!(error = %e, "fetching it again");
                }
                Err(e) => return Err(e),
            }
        }
        if sources.is_empty() {
            return Err(PlaneError::NoSources(hash));
        }
        let fetched = self.fetch_from(hash, sources, options).await;
        let tally = &self.shared.tally;
        match &fetched {
            Ok(_) => tally.fetches_done.one(),
            Err(_) => tally.fetches_failed.one(),
        }
        let blob = fetched?;
        let stored = blob.clone();
        self.with_store(move |store| store.put(&stored)).await?;
        Ok(blob)
    }

    async fn announce_output(
        &self,
        task: TaskId,
        output: Announcement,
        readers: Readers<'_>,
    ) -> Result<(), PlaneError> {
        if self.shared.store.size(&output.hash).is_none() {
            return Err(StoreError::NotFound(output.hash).into());
        }
        let command = Command::Announce {
            task,
            output,
            audience: audience(readers),
        };
        self.send(command).await
    }

    async fn locate_output(
        &self,
        task: TaskId,
        peer: &Endpoint,
        ticket: Option<&Ticket>,
    ) -> Result<OutputLocation, PlaneError> {
        let request = Request {
            wanted: Wanted::Output {
                genesis: self.genesis,
                task,
            },
            ticket: ticket.cloned(),
        };
        // Tickets are judged a few at a time: whoever has several things to ask waits for its turn.
        let until = Instant::now() + self.limits.request_timeout / 2;
        loop {
            let fault = match self.output(peer, request.clone()).await {
                Ok(found) => return Ok(found),
                Err(PeerError::Busy) if Instant::now() < until => {
                    tokio::time::sleep(self.limits.round_pause).await;
                    continue;
                }
                Err(fault) => fault,
            };
            return Err(in_vain(format!("the output of task {task}"), peer, fault));
        }
    }

    async fn open_stream(&self, task: TaskId, readers: Readers<'_>) -> Result<StreamWriter, PlaneError> {
        let (writer, stream) = StreamWriter::new();
        let command = Command::OpenStream {
            task,
            stream,
            audience: audience(readers),
        };
        self.send(command).await?;
        Ok(writer)
    }

    async fn close_stream(&self, task: TaskId) {
        // A node that has stopped serves nothing anyway.
        self.send(Command::CloseStream { task }).await.ok();
    }

    async fn read_stream(&self, task: TaskId, peer: &Endpoint, from: u32) -> Result<StreamPage, PeerError> {
        let request = PageRequest {
            genesis: self.genesis,
            task,
            from,
        };
        match self.put(peer, |reply| Question::Page(request, reply)).await? {
            PageResponse::Page(page) => Ok(page),
            PageResponse::NotFound => Err(PeerError::NotFound),
            PageResponse::Busy => Err(PeerError::Busy),
        }
    }

    async fn open_call(&self, endpoints: &[Endpoint]) -> Result<CallStream, CallError> {
        self.call(endpoints).await
    }

    fn calls(&self) -> Option<CallListener> {
        self.shared.desk.listen()
    }
}

#[cfg(test)]
mod tests;
