//! What the beginning of a block weighs. `scripts/weights` benchmarks this pallet inside the runtime and
//! generates `runtime/src/weights/surety_pallet_block_entropy.rs`, which implements this trait.

use frame_support::weights::Weight;

/// Weights, each at its worst.
pub trait WeightInfo {
    /// An output is kept in the place of another.
    fn record() -> Weight;
}

/// For tests, where nothing is charged.
impl WeightInfo for () {
    fn record() -> Weight {
        Weight::zero()
    }
}
