//! What the call weighs. `scripts/weights` benchmarks this pallet inside the runtime and generates
//! `runtime/src/weights/surety_pallet_finality_clock.rs`, which implements this trait.

use frame_support::weights::Weight;

/// Weights of the calls, each at its worst: as many notes as are kept.
pub trait WeightInfo {
    /// Weight of `note`.
    fn note() -> Weight;
}

/// For tests, where nothing is charged.
impl WeightInfo for () {
    fn note() -> Weight {
        Weight::zero()
    }
}
