//! Records of this pallet. They know nothing of it.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use surety_types::task::RoundPhase;

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
