//! The one task that owns the swarm.
//!
//! It does nothing that waits: disk is read on blocking threads, and every table is bounded by [`Limits`].

mod streams;

use std::{collections::HashMap, sync::Arc};

use futures::StreamExt;
use libp2p::{
    connection_limits,
    multiaddr::Multiaddr,
    ping,
    request_response::{self, Event, InboundRequestId, Message, OutboundRequestId, ResponseChannel},
    swarm::{
        dial_opts::{DialOpts, PeerCondition},
        ConnectionId, DialError, NetworkBehaviour, SwarmEvent,
    },
    PeerId, StreamProtocol, Swarm,
};
use surety_types::{ContentHash, TaskId};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use crate::{
    announced::{Announced, Audience},
    plane::{Fault, Statement},
    store::{BlobStore, StoreError},
    stream::StreamReader,
    wire::{Blobs, PageRequest, PageResponse, Request, Response, ScaleCodec, Streams, BLOBS, CHUNK_BYTES},
    Limits,
};

#[derive(NetworkBehaviour)]
pub(crate) struct Behaviour {
    pub(crate) limits: connection_limits::Behaviour,
    pub(crate) blobs: request_response::Behaviour<ScaleCodec<Blobs>>,
    pub(crate) streams: request_response::Behaviour<ScaleCodec<Streams>>,
    /// Finds connections that died silently.
    pub(crate) ping: ping::Behaviour,
}

pub(crate) type Reply<R> = oneshot::Sender<Result<R, Fault>>;

/// Something to ask a peer, and who waits for the answer.
pub(crate) enum Question {
    Blob(Request, Reply<Response>),
    Page(PageRequest, Reply<PageResponse>),
}

impl Question {
    fn fail(self, fault: Fault) {
        match self {
            Self::Blob(_, reply) => answer(reply, Err(fault)),
            Self::Page(_, reply) => answer(reply, Err(fault)),
        }
    }
}

/// What the node's handle asks of the loop.
pub(crate) enum Command {
    /// Ask a peer, dialling it if need be.
    Ask {
        peer: PeerId,
        addresses: Vec<Multiaddr>,
        question: Question,
    },
    /// Answer questions about this task's output.
    Announce {
        task: TaskId,
        output: ContentHash,
        statement: Option<Statement>,
        audience: Audience,
    },
    /// Serve this task's stream.
    OpenStream {
        task: TaskId,
        stream: StreamReader,
        audience: Audience,
    },
    /// No longer serve it.
    CloseStream { task: TaskId },
}

/// What was made apart from the loop, on its way to whoever asked.
enum Answer {
    Blob(ResponseChannel<Response>, Response),
    Page(ResponseChannel<PageResponse>, PageResponse),
}

pub(crate) struct EventLoop {
    swarm: Swarm<Behaviour>,
    commands: mpsc::Receiver<Command>,
    store: Arc<BlobStore>,
    genesis: ContentHash,
    limits: Limits,
    /// Requests waiting for a connection.
    dialling: HashMap<ConnectionId, (PeerId, Question)>,
    /// Requests waiting for a response.
    asked: HashMap<OutboundRequestId, Reply<Response>>,
    /// The same for pages of streams.
    pages_asked: HashMap<OutboundRequestId, Reply<PageResponse>>,
    /// Requests of others that are not fully answered, and who asked.
    inbound: HashMap<InboundRequestId, PeerId>,
    /// The same for pages of streams. Counted apart: they wait for news, and must not keep others from blobs.
    polls: HashMap<InboundRequestId, PeerId>,
    answers: JoinSet<Answer>,
    outputs: Announced<(ContentHash, Option<Statement>)>,
    streams: Announced<StreamReader>,
}

impl EventLoop {
    pub(crate) fn new(
        swarm: Swarm<Behaviour>,
        commands: mpsc::Receiver<Command>,
        store: Arc<BlobStore>,
        genesis: ContentHash,
        limits: Limits,
    ) -> Self {
        Self {
            swarm,
            commands,
            store,
            genesis,
            dialling: HashMap::new(),
            asked: HashMap::new(),
            pages_asked: HashMap::new(),
            inbound: HashMap::new(),
            polls: HashMap::new(),
            answers: JoinSet::new(),
            outputs: Announced::new(limits.outputs_max),
            streams: Announced::new(limits.streams_max),
            limits,
        }
    }

