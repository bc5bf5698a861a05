//! Pieces of output that were withheld are demanded on chain.

use frame_support::{assert_noop, assert_ok, dispatch::DispatchResult, traits::fungible::Mutate};
use surety_pallet_test_kit::{MockClock, MockOutcome, MockStake};
use surety_proofs::SegmentOpening;
use surety_types::{limits::DEMANDS_MAX, task::Verdict, trust::FaultKind};

use super::after;
use surety_pallet_integration_tests::*;

const CLIENT: AccountId = FIRST_STRANGER;

fn demand(by: AccountId, provider: AccountId, segment: u32) -> DispatchResult {
    send_as(
        by,
        ResultsCall::demand {
            task: TASK,
            provider,
            segment,
        },
    )
}

fn supply(provider: AccountId, bytes: &[u8], segment: u32) -> DispatchResult {
    let opening = SegmentOpening::new(bytes, segment).unwrap();
    let output_bytes = bytes.len() as u32;
    send(
        provider,
        ResultsCall::supply {
            task: TASK,
            output_bytes,
            opening,
        },
    )
}

#[test]
fn a_piece_that_is_supplied_is_paid_for() {
    after(&[9, 9], || {
        events();
        assert_ok!(demand(CLIENT, 2, 1));
        let until = System::block_number() + SUPPLY_WINDOW;
        assert_eq!(MockClock::last_wake(TASK), Some(until));
        assert_eq!(money(CLIENT), MONEY - SUPPLY_PRICE);
        let before = money(2);
        assert_ok!(supply(2, &output(9), 1));
        assert_eq!(money(2), before + SUPPLY_PRICE);
        let (task, provider, segment) = (TASK, 2, 1);
        assert_eq!(
            events(),
            [
                RuntimeEvent::Results(ResultsEvent::DataDemanded {
                    task,
                    provider,
                    by: CLIENT,
                    segment,
                    until
                }),
                RuntimeEvent::Results(ResultsEvent::DataSupplied {
                    task,
                    provider,
                    segment
                }),
            ]
        );
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1, 2], &[], &[])));
    });
}

#[test]
fn the_last_piece_answers_for_pieces_that_there_are_not() {
    after(&[9], || {
        assert_ok!(demand(CLIENT, 1, 7));
        assert_noop!(supply(1, &output(9), 1), ResultsError::WrongSegment);
        assert_ok!(supply(1, &output(9), 2));
    });
}

#[test]
fn nothing_but_the_piece_itself_will_do() {
    after(&[9], || {
        assert_noop!(supply(1, &output(9), 0), ResultsError::NotDemanded);
        assert_ok!(demand(CLIENT, 1, 1));
        assert_noop!(supply(1, &output(8), 1), ResultsError::WrongSegment);
        assert_noop!(supply(1, &output(9), 0), ResultsError::WrongSegment);
        // The claim says how long the output is.
        assert_noop!(supply(1, &output(9)[..2_000], 1), ResultsError::WrongSegment);
        assert_noop!(supply(2, &output(9), 1), ResultsError::NotMember);
        assert_noop!(
            supply(FIRST_VERIFIER, &output(9), 1),
            ResultsError::NotProviderAgent
        );
        assert_ok!(supply(1, &output(9), 1));
    });
}

#[test]
fn who_withholds_its_output_loses_its_lock_and_the_price_comes_back() {
    after(&[9, 9, 9], || {
        assert_ok!(demand(CLIENT, 2, 0));
        pass_unattended(SUPPLY_WINDOW + 1);
        assert_noop!(supply(2, &output(9), 0), ResultsError::WrongPhase);
        pass(1);
        assert_eq!(faults(), [(2, FaultKind::WithheldData)]);
        assert_eq!(slashes()[0].finder, Some(CLIENT));
        assert_eq!((slashes()[0].lock, money(CLIENT)), (LOCK, MONEY));
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1, 3], &[2], &[])));
    });
}

#[test]
fn a_round_waits_for_what_was_demanded() {
    after(&[9], || {
        pass(CHALLENGE_WINDOW);
        assert_ok!(demand(CLIENT, 1, 0));
        pass(SUPPLY_WINDOW);
        assert!(round().is_some());
        assert_ok!(supply(1, &output(9), 0));
        pass(1);
        assert_eq!(phase(), None);
    });
}

#[test]
fn a_demand_on_somebody_who_was_convicted_is_dropped() {
    after(&[8, 9], || {
        assert_ok!(demand(CLIENT, 1, 0));
        play_out(&[(1, 8), (2, 9)]);
        pass(2);
        assert_eq!(Demands::<Test>::iter().count(), 0);
        assert_eq!(money(CLIENT), MONEY);
        assert_eq!(faults(), [(1, FaultKind::WrongResult)]);
    });
}

