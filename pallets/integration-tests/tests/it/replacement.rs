//! Filling the seats of providers that commit nothing.

use frame_support::{assert_noop, assert_ok};
use surety_pallet_test_kit::{MockClock, MockOutcome, MockStake};
use surety_types::{
    limits::REDUNDANCY_MAX,
    task::{FailureReason, Verdict},
    traits::Jail,
};

use surety_pallet_integration_tests::*;

#[test]
fn a_reserve_takes_the_seat_the_lock_and_a_new_window() {
    TestExt::new().round_of(2).reserves([5]).execute_with(|| {
        assert_ok!(commit(1, 9));
        events();
        pass(COMMIT_WINDOW + 1);
        assert_eq!(members(), [1, 5]);
        assert_eq!(round().unwrap().dropped.to_vec(), [2]);
        assert_eq!((MockStake::locked(2), MockStake::locked(5)), (0, LOCK));
        let until = System::block_number() + COMMIT_WINDOW;
        assert_eq!(phase(), Some((PhaseName::Committing, until)));
        assert_eq!(MockClock::last_wake(TASK), Some(until));
        assert_eq!(
            events(),
            [
                RuntimeEvent::Results(ResultsEvent::ProviderReplaced {
                    task: TASK,
                    dropped: 2,
                    by: 5
                }),
                RuntimeEvent::Results(ResultsEvent::PhaseChanged {
                    task: TASK,
                    phase: PhaseName::Committing,
                    until
                }),
            ]
        );
    });
}

fn missed(stash: AccountId) -> u32 {
    Records::<Test>::get(stash).missed
}

/// One seat, of which the client's own provider is the last in reserve: whoever was replaced before may not
/// have been given the input.
#[test]
fn no_more_of_those_who_were_replaced_are_suspended_than_have_committed() {
    TestExt::new().round_of(1).reserves([5, 6, 7]).execute_with(|| {
        for _ in 0..3 {
            pass(COMMIT_WINDOW + 1);
        }
        assert_eq!(round().unwrap().dropped.to_vec(), [1, 5, 6]);
        // The input may be one that nobody can compute on.
        assert_eq!([1, 5, 6].map(missed), [0; 3]);
        assert_ok!(commit(7, 9));
        assert_eq!([1, 5, 6, 7].map(missed), [1, 0, 0, 0]);
        assert!(TrustLock::is_suspended(&1));
    });
}

#[test]
fn who_is_replaced_once_a_majority_has_committed_is_counted_with_those_before() {
    TestExt::new().round_of(3).reserves([5, 6, 7]).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        for _ in 0..3 {
            pass(COMMIT_WINDOW + 1);
        }
        assert_eq!(round().unwrap().dropped.to_vec(), [3, 5, 6]);
        assert_eq!([3, 5, 6].map(missed), [1, 1, 0]);
    });
}

#[test]
fn where_nobody_ever_commits_nobody_is_suspended() {
    TestExt::new().round_of(1).reserves([5]).execute_with(|| {
        pass(COMMIT_WINDOW + 1);
        pass(COMMIT_WINDOW + 1);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Challengeable));
        assert_eq!((missed(1), missed(5)), (0, 0));
    });
}

#[test]
fn who_was_replaced_is_suspended_once_a_majority_commits_and_by_no_later_commitment() {
    TestExt::new().round_of(3).reserves([5, 6, 7]).execute_with(|| {
        pass(COMMIT_WINDOW + 1);
        assert_eq!(members(), [5, 6, 7]);
        assert_ok!(commit(5, 9));
        assert_eq!([1, 2, 3].map(missed), [0; 3]);
        assert_ok!(commit(6, 9));
        // As many as have committed.
        assert_eq!([1, 2, 3].map(missed), [1, 1, 0]);
        events();
        assert_ok!(commit(7, 9));
        let suspended =
            |event: &RuntimeEvent| matches!(event, RuntimeEvent::TrustLock(TrustLockEvent::Suspended { .. }));
        assert!(!events().iter().any(suspended));
    });
}

/// A client's own provider commits to anything, and nobody else is given the input.
#[test]
fn fewer_commitments_than_a_majority_suspend_nobody() {
    TestExt::new().round_of(4).reserves([5, 6, 7]).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        pass(COMMIT_WINDOW + 1);
        assert_eq!(members(), [1, 2, 5, 6]);
        pass(COMMIT_WINDOW + 1);
        assert_eq!(members(), [1, 2, 7, 6]);
        pass(COMMIT_WINDOW + 1);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Challengeable));
        assert_eq!([3, 4, 5, 6, 7].map(missed), [0; 5]);
    });
}

