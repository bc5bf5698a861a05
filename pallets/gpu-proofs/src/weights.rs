//! What the calls weigh. `scripts/weights` benchmarks this pallet inside the runtime and generates the file
//! of the runtime that implements this trait.

use frame_support::weights::Weight;

/// Weights, each at its worst: all samples, with the longest proofs.
pub trait WeightInfo {
    /// What a block begins with.
    fn on_initialize() -> Weight;
    /// What a block ends with.
    fn on_finalize() -> Weight;
    /// Weight of `commit_run`.
    fn commit_run() -> Weight;
    /// Weight of `open_run`.
    fn open_run() -> Weight;
}

/// For tests, where nothing is charged.
impl WeightInfo for () {
    fn on_initialize() -> Weight {
        Weight::zero()
    }
    fn on_finalize() -> Weight {
        Weight::zero()
    }
    fn commit_run() -> Weight {
        Weight::zero()
    }
    fn open_run() -> Weight {
        Weight::zero()
    }
}
