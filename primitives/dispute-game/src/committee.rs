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
use surety_types::{
    TaskId,
    limits::VOTERS_MAX,
    task::ResultClaim,
    trust::{DisputeId, SlashId},
};

use crate::{
    bisection::{Cell, CellValue, Shape, Trace, value},
    quorum_streak::{Committee, Electorate, SEATS, Stage, Windows},
};

/// Candidates expected for the seats of a round: twice as many, so that the seats are filled although some do
/// not come.
///
/// With fewer verifiers than that a draw would ask nearly all of them, so all are asked at once.
pub const CANDIDATES_EXPECTED: u32 = 2 * SEATS;

/// Rounds, votes and windows, with as many voters as the chain bears.
pub type CommitteeState<AccountId> = Committee<AccountId, VOTERS_MAX>;

/// What verifiers draw themselves with, in all ballots of a committee. All but the seed is fixed when it is
/// called together; the seed comes from a later block.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct SeatDraw<Balance, BlockNumber> {
    /// Block (not the clock's time) in which it was called together. The author of a later one gives the
    /// seed.
    pub begun_at: BlockNumber,
    /// Stake and key of a member must be of this block or an earlier one.
    pub settled_by: BlockNumber,
    /// Randomness of the epoch of `begun_at`.
    pub epoch_randomness: H256,
    /// Stake of all verifiers but the dispute's parties then, in plancks: what seats are drawn by, and what
    /// two thirds of the vote of all are of.
    pub verifier_stake: Balance,
    /// The part of all verifiers' stake then, the parties' included, that may be corrupt, in plancks: an
    /// answer to the vote of all takes more.
    pub corrupt_stake: Balance,
    /// What verifiers draw themselves with, once it is known.
    pub seed: Option<H256>,
}

/// What members are paid out of, by whoever has lost their dispute.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct CommitteeFund<AccountId, Balance> {
    /// Stash or account of the loser.
    pub payer: AccountId,
    /// Whether it is stake that is locked; otherwise it is on hold as a challenger's bond is.
    pub is_stake: bool,
    /// What there was in the beginning, in plancks.
    pub pot: Balance,
    /// What is left of it, in plancks.
    pub left: Balance,
    /// Whether members are right that say what the defender says. Nothing where that is not known.
    pub claim_holds: Option<bool>,
    /// Members that were paid.
    pub paid: u32,
    /// What of it was locked for the dispute, in plancks. Members are paid out of the rest first. What they
    /// leave of this is lost with [`slash`](Self::slash).
    pub from_lock: Balance,
    /// What the loser is slashed with.
    pub slash: Option<SlashId>,
}

/// A verifier that has drawn itself, or came when all were summoned.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Candidate<AccountId> {
    /// Verifier's stash.
    pub verifier: AccountId,
    /// Its place: those with the least are seated. See [`seat_rank`] and [`vote_rank`].
    pub rank: u128,
    /// Its stake when it came, in plancks, which is no younger than the draw: what its vote counts when all
    /// are summoned.
    pub stake: u128,
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
    /// Absent members that were suspended, once it is over.
    pub suspended: u32,
    /// What its members are paid, from when its dispute is decided.
    pub fund: Option<CommitteeFund<AccountId, Balance>>,
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

impl<AccountId: Clone + Ord + Encode, Balance: Copy + Into<u128>, BlockNumber>
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
        let members = self.candidates.iter();
        let members: Vec<_> = members
            .map(|seat| (seat.verifier.clone(), self.seats_of(seat.stake)))
            .collect();
        let seated = self.state.draw_weighed(members).is_ok();
        if seated {
            self.hand_in();
        }
        seated
    }

    /// How many of the candidates that are expected this much stake stands for, one at least. Whoever has it
    /// has one seat all the same: if it counted as one, many names with a third of the stake would have most
    /// seats beside a few names with the rest.
    fn seats_of(&self, stake: u128) -> u128 {
        let seats = stake.saturating_mul(CANDIDATES_EXPECTED.into());
        let seats = seats.checked_div(self.draw.verifier_stake.into());
        seats.unwrap_or_default().max(1)
    }

    /// Opens the vote of all among the candidates, each with the stake that it had when it came, out of what
    /// was counted when the committee was called. Says whether anybody came.
    pub fn summon(&mut self) -> bool {
        let electorate = Electorate {
            all: self.draw.verifier_stake.into(),
            corrupt: self.draw.corrupt_stake.into(),
        };
        let voters = self.candidates.iter();
        let voters: Vec<_> = voters.map(|seat| (seat.verifier.clone(), seat.stake)).collect();
        let opened = self.state.summon_weighed(voters, electorate).is_ok();
        if opened {
            self.hand_in();
        }
        opened
    }

    /// Its dispute was decided elsewhere: whoever has sealed an answer opens it, and that is all.
    pub fn dismiss(&mut self) {
        if *self.state.stage() == Stage::Summoning {
            self.summon();
        }
        let sealed = core::mem::take(&mut self.candidates).into_iter();
        self.state.dismiss(sealed.map(|seat| (seat.verifier, seat.seal)));
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
