//! Real sockets on loopback: who delivers, who does not, and what is said of those who do not.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{fs, net::TcpListener};

use common::{Peer, QUIC, TCP, attempts, endpoint, limits, peer, peer_with, refused, share};
use sp_core::crypto::AccountId32;
use surety_network::{
    Announcement, DataPlane, FetchOptions, Limits, OutputLocation, PeerError, PlaneError, Readers, Statement,
    StoreError, parse_endpoint,
};
use surety_proofs::{CommitStatement, SignedStatement};
use surety_types::{ContentHash, multiaddr::Endpoint};

/// Puts other bytes where a peer keeps a blob, as a lying peer would.
fn corrupt(peer: &Peer, hash: ContentHash, bytes: &[u8]) {
    let name = format!("{:x}", hash);
    fs::write(peer.dir.path().join("blobs").join(&name[..2]).join(&name), bytes).unwrap();
}

async fn round_trip(listen: &str) {
    let (server, client) = (peer(&[listen]).await, peer(&[]).await);
    let hash = share(&server, b"some blob").await;
    let bytes = client
        .node
        .fetch(hash, &[endpoint(&server)], &FetchOptions::sized(9))
        .await
        .unwrap();
    assert_eq!(&bytes[..], b"some blob");
    server.node.stop().await;
    let again = client
        .node
        .fetch(hash, &[], &FetchOptions::sized(9))
        .await
        .unwrap();
    assert_eq!(again, bytes, "what was fetched is kept");
}

#[tokio::test]
async fn a_blob_comes_over_quic() {
    round_trip(QUIC).await;
}

#[tokio::test]
async fn a_blob_comes_over_tcp() {
    round_trip(TCP).await;
}

#[tokio::test]
async fn a_blob_of_many_chunks_and_an_empty_one_arrive() {
    let (server, client) = (peer(&[QUIC, TCP]).await, peer(&[]).await);
    for size in [0usize, 1 << 20, (5 << 20) + 3] {
        let blob: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        let hash = share(&server, &blob).await;
        let bytes = client
            .node
            .fetch(hash, &server.node.endpoints(), &FetchOptions::default())
            .await
            .unwrap();
        assert!(bytes == blob, "{size} bytes");
    }
}

#[tokio::test]
async fn a_lying_peer_costs_a_retry_elsewhere() {
    let (liar, honest, client) = (peer(&[QUIC]).await, peer(&[TCP]).await, peer(&[]).await);
    let hash = share(&liar, b"truth").await;
    share(&honest, b"truth").await;
    corrupt(&liar, hash, b"liars");

    let alone = attempts(
        client
            .node
            .fetch(hash, &[endpoint(&liar)], &FetchOptions::sized(5))
            .await,
    );
    assert_eq!(alone[0].fault, PeerError::WrongHash);
    let both = [endpoint(&liar), endpoint(&honest)];
    let bytes = client
        .node
        .fetch(hash, &both, &FetchOptions::sized(5))
        .await
        .unwrap();
    assert_eq!(&bytes[..], b"truth");
}

#[tokio::test]
async fn a_dead_peer_costs_a_retry_elsewhere() {
    let (dead_quic, dead_tcp) = (peer(&[QUIC]).await, peer(&[TCP]).await);
    let (honest, client) = (peer(&[QUIC]).await, peer(&[]).await);
    let sources = [endpoint(&dead_quic), endpoint(&dead_tcp), endpoint(&honest)];
    dead_quic.node.stop().await;
    dead_tcp.node.stop().await;
    let hash = share(&honest, b"x").await;
    assert_eq!(
        &client
            .node
            .fetch(hash, &sources, &FetchOptions::sized(1))
            .await
            .unwrap()[..],
        b"x"
    );
}

