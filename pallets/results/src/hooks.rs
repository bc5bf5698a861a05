//! What rounds need of pallets that build on this one.

use frame_support::weights::Weight;
use surety_types::{TaskId, trust::DisputeId};

/// Disputes about the results of rounds. Provided by the disputes pallet.
pub trait RoundDisputes<Round> {
    /// Opens disputes that are due to be opened. Says whether it changed anything.
    fn match_up(task: TaskId, round: &mut Round) -> bool;

    /// Ends a dispute of the round if that is due, or notes when to look at it again, and writes the round.
    /// Says whether there is such a dispute; otherwise it has done nothing.
    fn poll(id: DisputeId, round: &mut Round) -> bool;

    /// Most that [`Self::poll`] costs.
    fn poll_weight() -> Weight;

    /// Most that one of the calls weighs for which blocks keep room, because somebody loses money for being
    /// late with it.
    fn answer_weight() -> Weight;
}
