//! Bringing stake in.

use frame_support::{assert_noop, assert_ok};
use sp_runtime::{DispatchError, Permill, TokenError};
use surety_pallet_test_kit::MockStake;
use surety_types::{
    stake::Role,
    traits::{PoolLedger, PoolStakes, StakeLedger},
};

use crate::{DELEGATIONS_MAX, DELEGATORS_MAX, Error, Event, POOLS_MAX, Pools, Stakes, Totals, mock::*};

/// A pool of operator 1 with a delegator of 1,000 and more each: accounts 100 to 227, the first the smallest.
fn full() -> TestExt {
    let delegators = 0..u64::from(DELEGATORS_MAX);
    delegators.fold(TestExt::new().pool(1, SELF_BOND), |ext, index| {
        ext.delegation(100 + index, 1, 1_000 + Balance::from(index))
    })
}

#[test]
fn an_operator_opens_a_pool_with_stake_of_its_own() {
    TestExt::new().endow(1, SELF_BOND).execute_with(|| {
        let commission = Permill::from_percent(7);
        assert_noop!(
            Delegation::open(signed(1), SELF_BOND - 1, commission),
            Error::<Test>::BelowMinimum
        );
        assert_ok!(Delegation::open(signed(1), SELF_BOND, commission));
        assert_eq!((held(1), spendable(1)), (SELF_BOND, 0));
        assert_eq!(
            (Delegation::backing(&1), Delegation::own(&1)),
            (SELF_BOND, SELF_BOND)
        );
        assert_eq!(Delegation::pool(1).unwrap().commission, commission);
        System::assert_has_event(
            Event::PoolOpened {
                operator: 1,
                commission,
            }
            .into(),
        );
        assert_noop!(
            Delegation::open(signed(1), SELF_BOND, commission),
            Error::<Test>::AlreadyOpen
        );
    });
}

#[test]
fn stake_behind_an_operator_is_held_on_its_owners_account() {
    TestExt::new().pool(1, SELF_BOND).endow(2, 900).execute_with(|| {
        assert_ok!(Delegation::delegate(signed(2), 1, 300));
        System::assert_last_event(
            Event::Delegated {
                operator: 1,
                delegator: 2,
                amount: 300,
            }
            .into(),
        );
        assert_ok!(Delegation::delegate(signed(2), 1, 200));
        assert_eq!((held(2), spendable(2)), (500, 400));
        assert_eq!(working(2), [(1, 500)]);
        assert_eq!((Delegation::backing(&1), Delegation::own(&1)), (1_500, 1_000));
    });
}

#[test]
fn what_cannot_be_delegated_is_refused() {
    TestExt::new().pool(1, SELF_BOND).endow(2, 900).execute_with(|| {
        assert_noop!(
            Delegation::delegate(signed(2), 3, 100),
            Error::<Test>::UnknownPool
        );
        assert_noop!(Delegation::delegate(signed(2), 1, 0), Error::<Test>::ZeroAmount);
        assert_noop!(
            Delegation::delegate(signed(2), 1, MINIMUM - 1),
            Error::<Test>::BelowMinimum
        );
        assert_noop!(
            Delegation::delegate(signed(2), 1, 901),
            TokenError::FundsUnavailable
        );
        assert!(!Delegation::is_staked(&2));
        // The minimum is of what is there, not of what is added.
        assert_ok!(Delegation::delegate(signed(2), 1, MINIMUM));
        assert_ok!(Delegation::delegate(signed(2), 1, 1));
    });
}

#[test]
fn an_account_has_a_ledger_or_stake_in_pools() {
    TestExt::new()
        .pool(1, SELF_BOND)
        .endow(2, 2_000)
        .execute_with(|| {
            MockStake::bond(2, 12, Role::Verifier, 1);
            let open = Delegation::open(signed(2), SELF_BOND, Permill::zero());
            assert_eq!(open, Err(Error::<Test>::WrongRole.into()));
            Pools::<Test>::remove(2);
            assert_noop!(Delegation::delegate(signed(2), 1, 100), Error::<Test>::WrongRole);
            MockStake::remove(2);
            assert_ok!(Delegation::delegate(signed(2), 1, 100));
            assert!(Delegation::is_staked(&2));
        });
}

