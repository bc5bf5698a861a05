//! What stake earns.

use frame_support::{assert_noop, assert_ok, traits::fungible::Mutate};
use sp_runtime::Permill;
use surety_types::traits::PoolLedger;

use crate::{Error, Event, Totals, mock::*};

#[test]
fn a_reward_is_shared_by_stake_after_commission() {
    TestExt::new()
        .pool_with(1, 1_000, Permill::from_percent(10))
        .delegation(2, 1, 3_000)
        .execute_with(|| {
            reward(1, 400);
            assert_eq!(Delegation::claimable(1, 1), 40 + 90);
            assert_eq!(Delegation::claimable(2, 1), 270);
            assert_ok!(Delegation::claim(signed(2), 1));
            System::assert_last_event(
                Event::Claimed {
                    operator: 1,
                    delegator: 2,
                    amount: 270,
                }
                .into(),
            );
            assert_ok!(Delegation::claim(signed(1), 1));
            assert_eq!((spendable(1), spendable(2)), (130, 270));
            assert_noop!(Delegation::claim(signed(2), 1), Error::<Test>::NothingToClaim);
            assert_noop!(Delegation::claim(signed(3), 1), Error::<Test>::NotDelegated);
            assert_noop!(Delegation::claim(signed(2), 3), Error::<Test>::UnknownPool);
            // What was paid backs nobody.
            assert_eq!(Delegation::backing(&1), 4_000);
        });
}

#[test]
fn who_comes_later_has_nothing_of_what_was_shared_before() {
    TestExt::new().pool(1, 1_000).endow(2, 2_000).execute_with(|| {
        reward(1, 100);
        assert_ok!(Delegation::delegate(signed(2), 1, 1_000));
        reward(1, 100);
        assert_eq!(
            (Delegation::claimable(1, 1), Delegation::claimable(2, 1)),
            (150, 50)
        );
        // A change of the stake pays what was earned with it before.
        assert_ok!(Delegation::delegate(signed(2), 1, 1_000));
        assert_eq!(spendable(2), 50);
        reward(1, 300);
        assert_eq!(
            (Delegation::claimable(1, 1), Delegation::claimable(2, 1)),
            (250, 200)
        );
        assert_ok!(Delegation::undelegate(signed(2), 1, 500));
        assert_eq!((spendable(2), Delegation::claimable(2, 1)), (250, 0));
    });
}

#[test]
fn what_does_not_divide_goes_with_later_rewards() {
    TestExt::new()
        .pool(1, 1_000)
        .delegation(2, 1, 1_000)
        .delegation(3, 1, 1_000)
        .execute_with(|| {
            for _ in 0..3 {
                reward(1, 1);
                assert_noop!(Delegation::claim(signed(2), 2), Error::<Test>::UnknownPool);
            }
            // A planck was shared among three, three times.
            let all = [1, 2, 3].map(|who| Delegation::claimable(who, 1));
            assert!(all.iter().sum::<Balance>() <= 3);
            // Whoever leaves gives what was no whole planck back: nothing stays behind.
            for who in [1, 2, 3] {
                assert_ok!(Delegation::undelegate(signed(who), 1, 1_000));
            }
            assert_eq!(Totals::<Test>::get().unclaimed, 0);
            assert_eq!([1, 2, 3].map(spendable).iter().sum::<Balance>(), 3);
        });
}

#[test]
fn no_more_is_shared_than_the_pot_has() {
    TestExt::new().pool(1, 1_000).execute_with(|| {
        assert_eq!(Delegation::reward(&1, 100), 0);
        assert_ok!(Balances::mint_into(&Delegation::pot(), 60));
        assert_eq!(Delegation::reward(&1, 40), 40);
        assert_eq!(Delegation::reward(&1, 100), 20);
        // Nobody backs this one, and the rest is not promised to others by that.
        assert_ok!(Balances::mint_into(&Delegation::pot(), 60));
        assert_eq!(Delegation::reward(&2, 60), 0);
        assert_eq!(Delegation::claimable(1, 1), 60);
        assert_ok!(Delegation::claim(signed(1), 1));
        assert_eq!(Totals::<Test>::get().unclaimed, 0);
    });
}

