//! Who gets one of the places for connections and requests.
//!
//! A peer id costs nothing, an address a little, and a name on chain a stake or a fee. So strangers are
//! counted by their addresses, and never take all places: a share is kept for peers named on chain.
//!
//! Over QUIC an address costs nothing either until the handshake is done: one packet that names it begins
//! that, and libp2p-quic 0.14 has no setting to have its sender prove first that it receives there (Retry).
//! So these handshakes have places of their own, many and for a short time, of which no address has a share:
//! who spoofs one would shut its owner out.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
    task::{Context, Poll},
};

use libp2p::{
    PeerId,
    core::{Endpoint as Role, transport::PortUse},
    multiaddr::{Multiaddr, Protocol},
    swarm::{
        ConnectionClosed, ConnectionDenied, ConnectionId, FromSwarm, ListenFailure, NetworkBehaviour,
        THandler, THandlerInEvent, THandlerOutEvent, ToSwarm, dummy,
    },
};

use crate::{Limits, counters::Tally};

/// Most peers whose names are kept: far more than a chain has providers. Each takes some 40 bytes.
const NAMED_MAX: usize = 1 << 16;

/// Addresses that one party usually has all of: one of IPv4, a /64 of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AddressGroup {
    V4(Ipv4Addr),
    V6([u16; 4]),
    /// Not an IP address: nothing that this node listens on.
    Other,
}

impl AddressGroup {
    pub(crate) fn of(address: &Multiaddr) -> Self {
        match address.iter().next() {
            Some(Protocol::Ip4(ip)) => Self::V4(ip),
            Some(Protocol::Ip6(ip)) => Self::of_v6(ip),
            _ => Self::Other,
        }
    }

    fn of_v6(ip: Ipv6Addr) -> Self {
        match IpAddr::V6(ip).to_canonical() {
            // On a socket for both, a peer with IPv4 has such an address.
            IpAddr::V4(ip) => Self::V4(ip),
            IpAddr::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                Self::V6([a, b, c, d])
            }
        }
    }
}

/// The peers named on chain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Named {
    peers: HashSet<PeerId>,
    addresses: HashSet<AddressGroup>,
}

impl Named {
    pub(crate) fn new(named: impl Iterator<Item = (Multiaddr, PeerId)>) -> Self {
        let mut all = Self::default();
        for (address, peer) in named.take(NAMED_MAX) {
            all.peers.insert(peer);
            all.addresses.insert(AddressGroup::of(&address));
        }
        // Host names are not resolved: their peers are known once they have proven who they are.
        all.addresses.remove(&AddressGroup::Other);
        all
    }

    fn has(&self, peer: &PeerId) -> bool {
        self.peers.contains(peer)
    }
}

/// Somebody who has a connection or asks for something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guest {
    pub(crate) peer: PeerId,
    pub(crate) group: AddressGroup,
    /// The address itself.
    pub(crate) ip: Option<IpAddr>,
}

impl Guest {
    fn at(peer: PeerId, address: &Multiaddr) -> Self {
        Self {
            peer,
            group: AddressGroup::of(address),
            ip: ip_of(address),
        }
    }
}

/// The address of IP that an address begins with.
pub(crate) fn ip_of(address: &Multiaddr) -> Option<IpAddr> {
    match address.iter().next()? {
        Protocol::Ip4(ip) => Some(ip.into()),
        // On a socket for both, a peer with IPv4 has such an address.
        Protocol::Ip6(ip) => Some(IpAddr::V6(ip).to_canonical()),
        _ => None,
    }
}

/// How many may be there at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// All together.
    pub(crate) total: usize,
    /// Of these, how many strangers may not take.
    pub(crate) kept: usize,
    /// Strangers of one address.
    pub(crate) per_address: usize,
    /// Of one peer.
    pub(crate) per_peer: usize,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    Full,
    Strangers,
    Address,
    Peer,
}

impl fmt::Display for NoPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "all places are taken",
            Self::Strangers => "all places for peers that are not named on chain are taken",
            Self::Address => "too many from this address",
            Self::Peer => "too many of this peer",
        })
    }
}

impl std::error::Error for NoPlace {}

/// Why nobody is dialled.
#[derive(Clone, Copy, Debug)]
struct OwnFull;

impl fmt::Display for OwnFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this node has as many connections to others as it may")
    }
}

impl std::error::Error for OwnFull {}

impl Room {
    /// Whether there is a place for `new` beside those that are `present`. Looks at each of them: there are
    /// hundreds.
    pub(crate) fn admit<'a>(
        &self,
        present: impl Iterator<Item = &'a Guest>,
        new: &Guest,
        named: &Named,
    ) -> Result<(), NoPlace> {
        let (mut total, mut strangers, mut of_address, mut of_peer) = (0, 0, 0, 0);
        for guest in present {
            total += 1;
            of_peer += usize::from(guest.peer == new.peer);
            if !named.has(&guest.peer) {
                strangers += 1;
                of_address += usize::from(guest.group == new.group);
            }
        }
        if total >= self.total {
            return Err(NoPlace::Full);
        }
        if of_peer >= self.per_peer {
            return Err(NoPlace::Peer);
        }
        if named.has(&new.peer) {
            return Ok(());
        }
        if of_address >= self.per_address {
            return Err(NoPlace::Address);
        }
        if strangers >= self.total.saturating_sub(self.kept) {
            return Err(NoPlace::Strangers);
        }
        Ok(())
    }
}

/// Connections of others that are not yet known whose, over one transport. Half of the places are kept for
/// addresses that an endpoint on chain has.
struct Handshakes {
    total: usize,
    per_address: usize,
    pending: HashMap<ConnectionId, AddressGroup>,
}

