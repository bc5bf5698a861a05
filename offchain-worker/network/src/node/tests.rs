#![allow(clippy::unwrap_used)]
use std::{
    io,
    path::Path,
    sync::{Condvar, Mutex},
};

use super::*;
use crate::{
    access::Readers,
    store::{StoreLimits, write_and_sync},
};

/// Whether the slow write has begun, and whether it may end.
static SYNC: (Mutex<(bool, bool)>, Condvar) = (Mutex::new((false, false)), Condvar::new());

fn slow_sync(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if bytes == b"large" {
        let (state, changed) = &SYNC;
        state.lock().unwrap().0 = true;
        changed.notify_all();
        drop(
            changed
                .wait_while(state.lock().unwrap(), |(_, may_end)| !*may_end)
                .unwrap(),
        );
    }
    write_and_sync(path, bytes)
}

async fn node(dir: &Path, listen: &[&str], slow: bool) -> Node {
    let mut store = BlobStore::open(dir.join("blobs"), StoreLimits::default()).unwrap();
    if slow {
        store.write_file = slow_sync;
    }
    let config = NetworkConfig {
        key_file: dir.join("network.key"),
        listen: listen.iter().map(|text| text.to_string()).collect(),
        external: Vec::new(),
        genesis: ContentHash::zero(),
        limits: Limits::default(),
    };
    Node::start(config, Arc::new(store)).await.unwrap()
}

#[tokio::test]
async fn others_are_served_while_a_blob_is_being_synced() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let server = Arc::new(node(dirs[0].path(), &["/ip4/127.0.0.1/udp/0/quic-v1"], true).await);
    let client = node(dirs[1].path(), &[], false).await;
    let hash = server.publish(Bytes::from_static(b"small")).await.unwrap();
    server
        .announce_output(7, Announcement::new(hash), Readers::Everyone)
        .await
        .unwrap();
    let publishing = tokio::spawn({
        let server = server.clone();
        async move { server.publish(Bytes::from_static(b"large")).await }
    });
    let begun = || {
        SYNC.1
            .wait_while(SYNC.0.lock().unwrap(), |(begun, _)| !*begun)
            .map(drop)
            .unwrap()
    };
    tokio::task::spawn_blocking(begun).await.unwrap();
    // With the index locked through the sync the server would not even say where its output is.
    let at = server.endpoints();
    let found = client.locate_output(7, &at[0], None).await.unwrap();
    let options = FetchOptions::sized(found.bytes);
    assert_eq!(
        &client.fetch(found.hash, &at, &options).await.unwrap()[..],
        b"small"
    );
    assert!(!publishing.is_finished());
    SYNC.0.lock().unwrap().1 = true;
    SYNC.1.notify_all();
    let large = publishing.await.unwrap().unwrap();
    assert_eq!(server.store().get(&large).unwrap(), b"large");
}
