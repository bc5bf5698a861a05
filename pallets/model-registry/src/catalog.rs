//! What other pallets may know of models.

use frame_support::ensure;
use sp_runtime::DispatchResult;
use surety_types::{ModelId, model::Operation, traits::ModelCatalog};

use crate::{Config, Error, Models, Pallet};

impl<T: Config> ModelCatalog for Pallet<T> {
    fn check(model: &ModelId, operation: Operation) -> DispatchResult {
        let entry = Models::<T>::get(model).ok_or(Error::<T>::UnknownModel)?;
        ensure!(
            entry.manifest.operations.contains(&operation),
            Error::<T>::OperationNotOffered
        );
        Ok(())
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn register_for_benchmark(operation: Operation) -> ModelId {
        use frame_support::assert_ok;

        let owner: T::AccountId = frame_benchmarking::account("model owner", 0, 0);
        let manifest = crate::benchmarking::largest(operation);
        let model = manifest.id();
        if !Models::<T>::contains_key(model) {
            assert_ok!(crate::asset::endow::<T>(&owner));
            assert_ok!(Self::do_register(owner, manifest));
        }
        model
    }
}
