use frame_support::{assert_noop, assert_ok};
use surety_pallet_test_kit::MockEscrow;
use surety_types::{
    task::{Assignment, FailureReason, Verdict},
    traits::{Escrow, TaskOutcome},
};

use crate::{Error, Event, TaskStateOf, mock::*};

#[test]
fn the_majority_is_paid_for_its_units_and_the_client_gets_the_rest() {
    TestExt::new().providers(7).execute_with(|| {
        // Everybody asks the same, so everybody is paid that; a quarter of the units was there.
        let task = assign(3, &[1_000; 7]);
        let TaskStateOf::<Test>::Running { assignments, .. } = state(task) else {
            unreachable!()
        };
        let members: Vec<_> = assignments
            .iter()
            .map(|member| member.provider - stash(0))
            .collect();
        events();
        assert_ok!(decide(task, agreed(&members[..2], 25)));

        let (paid, fee) = (2 * 250, MockEscrow::fee(2 * 250));
        let refund = CAP - paid - fee;
        let TaskStateOf::<Test>::Settled {
            at,
            claim: found,
            payments,
            refund: back,
            fee: taken,
        } = state(task)
        else {
            panic!("not settled: {:?}", state(task));
        };
        assert_eq!(
            (at, found, back, taken),
            (System::block_number(), claim(25), refund, fee)
        );
        let expected: Vec<_> = members[..2]
            .iter()
            .map(|index| Assignment {
                provider: stash(*index),
                price: 250,
            })
            .collect();
        assert_eq!(payments[..], expected[..]);
        assert_eq!(MockEscrow::paid_to(stash(members[0])), 250);
        assert_eq!(MockEscrow::paid_to(stash(members[2])), 0);
        assert_eq!(MockEscrow::refunded_to(CLIENT), refund);
        assert_eq!(
            events(),
            [Event::TaskSettled {
                task,
                claim: claim(25),
                payments,
                fee,
                refund
            }]
        );
    });
}

#[test]
fn a_task_without_agreement_is_refunded() {
    TestExt::new().providers(2).execute_with(|| {
        for reason in [FailureReason::NoAgreement, FailureReason::NotEnoughResults] {
            let task = assign(2, &[500, 500]);
            events();
            assert_ok!(decide(task, Verdict::Failed(reason)));
            assert_eq!(
                state(task),
                TaskStateOf::<Test>::Failed {
                    at: System::block_number(),
                    reason
                }
            );
            assert_eq!(events(), [Event::TaskFailed { task, reason }]);
        }
        assert_eq!(MockEscrow::refunded_to(CLIENT), 2 * CAP);
    });
}

#[test]
fn a_task_is_decided_once_and_only_while_it_runs() {
    TestExt::new().providers(1).execute_with(|| {
        assert_noop!(decide(0, agreed(&[0], 1)), Error::<Test>::UnknownTask);
        let task = post(1);
        assert_noop!(decide(task, agreed(&[0], 1)), Error::<Test>::WrongPhase);
        let task = assign(1, &[500]);
        assert_ok!(decide(task, agreed(&[0], 1)));
        assert_noop!(decide(task, agreed(&[0], 1)), Error::<Test>::WrongPhase);
        assert_noop!(
            decide(task, Verdict::Failed(FailureReason::NoAgreement)),
            Error::<Test>::WrongPhase
        );
    });
}

#[test]
fn only_who_was_given_the_task_is_paid() {
    TestExt::new().providers(2).execute_with(|| {
        let task = assign(1, &[500, 600]);
        // Provider 1 stands in reserve and was not called in.
        assert_noop!(decide(task, agreed(&[1], 1)), Error::<Test>::NotAssigned);
        assert_noop!(decide(task, agreed(&[0, 7], 1)), Error::<Test>::NotAssigned);
    });
}

#[test]
fn a_failed_settlement_changes_nothing() {
    TestExt::new().providers(1).execute_with(|| {
        let task = assign(1, &[500]);
        MockEscrow::break_settle(true);
        assert_noop!(decide(task, agreed(&[0], 1)), MockEscrow::OVERDRAWN);
        MockEscrow::break_settle(false);
        assert_ok!(decide(task, agreed(&[0], 1)));
    });
}

#[test]
fn no_more_than_units_max_is_paid() {
    TestExt::new().providers(2).execute_with(|| {
        let task = assign(1, &[500, 600]);
        assert_ok!(decide(task, agreed(&[0], u32::MAX)));
        assert_eq!(MockEscrow::paid_to(stash(0)), 600);
        let tiny = assign(1, &[5, 6]);
        assert_ok!(decide(tiny, agreed(&[0], 0)));
        assert_eq!(MockEscrow::paid_to(stash(0)), 601);
    });
}

#[test]
fn a_fee_that_rose_since_the_draw_is_not_taken_from_providers() {
    TestExt::new().providers(1).execute_with(|| {
        let task = assign(1, &[500]);
        // A lonely bidder is paid the limit.
        let limit = MockEscrow::price_limit(CAP, 1).unwrap();
        MockEscrow::raise_fee(CAP);
        assert_ok!(decide(task, agreed(&[0], 100)));
        assert_eq!(MockEscrow::paid_to(stash(0)), limit);
    });
}

#[test]
fn a_task_whose_cap_no_longer_covers_the_fee_still_ends() {
    TestExt::new().providers(1).execute_with(|| {
        let task = assign(1, &[500]);
        MockEscrow::raise_fee(CAP);
        assert!(MockEscrow::price_limit(CAP, 1).is_err());
        assert_ok!(decide(task, agreed(&[0], 0)));
        assert_eq!(MockEscrow::held(task), 0);
    });
}

#[test]
fn an_input_that_was_withheld_fails_the_task_and_takes_the_clients_lock() {
    TestExt::new().providers(2).execute_with(|| {
        let task = assign(2, &[500, 500]);
        assert_eq!(
            TaskAuction::input(task),
            Some((spec(2).input, spec(2).input_bytes))
        );
        events();
        let waited = [stash(0), stash(1)];
        assert_ok!(TaskAuction::withheld(task, &waited));
        let reason = FailureReason::InputWithheld;
        assert!(matches!(state(task), TaskStateOf::<Test>::Failed { reason: why, .. } if why == reason));
        assert_eq!(MockEscrow::forfeited(), [(CLIENT, waited.to_vec())]);
        assert_eq!(MockEscrow::refunded_to(CLIENT), CAP);
        assert_eq!(events(), [Event::TaskFailed { task, reason }]);
        assert_noop!(TaskAuction::withheld(task, &waited), Error::<Test>::WrongPhase);
        assert_noop!(TaskAuction::withheld(99, &waited), Error::<Test>::UnknownTask);
    });
}
