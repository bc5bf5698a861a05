//! A list of models.

use std::{cell::RefCell, collections::BTreeMap};

use sp_runtime::{DispatchError, DispatchResult};
use surety_types::{
    ModelId,
    input::Work,
    model::{ModelAudits, Operation},
    traits::ModelCatalog,
};

#[derive(Default)]
struct Use {
    tasks: u32,
    retired: bool,
}

thread_local! {
    static USES: RefCell<BTreeMap<ModelId, Use>> = const { RefCell::new(BTreeMap::new()) };
    static MODELS: RefCell<BTreeMap<ModelId, Vec<Operation>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Mock of [`ModelCatalog`].
pub struct MockModels;

impl MockModels {
    /// The catalogue's answer for a model it does not have.
    pub const UNKNOWN_MODEL: DispatchError = DispatchError::Other("UnknownModel");

    /// The catalogue's answer for an operation that the model lacks.
    pub const OPERATION_NOT_OFFERED: DispatchError = DispatchError::Other("OperationNotOffered");

    /// The catalogue's answer for a model that was retired.
    pub const TAKES_NO_TASKS: DispatchError = DispatchError::Other("TakesNoTasks");

    /// Forgets everything.
    pub fn reset() {
        MODELS.with_borrow_mut(BTreeMap::clear);
        USES.with_borrow_mut(BTreeMap::clear);
    }

    /// Registers a model that offers `operations`; an empty list makes one that offers nothing.
    pub fn add(model: ModelId, operations: &[Operation]) {
        MODELS.with_borrow_mut(|models| models.insert(model, operations.to_vec()));
    }

    /// Takes a model out that no task uses.
    pub fn remove(model: ModelId) {
        MODELS.with_borrow_mut(|models| models.remove(&model));
    }

    /// Has a model take no new tasks.
    pub fn retire(model: ModelId) {
        USES.with_borrow_mut(|uses| uses.entry(model).or_default().retired = true);
    }

    /// Whether a model is there.
    pub fn contains(model: ModelId) -> bool {
        MODELS.with_borrow(|models| models.contains_key(&model))
    }
}

impl ModelCatalog for MockModels {
    fn check(model: &ModelId, work: &Work) -> DispatchResult {
        MODELS.with_borrow(|models| {
            let operations = models.get(model).ok_or(Self::UNKNOWN_MODEL)?;
            if operations.contains(&work.operation) {
                Ok(())
            } else {
                Err(Self::OPERATION_NOT_OFFERED)
            }
        })?;
        let retired = USES.with_borrow(|uses| uses.get(model).is_some_and(|used| used.retired));
        if retired {
            Err(Self::TAKES_NO_TASKS)
        } else {
            Ok(())
        }
    }

    fn audits(model: &ModelId, _: &Work, _: u128) -> Result<ModelAudits, DispatchError> {
        let known = Self::contains(*model).then_some(ModelAudits {
            speed: u32::MAX,
            item_tokens: 1,
            able: u128::MAX,
            item_parts: 4,
            has_referee: true,
        });
        known.ok_or(Self::UNKNOWN_MODEL)
    }

    fn acquire(model: &ModelId) {
        USES.with_borrow_mut(|uses| {
            let used = uses.entry(*model).or_default();
            used.tasks = used.tasks.saturating_add(1);
        });
    }

    fn release(model: &ModelId) {
        USES.with_borrow_mut(|uses| {
            let Some(used) = uses.get_mut(model) else { return };
            used.tasks = used.tasks.saturating_sub(1);
            if used.tasks == 0 && used.retired {
                uses.remove(model);
                Self::remove(*model);
            }
        });
    }

    fn uses(model: &ModelId) -> u32 {
        USES.with_borrow(|uses| uses.get(model).map_or(0, |used| used.tasks))
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn register_for_benchmark(operation: Operation) -> ModelId {
        let model = ModelId::repeat_byte(0xbe);
        Self::add(model, &[operation]);
        model
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn retire_for_benchmark(model: &ModelId) {
        Self::retire(*model);
    }
}
