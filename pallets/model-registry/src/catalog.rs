//! What other pallets may know of models.

use frame_support::ensure;
use sp_runtime::{DispatchError, DispatchResult};
use surety_types::{
    ModelId,
    input::{ITEM_WORDS, SETTINGS_WORDS, ShapeFault, WORD_BYTES, Work},
    model::{ModelAudits, Operation, audit_speeds},
    traits::{ModelCatalog, SoldModels, WorkReferee},
};

use crate::{AuditSpeeds, Config, Error, ModelUse, Models, Pallet, Uses};

impl<T: Config> Pallet<T> {
    /// Changes what is kept of a model's use. A retired model goes with the last of it.
    fn change_use(model: &ModelId, change: impl FnOnce(&mut ModelUse)) {
        let mut used = Uses::<T>::take(model).unwrap_or_default();
        change(&mut used);
        if !used.is_over() {
            Uses::<T>::insert(model, used);
        } else if used.retired {
            Self::remove(model);
        }
    }
}

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
        // Each has an escrow of its own: there never are as many.
        Self::change_use(model, |used| used.tasks = used.tasks.saturating_add(1));
    }

    fn release(model: &ModelId) {
        Self::change_use(model, |used| used.tasks = used.tasks.saturating_sub(1));
    }

    fn uses(model: &ModelId) -> u32 {
        Uses::<T>::get(model).map_or(0, |used| used.tasks)
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

/// The least work that there is: of every model that can be registered that much can be disputed.
const fn least(operation: Operation) -> Work {
    let (words, units_max) = match operation {
        Operation::Embed => (ITEM_WORDS.saturating_add(1), 1),
        // A token of the prompt, and one more.
        Operation::Generate => (SETTINGS_WORDS.saturating_add(1), 2),
    };
    Work {
        operation,
        input_bytes: words.saturating_mul(WORD_BYTES),
        units_max,
    }
}

impl<T: Config> SoldModels for Pallet<T> {
    fn check(model: &ModelId, operation: Operation) -> DispatchResult {
        <Self as ModelCatalog>::check(model, &least(operation))?;
        let is_exact = Models::<T>::get(model).is_some_and(|entry| entry.manifest.has_referee());
        ensure!(is_exact, Error::<T>::NotExact);
        Ok(())
    }

    fn speed(model: &ModelId) -> Option<u32> {
        let manifest = Models::<T>::get(model)?.manifest;
        let (reference, _) = audit_speeds(manifest.work_per_token());
        Some(AuditSpeeds::<T>::get(model).unwrap_or(reference))
    }

    fn acquire(model: &ModelId) {
        // Each is covered by a standing lock, or has a bond of its own: there never are as many.
        Self::change_use(model, |used| used.sales = used.sales.saturating_add(1));
    }

    fn release(model: &ModelId) {
        Self::change_use(model, |used| used.sales = used.sales.saturating_sub(1));
    }

    fn uses(model: &ModelId) -> u32 {
        Uses::<T>::get(model).map_or(0, |used| used.sales)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn register_for_benchmark(operation: Operation, index: u32) -> ModelId {
        let owner: T::AccountId = frame_benchmarking::account("sold model owner", index, 0);
        let mut manifest = crate::benchmarking::largest(operation);
        manifest.weights_bytes = manifest.weights_bytes.saturating_sub(index.into());
        let model = manifest.id();
        if !Models::<T>::contains_key(model) {
            frame_support::assert_ok!(crate::asset::endow::<T>(&owner));
            frame_support::assert_ok!(Self::do_register(owner, manifest));
            // One is enough for those that look for who audits it.
            if index == 0 {
                crate::benchmarking::fill_auditors::<T>(model);
            }
            // Somebody has said how fast it is, so that this is looked up, too.
            AuditSpeeds::<T>::insert(model, u32::MAX);
        }
        model
    }
}
