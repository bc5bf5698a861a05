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
                RuntimeEvent::TrustLock(TrustLockEvent::Suspended {
                    stash: 2,
                    until: System::block_number() + SUSPENSION
                }),
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

#[test]
fn who_was_replaced_before_anybody_committed_is_suspended_once_somebody_does() {
    TestExt::new().round_of(1).reserves([5, 6]).execute_with(|| {
        pass(COMMIT_WINDOW + 1);
        pass(COMMIT_WINDOW + 1);
        assert_eq!(round().unwrap().dropped.to_vec(), [1, 5]);
        // The input may be one that nobody can compute on.
        assert_eq!((missed(1), missed(5)), (0, 0));
        assert_ok!(commit(6, 9));
        assert_eq!((missed(1), missed(5), missed(6)), (1, 1, 0));
        assert!(TrustLock::is_suspended(&1) && TrustLock::is_suspended(&5));
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
fn who_was_replaced_is_suspended_by_the_first_commitment_and_by_no_later_one() {
    TestExt::new().round_of(2).reserves([5, 6]).execute_with(|| {
        pass(COMMIT_WINDOW + 1);
        assert_eq!(members(), [5, 6]);
        assert_ok!(commit(5, 9));
        assert_eq!((missed(1), missed(2)), (1, 1));
        events();
        assert_ok!(commit(6, 9));
        let suspended =
            |event: &RuntimeEvent| matches!(event, RuntimeEvent::TrustLock(TrustLockEvent::Suspended { .. }));
        assert!(!events().iter().any(suspended));
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
