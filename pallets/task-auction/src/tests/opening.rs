use frame_support::{assert_noop, assert_ok};
use surety_pallet_test_kit::MockStake;

use crate::{Bids, Error, Event, TaskStateOf, mock::*};

const FIRST: BlockNumber = 1 + BID_WINDOW + 1;
const LAST: BlockNumber = 1 + BID_WINDOW + REVEAL_WINDOW;

#[test]
fn an_opened_bid_is_shown_and_its_deposit_unlocked() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        run_to(FIRST);
        events();
        assert_ok!(open(task, 0, 500));
        assert_eq!(
            Bids::<Test>::get(task, stash(0)).unwrap().opened,
            Some(bid(0, 500))
        );
        assert_eq!(MockStake::locked(stash(0)), 0);
        let salt = bid(0, 500).salt;
        let opened = Event::BidOpened {
            task,
            provider: stash(0),
            price: 500,
            seconds: 10,
            salt,
        };
        assert_eq!(events(), [opened]);
    });
}

#[test]
fn bids_are_opened_between_the_deadlines_although_nobody_sweeps() {
    TestExt::new().providers(3).execute_with(|| {
        let task = post(1);
        for index in 0..3 {
            assert_ok!(place(task, index, 500));
        }
        assert_noop!(open(task, 0, 500), Error::<Test>::WrongPhase);
        skip_to(FIRST);
        assert_ok!(open(task, 0, 500));
        assert_eq!(state(task), TaskStateOf::<Test>::Revealing { until: LAST });
        skip_to(LAST);
        assert_ok!(open(task, 1, 500));
        skip_to(LAST + 1);
        assert_noop!(open(task, 2, 500), Error::<Test>::WrongPhase);
    });
}

#[test]
fn the_first_opened_in_the_last_block_is_in_time() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        skip_to(LAST);
        assert_ok!(open(task, 0, 500));
        assert_eq!(state(task), TaskStateOf::<Test>::Revealing { until: LAST });
    });
}

#[test]
fn sweeping_late_moves_no_deadline() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        skip_to(LAST);
        assert_ok!(advance(task));
        assert_eq!(state(task), TaskStateOf::<Test>::Revealing { until: LAST });
    });
}

#[test]
fn only_the_sealed_bid_opens_and_only_once() {
    TestExt::new().providers(2).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        run_to(FIRST);
        assert_noop!(open(task, 0, 501), Error::<Test>::SealMismatch);
        assert_noop!(open(task, 1, 500), Error::<Test>::UnknownBid);
        assert_noop!(open(task + 1, 0, 500), Error::<Test>::UnknownTask);
        assert_ok!(open(task, 0, 500));
        assert_noop!(open(task, 0, 500), Error::<Test>::AlreadyOpened);
    });
}

#[test]
fn a_copied_seal_cannot_be_opened() {
    TestExt::new().providers(2).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        let seal = bid(0, 500).seal(task, &stash(0));
        assert_ok!(TaskAuction::bid(signed(agent_of(stash(1))), task, seal));
        run_to(FIRST);
        assert_noop!(
            send_opening(opening(task, stash(1), bid(0, 500))),
            Error::<Test>::SealMismatch
        );
    });
}

#[test]
fn what_was_locked_is_unlocked_though_the_parameter_changed() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        BidDeposit::set(2 * DEPOSIT);
        let other = post(1);
        assert_ok!(place(other, 0, 500));
        assert_eq!(MockStake::locked(stash(0)), 3 * DEPOSIT);
        run_to(FIRST);
        assert_ok!(open(task, 0, 500));
        assert_eq!(MockStake::locked(stash(0)), 2 * DEPOSIT);
    });
}

/// Two bids, one of them open when the first window ends.
fn with_one_sealed(test: impl FnOnce(u64)) {
    TestExt::new().providers(2).execute_with(|| {
        LateRevealWindow::set(LATE);
        let task = post(1);
        for index in 0..2 {
            assert_ok!(place(task, index, 500));
        }
        run_to(FIRST);
        assert_ok!(open(task, 0, 500));
        test(task);
    });
}

const LATE: BlockNumber = 10;

#[test]
fn a_bid_that_is_sealed_when_the_window_ends_has_the_long_one() {
    with_one_sealed(|task| {
        run_to(LAST + 1);
        assert_eq!(state(task), TaskStateOf::<Test>::Revealing { until: LAST + LATE });
        assert_eq!(MockStake::locked(stash(1)), DEPOSIT);
        run_to(LAST + LATE);
        assert_ok!(open(task, 1, 500));
        events();
        run_to(LAST + LATE + 4);
        assert_eq!(MockStake::locked(stash(1)), 0);
        let forfeited = |event: &Event<Test>| matches!(event, Event::BidForfeited { .. });
        assert!(!events().iter().any(forfeited));
        assert!(matches!(state(task), TaskStateOf::<Test>::Running { .. }));
    });
}

#[test]
fn a_late_sweep_keeps_nobody_from_the_long_window() {
    with_one_sealed(|task| {
        skip_to(LAST + 3);
        assert_ok!(open(task, 1, 500));
        assert_eq!(state(task), TaskStateOf::<Test>::Revealing { until: LAST + LATE });
    });
}

#[test]
fn who_opens_last_does_not_choose_when_the_draw_is() {
    with_one_sealed(|task| {
        run_to(LAST + 2);
        assert_ok!(open(task, 1, 500));
        run_to(LAST + LATE);
        assert_eq!(state(task), TaskStateOf::<Test>::Revealing { until: LAST + LATE });
        run_to(LAST + LATE + 1);
        let since = LAST + LATE + 1;
        assert_eq!(state(task), TaskStateOf::<Test>::Drawing { since });
    });
}

#[test]
fn a_bid_that_stays_sealed_holds_the_draw_up_for_the_long_window_and_loses_its_deposit() {
    with_one_sealed(|task| {
        run_to(LAST + LATE + 4);
        assert_noop!(open(task, 1, 500), Error::<Test>::WrongPhase);
        assert!(matches!(state(task), TaskStateOf::<Test>::Running { .. }));
        let forfeited = |event: &Event<Test>| matches!(event, Event::BidForfeited { .. });
        assert!(events().iter().any(forfeited));
    });
}

#[test]
fn nobody_waits_when_all_bids_are_open() {
    with_one_sealed(|task| {
        run_to(LAST);
        assert_ok!(open(task, 1, 500));
        run_to(LAST + 1);
        assert_eq!(state(task), TaskStateOf::<Test>::Drawing { since: LAST + 1 });
    });
}
