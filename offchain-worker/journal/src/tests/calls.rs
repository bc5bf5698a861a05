//! What was put is there, whole and in order, whoever dies and whoever puts at once.

use std::{sync::Condvar, thread};

use surety_channel_calls::{Row, Store, Table};

use super::*;
use crate::{CallStore, calls};

fn row(table: Table, key: &[u8], value: &[u8]) -> Row {
    Row {
        table,
        key: key.to_vec(),
        value: Some(value.to_vec()),
    }
}

fn gone(table: Table, key: &[u8]) -> Row {
    Row {
        table,
        key: key.to_vec(),
        value: None,
    }
}

fn refused(path: &Path) -> JournalError {
    match CallStore::open(path) {
        Err(error) => error,
        Ok(_) => panic!("the file opened"),
    }
}

#[test]
fn what_was_put_is_there_after_reopening_table_by_table_in_the_order_of_keys() {
    let (_folder, path) = folder();
    let store = CallStore::open(&path).unwrap();
    store.put(&[]).unwrap();
    let mut rows: Vec<Row> = Table::ALL.map(|table| row(table, &[2], b"two")).into();
    rows.extend(Table::ALL.map(|table| row(table, &[1, 9], b"one")));
    store.put(&rows).unwrap();
    // Later rows of one key take the place of earlier ones, also within one put.
    store
        .put(&[
            row(Table::Calls, &[3], b"three"),
            gone(Table::Calls, &[3]),
            row(Table::Held, &[2], b"2"),
            gone(Table::Start, &[2]),
            row(Table::Start, &[2], b""),
        ])
        .unwrap();
    drop(store);
    let store = CallStore::open(&path).unwrap();
    let mut expected = Vec::new();
    for table in Table::ALL.into_iter().filter(|table| table.is_loaded()) {
        expected.push(row(table, &[1, 9], b"one"));
        let two: &[u8] = match table {
            Table::Held => b"2",
            Table::Start => b"",
            _ => b"two",
        };
        expected.push(row(table, &[2], two));
    }
    assert_eq!(store.load().unwrap(), expected);
    let inputs = [
        row(Table::Inputs, &[1, 9], b"one"),
        row(Table::Inputs, &[2], b"two"),
    ];
    assert_eq!(store.read(Table::Inputs, &[]).unwrap(), inputs);
}

#[test]
fn a_prefix_finds_the_rows_that_begin_with_it_and_no_others() {
    let (_folder, path) = folder();
    let store = CallStore::open(&path).unwrap();
    let key = |call: u32, chunk: u32| [call.to_be_bytes(), chunk.to_be_bytes()].concat();
    // 300 chunks: their order is that of numbers, not of decimal digits or little-endian bytes.
    for call in [6, 7, 8, u32::MAX] {
        let chunks: Vec<Row> = (0..300)
            .rev()
            .map(|chunk| row(Table::Outputs, &key(call, chunk), &[7]))
            .collect();
        store.put(&chunks).unwrap();
    }
    for call in [7, u32::MAX] {
        let found = store.read(Table::Outputs, &call.to_be_bytes()).unwrap();
        let keys: Vec<_> = found.into_iter().map(|row| row.key).collect();
        assert_eq!(keys, (0..300).map(|chunk| key(call, chunk)).collect::<Vec<_>>());
    }
    assert_eq!(
        store.read(Table::Outputs, &key(7, 5)).unwrap(),
        [row(Table::Outputs, &key(7, 5), &[7])]
    );
    assert_eq!(store.read(Table::Outputs, &[9]).unwrap(), []);
    assert_eq!(store.read(Table::Inputs, &[]).unwrap(), []);
}

#[test]
fn a_second_opening_is_refused_while_the_first_lasts() {
    let (_folder, path) = folder();
    let first = CallStore::open(&path).unwrap();
    let error = refused(&path);
    assert!(matches!(error, JournalError::Locked { .. }), "{error}");
    drop(first);
    CallStore::open(&path).unwrap();
}

