//! Who stands by a wrong result is pursued, however its dispute ended and whenever it opens its seal.

use frame_support::{assert_noop, assert_ok};
use surety_dispute_game::bisection::Move;
use surety_pallet_test_kit::MockStake;
use surety_types::{
    task::RoundPhase,
    trust::{AuditState, FaultKind},
};

use super::{after, revealed_with};
use surety_pallet_integration_tests::*;

const STRANGER: AccountId = FIRST_STRANGER;
const FRIEND: AccountId = FIRST_STRANGER + 1;
/// Verifiers: one that has computed, and one that confirms what its provider says.
const HONEST: AccountId = FIRST_VERIFIER;
const CRONY: AccountId = FIRST_VERIFIER + 1;

/// A round whose providers have revealed these results, and these audits announced.
fn audited(audits: &[(AccountId, AccountId, u8)], results: &[u8], test: impl FnOnce()) {
    TestExt::new().round_of(results.len() as u32).execute_with(|| {
        // All of it: a seal over some is owed to nobody who has lost.
        audit_items(CLAIMED_UNITS);
        revealed_with(audits, results);
        test();
    });
}

/// The same, and everybody has opened its seal.
fn opened(audits: &[(AccountId, AccountId, u8)], results: &[u8], test: impl FnOnce()) {
    audited(audits, results, || {
        for (verifier, provider, result) in audits {
            assert_ok!(reveal_audit(*verifier, *provider, *result));
        }
        test();
    });
}

/// Gives up, for whom the account plays.
fn concede(account: AccountId, dispute: u32) {
    assert_ok!(play(account, dispute, Move::Concede));
}

/// Whose turn it is in the first dispute gives up.
fn next_concedes() {
    let (id, _) = disputes()[0];
    concede(player_of(&to_move(id).unwrap()), id);
}

/// When challenges end.
fn until() -> BlockNumber {
    match round().unwrap().phase {
        RoundPhase::Challengeable { until, .. } => until,
        other => panic!("{other:?}"),
    }
}

const CONFIRMED: FaultKind = FaultKind::ConfirmedWrong;
const LOST: FaultKind = FaultKind::LostDispute;

#[test]
fn who_confirmed_a_lie_is_pursued_when_the_liar_concedes() {
    opened(&[(CRONY, 1, 8)], &[8], || {
        assert_ok!(challenge(STRANGER, 1));
        concede(agent_of(1), 0);
        assert_eq!(pairs(), [(CRONY, STRANGER)]);
        play_out(&[(CRONY, 8), (STRANGER, 9)]);
        assert_eq!(faults(), [(1, LOST), (CRONY, CONFIRMED)]);
        assert_eq!(money(STRANGER), MONEY);
        pass(CHALLENGE_WINDOW + DEFERRAL + 2);
        assert_eq!(MockStake::slashed(CRONY), AUDIT_BOND);
    });
}

#[test]
fn who_confirmed_a_lie_is_pursued_when_the_liar_lets_its_time_run_out() {
    opened(&[(CRONY, 1, 8)], &[8], || {
        assert_ok!(challenge(STRANGER, 1));
        pass(u64::from(CLOCK) + 1);
        assert_eq!(faults(), [(1, LOST)]);
        assert_eq!(pairs(), [(CRONY, STRANGER)]);
        play_out(&[(CRONY, 8), (STRANGER, 9)]);
        assert_eq!(faults(), [(1, LOST), (CRONY, CONFIRMED)]);
    });
}

#[test]
fn who_confirmed_a_lie_is_pursued_when_the_liar_loses_as_a_challenger() {
    opened(
        &[(CRONY, 2, 8), (CRONY + 1, 3, 8), (HONEST, 3, 9)],
        &[9, 8, 8],
        || {
            // The honest one is alone and defends.
            assert!(pairs().contains(&(1, 2)));
            let results = [(1, 9), (2, 8), (3, 8), (CRONY, 8), (CRONY + 1, 8), (HONEST, 9)];
            play_out(&results);
            let mut found = faults();
            found.sort_unstable_by_key(|(offender, _)| *offender);
            let third = (3, FaultKind::WrongResult);
            let expected = [(2, LOST), third, (CRONY, CONFIRMED), (CRONY + 1, CONFIRMED)];
            assert_eq!(found, expected);
            assert_eq!(MockStake::locked(1), LOCK);
            pass(100);
            assert_eq!(decision(), Some(agreed(9, &[1], &[2, 3], &[])));
        },
    );
}

