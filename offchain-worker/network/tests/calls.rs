//! Real sockets on loopback: calls both ways, many at once, and what happens when one end is slow, hostile
//! or dead.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use common::{
    Peer, QUIC, TCP, endpoint,
    hostile::{Manner, hostile},
    limits, peer, peer_with, share,
};
use futures::future::join_all;
use surety_network::{
    CallError, CallListener, CallStream, DataPlane, FetchOptions, Limits, PeerError, memory::MemoryNet,
    parse_endpoint,
};
use surety_types::multiaddr::Endpoint;
use tokio::task::JoinHandle;

const FRAME_MAX: usize = 256 << 10;

/// Long for anything on loopback.
const LONG: Duration = Duration::from_secs(20);

async fn open(client: &Peer, server: &Peer) -> Result<CallStream, CallError> {
    client.node.open_call(&[endpoint(server)]).await
}

/// Says back what it hears, in every call, until there are no more.
fn echo(mut listener: CallListener) -> JoinHandle<()> {
    tokio::spawn(async move {
        while let Some(mut call) = listener.next().await {
            tokio::spawn(async move {
                while let Ok(Some(frame)) = call.recv(FRAME_MAX).await {
                    if call.send(&frame).await.is_err() {
                        break;
                    }
                }
            });
        }
    })
}

async fn echoing(listen: &str, limits: Limits) -> Peer {
    let server = peer_with(&[listen], 0, limits).await.unwrap();
    echo(server.node.calls().unwrap());
    server
}

async fn says_back(call: &mut CallStream, frame: &[u8]) {
    call.send(frame).await.unwrap();
    assert_eq!(call.recv(FRAME_MAX).await.unwrap().as_deref(), Some(frame));
}

/// Nothing tells when a place is free again.
async fn until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "it did not come about");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn frames_go_both_ways(listen: &str) {
    let (server, client) = (peer(&[listen]).await, peer(&[]).await);
    let mut listener = server.node.calls().unwrap();
    let frames: Vec<Vec<u8>> = (0..150_usize)
        .map(|n| vec![n as u8; 1 + (n * n * n) % FRAME_MAX])
        .collect();
    let (opened, taken) = tokio::join!(open(&client, &server), listener.next());
    let ((mut to_server, mut from_server), taken) = (opened.unwrap().split(), taken.unwrap());
    assert_eq!(taken.peer(), client.node.peer_id());
    assert_eq!(from_server.peer(), server.node.peer_id());
    let (mut to_client, mut from_client) = taken.split();
    // All four at once: neither direction waits for the other.
    let (up, down) = (frames.clone(), frames.iter().rev().cloned().collect::<Vec<_>>());
    let (expected_up, expected_down) = (up.clone(), down.clone());
    let sending_up = async move {
        for frame in &up {
            to_server.send(frame).await.unwrap();
        }
    };
    let sending_down = async move {
        for frame in &down {
            to_client.send(frame).await.unwrap();
        }
    };
    let hearing_up = async move {
        for frame in expected_up {
            assert_eq!(from_client.recv(FRAME_MAX).await.unwrap(), Some(frame));
        }
        assert_eq!(from_client.recv(FRAME_MAX).await, Ok(None));
    };
    let hearing_down = async move {
        for frame in expected_down {
            assert_eq!(from_server.recv(FRAME_MAX).await.unwrap(), Some(frame));
        }
        assert_eq!(from_server.recv(FRAME_MAX).await, Ok(None));
    };
    tokio::join!(sending_up, sending_down, hearing_up, hearing_down);
    until(|| server.node.counters().calls_inbound == 0 && client.node.counters().calls_outbound == 0).await;
    let counters = (
        client.node.counters().calls_opened,
        server.node.counters().calls_taken,
    );
    assert_eq!(counters, (1, 1));
}

#[tokio::test]
async fn frames_go_both_ways_over_tcp() {
    frames_go_both_ways(TCP).await;
}

#[tokio::test]
async fn frames_go_both_ways_over_quic() {
    frames_go_both_ways(QUIC).await;
}

async fn sixty_four_calls_share_one_connection(listen: &str) {
    let (server, client) = (echoing(listen, limits()).await, peer(&[]).await);
    // No connection before: all of them wait for the one that is made.
    let opened = join_all((0..64).map(|_| open(&client, &server))).await;
    let mut calls: Vec<CallStream> = opened.into_iter().map(Result::unwrap).collect();
    let counters = server.node.counters();
    assert_eq!((counters.connections_inbound, counters.calls_inbound), (1, 64));
    let said = calls.iter_mut().enumerate().map(|(n, call)| async move {
        for round in 0..20 {
            says_back(call, &vec![n as u8; 1 + n * round]).await;
        }
    });
    join_all(said).await;
    // One more than a peer may have.
    assert_eq!(open(&client, &server).await.err(), Some(CallError::TooMany));
    assert_eq!(server.node.counters().calls_refused_peer, 1);
    calls.pop();
    until(|| server.node.counters().calls_inbound == 63).await;
    says_back(&mut open(&client, &server).await.unwrap(), b"again").await;
}

