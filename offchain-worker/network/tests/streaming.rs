//! Real sockets on loopback: a provider's tokens reach its client as they are made, and nobody else.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::time::Instant;

use common::{Peer, QUIC, TCP, endpoint, limits, peer, peer_with, share};
use surety_network::{DataPlane, FetchOptions, Limits, PeerError, Readers, StreamEnd};

const TASK: u64 = 7;

async fn follow_to_the_end(client: &Peer, server: &Peer) -> (Vec<u32>, StreamEnd) {
    let mut tokens = Vec::new();
    loop {
        let from = u32::try_from(tokens.len()).unwrap();
        let page = client
            .node
            .read_stream(TASK, &endpoint(server), from)
            .await
            .unwrap();
        tokens.extend(page.tokens);
        if let Some(end) = page.end {
            return (tokens, end);
        }
    }
}

async fn tokens_arrive(listen: &str) {
    let (server, client) = (peer(&[listen]).await, peer(&[TCP]).await);
    let only_client = client.node.endpoints();
    let stream = server
        .node
        .open_stream(TASK, Readers::Only(&only_client))
        .await
        .unwrap();
    let read = |from| {
        let (client, server) = (&client, endpoint(&server));
        async move { client.node.read_stream(TASK, &server, from).await.unwrap() }
    };
    for id in 0..3 {
        // Asked for before it is there.
        let (page, ()) = tokio::join!(read(id), async {
            tokio::task::yield_now().await;
            stream.push(id);
        });
        assert_eq!((page.tokens, page.end), (vec![id], None));
    }
    for id in 3..700 {
        stream.push(id);
    }
    stream.complete();
    let (tokens, end) = follow_to_the_end(&client, &server).await;
    assert_eq!(tokens, (0..700).collect::<Vec<_>>());
    assert_eq!(end, StreamEnd::Complete);
}

#[tokio::test]
async fn tokens_arrive_as_they_are_made_over_quic() {
    tokens_arrive(QUIC).await;
}

#[tokio::test]
async fn tokens_arrive_as_they_are_made_over_tcp() {
    tokens_arrive(TCP).await;
}

#[tokio::test]
async fn only_the_client_may_read_and_only_on_its_own_chain() {
    let (server, client, rival) = (peer(&[QUIC]).await, peer(&[TCP]).await, peer(&[TCP]).await);
    let stranger = peer_with(&[TCP], 1, limits()).await.unwrap();
    let readers: Vec<_> = [client.node.endpoints(), stranger.node.endpoints()].concat();
    let stream = server
        .node
        .open_stream(TASK, Readers::Only(&readers))
        .await
        .unwrap();
    stream.push(0);
    let at = endpoint(&server);
    assert_eq!(client.node.read_stream(TASK, &at, 0).await.unwrap().tokens, [0]);
    let refused = Err(PeerError::NotFound);
    assert_eq!(rival.node.read_stream(TASK, &at, 0).await, refused);
    assert_eq!(
        stranger.node.read_stream(TASK, &at, 0).await,
        refused,
        "its chain is another"
    );
    assert_eq!(client.node.read_stream(TASK + 1, &at, 0).await, refused);
    server.node.close_stream(TASK).await;
    assert_eq!(client.node.read_stream(TASK, &at, 0).await, refused);
}

#[tokio::test]
async fn opening_again_starts_over() {
    let (server, client) = (peer(&[QUIC]).await, peer(&[]).await);
    let first = server.node.open_stream(TASK, Readers::Everyone).await.unwrap();
    first.push(1);
    let second = server.node.open_stream(TASK, Readers::Everyone).await.unwrap();
    second.push(2);
    drop(first);
    let page = client
        .node
        .read_stream(TASK, &endpoint(&server), 0)
        .await
        .unwrap();
    assert_eq!((page.tokens, page.end), (vec![2], None));
}

#[tokio::test]
async fn a_quiet_stream_is_answered_in_time_and_says_nothing() {
    let (server, client) = (peer(&[QUIC]).await, peer(&[]).await);
    let stream = server.node.open_stream(TASK, Readers::Everyone).await.unwrap();
    let begun = Instant::now();
    let page = client
        .node
        .read_stream(TASK, &endpoint(&server), 0)
        .await
        .unwrap();
    assert!(page.tokens.is_empty() && page.end.is_none());
    let waited = begun.elapsed();
    assert!(
        waited >= limits().poll_wait() && waited < limits().request_timeout,
        "{waited:?}"
    );
    stream.fail("the prompt is too long");
    let page = client
        .node
        .read_stream(TASK, &endpoint(&server), 0)
        .await
        .unwrap();
    let reason = "the prompt is too long".into();
    assert_eq!(page.end, Some(StreamEnd::Failed { reason }));
}

#[tokio::test]
async fn waiting_readers_are_bounded_and_do_not_keep_others_from_blobs() {
    let few = Limits {
        polls_per_peer_max: 1,
        inbound_per_peer_max: 1,
        ..limits()
    };
    let (server, client) = (
        peer_with(&[QUIC], 0, few.clone()).await.unwrap(),
        peer_with(&[], 0, few).await.unwrap(),
    );
    let stream = server.node.open_stream(TASK, Readers::Everyone).await.unwrap();
    let hash = share(&server, b"x").await;
    let at = endpoint(&server);
    let reading = async {
        loop {
            match client.node.read_stream(TASK, &at, 0).await {
                Ok(page) if !page.tokens.is_empty() => return page.tokens,
                Ok(_) | Err(PeerError::Busy) => {}
                Err(fault) => panic!("{fault}"),
            }
        }
    };
    let meanwhile = async {
        // One of the two waits; the other is refused at once.
        while client.node.read_stream(TASK, &at, 0).await != Err(PeerError::Busy) {}
        let blob = client
            .node
            .fetch(hash, std::slice::from_ref(&at), &FetchOptions::default())
            .await;
        assert_eq!(&blob.unwrap()[..], b"x");
        stream.push(0);
    };
    let (tokens, ()) = tokio::join!(reading, meanwhile);
    assert_eq!(tokens, [0]);
}

#[tokio::test]
async fn a_provider_that_dies_is_noticed() {
    let (server, client) = (peer(&[QUIC]).await, peer(&[]).await);
    let stream = server.node.open_stream(TASK, Readers::Everyone).await.unwrap();
    stream.push(0);
    let at = endpoint(&server);
    client.node.read_stream(TASK, &at, 0).await.unwrap();
    let dying = async {
        tokio::task::yield_now().await;
        server.node.stop().await;
    };
    let (page, ()) = tokio::join!(client.node.read_stream(TASK, &at, 1), dying);
    let fault = page.unwrap_err();
    assert!(fault.may_pass(), "{fault}");
    let fault = client.node.read_stream(TASK, &at, 1).await.unwrap_err();
    assert!(
        matches!(fault, PeerError::Unreachable(_) | PeerError::TimedOut),
        "{fault}"
    );
}
