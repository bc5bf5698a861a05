//! Providers that contradict each other play until all that stand say the same.

use frame_support::{assert_noop, assert_ok};
use surety_dispute_game::bisection::{Move, Outcome, Reason, Side, State};
use surety_pallet_test_kit::{MockClock, MockStake};
use surety_types::{
    traits::TaskTrust,
    trust::{FaultKind, Party},
};

use super::after;
use surety_pallet_integration_tests::*;

fn advance(dispute: u32) -> frame_support::dispatch::DispatchResult {
    send_as(FIRST_STRANGER, DisputesCall::advance_dispute { dispute })
}

#[test]
fn equal_results_open_nothing() {
    after(&[9, 9, 9], || assert_eq!(pairs(), []));
}

#[test]
fn different_results_open_a_dispute_in_which_the_fewer_defend() {
    after(&[9, 9, 8], || {
        assert_eq!(pairs(), [(3, 1)]);
        let (id, dispute) = disputes().remove(0);
        assert_eq!(dispute.claim, claim(8));
        assert_eq!((dispute.opened_at, dispute.bond, dispute.moves), (7, 0, 0));
        let listed = round().unwrap().disputes;
        let seats = (listed[0].defender, listed[0].challenger);
        assert_eq!((listed[0].id, seats), (id, (Some(2), Some(0))));
    });
}

#[test]
fn as_many_pairs_as_possible_play_at_the_same_time() {
    after(&[9, 9, 9, 8, 8, 7], || assert_eq!(pairs().len(), 3));
}

#[test]
fn the_liar_is_found_cell_by_cell_and_loses_its_whole_lock() {
    after(&[9, 9, 8], || {
        events();
        play_out(&[(1, 9), (3, 8)]);
        assert_eq!(disputes(), []);
        assert_eq!(faults(), [(3, FaultKind::WrongResult)]);
        assert_eq!(slashes()[0].lock, LOCK);
        assert_eq!(slashes()[0].finder, Some(1));
        let events = events();
        let cell = events.iter().find_map(|event| match event {
            RuntimeEvent::Disputes(DisputesEvent::CellReached {
                cell,
                needs_committee: false,
                ..
            }) => Some(*cell),
            _ => None,
        });
        let cell = cell.unwrap();
        // The very cell that the toy alters for this result: in the first step, so that what follows need not
        // be asked.
        assert_eq!((cell.leaf, cell.step, cell.row, cell.cell), (1, 0, 0, 0));
        let ended = RuntimeEvent::Disputes(DisputesEvent::DisputeEnded {
            dispute: 0,
            task: TASK,
            outcome: Some(Outcome {
                winner: Side::Challenger,
                reason: Reason::Judged,
            }),
        });
        assert!(events.contains(&ended));
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1, 2], &[3], &[])));
    });
}

#[test]
fn a_challenger_that_is_wrong_loses_too() {
    after(&[9, 8, 8], || {
        // The honest one is alone and defends.
        assert_eq!(pairs(), [(1, 2)]);
        play_out(&[(1, 9), (2, 8), (3, 8)]);
        assert_eq!(
            faults(),
            [(2, FaultKind::LostDispute), (3, FaultKind::LostDispute)]
        );
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1], &[2, 3], &[])));
    });
}

#[test]
fn a_side_that_lets_its_time_run_out_loses() {
    after(&[9, 9, 8], || {
        assert_noop!(advance(0), DisputesError::NotDue);
        pass_unattended(u64::from(CLOCK));
        let late = play(agent_of(3), 0, next_move(0, 8));
        assert_noop!(late, DisputesError::NotNow);
        assert_ok!(advance(0));
        assert_eq!(faults(), [(3, FaultKind::LostDispute)]);
        assert_noop!(advance(0), DisputesError::UnknownDispute);
    });
}

#[test]
fn the_agenda_ends_what_nobody_plays() {
    after(&[9, 9, 8], || {
        assert_eq!(MockClock::last_wake(TASK), Some(7));
        pass(u64::from(CLOCK) + 1);
        assert_eq!(disputes(), []);
        assert_eq!(faults(), [(3, FaultKind::LostDispute)]);
    });
}

