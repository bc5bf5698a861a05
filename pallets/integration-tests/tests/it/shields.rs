//! A lesser fault is no shield from a graver one.

use frame_support::{assert_noop, assert_ok};
use sp_core::H256;
use surety_pallet_test_kit::MockStake;
use surety_types::{
    task::{FailureReason, Verdict},
    traits::Jail,
    trust::FaultKind,
};

use super::{after, revealed_with};
use surety_pallet_integration_tests::*;

const VERIFIER: AccountId = FIRST_VERIFIER;
const STRANGER: AccountId = FIRST_STRANGER;
/// Wrong in the tokens.
const WRONG: u8 = TOO_LARGE + 1;
/// 5 % of the stake that is not locked for the task.
const OF_STAKE: Balance = (BOND - LOCK) / 20;

/// Stash 1 lies, and has a friend contradict it in what no block can decide; nobody decides it. These audits
/// are announced, and another one that keeps the round waiting. Meanwhile `before` happens.
fn undecided(
    audits: &[(AccountId, AccountId, u8)],
    others: &[u8],
    before: impl FnOnce(),
    test: impl FnOnce(),
) {
    let results: Vec<u8> = [&[8, WRONG], others].concat();
    let audits = [audits, &[(VERIFIER + 1, 2, 9)]].concat();
    TestExt::new().round_of(results.len() as u32).execute_with(|| {
        revealed_with(&audits, &results);
        assert_eq!(pairs()[0], (1, 2));
        play_out(&[(1, 8), (2, WRONG)]);
        before();
        while pairs().contains(&(1, 2)) {
            pass(1);
        }
        assert_eq!(fault_of(1), Some(FaultKind::Undecided));
        test();
    });
}

fn nothing() {}

fn fault_of(stash: AccountId) -> Option<FaultKind> {
    let members = round()?.members;
    members.iter().find(|member| member.provider == stash)?.fault
}

#[test]
fn an_undecided_dispute_with_a_friend_does_not_shield_from_an_auditor() {
    undecided(&[(VERIFIER, 1, 9)], &[], nothing, || {
        assert_ok!(reveal_audit(VERIFIER, 1, 9));
        assert_eq!(pairs(), [(1, VERIFIER)]);
        play_out(&[(1, 8), (VERIFIER, 9)]);
        assert_eq!(faults(), [(1, FaultKind::WrongResult)]);
        assert_eq!((slashes()[0].lock, TrustLock::is_jailed(&1)), (LOCK, true));
        pass(100);
        assert_eq!(MockStake::slashed(1), LOCK + OF_STAKE);
    });
}

#[test]
fn an_undecided_dispute_with_a_friend_ends_no_other() {
    let before = || {
        pass(CHALLENGE_WINDOW);
        assert_ok!(challenge(STRANGER, 1));
    };
    undecided(&[], &[], before, || {
        assert_eq!(pairs(), [(1, STRANGER)]);
        play_out(&[(1, 8), (STRANGER, 9)]);
        assert_eq!(faults(), [(1, FaultKind::WrongResult)]);
        assert_eq!(slashes()[0].lock, LOCK);
    });
}

#[test]
fn two_who_shield_each_other_still_play_the_provider_that_is_right() {
    undecided(&[], &[9], nothing, || {
        for _ in 0..20 {
            play_out(&[(1, 8), (2, WRONG), (3, 9)]);
            for (id, dispute) in disputes() {
                if dispute.referred_at.is_some() {
                    let winner = if dispute.claim == claim(9) {
                        surety_dispute_game::bisection::Side::Defender
                    } else {
                        surety_dispute_game::bisection::Side::Challenger
                    };
                    assert_ok!(Disputes::decide_dispute(RuntimeOrigin::root(), id, winner));
                }
            }
            pass(1);
        }
        pass(100);
        assert!(MockStake::slashed(1) >= LOCK && MockStake::slashed(2) >= LOCK);
        assert_eq!(MockStake::slashed(3), 0);
        assert_eq!(decision(), Some(agreed(9, &[3], &[1, 2], &[])));
    });
}

