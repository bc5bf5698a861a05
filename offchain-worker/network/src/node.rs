//! The data plane over libp2p.

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::StreamExt;
use libp2p::{
    bytes::Bytes,
    connection_limits::{self, ConnectionLimits},
    identity::Keypair,
    multiaddr::Multiaddr,
    noise, ping,
    request_response::{self, ProtocolSupport},
    swarm::SwarmEvent,
    tcp, yamux, PeerId, Swarm, SwarmBuilder,
};
use surety_types::{multiaddr::Endpoint, ContentHash, TaskId};
use tokio::{
    sync::{mpsc, oneshot, Semaphore},
    task::JoinHandle,
};

use crate::{
    address::{announceable, endpoint_text, parse_endpoint, parse_listen, resolve, split_endpoint},
    announced::Audience,
    event_loop::{root_cause, Behaviour, Command, EventLoop, Question, Reply},
    fetch::{self, Ask},
    identity,
    plane::{Attempt, DataPlane, Fault, OutputLocation, PlaneError, Readers, Statement},
    store::{BlobStore, StoreError},
    stream::{StreamPage, StreamWriter},
    wire::{PageRequest, PageResponse, Request, Response, BLOBS, STREAMS},
};

/// How much a node does at once, and for how long it waits.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Largest blob that is fetched, in bytes.
    pub blob_bytes_max: u64,
    /// For one chunk, there and back.
    pub request_timeout: Duration,
    /// For one connection, until it is encrypted.
    pub dial_timeout: Duration,
    /// A peer that sends slower, after `slow_grace`, is given up.
    pub bytes_per_second_min: u64,
    /// Time in which a peer may be slower than that.
    pub slow_grace: Duration,
    /// How often all sources are tried.
    pub fetch_rounds: u32,
    /// Pause between two rounds.
    pub round_pause: Duration,
    /// Sources that one fetch asks. A task has at most 16 providers with 4 endpoints each.
    pub sources_max: usize,
    /// Blobs that are fetched at once; each may take `blob_bytes_max` of memory.
    pub fetches_max: usize,
    /// Own requests in flight.
    pub outbound_requests_max: usize,
    /// Requests of others in flight; each may take 1 MiB of memory.
    pub inbound_requests_max: usize,
    /// The same for one peer, so that one cannot starve the others.
    pub inbound_per_peer_max: usize,
    /// Connections from others.
    pub inbound_connections_max: u32,
    /// Connections in all with one peer.
    pub connections_per_peer_max: u32,
    /// Outputs that are remembered; the oldest are forgotten first.
    pub outputs_max: usize,
    /// Streams that are served; the oldest are forgotten first. Each may take 2 MiB of memory.
    pub streams_max: usize,
    /// A request for a page of a stream waits so long for news; see [`Limits::poll_wait`].
    pub poll_wait_max: Duration,
    /// Requests of others for pages that wait.
    pub polls_max: usize,
    /// The same for one peer.
    pub polls_per_peer_max: usize,
}

impl Limits {
    /// How long a page may wait: whoever asked must not have given up before.
    pub fn poll_wait(&self) -> Duration {
        self.poll_wait_max.min(self.request_timeout / 2)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            blob_bytes_max: 64 << 20,
            request_timeout: Duration::from_secs(20),
            dial_timeout: Duration::from_secs(8),
            bytes_per_second_min: 128 << 10,
            slow_grace: Duration::from_secs(20),
            fetch_rounds: 2,
            round_pause: Duration::from_millis(500),
            sources_max: 64,
            fetches_max: 4,
            outbound_requests_max: 64,
            inbound_requests_max: 64,
            inbound_per_peer_max: 8,
            inbound_connections_max: 256,
            connections_per_peer_max: 8,
            outputs_max: 4096,
            // More than a provider computes at once, with those that are done and not settled yet.
            streams_max: 64,
            // Long enough that an idle stream costs next to nothing.
            poll_wait_max: Duration::from_secs(5),
            polls_max: 64,
            polls_per_peer_max: 8,
        }
    }
}

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
    store: Arc<BlobStore>,
    genesis: ContentHash,
    limits: Limits,
    fetches: Semaphore,
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
        let mut swarm = build_swarm(key, &config.limits)?;
        let listening = listen(&mut swarm, &config.listen).await?;
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
        let event_loop = EventLoop::new(
            swarm,
            receiver,
            store.clone(),
            config.genesis,
            config.limits.clone(),
        );
        tracing::info!(%peer, endpoints = ?endpoints.iter().map(endpoint_text).collect::<Vec<_>>(), "data plane is up");
        Ok(Self {
            commands,
            event_loop: tokio::spawn(event_loop.run()),
            store,
            genesis: config.genesis,
            fetches: Semaphore::new(config.limits.fetches_max),
            limits: config.limits,
            peer,
            endpoints,
        })
    }

    /// The peer id, as it stands in addresses.
    pub fn peer_id(&self) -> String {
        self.peer.to_base58()
    }

    /// The store behind it.
    pub fn store(&self) -> &Arc<BlobStore> {
        &self.store
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
        let store = self.store.clone();
        tokio::task::spawn_blocking(move || work(&store))
            .await
            .map_err(|_| PlaneError::Closed)?
            .map_err(PlaneError::from)
    }

    async fn send(&self, command: Command) -> Result<(), PlaneError> {
        self.commands.send(command).await.map_err(|_| PlaneError::Closed)
    }
}

