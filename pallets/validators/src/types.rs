//! Records of operators.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_runtime::{PerThing, Perbill, Rounding, Saturating};
use sp_staking::SessionIndex;
use surety_types::{traits::Service, trust::SlashId};

/// An operator that validates, has validated, or wants to.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Candidate {
    /// Whether it can be elected.
    pub wants_to: bool,
    /// What was expected of it in sessions in which it made nothing, since it last made a block: in
    /// millionths of a block.
    pub missed_millionths: u64,
    /// Whether it has made a block in a session that counted, and was not absent since. Those of genesis are.
    pub proven: bool,
}

/// Why an operator is no candidate any longer.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum ChillReason {
    /// It asked for it.
    Asked,
    /// It made no block for too long.
    Absent,
    /// It signed two of a kind.
    Convicted,
    /// It has nothing of its own in its pool, or less than `MinSelfBond` where there was no room for it.
    NoBond,
}

/// What an operator loses for all that it signed twice up to a session: that is one offence.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Punishment<Balance> {
    /// Session that the first report named.
    pub session: SessionIndex,
    /// Last session of which reports are of this offence.
    pub until: SessionIndex,
    /// The slash that was written down last; none once one was vetoed, and nothing more is asked for.
    pub slash: Option<SlashId>,
    /// Part of its stake that is lost by slashes before that one.
    pub before: Perbill,
    /// Part of its stake that is lost by all of them.
    pub part: Perbill,
    /// What it had not been paid for when that slash was written down: it is, once that is vetoed.
    pub withheld: Option<Service<Balance>>,
}

/// The part of what is left after `before` that has to go so that `part` is lost in all, rounded up.
pub fn missing(before: Perbill, part: Perbill) -> Perbill {
    let left = before.left_from_one().deconstruct();
    let more = part.saturating_sub(before).deconstruct();
    if left == 0 {
        return Perbill::zero();
    }
    Perbill::from_rational_with_rounding(more, left, Rounding::Up).unwrap_or(Perbill::one())
}