#[test]
fn an_account_whose_ledger_was_slashed_to_nothing_has_it_still_while_something_is_locked() {
    TestExt::new()
        .pool(1, SELF_BOND)
        .endow(2, 2_000)
        .execute_with(|| {
            MockStake::bond(2, 12, Role::Provider, 100);
            assert_ok!(MockStake::lock(&2, 100));
            assert_eq!(MockStake::seize(&2, 60, 40, &[]), 100);
            assert_eq!((MockStake::stake(&2), MockStake::locked(2)), (0, 40));
            assert_noop!(Delegation::delegate(signed(2), 1, 100), Error::<Test>::WrongRole);
            MockStake::unlock(&2, 40);
            assert_ok!(Delegation::delegate(signed(2), 1, 100));
        });
}

#[test]
fn an_account_backs_sixteen_operators() {
    let operators = u64::from(DELEGATIONS_MAX) + 1;
    let pools = (1..=operators).fold(TestExt::new(), |ext, operator| ext.pool(operator, SELF_BOND));
    pools.endow(99, 10_000).execute_with(|| {
        for operator in 1..operators {
            assert_ok!(Delegation::delegate(signed(99), operator, MINIMUM));
        }
        assert_noop!(
            Delegation::delegate(signed(99), operators, MINIMUM),
            Error::<Test>::TooManyDelegations
        );
        assert_ok!(Delegation::delegate(signed(99), 1, MINIMUM));
    });
}

#[test]
fn in_a_full_pool_the_smallest_makes_room_for_a_larger_one() {
    full().endow(9, 5_000).execute_with(|| {
        assert_eq!(Delegation::pool(1).unwrap().least, Some(1_002));
        assert_noop!(Delegation::delegate(signed(9), 1, 1_000), Error::<Test>::PoolFull);
        reward(1, 1_000_000);
        let earned = Delegation::claimable(100, 1);
        assert!(earned > 0);
        assert_ok!(Delegation::delegate(signed(9), 1, 1_001));
        System::assert_has_event(
            Event::Displaced {
                operator: 1,
                delegator: 100,
                amount: 1_000,
                day: today(),
                available_at: 1 + PERIOD,
            }
            .into(),
        );
        // It leaves like anybody else, and has what it earned.
        assert_eq!((working(100), leaving(100)), (vec![], vec![(1, today(), 1_000)]));
        assert_eq!((held(100), spendable(100)), (1_000, earned));
        // Who is there already needs no place.
        assert_ok!(Delegation::delegate(signed(9), 1, 10));
    });
}

#[test]
fn of_those_with_as_much_the_earlier_one_stays() {
    full().endow(9, 1_001).endow(8, 1_002).execute_with(|| {
        // 101 has as much and was there before 9 comes; both are the smallest then.
        assert_ok!(Delegation::delegate(signed(9), 1, 1_001));
        assert_ok!(Delegation::delegate(signed(8), 1, 1_002));
        assert_eq!((working(9), working(101)), (vec![], vec![(1, 1_001)]));
    });
}

#[test]
fn nobody_keeps_a_place_by_having_no_room_for_what_leaves_it() {
    let pools = (2..=16).fold(full(), |ext, operator| ext.pool(operator, SELF_BOND));
    pools.endow(100, 100_000).endow(9, 5_000).execute_with(|| {
        for operator in 2..=16 {
            assert_ok!(Delegation::delegate(signed(100), operator, 50 * MINIMUM));
        }
        // Two days of leaving each of fifteen operators, and two chunks of another day.
        for _ in 0..2 {
            for operator in 2..=16 {
                assert_ok!(Delegation::undelegate(signed(100), operator, MINIMUM));
            }
            pass_days(1);
        }
        for operator in [2, 3] {
            assert_ok!(Delegation::undelegate(signed(100), operator, MINIMUM));
        }
        assert_noop!(
            Delegation::undelegate(signed(100), 4, MINIMUM),
            Error::<Test>::TooManyStakes
        );
        assert_ok!(Delegation::delegate(signed(9), 1, 5_000));
        assert_eq!(working(100).len(), 15);
        assert_eq!(leaving(100).len(), 33);
        // As a whole a delegation leaves at any time.
        assert_ok!(Delegation::undelegate(signed(100), 4, 48 * MINIMUM));
    });
}

