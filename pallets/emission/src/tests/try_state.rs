//! The checker notices each kind of damage.

use frame_support::{assert_err, assert_ok, traits::fungible::Mutate};
use surety_emission::{CAP, SURE};
use surety_types::traits::WorkPay;

use crate::{Allowance, Allowances, Minted, mock::*};

/// Does `damage` to a sound state with a provider, and expects the checker to say `complaint`.
#[track_caller]
fn damaged(damage: impl FnOnce(), complaint: &'static str) {
    TestExt::new().provider(1, 100 * SURE).build().execute_with(|| {
        pass_days(1);
        Emission::note_settled(&1, SURE);
        assert!(Allowances::<Test>::contains_key(1));
        assert_ok!(Emission::do_try_state());
        damage();
        assert_err!(Emission::do_try_state(), complaint);
    });
}

#[test]
fn emit_1_notices_money_that_nobody_minted() {
    let complaint = "EMIT-1: there is more than was ever minted";
    let more = || {
        assert_ok!(Balances::mint_into(&1, 1));
    };
    damaged(more, complaint);
    damaged(|| Minted::<Test>::mutate(|minted| *minted -= 1), complaint);
}

#[test]
fn emit_1_notices_more_than_may_ever_be_minted() {
    let complaint = "EMIT-1: more was minted than may ever be";
    damaged(|| Minted::<Test>::put(CAP + 1), complaint);
}

#[test]
fn emit_2_notices_allowances_of_others_and_from_the_future() {
    let allowance = |since| Allowance { amount: 1, since };
    damaged(
        || Allowances::<Test>::insert(2, allowance(1)),
        "EMIT-2: an allowance of somebody without stake",
    );
    damaged(
        || Allowances::<Test>::insert(1, allowance(System::block_number() + 1)),
        "EMIT-2: an allowance from a block to come",
    );
}
