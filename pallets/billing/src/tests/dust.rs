//! Amounts that no account can take.

use frame_support::assert_ok;
use surety_types::traits::{Escrow, Settlement};

use crate::{Event, Totals, mock::*};

#[test]
fn a_payment_too_small_for_a_new_account_is_burned_and_the_others_arrive() {
    TestExt::new().execute_with(|| {
        let issued = issuance();
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        events();

        let settlement = Billing::settle(0, &[payment(GHOST, ED - 1), payment(ALICE, 2_000)], &[]).unwrap();
        assert_eq!(
            settlement,
            Settlement {
                paid: 2_000 + ED - 1,
                fee: 104,
                refund: 2_797
            }
        );
        assert_eq!((free(GHOST), free(ALICE)), (0, ED + 2_000));
        assert_eq!(issuance(), issued - (ED - 1) - 22);
        assert_eq!(Totals::<Test>::get().burned, ED - 1 + 22);
        assert_eq!(
            events(),
            [
                Event::DustBurned {
                    task: 0,
                    payee: GHOST,
                    amount: ED - 1
                },
                Event::ProviderPaid {
                    task: 0,
                    provider: ALICE,
                    amount: 2_000
                },
                Event::FeeTaken {
                    task: 0,
                    treasury: 41,
                    validators: 41,
                    burned: 22
                },
                Event::EscrowRefunded {
                    task: 0,
                    client: CLIENT,
                    amount: 2_797
                },
            ]
        );
    });
}

#[test]
fn a_payment_of_the_existential_deposit_opens_an_account() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        assert_ok!(Billing::settle(0, &[payment(GHOST, ED)], &[]));
        assert_eq!(free(GHOST), ED);
    });
}

#[test]
fn an_existing_account_takes_any_payment() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        assert_ok!(Billing::settle(0, &[payment(ALICE, 1)], &[]));
        assert_eq!(free(ALICE), ED + 1);
    });
}

#[test]
fn a_payment_of_nothing_is_passed_over() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        events();
        assert_ok!(Billing::settle(0, &[payment(ALICE, 0)], &[]));
        assert_eq!(
            events(),
            [
                Event::FeeTaken {
                    task: 0,
                    treasury: 4,
                    validators: 4,
                    burned: 2
                },
                Event::EscrowRefunded {
                    task: 0,
                    client: CLIENT,
                    amount: 4_990
                },
            ]
        );
    });
}

#[test]
fn shares_of_the_fee_that_cannot_be_delivered_are_burned() {
    TestExt::new().without(TREASURY).without(POT).execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 10_000));
        events();
        let settlement = Billing::settle(0, &[payment(ALICE, 2_000)], &[]).unwrap();
        assert_eq!(settlement.fee, 100);
        assert_eq!(
            events()[1],
            Event::FeeTaken {
                task: 0,
                treasury: 0,
                validators: 0,
                burned: 100
            }
        );
        let totals = Totals::<Test>::get();
        assert_eq!((totals.fees, totals.burned), (0, 100));
    });
}

#[test]
fn a_large_share_opens_the_treasurys_account() {
    TestExt::new().without(TREASURY).execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 10_000));
        assert_ok!(Billing::settle(0, &[payment(ALICE, 5_000)], &[]));
        assert_eq!(free(TREASURY), 100);
    });
}

/// Something else may keep an account alive without money of its own, as session keys do. All of its money
/// can then be in escrow, and too little comes back to open a balance.
#[test]
fn a_refund_too_small_for_an_empty_account_is_burned() {
    TestExt::new().execute_with(|| {
        System::inc_providers(&CLIENT);
        assert_ok!(Billing::open(0, &CLIENT, 1_000_000));
        assert_eq!(free(CLIENT), 0);
        events();

        let settlement = Billing::settle(0, &[payment(ALICE, 952_333)], &[]).unwrap();
        assert_eq!(
            settlement,
            Settlement {
                paid: 952_333,
                fee: 47_616,
                refund: 51
            }
        );
        assert_eq!(
            events()[2],
            Event::DustBurned {
                task: 0,
                payee: CLIENT,
                amount: 51
            }
        );
        assert_eq!((free(CLIENT), on_hold(CLIENT)), (0, 0));
    });
}
