//! Putting money into escrow.

use frame_support::{
    assert_noop, assert_ok,
    traits::fungible::{Inspect, MutateFreeze},
};
use sp_runtime::TokenError;
use surety_types::traits::Escrow;

use crate::{Error, Event, Totals, mock::*};

#[test]
fn the_cap_leaves_the_clients_account() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(7, &CLIENT, 5_000));
        assert_eq!((Balances::total_balance(&CLIENT), in_pot()), (995_000, 5_000));
        assert_eq!(Billing::held(7), 5_000);
        assert_eq!(Totals::<Test>::get().opened, 5_000);
        assert_eq!(
            events(),
            [Event::EscrowOpened {
                task: 7,
                client: CLIENT,
                amount: 5_000
            }]
        );
    });
}

#[test]
fn escrows_of_one_client_add_up() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        assert_ok!(Billing::open(1, &CLIENT, 700));
        assert_eq!(in_pot(), 5_700);
        assert_ok!(Billing::refund(0));
        assert_eq!(in_pot(), 700);
    });
}

#[test]
fn a_task_has_one_escrow() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        assert_noop!(
            Billing::open(0, &OTHER_CLIENT, 5_000),
            Error::<Test>::EscrowExists
        );
    });
}

#[test]
fn nothing_cannot_be_put_into_escrow() {
    TestExt::new().execute_with(|| {
        assert_noop!(Billing::open(0, &CLIENT, 0), Error::<Test>::CapBelowFee);
    });
}

#[test]
fn a_client_cannot_put_up_more_than_it_has() {
    TestExt::new().execute_with(|| {
        assert_noop!(Billing::open(0, &CLIENT, 1_000_001), TokenError::FundsUnavailable);
        assert_noop!(Billing::open(0, &CLIENT, 1_000_000), TokenError::NotExpendable);
        assert_ok!(Billing::open(0, &CLIENT, 1_000_000 - ED));
    });
}

/// Votes and vesting freeze so. Whatever is staked or on hold, the sum of both stays.
#[test]
fn what_is_frozen_cannot_be_put_into_escrow() {
    TestExt::new().execute_with(|| {
        ClientLock::set(sp_runtime::Permill::from_percent(25));
        assert_ok!(Balances::set_freeze(&(), &CLIENT, 900_000));
        assert_noop!(Billing::open(0, &CLIENT, 80_001), TokenError::Frozen);
        assert_ok!(Billing::open(0, &CLIENT, 80_000));
        assert_noop!(Billing::open(1, &CLIENT, 20), TokenError::Frozen);
        assert_eq!(Balances::total_balance(&CLIENT), 900_000);
        assert_ok!(Billing::settle(0, &[payment(CLIENT, 1_000)], &[]));
    });
}

/// As a stash is that has all its money at stake.
#[test]
fn who_has_everything_in_escrow_keeps_its_account() {
    TestExt::new().execute_with(|| {
        System::inc_providers(&CLIENT);
        assert_noop!(Billing::open(0, &CLIENT, 1_000_000), TokenError::NotExpendable);
        assert_ok!(Billing::open(0, &CLIENT, 1_000_000 - ED));
        assert_eq!(free(CLIENT), ED);
    });
}

#[test]
fn money_in_escrow_cannot_be_promised_twice() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 600_000));
        assert_noop!(Billing::open(1, &CLIENT, 600_000), TokenError::FundsUnavailable);
    });
}

#[test]
fn an_unknown_task_holds_nothing() {
    TestExt::new().execute_with(|| assert_eq!(Billing::held(3), 0));
}
