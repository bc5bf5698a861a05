//! What the calls cost. The runtime's figures come from `benchmarking.rs` and are kept with the runtime.

use frame_support::weights::Weight;

/// Weights of the calls and of what time brings about, at the bounds.
pub trait WeightInfo {
    /// The last commitment of a full round: the audit window opens.
    fn commit() -> Weight;

    /// The last reveal of a full round: the verdict is reached.
    fn reveal() -> Weight;

    /// A commit window that ends with nobody having committed: the most reserves are looked at, and every seat is
    /// filled again.
    fn replace_members() -> Weight;

    /// The end of a full round: every lock is released.
    fn close() -> Weight;
}

/// For tests, which do not run out of weight.
impl WeightInfo for () {
    fn commit() -> Weight {
        Weight::zero()
    }

    fn reveal() -> Weight {
        Weight::zero()
    }

    fn replace_members() -> Weight {
        Weight::zero()
    }

    fn close() -> Weight {
        Weight::zero()
    }
}
