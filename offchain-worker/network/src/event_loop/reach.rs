//! Serving and asking `/surety/reach/1`: whoever asks is dialled back, and told whether that worked.
//!
//! Only at the address that it asks from, and not where that is one of this machine's own network, unless
//! this node is for that network alone: a gateway may stand for whoever asks, and nobody shall have others
//! dialled, or find out what answers behind it.

use std::net::IpAddr;

use libp2p::{
    PeerId,
    multiaddr::Multiaddr,
    request_response::{Event, Message, ResponseChannel},
    swarm::{
        ConnectionId,
        dial_opts::{DialOpts, PeerCondition},
    },
};
use surety_types::multiaddr::Endpoint;

use super::{EventLoop, answer, request_fault};
use crate::{
    address::{Scope, split_endpoint},
    places::{Guest, Room, ip_of},
    wire::{REACH, ReachRequest, ReachResponse},
};

/// Who waits to be dialled.
pub(super) struct Caller {
    guest: Guest,
    channel: ResponseChannel<ReachResponse>,
}

impl EventLoop {
    pub(super) fn on_reach_event(&mut self, event: Event<ReachRequest, ReachResponse>) {
        match event {
            Event::Message {
                peer,
                connection_id,
                message: Message::Request { request, channel, .. },
            } => self.on_reach_request(peer, connection_id, &request.address, channel),
            Event::Message {
                message: Message::Response { request_id, response },
                ..
            } => {
                if let Some(reply) = self.reach_asked.remove(&request_id) {
                    answer(reply, Ok(response));
                }
            }
            Event::OutboundFailure {
                request_id, error, ..
            } => {
                if let Some(reply) = self.reach_asked.remove(&request_id) {
                    answer(reply, Err(request_fault(error, &REACH)));
                }
            }
            Event::InboundFailure { peer, error, .. } => tracing::debug!(%peer, %error, "could not answer"),
            Event::ResponseSent { .. } => {}
        }
    }

    fn on_reach_request(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        address: &Endpoint,
        channel: ResponseChannel<ReachResponse>,
    ) {
        let places = &self.swarm.behaviour().places;
        let guest = places.guest(connection, peer);
        let room = Room {
            total: self.limits.dial_backs_max,
            kept: self.limits.dial_backs_named,
            per_address: 1,
            per_peer: 1,
        };
        let present = self.dialled_back.values().map(|caller| &caller.guest);
        if room.admit(present, &guest, places.named()).is_err() {
            self.shared.tally.requests_refused_busy.one();
            return self.send_reach(channel, ReachResponse::Busy);
        }
        let address = match split_endpoint(address) {
            Ok((address, of)) if of == peer && self.is_dialled(&guest, &address) => address,
            _ => {
                let seen = match guest.ip {
                    Some(IpAddr::V4(ip)) if Scope::of_ip(ip.into()) <= self.scope => Some(ip.octets()),
                    // Whoever has IPv6 is seen where it is.
                    _ => None,
                };
                return self.send_reach(channel, ReachResponse::Elsewhere(seen));
            }
        };
        let dial = DialOpts::peer_id(peer)
            .addresses(vec![address])
            .condition(PeerCondition::Always)
            // A gateway that lets in what answers a packet of its own would let this one in, too.
            .allocate_new_port()
            .build();
        let dialled = dial.connection_id();
        match self.swarm.dial(dial) {
            Ok(()) => {
                self.dialled_back.insert(dialled, Caller { guest, channel });
            }
            Err(_) => self.send_reach(channel, ReachResponse::Unreached),
        }
    }

    /// Whether a peer that asks is dialled at an address.
    fn is_dialled(&self, guest: &Guest, address: &Multiaddr) -> bool {
        let is_its_own = guest.ip.is_some() && guest.ip == ip_of(address);
        is_its_own && Scope::of(address).is_some_and(|scope| scope <= self.scope)
    }

    /// A connection has come about, or has not: it may be one that somebody has asked for.
    pub(super) fn dialled_back(&mut self, connection: ConnectionId, is_up: bool) {
        let Some(caller) = self.dialled_back.remove(&connection) else {
            return;
        };
        if !is_up {
            return self.send_reach(caller.channel, ReachResponse::Unreached);
        }
        self.send_reach(caller.channel, ReachResponse::Reached);
        // It has shown what it was made for. Whoever asks again and again would have a socket of ours each
        // time.
        self.swarm.close_connection(connection);
    }

    fn send_reach(&mut self, channel: ResponseChannel<ReachResponse>, response: ReachResponse) {
        let reach = &mut self.swarm.behaviour_mut().reach;
        // An error hands the response back: the peer is gone, which arrives as an event of its own.
        if reach.send_response(channel, response).is_err() {
            tracing::debug!("the peer is gone before it was answered");
        }
    }
}
