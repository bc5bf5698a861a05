//! A challenger that has not got the claimed output asks for it, and its opponent shows it or loses.

use frame_support::{assert_noop, assert_ok, traits::fungible::Mutate};
use surety_dispute_game::bisection::{Blob, Missing, Move};
use surety_pallet_test_kit::MockStake;
use surety_proofs::{PART_BYTES, PartOpening, content_hash};
use surety_types::{task::Verdict, trust::FaultKind};

use super::{after, revealed_with};
use surety_pallet_integration_tests::*;

const STRANGER: AccountId = FIRST_STRANGER;
const AUDITOR: AccountId = FIRST_VERIFIER;
/// The toy's output is three segments, in one part.
const PRICE_OF_ALL: Balance = 3 * SUPPLY_PRICE;

fn part(result: u8) -> Move {
    Move::Supply(PartOpening::new(&output(result), 0).unwrap())
}

/// The defender posts, and the challenger asks for the output.
fn asked(dispute: u32, defender: (AccountId, u8), challenger: AccountId) {
    assert_ok!(play(defender.0, dispute, next_move(dispute, defender.1)));
    assert_ok!(play(challenger, dispute, Move::Ask(Missing::Output)));
}

#[test]
fn a_defender_that_shows_nothing_loses_by_its_own_time() {
    after(&[8], || {
        assert_ok!(challenge(STRANGER, 1));
        asked(0, (agent_of(1), 8), STRANGER);
        let held = CHALLENGE_BOND + COMMITTEE_POT + PRICE_OF_ALL;
        assert_eq!(money(STRANGER), MONEY - held);
        pass(u64::from(CLOCK) + 1);
        assert_eq!(faults(), [(1, FaultKind::LostDispute)]);
        assert_eq!(money(STRANGER), MONEY, "the price is back with the bond");
        pass(CHALLENGE_WINDOW + 1);
        assert!(matches!(decision(), Some(Verdict::Failed(_))));
    });
}

#[test]
fn an_auditor_without_the_output_is_not_beaten_by_a_defender_that_withholds_it() {
    TestExt::new().round_of(1).execute_with(|| {
        revealed_with(&[(AUDITOR, 1, 9)], &[8]);
        assert_ok!(Balances::mint_into(&agent_of(AUDITOR), MONEY));
        assert_ok!(reveal_audit(AUDITOR, 1, 9));
        asked(0, (agent_of(1), 8), agent_of(AUDITOR));
        pass(u64::from(CLOCK) + 1);
        assert_eq!(faults(), [(1, FaultKind::LostDispute)]);
        assert_eq!(money(agent_of(AUDITOR)), MONEY);
        pass(100);
        assert_eq!(MockStake::locked(AUDITOR), 0, "its bond is free");
    });
}

#[test]
fn what_is_shown_can_be_read_by_all_while_the_round_lasts() {
    after(&[8, 8], || {
        assert_ok!(challenge(STRANGER, 1));
        asked(0, (agent_of(1), 8), STRANGER);
        // Nothing but the next part can be played, and by nobody else.
        assert_noop!(play(STRANGER, 0, Move::Name(1)), DisputesError::NotNow);
        assert_noop!(play(agent_of(1), 0, part(7)), DisputesError::WrongMove);
        assert_noop!(play(STRANGER, 0, part(8)), DisputesError::NotNow);
        assert_ok!(play(agent_of(1), 0, part(8)));
        assert_eq!(Results::shown(TASK, claim(8).output), Some(output(8)));
        let blob = Blob {
            content: claim(8).output,
            bytes: output(8).len() as u32,
        };
        assert!(Results::is_shown(TASK, &blob));
        // It goes on, and wins against both.
        assert_eq!(to_move(0).map(|party| player_of(&party)), Some(STRANGER));
        play_out(&[(1, 8), (STRANGER, 9)]);
        assert_eq!(pairs(), [(2, STRANGER)]);
        assert_ok!(play(agent_of(2), 1, next_move(1, 8)));
        // To ask for it again costs nothing, and the other side nothing.
        assert_ok!(play(STRANGER, 1, Move::Ask(Missing::Output)));
        assert_eq!(money(STRANGER), MONEY - CHALLENGE_BOND - COMMITTEE_POT);
        assert_eq!(to_move(1).map(|party| player_of(&party)), Some(STRANGER));
        play_out(&[(2, 8), (STRANGER, 9)]);
        assert_eq!(faults().len(), 2);
        assert_eq!(money(STRANGER), MONEY);
        pass(CHALLENGE_WINDOW + 1);
        assert!(round().is_none());
        assert_eq!(Results::shown(TASK, claim(8).output), None);
    });
}