#[tokio::test]
async fn sixty_four_calls_share_one_connection_over_tcp() {
    sixty_four_calls_share_one_connection(TCP).await;
}

#[tokio::test]
async fn sixty_four_calls_share_one_connection_over_quic() {
    sixty_four_calls_share_one_connection(QUIC).await;
}

#[tokio::test]
async fn who_finds_no_place_is_told_so_and_places_are_kept_for_peers_named_on_chain() {
    let few = Limits {
        calls_max: 3,
        calls_named: 1,
        calls_per_peer_max: 1,
        ..limits()
    };
    let server = echoing(QUIC, few).await;
    let (one, two, three) = (peer(&[TCP]).await, peer(&[TCP]).await, peer(&[TCP]).await);
    let mut first = open(&one, &server).await.unwrap();
    assert_eq!(open(&one, &server).await.err(), Some(CallError::TooMany));
    let _second = open(&two, &server).await.unwrap();
    assert_eq!(open(&three, &server).await.err(), Some(CallError::Full));
    server.node.set_named_peers(&[endpoint(&three)]).await.unwrap();
    let _third = open(&three, &server).await.unwrap();
    let four = peer(&[TCP]).await;
    server
        .node
        .set_named_peers(&[endpoint(&three), endpoint(&four)])
        .await
        .unwrap();
    assert_eq!(open(&four, &server).await.err(), Some(CallError::Full));
    let counters = server.node.counters();
    let refused = (counters.calls_refused_peer, counters.calls_refused_full);
    assert_eq!((refused, counters.calls_taken), ((1, 2), 3));
    says_back(&mut first, b"still there").await;
}

#[tokio::test]
async fn strangers_at_one_address_have_so_many_calls_together() {
    let few = Limits {
        calls_per_address_max: 2,
        ..limits()
    };
    let server = echoing(QUIC, few).await;
    let clients = [peer(&[]).await, peer(&[]).await, peer(&[]).await];
    let _calls = [
        open(&clients[0], &server).await.unwrap(),
        open(&clients[1], &server).await.unwrap(),
    ];
    assert_eq!(open(&clients[2], &server).await.err(), Some(CallError::TooMany));
}

#[tokio::test]
async fn a_node_makes_no_more_calls_than_it_may() {
    let one = Limits {
        calls_made_max: 1,
        ..limits()
    };
    let (server, client) = (
        echoing(TCP, limits()).await,
        peer_with(&[], 0, one).await.unwrap(),
    );
    let first = open(&client, &server).await.unwrap();
    assert_eq!(open(&client, &server).await.err(), Some(CallError::OwnFull));
    drop(first);
    until(|| client.node.counters().calls_outbound == 0).await;
    says_back(&mut open(&client, &server).await.unwrap(), b"again").await;
}

#[tokio::test]
async fn a_frame_over_the_limit_ends_its_call_and_nothing_else() {
    for listen in [TCP, QUIC] {
        let (server, client) = (peer(&[listen]).await, peer(&[]).await);
        let hash = share(&server, b"a blob").await;
        let mut listener = server.node.calls().unwrap();
        let (opened, taken) = tokio::join!(open(&client, &server), listener.next());
        let (mut bad, mut bad_there) = (opened.unwrap(), taken.unwrap());
        let (opened, taken) = tokio::join!(open(&client, &server), listener.next());
        let (mut good, mut good_there) = (opened.unwrap(), taken.unwrap());
        bad.send(&[1; 11]).await.unwrap();
        let refused = bad_there.recv(10).await;
        assert_eq!(
            refused,
            Err(CallError::TooLong {
                bytes: 11,
                bytes_max: 10
            })
        );
        drop(bad_there);
        assert_eq!(bad.recv(10).await, Ok(None));
        good.send(&[2; 10]).await.unwrap();
        assert_eq!(good_there.recv(10).await, Ok(Some(vec![2; 10])));
        let blob = client
            .node
            .fetch(hash, &[endpoint(&server)], &FetchOptions::default())
            .await;
        assert_eq!(&blob.unwrap()[..], b"a blob");
        assert_eq!(server.node.counters().connections_inbound, 1);
    }
}

/// Sends without anybody reading, until it has to wait for `patience`. Says how many bytes went.
async fn send_until_it_waits(call: &mut CallStream, patience: Duration) -> usize {
    let mut sent = 0;
    let frame = vec![7; 64 << 10];
    while let Ok(outcome) = tokio::time::timeout(patience, call.send(&frame)).await {
        outcome.unwrap();
        sent += frame.len();
        assert!(sent < 64 << 20, "nothing stops the writer");
    }
    sent
}