#[tokio::test]
async fn a_silent_peer_costs_a_retry_elsewhere() {
    // Accepts connections, and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (honest, client) = (peer(&[QUIC]).await, peer(&[]).await);
    let port = silent.local_addr().unwrap().port();
    let address = format!("/ip4/127.0.0.1/tcp/{port}/p2p/{}", honest.node.peer_id());
    let hash = share(&honest, b"x").await;
    let silent_endpoint = parse_endpoint(&address).unwrap();
    let alone = attempts(
        client
            .node
            .fetch(
                hash,
                std::slice::from_ref(&silent_endpoint),
                &FetchOptions::default(),
            )
            .await,
    );
    assert!(matches!(alone[0].fault, PeerError::Unreachable(_)), "{alone:?}");
    let sources = [silent_endpoint, endpoint(&honest)];
    assert_eq!(
        &client
            .node
            .fetch(hash, &sources, &FetchOptions::default())
            .await
            .unwrap()[..],
        b"x"
    );
}

#[tokio::test]
async fn when_all_fail_the_error_says_how_each_did() {
    let (liar, empty, dead) = (peer(&[QUIC]).await, peer(&[QUIC]).await, peer(&[TCP]).await);
    let client = peer(&[]).await;
    let hash = share(&liar, b"truth").await;
    corrupt(&liar, hash, b"liars");
    let sources = [endpoint(&liar), endpoint(&empty), endpoint(&dead)];
    dead.node.stop().await;

    let error = client
        .node
        .fetch(hash, &sources, &FetchOptions::sized(5))
        .await
        .unwrap_err();
    let text = error.to_string();
    let causes = attempts(Err::<(), _>(error));
    assert_eq!(causes[0].fault, PeerError::WrongHash);
    assert_eq!(causes[1].fault, PeerError::NotFound);
    assert!(matches!(causes[2].fault, PeerError::Unreachable(_)), "{text}");
    for endpoint in &sources {
        assert!(text.contains(&**endpoint), "{text}");
    }
    assert_eq!(client.node.store().total_bytes(), 0, "nothing was kept");
}

#[tokio::test]
async fn a_peer_with_another_key_is_refused() {
    let (server, other, client) = (peer(&[QUIC]).await, peer(&[TCP]).await, peer(&[]).await);
    let hash = share(&server, b"x").await;
    let text = endpoint(&server).to_string();
    let impostor = text.replace(&server.node.peer_id(), &other.node.peer_id());
    let causes = attempts(
        client
            .node
            .fetch(
                hash,
                &[parse_endpoint(&impostor).unwrap()],
                &FetchOptions::default(),
            )
            .await,
    );
    assert!(
        matches!(&causes[0].fault, PeerError::WrongPeer { found } if *found == server.node.peer_id()),
        "{causes:?}"
    );
}

#[tokio::test]
async fn blobs_over_the_limit_are_refused_before_they_are_fetched() {
    let server = peer(&[QUIC]).await;
    let small = Limits {
        blob_bytes_max: 4,
        ..limits()
    };
    let client = peer_with(&[], 0, small).await.unwrap();
    let hash = share(&server, b"large").await;
    assert!(matches!(
        client
            .node
            .fetch(hash, &[endpoint(&server)], &FetchOptions::sized(5))
            .await,
        Err(PlaneError::TooLarge { bytes: 5, max: 4 })
    ));
    let causes = attempts(
        client
            .node
            .fetch(hash, &[endpoint(&server)], &FetchOptions::default())
            .await,
    );
    assert_eq!(causes[0].fault, PeerError::TooLarge { bytes: 5, max: 4 });
    let client = peer(&[]).await;
    let causes = attempts(
        client
            .node
            .fetch(hash, &[endpoint(&server)], &FetchOptions::sized(4))
            .await,
    );
    assert_eq!(
        causes[0].fault,
        PeerError::WrongSize {
            found: 5,
            expected: 4
        }
    );
    assert!(matches!(
        client.node.publish(vec![0; (64 << 20) + 1].into()).await,
        Err(PlaneError::Store(StoreError::TooLarge { .. }))
    ));
}