#[test]
fn who_asks_and_loses_pays_the_defender_for_showing() {
    after(&[9], || {
        assert_ok!(challenge(STRANGER, 1));
        let before = money(1);
        asked(0, (agent_of(1), 9), STRANGER);
        assert_noop!(
            play(STRANGER, 0, Move::Ask(Missing::Output)),
            DisputesError::NotNow
        );
        events();
        play_out(&[(1, 9), (STRANGER, 7)]);
        assert_eq!(money(1), before + CHALLENGE_BOND / 2 + PRICE_OF_ALL);
        assert_eq!(money(STRANGER), MONEY - CHALLENGE_BOND - PRICE_OF_ALL);
        let settled = RuntimeEvent::Disputes(DisputesEvent::ShowingSettled {
            dispute: 0,
            by: STRANGER,
            paid: PRICE_OF_ALL,
            returned: 0,
        });
        assert!(events().contains(&settled));
        assert_eq!(faults(), []);
    });
}

#[test]
fn a_challenger_that_asks_and_then_concedes_pays_only_for_what_was_shown() {
    after(&[9], || {
        assert_ok!(challenge(STRANGER, 1));
        let before = money(1);
        asked(0, (agent_of(1), 9), STRANGER);
        assert_ok!(play(STRANGER, 0, Move::Concede));
        assert_eq!(money(1), before + CHALLENGE_BOND / 2);
        assert_eq!(money(STRANGER), MONEY - CHALLENGE_BOND);
    });
}

#[test]
fn each_side_bears_half_of_a_showing_in_a_dispute_that_nobody_decides() {
    after(&[TOO_LARGE], || {
        assert_ok!(challenge(STRANGER, 1));
        let before = money(1);
        asked(0, (agent_of(1), TOO_LARGE), STRANGER);
        assert_ok!(play(agent_of(1), 0, part(TOO_LARGE)));
        play_out(&[(1, TOO_LARGE), (STRANGER, 9)]);
        assert!(disputes()[0].1.referred_at.is_some());
        pass(200);
        assert_eq!(disputes(), []);
        assert_eq!(money(1), before + PRICE_OF_ALL / 2);
        assert_eq!(money(STRANGER), MONEY - PRICE_OF_ALL / 2);
    });
}

/// Both sides play until the defender is to show what a committee needs.
fn play_to_evidence() {
    while to_move(0).is_some() && next_move(0, TOO_LARGE) != part(TOO_LARGE) {
        assert!(play_round(&[(1, TOO_LARGE), (STRANGER, 9)]));
    }
}

/// Stash 1 is wrong in what no block can compute. It has served its challenger, which asks for nothing, and
/// they come to the cell.
fn served_alone(test: impl FnOnce()) {
    after(&[TOO_LARGE], || {
        assert_ok!(challenge(STRANGER, 1));
        play_to_evidence();
        test();
    });
}

#[test]
fn a_liar_cannot_serve_its_challenger_and_not_the_committee() {
    served_alone(|| {
        assert_eq!(
            (committee(), Results::shown(TASK, claim(TOO_LARGE).output)),
            (None, None)
        );
        assert_eq!(to_move(0).map(|party| player_of(&party)), Some(agent_of(1)));
        assert_noop!(play(agent_of(1), 0, part(7)), DisputesError::WrongMove);
        assert_noop!(play(STRANGER, 0, part(TOO_LARGE)), DisputesError::NotNow);
        assert_ok!(play(agent_of(1), 0, part(TOO_LARGE)));
        assert!(sitting().is_some() && disputes()[0].1.referred_at.is_some());
        let shown = Results::shown(TASK, claim(TOO_LARGE).output);
        assert_eq!(shown, Some(output(TOO_LARGE)));
        ballot(&votes(7, |_| other_value()));
        assert_eq!(faults(), [(1, FaultKind::WrongResult)]);
        pass(100);
        assert_eq!(money(STRANGER), MONEY);
    });
}

