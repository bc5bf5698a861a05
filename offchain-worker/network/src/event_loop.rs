//! The one task that owns the swarm.
//!
//! It does nothing that waits: disk is read on blocking threads, tickets are judged by tasks of their own,
//! and every table is bounded by [`Limits`].

mod blobs;
mod calls;
mod reach;
mod streams;

use std::{collections::HashMap, sync::Arc};

use futures::StreamExt;
use libp2p::{
    PeerId, StreamProtocol, Swarm,
    multiaddr::Multiaddr,
    ping,
    request_response::{self, InboundRequestId, OutboundRequestId, ResponseChannel},
    swarm::{
        ConnectionId, DialError, NetworkBehaviour, SwarmEvent,
        dial_opts::{DialOpts, PeerCondition},
    },
};
use surety_types::{ContentHash, TaskId};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use crate::{
    Limits,
    access::{Allowed, Audience, Decision, DecisionCache, Grants},
    address::Scope,
    announced::Announced,
    call::behaviour::{Calls, Opening},
    pace::Pace,
    places::{Guest, Named, Places},
    plane::{Announcement, PeerError},
    shared::Shared,
    stream::StreamReader,
    wire::{
        Blobs, PageRequest, PageResponse, Reach, ReachRequest, ReachResponse, Request, Response, ScaleCodec,
        Streams,
    },
};

#[derive(NetworkBehaviour)]
pub(crate) struct Behaviour {
    pub(crate) places: Places,
    pub(crate) blobs: request_response::Behaviour<ScaleCodec<Blobs>>,
    pub(crate) streams: request_response::Behaviour<ScaleCodec<Streams>>,
    pub(crate) reach: request_response::Behaviour<ScaleCodec<Reach>>,
    pub(crate) calls: Calls,
    /// Finds connections that died silently.
    pub(crate) ping: ping::Behaviour,
}

pub(crate) type Reply<R> = oneshot::Sender<Result<R, PeerError>>;

/// Something to ask a peer, and who waits for the answer.
pub(crate) enum Question {
    Blob(Request, Reply<Response>),
    Page(PageRequest, Reply<PageResponse>),
    Reach(ReachRequest, Reply<ReachResponse>),
}

impl Question {
    fn fail(self, fault: PeerError) {
        match self {
            Self::Blob(_, reply) => answer(reply, Err(fault)),
            Self::Page(_, reply) => answer(reply, Err(fault)),
            Self::Reach(_, reply) => answer(reply, Err(fault)),
        }
    }