#[tokio::test]
async fn a_reader_that_does_not_read_stops_the_writer_and_others_go_on() {
    for (listen, bytes_max) in [(TCP, 1 << 20), (QUIC, 12 << 20)] {
        let (server, client) = (peer(&[listen]).await, peer(&[]).await);
        let mut listener = server.node.calls().unwrap();
        let (opened, silent) = tokio::join!(open(&client, &server), listener.next());
        let (mut call, mut silent) = (opened.unwrap(), silent.unwrap());
        let sent = send_until_it_waits(&mut call, Duration::from_millis(300)).await;
        assert!(sent <= bytes_max, "{sent} bytes wait somewhere");
        echo(listener);
        let mut other = open(&client, &server).await.unwrap();
        says_back(&mut other, b"beside it").await;
        // What was sent is all there, and the frame that was given up was never whole.
        for _ in 0..sent / (64 << 10) {
            assert_eq!(silent.recv(FRAME_MAX).await.unwrap().unwrap().len(), 64 << 10);
        }
        drop(call);
        assert!(matches!(silent.recv(FRAME_MAX).await, Err(CallError::Lost(_))));
    }
}

#[tokio::test]
async fn a_writer_goes_on_when_the_reader_does_and_gives_up_when_it_never_does() {
    let strict = Limits {
        call_stall_max: Duration::from_millis(400),
        bytes_per_second_min: 1 << 30,
        ..limits()
    };
    let (server, client) = (peer(&[TCP]).await, peer_with(&[], 0, strict).await.unwrap());
    let mut listener = server.node.calls().unwrap();
    let (opened, taken) = tokio::join!(open(&client, &server), listener.next());
    let (mut call, mut slow) = (opened.unwrap(), taken.unwrap());
    let total = 40;
    let writing = async {
        for n in 0..total {
            call.send(&vec![n; 64 << 10]).await.unwrap();
        }
    };
    let reading = async {
        for n in 0..total {
            // Ten times slower than the writer, and never as slow as its limit.
            tokio::time::sleep(Duration::from_millis(10)).await;
            assert_eq!(slow.recv(FRAME_MAX).await.unwrap(), Some(vec![n; 64 << 10]));
        }
    };
    tokio::join!(writing, reading);
    let fault = loop {
        if let Err(fault) = call.send(&[0; 64 << 10]).await {
            break fault;
        }
    };
    assert_eq!(fault, CallError::Stalled { seconds: 0 });
    assert_eq!(call.send(&[1]).await, Err(CallError::Torn));
}