    /// Runs until every handle is gone.
    pub(crate) async fn run(mut self) {
        loop {
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.on_command(command),
                    None => return,
                },
                event = self.swarm.select_next_some() => self.on_event(event),
                Some(answer) = self.answers.join_next() => match answer {
                    Ok(Answer::Blob(channel, response)) => self.send(channel, response),
                    Ok(Answer::Page(channel, response)) => self.send_page(channel, response),
                    Err(e) => tracing::error!(error = %e, "making an answer panicked"),
                },
            }
        }
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Announce {
                task,
                output,
                statement,
                audience,
            } => self.outputs.insert(task, (output, statement), audience),
            Command::OpenStream {
                task,
                stream,
                audience,
            } => self.streams.insert(task, stream, audience),
            Command::CloseStream { task } => self.streams.remove(task),
            Command::Ask {
                peer,
                addresses,
                question,
            } => self.ask(peer, addresses, question),
        }
    }

    fn ask(&mut self, peer: PeerId, addresses: Vec<Multiaddr>, question: Question) {
        let under_way = self.dialling.len() + self.asked.len() + self.pages_asked.len();
        if under_way >= self.limits.outbound_requests_max {
            question.fail(Fault::Busy);
            return;
        }
        if self.swarm.is_connected(&peer) {
            self.put(&peer, question);
            return;
        }
        let dial = DialOpts::peer_id(peer)
            .addresses(addresses)
            .condition(PeerCondition::Always)
            .build();
        let connection = dial.connection_id();
        match self.swarm.dial(dial) {
            Ok(()) => {
                self.dialling.insert(connection, (peer, question));
            }
            Err(e) => question.fail(dial_fault(&e)),
        }
    }

    /// Asks a peer that is connected.
    fn put(&mut self, peer: &PeerId, question: Question) {
        let behaviour = self.swarm.behaviour_mut();
        match question {
            Question::Blob(request, reply) => {
                let id = behaviour.blobs.send_request(peer, request);
                self.asked.insert(id, reply);
            }
            Question::Page(request, reply) => {
                let id = behaviour.streams.send_request(peer, request);
                self.pages_asked.insert(id, reply);
            }
        }
    }

    fn on_event(&mut self, event: SwarmEvent<BehaviourEvent>) {
        match event {
            SwarmEvent::Behaviour(BehaviourEvent::Blobs(event)) => self.on_blob_event(event),
            SwarmEvent::Behaviour(BehaviourEvent::Streams(event)) => self.on_stream_event(event),
            SwarmEvent::Behaviour(BehaviourEvent::Ping(ping::Event {
                connection,
                result: Err(ping::Failure::Timeout | ping::Failure::Other { .. }),
                ..
            })) => {
                self.swarm.close_connection(connection);
            }
            SwarmEvent::ConnectionEstablished { connection_id, .. } => {
                if let Some((peer, question)) = self.dialling.remove(&connection_id) {
                    self.put(&peer, question);
                }
            }
            SwarmEvent::OutgoingConnectionError {
                connection_id, error, ..
            } => {
                if let Some((_, question)) = self.dialling.remove(&connection_id) {
                    question.fail(dial_fault(&error));
                }
            }
            SwarmEvent::ListenerClosed {
                addresses, reason, ..
            } => tracing::error!(?addresses, ?reason, "no longer listening"),
            SwarmEvent::ListenerError { error, .. } => tracing::warn!(%error, "listener"),
            other => tracing::trace!(event = ?other, "swarm"),
        }
    }

    fn on_blob_event(&mut self, event: Event<Request, Response>) {
        match event {
            Event::Message {
                peer,
                message:
                    Message::Request {
                        request_id,
                        request,
                        channel,
                    },
                ..
            } => self.on_request(peer, request_id, request, channel),
            Event::Message {
                message: Message::Response { request_id, response },
                ..
            } => {
                if let Some(reply) = self.asked.remove(&request_id) {
                    answer(reply, Ok(response));
                }
            }
            Event::OutboundFailure {
                request_id,
                error,
                connection_id,
                ..
            } => {
                if matches!(error, request_response::OutboundFailure::Timeout) {
                    // Whoever asks next shall find out at once whether the peer is still there.
                    self.swarm.close_connection(connection_id);
                }
                if let Some(reply) = self.asked.remove(&request_id) {
                    answer(reply, Err(request_fault(error, &BLOBS)));
                }
            }
            Event::InboundFailure {
                request_id,
                peer,
                error,
                ..
            } => {
                tracing::debug!(%peer, %error, "could not answer");
                self.inbound.remove(&request_id);
            }
            Event::ResponseSent { request_id, .. } => {
                self.inbound.remove(&request_id);
            }
        }
    }

    fn on_request(
        &mut self,
        peer: PeerId,
        id: InboundRequestId,
        request: Request,
        channel: ResponseChannel<Response>,
    ) {
        let of_peer = self.inbound.values().filter(|p| **p == peer).count();
        let busy = self.inbound.len() >= self.limits.inbound_requests_max
            || of_peer >= self.limits.inbound_per_peer_max;
        self.inbound.insert(id, peer);
        if busy {
            self.send(channel, Response::Busy);
            return;
        }
        match request {
            Request::Output { genesis, task } => {
                let output = self.outputs.get(task, &peer).filter(|_| genesis == self.genesis);
                let found = output.and_then(|(hash, statement)| {
                    Some(Response::Output {
                        hash: *hash,
                        bytes: self.store.size(hash)?,
                        statement: statement.clone(),
                    })
                });
                let response = found.unwrap_or(Response::NotFound);
                self.send(channel, response);
            }
            Request::Blob { hash, offset, len } => {
                let store = self.store.clone();
                self.answers
                    .spawn_blocking(move || Answer::Blob(channel, read_part(&store, hash, offset, len)));
            }
        }
    }

    fn send(&mut self, channel: ResponseChannel<Response>, response: Response) {
        // An error hands the response back: the peer is gone, which arrives as an event of its own.
        if self
            .swarm
            .behaviour_mut()
            .blobs
            .send_response(channel, response)
            .is_err()
        {
            tracing::debug!("the peer is gone before it was answered");
        }
    }
}

