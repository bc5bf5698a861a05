//! The invariants of the README, one function each.

use alloc::collections::{BTreeMap, BTreeSet};

use frame_support::ensure;
use sp_runtime::{
    TryRuntimeError,
    traits::{Saturating, Zero},
};

use crate::{Auditors, BalanceOf, Config, Models, Pallet, Uses, asset, calls::check_manifest};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        Self::model_1_keys_are_hashes()?;
        Self::model_2_manifests_are_sound()?;
        Self::model_3_deposits_are_held()?;
        Self::model_4_what_is_used_is_there()?;
        Self::model_5_auditors_are_different()
    }

    fn model_1_keys_are_hashes() -> Result<(), TryRuntimeError> {
        for (model, entry) in Models::<T>::iter() {
            ensure!(
                model == entry.manifest.id(),
                "MODEL-1: a model is not stored under its hash"
            );
        }
        Ok(())
    }

    fn model_2_manifests_are_sound() -> Result<(), TryRuntimeError> {
        for entry in Models::<T>::iter_values() {
            let sound = check_manifest::<T>(&entry.manifest).is_ok();
            ensure!(sound, "MODEL-2: a manifest should have been refused");
        }
        Ok(())
    }

    fn model_3_deposits_are_held() -> Result<(), TryRuntimeError> {
        let mut deposits = BTreeMap::<T::AccountId, BalanceOf<T>>::new();
        for entry in Models::<T>::iter_values() {
            let sum = deposits.entry(entry.owner).or_insert_with(Zero::zero);
            *sum = sum.saturating_add(entry.deposit);
        }
        ensure!(
            asset::are_recorded::<T>(&deposits),
            "MODEL-3: the hold differs from the deposits"
        );
        Ok(())
    }

    fn model_5_auditors_are_different() -> Result<(), TryRuntimeError> {
        for auditors in Auditors::<T>::iter_values() {
            let different: BTreeSet<_> = auditors.iter().collect();
            ensure!(
                different.len() == auditors.len() && !auditors.is_empty(),
                "MODEL-5: no auditors, or one twice"
            );
        }
        Ok(())
    }

    fn model_4_what_is_used_is_there() -> Result<(), TryRuntimeError> {
        for (model, used) in Uses::<T>::iter() {
            ensure!(
                !used.is_over() && Models::<T>::contains_key(model),
                "MODEL-4: a use by nothing, or of no model"
            );
        }
        Ok(())
    }
}
