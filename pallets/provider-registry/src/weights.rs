//! What the calls weigh. `scripts/weights` benchmarks this pallet inside the runtime and generates
//! `runtime/src/weights/surety_pallet_provider_registry.rs`, which implements this trait.

use frame_support::weights::Weight;

/// Weights of the calls, each at its worst: the longest name, the most and longest endpoints.
pub trait WeightInfo {
    /// Weight of `register`.
    fn register() -> Weight;
    /// Weight of `heartbeat`.
    fn heartbeat() -> Weight;
    /// Weight of `deregister`.
    fn deregister() -> Weight;
}

/// For tests, where nothing is charged.
impl WeightInfo for () {
    fn register() -> Weight {
        Weight::zero()
    }
    fn heartbeat() -> Weight {
        Weight::zero()
    }
    fn deregister() -> Weight {
        Weight::zero()
    }
}