impl Node {
    async fn put<R>(
        &self,
        endpoint: &Endpoint,
        question: impl FnOnce(Reply<R>) -> Question,
    ) -> Result<R, Fault> {
        let (address, peer) = split_endpoint(endpoint).map_err(Fault::Address)?;
        let addresses = resolve(&address).await.map_err(Fault::Address)?;
        let stopped = || Fault::Unreachable("the data plane has stopped".into());
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

#[async_trait]
impl Ask for Node {
    async fn ask(&self, endpoint: &Endpoint, request: Request) -> Result<Response, Fault> {
        self.put(endpoint, |reply| Question::Blob(request, reply)).await
    }
}

/// The peers at the readers' endpoints.
fn audience(readers: Readers<'_>) -> Result<Audience, PlaneError> {
    match readers {
        Readers::Everyone => Ok(Audience::Everyone),
        Readers::Only(endpoints) => {
            let peers = endpoints
                .iter()
                .map(|endpoint| split_endpoint(endpoint).map(|(_, peer)| peer));
            Ok(Audience::Only(peers.collect::<Result<_, _>>()?))
        }
    }
}

/// What is said when one peer was asked in vain.
fn in_vain(what: String, peer: &Endpoint, fault: Fault) -> PlaneError {
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
    fn endpoints(&self) -> Vec<Endpoint> {
        self.endpoints.clone()
    }

    async fn publish(&self, bytes: Bytes) -> Result<ContentHash, PlaneError> {
        self.with_store(move |store| {
            let hash = store.put(&bytes)?;
            store.pin(&hash)?;
            Ok(hash)
        })
        .await
    }

    async fn release(&self, hash: ContentHash) {
        self.store.unpin(&hash);
    }

    async fn fetch(
        &self,
        hash: ContentHash,
        bytes_expected: Option<u64>,
        sources: &[Endpoint],
    ) -> Result<Bytes, PlaneError> {
        if let Some(bytes) = bytes_expected.filter(|bytes| *bytes > self.limits.blob_bytes_max) {
            let max = self.limits.blob_bytes_max;
            return Err(PlaneError::TooLarge { bytes, max });
        }
        match self.with_store(move |store| store.get(&hash)).await {
            Ok(bytes) => return Ok(bytes.into()),
            Err(PlaneError::Store(StoreError::NotFound(_))) => {}
            Err(PlaneError::Store(e @ StoreError::Damaged(_))) => {
                tracing::warn!(error = %e, "fetching it again");
            }
            Err(e) => return Err(e),
        }
        if sources.is_empty() {
            return Err(PlaneError::NoSources(hash));
        }
        let _permit = self.fetches.acquire().await.map_err(|_| PlaneError::Closed)?;
        let blob = fetch::from_any(self, &self.limits, hash, bytes_expected, sources)
            .await
            .map_err(|attempts| PlaneError::AllFailed {
                what: format!("blob {hash:?}"),
                attempts,
            })?;
        let blob = Bytes::from(blob);
        let stored = blob.clone();
        self.with_store(move |store| store.put(&stored)).await?;
        Ok(blob)
    }

    async fn announce_output(
        &self,
        task: TaskId,
        hash: ContentHash,
        statement: Option<Statement>,
        readers: Readers<'_>,
    ) -> Result<(), PlaneError> {
        if self.store.size(&hash).is_none() {
            return Err(StoreError::NotFound(hash).into());
        }
        let command = Command::Announce {
            task,
            output: hash,
            statement,
            audience: audience(readers)?,
        };
        self.send(command).await
    }

    async fn locate_output(&self, task: TaskId, peer: &Endpoint) -> Result<OutputLocation, PlaneError> {
        let request = Request::Output {
            genesis: self.genesis,
            task,
        };
        let fault = match self.ask(peer, request).await {
            Ok(Response::Output {
                hash,
                bytes,
                statement,
            }) => {
                return Ok(OutputLocation {
                    hash,
                    bytes,
                    statement,
                })
            }
            Ok(Response::NotFound) => Fault::NotFound,
            Ok(Response::Busy) => Fault::Busy,
            Ok(_) => Fault::Protocol("unexpected answer".into()),
            Err(fault) => fault,
        };
        Err(in_vain(format!("the output of task {task}"), peer, fault))
    }

    async fn open_stream(&self, task: TaskId, readers: Readers<'_>) -> Result<StreamWriter, PlaneError> {
        let (writer, stream) = StreamWriter::new();
        let command = Command::OpenStream {
            task,
            stream,
            audience: audience(readers)?,
        };
        self.send(command).await?;
        Ok(writer)
    }

    async fn close_stream(&self, task: TaskId) {
        // A node that has stopped serves nothing anyway.
        self.send(Command::CloseStream { task }).await.ok();
    }

    async fn read_stream(&self, task: TaskId, peer: &Endpoint, from: u32) -> Result<StreamPage, Fault> {
        let request = PageRequest {
            genesis: self.genesis,
            task,
            from,
        };
        match self.put(peer, |reply| Question::Page(request, reply)).await? {
            PageResponse::Page(page) => Ok(page),
            PageResponse::NotFound => Err(Fault::NotFound),
            PageResponse::Busy => Err(Fault::Busy),
        }
    }
}

fn build_swarm(key: Keypair, limits: &Limits) -> Result<Swarm<Behaviour>, PlaneError> {
    let transport_error = |reason: String| PlaneError::Listen {
        address: "any address".into(),
        reason,
    };
    let request_timeout = limits.request_timeout;
    let dial_timeout = limits.dial_timeout;
    let blobs_config = request_response::Config::default()
        .with_request_timeout(request_timeout)
        // Of one connection, in both directions; the event loop's own limits are what others notice.
        .with_max_concurrent_streams(limits.inbound_per_peer_max + limits.outbound_requests_max);
    let streams_config = request_response::Config::default()
        .with_request_timeout(request_timeout)
        .with_max_concurrent_streams(limits.polls_per_peer_max + limits.outbound_requests_max);
    let connections = ConnectionLimits::default()
        .with_max_pending_incoming(Some(limits.inbound_connections_max / 4))
        .with_max_established_incoming(Some(limits.inbound_connections_max))
        .with_max_established_per_peer(Some(limits.connections_per_peer_max));
    let swarm = SwarmBuilder::with_existing_identity(key)
        .with_tokio()
        .with_tcp(
            tcp::Config::default().nodelay(true),
            noise::Config::new,
            yamux::Config::default,
        )
        .map_err(|e| transport_error(e.to_string()))?
        .with_quic_config(|mut config| {
            config.handshake_timeout = dial_timeout;
            config
        })
        .with_behaviour(|_| Behaviour {
            limits: connection_limits::Behaviour::new(connections),
            blobs: request_response::Behaviour::new([(BLOBS, ProtocolSupport::Full)], blobs_config),
            streams: request_response::Behaviour::new([(STREAMS, ProtocolSupport::Full)], streams_config),
            ping: ping::Behaviour::new(ping::Config::new().with_timeout(request_timeout)),
        })
        .map_err(|e| transport_error(e.to_string()))?
        // Long enough for the next chunk or task, short enough not to collect peers.
        .with_swarm_config(|config| config.with_idle_connection_timeout(Duration::from_secs(30)))
        .with_connection_timeout(dial_timeout)
        .build();
    Ok(swarm)
}

/// Listens, and waits until the system has said at which addresses.
async fn listen(swarm: &mut Swarm<Behaviour>, texts: &[String]) -> Result<Vec<Multiaddr>, PlaneError> {
    let mut waiting = Vec::new();
    for text in texts {
        let address = parse_listen(text)?;
        let id = swarm.listen_on(address).map_err(|e| PlaneError::Listen {
            address: text.clone(),
            reason: root_cause(&e),
        })?;
        waiting.push((id, text.clone()));
    }
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    // Interfaces of one listener arrive one by one: the last of them may come a moment after the first.
    let mut patience = Duration::from_secs(5);
    while let Ok(event) = tokio::time::timeout(patience, swarm.select_next_some()).await {
        match event {
            SwarmEvent::NewListenAddr { listener_id, address } => {
                found.push(address);
                waiting.retain(|(id, _)| *id != listener_id);
            }
            SwarmEvent::ListenerClosed {
                listener_id,
                reason: Err(e),
                ..
            } => {
                let address = waiting.iter().find(|(id, _)| *id == listener_id);
                return Err(PlaneError::Listen {
                    address: address.map_or_else(String::new, |(_, text)| text.clone()),
                    reason: root_cause(&e),
                });
            }
            _ => {}
        }
        if waiting.is_empty() {
            patience = Duration::from_millis(50);
        }
    }
    match waiting.first() {
        Some((_, text)) => Err(PlaneError::Listen {
            address: text.clone(),
            reason: "the system did not answer in 5 s".into(),
        }),
        None => Ok(found),
    }
}
