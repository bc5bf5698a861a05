//! Escrow that was on hold when the pot came.

use frame_support::{
    assert_noop, assert_ok,
    storage::unhashed,
    traits::{
        GetStorageVersion, OnRuntimeUpgrade, StorageVersion,
        fungible::{InspectHold, MutateFreeze, MutateHold},
    },
};
use sp_runtime::Permill;
use surety_types::traits::Escrow;

use crate::{
    Escrows, HoldReason, Pallet, Totals,
    migrations::{EscrowIntoPot, OldEscrow},
    mock::*,
};

type Upgrade = EscrowIntoPot<Test>;

/// Two tasks as version 1 kept them: 5,000 with a lock of 500 beside it, and 60.
fn version_1() {
    StorageVersion::new(1).put::<Pallet<Test>>();
    for (task, client, held, lock) in [(0, CLIENT, 5_000, 500), (1, OTHER_CLIENT, 60, 0)] {
        assert_ok!(Balances::hold(&HoldReason::Escrow.into(), &client, held + lock));
        unhashed::put(
            &Escrows::<Test>::hashed_key_for(task),
            &OldEscrow { client, held, lock },
        );
        Totals::<Test>::mutate(|totals| totals.opened += held + lock);
    }
}

fn on_hold() -> Balance {
    [CLIENT, OTHER_CLIENT]
        .map(|who| Balances::balance_on_hold(&HoldReason::Escrow.into(), &who))
        .iter()
        .sum()
}

#[test]
fn escrow_on_hold_is_moved_into_the_pot_once_whatever_is_frozen_and_is_paid_from_there() {
    TestExt::new().execute_with(|| {
        version_1();
        assert_ok!(Balances::set_freeze(&(), &CLIENT, 1_000_000));
        let issued = issuance();
        Upgrade::on_runtime_upgrade();
        assert_eq!((in_pot(), on_hold()), (5_560, 0));
        assert_eq!(issuance(), issued);
        assert_eq!(Pallet::<Test>::on_chain_storage_version(), 2);
        assert_eq!(Pallet::<Test>::do_try_state(), Ok(()));
        Upgrade::on_runtime_upgrade();
        assert_eq!(in_pot(), 5_560);
        // The fee is what it was when the escrow came into the pot.
        FeeRate::set(Permill::from_percent(50));
        assert_ok!(Billing::settle(0, &[payment(ALICE, 1_000)], &[]));
        assert_ok!(Billing::refund(1));
        assert_noop!(Billing::refund(1), crate::Error::<Test>::UnknownEscrow);
        assert_eq!((free(CLIENT), in_pot()), (1_000_000 - 1_050, 0));
        assert_eq!(free(OTHER_CLIENT), 1_000_000);
    });
}

#[test]
fn escrow_of_version_1_is_noticed_before_it_was_moved() {
    TestExt::new().run(|| {
        version_1();
        assert!(Pallet::<Test>::do_try_state().is_err());
        Upgrade::on_runtime_upgrade();
        assert_eq!(Pallet::<Test>::do_try_state(), Ok(()));
    });
}