#[test]
fn a_side_pays_for_its_own_turns_only() {
    after(&[9, 9, 8], || {
        pass_unattended(2);
        assert_ok!(play(agent_of(3), 0, next_move(0, 8)));
        pass_unattended(1);
        assert_ok!(play(agent_of(1), 0, next_move(0, 9)));
        let clocks = DisputeStorage::<Test>::get(0).unwrap().game.clocks();
        assert_eq!((clocks.defender, clocks.challenger), (CLOCK - 2, CLOCK - 1));
    });
}

#[test]
fn nobodys_time_runs_while_nothing_becomes_final() {
    after(&[9, 9, 8], || {
        FinalityStoppedAt::set(Some(System::block_number()));
        pass(10 * u64::from(CLOCK));
        assert_eq!(pairs(), [(3, 1)]);
        FinalityStoppedAt::set(None);
        pass(u64::from(CLOCK) + 1);
        assert_eq!(pairs(), []);
    });
}

#[test]
fn finality_that_jumps_back_gives_no_time_and_takes_none() {
    after(&[9, 9, 8], || {
        FinalityStoppedAt::set(Some(1));
        assert_ok!(play(agent_of(3), 0, next_move(0, 8)));
        let dispute = DisputeStorage::<Test>::get(0).unwrap();
        assert_eq!(dispute.game.clocks().defender, CLOCK);
        assert_eq!(dispute.ticked_at, 7);
    });
}

#[test]
fn only_the_players_move_and_in_turn() {
    after(&[9, 9, 8], || {
        let post = next_move(0, 8);
        assert_noop!(play(agent_of(2), 0, post.clone()), DisputesError::NotPlayer);
        assert_noop!(play(3, 0, post.clone()), DisputesError::NotPlayer);
        assert_noop!(play(agent_of(1), 0, Move::Name(0)), DisputesError::NotNow);
        assert_noop!(play(agent_of(3), 0, Move::Name(0)), DisputesError::NotNow);
        assert_noop!(play(agent_of(3), 0, next_move(0, 7)), DisputesError::WrongMove);
        assert_noop!(play(agent_of(3), 9, post.clone()), DisputesError::UnknownDispute);
        events();
        assert_ok!(play(agent_of(3), 0, post));
        let played = RuntimeEvent::Disputes(DisputesEvent::MovePlayed {
            dispute: 0,
            side: Side::Defender,
            number: 1,
            next: Some(Side::Challenger),
        });
        assert_eq!(events(), [played]);
        assert_noop!(play(agent_of(1), 0, Move::Name(4)), DisputesError::WrongMove);
    });
}

#[test]
fn a_move_that_is_sent_twice_counts_once() {
    after(&[9, 9, 8], || {
        let again = |number, played| {
            send_as(
                agent_of(3),
                DisputesCall::play {
                    dispute: 0,
                    number,
                    played,
                },
            )
        };
        let post = next_move(0, 8);
        assert_ok!(again(0, post.clone()));
        assert_noop!(again(0, post.clone()), DisputesError::StaleMove);
        assert_ok!(play(agent_of(1), 0, next_move(0, 9)));
        assert_noop!(again(0, post), DisputesError::StaleMove);
    });
}

#[test]
fn an_opening_that_proves_nothing_is_refused_and_can_be_mended() {
    after(&[9, 9, 8], || {
        let results = [(1, 9), (3, 8)];
        while !matches!(
            DisputeStorage::<Test>::get(0).unwrap().game.state(),
            State::Opening { .. }
        ) {
            assert!(play_round(&results));
        }
        let empty = Move::Open(Default::default());
        assert_noop!(play(agent_of(3), 0, empty), DisputesError::Unproven);
        assert_ok!(play(agent_of(3), 0, next_move(0, 8)));
    });
}

#[test]
fn either_side_may_concede_at_any_time() {
    after(&[9, 9, 8], || {
        assert_ok!(play(agent_of(1), 0, Move::Concede));
        assert_eq!(faults(), [(1, FaultKind::LostDispute)]);
        // The other honest one goes on.
        assert_eq!(pairs(), [(2, 3)]);
    });
}

