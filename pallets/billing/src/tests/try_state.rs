//! The checker notices what it should.

use frame_support::{
    assert_ok,
    traits::{
        fungible::MutateHold,
        tokens::{Fortitude, Precision},
    },
};
use surety_types::traits::Escrow;

use crate::{EscrowRecord, Escrows, HoldReason, Pallet, Totals, mock::*};

#[track_caller]
fn assert_noticed(id: &str, corrupt: impl FnOnce()) {
    TestExt::new().run(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        assert_ok!(Billing::open(1, &CLIENT, 3_000));
        assert_ok!(Billing::settle(1, &[payment(ALICE, 2_000)], &[]));
        assert_ok!(Pallet::<Test>::do_try_state());
        corrupt();
        let noticed = Pallet::<Test>::do_try_state();
        assert!(
            matches!(noticed, Err(sp_runtime::DispatchError::Other(text)) if text.starts_with(id)),
            "{noticed:?}"
        );
    });
}

#[test]
fn money_from_nowhere_is_noticed() {
    assert_noticed("BILL-1", || Totals::<Test>::mutate(|totals| totals.paid += 1));
    assert_noticed("BILL-1", || Totals::<Test>::mutate(|totals| totals.burned -= 1));
    assert_noticed("BILL-1", || {
        Totals::<Test>::mutate(|totals| totals.refunded = u128::MAX)
    });
}

#[test]
fn a_lost_escrow_is_noticed() {
    assert_noticed("BILL-1", || Escrows::<Test>::remove(0));
}

#[test]
fn a_hold_that_somebody_else_took_is_noticed() {
    assert_noticed("BILL-2", || {
        let (exact, force) = (Precision::Exact, Fortitude::Force);
        assert_ok!(Balances::burn_held(
            &HoldReason::Escrow.into(),
            &CLIENT,
            1,
            exact,
            force
        ));
    });
}

#[test]
fn a_hold_that_no_escrow_explains_is_noticed() {
    assert_noticed("BILL-2", || {
        assert_ok!(Balances::hold(&HoldReason::Escrow.into(), &OTHER_CLIENT, 1));
    });
}

#[test]
fn a_lock_that_is_forgotten_is_noticed() {
    assert_noticed("BILL-1", || {
        ClientLock::set(sp_runtime::Permill::from_percent(25));
        assert_ok!(Billing::open(2, &CLIENT, 1_000));
        assert_ok!(Pallet::<Test>::do_try_state());
        Escrows::<Test>::mutate(2, |escrow| escrow.as_mut().unwrap().lock = 0);
    });
}

#[test]
fn an_escrow_on_the_wrong_account_is_noticed() {
    assert_noticed("BILL-2", || {
        Escrows::<Test>::mutate(0, |escrow| escrow.as_mut().unwrap().client = OTHER_CLIENT);
    });
}

#[test]
fn an_empty_escrow_is_noticed() {
    assert_noticed("BILL-3", || {
        Escrows::<Test>::insert(
            9,
            EscrowRecord {
                client: OTHER_CLIENT,
                held: 0,
                lock: 0,
            },
        );
    });
}