#[test]
fn no_provider_is_made_to_play_confirmers_and_it_can_challenge_them() {
    opened(&[(CRONY, 2, 8)], &[9, 8], || {
        play_out(&[(1, 9), (2, 8)]);
        assert_eq!(faults(), [(2, LOST)]);
        assert_eq!(pairs(), []);
        assert_ok!(challenge(FRIEND, 2));
        assert_eq!(pairs(), [(CRONY, FRIEND)]);
        play_out(&[(CRONY, 8), (FRIEND, 9)]);
        assert_eq!(faults(), [(2, LOST), (CRONY, CONFIRMED)]);
        assert_eq!(MockStake::locked(1), LOCK);
    });
}

#[test]
fn an_honest_confirmer_of_a_provider_that_conceded_to_a_friend_wins_its_bond_and_the_challengers() {
    // The provider is right, and gives up to harm whoever says so.
    opened(&[(HONEST, 1, 9)], &[9], || {
        assert_ok!(challenge(FRIEND, 1));
        let issued = Balances::total_issuance();
        concede(agent_of(1), 0);
        assert_eq!(pairs(), [(HONEST, FRIEND)]);
        play_out(&[(HONEST, 9), (FRIEND, 7)]);
        assert_eq!(faults(), [(1, LOST)]);
        assert_eq!(audit_state(HONEST, 1), Some(AuditState::Confirmed));
        assert_eq!(money(HONEST), CHALLENGE_BOND / 2);
        assert_eq!(money(FRIEND), MONEY - CHALLENGE_BOND);
        assert_eq!(Balances::total_issuance(), issued - CHALLENGE_BOND / 2);
        pass(CHALLENGE_WINDOW + DEFERRAL + 10);
        assert_eq!((MockStake::slashed(HONEST), MockStake::locked(HONEST)), (0, 0));
    });
}

#[test]
fn a_friend_that_won_and_concedes_to_the_confirmers_takes_nothing_from_honest_auditors() {
    opened(&[(CRONY, 1, 8), (HONEST, 1, 9)], &[8], || {
        // The honest auditor plays already when the friend comes.
        assert_eq!(pairs(), [(1, HONEST)]);
        assert_ok!(challenge(FRIEND, 1));
        concede(agent_of(1), 1);
        // The auditor's game is over, and it waits for the friend's.
        pass(1);
        assert_eq!(pairs(), [(CRONY, FRIEND)]);
        assert_eq!(audit_state(HONEST, 1), Some(AuditState::Differs));
        // It gives up against the crony as well.
        while pairs().contains(&(CRONY, FRIEND)) {
            let (id, _) = *disputes()
                .iter()
                .find(|(_, one)| *one.challenger.account() == FRIEND)
                .unwrap();
            if to_move(id).is_some_and(|party| *party.account() == FRIEND) {
                concede(FRIEND, id);
            } else {
                assert_ok!(play(agent_of(CRONY), id, next_move(id, 8)));
            }
        }
        assert!(money(FRIEND) < MONEY);
        for _ in 0..10 {
            play_out(&[(HONEST, 9), (CRONY, 8)]);
            pass(1);
        }
        pass(100);
        let slashed = [1, CRONY, HONEST].map(MockStake::slashed);
        assert_eq!(slashed, [LOCK + (BOND - LOCK) / 20, AUDIT_BOND, 0]);
    });
}

