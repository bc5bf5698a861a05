//! What the calls cost. The runtime's figures come from `benchmarking.rs` and are kept with the runtime.

use frame_support::weights::Weight;

/// Weights of the calls and of what time brings about, at the bounds.
pub trait WeightInfo {
    /// A slash is vetoed, among the most convictions and terms in jail that are kept.
    fn cancel_slash() -> Weight;

    /// A slash is carried out, among the most convictions that are kept, and takes all that a provider has.
    fn carry_out_slash() -> Weight;

    /// Idle blocks read and write how far slashes are carried out.
    fn sweep_base() -> Weight;
}

/// For tests, which do not run out of weight.
impl WeightInfo for () {
    fn cancel_slash() -> Weight {
        Weight::zero()
    }

    fn carry_out_slash() -> Weight {
        Weight::zero()
    }

    fn sweep_base() -> Weight {
        Weight::zero()
    }
}
