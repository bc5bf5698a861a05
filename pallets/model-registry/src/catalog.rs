//! What other pallets may know of models.

use frame_support::ensure;
use sp_runtime::{DispatchError, DispatchResult};
use surety_types::{
    ModelId,
    input::{ShapeFault, Work},
    model::ModelAudits,
    traits::{ModelCatalog, WorkReferee},
};

#[cfg(feature = "runtime-benchmarks")]
use crate::AuditSpeeds;
use crate::{Config, Error, Models, Pallet, Uses};

impl<T: Config> ModelCatalog for Pallet<T> {
    fn check(model: &ModelId, work: &Work) -> DispatchResult {
        let entry = Models::<T>::get(model).ok_or(Error::<T>::UnknownModel)?;
        let manifest = entry.manifest;
        ensure!(
            manifest.operations.contains(&work.operation),
            Error::<T>::OperationNotOffered
        );
        let exact = manifest.exact.as_ref();
        let shape = work.check_shape(exact.map(|exact| exact.architecture.positions));
        shape.map_err(|fault| match fault {
            ShapeFault::Ragged => Error::<T>::InputRagged,
            ShapeFault::TooShort => Error::<T>::InputTooShort,
            ShapeFault::PromptTooLong => Error::<T>::PromptTooLong,
        })?;
        ensure!(
            exact.is_none_or(|exact| T::Referee::is_checkable(manifest.family, exact, work)),
            Error::<T>::WorkTooLarge
        );
        let retired = Uses::<T>::get(model).is_some_and(|used| used.retired);
        ensure!(!retired, Error::<T>::TakesNoTasks);
        Ok(())
    }

    fn audits(model: &ModelId, work: &Work, bond: u128) -> Result<ModelAudits, DispatchError> {
        Self::audits_of(model, work, bond)
    }

    fn acquire(model: &ModelId) {
        let mut used = Uses::<T>::get(model).unwrap_or_default();
        // Each has an escrow of its own: there never are as many.
        used.tasks = used.tasks.saturating_add(1);
        Uses::<T>::insert(model, used);
    }

    fn release(model: &ModelId) {
        let Some(mut used) = Uses::<T>::take(model) else {
            return;
        };
        used.tasks = used.tasks.saturating_sub(1);
        if used.tasks > 0 {
            Uses::<T>::insert(model, used);
        } else if used.retired {
            Self::remove(model);
        }
    }

    fn uses(model: &ModelId) -> u32 {
        Uses::<T>::get(model).map_or(0, |used| used.tasks)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn register_for_benchmark(operation: surety_types::model::Operation) -> ModelId {
        use frame_support::assert_ok;

        let owner: T::AccountId = frame_benchmarking::account("model owner", 0, 0);
        let manifest = crate::benchmarking::largest(operation);
        let model = manifest.id();
        if !Models::<T>::contains_key(model) {
            assert_ok!(crate::asset::endow::<T>(&owner));
            assert_ok!(Self::do_register(owner, manifest));
            crate::benchmarking::fill_auditors::<T>(model);
            // No machine would audit an item of it in time at the speed that it is taken for.
            AuditSpeeds::<T>::insert(model, u32::MAX);
        }
        model
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn retire_for_benchmark(model: &ModelId) {
        if let Some(entry) = Models::<T>::get(model) {
            frame_support::assert_ok!(Self::do_retire(entry.owner, *model));
        }
    }
}