fn read_part(store: &BlobStore, hash: ContentHash, offset: u64, len: u32) -> Response {
    match store.read_part(&hash, offset, len.min(CHUNK_BYTES)) {
        Ok((bytes, total)) => Response::Chunk { total, bytes },
        Err(StoreError::OutOfRange { .. }) => Response::Refused,
        Err(StoreError::NotFound(_)) => Response::NotFound,
        Err(e) => {
            tracing::error!(error = %e, "cannot read a blob that was asked for");
            Response::NotFound
        }
    }
}

fn answer<R>(reply: Reply<R>, result: Result<R, Fault>) {
    if reply.send(result).is_err() {
        tracing::trace!("whoever asked no longer waits");
    }
}

fn dial_fault(error: &DialError) -> Fault {
    match error {
        DialError::WrongPeerId { obtained, .. } => Fault::WrongPeer {
            found: obtained.to_string(),
        },
        DialError::LocalPeerId { .. } => Fault::Unreachable("this is the own address".into()),
        DialError::Transport(causes) => {
            let text: Vec<String> = causes.iter().map(|(_, cause)| root_cause(cause)).collect();
            Fault::Unreachable(text.join("; "))
        }
        other => Fault::Unreachable(root_cause(other)),
    }
}

/// libp2p nests its transports' errors deeply; only the innermost says something to a person.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn request_fault(error: request_response::OutboundFailure, protocol: &StreamProtocol) -> Fault {
    use request_response::OutboundFailure as Failure;
    match error {
        Failure::Timeout => Fault::TimedOut,
        Failure::DialFailure => Fault::Unreachable("cannot be dialled".into()),
        Failure::ConnectionClosed => Fault::Unreachable("closed the connection".into()),
        Failure::UnsupportedProtocols => Fault::Protocol(format!("does not speak {protocol}")),
        Failure::Io(e) if e.kind() == std::io::ErrorKind::InvalidData => Fault::Protocol(e.to_string()),
        Failure::Io(e) => Fault::Unreachable(root_cause(&e)),
    }
}
