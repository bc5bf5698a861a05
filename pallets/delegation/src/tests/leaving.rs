//! Taking stake out.

use frame_support::{assert_noop, assert_ok};
use surety_types::traits::PoolLedger;

use crate::{Buckets, Error, Event, mock::*};

#[test]
fn stake_that_leaves_stays_held_until_its_time() {
    TestExt::new()
        .pool(1, SELF_BOND)
        .delegation(2, 1, 500)
        .execute_with(|| {
            assert_ok!(Delegation::undelegate(signed(2), 1, 200));
            let available_at = 1 + PERIOD;
            System::assert_last_event(
                Event::Undelegated {
                    operator: 1,
                    delegator: 2,
                    amount: 200,
                    day: 1,
                    available_at,
                }
                .into(),
            );
            assert_eq!((working(2), leaving(2)), (vec![(1, 300)], vec![(1, 1, 200)]));
            assert_eq!((held(2), Delegation::backing(&1)), (500, 1_300));
            pass_blocks(PERIOD - 1);
            assert_noop!(Delegation::withdraw(signed(2)), Error::<Test>::NothingToWithdraw);
            pass_blocks(1);
            assert_ok!(Delegation::withdraw(signed(2)));
            System::assert_last_event(
                Event::Withdrawn {
                    delegator: 2,
                    amount: 200,
                }
                .into(),
            );
            assert_eq!((held(2), spendable(2)), (300, 200));
            assert_eq!(Buckets::<Test>::iter().count(), 0);
        });
}

#[test]
fn what_leaves_on_one_day_is_one_chunk_that_waits_for_its_youngest_part() {
    TestExt::new()
        .pool(1, SELF_BOND)
        .delegation(2, 1, 1_000)
        .execute_with(|| {
            assert_ok!(Delegation::undelegate(signed(2), 1, 200));
            pass_blocks(5);
            assert_ok!(Delegation::undelegate(signed(2), 1, 100));
            pass_days(1);
            assert_ok!(Delegation::undelegate(signed(2), 1, 50));
            assert_eq!(leaving(2), [(1, 1, 300), (1, 2, 50)]);
            assert_eq!(stake(2).leaving[0].available_at, 6 + PERIOD);
        });
}

#[test]
fn what_stays_is_nothing_or_the_minimum() {
    TestExt::new()
        .pool(1, SELF_BOND + 10)
        .delegation(2, 1, 150)
        .execute_with(|| {
            assert_noop!(
                Delegation::undelegate(signed(2), 1, 51),
                Error::<Test>::BelowMinimum
            );
            assert_noop!(
                Delegation::undelegate(signed(2), 1, 151),
                Error::<Test>::NotEnoughStake
            );
            assert_noop!(Delegation::undelegate(signed(2), 1, 0), Error::<Test>::ZeroAmount);
            assert_noop!(
                Delegation::undelegate(signed(2), 2, 10),
                Error::<Test>::NotDelegated
            );
            assert_noop!(
                Delegation::undelegate(signed(3), 1, 10),
                Error::<Test>::NotDelegated
            );
            assert_noop!(Delegation::withdraw(signed(3)), Error::<Test>::NotDelegated);
            assert_ok!(Delegation::undelegate(signed(2), 1, 50));
            assert_ok!(Delegation::undelegate(signed(2), 1, 100));
            // The operator's own has a minimum of its own.
            assert_noop!(
                Delegation::undelegate(signed(1), 1, 11),
                Error::<Test>::BelowMinimum
            );
            assert_ok!(Delegation::undelegate(signed(1), 1, 10));
        });
}

#[test]
fn who_leaves_while_a_slash_waits_leaves_as_of_the_convicts_last_day() {
    TestExt::new()
        .pool(1, SELF_BOND)
        .delegation(2, 1, 500)
        .delegation(3, 1, 500)
        .execute_with(|| {
            // The last session of day 1: two more are of day 2.
            Session::set(2 * DAY - 1);
            assert_ok!(Delegation::undelegate(signed(3), 1, 500));
            Delegation::note_pending(&1, DAY);
            assert!(Delegation::is_pending(&1));
            pass_days(5);
            assert_ok!(Delegation::undelegate(signed(2), 1, 200));
            assert_eq!(leaving(2), [(1, 2, 200)]);
            assert!(stake(2).leaving[0].is_kept);
            pass_blocks(PERIOD);
            assert_noop!(Delegation::withdraw(signed(2)), Error::<Test>::SlashPending);
            assert_noop!(Delegation::withdraw(signed(3)), Error::<Test>::SlashPending);
            Delegation::spare(&1);
            assert!(!Delegation::is_pending(&1));
            assert_ok!(Delegation::withdraw(signed(2)));
            assert_ok!(Delegation::withdraw(signed(3)));
            assert_eq!((spendable(2), spendable(3)), (200, 500));
        });
}

#[test]
fn what_left_before_the_offence_does_not_wait_for_the_slash() {
    TestExt::new()
        .pool(1, SELF_BOND)
        .delegation(2, 1, 500)
        .execute_with(|| {
            assert_ok!(Delegation::undelegate(signed(2), 1, 200));
            pass_days(1);
            assert_ok!(Delegation::undelegate(signed(2), 1, 100));
            Delegation::note_pending(&1, 2 * DAY);
            pass_blocks(PERIOD);
            assert_ok!(Delegation::withdraw(signed(2)));
            assert_eq!((spendable(2), leaving(2)), (200, vec![(1, 2, 100)]));
        });
}

#[test]
fn a_shortened_period_does_not_make_young_chunks_wait_for_old_ones() {
    TestExt::new()
        .pool(1, SELF_BOND)
        .delegation(2, 1, 500)
        .execute_with(|| {
            assert_ok!(Delegation::undelegate(signed(2), 1, 200));
            pass_days(1);
            UnbondingPeriod::set(2);
            assert_ok!(Delegation::undelegate(signed(2), 1, 100));
            pass_blocks(2);
            assert_ok!(Delegation::withdraw(signed(2)));
            assert_eq!((held(2), spendable(2)), (400, 100));
        });
}