#[test]
fn who_backs_an_operator_that_has_left_does_not_keep_its_place_among_pools() {
    let ext = TestExt::new().pool(1, SELF_BOND).delegation(2, 1, 100);
    ext.endow(3, 100).endow(4, SELF_BOND).execute_with(|| {
        assert_eq!(Totals::<Test>::get().led, 1);
        assert_ok!(Delegation::undelegate(signed(1), 1, SELF_BOND));
        assert_eq!((Delegation::own(&1), Delegation::backing(&1)), (0, 100));
        assert_eq!(Delegation::pool(1).unwrap().least, None);
        assert_noop!(
            Delegation::delegate(signed(3), 1, 100),
            Error::<Test>::OperatorLeft
        );

        // There are as many pools as there may be.
        Totals::<Test>::mutate(|totals| totals.led = POOLS_MAX);
        let day = today();
        assert_noop!(
            Delegation::redelegate(signed(1), 1, day, 1, SELF_BOND),
            Error::<Test>::TooManyPools
        );
        let open = Delegation::open(signed(4), SELF_BOND, Permill::zero());
        assert_eq!(open, Err(Error::<Test>::TooManyPools.into()));
        Pools::<Test>::remove(4);

        // It may come back while there is room.
        Totals::<Test>::mutate(|totals| totals.led = 0);
        assert_ok!(Delegation::redelegate(signed(1), 1, day, 1, SELF_BOND));
        assert_eq!(Delegation::own(&1), SELF_BOND);
        assert_ok!(Delegation::delegate(signed(3), 1, 100));
    });
}

#[test]
fn a_pool_goes_with_the_last_who_leaves_it() {
    TestExt::new()
        .pool(1, SELF_BOND)
        .delegation(2, 1, 100)
        .execute_with(|| {
            assert_ok!(Delegation::undelegate(signed(1), 1, SELF_BOND));
            assert!(ClosedPools::get().is_empty());
            assert_ok!(Delegation::undelegate(signed(2), 1, 100));
            assert_eq!(ClosedPools::get(), [1]);
            System::assert_has_event(Event::PoolClosed { operator: 1 }.into());
            assert_eq!(Delegation::pool(1), None);
            pass_blocks(PERIOD);
            assert_ok!(Delegation::withdraw(signed(1)));
            assert_ok!(Delegation::withdraw(signed(2)));
            assert_eq!((spendable(1), spendable(2)), (SELF_BOND, 100));
            assert_eq!(Stakes::<Test>::iter().count(), 0);
            assert_ok!(Delegation::open(signed(1), SELF_BOND, Permill::zero()));
        });
}

#[test]
fn every_call_wants_a_signature() {
    TestExt::new().execute_with(|| {
        let none = RuntimeOrigin::none;
        let refused = DispatchError::BadOrigin;
        assert_noop!(Delegation::open(none(), 1, Permill::zero()), refused);
        assert_noop!(Delegation::delegate(none(), 1, 1), refused);
        assert_noop!(Delegation::undelegate(none(), 1, 1), refused);
        assert_noop!(Delegation::redelegate(none(), 1, 1, 1, 1), refused);
        assert_noop!(Delegation::withdraw(none()), refused);
        assert_noop!(Delegation::claim(none(), 1), refused);
        assert_noop!(Delegation::settle(none(), 1, 1), refused);
        assert_noop!(Delegation::set_commission(none(), Permill::zero()), refused);
    });
}
