//! The swarm's part of calls: streams of `/surety/call/1`, opened and taken.
//!
//! As `libp2p-stream` does it, but that one drops a stream that comes in while another waits, says of none by
//! which connection it came, opens one at a time, and remembers every connection that there ever was.

use std::{
    collections::VecDeque,
    task::{Context, Poll},
    time::Duration,
};

use libp2p::{
    PeerId, Stream, StreamProtocol,
    core::{Endpoint as Role, transport::PortUse, upgrade::ReadyUpgrade},
    multiaddr::Multiaddr,
    swarm::{
        ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm,
        NetworkBehaviour, NotifyHandler, StreamUpgradeError, SubstreamProtocol, THandler, THandlerInEvent,
        THandlerOutEvent, ToSwarm,
        handler::{ConnectionEvent, DialUpgradeError, FullyNegotiatedInbound, FullyNegotiatedOutbound},
    },
};
use tokio::sync::oneshot;

use crate::{
    call::{CallError, desk::OwnPlace},
    event_loop::root_cause,
    plane::PeerError,
    wire::CALLS,
};

/// A stream with its place.
pub(crate) type Opened = Result<(Stream, OwnPlace), CallError>;

/// Somebody here who waits for a stream. Its place goes along, so that there are never more than places.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) place: OwnPlace,
    pub(crate) reply: oneshot::Sender<Opened>,
}

impl Opening {
    pub(crate) fn fail(self, why: CallError) {
        self.answer(|_| Err(why));
    }

    fn open(self, stream: Stream) {
        self.answer(|place| Ok((stream, place)));
    }

    fn answer(self, answer: impl FnOnce(OwnPlace) -> Opened) {
        if self.reply.send(answer(self.place)).is_err() {
            tracing::trace!("whoever opened a call no longer waits");
        }
    }
}

/// A stream that a peer has opened.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) peer: PeerId,
    pub(crate) connection: ConnectionId,
    pub(crate) stream: Stream,
}

/// The behaviour. Its events are taken before it is given new ones: the queue is short.
pub(crate) struct Calls {
    timeout: Duration,
    events: VecDeque<ToSwarm<Incoming, Opening>>,
}

impl Calls {
    /// Opening a stream may take so long.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            events: VecDeque::new(),
        }
    }

    /// Opens a stream over one of the connections to a peer. Where there is none any more, whoever waits is
    /// dropped.
    pub(crate) fn open(&mut self, peer_id: PeerId, event: Opening) {
        self.events.push_back(ToSwarm::NotifyHandler {
            peer_id,
            handler: NotifyHandler::Any,
            event,
        });
    }

    fn handler(&self) -> Handler {
        Handler {
            timeout: self.timeout,
            openings: VecDeque::new(),
            incoming: VecDeque::new(),
        }
    }
}

impl NetworkBehaviour for Calls {
    type ConnectionHandler = Handler;
    type ToSwarm = Incoming;

    fn handle_established_inbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(self.handler())
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: Role,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(self.handler())
    }

    fn on_swarm_event(&mut self, _: FromSwarm<'_>) {}

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        stream: THandlerOutEvent<Self>,
    ) {
        self.events.push_back(ToSwarm::GenerateEvent(Incoming {
            peer,
            connection,
            stream,
        }));
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        self.events.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}

/// The same on one connection. It keeps no connection alive: streams do.
pub(crate) struct Handler {
    timeout: Duration,
    /// Streams to be opened: no more than places for own calls.
    openings: VecDeque<Opening>,
    /// Streams that were opened. The connection stands still until they are taken.
    incoming: VecDeque<Stream>,
}

impl ConnectionHandler for Handler {
    type FromBehaviour = Opening;
    type ToBehaviour = Stream;
    type InboundProtocol = ReadyUpgrade<StreamProtocol>;
    type OutboundProtocol = ReadyUpgrade<StreamProtocol>;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = Opening;

    fn listen_protocol(&self) -> SubstreamProtocol<Self::InboundProtocol> {
        SubstreamProtocol::new(ReadyUpgrade::new(CALLS), ())
    }

    fn on_behaviour_event(&mut self, opening: Opening) {
        self.openings.push_back(opening);
    }

    fn poll(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<ConnectionHandlerEvent<Self::OutboundProtocol, Opening, Stream>> {
        if let Some(stream) = self.incoming.pop_front() {
            return Poll::Ready(ConnectionHandlerEvent::NotifyBehaviour(stream));
        }
        while let Some(opening) = self.openings.pop_front() {
            if !opening.reply.is_closed() {
                let protocol = SubstreamProtocol::new(ReadyUpgrade::new(CALLS), opening);
                let protocol = protocol.with_timeout(self.timeout);
                return Poll::Ready(ConnectionHandlerEvent::OutboundSubstreamRequest { protocol });
            }
        }
        Poll::Pending
    }

    fn on_connection_event(
        &mut self,
        event: ConnectionEvent<'_, Self::InboundProtocol, Self::OutboundProtocol, (), Opening>,
    ) {
        match event {
            ConnectionEvent::FullyNegotiatedInbound(FullyNegotiatedInbound { protocol, .. }) => {
                self.incoming.push_back(protocol);
            }
            ConnectionEvent::FullyNegotiatedOutbound(FullyNegotiatedOutbound { protocol, info }) => {
                info.open(protocol);
            }
            ConnectionEvent::DialUpgradeError(DialUpgradeError { info, error }) => info.fail(match error {
                StreamUpgradeError::NegotiationFailed => CallError::NotServed,
                StreamUpgradeError::Timeout => CallError::Unreachable(PeerError::TimedOut),
                StreamUpgradeError::Io(error) => {
                    CallError::Unreachable(PeerError::Unreachable(root_cause(&error)))
                }
                StreamUpgradeError::Apply(never) => match never {},
            }),
            _ => {}
        }
    }
}
