//! Anybody can challenge a result, and pays for being wrong.

use frame_support::{assert_noop, assert_ok};
use proptest::{collection::vec, prelude::*};
use sp_runtime::TokenError;
use surety_dispute_game::bisection::{Move, Side};
use surety_pallet_test_kit::MockStake;
use surety_types::{
    limits::{AUDITS_PER_MEMBER_MAX, CHALLENGES_MAX, DISPUTES_MAX},
    task::{Assignment, PerMember, Security},
    traits::TaskTrust,
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
        let held = CHALLENGE_BOND + COMMITTEE_POT;
        assert_eq!(money(STRANGER), MONEY - held);
        assert_eq!(disputes()[0].1.bond, held);
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
        assert_ok!(play(agent_of(1), 0, Move::Concede));
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
fn the_bond_is_five_prices_or_twice_the_cost_of_defending_or_follows_the_lock() {
    let bond_at = |price, value_at_risk| {
        TestExt::new().build().execute_with(|| {
            for stash in 1..=2 {
                MockStake::bond(
                    stash,
                    agent_of(stash),
                    surety_types::stake::Role::Provider,
                    1_000_000,
                );
            }
            let security = Security {
                value_at_risk,
                ..Security::default()
            };
            let assignments = PerMember::truncate_from(vec![
                Assignment { provider: 1, price },
                Assignment {
                    provider: 2,
                    price: 1,
                },
            ]);
            assert_ok!(Results::open(
                TASK,
                UNITS_MAX,
                security,
                surety_types::task::AuditTerms::default(),
                &assignments
            ));
            let round = round().unwrap();
            (
                Disputes::challenge_bond(TASK, &round, &claim(9)),
                round.members[0].lock,
            )
        })
    };
    // With a committee, whose members are each paid a planck's worth of work at least.
    assert_eq!(bond_at(1, 0).0, 20 + 150);
    // The dearest of the round counts, whoever is challenged.
    assert_eq!(bond_at(PRICE, 0), (CHALLENGE_BOND + COMMITTEE_POT, LOCK));
    let (bond, lock) = bond_at(PRICE, 30_000);
    let bond = bond - COMMITTEE_POT;
    assert!(lock > 8_000, "{lock}");
    // Half of it is burned: of all places as much as of the lock.
    let burned = bond - bond / 2;
    assert!(burned * Balance::from(CHALLENGES_MAX) >= lock / 2);
    assert_eq!(bond, lock.div_ceil(Balance::from(CHALLENGES_MAX)));
}

/// As many friends of stash 1 as there are places challenge it.
fn fill() {
    for place in 0..AccountId::from(CHALLENGES_MAX) {
        assert_ok!(challenge(STRANGER + place, 1));
    }
    assert_eq!(round().unwrap().challenges, CHALLENGES_MAX);
}

/// Who comes when all places are taken.
const LAST: AccountId = STRANGER + CHALLENGES_MAX as AccountId;

/// Has a friend give up, who does not play.
fn give_up(friend: AccountId) {
    let mut open = disputes().into_iter();
    let (id, dispute) = open
        .find(|(_, dispute)| *dispute.challenger.account() == friend)
        .unwrap();
    if dispute.game.to_move() == Some(Side::Defender) {
        assert_ok!(play(player_of(&dispute.defender), id, next_move(id, 8)));
    }
    assert_ok!(play(friend, id, Move::Concede));
}

fn until() -> BlockNumber {
    phase().unwrap().1
}

#[test]
fn a_task_takes_so_many_challenges_at_once_and_no_more() {
    after(&[8], || {
        fill();
        assert_noop!(challenge(LAST, 1), DisputesError::TooManyDisputes);
        give_up(STRANGER);
        assert_ok!(challenge(LAST, 1));
        assert_noop!(challenge(STRANGER, 1), DisputesError::TooManyDisputes);
    });
}

#[test]
fn disputes_of_others_leave_the_places_for_challenges_free() {
    TestExt::new().round_of(1).execute_with(|| {
        all_commit(&[(1, 8)]);
        let verifiers = 10_000..10_000 + AccountId::from(AUDITS_PER_MEMBER_MAX);
        for verifier in verifiers.clone() {
            MockStake::bond(
                verifier,
                agent_of(verifier),
                surety_types::stake::Role::Verifier,
                BOND,
            );
            assert_ok!(announce(verifier, 1, 9));
        }
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(1, 8)]);
        for verifier in verifiers.clone() {
            assert_ok!(reveal_audit(verifier, 1, 9));
        }
        assert_eq!(disputes().len() as u32, DISPUTES_MAX - CHALLENGES_MAX);
        fill();
        assert_eq!(disputes().len() as u32, DISPUTES_MAX);
    });
}

#[test]
fn who_finds_all_places_taken_when_the_window_ends_has_its_chance_when_one_is_free() {
    after(&[8], || {
        fill();
        pass(2);
        play_out(&[(1, 8)]);
        pass(CHALLENGE_WINDOW - 1);
        assert_noop!(challenge(LAST, 1), ResultsError::WrongPhase);
        give_up(STRANGER);
        assert_eq!(until(), System::block_number() + CHALLENGE_WINDOW);
        // The others let their time run out.
        pass(CHALLENGE_WINDOW);
        assert_ok!(challenge(LAST, 1));
        assert_eq!(round().unwrap().challenges, 1);
        play_out(&[(1, 8), (LAST, 9)]);
        assert_eq!(faults(), [(1, FaultKind::WrongResult)]);
        assert_eq!(money(LAST), MONEY);
        let friends = STRANGER..LAST;
        assert!(
            friends
                .clone()
                .all(|friend| money(friend) == MONEY - CHALLENGE_BOND)
        );
    });
}

