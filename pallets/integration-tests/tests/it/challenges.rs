//! Anybody can challenge a result, and pays for being wrong.

use frame_support::{assert_noop, assert_ok};
use sp_runtime::TokenError;
use surety_pallet_test_kit::MockStake;
use surety_types::{
    limits::CHALLENGES_MAX,
    trust::{AuditState, FaultKind},
};

use super::{after, revealed_with};
use surety_pallet_integration_tests::*;

const STRANGER: AccountId = FIRST_STRANGER;

#[test]
fn a_challenge_puts_its_bond_on_hold_and_opens_a_dispute() {
    after(&[9, 9, 9], || {
        assert_ok!(challenge(STRANGER, 2));
        assert_eq!(pairs(), [(2, STRANGER)]);
        assert_eq!(money(STRANGER), MONEY - CHALLENGE_BOND);
        assert_eq!(disputes()[0].1.bond, CHALLENGE_BOND);
    });
}

#[test]
fn a_false_challenge_pays_the_defender_and_is_burned() {
    after(&[9, 9, 9], || {
        assert_ok!(challenge(STRANGER, 2));
        let (before, issued) = (money(2), Balances::total_issuance());
        events();
        play_out(&[(2, 9), (STRANGER, 7)]);
        assert_eq!(money(2), before + CHALLENGE_BOND / 2);
        assert_eq!(Balances::total_issuance(), issued - CHALLENGE_BOND / 2);
        assert_eq!(money(STRANGER), MONEY - CHALLENGE_BOND);
        let forfeited = RuntimeEvent::Disputes(DisputesEvent::BondForfeited {
            dispute: 0,
            challenger: STRANGER,
            defender: 2,
            awarded: CHALLENGE_BOND / 2,
            burned: CHALLENGE_BOND / 2,
        });
        assert!(events().contains(&forfeited));
        assert_eq!(faults(), []);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1, 2, 3], &[], &[])));
    });
}

#[test]
fn colluding_providers_are_convicted_one_after_the_other_for_one_bond() {
    after(&[8, 8, 8], || {
        assert_ok!(challenge(STRANGER, 2));
        play_out(&[(1, 8), (2, 8), (3, 8), (STRANGER, 9)]);
        let wrong = FaultKind::WrongResult;
        assert_eq!(faults(), [(2, wrong), (1, wrong), (3, wrong)]);
        assert_eq!(money(STRANGER), MONEY);
        pass(CHALLENGE_WINDOW + 1);
        assert!(matches!(decision(), Some(surety_types::task::Verdict::Failed(_))));
        // 30 % of each lock and of 5 % of the other stake go to the finder; a part of the rest to the client.
        pass(DEFERRAL);
        assert!(MockStake::awarded(STRANGER) >= 3 * LOCK * 30 / 100);
        assert!(MockStake::awarded(900) >= 3 * LOCK * 20 / 100);
    });
}

#[test]
fn whoever_stands_by_a_claim_defends_it_for_itself() {
    // Stash 1 has the right result and loses on purpose; its accomplice cannot harm those who say the same.
    after(&[9, 9, 9], || {
        assert_ok!(challenge(STRANGER, 1));
        assert_ok!(play(
            agent_of(1),
            0,
            surety_dispute_game::bisection::Move::Concede
        ));
        assert_eq!(pairs(), [(2, STRANGER)]);
        play_out(&[(2, 9), (3, 9), (STRANGER, 7)]);
        assert_eq!(faults(), [(1, FaultKind::LostDispute)]);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[2, 3], &[1], &[])));
    });
}

#[test]
fn an_auditor_that_confirmed_a_wrong_result_cannot_defend_it() {
    let lazy = FIRST_VERIFIER;
    TestExt::new().round_of(1).execute_with(|| {
        revealed_with(&[(lazy, 1, 8)], &[8]);
        assert_ok!(reveal_audit(lazy, 1, 8));
        assert_ok!(challenge(STRANGER, 1));
        play_out(&[(1, 8), (STRANGER, 9)]);
        // The claim was judged wrong, so the one who confirmed it is asked.
        assert_eq!(pairs(), [(lazy, STRANGER)]);
        pass(u64::from(CLOCK) + 1);
        assert_eq!(
            faults(),
            [(1, FaultKind::WrongResult), (lazy, FaultKind::ConfirmedWrong)]
        );
        assert_eq!(money(STRANGER), MONEY);
        pass(DEFERRAL + 1);
        assert_eq!(MockStake::slashed(lazy), AUDIT_BOND);
    });
}