#[test]
fn whoever_gives_up_harms_nobody_who_says_the_same() {
    // A saboteur with the right result loses on purpose: only it is convicted.
    after(&[9, 9, 8], || {
        assert_ok!(play(agent_of(1), 0, Move::Concede));
        play_out(&[(2, 9), (3, 8)]);
        let at_fault = [(1, FaultKind::LostDispute), (3, FaultKind::LostDispute)];
        assert_eq!(faults(), at_fault);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[2], &[1, 3], &[])));
    });
}

#[test]
fn a_round_stays_open_for_its_disputes() {
    after(&[9, 9, 8], || {
        FinalityStoppedAt::set(Some(System::block_number()));
        pass(CHALLENGE_WINDOW + 20);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Challengeable));
        play_out(&[(1, 9), (3, 8)]);
        pass(100);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Challengeable));
        FinalityStoppedAt::set(None);
        pass(2);
        assert_eq!(phase(), None);
    });
}

#[test]
fn the_verdict_changes_when_the_majority_is_proven_wrong() {
    after(&[8, 8, 9], || {
        assert_eq!(round().unwrap().announced, Some(claim(8).output));
        events();
        play_out(&[(1, 8), (2, 8), (3, 9)]);
        let verdicts: Vec<_> = events()
            .into_iter()
            .filter_map(|event| match event {
                RuntimeEvent::Results(ResultsEvent::VerdictReached { verdict, .. }) => Some(verdict),
                _ => None,
            })
            .collect();
        assert_eq!(verdicts.last(), Some(&agreed(9, &[3], &[1, 2], &[])));
    });
}

#[test]
fn results_without_a_referee_are_not_disputed() {
    TestExt::new().model(Model::Native).round_of(3).execute_with(|| {
        super::revealed(&[7, 7, 8]);
        assert_eq!(pairs(), []);
        assert_noop!(challenge(FIRST_STRANGER, 1), DisputesError::NotDisputable);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(7, &[1, 2], &[3], &[])));
        assert_eq!(faults(), []);
    });
}

#[test]
fn what_the_referee_knows_is_kept_for_as_long_as_the_round() {
    after(&[9, 9, 8], || {
        // The model's owner takes it away.
        set_model(Model::Unknown);
        play_out(&[(1, 9), (3, 8)]);
        assert_eq!(faults(), [(3, FaultKind::WrongResult)]);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(DisputeContexts::<Test>::iter().count(), 0);
    });
}

#[test]
fn a_dispute_is_moot_when_one_of_its_parties_has_lost_elsewhere() {
    after(&[8, 8], || {
        let (one, other) = (FIRST_STRANGER, FIRST_STRANGER + 1);
        assert_ok!(challenge(one, 1));
        assert_ok!(challenge(other, 1));
        let held = |account| MONEY - money(account);
        const HELD: Balance = CHALLENGE_BOND + COMMITTEE_POT;
        assert_eq!((held(one), held(other)), (HELD, HELD));
        // The first finds the lie, and goes on against the second provider.
        while pairs()[0] == (1, one) {
            let (id, _) = disputes()[0];
            let party = to_move(id).unwrap();
            let result = if matches!(party, Party::Provider(_)) { 8 } else { 9 };
            assert_ok!(play(player_of(&party), id, next_move(id, result)));
        }
        assert_eq!(pairs(), [(1, other), (2, one)]);
        assert_noop!(play(agent_of(1), 1, next_move(1, 8)), DisputesError::Moot);
        assert_ok!(advance(1));
        // Nobody won it: the second challenger goes on as well.
        assert_eq!(pairs(), [(2, one), (2, other)]);
        assert_ok!(Results::advance(TASK));
    });
}

#[test]
fn an_account_that_plays_on_both_sides_moves_for_the_one_whose_turn_it_is() {
    after(&[8, 8, 8], || {
        // A provider's own agent challenges it.
        let agent = agent_of(1);
        let _ = <Balances as frame_support::traits::Currency<_>>::deposit_creating(&agent, MONEY);
        assert_ok!(challenge(agent, 1));
        assert_ok!(play(agent, 0, next_move(0, 8)));
        assert_ok!(play(agent, 0, next_move(0, 9)));
        assert_eq!(MockStake::locked(1), LOCK);
    });
}