#[cfg(unix)]
#[test]
fn only_its_owner_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path) = folder();
    CallStore::open(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn files_of_another_version_damaged_files_and_those_of_something_else_are_refused() {
    let (_folder, path) = folder();
    CallStore::open(&path)
        .unwrap()
        .put(&[row(Table::Calls, &[1], &[2; 5000])])
        .unwrap();
    let sound = fs::read(&path).unwrap();
    let database = builder().create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction
        .open_table(calls::META)
        .unwrap()
        .insert(calls::VERSION_KEY, 9)
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = refused(&path);
    assert!(
        matches!(
            error,
            JournalError::Version {
                found: 9,
                supported: calls::VERSION,
                ..
            }
        ),
        "{error}"
    );

    fs::write(&path, &sound[..sound.len() / 2]).unwrap();
    let error = refused(&path);
    assert!(matches!(error, JournalError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("close the channels"), "{error}");

    fs::remove_file(&path).unwrap();
    Journal::open(&path).unwrap().append(&[bid(1)]).unwrap();
    let error = refused(&path);
    assert!(matches!(error, JournalError::Corrupt { .. }), "{error}");
    assert_eq!(
        Journal::open(&path).unwrap().load().unwrap(),
        [bid(1)],
        "it was left as it is"
    );
}

#[test]
fn a_file_from_before_a_table_was_added_gets_it() {
    let (_folder, path) = folder();
    let rows = [row(Table::Calls, &[1], &[2])];
    CallStore::open(&path).unwrap().put(&rows).unwrap();
    let database = builder().create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let held = redb::TableDefinition::<&[u8], &[u8]>::new(Table::Held.name());
    assert!(transaction.delete_table(held).unwrap());
    transaction.commit().unwrap();
    drop(database);
    let store = CallStore::open(&path).unwrap();
    assert_eq!(store.load().unwrap(), rows);
    assert_eq!(store.read(Table::Held, &[]).unwrap(), []);
}

/// A disk that a test can stop while it syncs.
#[derive(Clone, Debug)]
struct HeldDisk {
    disk: SmallDisk,
    /// Whether it is stopped, and how many wait for it to go on.
    held: Arc<(Mutex<(bool, u32)>, Condvar)>,
    syncs: Arc<AtomicU64>,
}

impl HeldDisk {
    fn new() -> Self {
        Self {
            disk: SmallDisk::new(),
            held: Arc::default(),
            syncs: Arc::default(),
        }
    }

    fn store(&self) -> CallStore {
        let disk = self.clone();
        let open = move |_: &Path| Ok(builder().create_with_backend(disk.clone())?);
        CallStore::with(Opener::new(Path::new("in memory"), open)).unwrap()
    }

    fn hold(&self, held: bool) {
        self.held.0.lock().unwrap().0 = held;
        self.held.1.notify_all();
    }

    fn wait_until_it_stands(&self) {
        let (held, changed) = &*self.held;
        drop(
            changed
                .wait_while(held.lock().unwrap(), |(_, waiting)| *waiting == 0)
                .unwrap(),
        );
    }
}

impl StorageBackend for HeldDisk {
    fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let (held, changed) = &*self.held;
        let mut state = held.lock().unwrap();
        state.1 += 1;
        changed.notify_all();
        let mut state = changed.wait_while(state, |(is_held, _)| *is_held).unwrap();
        state.1 -= 1;
        drop(state);
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.disk.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.write(offset, data)
    }
}

const AT_ONCE: u8 = 8;

/// One thread puts, and stands in its sync; eight more put meanwhile. Then the disk goes on, as `then` has
/// it.
fn put_at_once(disk: &HeldDisk, store: &CallStore, then: impl FnOnce()) -> Vec<Result<(), JournalError>> {
    disk.hold(true);
    thread::scope(|scope| {
        let put = |n: u8| store.put(&[row(Table::Calls, &[n], &[n]), row(Table::Outputs, &[n], &[n])]);
        let mut threads = vec![scope.spawn(move || put(0))];
        disk.wait_until_it_stands();
        threads.extend((1..=AT_ONCE).map(|n| scope.spawn(move || put(n))));
        while store.waiting() < usize::from(AT_ONCE) {
            thread::yield_now();
        }
        then();
        disk.hold(false);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn what_several_threads_put_while_the_disk_is_busy_is_written_with_one_sync() {
    let disk = HeldDisk::new();
    let store = disk.store();
    let before = disk.syncs.load(Ordering::Relaxed);
    store.put(&[row(Table::Start, &[0], &[0])]).unwrap();
    let of_one = disk.syncs.load(Ordering::Relaxed) - before;
    let outcomes = put_at_once(&disk, &store, || {});
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(disk.syncs.load(Ordering::Relaxed) - before, 3 * of_one);
    drop(store);
    let store = disk.store();
    for table in [Table::Calls, Table::Outputs] {
        let keys: Vec<_> = store
            .read(table, &[])
            .unwrap()
            .into_iter()
            .map(|row| row.key)
            .collect();
        assert_eq!(keys, (0..=AT_ONCE).map(|n| vec![n]).collect::<Vec<_>>());
    }
}

#[test]
fn every_thread_is_told_that_the_disk_is_full_and_the_store_goes_on_when_there_is_space() {
    let disk = HeldDisk::new();
    let store = disk.store();
    let outcomes = put_at_once(&disk, &store, || disk.disk.bytes_max.store(0, Ordering::Relaxed));
    assert_eq!(outcomes.len(), usize::from(AT_ONCE) + 1);
    for outcome in outcomes {
        let error = outcome.unwrap_err();
        assert!(matches!(error, JournalError::DiskFull { .. }), "{error:?}");
    }
    disk.disk.bytes_max.store(u64::MAX, Ordering::Relaxed);
    // The first was on the disk, which did not say so: it may be there, but not half of it.
    let keys = |table| store.read(table, &[]).unwrap().into_iter().map(|row| row.key);
    assert!(keys(Table::Calls).eq(keys(Table::Outputs)));
    assert!(keys(Table::Calls).all(|key| key == [0]));
    let again: Vec<Row> = (0..=AT_ONCE).map(|n| row(Table::Calls, &[n], &[n])).collect();
    store.put(&again).unwrap();
    assert_eq!(store.load().unwrap(), again);
}

const CHILD: &str = "SURETY_CALLS_TEST_CHILD";

/// Not a test by itself: the process that the next test kills.
#[test]
fn child_that_puts_until_it_is_killed() {
    let Ok(path) = std::env::var(CHILD) else {
        return;
    };
    let store = CallStore::open(Path::new(&path)).unwrap();
    thread::scope(|scope| {
        for writer in 0..4u8 {
            let (store, path) = (&store, &path);
            scope.spawn(move || {
                for n in 0u32.. {
                    let key = [&[writer][..], &n.to_be_bytes()].concat();
                    let rows = [
                        row(Table::Calls, &key, &[1; 300]),
                        row(Table::Outputs, &key, &[2; 9000]),
                    ];
                    store.put(&rows).unwrap();
                    // Said only after it is durable.
                    fs::write(format!("{path}.{writer}"), n.to_string()).unwrap();
                }
            });
        }
    });
}

#[test]
fn a_killed_process_leaves_everything_that_its_threads_had_put() {
    let (_folder, path) = folder();
    let said = |writer: u8| PathBuf::from(format!("{}.{writer}", path.display()));
    for round in 0..3 {
        for file in (0..4).map(said).chain([path.clone()]) {
            let _ = fs::remove_file(file);
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child_that_puts_until_it_is_killed", "--quiet"])
            .env(CHILD, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while !(0..4).all(|writer| said(writer).exists()) {
            thread::sleep(std::time::Duration::from_millis(5));
        }
        thread::sleep(std::time::Duration::from_millis(30 + 17 * round));
        child.kill().unwrap();
        child.wait().unwrap();

        let store = CallStore::open(&path).unwrap();
        let calls = store.read(Table::Calls, &[]).unwrap();
        let outputs = store.read(Table::Outputs, &[]).unwrap();
        let keys = |rows: &[Row]| rows.iter().map(|row| row.key.clone()).collect::<Vec<_>>();
        assert_eq!(
            keys(&calls),
            keys(&outputs),
            "half of what was put together is there"
        );
        for writer in 0..4 {
            // The last number may be half written, or the file empty for a moment.
            let last: usize = fs::read_to_string(said(writer)).unwrap().parse().unwrap_or(0);
            let found = calls
                .iter()
                .filter(|row| row.key.first() == Some(&writer))
                .count();
            assert!(found > last, "writer {writer} said {last}, {found} are there");
        }
    }
}
