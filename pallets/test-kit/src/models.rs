//! A list of models.

use std::{cell::RefCell, collections::BTreeMap};

use sp_runtime::{DispatchError, DispatchResult};
use surety_types::{ModelId, model::Operation, traits::ModelCatalog};

thread_local! {
    static MODELS: RefCell<BTreeMap<ModelId, Vec<Operation>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Mock of [`ModelCatalog`].
pub struct MockModels;

impl MockModels {
    /// The catalogue's answer for a model it does not have.
    pub const UNKNOWN_MODEL: DispatchError = DispatchError::Other("UnknownModel");

    /// The catalogue's answer for an operation that the model lacks.
    pub const OPERATION_NOT_OFFERED: DispatchError = DispatchError::Other("OperationNotOffered");

    /// Forgets everything.
    pub fn reset() {
        MODELS.with_borrow_mut(BTreeMap::clear);
    }

    /// Registers a model that offers `operations`; an empty list makes one that offers nothing.
    pub fn add(model: ModelId, operations: &[Operation]) {
        MODELS.with_borrow_mut(|models| models.insert(model, operations.to_vec()));
    }

    /// Takes a model out.
    pub fn remove(model: ModelId) {
        MODELS.with_borrow_mut(|models| models.remove(&model));
    }
}

impl ModelCatalog for MockModels {
    fn check(model: &ModelId, operation: Operation) -> DispatchResult {
        MODELS.with_borrow(|models| {
            let operations = models.get(model).ok_or(Self::UNKNOWN_MODEL)?;
            if operations.contains(&operation) {
                Ok(())
            } else {
                Err(Self::OPERATION_NOT_OFFERED)
            }
        })
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn register_for_benchmark(operation: Operation) -> ModelId {
        let model = ModelId::repeat_byte(0xbe);
        Self::add(model, &[operation]);
        model
    }
}
