//! A dispute's committee, as the chain keeps it. Plain data, for whoever reads it: the pallet, runtime APIs
//! and the worker.
//!
//! Whoever takes a seat seals its answer in the same call, so seats are only filled when the time for it is
//! over: until then the verifiers that have drawn best are *candidates*. The state machine behind it
//! ([`crate::quorum_streak`]) is told of the members and of their seals at once, and goes on to revealing.

use alloc::vec::Vec;
use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::{ConstU32, H256, bounded::BoundedVec};
use sp_crypto_hashing::blake2_256;
use surety_types::{TaskId, limits::VOTERS_MAX, task::ResultClaim, trust::DisputeId};

use crate::{
    bisection::{Cell, CellValue, Shape, Trace, value},
    quorum_streak::{Committee, SEATS, Stage, Windows},
};

/// Candidates expected for the seats of a round: twice as many, so that the seats are filled although some do
/// not come.
///
/// With fewer verifiers than that a draw would ask nearly all of them, so all are asked at once.
pub const CANDIDATES_EXPECTED: u32 = 2 * SEATS;

/// Rounds, votes and windows, with as many voters as the chain bears.
pub type CommitteeState<AccountId> = Committee<AccountId, VOTERS_MAX>;

/// What verifiers draw themselves with for the present ballot.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct SeatDraw<Balance, BlockNumber> {
    /// Randomness of the epoch in which the drawing began.
    pub seed: H256,
    /// Stake of all verifiers then, in plancks.
    pub verifier_stake: Balance,
    /// Block in which it began.
    pub begun_at: BlockNumber,
}

/// A verifier that has drawn itself, or came when all were summoned.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Candidate<AccountId> {
    /// Verifier's stash.
    pub verifier: AccountId,
    /// Its place: those with the least are seated. See [`seat_rank`] and [`vote_rank`].
    pub rank: u128,
    /// The [`crate::quorum_streak::seal`] of its answer.
    pub seal: H256,
}

/// The committee of one dispute.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct DisputeCommittee<AccountId, Balance, BlockNumber> {
    /// Rounds, votes and windows.
    pub state: CommitteeState<AccountId>,
    /// [`value_hash`] of what the defender says.
    pub claimed: H256,
    /// What is drawn with.
    pub draw: SeatDraw<Balance, BlockNumber>,
    /// Who will be seated, the best first. Nobody while a ballot is open.
    pub candidates: BoundedVec<Candidate<AccountId>, ConstU32<VOTERS_MAX>>,
    /// Time of the clock up to which it has been taken.
    pub ticked_at: BlockNumber,
    /// Absent members that were suspended, once it is over: all are before the dispute ends.
    pub suspended: u32,
}

/// What a newcomer among candidates changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry<AccountId> {
    /// There was room.
    Seated,
    /// It takes the place of the last one.
    InsteadOf(AccountId),
    /// All that are there come before it.
    Outranked,
}

impl<AccountId: Clone + Ord + Encode, Balance, BlockNumber>
    DisputeCommittee<AccountId, Balance, BlockNumber>
{
    /// Most candidates that are seated now; nobody while a ballot is open.
    pub const fn room(&self) -> u32 {
        match self.state.stage() {
            Stage::Drawing => SEATS,
            Stage::Summoning => VOTERS_MAX,
            Stage::Round(_) | Stage::Voting(_) | Stage::Over(_) => 0,
        }
    }

    /// Puts a candidate in its place.
    pub fn enter(&mut self, candidate: Candidate<AccountId>) -> Entry<AccountId> {
        let room = usize::try_from(self.room()).unwrap_or(usize::MAX);
        // Of equals the one that came first stays.
        let place = self
            .candidates
            .partition_point(|other| other.rank <= candidate.rank);
        if place >= room {
            return Entry::Outranked;
        }
        let last = if self.candidates.len() >= room {
            self.candidates.pop()
        } else {
            None
        };
        match self.candidates.try_insert(place, candidate) {
            Ok(()) => last.map_or(Entry::Seated, |last| Entry::InsteadOf(last.verifier)),
            Err(_) => Entry::Outranked,
        }
    }

    /// Seats the candidates of a round and hands their seals in. Says whether there were enough.
    pub fn seat(&mut self) -> bool {
        let members: Vec<_> = self.candidates.iter().map(|seat| seat.verifier.clone()).collect();
        let seated = self.state.draw(members).is_ok();
        if seated {
            self.hand_in();
        }
        seated
    }

    /// Opens the vote of all among the candidates, with what each counts. Says whether anybody came.
    pub fn summon(&mut self, weight: impl Fn(&AccountId) -> u128, electorate: u128) -> bool {
        let voters = self.candidates.iter().map(|seat| seat.verifier.clone());
        let voters: Vec<_> = voters.map(|voter| (voter.clone(), weight(&voter))).collect();
        let opened = self.state.summon_weighed(voters, electorate).is_ok();
        if opened {
            self.hand_in();
        }
        opened
    }

    fn hand_in(&mut self) {
        for Candidate { verifier, seal, .. } in core::mem::take(&mut self.candidates) {
            // It was seated just before.
            let taken = self.state.commit(&verifier, seal);
            debug_assert!(taken.is_ok());
        }
    }
}

/// How long the phases last, from the time to take a seat and the time to open an answer. Answers are sealed
/// with the seat, so there is no time for that alone.
pub const fn windows(seat: u32, reveal: u32) -> Windows {
    Windows {
        draw: seat,
        commit: 1,
        reveal,
    }
}

/// What a committee is asked: the value of this cell, in this dispute.
pub fn question(dispute: DisputeId, task: TaskId, claim: &ResultClaim, cell: &Cell) -> H256 {
    H256(blake2_256(&(b"committee", dispute, task, claim, cell).encode()))
}

/// What a trace has at a cell; nothing when there is no such cell in it.
///
/// # Errors
/// When the trace cannot be computed: whoever has none does not vote.
pub fn own_value<T: Trace>(
    shape: &impl Shape,
    trace: &mut T,
    cell: &Cell,
) -> Result<Option<CellValue>, T::Error> {
    let Some(rows) = shape.rows(cell.leaf, cell.length, cell.step) else {
        return Ok(None);
    };
    let row = trace.row(cell.leaf, cell.step, cell.row)?;
    let found = || {
        let range = rows.bytes_of(cell.cell)?;
        let bytes = row.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)?;
        value(bytes, rows.quantized.is_some_and(|values| cell.cell < values))
    };
    Ok(found())
}

/// What stands for a value in a vote. Nothing: there is no such cell, or it has no value.
pub fn value_hash(value: Option<CellValue>) -> H256 {
    H256(blake2_256(&(b"cell", value).encode()))
}

/// The place of a verifier by the 32 bytes that its VRF gave, and its stake: with twice the stake as good a
/// one comes twice as often (sequential Poisson sampling), so that nothing is gained by splitting a stake
/// among many names.
pub fn seat_rank(output: &[u8; 32], stake: u128) -> u128 {
    let draw = output
        .first_chunk()
        .map_or(u128::MAX, |low| u128::from_le_bytes(*low));
    draw.checked_div(stake).unwrap_or(u128::MAX)
}

/// The place of a voter when all are summoned: those with most stake come first.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "nothing is more than the largest number"
)]
pub const fn vote_rank(stake: u128) -> u128 {
    u128::MAX - stake
}

#[cfg(test)]
mod tests;
