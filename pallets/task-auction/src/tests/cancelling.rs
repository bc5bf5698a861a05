use frame_support::{assert_noop, assert_ok};
use surety_pallet_test_kit::{MockEscrow, MockStake};

use crate::{Error, Event, TaskStateOf, mock::*};

const LAST: BlockNumber = 1 + BID_WINDOW + REVEAL_WINDOW;

#[test]
fn a_client_that_made_others_bid_pays_the_least_fee_and_bidders_get_their_deposits_back() {
    TestExt::new().providers(3).execute_with(|| {
        let task = post(1);
        for index in 0..3 {
            assert_ok!(place(task, index, 500));
        }
        run_to(LAST);
        assert_ok!(open(task, 0, 500));
        events();
        assert_ok!(TaskAuction::cancel(signed(CLIENT), task));
        let fee = MockEscrow::FEE_MIN;
        assert_eq!(state(task), TaskStateOf::<Test>::Cancelled { at: LAST, fee });
        assert_eq!(MockEscrow::fees(), fee);
        assert_eq!(MockEscrow::refunded_to(CLIENT), CAP - fee);
        assert_eq!(MockStake::locked_in_all(), 0);
        assert_eq!(events(), [Event::TaskCancelled { task }]);
    });
}

#[test]
fn what_nobody_has_bid_for_is_cancelled_for_nothing() {
    TestExt::new().execute_with(|| {
        let task = post(1);
        assert_ok!(TaskAuction::cancel(signed(CLIENT), task));
        assert_eq!(MockEscrow::refunded_to(CLIENT), CAP);
        assert_eq!(MockEscrow::fees(), 0);
    });
}

#[test]
fn only_the_client_cancels_and_only_what_exists() {
    TestExt::new().execute_with(|| {
        let task = post(1);
        assert_noop!(
            TaskAuction::cancel(signed(ANYBODY), task),
            Error::<Test>::NotClient
        );
        assert_noop!(
            TaskAuction::cancel(signed(CLIENT), task + 1),
            Error::<Test>::UnknownTask
        );
    });
}

#[test]
fn nothing_is_cancelled_once_the_reveals_have_closed() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        // Nobody sweeps: the deadline binds all the same.
        skip_to(LAST + 1);
        assert_noop!(
            TaskAuction::cancel(signed(CLIENT), task),
            Error::<Test>::WrongPhase
        );
    });
}

#[test]
fn a_running_or_finished_task_is_not_cancelled() {
    TestExt::new().providers(1).execute_with(|| {
        let task = assign(1, &[500]);
        assert_noop!(
            TaskAuction::cancel(signed(CLIENT), task),
            Error::<Test>::WrongPhase
        );
        assert_ok!(decide(task, agreed(&[0], 100)));
        assert_noop!(
            TaskAuction::cancel(signed(CLIENT), task),
            Error::<Test>::WrongPhase
        );
        let other = post(1);
        assert_ok!(TaskAuction::cancel(signed(CLIENT), other));
        assert_noop!(
            TaskAuction::cancel(signed(CLIENT), other),
            Error::<Test>::WrongPhase
        );
    });
}

#[test]
fn a_cancelled_task_takes_no_bids() {
    TestExt::new().providers(2).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        assert_ok!(TaskAuction::cancel(signed(CLIENT), task));
        assert_noop!(place(task, 1, 500), Error::<Test>::WrongPhase);
        skip_to(LAST);
        assert_noop!(open(task, 0, 500), Error::<Test>::WrongPhase);
    });
}
