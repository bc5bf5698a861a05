//! Putting money into escrow.

use frame_support::{assert_noop, assert_ok};
use sp_runtime::TokenError;
use surety_types::traits::Escrow;

use crate::{Error, Event, Totals, mock::*};

#[test]
fn the_cap_is_held_on_the_clients_account() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(7, &CLIENT, 5_000));
        assert_eq!(free(CLIENT), 995_000);
        assert_eq!(on_hold(CLIENT), 5_000);
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
        assert_eq!(on_hold(CLIENT), 5_700);
        assert_ok!(Billing::refund(0));
        assert_eq!(on_hold(CLIENT), 700);
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
        assert_noop!(Billing::open(0, &CLIENT, 1_000_000), TokenError::FundsUnavailable);
        assert_ok!(Billing::open(0, &CLIENT, 1_000_000 - ED));
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
