//! How much decides.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;

use super::{QUORUM, SEATS};

/// How many of `voters` decide a vote: more than two thirds.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "a third of a number is less than it"
)]
pub const fn supermajority(voters: u32) -> u32 {
    voters - voters.saturating_sub(1) / 3
}

/// What answers to a vote of all are held against.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Electorate {
    /// What all who may vote count together, whether they do or not.
    pub all: u128,
    /// What those may count together who could be corrupt, of all that there are: also of those who have no
    /// vote.
    pub corrupt: u128,
}

impl Electorate {
    /// What an answer counts that is decided: two thirds of all, and more than may be corrupt. Of those who
    /// give it somebody is honest then, however few have a vote.
    pub(super) fn decisive(&self) -> u128 {
        let supermajority = self.all.saturating_sub(self.all.saturating_sub(1) / 3);
        supermajority.max(self.corrupt.saturating_add(1))
    }
}

/// What equal answers have to count in a round whose members count so much together.
pub(super) fn quorum_of(weight: u128) -> u128 {
    weight.saturating_mul(QUORUM.into()).div_ceil(SEATS.into())
}
