//! What the calls do, once their origin is known.

use frame_support::{
    ensure,
    traits::{Defensive, Get},
};
use sp_runtime::{DispatchError, DispatchResult};
use surety_types::{
    ModelId,
    input::Work,
    model::{ArchitectureError, ExactForm, ModelManifest},
    traits::WorkReferee,
};

use crate::{Config, Error, Event, Model, ModelOf, ModelUse, Models, Pallet, Uses, asset};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_register(
        owner: T::AccountId,
        manifest: ModelManifest,
    ) -> Result<ModelId, DispatchError> {
        check_manifest::<T>(&manifest)?;
        // An encoder's smallest task may have as long an item as any other.
        let smallest = Work::smallest(manifest.family.operation());
        let is_playable = |exact| T::Referee::is_checkable(manifest.family, exact, &smallest);
        ensure!(
            manifest.exact.as_ref().is_none_or(is_playable),
            Error::<T>::TooManyPositions
        );
        let model = manifest.id();
        let used = Uses::<T>::get(model).unwrap_or_default();
        let known = Models::<T>::get(model);
        ensure!(known.is_none() || used.retired, Error::<T>::AlreadyRegistered);
        // Otherwise whoever retires it could keep it from everybody with tasks of its own.
        if let Some(retired) = known {
            Self::return_deposit(model, retired);
            Uses::<T>::insert(
                model,
                ModelUse {
                    retired: false,
                    ..used
                },
            );
        }
        let deposit = T::ModelDeposit::get();
        asset::hold::<T>(&owner, deposit)?;
        let entry = Model {
            owner: owner.clone(),
            manifest,
            deposit,
        };
        Models::<T>::insert(model, entry);
        Self::deposit_event(Event::Registered {
            model,
            owner,
            deposit,
        });
        Ok(model)
    }

    pub(crate) fn do_retire(owner: T::AccountId, model: ModelId) -> DispatchResult {
        let entry = Models::<T>::get(model).ok_or(Error::<T>::UnknownModel)?;
        ensure!(entry.owner == owner, Error::<T>::NotOwner);
        let used = Uses::<T>::get(model).unwrap_or_default();
        ensure!(!used.retired, Error::<T>::AlreadyRetired);
        let ModelUse { tasks, sales, .. } = used;
        Self::deposit_event(Event::Retired {
            model,
            owner,
            tasks,
            sales,
        });
        if used.is_over() {
            Self::remove(&model);
        } else {
            let retired = true;
            Uses::<T>::insert(model, ModelUse { retired, ..used });
        }
        Ok(())
    }

    /// Takes a model out that nobody uses any more. Who audits it, and how fast its reference machine is,
    /// stays: otherwise whoever came first could take that away again and again, and no task would be taken.
    pub(crate) fn remove(model: &ModelId) {
        if let Some(entry) = Models::<T>::take(model) {
            Self::return_deposit(*model, entry);
        }
    }

    fn return_deposit(model: ModelId, entry: ModelOf<T>) {
        let Model { owner, deposit, .. } = entry;
        // It was put on hold when the model was registered. Should it be gone all the same, the log says so.
        asset::release::<T>(&owner, deposit).defensive_unwrap_or_default();
        Self::deposit_event(Event::Removed {
            model,
            owner,
            deposit,
        });
    }
}

/// Whether the manifest describes something that can be run.
pub(crate) fn check_manifest<T: Config>(manifest: &ModelManifest) -> Result<(), Error<T>> {
    ensure!(!manifest.operations.is_empty(), Error::<T>::NoOperations);
    ensure!(!manifest.name.is_empty(), Error::<T>::InvalidName);
    ensure!(manifest.weights_bytes > 0, Error::<T>::EmptyWeights);
    match &manifest.exact {
        Some(exact) => check_exact(manifest, exact),
        None => Ok(()),
    }
}

/// Whether the numbers of some result can be checked: whoever computed it would be punished for what nobody
/// can get right.
fn check_exact<T: Config>(manifest: &ModelManifest, exact: &ExactForm) -> Result<(), Error<T>> {
    let offered = manifest.family.operation();
    let mut operations = manifest.operations.iter();
    ensure!(
        operations.all(|operation| *operation == offered),
        Error::<T>::ForeignOperation
    );
    exact.architecture.check(manifest.family).map_err(refusal)?;
    let mut special = manifest.text.ids();
    ensure!(
        special.all(|id| id < exact.architecture.vocabulary),
        Error::<T>::UnknownToken
    );
    Ok(())
}

const fn refusal<T: Config>(error: ArchitectureError) -> Error<T> {
    match error {
        ArchitectureError::ZeroDimension => Error::ZeroDimension,
        ArchitectureError::VocabularyTooLarge => Error::VocabularyTooLarge,
        ArchitectureError::TooWide => Error::TooWide,
        ArchitectureError::TooManyLayers => Error::TooManyLayers,
        ArchitectureError::TooManyHeads => Error::TooManyHeads,
        ArchitectureError::HeadsTooWide => Error::HeadsTooWide,
        ArchitectureError::InnerTooWide => Error::InnerTooWide,
        ArchitectureError::TooManyPositions => Error::TooManyPositions,
        ArchitectureError::TooFewPositions => Error::TooFewPositions,
        ArchitectureError::UnevenHeads => Error::UnevenHeads,
        ArchitectureError::UnalignedWidth => Error::UnalignedWidth,
        ArchitectureError::ForeignActivation => Error::ForeignActivation,
        ArchitectureError::ForeignPooling => Error::ForeignPooling,
        ArchitectureError::InvalidEpsilon => Error::InvalidEpsilon,
    }
}
