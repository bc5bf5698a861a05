//! Cells that no block can compute again.

use frame_support::{assert_noop, assert_ok, dispatch::DispatchResult};
use sp_runtime::DispatchError;
use surety_dispute_game::bisection::Side;
use surety_pallet_test_kit::MockStake;
use surety_types::{
    task::{FailureReason, Verdict},
    trust::FaultKind,
};

use super::{after, revealed_with};
use surety_pallet_integration_tests::*;

/// Wrong in the tokens.
const WRONG: u8 = TOO_LARGE + 1;

fn decide(dispute: u32, winner: Side) -> DispatchResult {
    Disputes::decide_dispute(RuntimeOrigin::root(), dispute, winner)
}

/// Stashes 1 and 2 contradict each other about the tokens.
fn referred(test: impl FnOnce()) {
    after(&[9, WRONG], || {
        events();
        play_out(&[(1, 9), (2, WRONG)]);
        let reached = |event: &RuntimeEvent| {
            matches!(
                event,
                RuntimeEvent::Disputes(DisputesEvent::CellReached {
                    needs_committee: true,
                    ..
                })
            )
        };
        assert!(events().iter().any(reached));
        test();
    });
}

#[test]
fn it_waits_for_a_decision() {
    referred(|| {
        assert_eq!(to_move(0), None);
        pass(DECISION_WINDOW);
        assert_eq!(pairs(), [(1, 2)]);
        assert_noop!(
            Disputes::decide_dispute(RuntimeOrigin::signed(1), 0, Side::Defender),
            DispatchError::BadOrigin
        );
        assert_ok!(decide(0, Side::Defender));
        assert_eq!(faults(), [(2, FaultKind::LostDispute)]);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1], &[2], &[])));
    });
}

#[test]
fn a_decision_against_the_defender_is_as_good_as_a_judgement() {
    referred(|| {
        assert_ok!(decide(0, Side::Challenger));
        assert_eq!(faults(), [(1, FaultKind::WrongResult)]);
    });
}

#[test]
fn without_a_decision_nobody_loses_stake_and_the_client_is_refunded() {
    referred(|| {
        pass(DECISION_WINDOW + 1);
        assert_eq!(pairs(), []);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(Verdict::Failed(FailureReason::NoAgreement)));
        assert_eq!((faults(), MockStake::locked_in_all()), (vec![], 0));
    });
}

#[test]
fn an_undecided_challenge_of_a_stranger_takes_nothing_from_the_provider() {
    after(&[9, 9], || {
        assert_ok!(challenge(FIRST_STRANGER, 1));
        play_out(&[(1, 9), (FIRST_STRANGER, WRONG)]);
        pass(DECISION_WINDOW + 1);
        assert_eq!(money(FIRST_STRANGER), MONEY);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1, 2], &[], &[])));
    });
}

#[test]
fn an_undecided_audit_gets_its_bond_back() {
    TestExt::new().round_of(1).execute_with(|| {
        revealed_with(&[(FIRST_VERIFIER, 1, WRONG)], &[9]);
        assert_ok!(reveal_audit(FIRST_VERIFIER, 1, WRONG));
        play_out(&[(1, 9), (FIRST_VERIFIER, WRONG)]);
        pass(DECISION_WINDOW + 1);
        assert_eq!(MockStake::locked(FIRST_VERIFIER), 0);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(Verdict::Failed(FailureReason::NoAgreement)));
        assert_eq!(faults(), []);
    });
}

#[test]
fn what_can_be_played_is_not_decided_from_outside() {
    after(&[9, 8], || {
        assert_noop!(decide(0, Side::Defender), DisputesError::NotReferred);
        assert_noop!(decide(9, Side::Defender), DisputesError::UnknownDispute);
    });
}

#[test]
fn a_side_may_still_concede() {
    referred(|| {
        let concede = surety_dispute_game::bisection::Move::Concede;
        assert_ok!(play(agent_of(2), 0, concede));
        assert_eq!(faults(), [(2, FaultKind::LostDispute)]);
    });
}
