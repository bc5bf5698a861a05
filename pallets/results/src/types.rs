//! Records of this pallet. They know nothing of it.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use frame_support::Parameter;
use scale_info::TypeInfo;
use sp_runtime::DispatchError;
#[cfg(feature = "runtime-benchmarks")]
use surety_dispute_game::bisection::Move;
use surety_dispute_game::bisection::{Referee, Shape};
use surety_types::{
    TaskId,
    task::{ResultClaim, RoundPhase},
};

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

    /// How long the output of this claim is, in bytes, where that follows from the claim.
    fn output_bytes(context: &Self::DisputeContext, claim: &ResultClaim) -> Option<u32>;

    /// What is known of a task of the largest model that can be registered, which does `operation`, and a
    /// claim of about as much work as there can be, for benchmarks: whatever a call asks of a referee it asks
    /// there.
    #[cfg(feature = "runtime-benchmarks")]
    fn largest_for_benchmark(
        operation: surety_types::model::Operation,
    ) -> (Self::DisputeContext, ResultClaim);

    /// A context, a claim that its referee refutes, and the moves of a game about it, for benchmarks. The
    /// last one opens such a cell, in as many bytes as are taken.
    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark(cell: LongCell) -> (Self::DisputeContext, ResultClaim, alloc::vec::Vec<Move>);
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

/// Which phase a round entered: a [`RoundPhase`] without its data.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum PhaseName {
    /// Providers compute and commit.
    Committing,
    /// Auditors may work.
    Auditing,
    /// Commitments are opened.
    Revealing,
    /// The verdict may be challenged.
    Challengeable,
}

/// Name of a phase, and the last block of it.
pub fn describe<A, N: Copy>(phase: &RoundPhase<A, N>) -> (PhaseName, N) {
    match phase {
        RoundPhase::Committing { until } => (PhaseName::Committing, *until),
        RoundPhase::Auditing { until } => (PhaseName::Auditing, *until),
        RoundPhase::Revealing { until } => (PhaseName::Revealing, *until),
        RoundPhase::Challengeable { until, .. } => (PhaseName::Challengeable, *until),
    }
}