#[test]
fn a_confirmer_that_opens_when_the_dispute_is_over_is_played_by_the_auditor_that_differs() {
    audited(&[(HONEST, 1, 9), (CRONY, 1, 8)], &[8], || {
        assert_ok!(reveal_audit(HONEST, 1, 9));
        concede(agent_of(1), 0);
        assert_eq!(pairs(), []);
        // It waits for seals that may still say the same.
        assert_eq!(MockStake::locked(HONEST), AUDIT_BOND);
        pass(CHALLENGE_WINDOW + 2);
        assert_ok!(reveal_audit(CRONY, 1, 8));
        assert_eq!(pairs(), [(CRONY, HONEST)]);
        play_out(&[(CRONY, 8), (HONEST, 9)]);
        assert_eq!(faults(), [(1, LOST), (CRONY, CONFIRMED)]);
        assert_eq!(
            (MockStake::locked(HONEST), audit_state(HONEST, 1)),
            (0, Some(AuditState::Over))
        );
    });
}

#[test]
fn a_confirmer_plays_one_auditor_after_the_other() {
    opened(&[(CRONY, 1, 9), (HONEST, 1, 7), (HONEST + 2, 1, 6)], &[9], || {
        // Here the confirmer is right, and so was the provider.
        assert_eq!(pairs(), [(1, HONEST), (1, HONEST + 2)]);
        concede(agent_of(1), 0);
        pass(1);
        assert_eq!(pairs(), [(CRONY, HONEST)]);
        play_out(&[(CRONY, 9), (HONEST, 7), (HONEST + 2, 6)]);
        let lost = FaultKind::FalseAudit;
        assert_eq!(faults(), [(1, LOST), (HONEST, lost), (HONEST + 2, lost)]);
        assert_eq!(audit_state(CRONY, 1), Some(AuditState::Confirmed));
    });
}

#[test]
fn an_auditor_that_differs_waits_no_longer_than_seals_can_be_opened() {
    audited(&[(HONEST, 1, 9), (CRONY, 1, 8)], &[8], || {
        assert_ok!(reveal_audit(HONEST, 1, 9));
        concede(agent_of(1), 0);
        pass(OPENING_WINDOW);
        assert_eq!(MockStake::locked(HONEST), AUDIT_BOND);
        pass(3);
        assert_eq!(faults(), [(CRONY, FaultKind::AuditNoShow)]);
        assert_eq!(MockStake::locked(HONEST), 0);
    });
}

#[test]
fn anybody_can_challenge_a_confirmer_that_opens_when_its_provider_has_lost() {
    audited(&[(CRONY, 1, 8)], &[8], || {
        assert_ok!(challenge(STRANGER, 1));
        play_out(&[(1, 8), (STRANGER, 9)]);
        assert_eq!((pairs(), money(STRANGER)), (vec![], MONEY));
        assert_noop!(challenge(STRANGER, 1), DisputesError::NotDisputable);
        // As late as it can.
        let last = round().unwrap().openings_until.unwrap();
        pass(last - System::block_number());
        assert_noop!(challenge(STRANGER, 1), ResultsError::WrongPhase);
        assert_ok!(reveal_audit(CRONY, 1, 8));
        assert_eq!(until(), last + CHALLENGE_WINDOW);
        pass(CHALLENGE_WINDOW);
        assert_ok!(challenge(STRANGER, 1));
        assert_eq!(pairs(), [(CRONY, STRANGER)]);
        play_out(&[(CRONY, 8), (STRANGER, 9)]);
        assert_eq!(faults(), [(CRONY, CONFIRMED)]);
        assert_eq!(money(STRANGER), MONEY);
        pass(2);
        assert_eq!(phase(), None);
    });
}

#[test]
fn a_late_confirmer_that_nobody_challenges_has_its_bond_back_when_the_window_is_over() {
    audited(&[(CRONY, 1, 9)], &[9], || {
        assert_ok!(challenge(FRIEND, 1));
        concede(agent_of(1), 0);
        pass(OPENING_WINDOW - 1);
        assert_ok!(reveal_audit(CRONY, 1, 9));
        pass(CHALLENGE_WINDOW);
        assert_eq!(MockStake::locked(CRONY), AUDIT_BOND);
        pass(2);
        assert_eq!((phase(), MockStake::locked(CRONY)), (None, 0));
    });
}

