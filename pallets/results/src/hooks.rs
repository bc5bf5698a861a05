//! What rounds need of others: that their disputes are opened and looked at, and somebody who knows what
//! results are made of.

#[cfg(feature = "runtime-benchmarks")]
use alloc::vec::Vec;
use codec::MaxEncodedLen;
use frame_support::{Parameter, weights::Weight};
use sp_core::H256;
use sp_runtime::DispatchError;
#[cfg(feature = "runtime-benchmarks")]
use surety_dispute_game::bisection::Move;
use surety_dispute_game::bisection::{Referee, Shape};
use surety_types::{
    TaskId,
    task::ResultClaim,
    trust::{DisputeId, ItemLeaves},
};

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

/// Knows what a task's results are made of. Provided by the runtime, which joins tasks, models and
/// arithmetic.
pub trait DisputeReferee {
    /// What a referee has to know of a task. Taken down when its round opens, so that nobody can take it away
    /// from a dispute.
    type DisputeContext: Parameter + MaxEncodedLen;

    /// The shape of a claim's trace, and who computes its cells again.
    type ClaimReferee: Shape + Referee;

    /// The context of this task's disputes; nothing when its model's results cannot be computed again by
    /// anybody.
    ///
    /// # Errors
    /// When the task or its model is not known.
    fn dispute_context(task: TaskId) -> Result<Option<Self::DisputeContext>, DispatchError>;

    /// The referee for this claim; nothing when no result of the task can be like it, whatever its input.
    fn claim_referee(context: &Self::DisputeContext, claim: &ResultClaim) -> Option<Self::ClaimReferee>;

    /// The Merkle root over the leaves of an item in the trace of this claim, if these are shown to be them;
    /// nothing where the task has no items, too.
    fn item_root(
        context: &Self::DisputeContext,
        claim: &ResultClaim,
        item: u32,
        shown: &ItemLeaves,
    ) -> Option<H256>;

    /// Whether this claim may have a cell that no block can compute again, so that a game about it may end
    /// before a committee.
    fn needs_committee(context: &Self::DisputeContext, claim: &ResultClaim) -> bool;

    /// How long the output of this claim is, in bytes, where that follows from the claim.
    fn output_bytes(context: &Self::DisputeContext, claim: &ResultClaim) -> Option<u32>;

    /// What is known of a task of the largest model that can be registered, which does `operation`, and a
    /// claim of about as much work as there can be, for benchmarks: whatever a call asks of a referee it asks
    /// there.
    #[cfg(feature = "runtime-benchmarks")]
    fn largest_for_benchmark(
        operation: surety_types::model::Operation,
    ) -> (Self::DisputeContext, ResultClaim);

    /// A context, a claim of the largest task of items that can be, and the leaves of its first, for
    /// benchmarks.
    #[cfg(feature = "runtime-benchmarks")]
    fn item_for_benchmark() -> (Self::DisputeContext, ResultClaim, ItemLeaves);

    /// A context, a claim that its referee refutes, and the moves of a game about it, for benchmarks. The
    /// last one opens such a cell, in as many bytes as are taken.
    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark(cell: LongCell) -> (Self::DisputeContext, ResultClaim, Vec<Move>);
}

/// The cells that may take longest to compute again, of all whose opening is taken.
#[cfg(feature = "runtime-benchmarks")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongCell {
    /// A product of numbers of one byte.
    Int8Product,
    /// A product of numbers of two bytes.
    Int12Product,
    /// A token that is drawn.
    Choice,
}
