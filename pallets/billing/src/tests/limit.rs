//! What a provider may be paid.

use frame_support::{assert_noop, assert_ok};
use surety_types::traits::Escrow;

use crate::{Error, mock::*};

#[test]
fn a_task_paid_at_its_limit_uses_up_its_cap() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 3_150));
        let price = Billing::price_limit(3_150, 3).unwrap();
        assert_eq!(price, 1_000);

        let paid = [
            payment(ALICE, price),
            payment(BOB, price),
            payment(OTHER_CLIENT, price),
        ];
        let settlement = Billing::settle(0, &paid, &[]).unwrap();
        assert_eq!(
            (settlement.paid, settlement.fee, settlement.refund),
            (3_000, 150, 0)
        );
    });
}

#[test]
fn a_cap_below_the_smallest_fee_is_refused() {
    TestExt::new().execute_with(|| {
        assert_noop!(Billing::price_limit(12, 3), Error::<Test>::CapBelowFee);
        assert_eq!(Billing::price_limit(13, 3), Ok(1));
    });
}

#[test]
fn nobody_can_be_paid_nothing() {
    TestExt::new().execute_with(|| {
        assert_noop!(Billing::price_limit(1_000, 0), Error::<Test>::CapBelowFee);
    });
}