impl Handshakes {
    fn new(total: usize, per_address: usize) -> Self {
        Self {
            total,
            per_address,
            pending: HashMap::new(),
        }
    }

    /// Takes a place, where there is one. Looks at each of the others: there are a thousand at most.
    fn begin(&mut self, id: ConnectionId, group: AddressGroup, named: &Named) -> Result<(), NoPlace> {
        let others = || self.pending.values();
        if self.pending.len() >= self.total {
            return Err(NoPlace::Full);
        }
        if others().filter(|other| **other == group).count() >= self.per_address {
            return Err(NoPlace::Address);
        }
        let is_strange = |group: &AddressGroup| !named.addresses.contains(group);
        let strange = || others().filter(|other| is_strange(other)).count();
        if is_strange(&group) && strange() >= self.total.div_ceil(2) {
            return Err(NoPlace::Strangers);
        }
        self.pending.insert(id, group);
        Ok(())
    }
}

/// Whether who connects from an address has shown that it receives what is sent there.
fn is_proven(remote: &Multiaddr) -> bool {
    remote.iter().any(|part| matches!(part, Protocol::Tcp(_)))
}

/// Connections of others: a part of the swarm's behaviour that only says yes or no.
pub(crate) struct Places {
    room: Room,
    named: Named,
    /// From addresses that are proven: over TCP.
    proven: Handshakes,
    /// From addresses that need not be their senders': over QUIC.
    unproven: Handshakes,
    inbound: HashMap<ConnectionId, Guest>,
    /// Those that this node made. They take no places of others, but their peers may ask for something, too.
    outbound: HashMap<ConnectionId, Guest>,
    outbound_max: usize,
    tally: Arc<Tally>,
}

impl Places {
    pub(crate) fn new(limits: &Limits, tally: Arc<Tally>) -> Self {
        Self {
            room: Room {
                total: limits.inbound_connections_max,
                kept: limits.inbound_connections_named,
                per_address: limits.connections_per_address_max,
                per_peer: limits.connections_per_peer_max,
            },
            named: Named::default(),
            proven: Handshakes::new(
                limits.inbound_connections_max / 4,
                limits.connections_per_address_max,
            ),
            unproven: Handshakes::new(limits.quic_handshakes_max, usize::MAX),
            inbound: HashMap::new(),
            outbound: HashMap::new(),
            outbound_max: limits.outbound_connections_max,
            tally,
        }
    }

    pub(crate) fn set_named(&mut self, named: Named) {
        self.named = named;
    }

    pub(crate) fn named(&self) -> &Named {
        &self.named
    }

    /// Who is at the other end of a connection.
    pub(crate) fn guest(&self, connection: ConnectionId, peer: PeerId) -> Guest {
        let known = self
            .inbound
            .get(&connection)
            .or_else(|| self.outbound.get(&connection));
        known.copied().unwrap_or(Guest {
            peer,
            group: AddressGroup::Other,
            ip: None,
        })
    }

    /// A handshake is over, however it went.
    fn end_handshake(&mut self, id: ConnectionId) {
        self.proven.pending.remove(&id);
        self.unproven.pending.remove(&id);
    }

    fn deny(&self, why: NoPlace) -> ConnectionDenied {
        match why {
            NoPlace::Full | NoPlace::Peer => self.tally.connections_refused_full.one(),
            NoPlace::Strangers => self.tally.connections_refused_strangers.one(),
            NoPlace::Address => self.tally.connections_refused_address.one(),
        }
        ConnectionDenied::new(why)
    }
}

impl NetworkBehaviour for Places {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Infallible;

    fn handle_pending_inbound_connection(
        &mut self,
        id: ConnectionId,
        _: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        let handshakes = match is_proven(remote) {
            true => &mut self.proven,
            false => &mut self.unproven,
        };
        let begun = handshakes.begin(id, AddressGroup::of(remote), &self.named);
        begun.map_err(|why| self.deny(why))
    }

    fn handle_established_inbound_connection(
        &mut self,
        id: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.end_handshake(id);
        let admitted = self
            .room
            .admit(self.inbound.values(), &Guest::at(peer, remote), &self.named);
        admitted.map_err(|why| self.deny(why))?;
        Ok(dummy::ConnectionHandler)
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: Role,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(dummy::ConnectionHandler)
    }

    fn handle_pending_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: Option<PeerId>,
        _: &[Multiaddr],
        _: Role,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        if self.outbound.len() >= self.outbound_max {
            return Err(ConnectionDenied::new(OwnFull));
        }
        Ok(Vec::new())
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionEstablished(new) => {
                let guest = Guest::at(new.peer_id, new.endpoint.get_remote_address());
                let direction = if new.endpoint.is_listener() {
                    &mut self.inbound
                } else {
                    &mut self.outbound
                };
                direction.insert(new.connection_id, guest);
            }
            FromSwarm::ConnectionClosed(ConnectionClosed { connection_id, .. }) => {
                self.inbound.remove(&connection_id);
                self.outbound.remove(&connection_id);
            }
            FromSwarm::ListenFailure(ListenFailure { connection_id, .. }) => {
                self.end_handshake(connection_id);
            }
            _ => return,
        }
        self.tally.connections_inbound.set(self.inbound.len() as u64);
        self.tally.connections_outbound.set(self.outbound.len() as u64);
    }

    fn on_connection_handler_event(&mut self, _: PeerId, _: ConnectionId, event: THandlerOutEvent<Self>) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        Poll::Pending
    }
}

#[cfg(test)]
mod tests;