    fn is_waited_for(&self) -> bool {
        match self {
            Self::Blob(_, reply) => !reply.is_closed(),
            Self::Page(_, reply) => !reply.is_closed(),
            Self::Reach(_, reply) => !reply.is_closed(),
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
        output: Announcement,
        audience: Audience<PeerId>,
    },
    /// Let these read this blob, for this task.
    Grant {
        task: TaskId,
        blob: ContentHash,
        audience: Audience<PeerId>,
    },
    /// These are the peers named on chain.
    Name(Named),
    /// Serve this task's stream.
    OpenStream {
        task: TaskId,
        stream: StreamReader,
        audience: Audience<PeerId>,
    },
    /// No longer serve it.
    CloseStream { task: TaskId },
    /// Open a call with a peer, dialling it if need be.
    Call {
        peer: PeerId,
        addresses: Vec<Multiaddr>,
        opening: Opening,
    },
}

/// What was made apart from the loop, on its way to whoever asked.
enum Answer {
    Blob(ResponseChannel<Response>, Response),
    Page(ResponseChannel<PageResponse>, PageResponse),
    /// Of a ticket.
    Judged(blobs::Case, Option<Decision>),
    /// Whoever has opened a call was answered.
    Greeted,
}

pub(crate) struct EventLoop {
    swarm: Swarm<Behaviour>,
    commands: mpsc::Receiver<Command>,
    shared: Arc<Shared>,
    genesis: ContentHash,
    limits: Limits,
    /// From where this node is reached: as far does it dial those who ask for it.
    scope: Scope,
    /// Requests waiting for a connection.
    dialling: HashMap<ConnectionId, (PeerId, Question)>,
    /// Requests waiting for a response.
    asked: HashMap<OutboundRequestId, Reply<Response>>,
    /// The same for pages of streams.
    pages_asked: HashMap<OutboundRequestId, Reply<PageResponse>>,
    /// The same for whether we are reached.
    reach_asked: HashMap<OutboundRequestId, Reply<ReachResponse>>,
    /// Calls waiting for a connection: no more than places for own calls.
    calling: HashMap<ConnectionId, (PeerId, Vec<Opening>)>,
    /// Who is being dialled because it has asked for that.
    dialled_back: HashMap<ConnectionId, reach::Caller>,
    /// Requests of others that are not fully answered, and who asked.
    inbound: HashMap<InboundRequestId, Guest>,
    /// The same for pages of streams. Counted apart: they wait for news, and must not keep others from blobs.
    polls: HashMap<InboundRequestId, Guest>,
    answers: JoinSet<Answer>,
    outputs: Announced<Announcement>,
    streams: Announced<StreamReader>,
    grants: Grants<PeerId>,
    /// Whom the gate has let in, for what and with which ticket.
    allowances: DecisionCache<Allowed>,
    /// Whom the gate has refused, and what.
    refusals: DecisionCache<(PeerId, ContentHash)>,
    pace: Pace<PeerId>,
    /// Whose tickets are being judged, by the task that does.
    judging: HashMap<tokio::task::Id, Guest>,
}

impl EventLoop {
    pub(crate) fn new(
        swarm: Swarm<Behaviour>,
        commands: mpsc::Receiver<Command>,
        shared: Arc<Shared>,
        genesis: ContentHash,
        limits: Limits,
        scope: Scope,
    ) -> Self {
        Self {
            swarm,
            commands,
            shared,
            genesis,
            scope,
            dialling: HashMap::new(),
            asked: HashMap::new(),
            pages_asked: HashMap::new(),
            reach_asked: HashMap::new(),
            calling: HashMap::new(),
            dialled_back: HashMap::new(),
            inbound: HashMap::new(),
            polls: HashMap::new(),
            answers: JoinSet::new(),
            outputs: Announced::new(limits.outputs_max),
            streams: Announced::new(limits.streams_max),
            grants: Grants::new(limits.grants_max),
            allowances: DecisionCache::new(limits.gate_memory, limits.grants_max),
            refusals: DecisionCache::new(limits.gate_refusal_memory, limits.grants_max),
            pace: Pace::new(limits.bytes_per_second_per_peer_max),
            judging: HashMap::new(),
            limits,
        }
    }

    /// Runs until every handle is gone.
    pub(crate) async fn run(mut self) {
        loop {
            tokio::select! {
                // What the host says counts for all that others ask after it. The first two are soon through:
                // commands are the host's own, and answers no more than the requests that were let in.
                biased;
                command = self.commands.recv() => match command {
                    Some(command) => self.on_command(command),
                    None => return,
                },
                Some(answer) = self.answers.join_next_with_id() => match answer {
                    Ok((_, Answer::Blob(channel, response))) => self.send(channel, response),
                    Ok((_, Answer::Page(channel, response))) => self.send_page(channel, response),
                    Ok((_, Answer::Greeted)) => {}
                    Ok((id, Answer::Judged(case, decision))) => {
                        self.judging.remove(&id);
                        self.on_judged(case, decision);
                    }
                    Err(e) => {
                        self.judging.remove(&e.id());
                        tracing::error!(error = %e, "making an answer panicked");
                    }
                },
                event = self.swarm.select_next_some() => self.on_event(event),
            }
        }
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Announce {
                task,
                output,
                audience,
            } => self.announce(task, output, audience),
            Command::Grant { task, blob, audience } => self.grants.insert(task, blob, audience),
            Command::Name(named) => self.swarm.behaviour_mut().places.set_named(named),
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
            Command::Call {
                peer,
                addresses,
                opening,
            } => self.call(peer, addresses, opening),
        }
    }

