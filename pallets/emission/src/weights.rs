//! What paying weighs. `scripts/weights` benchmarks this pallet inside the runtime and generates the file of
//! the runtime that implements this trait.

use frame_support::weights::Weight;

/// Weights, each at its worst.
pub trait WeightInfo {
    /// So many operators are paid for a day, with fees and emission for each.
    fn pay_day(operators: u32) -> Weight;
}

/// For tests, where nothing is charged.
impl WeightInfo for () {
    fn pay_day(_: u32) -> Weight {
        Weight::zero()
    }
}
