//! What the calls weigh. `scripts/weights` benchmarks this pallet inside the runtime and generates
//! `runtime/src/weights/surety_pallet_staking.rs`, which implements this trait.

use frame_support::weights::Weight;

/// Weights of the calls, each at its worst: a full list of chunks, an agent to replace or remove.
pub trait WeightInfo {
    /// Weight of `bond`.
    fn bond() -> Weight;
    /// Weight of `unbond`.
    fn unbond() -> Weight;
    /// Weight of `withdraw_unbonded`.
    fn withdraw_unbonded() -> Weight;
    /// Weight of `rebond`.
    fn rebond() -> Weight;
    /// Weight of `set_agent`.
    fn set_agent() -> Weight;
    /// Weight of `confirm_agent`.
    fn confirm_agent() -> Weight;
    /// Weight of `remove_agent`.
    fn remove_agent() -> Weight;
}

/// For tests, where nothing is charged.
impl WeightInfo for () {
    fn bond() -> Weight {
        Weight::zero()
    }
    fn unbond() -> Weight {
        Weight::zero()
    }
    fn withdraw_unbonded() -> Weight {
        Weight::zero()
    }
    fn rebond() -> Weight {
        Weight::zero()
    }
    fn set_agent() -> Weight {
        Weight::zero()
    }
    fn confirm_agent() -> Weight {
        Weight::zero()
    }
    fn remove_agent() -> Weight {
        Weight::zero()
    }
}