    fn ask(&mut self, peer: PeerId, addresses: Vec<Multiaddr>, question: Question) {
        if !self.may_ask() {
            question.fail(PeerError::Busy);
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

    /// Whether there is room for another request. Those that nobody waits for any more, because their peer
    /// was too slow, count half: their time is up soon.
    fn may_ask(&self) -> bool {
        let max = self.limits.outbound_requests_max;
        let asked = self.asked.len() + self.pages_asked.len() + self.reach_asked.len();
        let under_way = self.dialling.len() + asked;
        let waited_for = || {
            let dialling = self.dialling.values().filter(|(_, q)| q.is_waited_for()).count();
            let asked = self.asked.values().filter(|reply| !reply.is_closed()).count();
            let pages = self
                .pages_asked
                .values()
                .filter(|reply| !reply.is_closed())
                .count();
            let reach = self
                .reach_asked
                .values()
                .filter(|reply| !reply.is_closed())
                .count();
            dialling + asked + pages + reach
        };
        under_way < max || (under_way < max.saturating_mul(2) && waited_for() < max)
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
            Question::Reach(request, reply) => {
                let id = behaviour.reach.send_request(peer, request);
                self.reach_asked.insert(id, reply);
            }
        }
    }

    fn on_event(&mut self, event: SwarmEvent<BehaviourEvent>) {
        match event {
            SwarmEvent::Behaviour(BehaviourEvent::Blobs(event)) => self.on_blob_event(event),
            SwarmEvent::Behaviour(BehaviourEvent::Streams(event)) => self.on_stream_event(event),
            SwarmEvent::Behaviour(BehaviourEvent::Reach(event)) => self.on_reach_event(event),
            SwarmEvent::Behaviour(BehaviourEvent::Calls(incoming)) => self.on_call(incoming),
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
                self.called(connection_id, None);
                self.dialled_back(connection_id, true);
            }
            SwarmEvent::OutgoingConnectionError {
                connection_id, error, ..
            } => {
                if let Some((_, question)) = self.dialling.remove(&connection_id) {
                    question.fail(dial_fault(&error));
                }
                self.called(connection_id, Some(&dial_fault(&error)));
                self.dialled_back(connection_id, false);
            }
            SwarmEvent::ListenerClosed {
                addresses, reason, ..
            } => tracing::error!(?addresses, ?reason, "no longer listening"),
            SwarmEvent::ListenerError { error, .. } => tracing::warn!(%error, "listener"),
            other => tracing::trace!(event = ?other, "swarm"),
        }
    }
}

fn answer<R>(reply: Reply<R>, result: Result<R, PeerError>) {
    if reply.send(result).is_err() {
        tracing::trace!("whoever asked no longer waits");
    }
}

fn dial_fault(error: &DialError) -> PeerError {
    match error {
        DialError::WrongPeerId { obtained, .. } => PeerError::WrongPeer {
            found: obtained.to_string(),
        },
        DialError::LocalPeerId { .. } => PeerError::Unreachable("this is the own address".into()),
        DialError::Transport(causes) => {
            let text: Vec<String> = causes.iter().map(|(_, cause)| root_cause(cause)).collect();
            PeerError::Unreachable(text.join("; "))
        }
        other => PeerError::Unreachable(root_cause(other)),
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

fn request_fault(error: request_response::OutboundFailure, protocol: &StreamProtocol) -> PeerError {
    use request_response::OutboundFailure as Failure;
    match error {
        Failure::Timeout => PeerError::TimedOut,
        Failure::DialFailure => PeerError::Unreachable("cannot be dialled".into()),
        Failure::ConnectionClosed => PeerError::Unreachable("closed the connection".into()),
        Failure::UnsupportedProtocols => PeerError::Protocol(format!("does not speak {protocol}")),
        Failure::Io(e) if e.kind() == std::io::ErrorKind::InvalidData => PeerError::Protocol(e.to_string()),
        Failure::Io(e) => PeerError::Unreachable(root_cause(&e)),
    }
}