#[test]
fn stake_that_comes_while_a_committee_waits_for_its_evidence_has_no_vote() {
    after(&[TOO_LARGE], || {
        assert_ok!(challenge(STRANGER, 1));
        assert_ok!(play(agent_of(1), 0, next_move(0, TOO_LARGE)));
        pass(3);
        play_to_evidence();
        pass(3);
        assert_ok!(play(agent_of(1), 0, part(TOO_LARGE)));
        // Old enough for the committee, and a block younger than the dispute.
        let late = FIRST_VERIFIER + 7;
        MockStake::settle(late, SEASONING);
        assert_noop!(join(late, claimed()), DisputesError::Unsettled);
        MockStake::settle(late, SEASONING + 1);
        assert_ok!(join(late, claimed()));
    });
}

#[test]
fn a_liar_that_shows_a_committee_nothing_loses_by_its_own_time() {
    served_alone(|| {
        pass(u64::from(CLOCK) + 1);
        assert_eq!(
            (faults(), money(STRANGER)),
            (vec![(1, FaultKind::LostDispute)], MONEY)
        );
    });
}

#[test]
fn what_was_shown_before_a_committee_is_not_shown_again() {
    after(&[TOO_LARGE, TOO_LARGE], || {
        assert_ok!(challenge(STRANGER, 1));
        assert_ok!(challenge(STRANGER + 1, 1));
        asked(0, (agent_of(1), TOO_LARGE), STRANGER);
        let supply = |number| next_move(number, TOO_LARGE) == part(TOO_LARGE);
        assert!(supply(0));
        assert_ok!(play(agent_of(1), 0, part(TOO_LARGE)));
        while to_move(0).is_some() || to_move(1).is_some() {
            assert!(![0, 1].into_iter().any(supply));
            assert!(play_round(&[(1, TOO_LARGE), (STRANGER, 9), (STRANGER + 1, 9)]));
        }
        assert_eq!(Committees::<Test>::iter().count(), 2);
    });
}

#[test]
fn whose_side_has_no_money_cannot_ask() {
    TestExt::new().round_of(2).execute_with(|| {
        revealed_with(&[], &[9, 8]);
        let (id, dispute) = disputes().remove(0);
        let (defender, challenger) = (player_of(&dispute.defender), player_of(&dispute.challenger));
        let result = if defender == agent_of(1) { 9 } else { 8 };
        assert_ok!(play(defender, id, next_move(id, result)));
        assert!(play(challenger, id, Move::Ask(Missing::Output)).is_err());
        // Its agent's would do, and its stash's does.
        let stash = *dispute.challenger.account();
        assert_ok!(Balances::mint_into(&stash, MONEY));
        let before = money(stash);
        assert_ok!(play(challenger, id, Move::Ask(Missing::Output)));
        assert!(money(stash) < before);
    });
}

#[test]
fn what_was_shown_of_another_length_under_the_same_hash_shows_nothing() {
    after(&[8, 8], || {
        let long = vec![7; PART_BYTES as usize + 1];
        let blob = |bytes| Blob {
            content: content_hash(&long),
            bytes,
        };
        let whole = blob(long.len() as u32);
        let part = |place| PartOpening::new(&long, place).unwrap();
        Results::keep_part(TASK, &whole, part(0));
        // Who says that it is one part long has shown nothing of it.
        assert!(!Results::is_shown(TASK, &blob(PART_BYTES)));
        assert_eq!(Results::shown(TASK, whole.content), None);
        Results::keep_part(TASK, &whole, part(1));
        assert!(Results::is_shown(TASK, &whole));
        assert_eq!(Results::shown(TASK, whole.content), Some(long.clone()));
    });
}
