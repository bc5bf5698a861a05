//! Time alone carries a round to its end.

use frame_support::{assert_noop, assert_ok};
use surety_pallet_test_kit::{MockOutcome, MockStake};
use surety_types::traits::TaskTrust;

use surety_pallet_integration_tests::*;

#[test]
fn a_round_that_nobody_touches_ends() {
    TestExt::new().round_of(3).execute_with(|| {
        pass(COMMIT_WINDOW + 1 + CHALLENGE_WINDOW + 1);
        assert_eq!(phase(), None);
        assert!(decision().is_some());
    });
}

#[test]
fn nothing_happens_before_a_deadline_has_passed() {
    TestExt::new().round_of(2).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        let before = round();
        for _ in 0..AUDIT_WINDOW {
            assert_ok!(Results::advance(TASK));
            pass_unattended(1);
        }
        assert_ok!(Results::advance(TASK));
        assert_eq!(round(), before);
        pass_unattended(1);
        assert_ok!(Results::advance(TASK));
        assert_ne!(round(), before);
    });
}

#[test]
fn advancing_an_unknown_task_does_nothing() {
    TestExt::new().execute_with(|| {
        assert_ok!(Results::advance(99));
        assert_eq!(events(), []);
    });
}

#[test]
fn a_late_agenda_takes_no_time_from_providers() {
    TestExt::new().round_of(3).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        pass_unattended(500);
        assert_ok!(Results::advance(TASK));
        assert_eq!(phase(), Some((PhaseName::Auditing, 501 + AUDIT_WINDOW)));
        assert!(round().unwrap().awaits_seed());
        pass_unattended(500);
        assert_ok!(Results::advance(TASK));
        assert_eq!(phase(), Some((PhaseName::Auditing, 1_001 + AUDIT_WINDOW)));
        pass_unattended(500);
        assert_ok!(Results::advance(TASK));
        assert_eq!(phase(), Some((PhaseName::Revealing, 1_501 + REVEAL_WINDOW)));
    });
}

#[test]
fn one_advance_is_one_change_of_phase_however_late() {
    TestExt::new().round_of(1).execute_with(|| {
        assert_ok!(commit(1, 9));
        for expected in [
            PhaseName::Auditing,
            PhaseName::Revealing,
            PhaseName::Challengeable,
        ] {
            pass_unattended(10_000);
            for _ in 0..2 {
                assert_ok!(Results::advance(TASK));
                assert_eq!(phase().map(|(name, _)| name), Some(expected));
            }
        }
    });
}

#[test]
fn the_verdict_is_carried_out_only_after_the_challenge_window() {
    TestExt::new().round_of(1).execute_with(|| {
        assert_ok!(commit(1, 9));
        pass(AUDITING + 1);
        assert_ok!(reveal(1, 9));
        pass(CHALLENGE_WINDOW);
        assert_eq!(decision(), None);
        assert_eq!(MockStake::locked(1), LOCK);
        events();
        pass(1);
        assert_eq!(decision(), Some(agreed(9, &[1], &[], &[])));
        assert_eq!(MockStake::locked(1), 0);
        assert_eq!(
            events(),
            [RuntimeEvent::Results(ResultsEvent::RoundClosed { task: TASK })]
        );
    });
}

#[test]
fn a_verdict_that_cannot_be_carried_out_stays_and_is_tried_again() {
    TestExt::new().round_of(1).execute_with(|| {
        assert_ok!(commit(1, 9));
        pass(AUDITING + 1);
        assert_ok!(reveal(1, 9));
        pass_unattended(CHALLENGE_WINDOW + 1);
        MockOutcome::refuse(true);
        assert_noop!(Results::advance(TASK), MockOutcome::REFUSED);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Challengeable));
        MockOutcome::refuse(false);
        assert_ok!(Results::advance(TASK));
        assert_eq!(decision(), Some(agreed(9, &[1], &[], &[])));
    });
}

#[test]
fn a_stash_that_lost_its_stake_meanwhile_does_not_hold_up_the_round() {
    TestExt::new().round_of(2).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(1, 9), (2, 9)]);
        MockStake::remove(1);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1, 2], &[], &[])));
    });
}

#[test]
fn a_task_can_have_another_round_after_the_first() {
    TestExt::new().round_of(1).execute_with(|| {
        pass(COMMIT_WINDOW + 1 + CHALLENGE_WINDOW + 1);
        assert_eq!(phase(), None);
        assert_ok!(open(TASK, [1]));
    });
}
