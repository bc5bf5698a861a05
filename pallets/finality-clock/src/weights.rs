//! What the call weighs, and the end of a block. `scripts/weights` benchmarks this pallet inside the runtime
//! and generates `runtime/src/weights/surety_pallet_finality_clock.rs`, which implements this trait.

use frame_support::weights::Weight;

/// Weights, each at its worst: with as many authorities as there may be, all of whom have noted something.
pub trait WeightInfo {
    /// Weight of `note`.
    fn note() -> Weight;
    /// Moving the clocks at the end of a block.
    fn tick() -> Weight;
}

/// For tests, where nothing is charged.
impl WeightInfo for () {
    fn note() -> Weight {
        Weight::zero()
    }
    fn tick() -> Weight {
        Weight::zero()
    }
}
