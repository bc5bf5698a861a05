//! Paying for a task.

use frame_support::{
    assert_noop, assert_ok,
    traits::fungible::{Inspect, MutateFreeze},
};
use sp_runtime::Permill;
use surety_types::traits::{Escrow, Settlement};

use crate::{Error, Escrows, Event, Totals, mock::*};

#[test]
fn providers_protocol_and_client_get_their_parts() {
    TestExt::new().execute_with(|| {
        let issued = issuance();
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        events();

        let settlement = Billing::settle(0, &[payment(ALICE, 1_000), payment(BOB, 2_000)], &[]).unwrap();
        assert_eq!(
            settlement,
            Settlement {
                paid: 3_000,
                fee: 150,
                refund: 1_850
            }
        );
        assert_eq!(free(ALICE), ED + 1_000);
        assert_eq!(free(BOB), ED + 2_000);
        assert_eq!(free(TREASURY), ED + 60);
        assert_eq!(free(POT), ED + 60);
        assert_eq!(free(CLIENT), 1_000_000 - 3_150);
        assert_eq!(in_pot(), 0);
        assert_eq!(issuance(), issued - 30);
        assert!(!Escrows::<Test>::contains_key(0));
        assert_eq!(
            events(),
            [
                Event::ProviderPaid {
                    task: 0,
                    provider: ALICE,
                    amount: 1_000
                },
                Event::ProviderPaid {
                    task: 0,
                    provider: BOB,
                    amount: 2_000
                },
                Event::FeeTaken {
                    task: 0,
                    treasury: 60,
                    validators: 60,
                    burned: 30
                },
                Event::EscrowRefunded {
                    task: 0,
                    client: CLIENT,
                    amount: 1_850
                },
            ]
        );
        let totals = Totals::<Test>::get();
        assert_eq!((totals.opened, totals.paid, totals.fees), (5_000, 3_000, 120));
        assert_eq!((totals.burned, totals.refunded), (30, 1_850));
    });
}

#[test]
fn a_small_task_pays_the_least_fee() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 1_000));
        let settlement = Billing::settle(0, &[payment(ALICE, 1)], &[]).unwrap();
        assert_eq!(
            settlement,
            Settlement {
                paid: 1,
                fee: 10,
                refund: 989
            }
        );
    });
}

#[test]
fn without_fees_no_fee_is_reported() {
    TestExt::new().execute_with(|| {
        FeeRate::set(Permill::zero());
        FeeMin::set(0);
        assert_ok!(Billing::open(0, &CLIENT, 1_000));
        events();
        assert_ok!(Billing::settle(0, &[payment(ALICE, 1_000)], &[]));
        assert_eq!(
            events(),
            [Event::ProviderPaid {
                task: 0,
                provider: ALICE,
                amount: 1_000
            }]
        );
    });
}

#[test]
fn payments_above_the_escrow_are_refused() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        for payments in [
            vec![payment(ALICE, 5_001)],
            vec![payment(ALICE, 2_501), payment(BOB, 2_500)],
            vec![payment(ALICE, u128::MAX), payment(BOB, 1)],
        ] {
            assert_noop!(
                Billing::settle(0, &payments, &[]),
                Error::<Test>::PaymentsExceedEscrow
            );
        }
    });
}

#[test]
fn a_task_without_escrow_cannot_be_settled() {
    TestExt::new().execute_with(|| {
        assert_noop!(Billing::settle(0, &[], &[]), Error::<Test>::UnknownEscrow);
    });
}

#[test]
fn a_task_is_settled_once() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        assert_ok!(Billing::settle(0, &[payment(ALICE, 1_000)], &[]));
        assert_noop!(
            Billing::settle(0, &[payment(ALICE, 1_000)], &[]),
            Error::<Test>::UnknownEscrow
        );
        assert_noop!(Billing::refund(0), Error::<Test>::UnknownEscrow);
    });
}

/// What a client put up beyond what it pays is its own, whoever sets parameters afterwards.
#[test]
fn the_fee_is_the_one_that_the_task_was_posted_with() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        assert_ok!(Billing::open(1, &CLIENT, 5_000));
        FeeRate::set(Permill::from_percent(50));
        FeeMin::set(4_000);
        ValidatorShare::set(Permill::from_percent(60));
        let fee = |task, price| {
            let settlement = Billing::settle(task, &[payment(ALICE, price)], &[]);
            settlement.map(|settlement| (settlement.fee, settlement.refund))
        };
        assert_eq!(fee(0, 1_000), Ok((50, 3_950)));
        assert_ok!(Billing::open(2, &CLIENT, 5_000));
        FeeRate::set(Permill::zero());
        FeeMin::set(0);
        assert_eq!(fee(1, 20), Ok((10, 4_970)));
        assert_eq!(fee(2, 500), Ok((4_000, 500)));
    });
}