#[tokio::test]
async fn silence_ends_a_call_and_frees_its_place_soon_before_the_first_frame_and_later_after_it() {
    let soon = Limits {
        request_timeout: Duration::from_millis(300),
        call_idle_max: Duration::from_millis(1200),
        ..limits()
    };
    let (server, client) = (peer_with(&[QUIC], 0, soon).await.unwrap(), peer(&[]).await);
    let mut listener = server.node.calls().unwrap();
    let (opened, taken) = tokio::join!(open(&client, &server), listener.next());
    let (_call, mut taken) = (opened.unwrap(), taken.unwrap());
    let begun = Instant::now();
    assert_eq!(taken.recv(10).await, Err(CallError::Silent { seconds: 0 }));
    assert!(
        begun.elapsed() < Duration::from_millis(1000),
        "{:?}",
        begun.elapsed()
    );
    drop(taken);
    until(|| server.node.counters().calls_inbound == 0).await;

    let (opened, taken) = tokio::join!(open(&client, &server), listener.next());
    let (mut call, mut taken) = (opened.unwrap(), taken.unwrap());
    call.send(&[1]).await.unwrap();
    assert_eq!(taken.recv(10).await, Ok(Some(vec![1])));
    let begun = Instant::now();
    assert_eq!(taken.recv(10).await, Err(CallError::Silent { seconds: 1 }));
    assert!(
        begun.elapsed() >= Duration::from_millis(1200),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn nodes_of_two_chains_have_no_calls() {
    let (server, client) = (
        echoing(TCP, limits()).await,
        peer_with(&[], 1, limits()).await.unwrap(),
    );
    assert_eq!(open(&client, &server).await.err(), Some(CallError::OtherChain));
    assert_eq!(server.node.counters().calls_refused_other, 1);
    until(|| server.node.counters().calls_inbound == 0).await;
}

#[tokio::test]
async fn who_serves_no_calls_says_so_and_who_does_not_know_of_them_too() {
    let (server, client) = (peer(&[TCP]).await, peer(&[]).await);
    assert_eq!(open(&client, &server).await.err(), Some(CallError::NotServed));
    let listener = server.node.calls().unwrap();
    assert!(server.node.calls().is_none(), "there is one");
    let serving = echo(listener);
    says_back(&mut open(&client, &server).await.unwrap(), b"now").await;
    serving.abort();
    assert!(serving.await.is_err());
    assert_eq!(open(&client, &server).await.err(), Some(CallError::NotServed));
    let _again = server.node.calls().unwrap();

    let older = hostile(Manner::Stall).await;
    let fault = client
        .node
        .open_call(std::slice::from_ref(&older.endpoint))
        .await
        .err();
    assert_eq!(fault, Some(CallError::NotServed));
    assert!(fault.unwrap().to_string().contains("does not serve calls"));
}

#[tokio::test]
async fn of_several_endpoints_one_that_answers_is_enough() {
    let (server, client) = (echoing(TCP, limits()).await, peer(&[]).await);
    let dead: Endpoint =
        parse_endpoint(&format!("/ip4/127.0.0.1/tcp/1/p2p/{}", server.node.peer_id())).unwrap();
    let both = [dead.clone(), endpoint(&server)];
    says_back(&mut client.node.open_call(&both).await.unwrap(), b"reached").await;

    let stranger = peer(&[]).await;
    let fault = stranger.node.open_call(&[dead]).await.err().unwrap();
    assert!(
        matches!(fault, CallError::Unreachable(PeerError::Unreachable(_))),
        "{fault}"
    );
    assert_eq!(
        stranger.node.open_call(&[]).await.err(),
        Some(CallError::NoEndpoint)
    );
    assert_eq!(stranger.node.counters().calls_failed, 2);
}

#[tokio::test]
async fn calls_end_when_a_node_stops_and_its_listener_does_too() {
    let (server, client) = (peer(&[TCP]).await, peer(&[]).await);
    let mut listener = server.node.calls().unwrap();
    let (opened, taken) = tokio::join!(open(&client, &server), listener.next());
    let (mut call, mut taken) = (opened.unwrap(), taken.unwrap());
    server.node.stop().await;
    assert!(listener.next().await.is_none());
    assert!(matches!(call.recv(1).await, Err(CallError::Lost(_))));
    assert!(matches!(taken.recv(1).await, Err(CallError::Lost(_))));
}

#[tokio::test]
async fn calls_within_one_process_are_as_those_over_sockets() {
    let net = MemoryNet::default();
    let (one, two): (Endpoint, Endpoint) = ("one".try_into().unwrap(), "two".try_into().unwrap());
    let (client, server) = (net.join(one), net.join(two.clone()));
    let at = [two.clone()];
    assert_eq!(client.open_call(&at).await.err(), Some(CallError::NotServed));
    echo(server.calls().unwrap());
    assert!(server.calls().is_none());
    says_back(&mut client.open_call(&at).await.unwrap(), &vec![1; FRAME_MAX]).await;
    net.set_down(&two, true);
    let fault = client.open_call(&at).await.err();
    assert!(matches!(fault, Some(CallError::Unreachable(_))), "{fault:?}");
}

const CHILD: &str = "SURETY_CALL_TEST_CHILD";

/// Not a test by itself: the process that the next test kills.
#[tokio::test]
async fn child_that_serves_calls_until_it_is_killed() {
    let Ok(path) = std::env::var(CHILD) else {
        return;
    };
    let server = peer(&[TCP, QUIC]).await;
    let serving = echo(server.node.calls().unwrap());
    let endpoints: Vec<String> = server.node.endpoints().iter().map(ToString::to_string).collect();
    std::fs::write(format!("{path}.part"), endpoints.join("\n")).unwrap();
    std::fs::rename(format!("{path}.part"), &path).unwrap();
    serving.await.unwrap();
}

#[tokio::test]
async fn a_peer_that_was_killed_ends_its_calls_with_an_error_in_bounded_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("endpoints");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child_that_serves_calls_until_it_is_killed", "--quiet"])
        .env(CHILD, &path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until(|| path.exists()).await;
    let endpoints = std::fs::read_to_string(&path).unwrap();
    let endpoints: Vec<Endpoint> = endpoints
        .lines()
        .map(|text| parse_endpoint(text).unwrap())
        .collect();
    assert_eq!(endpoints.len(), 2);
    let mut calls = Vec::new();
    for endpoint in &endpoints {
        // A node of its own for each: over the transport that the endpoint says.
        let client = peer(&[]).await;
        let mut call = client
            .node
            .open_call(std::slice::from_ref(endpoint))
            .await
            .unwrap();
        says_back(&mut call, b"alive").await;
        calls.push((client, call));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let ends = calls
        .iter_mut()
        .map(|(_, call)| tokio::time::timeout(LONG, call.recv(FRAME_MAX)));
    for end in join_all(ends).await {
        assert!(matches!(end, Ok(Err(CallError::Lost(_)))), "{end:?}");
    }
}
