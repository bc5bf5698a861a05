//! Peers that trickle, stall, lie or take all they can get: what they cost is bounded, and others are served.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use common::{
    QUIC, TCP, attempts, endpoint,
    hostile::{Manner, hostile},
    limits, peer, peer_with, share,
};
use surety_network::{CallError, DataPlane, FetchOptions, Limits, PeerError, PlaneError, parse_endpoint};
use surety_proofs::content_hash;
use surety_types::multiaddr::Endpoint;
use tokio::{net::UdpSocket, task::JoinSet};

const BLOB: &[u8] = b"a blob";

/// Much longer than any of these tests may take.
const HOUR: Duration = Duration::from_secs(3600);

/// Gives a peer up soon.
fn strict() -> Limits {
    Limits {
        slow_grace: Duration::from_millis(150),
        bytes_per_second_min: 1 << 40,
        request_timeout: HOUR,
        ..limits()
    }
}

#[tokio::test]
async fn each_kind_of_hostile_peer_is_named_and_the_next_source_delivers() {
    let over = u32::MAX.to_le_bytes().to_vec();
    type Names = fn(&PeerError) -> bool;
    let kinds: [(Manner, Names); 5] = [
        (Manner::trickle(BLOB, Duration::from_millis(100)), |f| {
            *f == PeerError::TimedOut
        }),
        (Manner::Stall, |f| *f == PeerError::TimedOut),
        (Manner::HangUp, |f| matches!(f, PeerError::Unreachable(_))),
        (Manner::Raw(over), |f| matches!(f, PeerError::Protocol(_))),
        (Manner::trickle(b"a lie!", Duration::ZERO), |f| {
            *f == PeerError::WrongHash
        }),
    ];
    let (honest, client) = (peer(&[QUIC]).await, peer_with(&[], 0, strict()).await.unwrap());
    share(&honest, BLOB).await;
    let hash = content_hash(BLOB);
    let options = FetchOptions::sized(BLOB.len() as u64);
    for (manner, expected) in kinds {
        let bad = hostile(manner).await;
        let alone = attempts(
            client
                .node
                .fetch(hash, std::slice::from_ref(&bad.endpoint), &options)
                .await,
        );
        assert!(expected(&alone[0].fault), "{alone:?}");
        // A client of its own: this one keeps what it has fetched.
        let other = peer_with(&[], 0, strict()).await.unwrap();
        let sources = [bad.endpoint.clone(), endpoint(&honest)];
        assert_eq!(
            &other.node.fetch(hash, &sources, &options).await.unwrap()[..],
            BLOB
        );
        let counters = other.node.counters();
        assert_eq!((counters.fetches_done, counters.sources_failed), (1, 1));
    }
    assert_eq!(client.node.counters().fetches_failed, 5);
}

#[tokio::test]
async fn a_fetch_ends_when_its_callers_time_is_up_and_says_who_was_asked() {
    let patient = Limits {
        slow_grace: HOUR,
        request_timeout: HOUR,
        ..limits()
    };
    let (bad, client) = (
        hostile(Manner::Stall).await,
        peer_with(&[], 0, patient).await.unwrap(),
    );
    let options = FetchOptions::default().within(Duration::from_millis(200));
    let fetched = client
        .node
        .fetch(content_hash(BLOB), std::slice::from_ref(&bad.endpoint), &options)
        .await;
    assert!(
        matches!(&fetched, Err(PlaneError::OutOfTime { seconds: 0, .. })),
        "{fetched:?}"
    );
    let causes = attempts(fetched);
    assert_eq!(causes.len(), 1);
    assert_eq!(causes[0].fault, PeerError::TimedOut);
}

#[tokio::test]
async fn fetches_from_a_peer_that_stalls_do_not_hold_up_the_others() {
    let patient = Limits {
        slow_grace: HOUR,
        request_timeout: HOUR,
        fetches_max: 2,
        fetches_per_peer_max: 1,
        ..limits()
    };
    let (bad, honest) = (hostile(Manner::Stall).await, peer(&[QUIC]).await);
    let client = Arc::new(peer_with(&[], 0, patient).await.unwrap());
    let mut waiting = JoinSet::new();
    for n in 0..8u8 {
        let (client, source) = (client.clone(), [bad.endpoint.clone()]);
        waiting.spawn(async move {
            let hash = content_hash(&[n]);
            client
                .node
                .fetch(hash, &source, &FetchOptions::default())
                .await
                .is_ok()
        });
    }
    tokio::task::yield_now().await;
    for blob in [b"one", b"two"] {
        let hash = share(&honest, blob).await;
        let fetched = client
            .node
            .fetch(hash, &[endpoint(&honest)], &FetchOptions::default())
            .await;
        assert_eq!(&fetched.unwrap()[..], blob);
    }
    assert!(waiting.try_join_next().is_none(), "the eight still wait");
}

