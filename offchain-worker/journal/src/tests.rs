#![allow(clippy::unwrap_used)]

mod calls;
mod kinds;

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use codec::{Decode, Encode};
use redb::{ReadableTable, StorageBackend, backends::InMemoryBackend};
use sp_core::H256;
use surety_dispute_game::bisection::Move;
use surety_types::{
    task::{Bid, ResultClaim},
    trust::{ItemFound, ItemsFound},
};
use surety_worker_core::{KeptView, Record};

use crate::{
    Journal, JournalError,
    storage::{FINISHED_MAX, META, OPEN, Opener, VERSION, VERSION_KEY, builder},
};
use kinds::{every_kind, numbered};

fn bid(task: u64) -> Record {
    Record::BidMade {
        task,
        at: 1,
        bid: Bid {
            price: 5,
            seconds: 6,
            salt: H256([7; 32]),
        },
    }
}

fn result(task: u64) -> Record {
    Record::ResultMade {
        task,
        at: 2,
        claim: ResultClaim {
            output: H256([1; 32]),
            trace_root: H256([2; 32]),
            units: 3,
        },
        salt: H256([4; 32]),
        commitment: H256([5; 32]),
    }
}

fn finished(task: u64) -> Record {
    Record::Finished { task, at: 9 }
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.redb");
    (folder, path)
}

fn open_err(path: &Path) -> JournalError {
    match Journal::open(path) {
        Err(error) => error,
        Ok(_) => panic!("the journal opened"),
    }
}

#[test]
fn what_was_appended_is_there_after_reopening_in_order() {
    let (_folder, path) = folder();
    let journal = Journal::open(&path).unwrap();
    journal.append(&[bid(2), bid(1)]).unwrap();
    journal.append(&[]).unwrap();
    journal.append(&[result(1)]).unwrap();
    drop(journal);
    let journal = Journal::open(&path).unwrap();
    journal
        .append(&[Record::CommitSubmitted { task: 1, at: 3 }])
        .unwrap();
    let expected = vec![
        bid(1),
        result(1),
        Record::CommitSubmitted { task: 1, at: 3 },
        bid(2),
    ];
    assert_eq!(journal.load().unwrap(), expected);
}

#[test]
fn a_finished_task_leaves_one_record_and_only_so_many_are_kept() {
    let (_folder, path) = folder();
    let journal = Journal::open(&path).unwrap();
    journal.append(&[bid(3), result(3), bid(4)]).unwrap();
    journal.append(&[finished(3)]).unwrap();
    assert_eq!(journal.load().unwrap(), vec![finished(3), bid(4)]);

    // Those that finished first go, whatever their numbers: a task with a low number may last the longest.
    let late = Record::Finished { task: 1, at: 10 };
    let many: Vec<_> = (100..100 + FINISHED_MAX).map(finished).collect();
    journal.append(&[vec![late.clone()], many].concat()).unwrap();
    let kept = journal.load().unwrap();
    assert_eq!(kept.len() as u64, FINISHED_MAX + 1);
    assert!(!kept.contains(&finished(3)) && kept.contains(&late) && kept.contains(&bid(4)));
}

#[test]
fn a_promise_for_a_task_that_was_finished_by_mistake_counts_again() {
    let (_folder, path) = folder();
    let journal = Journal::open(&path).unwrap();
    journal.append(&[bid(1), finished(1)]).unwrap();
    journal.append(&[result(1)]).unwrap();
    assert_eq!(journal.load().unwrap(), vec![result(1)]);
}

#[test]
fn every_kind_of_promise_counts_again_after_its_task_was_finished_by_mistake() {
    for record in every_kind() {
        let (_folder, path) = folder();
        let journal = Journal::open(&path).unwrap();
        journal.append(&[finished(1)]).unwrap();
        journal.append(std::slice::from_ref(&record)).unwrap();
        // How far something is binds nobody.
        let is_note = matches!(
            record,
            Record::CommitSubmitted { .. }
                | Record::RevealSubmitted { .. }
                | Record::AuditAnnounced { .. }
                | Record::AuditRevealed { .. }
                | Record::MoveSubmitted { .. }
                | Record::InputMissed { .. }
                | Record::InputFetched { .. }
                | Record::LeavesKept { .. }
                | Record::ViewKept { .. }
                | Record::ConfirmationChecked { .. }
        );
        let counts = !journal.load().unwrap().contains(&finished(1));
        assert_eq!(counts, !is_note, "{record:?}");
    }
}

