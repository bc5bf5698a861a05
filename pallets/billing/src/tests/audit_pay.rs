//! Auditors are paid out of what the provider earned that they audited.

use frame_support::{assert_noop, assert_ok};
use sp_runtime::Perbill;
use surety_types::{
    traits::{Escrow, Settlement},
    trust::AuditToPay,
};

use crate::{Error, Event, Totals, mock::*};

/// A verifier with an account.
const CAROL: AccountId = OTHER_CLIENT;

#[test]
fn an_auditor_gets_its_part_and_the_client_pays_no_more_for_it() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        let before = free(CAROL);
        events();
        let payments = [payment(ALICE, 1_000), payment(BOB, 2_000)];
        let settlement = Billing::settle(0, &payments, &[audit(ALICE, CAROL)]).unwrap();
        let as_without = Settlement {
            paid: 3_000,
            fee: 150,
            refund: 1_850,
        };
        assert_eq!(settlement, as_without);
        assert_eq!(free(CAROL), before + 120);
        assert_eq!((free(ALICE), free(BOB)), (ED + 880, ED + 2_000));
        let paid = Event::AuditorPaid {
            task: 0,
            verifier: CAROL,
            provider: ALICE,
            amount: 120,
        };
        assert_eq!(events()[0], paid);
        assert_eq!(Totals::<Test>::get().paid, 3_000);
    });
}

#[test]
fn many_auditors_share_what_there_is_for_all() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        let before = free(CAROL);
        let audits = vec![audit(ALICE, CAROL); 64];
        assert_ok!(Billing::settle(0, &[payment(ALICE, 1_000)], &audits));
        // 1,000 / 64, rounded down.
        assert_eq!(free(CAROL), before + 15 * 64);
        assert_eq!(free(ALICE), ED + 1_000 - 15 * 64);
    });
}

#[test]
fn who_is_not_paid_pays_no_auditors() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        let before = free(CAROL);
        assert_ok!(Billing::settle(0, &[payment(ALICE, 1_000)], &[audit(BOB, CAROL)]));
        assert_eq!((free(CAROL), free(ALICE)), (before, ED + 1_000));
    });
}

#[test]
fn who_is_late_is_not_paid_and_its_auditors_are() {
    TestExt::new().execute_with(|| {
        let issued = issuance();
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        let (before, client) = (free(CAROL), free(CLIENT));
        let paid = Billing::pay_audits(0, &[payment(ALICE, 1_000)], &[audit(ALICE, CAROL)]);
        assert_eq!(paid, Ok(120));
        assert_eq!((free(CAROL), free(ALICE)), (before + 120, ED));
        assert_eq!(Billing::held(0), 4_880);
        // The rest goes the usual way.
        assert_ok!(Billing::refund(0));
        assert_eq!(issuance(), issued);
        assert!(free(CLIENT) >= client + 4_880);
    });
}

#[test]
fn no_more_is_paid_for_audits_than_is_held() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 500));
        let too_dear = [payment(ALICE, 400), payment(BOB, 501)];
        assert_noop!(
            Billing::pay_audits(0, &too_dear, &[audit(ALICE, CAROL), audit(BOB, CAROL)]),
            Error::<Test>::PaymentsExceedEscrow
        );
        assert_noop!(
            Billing::pay_audits(1, &[payment(ALICE, 1)], &[]),
            Error::<Test>::UnknownEscrow
        );
    });
}

#[test]
fn shares_above_the_whole_leave_the_provider_nothing_and_take_no_more() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        let before = free(CAROL);
        let whole = AuditToPay {
            share: Perbill::one(),
            ..audit(ALICE, CAROL)
        };
        let audits = [whole.clone(), whole];
        assert_ok!(Billing::settle(0, &[payment(ALICE, 1_000)], &audits));
        assert_eq!((free(CAROL), free(ALICE)), (before + 1_000, ED));
    });
}

#[test]
fn washing_ones_own_task_as_client_provider_and_auditor_costs_the_fee() {
    TestExt::new().execute_with(|| {
        let before = free(CLIENT);
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        let audits = vec![audit(CLIENT, CLIENT); 64];
        let settlement = Billing::settle(0, &[payment(CLIENT, 4_000)], &audits).unwrap();
        assert_eq!(settlement.fee, 200);
        assert_eq!(free(CLIENT), before - 200);
    });
}

#[test]
fn what_an_auditors_account_cannot_take_is_burned() {
    TestExt::new().execute_with(|| {
        let issued = issuance();
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        assert_ok!(Billing::settle(0, &[payment(ALICE, 500)], &[audit(ALICE, GHOST)]));
        assert_eq!((free(GHOST), free(ALICE)), (0, ED + 440));
        // The burned fifth of the fee, and the audit's pay.
        assert_eq!(issuance(), issued - 5 - 60);
    });
}
