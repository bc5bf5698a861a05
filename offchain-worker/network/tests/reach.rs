//! Peers that are asked whether they reach this one.
#![allow(clippy::unwrap_used)]

mod common;

use std::{
    net::{TcpListener, UdpSocket},
    time::Duration,
};

use common::{Peer, QUIC, TCP, endpoint, limits, peer, peer_at, peer_with};
use surety_network::{DataPlane, Limits, Reachability, parse_endpoint};
use surety_types::multiaddr::Endpoint;

/// Where nobody listens: a port that the system has just given to us alone.
fn silent() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, format!("/ip4/127.0.0.1/udp/{port}/quic-v1"))
}

/// One whose dials are over before those who wait for them give up.
async fn patient(listen: &[&str]) -> Peer {
    peer_with(listen, 0, patience()).await.unwrap()
}

fn patience() -> Limits {
    Limits {
        dial_timeout: Duration::from_secs(1),
        request_timeout: Duration::from_secs(10),
        ..limits()
    }
}

async fn found(listen: &[&str], external: &[String], peers: &[Endpoint]) -> Vec<Reachability> {
    let asking = peer_at(listen, external, patience()).await;
    let all = asking.node.reachability(peers).await;
    assert_eq!(all.len(), asking.node.endpoints().len());
    all.into_iter().map(|(_, found)| found).collect()
}

#[tokio::test]
async fn who_listens_where_it_says_is_reached_over_quic_and_tcp() {
    for listen in [QUIC, TCP] {
        let helper = [endpoint(&peer(&[listen]).await)];
        assert_eq!(
            found(&[QUIC, TCP], &[], &helper).await,
            [Reachability::Unknown, Reachability::Unknown],
            "it is gone"
        );
        let helper = peer(&[listen]).await;
        let found = found(&[QUIC, TCP], &[], &[endpoint(&helper)]).await;
        assert_eq!(found, [Reachability::Reachable, Reachability::Reachable]);
    }
}

#[tokio::test]
async fn an_address_at_which_nobody_or_somebody_else_answers_is_not_reached() {
    let helpers = [patient(&[QUIC]).await, patient(&[TCP]).await];
    let peers: Vec<Endpoint> = helpers.iter().map(endpoint).collect();
    let (_socket, nobody) = silent();
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let other = endpoint(&peer(&[TCP]).await).to_string();
    let other = other.split("/p2p").next().unwrap().to_owned();
    for external in [nobody, format!("/ip4/127.0.0.1/tcp/{closed}"), other] {
        let found = found(&[QUIC], std::slice::from_ref(&external), &peers).await;
        assert_eq!(found, [Reachability::Unreachable], "{external}");
    }
}

#[tokio::test]
async fn nobody_is_dialled_at_an_address_that_it_does_not_ask_from() {
    let helper = peer(&[TCP]).await;
    let listening = TcpListener::bind("127.0.0.2:0").unwrap();
    listening.set_nonblocking(true).unwrap();
    let elsewhere = format!("/ip4/127.0.0.2/tcp/{}", listening.local_addr().unwrap().port());
    assert_eq!(
        found(&[QUIC], &[elsewhere], &[endpoint(&helper)]).await,
        [Reachability::Unreachable],
        "nobody listens at that port where it asks from"
    );
    assert!(listening.accept().is_err(), "it was dialled");
    let other_kind = "/ip6/::1/tcp/1".to_owned();
    let unknown = found(&[QUIC], &[other_kind], &[endpoint(&helper)]).await;
    assert_eq!(unknown, [Reachability::Unknown]);
}

#[tokio::test]
async fn who_is_seen_elsewhere_is_told_where_it_is_reached() {
    let helper = peer(&[TCP]).await;
    let listening = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listening.local_addr().unwrap().port();
    drop(listening);
    let listen = format!("/ip4/127.0.0.1/tcp/{port}");
    let behind = format!("/ip4/192.0.2.1/tcp/{port}");
    let asking = peer_at(&[&listen], &[behind], limits()).await;
    let all = asking.node.reachability(&[endpoint(&helper)]).await;
    let [(_, Reachability::At(seen))] = &all[..] else {
        panic!("{all:?}");
    };
    assert!(seen.to_string().starts_with(&listen));
}

#[tokio::test]
async fn without_peers_nothing_is_known_and_one_that_is_down_keeps_nobody_from_asking_the_next() {
    assert_eq!(found(&[QUIC], &[], &[]).await, [Reachability::Unknown]);
    let down = "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWGzBYy1CrGjGGfSwqCrFVkyDp2SPzU7RTWmgLkZ2FaZRs";
    let helper = peer(&[TCP]).await;
    let peers = [parse_endpoint(down).unwrap(), endpoint(&helper)];
    assert_eq!(found(&[QUIC], &[], &peers).await, [Reachability::Reachable]);
}

#[tokio::test]
async fn whoever_asks_again_and_again_leaves_no_connections_with_the_peer() {
    let helper = peer(&[TCP]).await;
    let roomy = Limits {
        connections_per_peer_max: 1000,
        connections_per_address_max: 1000,
        inbound_connections_max: 1000,
        ..patience()
    };
    let asking = peer_with(&[QUIC, TCP], 0, roomy).await.unwrap();
    for _ in 0..50 {
        for (_, found) in asking.node.reachability(&[endpoint(&helper)]).await {
            assert_eq!(found, Reachability::Reachable);
        }
    }
    let all_closed = async {
        while helper.node.counters().connections_outbound > 0 {
            tokio::task::yield_now().await;
        }
    };
    // Idle connections live for longer.
    let closed = tokio::time::timeout(Duration::from_secs(5), all_closed).await;
    assert!(closed.is_ok(), "{:?}", helper.node.counters());
}
