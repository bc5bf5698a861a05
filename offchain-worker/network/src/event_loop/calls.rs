//! Opening calls, and taking those of others: `/surety/call/1`.

use libp2p::{
    PeerId,
    multiaddr::Multiaddr,
    swarm::{
        ConnectionId,
        dial_opts::{DialOpts, PeerCondition},
    },
};

use super::{Answer, EventLoop, dial_fault};
use crate::{
    call::{
        CallError, CallStream, Patience,
        behaviour::{Incoming, Opening},
        desk::{Verdict, greet},
    },
    places::{NoPlace, Room},
    plane::PeerError,
    wire::CallGreeting,
};

impl EventLoop {
    /// Opens a call, over the connection that there is, or is being made for another call.
    pub(super) fn call(&mut self, peer: PeerId, addresses: Vec<Multiaddr>, opening: Opening) {
        if self.swarm.is_connected(&peer) {
            self.swarm.behaviour_mut().calls.open(peer, opening);
            return;
        }
        if let Some((_, openings)) = self.calling.values_mut().find(|(called, _)| *called == peer) {
            openings.push(opening);
            return;
        }
        let dial = DialOpts::peer_id(peer)
            .addresses(addresses)
            .condition(PeerCondition::Always)
            .build();
        let connection = dial.connection_id();
        match self.swarm.dial(dial) {
            Ok(()) => {
                self.calling.insert(connection, (peer, vec![opening]));
            }
            Err(error) => opening.fail(CallError::Unreachable(dial_fault(&error))),
        }
    }

    /// A connection has come about, or has not: calls may have waited for it.
    pub(super) fn called(&mut self, connection: ConnectionId, fault: Option<&PeerError>) {
        let Some((peer, openings)) = self.calling.remove(&connection) else {
            return;
        };
        for opening in openings {
            match fault {
                None => self.swarm.behaviour_mut().calls.open(peer, opening),
                Some(fault) => opening.fail(CallError::Unreachable(fault.clone())),
            }
        }
    }

    /// A peer has opened a call.
    pub(super) fn on_call(&mut self, incoming: Incoming) {
        let Incoming {
            peer,
            connection,
            stream,
        } = incoming;
        let places = &self.swarm.behaviour().places;
        let guest = places.guest(connection, peer);
        let room = Room {
            total: self.limits.calls_max,
            kept: self.limits.calls_named,
            per_address: self.limits.calls_per_address_max,
            per_peer: self.limits.calls_per_peer_max,
        };
        let desk = &self.shared.desk;
        let admitted = match desk.listener() {
            Some(listener) => match desk.admit(guest, &room, places.named()) {
                Ok(place) => Ok((place, Verdict::Taken(listener))),
                Err(why) => {
                    tracing::debug!(%peer, %why, "a call is refused");
                    Err(match why {
                        NoPlace::Full | NoPlace::Strangers => CallGreeting::Full,
                        NoPlace::Address | NoPlace::Peer => CallGreeting::TooMany,
                    })
                }
            },
            None => Err(CallGreeting::NotServed),
        };
        let refuse = |why| Some((desk.refuse()?, Verdict::Refused(why)));
        let Some((place, verdict)) = admitted.map_or_else(refuse, Some) else {
            self.shared.tally.calls_refused_full.one();
            return;
        };
        let call = CallStream::new(stream, &peer.to_base58(), Patience::of(&self.limits), place);
        let (shared, genesis, time) = (self.shared.clone(), self.genesis, self.limits.request_timeout);
        self.answers.spawn(async move {
            greet(call, genesis, verdict, time, &shared.tally).await;
            Answer::Greeted
        });
    }
}
