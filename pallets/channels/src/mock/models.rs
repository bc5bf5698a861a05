//! Models that can be sold, of a registry that a test fills.

use std::{cell::RefCell, collections::BTreeMap};

use sp_runtime::{DispatchError, DispatchResult, Perquintill};
use surety_types::{
    ModelId,
    model::Operation,
    traits::{AbleVerifiers, SoldModels},
};

thread_local! {
    static USES: RefCell<BTreeMap<ModelId, u32>> = const { RefCell::new(BTreeMap::new()) };
    static ABLE: RefCell<BTreeMap<ModelId, Perquintill>> = const { RefCell::new(BTreeMap::new()) };
}

/// What tests offer: models of one operation, that take no more than one byte to name.
pub struct Registry;

/// Tokens that each model's reference machine audits in 1,000 seconds.
pub(crate) const SPEED: u32 = 10_000;

pub(crate) const NOT_SOLD: DispatchError = DispatchError::Other("NotSold");

/// A model that can be sold.
pub(crate) fn model(number: u8) -> ModelId {
    ModelId::repeat_byte(number)
}

/// One that cannot.
pub(crate) const UNSOLD: ModelId = ModelId::repeat_byte(0xff);

impl Registry {
    pub(crate) fn reset() {
        USES.with_borrow_mut(BTreeMap::clear);
        ABLE.with_borrow_mut(BTreeMap::clear);
    }

    /// From now on this part of the verifiers' stake can audit a model. All of it could before.
    pub(crate) fn set_able(model: ModelId, part: Perquintill) {
        ABLE.with_borrow_mut(|able| able.insert(model, part));
    }
}

impl AbleVerifiers for Registry {
    fn able(model: &ModelId, _: Operation) -> Perquintill {
        ABLE.with_borrow(|able| able.get(model).copied().unwrap_or(Perquintill::one()))
    }
}

impl SoldModels for Registry {
    fn check(model: &ModelId, operation: Operation) -> DispatchResult {
        let is_sold = *model != UNSOLD && operation == Operation::Generate;
        is_sold.then_some(()).ok_or(NOT_SOLD)
    }

    fn speed(model: &ModelId) -> Option<u32> {
        (*model != UNSOLD).then_some(SPEED)
    }

    fn acquire(model: &ModelId) {
        USES.with_borrow_mut(|uses| *uses.entry(*model).or_default() += 1);
    }

    fn release(model: &ModelId) {
        USES.with_borrow_mut(|uses| {
            let used = uses
                .get_mut(model)
                .expect("nothing is released that was not acquired");
            *used = used.checked_sub(1).expect("nor more often");
        });
    }

    fn uses(model: &ModelId) -> u32 {
        USES.with_borrow(|uses| uses.get(model).copied().unwrap_or_default())
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn register_for_benchmark(_: Operation, index: u32) -> ModelId {
        ModelId::from_low_u64_be(index.into())
    }
}
