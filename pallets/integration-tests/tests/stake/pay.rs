//! What stake that works is paid.

use frame_support::assert_ok;
use surety_emission::session_pay;
use surety_pallet_emission::Minted;
use surety_types::{
    stake::Role,
    task::Assignment,
    traits::{Escrow, ValidatorPenalties},
};

use crate::chain::*;

/// Has a client pay a provider for a task. Returns what was minted by that.
fn work(task: u64, client: AccountId, provider: AccountId, price: Balance) -> Balance {
    let minted = Minted::<Test>::get();
    assert_ok!(Billing::open(task, &client, 2 * price));
    assert_ok!(Billing::settle(task, &[Assignment { provider, price }], &[]));
    Minted::<Test>::get() - minted
}

#[test]
fn a_day_of_blocks_pays_every_pool_seven_percent_a_year_and_the_fees_of_its_blocks() {
    on_chain(|| {
        assert_ok!(Delegation::delegate(signed(11), 2, OWN));
        work(1, 21, 22, 10_000 * SURE);
        // Five percent, of which validators have forty.
        let fees = 200 * SURE;
        assert_eq!(Balances::free_balance(FEES), ED + fees);
        let minted = Minted::<Test>::get();
        pass_sessions(DAY);
        let tau = surety_emission::tau(minted);
        let owed = Balance::from(DAY) * (3 * session_pay(OWN, tau) + session_pay(2 * OWN, tau));
        assert_eq!(Minted::<Test>::get() - minted, owed);
        let all: Balance = (1..=4)
            .map(|operator| Delegation::claimable(operator, operator))
            .sum();
        let paid = all + Delegation::claimable(11, 2);
        assert!(owed + fees - paid < 10, "{owed} {paid}");
        assert!(Balances::free_balance(FEES) - ED < 4);
        assert_ok!(Delegation::claim(signed(11), 2));
    });
}

#[test]
fn who_leaves_before_a_day_is_over_is_paid_for_what_it_served() {
    on_chain(|| {
        assert_ok!(Delegation::delegate(signed(11), 2, OWN));
        work(1, 21, 22, 10_000 * SURE);
        let (minted, fees) = (Minted::<Test>::get(), Balances::free_balance(FEES) - ED);
        let tau = surety_emission::tau(minted);
        pass_sessions(2);
        for operator in [2, 3] {
            assert_ok!(Validators::chill(signed(operator)));
        }
        pass_sessions(2);
        assert_eq!(Session::validators(), [1, 4]);

        let had = Balances::free_balance(2);
        assert_ok!(Delegation::undelegate(signed(2), 2, OWN));
        let owed = 4 * session_pay(2 * OWN, tau);
        assert_eq!(Minted::<Test>::get() - minted, owed);
        assert_eq!(Balances::free_balance(FEES) - ED, fees);
        let backer = Delegation::claimable(11, 2);
        let paid = Balances::free_balance(2) - had;
        assert!(owed - paid - backer < 3, "{paid} {backer}");
        // Half of it and a tenth of the rest, as commission.
        assert!(paid.abs_diff(owed * 55 / 100) < 3);

        // Nobody is behind this one but itself: its pool is gone.
        let had = Balances::free_balance(3);
        assert_ok!(Delegation::undelegate(signed(3), 3, OWN));
        assert_eq!(backing(3), 0);
        assert!(Balances::free_balance(3) - had >= 4 * session_pay(OWN, tau));

        // As the day ends nothing is minted for it once more. Its blocks count for the fees where its pool is
        // there still, and are the others' where it is gone.
        pass_sessions(DAY - 4);
        assert!(Delegation::claimable(11, 2) > backer);
        assert!(Delegation::claimable(1, 1) >= 4 * session_pay(OWN, tau) + fees / 5);
        assert!(Balances::free_balance(FEES) - ED < 4);
    });
}

#[test]
fn work_is_paid_beyond_its_price_less_for_each_missed_deadline_and_washing_it_loses() {
    on_chain(|| {
        // Provider and client are one.
        assert_ok!(Staking::bond(signed(22), Role::Provider, 50_000 * SURE));
        pass(1_000);
        let before = Balances::free_balance(22);
        let minted = work(1, 22, 22, 2 * SURE);
        let fee = SURE / 10;
        assert_eq!(minted, fee / 2);
        assert_eq!(Balances::free_balance(22), before - fee + minted);
        // With what validators get of the fee it is nine tenths of it.
        assert_eq!(minted + fee * 4 / 10, fee * 9 / 10);
        <TrustLock as ValidatorPenalties<_>>::note_missed(&22);
        assert_eq!(work(2, 22, 22, 2 * SURE), fee / 4);
        // Who has no stake gets its price and no more.
        assert_eq!(work(3, 22, 23, 2 * SURE), 0);
    });
}

#[test]
fn what_a_providers_stake_has_earned_goes_with_it() {
    on_chain(|| {
        assert_ok!(Staking::bond(signed(22), Role::Provider, 50_000 * SURE));
        pass(1_000);
        assert!(Emission::allowance(22) > 0);
        work(1, 21, 22, SURE);
        assert_ok!(Staking::unbond(signed(22), 50_000 * SURE));
        pass(UNBONDING);
        assert_ok!(Staking::withdraw_unbonded(signed(22)));
        assert!(!surety_pallet_emission::Allowances::<Test>::contains_key(22));
    });
}