#[test]
fn the_newcomer_finishes_the_round_and_the_commitment_made_before_still_counts() {
    TestExt::new().round_of(2).reserves([5]).execute_with(|| {
        assert_ok!(commit(1, 9));
        pass(COMMIT_WINDOW + 1);
        assert_noop!(commit(2, 9), ResultsError::NotMember);
        assert_ok!(commit(5, 9));
        pass(AUDITING + 1);
        all_reveal(&[(1, 9), (5, 9)]);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1, 5], &[], &[])));
        assert_eq!(MockStake::locked_in_all(), 0);
    });
}

#[test]
fn reserves_replace_even_when_a_majority_has_committed() {
    TestExt::new().round_of(3).reserves([5]).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        pass(COMMIT_WINDOW + 1);
        assert_eq!(members(), [1, 2, 5]);
    });
}

#[test]
fn who_cannot_be_replaced_keeps_its_seat_and_its_chance() {
    TestExt::new().round_of(3).reserves([5]).execute_with(|| {
        assert_ok!(commit(2, 9));
        pass(COMMIT_WINDOW + 1);
        assert_eq!(members(), [5, 2, 3]);
        assert_eq!(MockStake::locked(3), LOCK);
        all_commit(&[(3, 9), (5, 9)]);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Auditing));
    });
}

#[test]
fn reserves_that_cannot_lock_are_passed_over() {
    TestExt::new()
        .round_of(2)
        .reserves([5, 6, 7, 8])
        .execute_with(|| {
            for poor in [5, 6] {
                MockStake::remove(poor);
            }
            pass(COMMIT_WINDOW + 1);
            assert_eq!(members(), [7, 8]);
            assert_eq!(MockStake::locked_in_all(), 2 * LOCK);
        });
}

#[test]
fn a_reserve_that_is_or_was_on_the_round_is_passed_over() {
    TestExt::new()
        .round_of(2)
        .reserves([1, 5, 2, 6])
        .execute_with(|| {
            assert_ok!(commit(1, 9));
            pass(COMMIT_WINDOW + 1);
            assert_eq!(members(), [1, 5]);
            pass(COMMIT_WINDOW + 1);
            assert_eq!(members(), [1, 6]);
            assert_eq!(round().unwrap().dropped.to_vec(), [2, 5]);
        });
}

#[test]
fn without_usable_reserves_the_round_goes_on_as_if_there_were_none() {
    TestExt::new()
        .round_of(3)
        .reserves([STASHES + 1])
        .execute_with(|| {
            all_commit(&[(1, 9), (2, 9)]);
            pass(COMMIT_WINDOW + 1);
            assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Auditing));
            assert!(MockOutcome::reserves(TASK).is_empty());
        });
}

#[test]
fn idle_reserves_are_used_up_and_then_the_task_fails() {
    TestExt::new().round_of(2).reserves(3..=7).execute_with(|| {
        pass(COMMIT_WINDOW + 1);
        assert_eq!(members(), [3, 4]);
        pass(COMMIT_WINDOW + 1);
        assert_eq!(members(), [5, 6]);
        pass(COMMIT_WINDOW + 1);
        assert_eq!(members(), [7, 6]);
        pass(COMMIT_WINDOW + 1);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Challengeable));
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(Verdict::Failed(FailureReason::NotEnoughResults)));
        assert_eq!(MockStake::locked_in_all(), 0);
    });
}

#[test]
fn replacements_are_bounded_and_spare_reserves_are_not_used_up() {
    let bound = AccountId::from(REDUNDANCY_MAX);
    TestExt::new().round_of(3).reserves(4..=STASHES).execute_with(|| {
        let window = COMMIT_WINDOW + 1;
        for _ in 0..REDUNDANCY_MAX.div_ceil(3) {
            assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Committing));
            pass(window);
        }
        assert_eq!(round().unwrap().dropped.len(), REDUNDANCY_MAX as usize);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Committing));
        assert_eq!(
            MockOutcome::reserves(TASK).len() as AccountId,
            STASHES - 3 - bound
        );

        pass(window);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Challengeable));
    });
}
