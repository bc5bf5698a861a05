//! Records of this pallet. They know nothing of it.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_runtime::{Permill, Perquintill};
use surety_types::{
    task::{ResultClaim, RoundPhase},
    TaskId,
};
use surety_verification::bisection::{Referee, Shape};

/// Knows what a task's results are made of. Provided by the runtime, which joins tasks, models and arithmetic.
pub trait DisputeReferee {
    /// The shape of a claim's trace, and who computes its cells again.
    type Court: Shape + Referee;

    /// For this claim on this task; nothing when its model's results cannot be computed again by anybody. The same
    /// answer as long as the task is not settled.
    fn court(task: TaskId, claim: &ResultClaim) -> Option<Self::Court>;

    /// Whether no result of the task can be like this claim, whatever its input: the court could not even begin.
    fn is_impossible(task: TaskId, claim: &ResultClaim) -> bool;

    /// How long the output of this claim is, in bytes, where that follows from the claim.
    fn output_bytes(task: TaskId, claim: &ResultClaim) -> Option<u32>;

    /// A task whose claims the court takes, with one of them, for benchmarks.
    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark(task: TaskId) -> ResultClaim;
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
pub(crate) fn describe<A, N: Copy>(phase: &RoundPhase<A, N>) -> (PhaseName, N) {
    match phase {
        RoundPhase::Committing { until } => (PhaseName::Committing, *until),
        RoundPhase::Auditing { until } => (PhaseName::Auditing, *until),
        RoundPhase::Revealing { until } => (PhaseName::Revealing, *until),
        RoundPhase::Challengeable { until, .. } => (PhaseName::Challengeable, *until),
    }
}

/// The same part in finer units.
pub(crate) fn quintillionths(part: Permill) -> Perquintill {
    const FINER: u64 = 1_000_000_000_000;
    Perquintill::from_parts(u64::from(part.deconstruct()).saturating_mul(FINER))
}