#[test]
fn who_is_undecided_twice_takes_the_pay_of_one_other_at_most() {
    // The third and the fourth are right, and nobody decides about the second's tokens.
    undecided(&[], &[9, 9, 9], nothing, || {
        for _ in 0..40 {
            play_out(&[(1, 8), (2, WRONG), (3, 9), (4, 9), (5, 9)]);
            pass(1);
        }
        assert_eq!(decision(), Some(agreed(9, &[3, 4, 5], &[1, 2], &[])));
        assert!(MockStake::slashed(1) >= LOCK);
        assert_eq!([2, 3, 4, 5].map(MockStake::slashed), [0; 4]);
    });
}

#[test]
fn what_nobody_could_decide_twice_convicts_nobody() {
    undecided(&[(VERIFIER, 2, 9)], &[], nothing, || {
        assert_ok!(reveal_audit(VERIFIER, 2, 9));
        assert_eq!(pairs(), [(2, VERIFIER)]);
        play_out(&[(2, WRONG), (VERIFIER, 9)]);
        pass(100);
        assert_eq!(faults(), []);
        assert_eq!(MockStake::slashed(VERIFIER + 1), AUDIT_BOND);
        assert_eq!(MockStake::locked_in_all(), 0);
        assert_eq!(decision(), Some(Verdict::Failed(FailureReason::NoAgreement)));
    });
}

#[test]
fn an_undecided_dispute_does_not_shield_from_a_demand() {
    let before = || {
        endow_demanders();
        post_input();
        pass(CHALLENGE_WINDOW);
        // Its output it has shown in the game.
        assert_ok!(demand(CLIENT, 1, of_output([0])));
        assert_eq!(money(CLIENT), MONEY + 1);
        assert_ok!(demand(CLIENT, 1, of_input([0])));
    };
    undecided(&[], &[], before, || {
        pass(SUPPLY_WINDOW);
        assert_eq!(faults(), [(1, FaultKind::WithheldData)]);
        assert_eq!(slashes()[0].lock, LOCK);
    });
}

#[test]
fn an_undecided_dispute_does_not_shield_from_what_was_signed() {
    undecided(&[], &[], nothing, || {
        assert_ok!(report(promised(1, 7), None));
        assert_eq!(faults(), [(1, FaultKind::Equivocation)]);
        assert_eq!(slashes()[0].lock, LOCK);
        assert_noop!(report(promised(1, 7), None), ResultsError::AlreadyAtFault);
    });
}

#[test]
fn silence_does_not_shield_from_what_was_signed_and_the_lock_is_taken_once() {
    TestExt::new().round_of(3).execute_with(|| {
        all_commit(&[(1, 8), (2, 9), (3, 9)]);
        assert_ok!(announce(VERIFIER, 2, 9));
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(2, 9), (3, 9)]);
        pass(REVEAL_WINDOW + OPENING_WINDOW + 2);
        assert_eq!(faults(), [(1, FaultKind::NoReveal)]);
        assert!(!TrustLock::is_jailed(&1) || !TrustLock::is_in_jail(&1));
        // The round is still there: the auditor is to be found at fault in the next block.
        assert_ok!(report(promised(1, 7), None));
        let of_first = || slashes().into_iter().filter(|slash| slash.offender == 1);
        let locks: Vec<_> = of_first().map(|slash| slash.lock).collect();
        assert_eq!(locks, [LOCK, 0]);
        assert!(TrustLock::is_in_jail(&1));
        pass(100);
        assert_eq!(MockStake::slashed(1), LOCK + OF_STAKE);
    });
}

#[test]
fn a_graver_fault_is_not_taken_for_a_lesser_one_or_twice() {
    after(&[9, 9, 8], || {
        play_out(&[(1, 9), (3, 8)]);
        // Noted once, and nothing more is taken.
        let lost = slashes();
        assert_ok!(report(promised(3, 7), None));
        assert_noop!(report(promised(3, 7), None), ResultsError::AlreadyAtFault);
        assert_eq!(slashes(), lost);
        assert_eq!(faults(), [(3, FaultKind::WrongResult)]);
        assert_eq!(slashes()[0].finder, Some(1));
        assert_ne!(claim(8).trace_root, H256::zero());
    });
}
