//! What must hold between any two blocks. The ids are explained in the README.

use frame_support::ensure;
use sp_runtime::TryRuntimeError;

use crate::{Config, NextSlashId, Pallet, Slashes, SlashesSweptTo};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    ///
    /// # Errors
    /// Says which does not hold.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        trust_1_slashes_wait_in_order::<T>()
    }
}

fn trust_1_slashes_wait_in_order<T: Config>() -> Result<(), TryRuntimeError> {
    let (swept, next) = (SlashesSweptTo::<T>::get(), NextSlashId::<T>::get());
    ensure!(swept <= next, "TRUST-1: the sweep is ahead of the slashes");
    for (id, slash) in Slashes::<T>::iter() {
        ensure!(
            swept <= id && id < next && slash.proven_at <= slash.until,
            "TRUST-1: a slash that nobody will carry out"
        );
    }
    Ok(())
}
