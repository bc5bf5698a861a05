//! The invariants of the README, one function each.

use frame_support::ensure;
use sp_runtime::{TryRuntimeError, traits::Zero};
use surety_types::traits::StakeLedger;

use crate::{Allowances, Config, Minted, Pallet, asset};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    ///
    /// # Errors
    /// Says which does not hold.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        Self::emit_1_nothing_is_beyond_the_cap()?;
        Self::emit_2_allowances_have_stake()
    }

    fn emit_1_nothing_is_beyond_the_cap() -> Result<(), TryRuntimeError> {
        let minted = Minted::<T>::get();
        ensure!(
            asset::issued::<T>() <= minted,
            "EMIT-1: there is more than was ever minted"
        );
        ensure!(
            minted.into() <= surety_emission::CAP,
            "EMIT-1: more was minted than may ever be"
        );
        Ok(())
    }

    fn emit_2_allowances_have_stake() -> Result<(), TryRuntimeError> {
        let now = frame_system::Pallet::<T>::block_number();
        for (provider, allowance) in Allowances::<T>::iter() {
            ensure!(
                !T::Stake::stake(&provider).is_zero(),
                "EMIT-2: an allowance of somebody without stake"
            );
            ensure!(
                allowance.since <= now,
                "EMIT-2: an allowance from a block to come"
            );
        }
        Ok(())
    }
}
