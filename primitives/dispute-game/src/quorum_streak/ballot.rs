//! One commit and reveal among a list of members.

use alloc::vec::Vec;
use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::{ConstU32, H256, bounded::BoundedVec};
use sp_crypto_hashing::blake2_256;

use super::CommitteeError;

/// `blake2_256(SCALE(question, ballot, member, value, salt))`: what a member publishes before anybody may see
/// its answer. `ballot` is the number of rounds before it. Bound to all of them so that it cannot be copied
/// or sent again.
pub fn seal(question: H256, ballot: u32, member: &impl Encode, value: H256, salt: H256) -> H256 {
    H256(blake2_256(&(question, ballot, member, value, salt).encode()))
}

/// What a member has said.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Vote {
    /// Nothing.
    Missing,
    /// The seal of an answer.
    Committed(H256),
    /// The answer.
    Revealed(H256),
}

/// A member of a ballot.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Seat<Member> {
    /// Member of the committee, or voter.
    pub member: Member,
    /// What it has said.
    pub vote: Vote,
    /// What its answer counts: one in a round, its stake in the vote of all.
    pub weight: u128,
}

/// A commit and reveal among at most `SEATS` members, all different, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Ballot<Member, const SEATS: u32> {
    number: u32,
    revealing: bool,
    seats: BoundedVec<Seat<Member>, ConstU32<SEATS>>,
}

impl<Member: Clone + Ord + Encode, const SEATS: u32> Ballot<Member, SEATS> {
    /// Of members and what their answers count. None for no members, too many, or one twice.
    pub(super) fn new(number: u32, members: impl IntoIterator<Item = (Member, u128)>) -> Option<Self> {
        // One more than fits is enough to know that they are too many.
        let most = usize::try_from(SEATS).ok()?.saturating_add(1);
        let mut members: Vec<(Member, u128)> = members.into_iter().take(most).collect();
        members.sort();
        let differ = members
            .windows(2)
            .all(|pair| matches!(pair, [(one, _), (other, _)] if one != other));
        if members.is_empty() || !differ {
            return None;
        }
        let seats: Vec<_> = members
            .into_iter()
            .map(|(member, weight)| Seat {
                member,
                vote: Vote::Missing,
                weight,
            })
            .collect();
        Some(Self {
            number,
            revealing: false,
            seats: seats.try_into().ok()?,
        })
    }

    /// Number of ballots before it.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Whether answers are revealed, no longer committed to.
    pub const fn is_revealing(&self) -> bool {
        self.revealing
    }

    /// Who takes part, and what each has said.
    pub const fn seats(&self) -> &BoundedVec<Seat<Member>, ConstU32<SEATS>> {
        &self.seats
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.seats.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn is_full(&self) -> bool {
        self.count() == SEATS
    }

    fn vote(&mut self, member: &Member) -> Result<&mut Vote, CommitteeError> {
        let place = self.seats.binary_search_by(|seat| seat.member.cmp(member));
        let seat = place.ok().and_then(|place| self.seats.get_mut(place));
        seat.map(|seat| &mut seat.vote).ok_or(CommitteeError::NotDrawn)
    }

    /// True when everybody has committed.
    pub(super) fn commit(&mut self, member: &Member, seal: H256) -> Result<bool, CommitteeError> {
        if self.revealing {
            return Err(CommitteeError::NotNow);
        }
        let vote = self.vote(member)?;
        if *vote != Vote::Missing {
            return Err(CommitteeError::Twice);
        }
        *vote = Vote::Committed(seal);
        Ok(self.seats.iter().all(|seat| seat.vote != Vote::Missing))
    }

    /// True when everybody who committed has revealed.
    pub(super) fn reveal(
        &mut self,
        question: H256,
        member: &Member,
        value: H256,
        salt: H256,
    ) -> Result<bool, CommitteeError> {
        if !self.revealing {
            return Err(CommitteeError::NotNow);
        }
        let opened = seal(question, self.number, member, value, salt);
        let vote = self.vote(member)?;
        match vote {
            Vote::Revealed(_) => return Err(CommitteeError::Twice),
            Vote::Committed(seal) if *seal == opened => *vote = Vote::Revealed(value),
            Vote::Committed(_) | Vote::Missing => return Err(CommitteeError::WrongOpening),
        }
        Ok(!self
            .seats
            .iter()
            .any(|seat| matches!(seat.vote, Vote::Committed(_))))
    }

    /// Goes on to revealing. False when it was there already, or nobody has anything to reveal.
    pub(super) fn close_commits(&mut self) -> bool {
        let began = !self.revealing && self.seats.iter().any(|seat| seat.vote != Vote::Missing);
        self.revealing = true;
        began
    }

    /// What all members' answers count together.
    pub(super) fn weight(&self) -> u128 {
        sum(self.seats.iter().map(|seat| seat.weight))
    }

    /// The answer of members that count at least `quorum`. With a quorum of more than half there is never a
    /// second.
    pub(super) fn shared_by(&self, quorum: u128) -> Option<H256> {
        let mut answers: Vec<(H256, u128)> = self
            .seats
            .iter()
            .filter_map(|seat| match seat.vote {
                Vote::Revealed(value) => Some((value, seat.weight)),
                Vote::Missing | Vote::Committed(_) => None,
            })
            .collect();
        answers.sort();
        let shared = answers
            .chunk_by(|(one, _), (other, _)| one == other)
            .find(|equal| sum(equal.iter().map(|(_, weight)| *weight)) >= quorum);
        shared.and_then(<[_]>::first).map(|(value, _)| *value)
    }
}

fn sum(weights: impl Iterator<Item = u128>) -> u128 {
    weights.fold(0, u128::saturating_add)
}