#[test]
fn an_operator_without_stake_has_its_commission_all_the_same() {
    TestExt::new()
        .pool_with(1, 1_000, Permill::from_percent(50))
        .delegation(2, 1, 1_000)
        .execute_with(|| {
            assert_ok!(Delegation::undelegate(signed(1), 1, 1_000));
            reward(1, 100);
            assert_ok!(Delegation::claim(signed(1), 1));
            assert_eq!(spendable(1), 50);
            reward(1, 100);
            // It is paid at the latest when the pool closes.
            assert_ok!(Delegation::undelegate(signed(2), 1, 1_000));
            assert_eq!((spendable(1), spendable(2)), (100, 100));
        });
}

#[test]
fn commission_of_an_operator_that_has_no_account_is_burned() {
    TestExt::new()
        .pool_with(1, 1_000, Permill::from_percent(2))
        .delegation(2, 1, 1_000)
        .execute_with(|| {
            assert_ok!(Delegation::undelegate(signed(1), 1, 1_000));
            pass_blocks(PERIOD);
            assert_ok!(Delegation::withdraw(signed(1)));
            let all = Balances::free_balance(1);
            assert_ok!(Balances::burn(signed(1), all, false));
            assert!(!System::account_exists(&1));
            reward(1, 100);
            let issued = Balances::total_issuance();
            assert_ok!(Delegation::undelegate(signed(2), 1, 1_000));
            assert_eq!((spendable(2), Balances::total_issuance()), (98, issued - 2));
            assert_eq!(Totals::<Test>::get().unclaimed, 0);
        });
}

#[test]
fn commission_falls_at_once_and_rises_by_a_percent_a_day() {
    let percent = Permill::from_percent;
    TestExt::new().pool_with(1, 1_000, percent(10)).execute_with(|| {
        assert_noop!(
            Delegation::set_commission(signed(1), percent(11)),
            Error::<Test>::RaisedTooFast
        );
        pass_days(1);
        assert_noop!(
            Delegation::set_commission(signed(1), percent(12)),
            Error::<Test>::RaisedTooFast
        );
        assert_ok!(Delegation::set_commission(signed(1), percent(11)));
        assert_ok!(Delegation::set_commission(signed(1), percent(3)));
        System::assert_last_event(
            Event::CommissionSet {
                operator: 1,
                commission: percent(3),
            }
            .into(),
        );
        assert_noop!(
            Delegation::set_commission(signed(1), percent(4)),
            Error::<Test>::RaisedTooFast
        );
        assert_noop!(
            Delegation::set_commission(signed(2), percent(4)),
            Error::<Test>::UnknownPool
        );
    });
}

#[test]
fn an_operator_that_leaves_before_a_day_is_over_is_paid_with_all_who_back_it() {
    TestExt::new()
        .pool_with(1, 2_000, Permill::from_percent(10))
        .delegation(2, 1, 2_000)
        .execute_with(|| {
            Served::insert(1, 400);
            // Others' coming and going pays nothing before the day is over.
            assert_ok!(Delegation::undelegate(signed(2), 1, 1_000));
            assert_eq!((spendable(2), Delegation::claimable(2, 1)), (0, 0));
            // Any part of the operator's own does.
            assert_ok!(Delegation::undelegate(signed(1), 1, 500));
            assert_eq!((spendable(1), Delegation::claimable(2, 1)), (40 + 240, 120));
            assert!(!Served::contains_key(1));
            Served::insert(1, 100);
            assert_ok!(Delegation::undelegate(signed(1), 1, 1_500));
            assert_eq!(
                (spendable(1), Delegation::claimable(2, 1)),
                (280 + 10 + 54, 120 + 36)
            );
        });
}

#[test]
fn a_pool_is_paid_before_the_last_who_are_in_it_leave() {
    TestExt::new()
        .pool(1, 1_000)
        .delegation(2, 1, 1_000)
        .delegation(3, 1, 3_000)
        .pool(4, 1_000)
        .execute_with(|| {
            assert_ok!(Delegation::undelegate(signed(1), 1, 1_000));
            // It works for two sessions more.
            Served::insert(1, 400);
            assert_ok!(Delegation::undelegate(signed(2), 1, 1_000));
            assert_eq!((spendable(1), spendable(2)), (0, 100));
            Served::insert(1, 60);
            assert_ok!(Delegation::undelegate(signed(3), 1, 3_000));
            assert_eq!(spendable(3), 300 + 60);
            // Alone in its pool.
            Served::insert(4, 70);
            assert_ok!(Delegation::undelegate(signed(4), 4, 1_000));
            assert_eq!((spendable(4), ClosedPools::get()), (70, vec![1, 4]));
            assert_eq!(Totals::<Test>::get().unclaimed, 0);
        });
}
