//! Nodes on loopback.
#![allow(dead_code, unreachable_pub)]

pub mod hostile;

use std::{sync::Arc, time::Duration};

use surety_network::{
    Attempt, BlobStore, Bytes, DataPlane, Limits, NetworkConfig, Node, PeerError, PlaneError, Readers,
    StoreLimits,
};
use surety_types::{ContentHash, multiaddr::Endpoint};

pub const QUIC: &str = "/ip4/127.0.0.1/udp/0/quic-v1";
pub const TCP: &str = "/ip4/127.0.0.1/tcp/0";

pub struct Peer {
    pub node: Node,
    pub dir: tempfile::TempDir,
}

pub fn limits() -> Limits {
    Limits {
        request_timeout: Duration::from_secs(2),
        dial_timeout: Duration::from_secs(2),
        fetch_rounds: 1,
        ..Limits::default()
    }
}

pub async fn peer_with(listen: &[&str], genesis: u8, limits: Limits) -> Result<Peer, PlaneError> {
    start((listen, &[]), genesis, limits).await
}

/// One that says it is elsewhere than where it listens.
pub async fn peer_at(listen: &[&str], external: &[String], limits: Limits) -> Peer {
    start((listen, external), 0, limits).await.unwrap()
}

async fn start(
    (listen, external): (&[&str], &[String]),
    genesis: u8,
    limits: Limits,
) -> Result<Peer, PlaneError> {
    let dir = tempfile::tempdir().unwrap();
    let store_limits = StoreLimits {
        blob_bytes_max: 64 << 20,
        total_bytes_max: 256 << 20,
    };
    let store = Arc::new(BlobStore::open(dir.path().join("blobs"), store_limits).unwrap());
    let config = NetworkConfig {
        key_file: dir.path().join("network.key"),
        listen: listen.iter().map(|text| text.to_string()).collect(),
        external: external.to_vec(),
        genesis: ContentHash::repeat_byte(genesis),
        limits,
    };
    let node = Node::start(config, store).await?;
    Ok(Peer { node, dir })
}

pub async fn peer(listen: &[&str]) -> Peer {
    peer_with(listen, 0, limits()).await.unwrap()
}

pub fn endpoint(peer: &Peer) -> Endpoint {
    peer.node.endpoints()[0].clone()
}

/// Publishes a blob for everyone.
pub async fn share(peer: &Peer, blob: &[u8]) -> ContentHash {
    let hash = peer.node.publish(Bytes::copy_from_slice(blob)).await.unwrap();
    peer.node.grant(0, hash, Readers::Everyone).await.unwrap();
    hash
}

/// Who failed in a fetch that failed, and how.
pub fn attempts<T: std::fmt::Debug>(result: Result<T, PlaneError>) -> Vec<Attempt> {
    match result {
        Err(PlaneError::AllFailed { attempts, .. } | PlaneError::OutOfTime { attempts, .. }) => attempts,
        other => panic!("expected failed attempts, got {other:?}"),
    }
}

/// Whether all who were asked refused.
pub fn refused<T: std::fmt::Debug>(result: Result<T, PlaneError>) -> bool {
    result.is_err()
        && attempts(result)
            .iter()
            .all(|attempt| attempt.fault == PeerError::Refused)
}
