//! Providers are paid for work by stake that was there.

use frame_support::{
    assert_ok,
    traits::{fungible::Mutate, tokens::Preservation},
};
use sp_runtime::{Permill, traits::Zero};
use surety_emission::{BLOCKS_PER_YEAR, SURE};
use surety_types::traits::{StakeLedger, WorkPay};

use crate::{Allowances, Event, Minted, mock::*};

const BOND: Balance = 100_000 * SURE;
/// So high that it claims all that there is.
const HIGH: Balance = BOND;

/// What `BOND` earns in so many days.
fn earned_in(days: u64) -> Balance {
    BOND * 7 * u128::from(days * DAY) / (100 * u128::from(BLOCKS_PER_YEAR))
}

/// What a settlement with such a fee mints.
fn settle(provider: AccountId, fee: Balance) -> Balance {
    let (before, had) = (Minted::<Test>::get(), Balances::free_balance(provider));
    Emission::note_settled(&provider, fee);
    let minted = Minted::<Test>::get() - before;
    assert_eq!(Balances::free_balance(provider) - had, minted);
    minted
}

#[test]
fn work_claims_half_of_its_fee_until_all_that_stake_has_earned_is_claimed() {
    TestExt::new().provider(1, BOND).execute_with(|| {
        pass_days(10);
        let earned = earned_in(10);
        assert_eq!(Emission::allowance(1), earned);
        assert_eq!(settle(1, 20 * SURE), 10 * SURE);
        assert_eq!(
            events(),
            [Event::WorkPaid {
                provider: 1,
                minted: 10 * SURE
            }]
        );
        assert_eq!(Emission::allowance(1), earned - 10 * SURE);
        assert_eq!(settle(1, HIGH), earned - 10 * SURE);
        // Nothing is left in this block.
        assert_eq!(settle(1, HIGH), 0);
        pass_days(1);
        assert_eq!(settle(1, HIGH), earned_in(1));
    });
}

#[test]
fn thirty_days_wait_for_work_and_no_more() {
    TestExt::new().provider(1, BOND).execute_with(|| {
        pass_days(400);
        assert_eq!(settle(1, 2), 1);
        pass_days(400);
        assert_eq!(settle(1, HIGH), earned_in(30));
    });
}

#[test]
fn whoever_has_missed_deadlines_is_paid_less() {
    TestExt::new().provider(1, BOND).execute_with(|| {
        pass_days(10);
        MissedDeadlines::set(1);
        assert_eq!(settle(1, 20 * SURE), 5 * SURE);
        // What was claimed is gone all the same.
        assert_eq!(Emission::allowance(1), earned_in(10) - 10 * SURE);
    });
}

#[test]
fn what_validators_get_of_a_fee_it_does_not_claim() {
    TestExt::new().provider(1, BOND).execute_with(|| {
        pass_days(10);
        ValidatorShare::set(Permill::from_percent(70));
        assert_eq!(settle(1, 20 * SURE), 4 * SURE);
        ValidatorShare::set(Permill::from_percent(90));
        assert_eq!(settle(1, 20 * SURE), 0);
    });
}

#[test]
fn who_has_no_stake_gets_nothing() {
    TestExt::new().provider(1, BOND).endow(2, BOND).execute_with(|| {
        pass_days(10);
        assert_eq!(settle(2, HIGH), 0);
        // Nor do verifiers, for whom nothing is ever minted.
        let verifier = surety_types::stake::Role::Verifier;
        assert_ok!(Staking::bond(RuntimeOrigin::signed(2), verifier, BOND / 2));
        pass_days(10);
        assert_eq!(settle(2, HIGH), 0);
        assert!(!Allowances::<Test>::contains_key(2));
    });
}

#[test]
fn stake_that_came_just_now_has_earned_nothing() {
    TestExt::new().provider(1, BOND).execute_with(|| {
        pass_days(10);
        let earned = earned_in(10);
        assert_eq!(settle(1, 2 * SURE), SURE);
        pass_days(10);
        bond(1, BOND / 2);
        // What it had stays, what accrued since the last settlement goes.
        assert_eq!(Emission::allowance(1), earned - SURE);
        assert_eq!(settle(1, HIGH), earned - SURE);
    });
}

#[test]
fn an_allowance_goes_with_the_stake() {
    TestExt::new().provider(1, BOND).execute_with(|| {
        pass_days(30);
        assert_eq!(settle(1, 2), 1);
        assert_eq!(Staking::slash(&1, BOND / 2), BOND / 2);
        assert_eq!(Emission::allowance(1), earned_in(30) / 2);
        // All of it unbonds.
        assert_ok!(Staking::unbond(RuntimeOrigin::signed(1), BOND / 2));
        assert_eq!(settle(1, HIGH), 0);
        assert!(Allowances::<Test>::get(1).is_none());
    });
}

#[test]
fn who_leaves_staking_leaves_nothing_behind() {
    TestExt::new().provider(1, BOND).execute_with(|| {
        pass_days(10);
        settle(1, 2);
        assert!(Allowances::<Test>::contains_key(1));
        leave_with(1, BOND);
        assert!(!Allowances::<Test>::contains_key(1));
        bond(1, BOND);
        assert!(Emission::allowance(1).is_zero());
    });
}

/// One stake, and four providers of next to nothing that have it in turn: each has it at two settlements that
/// are less than 30 days apart.
#[test]
fn stake_that_walks_from_provider_to_provider_is_paid_once() {
    let poor = (1..=4).fold(TestExt::new(), |ext, stash| ext.provider(stash, SURE));
    let stake = BOND - SURE;
    let walk = |from, to| {
        assert_ok!(<Balances as Mutate<_>>::transfer(
            &from,
            &to,
            stake,
            Preservation::Preserve
        ));
    };
    poor.endow(5, BOND).execute_with(|| {
        for stop in 0..12 {
            let provider = stop % 4 + 1;
            walk(5, provider);
            bond(provider, stake);
            assert_eq!(settle(provider, HIGH), 0);
            pass_days(1);
            assert_eq!(settle(provider, HIGH), earned_in(1));
            leave_with(provider, stake);
            walk(provider, 5);
        }
    });
}

/// Its fees are the price: client, provider and every validator are one.
#[test]
fn buying_ones_own_work_is_a_loss() {
    TestExt::new().provider(1, BOND).execute_with(|| {
        for percent in [0, 20, 40, 55, 80, 89] {
            ValidatorShare::set(Permill::from_percent(percent));
            for fee in [1, 9, 1_000, SURE, 1_000 * SURE] {
                pass_days(3);
                let back = settle(1, fee) + ValidatorShare::get().mul_floor(fee);
                assert!(back * 10 <= fee * 9, "{percent} % of {fee}: {back}");
            }
        }
    });
}
