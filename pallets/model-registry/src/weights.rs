//! What the calls weigh. `scripts/weights` benchmarks this pallet inside the runtime and generates
//! `runtime/src/weights/surety_pallet_model_registry.rs`, which implements this trait.

use frame_support::weights::Weight;

/// Weights of the calls, each with the largest manifest.
pub trait WeightInfo {
    /// Weight of `register`.
    fn register() -> Weight;
    /// Weight of `retire`.
    fn retire() -> Weight;
    /// Weight of `set_audit_speed`.
    fn set_audit_speed() -> Weight;
    /// Weight of `offer_audits`, where one of the most auditors makes room.
    fn offer_audits() -> Weight;
}

/// For tests, where nothing is charged.
impl WeightInfo for () {
    fn register() -> Weight {
        Weight::zero()
    }
    fn retire() -> Weight {
        Weight::zero()
    }
    fn set_audit_speed() -> Weight {
        Weight::zero()
    }
    fn offer_audits() -> Weight {
        Weight::zero()
    }
}
