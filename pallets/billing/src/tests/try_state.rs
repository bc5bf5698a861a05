//! The checker notices what it should.

use frame_support::{
    assert_ok,
    traits::{
        fungible::{Mutate, MutateHold},
        tokens::{Fortitude, Precision, Preservation},
    },
};
use surety_types::traits::Escrow;

use crate::{Escrows, HoldReason, Pallet, Totals, mock::*};

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
fn money_that_somebody_took_out_of_the_pot_is_noticed() {
    assert_noticed("BILL-2", || {
        let (all, exact, force) = (Preservation::Expendable, Precision::Exact, Fortitude::Force);
        assert_ok!(Balances::burn_from(&Billing::pot(), 1, all, exact, force));
    });
}

#[test]
fn whatever_anybody_gives_the_pot_breaks_nothing() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        let gift = RuntimeOrigin::signed(OTHER_CLIENT);
        assert_ok!(Balances::transfer_allow_death(gift, Billing::pot(), 7));
        assert_ok!(Billing::refund(0));
        assert_eq!(in_pot(), 7);
    });
}

#[test]
fn escrow_that_is_still_on_hold_is_noticed() {
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
fn an_empty_escrow_is_noticed() {
    assert_noticed("BILL-3", || {
        assert_ok!(Billing::open(2, &CLIENT, 1_000));
        Escrows::<Test>::mutate(2, |escrow| escrow.as_mut().unwrap().held = 0);
        Totals::<Test>::mutate(|totals| totals.opened -= 1_000);
    });
}