#[test]
fn a_fee_lowered_before_the_draw_takes_no_more_than_is_left() {
    TestExt::new().execute_with(|| {
        FeeRate::set(Permill::from_percent(50));
        assert_ok!(Billing::open(0, &CLIENT, 1_050));
        FeeRate::set(Permill::from_percent(5));
        let price = Billing::price_limit(1_050, 1).unwrap();
        let settlement = Billing::settle(0, &[payment(ALICE, price)], &[]).unwrap();
        assert_eq!(
            settlement,
            Settlement {
                paid: 1_000,
                fee: 50,
                refund: 0
            }
        );
    });
}

#[test]
fn shares_above_the_whole_never_take_more_than_the_fee() {
    TestExt::new().execute_with(|| {
        TreasuryShare::set(Permill::from_percent(90));
        ValidatorShare::set(Permill::from_percent(90));
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        assert_ok!(Billing::settle(0, &[payment(ALICE, 2_000)], &[]));
        assert_eq!((free(TREASURY), free(POT)), (ED + 90, ED + 10));
    });
}

#[test]
fn a_client_may_be_its_own_provider() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        assert_ok!(Billing::settle(0, &[payment(CLIENT, 2_000)], &[]));
        assert_eq!(free(CLIENT), 1_000_000 - 100);
    });
}

#[test]
fn one_settlement_leaves_other_escrows_alone() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        assert_ok!(Billing::open(1, &CLIENT, 4_000));
        assert_ok!(Billing::open(2, &OTHER_CLIENT, 3_000));
        assert_ok!(Billing::settle(0, &[payment(ALICE, 4_000)], &[]));
        assert_eq!((Billing::held(1), Billing::held(2)), (4_000, 3_000));
        assert_eq!(in_pot(), 7_000);
    });
}

#[test]
fn a_freeze_on_the_clients_account_does_not_withhold_pay() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 900_000));
        assert_ok!(Balances::set_freeze(
            &(),
            &CLIENT,
            Balances::total_balance(&CLIENT)
        ));
        assert_ok!(Billing::settle(0, &[payment(ALICE, 800_000)], &[]));
        assert_eq!(free(ALICE), ED + 800_000);
        assert_eq!(in_pot(), 0);
    });
}

#[test]
fn each_providers_work_is_told_with_the_part_of_the_fee_that_its_price_has_paid() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        let audits = [audit(BOB, GHOST)];
        assert_ok!(Billing::settle(
            0,
            &[payment(ALICE, 1_000), payment(BOB, 2_000)],
            &audits
        ));
        // Of 150, whatever an auditor gets of the price.
        assert_eq!(NotedWork::take(), [(ALICE, 50), (BOB, 100)]);
        // What does not divide is nobody's, and the least fee is shared like any.
        assert_ok!(Billing::open(1, &CLIENT, 1_000));
        assert_ok!(Billing::settle(1, &[payment(ALICE, 1), payment(BOB, 2)], &[]));
        assert_eq!(NotedWork::take(), [(ALICE, 3), (BOB, 6)]);
    });
}

#[test]
fn work_that_paid_no_fee_is_not_told() {
    TestExt::new().execute_with(|| {
        FeeRate::set(Permill::zero());
        FeeMin::set(0);
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        assert_ok!(Billing::settle(0, &[payment(ALICE, 1_000)], &[]));
        FeeMin::set(10);
        assert_ok!(Billing::open(1, &CLIENT, 5_000));
        assert_ok!(Billing::open(2, &CLIENT, 5_000));
        assert_ok!(Billing::refund(1));
        assert_ok!(Billing::forfeit(2, &[ALICE]));
        // Nor is what could not be settled.
        assert_ok!(Billing::open(3, &CLIENT, 1_000));
        assert_noop!(
            Billing::settle(3, &[payment(ALICE, 1_001)], &[]),
            Error::<Test>::PaymentsExceedEscrow
        );
        assert_eq!(NotedWork::take(), []);
    });
}