#[tokio::test]
async fn malformed_sources_are_named() {
    let client = peer(&[]).await;
    let bad = Endpoint::try_from(b"/ip4/127.0.0.1/tcp/1".to_vec()).unwrap();
    let causes = attempts(
        client
            .node
            .fetch(ContentHash::zero(), &[bad], &FetchOptions::default())
            .await,
    );
    assert!(matches!(causes[0].fault, PeerError::Address(_)));
    assert!(matches!(
        client
            .node
            .fetch(ContentHash::zero(), &[], &FetchOptions::default())
            .await,
        Err(PlaneError::NoSources(_))
    ));
}

fn not_found(result: Result<OutputLocation, PlaneError>) -> bool {
    match result {
        Err(PlaneError::AllFailed { attempts, .. }) => attempts[0].fault == PeerError::NotFound,
        _ => false,
    }
}

/// Nobody here looks at what is in it.
fn statement() -> Statement {
    SignedStatement {
        statement: CommitStatement {
            task: 7,
            provider: AccountId32::new([1; 32]),
            commitment: ContentHash::repeat_byte(2),
            output: ContentHash::repeat_byte(3),
        },
        agent: AccountId32::new([4; 32]),
        signature: [5; 64],
    }
}

#[tokio::test]
async fn an_output_can_be_kept_from_all_but_its_client() {
    let server = peer(&[QUIC]).await;
    let (client, rival) = (peer(&[TCP]).await, peer(&[TCP]).await);
    let hash = share(&server, b"answer").await;
    let sources = client.node.endpoints();
    server
        .node
        .announce_output(
            7,
            Announcement::new(hash).signed(statement()),
            Readers::Only(&sources),
        )
        .await
        .unwrap();
    let found = client
        .node
        .locate_output(7, &endpoint(&server), None)
        .await
        .unwrap();
    assert_eq!((found.hash, found.statement), (hash, Some(statement())));
    assert!(refused(
        rival.node.locate_output(7, &endpoint(&server), None).await
    ));
    server
        .node
        .announce_output(7, Announcement::new(hash), Readers::Everyone)
        .await
        .unwrap();
    let found = rival
        .node
        .locate_output(7, &endpoint(&server), None)
        .await
        .unwrap();
    assert_eq!(found.statement, None);
}

#[tokio::test]
async fn outputs_are_located_on_their_own_chain_only() {
    let (server, client) = (peer(&[QUIC]).await, peer(&[]).await);
    let stranger = peer_with(&[], 1, limits()).await.unwrap();
    let everyone = Readers::Everyone;
    let unknown = server
        .node
        .announce_output(7, Announcement::new(ContentHash::zero()), everyone);
    assert!(unknown.await.is_err());
    let hash = share(&server, b"answer").await;
    server
        .node
        .announce_output(7, Announcement::new(hash), everyone)
        .await
        .unwrap();

    let found = client
        .node
        .locate_output(7, &endpoint(&server), None)
        .await
        .unwrap();
    assert_eq!((found.hash, found.bytes), (hash, 6));
    assert!(not_found(
        client.node.locate_output(8, &endpoint(&server), None).await
    ));
    assert!(not_found(
        stranger.node.locate_output(7, &endpoint(&server), None).await
    ));
}

#[tokio::test]
async fn a_peer_that_asks_too_much_is_told_to_wait() {
    let greedy_limits = Limits {
        inbound_per_peer_max: 0,
        ..limits()
    };
    let server = peer_with(&[QUIC], 0, greedy_limits).await.unwrap();
    let client = peer(&[]).await;
    let hash = share(&server, b"x").await;
    let causes = attempts(
        client
            .node
            .fetch(hash, &[endpoint(&server)], &FetchOptions::default())
            .await,
    );
    assert_eq!(causes[0].fault, PeerError::Busy);
    let counters = server.node.counters();
    assert_eq!(
        (counters.requests_refused_busy, counters.requests_refused_rate),
        (1, 0)
    );
}

#[tokio::test]
async fn a_port_in_use_is_a_readable_error() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("/ip4/127.0.0.1/tcp/{}", taken.local_addr().unwrap().port());
    let error = peer_with(&[&address], 0, limits()).await.err().unwrap();
    assert!(error.to_string().contains(&address), "{error}");
    assert!(error.to_string().contains("in use"), "{error}");
}
