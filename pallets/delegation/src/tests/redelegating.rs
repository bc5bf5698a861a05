//! Moving stake from one operator to another.

use frame_support::{assert_noop, assert_ok};
use sp_runtime::Perquintill;
use surety_types::traits::PoolLedger;

use crate::{Error, Event, mock::*};

fn two_pools() -> TestExt {
    TestExt::new()
        .pool(1, SELF_BOND)
        .pool(2, SELF_BOND)
        .delegation(3, 1, 500)
}

#[test]
fn stake_moves_to_another_operator_when_a_whole_day_has_passed() {
    two_pools().execute_with(|| {
        let day = today();
        assert_ok!(Delegation::undelegate(signed(3), 1, 500));
        for _ in 0..2 {
            assert_noop!(
                Delegation::redelegate(signed(3), 1, day, 2, 500),
                Error::<Test>::TooEarly
            );
            assert!(!stake(3).leaving[0].is_movable);
            pass_days(1);
        }
        assert!(stake(3).leaving[0].is_movable);
        assert_ok!(Delegation::redelegate(signed(3), 1, day, 2, 300));
        System::assert_last_event(
            Event::Redelegated {
                operator: 1,
                to: 2,
                delegator: 3,
                amount: 300,
            }
            .into(),
        );
        assert_eq!((working(3), leaving(3)), (vec![(2, 300)], vec![(1, day, 200)]));
        assert_eq!((held(3), Delegation::backing(&2)), (500, SELF_BOND + 300));
    });
}

#[test]
fn stake_goes_back_to_its_own_operator_at_any_time() {
    two_pools().execute_with(|| {
        assert_ok!(Delegation::undelegate(signed(3), 1, 500));
        assert_ok!(Delegation::redelegate(signed(3), 1, today(), 1, 500));
        assert_eq!((working(3), leaving(3)), (vec![(1, 500)], vec![]));
    });
}

#[test]
fn what_an_operator_took_out_last_goes_elsewhere_when_it_could_be_withdrawn() {
    two_pools().execute_with(|| {
        let day = today();
        assert_ok!(Delegation::undelegate(signed(1), 1, SELF_BOND));
        pass_days(2);
        let move_all = || Delegation::redelegate(signed(1), 1, day, 2, SELF_BOND);
        assert_noop!(move_all(), Error::<Test>::TooEarly);
        pass_blocks(PERIOD);
        assert!(stake(1).leaving[0].is_movable);
        assert_ok!(move_all());
        assert_eq!(working(1), [(2, SELF_BOND)]);
    });
}

#[test]
fn what_cannot_be_moved_is_refused() {
    two_pools().execute_with(|| {
        let day = today();
        assert_ok!(Delegation::undelegate(signed(3), 1, 500));
        pass_days(2);
        let to = |operator, amount| Delegation::redelegate(signed(3), 1, day, operator, amount);
        assert_noop!(to(2, 501), Error::<Test>::NotEnoughStake);
        assert_noop!(to(2, 401), Error::<Test>::BelowMinimum);
        assert_noop!(to(2, 99), Error::<Test>::BelowMinimum);
        assert_noop!(to(2, 0), Error::<Test>::ZeroAmount);
        assert_noop!(to(4, 500), Error::<Test>::UnknownPool);
        assert_noop!(
            Delegation::redelegate(signed(3), 1, day + 1, 2, 500),
            Error::<Test>::UnknownChunk
        );
        assert_noop!(
            Delegation::redelegate(signed(4), 1, day, 2, 500),
            Error::<Test>::NotDelegated
        );
        assert_ok!(to(2, 500));
    });
}

#[test]
fn nothing_that_a_waiting_slash_may_take_from_is_moved() {
    two_pools().execute_with(|| {
        let day = today();
        assert_ok!(Delegation::undelegate(signed(3), 1, 300));
        pass_days(1);
        assert_ok!(Delegation::undelegate(signed(3), 1, 200));
        // Of what happened on the second day.
        Delegation::note_pending(&1, (day + 1) * DAY);
        pass_days(2);
        assert_noop!(
            Delegation::redelegate(signed(3), 1, day + 1, 2, 200),
            Error::<Test>::SlashPending
        );
        // A pool takes nothing meanwhile, not even what has left it earlier.
        assert_noop!(
            Delegation::redelegate(signed(3), 1, day, 1, 300),
            Error::<Test>::SlashPending
        );
        assert_ok!(Delegation::redelegate(signed(3), 1, day, 2, 300));
        assert_eq!(
            Delegation::slash(&1, Perquintill::from_percent(50), (day + 1) * DAY),
            SELF_BOND / 2 + 100
        );
        assert_ok!(Delegation::redelegate(signed(3), 1, day + 1, 2, 100));
        assert_eq!((working(3), held(3)), (vec![(2, 400)], 400));
    });
}

#[test]
fn a_slash_waits_for_a_pool_that_is_gone() {
    two_pools().execute_with(|| {
        let day = today();
        assert_ok!(Delegation::undelegate(signed(3), 1, 500));
        assert_ok!(Delegation::undelegate(signed(1), 1, SELF_BOND));
        assert_eq!(ClosedPools::get(), [1]);
        pass_days(1);
        Delegation::note_pending(&1, day * DAY);
        pass_days(1);
        assert_noop!(
            Delegation::redelegate(signed(3), 1, day, 2, 500),
            Error::<Test>::SlashPending
        );
        assert_eq!(
            Delegation::slash(&1, Perquintill::from_percent(20), day * DAY),
            (SELF_BOND + 500) / 5
        );
        assert_eq!(held(1), 800);
        assert_ok!(Delegation::redelegate(signed(3), 1, day, 2, 400));
        assert_eq!(held(3), 400);
    });
}