#[test]
fn a_second_opening_is_refused_while_the_first_lasts() {
    let (_folder, path) = folder();
    let first = Journal::open(&path).unwrap();
    assert!(matches!(open_err(&path), JournalError::Locked { .. }));
    drop(first);
    Journal::open(&path).unwrap();
}

#[test]
fn another_version_is_refused() {
    let (_folder, path) = folder();
    drop(Journal::open(&path).unwrap());
    let database = builder().create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut meta = transaction.open_table(META).unwrap();
    meta.insert(VERSION_KEY, 9).unwrap();
    drop(meta);
    transaction.commit().unwrap();
    drop(database);
    let error = open_err(&path);
    assert!(matches!(error, JournalError::Version { found: 9, .. }), "{error}");
}

/// Writes another version into a journal, as the program that said so would. Gives back what was there.
fn set_version(path: &Path, version: u64) -> Option<u64> {
    let database = builder().create(path).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut meta = transaction.open_table(META).unwrap();
    let before = meta.insert(VERSION_KEY, version).unwrap().map(|old| old.value());
    drop(meta);
    transaction.commit().unwrap();
    before
}

#[test]
fn journals_of_the_versions_before_are_taken_up_and_kept_from_older_programs() {
    for (older, records) in [(1, vec![bid(1), result(1)]), (2, every_kind())] {
        let (_folder, path) = folder();
        Journal::open(&path).unwrap().append(&records).unwrap();
        set_version(&path, older);
        let journal = Journal::open(&path).unwrap();
        assert_eq!(journal.load().unwrap(), records);
        drop(journal);
        assert_eq!(set_version(&path, VERSION), Some(VERSION));
    }
}

#[test]
fn each_kind_of_record_keeps_its_number_and_the_version_covers_the_newest() {
    let records = [every_kind(), vec![finished(1)]].concat();
    for record in &records {
        assert_eq!(record.encode().first(), Some(&numbered(record).0), "{record:?}");
    }
    let newest = records.iter().map(|record| numbered(record).1).max();
    assert_eq!(newest, Some(VERSION));
}

#[test]
fn records_of_every_kind_come_back_as_they_were_written() {
    let (_folder, path) = folder();
    Journal::open(&path).unwrap().append(&every_kind()).unwrap();
    assert_eq!(Journal::open(&path).unwrap().load().unwrap(), every_kind());
}

#[test]
fn a_record_that_was_tampered_with_is_noticed() {
    let (_folder, path) = folder();
    let journal = Journal::open(&path).unwrap();
    journal.append(&[bid(1)]).unwrap();
    drop(journal);
    // With good page checksums, as a program would leave them.
    let database = builder().create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut open = transaction.open_table(OPEN).unwrap();
    let bytes = open.get((1, 0)).unwrap().unwrap().value().to_vec();
    open.insert((2, 0), bytes.as_slice()).unwrap();
    drop(open);
    transaction.commit().unwrap();
    drop(database);
    assert!(matches!(open_err(&path), JournalError::Corrupt { .. }));
}

#[test]
fn damaged_files_give_an_error_or_everything_and_never_a_panic() {
    let (_folder, path) = folder();
    let records: Vec<_> = (0..20).flat_map(|task| [bid(task), result(task)]).collect();
    let journal = Journal::open(&path).unwrap();
    journal.append(&records).unwrap();
    drop(journal);
    let sound = fs::read(&path).unwrap();

    let check = |bytes: &[u8], what: &str| {
        fs::write(&path, bytes).unwrap();
        match Journal::open(&path) {
            // Flipped where nothing is stored, or where redb keeps a second copy.
            Ok(journal) => assert_eq!(journal.load().unwrap(), records, "{what}"),
            Err(JournalError::Corrupt { .. }) => return true,
            Err(error) => panic!("{what}: {error}"),
        }
        false
    };
    let mut noticed = 0;
    let mut at = 0;
    while at < sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 0xff;
        noticed += u32::from(check(&bytes, &format!("byte {at}")));
        // Much of the header, some of the pages in use, little of the rest.
        at += match at {
            0..400 => 3,
            400..65_536 => 1021,
            _ => 65_521,
        };
    }
    assert!(noticed > 50, "{noticed}");
    for length in [1, 100, 4096, sound.len() / 2, sound.len() - 1] {
        assert!(check(&sound[..length], &format!("cut to {length} bytes")));
    }
    assert!(check(b"this is not a journal, but somebody's notes", "a text"));
    assert!(!check(&sound, "the sound file"));
}

