#![allow(clippy::unwrap_used)]
use super::*;

fn store(blob: u64, total: u64) -> (tempfile::TempDir, BlobStore) {
    let dir = tempfile::tempdir().unwrap();
    let limits = StoreLimits {
        blob_bytes_max: blob,
        total_bytes_max: total,
    };
    let store = BlobStore::open(dir.path(), limits).unwrap();
    (dir, store)
}

fn files(dir: &Path) -> usize {
    fs::read_dir(dir.join("tmp")).unwrap().count()
}

#[test]
fn a_blob_survives_reopening() {
    let (dir, store) = store(100, 1000);
    let hash = store.put(b"hello").unwrap();
    assert_eq!(hash, content_hash(b"hello"));
    assert_eq!(store.put(b"hello").unwrap(), hash);
    drop(store);
    fs::write(dir.path().join("tmp/left-over"), b"x").unwrap();
    let store = BlobStore::open(dir.path(), StoreLimits::default()).unwrap();
    assert_eq!(store.get(&hash).unwrap(), b"hello");
    assert_eq!(store.total_bytes(), 5);
    assert_eq!(files(dir.path()), 0, "half-written blobs are gone");
}

#[test]
fn two_processes_cannot_share_a_store() {
    let (dir, store) = store(100, 1000);
    let again = || BlobStore::open(dir.path(), StoreLimits::default());
    assert!(matches!(again(), Err(StoreError::InUse { .. })));
    drop(store);
    again().unwrap();
}

#[test]
fn parts_add_up_to_the_blob() {
    let (_dir, store) = store(100, 1000);
    let hash = store.put(b"0123456789").unwrap();
    assert_eq!(store.read_part(&hash, 0, 4).unwrap(), (b"0123".to_vec(), 10));
    assert_eq!(store.read_part(&hash, 8, 4).unwrap(), (b"89".to_vec(), 10));
    assert!(matches!(
        store.read_part(&hash, 10, 1),
        Err(StoreError::OutOfRange {
            offset: 10,
            total: 10
        })
    ));
}

#[test]
fn a_blob_over_the_limit_is_refused() {
    let (_dir, store) = store(4, 1000);
    assert!(matches!(
        store.put(b"hello"),
        Err(StoreError::TooLarge { bytes: 5, max: 4 })
    ));
    assert_eq!(store.total_bytes(), 0);
}

#[test]
fn the_oldest_unpinned_blob_makes_room() {
    let (_dir, store) = store(10, 10);
    let pinned = store.put(b"aaaa").unwrap();
    store.pin(&pinned).unwrap();
    let oldest = store.put(b"bbbb").unwrap();
    let newest = store.put(b"cccc").unwrap();
    assert!(matches!(store.get(&oldest), Err(StoreError::NotFound(_))));
    assert!(store.size(&pinned).is_some() && store.size(&newest).is_some());
    store.pin(&newest).unwrap();
    assert!(matches!(
        store.put(b"dddd"),
        Err(StoreError::QuotaExceeded { bytes: 4, max: 10 })
    ));
    store.unpin(&newest);
    store.put(b"dddd").unwrap();
    assert_eq!(store.total_bytes(), 8);
}

#[test]
fn damage_on_disk_is_noticed_and_the_blob_can_be_stored_again() {
    let (_dir, store) = store(10, 10);
    let hash = store.put(b"good").unwrap();
    fs::write(store.path(&hash), b"evil").unwrap();
    assert!(matches!(store.get(&hash), Err(StoreError::Damaged(_))));
    assert!(store.size(&hash).is_none());
    store.put(b"good").unwrap();
    assert_eq!(store.get(&hash).unwrap(), b"good");
}

#[test]
fn a_full_disk_is_its_own_error_and_leaves_nothing_behind() {
    let (dir, mut store) = store(10, 100);
    store.write_file = |path, bytes| {
        fs::write(path, &bytes[..bytes.len() / 2])?;
        Err(io::Error::from_raw_os_error(28)) // ENOSPC
    };
    assert!(matches!(
        store.put(b"hello"),
        Err(StoreError::DiskFull { bytes: 5, .. })
    ));
    assert_eq!((store.total_bytes(), files(dir.path())), (0, 0));
    store.write_file = write_and_sync;
    let hash = store.put(b"hello").unwrap();
    assert_eq!(
        store.get(&hash).unwrap(),
        b"hello",
        "it works again once there is room"
    );
}
