//! What calls weigh, and what sessions do. `scripts/weights` benchmarks this pallet inside the runtime and
//! generates `runtime/src/weights/surety_pallet_validators.rs`, which implements this trait.

use frame_support::weights::Weight;

/// Weights, each at its worst: with as many candidates as there may be. Session takes a whole block for the
/// change of a session, whatever that weighs: `integrity_test` says whether `plan` and `count_session` fit.
pub trait WeightInfo {
    /// Weight of `validate`.
    fn validate() -> Weight;
    /// Weight of `chill`.
    fn chill() -> Weight;
    /// Noting who made a block.
    fn note_author() -> Weight;
    /// Electing of as many candidates as there may be.
    fn plan() -> Weight;
    /// Counting what as many validators did as there may be candidates.
    fn count_session() -> Weight;
    /// Punishing one offender.
    fn on_offence() -> Weight;
}

/// For tests, where nothing is charged.
impl WeightInfo for () {
    fn validate() -> Weight {
        Weight::zero()
    }
    fn chill() -> Weight {
        Weight::zero()
    }
    fn note_author() -> Weight {
        Weight::zero()
    }
    fn plan() -> Weight {
        Weight::zero()
    }
    fn count_session() -> Weight {
        Weight::zero()
    }
    fn on_offence() -> Weight {
        Weight::zero()
    }
}