#[test]
fn the_window_for_confirmers_opens_when_their_provider_has_lost() {
    opened(&[(CRONY, 1, 8)], &[8], || {
        pass(CHALLENGE_WINDOW - 1);
        assert_ok!(challenge(FRIEND, 1));
        pass(1);
        concede(agent_of(1), 0);
        assert_eq!(until(), System::block_number() + CHALLENGE_WINDOW);
        // The friend gives up against the crony, in whose place it was the only one.
        assert_ok!(play(agent_of(CRONY), 1, next_move(1, 8)));
        concede(FRIEND, 1);
        assert_ok!(challenge(STRANGER, 1));
        play_out(&[(CRONY, 8), (STRANGER, 9)]);
        assert_eq!(faults(), [(1, LOST), (CRONY, CONFIRMED)]);
    });
}

#[test]
fn nobody_who_confirmed_is_asked_while_a_provider_answers_for_the_same() {
    opened(&[(HONEST, 1, 9)], &[9, 9], || {
        assert_ok!(challenge(FRIEND, 1));
        concede(agent_of(1), 0);
        assert_eq!(pairs(), [(2, FRIEND)]);
        play_out(&[(2, 9), (FRIEND, 7)]);
        assert_eq!((pairs(), faults()), (vec![], vec![(1, LOST)]));
    });
}

#[test]
fn an_auditor_that_differs_goes_on_though_its_provider_conceded_to_a_friend_before_it_opened() {
    audited(&[(HONEST, 1, 9)], &[8, 8], || {
        assert_ok!(challenge(FRIEND, 1));
        next_concedes();
        assert_eq!(pairs(), [(2, FRIEND)]);
        assert_ok!(play(agent_of(2), 1, next_move(1, 8)));
        next_concedes();
        assert_ok!(reveal_audit(HONEST, 1, 9));
        assert_eq!(pairs(), [(2, HONEST)]);
        play_out(&[(2, 8), (HONEST, 9)]);
        assert_eq!(faults(), [(1, LOST), (2, FaultKind::WrongResult)]);
        assert_eq!(MockStake::locked(HONEST), 0);
    });
}

#[test]
fn who_confirmed_what_a_provider_withholds_answers_for_it_to_who_differs() {
    opened(&[(HONEST, 1, 9), (CRONY, 1, 8)], &[8], || {
        // It would rather have withheld than lied.
        endow_demanders();
        assert_ok!(demand(CLIENT, 1, of_output([0])));
        for _ in 0..=SUPPLY_WINDOW {
            if pairs() == [(1, HONEST)] && to_move(0).is_some_and(|party| *party.account() == HONEST) {
                play_out(&[(HONEST, 9)]);
            }
            pass(1);
        }
        assert_eq!(faults()[0].0, 1);
        play_out(&[(CRONY, 8), (HONEST, 9)]);
        assert_eq!(faults().last(), Some(&(CRONY, CONFIRMED)));
    });
}

#[test]
fn a_confirmer_that_nobody_could_decide_about_is_released_and_takes_nobodys_pay() {
    const WRONG: u8 = TOO_LARGE + 1;
    opened(&[(CRONY, 2, WRONG), (HONEST, 2, 9)], &[9, WRONG, 9], || {
        // The liar gives up, its confirmer does not.
        concede(agent_of(2), 0);
        pass(1);
        assert_eq!(pairs(), [(CRONY, HONEST)]);
        play_out(&[(CRONY, WRONG), (HONEST, 9)]);
        pass(DECISION_WINDOW + 1);
        assert_eq!((pairs(), faults()), (vec![], vec![(2, LOST)]));
        assert_eq!(MockStake::locked(CRONY), 0);
        pass(CHALLENGE_WINDOW + 2);
        assert_eq!(decision(), Some(agreed(9, &[1, 3], &[2], &[])));
    });
}

#[test]
fn the_first_that_stands_by_a_result_is_challenged_whoever_is_named() {
    after(&[8, 8], || {
        assert_ok!(challenge(FRIEND, 1));
        concede(agent_of(1), 0);
        assert_eq!(pairs(), [(2, FRIEND)]);
        assert_ok!(challenge(STRANGER, 1));
        assert_eq!(pairs(), [(2, FRIEND), (2, STRANGER)]);
    });
}
