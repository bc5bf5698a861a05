//! Putting providers to work.

use frame_support::{assert_noop, assert_ok};
use surety_pallet_test_kit::{MockClock, MockStake};
use surety_types::{
    limits::REDUNDANCY_MAX,
    task::{MemberProgress, PerMember, Security},
    traits::TaskTrust,
};

use surety_pallet_integration_tests::*;

#[test]
fn everybodys_stake_is_locked_and_the_clock_is_set() {
    TestExt::new().execute_with(|| {
        assert_ok!(open(TASK, [3, 5]));
        assert_eq!((MockStake::locked(3), MockStake::locked(5)), (LOCK, LOCK));
        assert_eq!(phase(), Some((PhaseName::Committing, 1 + COMMIT_WINDOW)));
        assert_eq!(MockClock::wakes(), [(TASK, 1 + COMMIT_WINDOW)]);
        assert_eq!(
            events(),
            [RuntimeEvent::Results(ResultsEvent::RoundOpened {
                task: TASK,
                until: 1 + COMMIT_WINDOW
            })]
        );

        let round = round().unwrap();
        assert_eq!((round.redundancy(), round.units_max), (2, UNITS_MAX));
        assert!(
            round
                .members
                .iter()
                .all(|member| member.progress == MemberProgress::Working && member.lock == LOCK)
        );
        assert!(round.dropped.is_empty());
    });
}

#[test]
fn the_lock_is_a_multiple_of_the_price() {
    TestExt::new().execute_with(|| {
        assert_eq!(
            Results::lock_for(
                PRICE,
                &Security::default(),
                &surety_types::task::AuditTerms::default()
            ),
            LOCK
        );
        assert_eq!(
            Results::lock_for(
                u128::MAX,
                &Security::default(),
                &surety_types::task::AuditTerms::default()
            ),
            u128::MAX
        );
    });
}

#[test]
fn rounds_of_different_tasks_lock_separately() {
    TestExt::new().execute_with(|| {
        assert_ok!(open(1, [3]));
        assert_ok!(open(2, [3, 4]));
        assert_eq!((MockStake::locked(3), MockStake::locked(4)), (2 * LOCK, LOCK));
    });
}

#[test]
fn a_task_has_one_round() {
    TestExt::new().round_of(2).execute_with(|| {
        assert_noop!(open(TASK, [8, 9]), ResultsError::RoundExists);
    });
}

#[test]
fn a_round_of_nobody_does_not_open() {
    TestExt::new().execute_with(|| {
        let nobody = PerMember::default();
        assert_noop!(
            Results::open(
                TASK,
                UNITS_MAX,
                Security::default(),
                surety_types::task::AuditTerms::default(),
                &nobody
            ),
            ResultsError::WrongMemberCount
        );
    });
}

#[test]
fn nobody_sits_twice_on_a_round() {
    TestExt::new().build().execute_with(|| {
        assert_noop!(open(TASK, [1, 2, 1]), ResultsError::DuplicateMember);
    });
}

#[test]
fn a_provider_that_cannot_lock_keeps_the_round_from_opening() {
    TestExt::new().build().execute_with(|| {
        let unbonded = STASHES + 1;
        assert_noop!(open(TASK, [1, unbonded]), MockStake::NOT_ENOUGH);
        assert_eq!(MockClock::wakes(), []);
        assert_eq!(phase(), None);
    });
}

#[test]
fn the_largest_round_fits() {
    TestExt::new().round_of(REDUNDANCY_MAX).execute_with(|| {
        assert_eq!(members().len(), REDUNDANCY_MAX as usize);
    });
}

#[test]
fn a_round_of_a_task_whose_model_is_gone_does_not_open() {
    TestExt::new().model(Model::Unknown).build().execute_with(|| {
        assert_noop!(open(TASK, [1]), ToyReferee::UNKNOWN);
    });
}
