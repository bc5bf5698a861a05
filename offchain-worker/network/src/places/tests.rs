#![allow(clippy::unwrap_used)]
use super::*;

fn group(address: &str) -> AddressGroup {
    AddressGroup::of(&address.parse().unwrap())
}

fn guest(address: &str) -> Guest {
    Guest::at(PeerId::random(), &address.parse().unwrap())
}

const HERE: &str = "/ip4/127.0.0.1/tcp/1";
const ROOM: Room = Room {
    total: 4,
    kept: 1,
    per_address: 2,
    per_peer: 2,
};

#[test]
fn an_address_is_one_of_ipv4_or_a_slash_64_of_ipv6() {
    assert_eq!(group("/ip4/1.2.3.4/tcp/1"), group("/ip4/1.2.3.4/udp/2/quic-v1"));
    assert_ne!(group("/ip4/1.2.3.4/tcp/1"), group("/ip4/1.2.3.5/tcp/1"));
    assert_eq!(group("/ip6/::ffff:1.2.3.4/tcp/1"), group("/ip4/1.2.3.4/tcp/1"));
    assert_eq!(
        group("/ip6/2001:db8:0:1::1/tcp/1"),
        group("/ip6/2001:db8:0:1:ffff::/tcp/1")
    );
    assert_ne!(
        group("/ip6/2001:db8:0:1::1/tcp/1"),
        group("/ip6/2001:db8:0:2::1/tcp/1")
    );
}

#[test]
fn strangers_are_counted_by_address_and_leave_the_kept_places_to_named_peers() {
    let (first, second) = (guest(HERE), guest(HERE));
    let elsewhere = [guest("/ip4/1.1.1.1/tcp/1"), guest("/ip4/2.2.2.2/tcp/1")];
    let (known, known_too) = (guest(HERE), guest(HERE));
    let named = Named::new([known, known_too].iter().map(|g| (HERE.parse().unwrap(), g.peer)));
    let admit = |present: &[Guest], new| ROOM.admit(present.iter(), &new, &named);

    assert_eq!(admit(&[first], second), Ok(()));
    assert_eq!(admit(&[first, second], guest(HERE)), Err(NoPlace::Address));
    assert_eq!(admit(&[first, second], elsewhere[0]), Ok(()));
    let strangers = [first, second, elsewhere[0]];
    assert_eq!(admit(&strangers, elsewhere[1]), Err(NoPlace::Strangers));
    assert_eq!(admit(&strangers, known), Ok(()));
    assert_eq!(
        admit(&[first, second, elsewhere[0], known], known_too),
        Err(NoPlace::Full)
    );
    // Named peers count neither as strangers nor for their address.
    assert_eq!(admit(&[known, known_too, first], second), Ok(()));
    assert_eq!(admit(&[known, known], known), Err(NoPlace::Peer));
}

#[test]
fn nobody_is_dialled_while_there_are_as_many_connections_to_others_as_there_may_be() {
    let limits = Limits {
        outbound_connections_max: 1,
        ..Limits::default()
    };
    let mut places = Places::new(&limits, Arc::default());
    let dial = |places: &mut Places, n| {
        let id = ConnectionId::new_unchecked(n);
        places.handle_pending_outbound_connection(id, None, &[], Role::Dialer)
    };
    assert!(dial(&mut places, 1).is_ok());
    places
        .outbound
        .insert(ConnectionId::new_unchecked(1), guest(HERE));
    assert!(dial(&mut places, 2).is_err());
    places.outbound.clear();
    assert!(dial(&mut places, 3).is_ok());
}

fn addresses<const N: usize>(texts: [&str; N]) -> [Multiaddr; N] {
    texts.map(|text| text.parse().unwrap())
}

/// Whether somebody may begin to prove who it is.
fn begins(places: &mut Places, n: usize, from: &str) -> bool {
    let [here, from] = addresses([HERE, from]);
    let id = ConnectionId::new_unchecked(n);
    places.handle_pending_inbound_connection(id, &here, &from).is_ok()
}

/// Whether somebody who has proven who it is may stay.
fn stays(places: &mut Places, n: usize, peer: PeerId, from: &str) -> bool {
    let [here, from] = addresses([HERE, from]);
    let id = ConnectionId::new_unchecked(n);
    let stays = places.handle_established_inbound_connection(id, peer, &here, &from);
    stays.is_ok()
}

/// Places where one peer is named on chain, at `at`.
fn naming(at: &str, limits: &Limits) -> (Places, PeerId) {
    let (mut places, peer) = (Places::new(limits, Arc::default()), PeerId::random());
    places.set_named(Named::new([(at.parse().unwrap(), peer)].into_iter()));
    (places, peer)
}

#[test]
fn who_has_not_proven_its_name_is_limited_by_address_and_leaves_room_for_addresses_on_chain() {
    let limits = Limits {
        inbound_connections_max: 16,
        connections_per_address_max: 2,
        ..Limits::default()
    };
    let (named, strange) = ("/ip4/9.9.9.9/tcp/1", "/ip4/2.2.2.2/tcp/1");
    let (mut places, peer) = naming(named, &limits);
    // 16 / 4 = 4 at once, of which 2 from strange addresses.
    assert!(begins(&mut places, 1, HERE) && begins(&mut places, 2, HERE));
    assert!(!begins(&mut places, 3, HERE), "two of this address");
    assert!(!begins(&mut places, 4, strange), "two of strange addresses");
    assert!(begins(&mut places, 5, named) && begins(&mut places, 6, named));
    assert!(stays(&mut places, 1, peer, HERE));
    assert!(begins(&mut places, 7, strange), "one of them is through");
    assert_eq!(places.tally.snapshot().connections_refused_address, 1);
    assert_eq!(places.tally.snapshot().connections_refused_strangers, 1);
}

#[test]
fn packets_that_begin_handshakes_over_quic_take_neither_tcps_places_nor_all_of_named_addresses() {
    let limits = Limits {
        inbound_connections_max: 16,
        connections_per_address_max: 1,
        quic_handshakes_max: 8,
        ..Limits::default()
    };
    let (named, strange) = ("/ip4/9.9.9.9/udp/1/quic-v1", "/ip4/2.2.2.2/udp/1/quic-v1");
    let (mut places, peer) = naming(named, &limits);
    for n in 0..4 {
        assert!(begins(&mut places, n, &format!("/ip4/1.1.1.{n}/udp/1/quic-v1")));
    }
    assert!(!begins(&mut places, 4, strange), "half of all");
    // What says that it is the named peer's takes nothing of a share of its address.
    assert!((5..8).all(|n| begins(&mut places, n, named)));
    assert!(begins(&mut places, 8, named) && !begins(&mut places, 9, named));
    assert!(stays(&mut places, 8, peer, named));
    assert!(begins(&mut places, 10, named), "it is through");
    assert!(begins(&mut places, 11, "/ip4/1.1.1.1/tcp/1"));
    assert!(begins(&mut places, 12, "/ip4/2.2.2.2/tcp/1"));
    assert!(begins(&mut places, 13, "/ip4/9.9.9.9/tcp/1"));
}
