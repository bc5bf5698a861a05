//! Returning a client's money.

use frame_support::{assert_noop, assert_ok};
use surety_types::traits::Escrow;

use crate::{Error, Event, Totals, mock::*};

#[test]
fn the_client_gets_everything_back() {
    TestExt::new().execute_with(|| {
        let issued = issuance();
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        events();
        assert_ok!(Billing::refund(0));
        assert_eq!((free(CLIENT), in_pot()), (1_000_000, 0));
        assert_eq!(issuance(), issued);
        assert_eq!(
            events(),
            [Event::EscrowRefunded {
                task: 0,
                client: CLIENT,
                amount: 5_000
            }]
        );
        assert_eq!(Totals::<Test>::get().refunded, 5_000);
    });
}

#[test]
fn a_task_without_escrow_cannot_be_refunded() {
    TestExt::new().execute_with(|| {
        assert_noop!(Billing::refund(0), Error::<Test>::UnknownEscrow);
    });
}

#[test]
fn a_task_is_refunded_once() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        assert_ok!(Billing::open(1, &CLIENT, 5_000));
        assert_ok!(Billing::refund(0));
        assert_noop!(Billing::refund(0), Error::<Test>::UnknownEscrow);
        assert_eq!(Billing::held(1), 5_000);
    });
}

#[test]
fn an_escrow_may_be_opened_again_after_it_was_closed() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        assert_ok!(Billing::refund(0));
        assert_ok!(Billing::open(0, &OTHER_CLIENT, 6_000));
        assert_eq!(Billing::held(0), 6_000);
    });
}
