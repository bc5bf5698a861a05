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
fn no_other_user_of_the_machine_reads_the_blobs_also_of_a_store_that_was_open_to_all() {
    let parent = tempfile::tempdir().unwrap();
    let (made, found) = (parent.path().join("made/blobs"), parent.path().join("found"));
    fs::create_dir(&found).unwrap();
    fs::set_permissions(&found, Permissions::from_mode(0o755)).unwrap();
    for dir in [made, found] {
        BlobStore::open(&dir, StoreLimits::default()).unwrap();
        let mode = fs::metadata(&dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
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
    let pinned = store.put_pinned(b"aaaa").unwrap();
    let oldest = store.put(b"bbbb").unwrap();
    let newest = store.put(b"cccc").unwrap();
    assert!(matches!(store.get(&oldest), Err(StoreError::NotFound(_))));
    assert!(store.size(&pinned).is_some() && store.size(&newest).is_some());
    assert_eq!(store.put_pinned(b"cccc").unwrap(), newest);
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

/// Lets a slow write wait until it may end, and says that it has begun.
mod slow {
    use std::sync::{Condvar, Mutex};

    use super::*;

    static STATE: (Mutex<(bool, bool)>, Condvar) = (Mutex::new((false, false)), Condvar::new());

    pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
        if bytes == b"slow" {
            let (state, changed) = &STATE;
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

    pub(super) fn wait_until_begun() {
        let (state, changed) = &STATE;
        drop(
            changed
                .wait_while(state.lock().unwrap(), |(begun, _)| !*begun)
                .unwrap(),
        );
    }

    pub(super) fn let_end() {
        STATE.0.lock().unwrap().1 = true;
        STATE.1.notify_all();
    }
}

#[test]
fn a_disk_that_syncs_slowly_keeps_nobody_waiting_who_wants_something_else() {
    let (dir, mut store) = store(10, 12);
    let other = store.put(b"other").unwrap();
    store.write_file = slow::write;
    let store = Arc::new(store);
    let writers: Vec<_> = (0..2)
        .map(|_| {
            let store = store.clone();
            std::thread::spawn(move || store.put(b"slow"))
        })
        .collect();
    slow::wait_until_begun();
    // With the index locked through the sync each of these would wait for ever.
    assert_eq!(store.get(&other).unwrap(), b"other");
    assert_eq!(store.read_part(&other, 0, 9).unwrap().1, 5);
    assert_eq!(
        store.size(&content_hash(b"slow")),
        None,
        "not here until it is on disk"
    );
    assert_eq!(store.total_bytes(), 9, "its room is taken");
    store.put(b"abc").unwrap();
    slow::let_end();
    for writer in writers {
        assert_eq!(writer.join().unwrap().unwrap(), content_hash(b"slow"));
    }
    assert_eq!(store.get(&content_hash(b"slow")).unwrap(), b"slow");
    assert_eq!((store.total_bytes(), files(dir.path())), (12, 0));
    store.put_pinned(b"slow").unwrap();
    assert!(matches!(
        store.put(b"nine bytes"),
        Err(StoreError::QuotaExceeded { .. })
    ));
    assert_eq!(
        store.get(&other).unwrap(),
        b"other",
        "nothing is given up in vain"
    );
}

#[test]
fn many_threads_that_store_read_and_push_out_the_same_blobs_agree_with_the_disk() {
    let (dir, store) = store(4, 10);
    let store = Arc::new(store);
    let threads: Vec<_> = (0..4)
        .map(|thread: usize| {
            let store = store.clone();
            std::thread::spawn(move || {
                for i in 0..100 {
                    let blob = [b'a' + ((i * (thread + 1)) % 5) as u8; 4];
                    let hash = store.put(&blob).unwrap();
                    match store.get(&hash) {
                        Ok(bytes) => assert_eq!(bytes, blob),
                        Err(e) => assert!(matches!(e, StoreError::NotFound(_)), "{e}"),
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let total = store.total_bytes();
    assert!(total <= 10 && store.index().busy.is_empty());
    let kept: Vec<_> = store.index().entries.keys().copied().collect();
    for hash in kept {
        store.get(&hash).unwrap();
    }
    drop(store);
    let again = BlobStore::open(dir.path(), StoreLimits::default()).unwrap();
    assert_eq!(again.total_bytes(), total);
}

#[test]
fn outlines_are_the_same_from_memory_and_from_disk_and_damage_is_noticed() {
    let (dir, store) = store(4 << 20, 8 << 20);
    let blob = vec![5; (2 << 20) + 7];
    let (large, empty) = (store.put(&blob).unwrap(), store.put(b"").unwrap());
    let expected = (outline::outline(&blob).into(), blob.len() as u64);
    assert_eq!(store.outline(&large).unwrap(), expected);
    drop(store);
    let store = BlobStore::open(dir.path(), StoreLimits::default()).unwrap();
    assert_eq!(store.outline(&large).unwrap(), expected);
    assert_eq!(store.outline(&empty).unwrap(), ([empty].into(), 0));
    drop(store);
    let store = BlobStore::open(dir.path(), StoreLimits::default()).unwrap();
    fs::write(store.path(&large), vec![6; blob.len()]).unwrap();
    assert!(matches!(store.outline(&large), Err(StoreError::Damaged(_))));
    assert!(store.size(&large).is_none());
}

#[test]
fn a_blob_that_is_stored_pinned_stays_until_it_is_unpinned_as_often() {
    let (_dir, store) = store(10, 10);
    let pinned = store.put_pinned(b"aaaaa").unwrap();
    store.put_pinned(b"aaaaa").unwrap();
    store.unpin(&pinned);
    assert!(matches!(
        store.put(b"bbbbbb"),
        Err(StoreError::QuotaExceeded { .. })
    ));
    store.unpin(&pinned);
    store.put(b"bbbbbb").unwrap();
    assert!(store.size(&pinned).is_none());
}