#[test]
fn an_auditor_that_confirmed_a_right_result_defends_it_against_a_saboteur() {
    let honest = FIRST_VERIFIER;
    TestExt::new().round_of(1).execute_with(|| {
        revealed_with(&[(honest, 1, 9)], &[9]);
        assert_ok!(reveal_audit(honest, 1, 9));
        assert_ok!(challenge(STRANGER, 1));
        // Provider and challenger collude: below a leaf the provider shows steps that are not those of the
        // trace.
        let steal = |account| if account == STRANGER { 9 } else { 8 };
        while let Some(party) = to_move(0) {
            let account = *party.account();
            let played = sabotage(0, steal(account));
            assert_ok!(play(player_of(&party), 0, played));
        }
        assert_eq!(faults(), [(1, FaultKind::WrongResult)]);
        assert_eq!(pairs(), [(honest, STRANGER)]);
        play_out(&[(honest, 9), (STRANGER, 7)]);
        assert_eq!(faults(), [(1, FaultKind::WrongResult)]);
        assert_eq!(audit_state(honest, 1), Some(AuditState::Confirmed));
        assert!(money(STRANGER) < MONEY);
        pass(CHALLENGE_WINDOW + DEFERRAL + 2);
        assert_eq!((MockStake::slashed(honest), MockStake::locked(honest)), (0, 0));
    });
}

#[test]
fn every_challenge_of_a_round_is_dearer() {
    after(&[9], || {
        for number in 1..=3 {
            let stranger = STRANGER + number - 1;
            assert_ok!(challenge(stranger, 1));
            assert_eq!(money(stranger), MONEY - CHALLENGE_BOND * Balance::from(number));
        }
    });
}

#[test]
fn the_bond_covers_twice_what_defending_costs() {
    after(&[9], || {
        let round = round().unwrap();
        assert_eq!(Disputes::challenge_bond(&round, 1), 20);
        assert_eq!(Disputes::challenge_bond(&round, PRICE), CHALLENGE_BOND);
    });
}

#[test]
fn a_task_takes_so_many_challenges_and_no_more() {
    after(&[9], || {
        for number in 0..AccountId::from(CHALLENGES_MAX) {
            assert_ok!(challenge(STRANGER + number, 1));
        }
        assert_noop!(challenge(STRANGER + 19, 1), DisputesError::TooManyDisputes);
    });
}

#[test]
fn what_cannot_be_challenged_is_refused() {
    TestExt::new().round_of(2).execute_with(|| {
        assert_noop!(challenge(STRANGER, 1), ResultsError::WrongPhase);
        all_commit(&[(1, 9), (2, 9)]);
        pass(AUDIT_WINDOW + 1);
        assert_noop!(challenge(STRANGER, 1), ResultsError::WrongPhase);
        all_reveal(&[(1, 9), (2, 9)]);
        assert_noop!(challenge(STRANGER, 3), ResultsError::NotMember);
        let penniless = challenge(990, 1);
        assert_noop!(penniless, TokenError::FundsUnavailable);
        pass_unattended(CHALLENGE_WINDOW + 1);
        assert_noop!(challenge(STRANGER, 1), ResultsError::WrongPhase);
    });
    TestExt::new().execute_with(|| {
        assert_noop!(challenge(STRANGER, 1), ResultsError::UnknownRound);
    });
}

#[test]
fn whoever_was_convicted_cannot_be_challenged_again() {
    after(&[8, 8], || {
        assert_ok!(challenge(STRANGER, 1));
        play_out(&[(1, 8), (2, 8), (STRANGER, 9)]);
        assert_noop!(challenge(STRANGER, 1), DisputesError::NotDisputable);
    });
}