#[test]
fn demands_are_one_at_a_time_bounded_and_in_time() {
    TestExt::new().round_of(1).execute_with(|| {
        assert_noop!(demand(CLIENT, 1, 0), ResultsError::WrongPhase);
        assert_noop!(
            send_as(
                CLIENT,
                ResultsCall::demand {
                    task: 99,
                    provider: 1,
                    segment: 0
                }
            ),
            ResultsError::UnknownRound
        );
        super::revealed(&[9]);
        assert_noop!(demand(CLIENT, 2, 0), ResultsError::NotMember);
        assert_ok!(demand(CLIENT, 1, 0));
        assert_noop!(demand(CLIENT, 1, 1), ResultsError::AlreadyDemanded);
        assert_ok!(supply(1, &output(9), 0));
        for _ in 1..DEMANDS_MAX {
            assert_ok!(demand(CLIENT, 1, 0));
            assert_ok!(supply(1, &output(9), 0));
        }
        assert_noop!(demand(CLIENT, 1, 0), ResultsError::TooManyDemands);
    });
}

#[test]
fn the_client_comes_before_whoever_would_keep_it_out() {
    after(&[9], || {
        let owner = MockOutcome::CLIENT;
        let _ = <Balances as Mutate<_>>::mint_into(&owner, MONEY);
        let before = (money(owner), money(CLIENT));
        // A friend of the provider uses up what strangers may demand, and then some.
        for _ in 1..DEMANDS_MAX {
            assert_ok!(demand(CLIENT, 1, 0));
            assert_ok!(supply(1, &output(9), 0));
        }
        assert_ok!(demand(CLIENT, 1, 0));
        let paid = SUPPLY_PRICE * Balance::from(DEMANDS_MAX - 1);
        for segment in 0..3 {
            assert_ok!(demand(owner, 1, segment));
            // Whom it took the place of has its price back, and cannot take it again.
            assert_eq!(money(CLIENT), before.1 - paid);
            assert_noop!(demand(owner, 1, 0), ResultsError::AlreadyDemanded);
            assert_ok!(supply(1, &output(9), segment));
        }
        assert_eq!(money(owner), before.0 - 3 * SUPPLY_PRICE);
        assert_noop!(demand(CLIENT, 1, 0), ResultsError::TooManyDemands);
    });
}

#[test]
fn a_round_waits_for_what_its_client_demanded_and_whoever_withholds_it_is_convicted() {
    after(&[9], || {
        let owner = MockOutcome::CLIENT;
        let _ = <Balances as Mutate<_>>::mint_into(&owner, MONEY);
        pass(CHALLENGE_WINDOW);
        assert_ok!(demand(owner, 1, 0));
        pass(SUPPLY_WINDOW);
        assert!(round().is_some());
        pass(2);
        assert_eq!(faults(), [(1, FaultKind::WithheldData)]);
    });
}

#[test]
fn a_stranger_does_not_take_the_clients_place() {
    after(&[9], || {
        let owner = MockOutcome::CLIENT;
        let _ = <Balances as Mutate<_>>::mint_into(&owner, MONEY);
        assert_ok!(demand(owner, 1, 0));
        assert_noop!(demand(CLIENT, 1, 0), ResultsError::AlreadyDemanded);
    });
}

#[test]
fn a_round_ends_when_what_it_waited_for_is_supplied() {
    after(&[9], || {
        pass(CHALLENGE_WINDOW);
        assert_ok!(demand(CLIENT, 1, 0));
        pass(2);
        assert_ok!(supply(1, &output(9), 0));
        // Not when the time for it would have been over.
        assert_eq!(MockClock::last_wake(TASK), Some(System::block_number()));
    });
}

#[test]
fn of_who_did_not_reveal_nothing_can_be_demanded() {
    TestExt::new().round_of(3).execute_with(|| {
        all_commit(&[(1, 9), (2, 9), (3, 9)]);
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(1, 9), (2, 9)]);
        pass(REVEAL_WINDOW + 1);
        assert_noop!(demand(CLIENT, 3, 0), ResultsError::NotRevealed);
    });
}

#[test]
fn a_lone_provider_that_withholds_fails_the_task_and_the_client_is_insured() {
    after(&[9], || {
        assert_ok!(demand(CLIENT, 1, 0));
        pass(SUPPLY_WINDOW + CHALLENGE_WINDOW + 3);
        assert!(matches!(decision(), Some(Verdict::Failed(_))));
        // The verdict that was announced did not hold.
        assert_eq!(money(900), 1 + PRICE);
        assert_eq!(money(POOL), POOL_MONEY - PRICE);
        assert_eq!(MockStake::bonded(900), 0);
    });
}