#[test]
fn an_undecided_challenge_that_moves_the_window_on_costs_half_its_bond() {
    after(&[TOO_LARGE + 1], || {
        fill();
        let (issued, before) = (Balances::total_issuance(), until());
        let friends = STRANGER..LAST;
        let mut players: Vec<_> = friends.clone().map(|friend| (friend, 9)).collect();
        players.push((1, TOO_LARGE + 1));
        play_out(&players);
        pass(DECISION_WINDOW + 1);
        assert_eq!(disputes().len(), 0);
        assert!(until() > before);
        let left: Balance = friends.map(money).sum();
        let places = Balance::from(CHALLENGES_MAX);
        assert_eq!(left, places * MONEY - CHALLENGE_BOND / 2);
        assert_eq!(Balances::total_issuance(), issued - CHALLENGE_BOND / 2);
    });
}

#[test]
fn an_undecided_challenge_beside_free_places_costs_nothing() {
    after(&[TOO_LARGE + 1], || {
        assert_ok!(challenge(STRANGER, 1));
        play_out(&[(1, TOO_LARGE + 1), (STRANGER, 9)]);
        pass(DECISION_WINDOW + 1);
        assert_eq!((disputes().len(), money(STRANGER)), (0, MONEY));
    });
}

#[test]
fn a_place_that_is_freed_while_others_are_free_moves_no_window() {
    after(&[9], || {
        assert_ok!(challenge(STRANGER, 1));
        let before = until();
        pass(1);
        assert_ok!(play(agent_of(1), 0, next_move(0, 9)));
        assert_ok!(play(STRANGER, 0, Move::Concede));
        assert_eq!((until(), round().unwrap().challenges), (before, 0));
    });
}

#[test]
fn no_account_takes_more_than_one_place_against_a_claim() {
    after(&[8, 8], || {
        assert_ok!(challenge(STRANGER, 1));
        let held = MONEY - money(STRANGER);
        // Whoever it names: it plays all that stand by the claim anyway.
        for provider in [1, 2] {
            assert_noop!(challenge(STRANGER, provider), DisputesError::AlreadyChallenging);
        }
        assert_eq!((round().unwrap().challenges, MONEY - money(STRANGER)), (1, held));
        assert_ok!(challenge(STRANGER + 1, 1));
        // It wins against both.
        play_out(&[(1, 8), (2, 8), (STRANGER, 9), (STRANGER + 1, 9)]);
        assert_eq!((faults().len(), money(STRANGER)), (2, MONEY));
    });
}

#[test]
fn who_is_done_with_a_claim_may_challenge_it_again_and_others_at_any_time() {
    after(&[8, 7], || {
        assert_ok!(challenge(STRANGER, 1));
        assert_ok!(challenge(STRANGER, 2));
        give_up(STRANGER);
        assert_ok!(challenge(STRANGER, 1));
        assert_noop!(challenge(STRANGER, 1), DisputesError::AlreadyChallenging);
        assert_noop!(challenge(STRANGER, 2), DisputesError::AlreadyChallenging);
    });
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig::with_cases(100)))]

    /// However strangers come and go: for each time that the window is moved on somebody has lost a bond, or
    /// the provider its lock, and the round ends.
    #[test]
    fn whoever_moves_the_window_on_has_lost_a_bond(
        steps in vec((0u8..8, 0..AccountId::from(CHALLENGES_MAX) + 4), 30..150),
    ) {
        after(&[9, 9], || {
            let issued = Balances::total_issuance();
            let mut moved = 0;
            events();
            let mut lost = 0;
            // All places are taken in the beginning, so that something is moved at all.
            fill();
            for (step, who) in steps {
                if round().is_none() {
                    break;
                }
                let (stranger, before) = (STRANGER + who, until());
                match step {
                    0..3 => _ = challenge(stranger, 1 + who % 2),
                    3..6 => {
                        let mut open = disputes().into_iter();
                        let found = open.find(|(_, dispute)| *dispute.challenger.account() == stranger);
                        if let Some((id, dispute)) = found {
                            if dispute.game.to_move() == Some(Side::Defender) {
                                let _ = play(player_of(&dispute.defender), id, next_move(id, 9));
                            }
                            let _ = play(stranger, id, Move::Concede);
                        }
                    }
                    6 => {
                        play_out(&[(1, 9), (2, 9)]);
                        pass(1);
                    }
                    _ => _ = play(agent_of(1 + who % 2), NextDisputeId::<Test>::get() - 1, Move::Concede),
                }
                check();
                lost += events().into_iter().filter(|event| matches!(
                    event,
                    RuntimeEvent::Disputes(DisputesEvent::BondForfeited { .. })
                        | RuntimeEvent::TrustLock(TrustLockEvent::SlashDeferred { .. })
                )).count();
                moved += usize::from(round().is_some() && until() > before);
                assert!(moved <= lost, "moved {moved} times for {lost} bonds");
            }
            let mut blocks = 0;
            while round().is_some() {
                play_out(&[(1, 9), (2, 9)]);
                pass(1);
                blocks += 1;
                assert!(blocks < 200, "a round that does not end");
            }
            // What is not on the accounts is burned.
            let burned = issued - Balances::total_issuance();
            let free: Balance = (STRANGER..=LAST_STRANGER).chain([1, 2]).map(money).sum();
            let before = MONEY * (LAST_STRANGER - STRANGER + 1) as Balance + 2;
            assert_eq!(free + burned, before);
        });
    }
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
