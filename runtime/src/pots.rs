//! Accounts of the chain itself, which no key opens. Each has an existential deposit beside what is in it:
//! fees and prices are smaller than that, and what is left of it when others have been paid would be burned.

#![warn(missing_docs)]

use alloc::format;
use frame_support::{
    traits::{OnRuntimeUpgrade, fungible::Mutate, tokens::Preservation},
    weights::Weight,
};
use sp_core::crypto::Ss58Codec;
use surety_types::traits::PoolLedger;

use crate::{
    AccountId, Balances, Billing, Channels, Delegation, Runtime,
    configs::{
        channels::LevyPot,
        compute::{TreasuryAccount, ValidatorPot},
        trust::InsurancePool,
    },
    units::EXISTENTIAL_DEPOSIT,
};

/// All of them.
pub fn all() -> [AccountId; 7] {
    [
        TreasuryAccount::get(),
        ValidatorPot::get(),
        InsurancePool::get(),
        LevyPot::get(),
        Delegation::pot(),
        Billing::pot(),
        Channels::pot(),
    ]
}

/// Those that have less than an existential deposit.
pub fn without_deposit() -> impl Iterator<Item = AccountId> {
    all()
        .into_iter()
        .filter(|pot| Balances::free_balance(pot) < EXISTENTIAL_DEPOSIT)
}

/// Has the treasury give each pot that lacks it what genesis gives. With every upgrade, as pots may have come
/// with it whose pallets have no migration; before those that fill pots, which would hide that one lacks it.
pub struct Endow;

impl OnRuntimeUpgrade for Endow {
    fn on_runtime_upgrade() -> Weight {
        for pot in without_deposit() {
            let given = Balances::transfer(
                &TreasuryAccount::get(),
                &pot,
                EXISTENTIAL_DEPOSIT,
                Preservation::Preserve,
            );
            if given.is_err() {
                // Nothing is minted for it. Anybody can send it.
                let address = pot.to_ss58check();
                sp_runtime::print(format!("{address} needs an existential deposit: send it").as_str());
            }
        }
        let accounts = all().len() as u64;
        <Runtime as frame_system::Config>::DbWeight::get().reads_writes(accounts, accounts)
    }

    #[cfg(feature = "try-runtime")]
    fn post_upgrade(_: alloc::vec::Vec<u8>) -> Result<(), sp_runtime::TryRuntimeError> {
        frame_support::ensure!(
            without_deposit().next().is_none(),
            "a pot has no existential deposit"
        );
        Ok(())
    }
}
