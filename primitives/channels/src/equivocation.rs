//! That a payee has said two things.
//!
//! Statements of one answer grow: each later one has all of each earlier one, and nothing follows a receipt.
//! Where two have as much, or one of them cannot be the later by what it counts, the two alone show it. Where
//! one is longer, the kilobyte of the longer in which the shorter ends **decides**: it either makes the
//! shorter's hash, or the two clash. So no honest pair clashes, whatever is shown, and every other pair does
//! as soon as that kilobyte is. Who does not have it has it shown on the chain, where not showing it is
//! withholding.

use alloc::vec::Vec;

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::{H256, U256};
use sp_crypto_hashing::blake2_256;
use surety_proofs::{Proof, SEGMENT_BYTES, SegmentOpening, segments};
use surety_types::input::WORD_BYTES;

use crate::{
    ChunkStatement, SignedChunkStatement,
    statement::{last_segment, nothing_said},
};

/// How two statements of one answer contradict each other.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Clash {
    /// They answer two requests under one number.
    Request,
    /// The longer counts less, or as long ones count differently.
    Amount,
    /// They end in two ways.
    Ends,
    /// One goes on after the other's end.
    AfterEnd,
    /// They say other things.
    Output,
}

/// Whether `longer` says all that `shorter` says, and more: nothing while that is not shown. `shown` is the
/// segment of what `longer` says in which `shorter` ends.
///
/// Of the hashes that lead from there to `longer`'s, those on the left stand for whole segments before it.
/// They lead from the same segment, cut where `shorter` ends, to `shorter`'s: if and only if all up to there
/// is the same.
#[allow(clippy::arithmetic_side_effects, reason = "places of segments that there are")]
pub fn extends<AccountId>(
    shorter: &ChunkStatement<AccountId>,
    longer: &ChunkStatement<AccountId>,
    shown: Option<&SegmentOpening>,
) -> Option<bool> {
    if shorter.bytes > longer.bytes {
        return Some(false);
    }
    if shorter.bytes == longer.bytes {
        return Some(shorter.output == longer.output);
    }
    let Some(last) = last_segment(shorter.bytes) else {
        return Some(shorter.output == nothing_said());
    };
    let shown = shown.filter(|shown| shown.segment == last)?;
    if shown.row_digest(longer.bytes)? != longer.output {
        return None;
    }
    let kept = shorter.bytes - last * SEGMENT_BYTES;
    let cut = H256(blake2_256(shown.bytes.get(..kept as usize)?));
    let mut siblings = shown.proof.0.iter();
    let mut left = Vec::new();
    let (mut place, mut end) = (last, segments(longer.bytes).checked_sub(1)?);
    while end > 0 {
        if place % 2 == 1 {
            left.push(*siblings.next()?);
        } else if place < end {
            siblings.next()?;
        }
        (place, end) = (place / 2, end / 2);
    }
    let root = Proof(left.try_into().ok()?).root(&cut, last, last + 1)?;
    Some(root == shorter.output)
}

/// How two statements contradict each other; nothing where they do not, or that is not shown. `shown` is the
/// segment of what the longer says in which the shorter ends, and not looked at where the two alone show it.
pub fn incompatible<AccountId: PartialEq>(
    one: &ChunkStatement<AccountId>,
    other: &ChunkStatement<AccountId>,
    shown: Option<&SegmentOpening>,
) -> Option<Clash> {
    if !one.is_of_one_answer(other) {
        return None;
    }
    let (shorter, longer) = if one.bytes <= other.bytes {
        (one, other)
    } else {
        (other, one)
    };
    let is_other = || extends(shorter, longer, shown) == Some(false);
    clash_beside_output(shorter, longer).or_else(|| is_other().then_some(Clash::Output))
}

/// How two statements of one answer contradict each other, whatever they say, of which the first is no
/// longer.
fn clash_beside_output<AccountId>(
    shorter: &ChunkStatement<AccountId>,
    longer: &ChunkStatement<AccountId>,
) -> Option<Clash> {
    if shorter.request != longer.request {
        return Some(Clash::Request);
    }
    let are_as_long = shorter.bytes == longer.bytes;
    let counts_less = shorter.units > longer.units || shorter.price > longer.price;
    if counts_less || (are_as_long && (shorter.units, shorter.price) != (longer.units, longer.price)) {
        return Some(Clash::Amount);
    }
    match (shorter.end, longer.end) {
        (Some(_), _) if !are_as_long => Some(Clash::AfterEnd),
        (Some(one), Some(other)) if one != other => Some(Clash::Ends),
        _ => None,
    }
}

/// Whether `later` is a statement of the same request that says all that `held` says, and counts all of it:
/// nothing while that is not shown, as in [`extends`]. That both are of one answer is for the caller to see
/// to.
///
/// More than that they do not clash: two that do clash are [`incompatible`] only once that is shown. And more
/// than the bytes: the same ones may be right for another request, and points meet a receipt by its price.
pub fn goes_on<AccountId>(
    held: &ChunkStatement<AccountId>,
    later: &ChunkStatement<AccountId>,
    shown: Option<&SegmentOpening>,
) -> Option<bool> {
    let is_less = later.bytes < held.bytes;
    if is_less || clash_beside_output(held, later).is_some() || !counts_on(held, later) {
        return Some(false);
    }
    extends(held, later, shown)
}

/// Whether the longer statement counts a unit for each word that it says more, at the same price: of nothing
/// all is more. What says more is a generation: embeddings are said at once.
fn counts_on<AccountId>(held: &ChunkStatement<AccountId>, later: &ChunkStatement<AccountId>) -> bool {
    if later.bytes == held.bytes || held.is_void() {
        return true;
    }
    // The first word says how it ended, and costs nothing.
    let counted = |of: &ChunkStatement<AccountId>| (of.bytes / WORD_BYTES).saturating_sub(1);
    let words = counted(later).checked_sub(counted(held));
    let price_of = |price: u128, units: u32| U256::from(price).checked_mul(units.into());
    later.bytes.is_multiple_of(WORD_BYTES)
        && words == later.units.checked_sub(held.units)
        && price_of(later.price, held.units) == price_of(held.price, later.units)
}

/// Two statements that contradict each other, as anybody can report them.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Equivocation<AccountId> {
    /// One of them.
    pub one: SignedChunkStatement<AccountId>,
    /// The other.
    pub other: SignedChunkStatement<AccountId>,
    /// The segment of what the longer says in which the shorter ends, where it takes that.
    pub shown: Option<SegmentOpening>,
}

impl<AccountId: Encode + PartialEq> Equivocation<AccountId> {
    /// How they do; nothing unless both are signed by their agents. That those are, or were, the payee's is
    /// for the chain to say.
    pub fn verify(
        &self,
        genesis: &H256,
        verify: impl Fn(&AccountId, &[u8], &[u8; 64]) -> bool,
    ) -> Option<Clash> {
        let clash = incompatible(&self.one.statement, &self.other.statement, self.shown.as_ref())?;
        (self.one.is_signed(genesis, &verify) && self.other.is_signed(genesis, &verify)).then_some(clash)
    }
}