/// A disk of limited size, in memory; shared, so that it outlives the database on it.
#[derive(Clone, Debug)]
struct SmallDisk {
    disk: Arc<Mutex<Arc<InMemoryBackend>>>,
    bytes_max: Arc<AtomicU64>,
}

impl SmallDisk {
    fn new() -> Self {
        Self {
            disk: Arc::new(Mutex::new(Arc::new(InMemoryBackend::new()))),
            bytes_max: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    fn disk(&self) -> Arc<InMemoryBackend> {
        self.disk.lock().unwrap().clone()
    }

    fn check(&self) -> io::Result<()> {
        match self.bytes_max.load(Ordering::Relaxed) {
            0 => Err(ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

impl StorageBackend for SmallDisk {
    fn len(&self) -> io::Result<u64> {
        self.disk().len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk().read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if len > self.bytes_max.load(Ordering::Relaxed) {
            return Err(ErrorKind::StorageFull.into());
        }
        self.disk().set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check()?;
        self.disk().sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        self.disk().write(offset, data)
    }
}

#[test]
fn a_full_disk_is_named_and_loses_nothing_and_the_journal_goes_on_when_there_is_space() {
    let (folder, path) = folder();
    let disk = SmallDisk::new();
    let on_disk = disk.clone();
    let opener = Opener::new(
        &path,
        move |_| Ok(builder().create_with_backend(on_disk.clone())?),
    );
    let journal = Journal::with(opener, &path).unwrap();
    journal.append(&[bid(1)]).unwrap();
    assert!(!journal.is_short_of_room());
    let reserve = || fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(reserve(), 1);

    disk.bytes_max.store(0, Ordering::Relaxed);
    for _ in 0..3 {
        let error = journal.append(&[result(1)]).unwrap_err();
        assert!(matches!(error, JournalError::DiskFull { .. }), "{error:?}");
        assert_eq!(reserve(), 0, "it was given up for this");
    }

    disk.bytes_max.store(u64::MAX, Ordering::Relaxed);
    assert_eq!(journal.load().unwrap(), vec![bid(1)]);
    journal.append(&[result(1)]).unwrap();
    assert_eq!(journal.load().unwrap(), vec![bid(1), result(1)]);
    assert!(!journal.is_short_of_room(), "it is taken up again");
    assert_eq!(reserve(), 1);
}

const CHILD: &str = "SURETY_JOURNAL_TEST_CHILD";

/// Not a test by itself: the process that the next test kills.
#[test]
fn child_that_appends_until_it_is_killed() {
    let Ok(path) = std::env::var(CHILD) else {
        return;
    };
    let journal = Journal::open(Path::new(&path)).unwrap();
    for task in 0.. {
        journal.append(&[bid(task), result(task)]).unwrap();
        // Said only after it is durable.
        fs::write(format!("{path}.said"), task.to_string()).unwrap();
    }
}

#[test]
fn a_killed_process_leaves_everything_it_had_appended() {
    let (_folder, path) = folder();
    let said = PathBuf::from(format!("{}.said", path.display()));
    for round in 0..4 {
        let _ = fs::remove_file(&path);
        let _ = fs::remove_file(&said);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child_that_appends_until_it_is_killed", "--quiet"])
            .env(CHILD, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while !said.exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        std::thread::sleep(std::time::Duration::from_millis(30 + 17 * round));
        child.kill().unwrap();
        child.wait().unwrap();

        let records = Journal::open(&path).unwrap().load().unwrap();
        // The last number may be half written, or the file empty for a moment.
        let said: u64 = fs::read_to_string(&said).unwrap().parse().unwrap_or(0);
        for task in 0..=said {
            assert!(records.contains(&bid(task)) && records.contains(&result(task)));
        }
        assert_eq!(records.len() % 2, 0, "half a step was written");
    }
}
