//! What calls weigh, and what sessions do. `scripts/weights` benchmarks this pallet inside the runtime and
//! generates `runtime/src/weights/surety_pallet_validators.rs`, which implements this trait.

use frame_support::weights::Weight;

/// Weights, each at its worst: with as many candidates as there may be. Session takes a whole block for the
/// change of a session, whatever that weighs: `integrity_test` says whether it fits, with what paying a day
/// weighs beside.
pub trait WeightInfo {
    /// Weight of `validate`.
    fn validate() -> Weight;
    /// Weight of `chill`.
    fn chill() -> Weight;
    /// Noting who made a block.
    fn note_author() -> Weight;
    /// All that the change of a session does but paying a day: as many validators as there may be candidates
    /// are counted, what can be reported no more is forgotten, and of as many candidates some are elected.
    fn change_session() -> Weight;
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
    fn change_session() -> Weight {
        Weight::zero()
    }
    fn on_offence() -> Weight {
        Weight::zero()
    }
}