#[tokio::test]
async fn strangers_at_one_address_do_not_take_the_places_of_peers_named_on_chain() {
    let few = Limits {
        inbound_connections_max: 16,
        inbound_connections_named: 2,
        connections_per_address_max: 2,
        ..limits()
    };
    let server = peer_with(&[TCP], 0, few).await.unwrap();
    let hash = share(&server, BLOB).await;
    let (at, any) = ([endpoint(&server)], FetchOptions::default());
    let mut strangers = Vec::new();
    for _ in 0..2 {
        let stranger = peer(&[TCP]).await;
        stranger.node.fetch(hash, &at, &any).await.unwrap();
        strangers.push(stranger);
    }
    assert_eq!(server.node.counters().connections_inbound, 2);
    let third = peer(&[TCP]).await;
    let causes = attempts(third.node.fetch(hash, &at, &any).await);
    assert!(matches!(causes[0].fault, PeerError::Unreachable(_)), "{causes:?}");
    assert_eq!(server.node.counters().connections_refused_address, 1);

    // One is named after it has connected, one before: neither counts for the address any more.
    let provider = peer(&[TCP]).await;
    let named: Vec<Endpoint> = [&provider, &strangers[0]].map(endpoint).to_vec();
    server.node.set_named_peers(&named).await.unwrap();
    provider.node.fetch(hash, &at, &any).await.unwrap();
    third.node.fetch(hash, &at, &any).await.unwrap();
    // Names are replaced, not added to.
    server.node.set_named_peers(&[]).await.unwrap();
    let fourth = peer(&[TCP]).await;
    attempts(fourth.node.fetch(hash, &at, &any).await);
}

/// Leads packets to who listens at an endpoint over QUIC, and none back: as to who says another address than
/// its own.
async fn one_way(to: &Endpoint) -> Endpoint {
    let text = to.to_string();
    let (host, rest) = text.split_once("/udp/").unwrap();
    let (port, rest) = rest.split_once('/').unwrap();
    let here = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let there = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    there.connect(format!("127.0.0.1:{port}")).await.unwrap();
    let port = here.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut packet = [0; 2048];
        while let Ok(bytes) = here.recv(&mut packet).await {
            there.send(&packet[..bytes]).await.ok();
        }
    });
    parse_endpoint(&format!("{host}/udp/{port}/{rest}")).unwrap()
}

#[tokio::test]
async fn handshakes_over_quic_that_never_end_keep_strangers_from_quic_and_nobody_from_tcp() {
    // One place for strangers over each.
    let few = Limits {
        inbound_connections_max: 8,
        inbound_connections_named: 2,
        quic_handshakes_max: 2,
        quic_handshake_timeout: HOUR,
        dial_timeout: HOUR,
        ..limits()
    };
    let server = peer_with(&[QUIC, TCP], 0, few).await.unwrap();
    let hash = share(&server, BLOB).await;
    let (both, any) = (server.node.endpoints(), FetchOptions::default());
    let over_quic = std::slice::from_ref(&both[0]);

    let patient = Limits {
        quic_handshake_timeout: HOUR,
        dial_timeout: HOUR,
        fetches_per_peer_max: 4,
        ..limits()
    };
    let flood = Arc::new(peer_with(&[], 0, patient).await.unwrap());
    let nowhere = one_way(&both[0]).await;
    let mut waiting = JoinSet::new();
    for n in 0..4u8 {
        let (flood, source) = (flood.clone(), [nowhere.clone()]);
        waiting.spawn(async move {
            let any = FetchOptions::default();
            flood.node.fetch(content_hash(&[n]), &source, &any).await.is_ok()
        });
    }
    let is_full = async {
        while server.node.counters().connections_refused_strangers == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), is_full)
        .await
        .unwrap();

    let [stranger, caller] = [peer(&[]).await, peer(&[]).await];
    let causes = attempts(stranger.node.fetch(hash, over_quic, &any).await);
    assert!(matches!(causes[0].fault, PeerError::Unreachable(_)), "{causes:?}");
    assert_eq!(&stranger.node.fetch(hash, &both, &any).await.unwrap()[..], BLOB);
    // A call dials both at once. It is the server itself that takes none.
    let called = caller.node.open_call(&both).await.err();
    assert_eq!(called, Some(CallError::NotServed));
}

#[tokio::test]
async fn a_peer_is_sent_no_more_than_its_rate_and_what_it_has_is_kept() {
    let slow = Limits {
        bytes_per_second_per_peer_max: 4 << 20,
        ..limits()
    };
    let (server, client) = (peer_with(&[QUIC], 0, slow).await.unwrap(), peer(&[]).await);
    let blob = vec![1; 9 << 20];
    let hash = share(&server, &blob).await;
    let started = Instant::now();
    let fetched = client
        .node
        .fetch(hash, &[endpoint(&server)], &FetchOptions::default())
        .await;
    assert_eq!(fetched.unwrap(), blob);
    // Five chunks at once, four more at a quarter of a second each.
    assert!(
        started.elapsed() >= Duration::from_millis(900),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(server.node.counters().bytes_served, 9 << 20);
    assert_eq!(client.node.counters().bytes_fetched, 9 << 20);
}

#[tokio::test]
async fn a_peer_over_its_rate_is_put_off_when_it_would_have_to_wait_long() {
    let slow = Limits {
        bytes_per_second_per_peer_max: 1,
        ..limits()
    };
    let (server, client) = (peer_with(&[QUIC], 0, slow).await.unwrap(), peer(&[]).await);
    let (first, second) = (share(&server, &[1; 1000]).await, share(&server, &[2; 1000]).await);
    let (at, any) = ([endpoint(&server)], FetchOptions::default());
    client.node.fetch(first, &at, &any).await.unwrap();
    let causes = attempts(client.node.fetch(second, &at, &any).await);
    assert_eq!(causes[0].fault, PeerError::Busy);
    let counters = server.node.counters();
    assert_eq!(
        (counters.requests_refused_rate, counters.requests_refused_busy),
        (1, 0)
    );
}
