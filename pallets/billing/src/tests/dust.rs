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

/// Escrow keeps nobody's account: a client may send away all else it has.
#[test]
fn a_refund_too_small_for_an_account_that_is_gone_is_burned() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 10_051));
        assert_ok!(Balances::transfer_all(
            RuntimeOrigin::signed(CLIENT),
            OTHER_CLIENT,
            false
        ));
        assert!(!System::account_exists(&CLIENT));
        events();

        let settlement = Billing::settle(0, &[payment(ALICE, 9_524)], &[]).unwrap();
        assert_eq!(
            settlement,
            Settlement {
                paid: 9_524,
                fee: 476,
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
        assert_eq!((free(CLIENT), in_pot()), (0, 0));
    });
}

#[test]
fn a_refund_opens_an_account_that_is_gone() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        let all = RuntimeOrigin::signed(CLIENT);
        assert_ok!(Balances::transfer_all(all, OTHER_CLIENT, false));
        assert_ok!(Billing::refund(0));
        assert_eq!((free(CLIENT), in_pot()), (5_000, 0));
    });
}
