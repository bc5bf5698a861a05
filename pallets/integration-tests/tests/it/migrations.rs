//! What an earlier version has stored.

use codec::Encode;
use frame_support::{
    StorageHasher, Twox64Concat, assert_ok,
    storage::{storage_prefix, unhashed},
    traits::{GetStorageVersion, OnRuntimeUpgrade, StorageVersion},
};
use surety_pallet_trust_lock::migrations::{CauseOfSlashes, OldSlash};
use surety_types::{TaskId, trust::SlashCause};

use super::after;
use surety_pallet_integration_tests::*;

/// Stores a slash as version 1 did.
fn store(id: u32, task: TaskId) -> SlashOf<Test> {
    let slash = Slashes::<Test>::take(id).unwrap();
    let old = OldSlash {
        task,
        offender: slash.offender,
        kind: slash.kind,
        lock: slash.lock,
        part: slash.part,
        finders: slash.finders.clone(),
        finder: slash.finder,
        client: slash.client,
        proven_at: slash.proven_at,
        until: slash.until,
    };
    let key = [
        &storage_prefix(b"TrustLock", b"Slashes")[..],
        &Twox64Concat::hash(&id.encode()),
    ]
    .concat();
    unhashed::put(&key, &old);
    slash
}

#[test]
fn a_slash_that_waited_as_the_runtime_came_has_a_cause_and_is_carried_out() {
    after(&[9, 9, 8], || {
        play_out(&[(1, 9), (3, 8)]);
        let expected = [store(0, TASK)];
        StorageVersion::new(1).put::<TrustLock>();
        CauseOfSlashes::<Test>::on_runtime_upgrade();
        assert_eq!(TrustLock::on_chain_storage_version(), 2);
        assert_eq!(slashes(), expected);
        assert_eq!(slashes()[0].cause, SlashCause::Task(TASK));
        assert_ok!(try_state());
        // And once.
        CauseOfSlashes::<Test>::on_runtime_upgrade();
        assert_eq!(slashes(), expected);
        pass(DEFERRAL + 1);
        assert!(slashes().is_empty());
    });
}
