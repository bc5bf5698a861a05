//! What is played, and what comes of it.

use core::fmt;

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::{ConstU32, H256, bounded::BoundedVec};

use super::shape::playable_rows;
use super::{CHILDREN_MAX, LeafKind, Length, Missing, OPENING_BYTES_MAX, Shape};
use surety_proofs::{PartOpening, Proof, Segment, SegmentOpening, merkle_root};

/// Who plays.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Side {
    /// Stands by the committed root.
    Defender,
    /// Says that it is wrong.
    Challenger,
}

impl Side {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Defender => Self::Challenger,
            Self::Challenger => Self::Defender,
        }
    }
}

/// Digests of the children of a node.
pub type Children = BoundedVec<H256, ConstU32<CHILDREN_MAX>>;

/// What a side sends.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub enum Move {
    /// Defender: the children of the node in dispute. Children that are leaves of their tree are posted
    /// unhashed.
    Post(Children),
    /// Challenger: the first child that differs, counted from 0.
    Name(u8),
    /// Defender: what is under the leaf in dispute.
    Enter(Entry),
    /// Defender: the bytes of the segment in dispute.
    Show(Segment),
    /// Challenger: the first byte of the segment that differs, counted from 0. In dispute is the cell that it
    /// is of.
    Pick(u16),
    /// Defender: whatever the referee needs to compute the cell again.
    Open(BoundedVec<u8, ConstU32<OPENING_BYTES_MAX>>),
    /// Either, at any time: the other side is right.
    Concede,
    /// Challenger, once: it has not got this. The defender's time runs until it has shown it.
    Ask(Missing),
    /// Defender: the next part of what was asked for.
    Supply(PartOpening),
}

/// The way into a leaf: just those of the two that it needs.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Entry {
    /// The segment of leaf 0 with the word that says how long it is, where one does.
    pub length: Option<SegmentOpening>,
    /// Its steps, where it is computed.
    pub steps: Option<StepsOpening>,
}

/// The length that word `word` of leaf 0 says, if this shows it.
pub(super) fn shown_length(
    opening: &SegmentOpening,
    word: u32,
    most: u32,
    shape: &impl Shape,
) -> Option<u32> {
    let leaf = shape.leaf(0)?;
    let (LeafKind::Fixed(digest), Length::Known(length)) = (leaf.kind, leaf.length) else {
        return None;
    };
    let blob = playable_rows(shape, 0, length, 0)?;
    if opening.row_digest(blob.row_bytes) != Some(digest) {
        return None;
    }
    let start = word.checked_mul(4)?;
    let bytes = opening.slice(start..start.checked_add(4)?)?;
    bytes.try_into().ok().map(|word| Length::read(word, most))
}

/// The steps of a computed leaf, as one root.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct StepsOpening {
    /// [`merkle_root`] over the steps' digests.
    pub root: H256,
    /// From the leaf, which is the last of them, to their root.
    pub proof: Proof,
}

impl StepsOpening {
    /// Of these steps; nothing when there are none.
    pub fn new(steps: &[H256]) -> Option<Self> {
        let last = u32::try_from(steps.len()).ok()?.checked_sub(1)?;
        Some(Self {
            root: merkle_root(steps.iter().copied()),
            proof: Proof::new(steps, last)?,
        })
    }

    /// Whether the last of so many steps is `leaf`.
    pub(super) fn ends_in(&self, leaf: &H256, steps: u32) -> bool {
        let last = steps.checked_sub(1);
        last.is_some_and(|last| self.proof.verify(&self.root, leaf, last, steps))
    }
}

/// How a game ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Outcome {
    /// Side that won.
    pub winner: Side,
    /// How the game ended.
    pub reason: Reason,
}

/// Why a game ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Reason {
    /// The cell was computed again and is what the defender said, or is not; or a leaf is not what the claim
    /// says.
    Judged,
    /// No block could compute the cell, and it was decided elsewhere.
    Decided,
    /// The loser's time ran out.
    TimeOut,
    /// The loser conceded.
    Conceded,
}

/// Why a move, or a game, is refused.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum GameError {
    /// The game is over.
    Over,
    /// It is the other side's turn, or the move is not one that can be made now.
    NotNow,
    /// The node in dispute has another number of children, or the segment another number of bytes.
    WrongCount,
    /// The children do not hash to the node in dispute, or the bytes to the segment.
    WrongHash,
    /// There is no child, or no byte, with this number.
    NoSuchChild,
    /// The length of the leaf is not shown, or is shown where it is known.
    WrongLength,
    /// The steps are not shown to end in the leaf, or are given where there are none.
    WrongSteps,
    /// What is asked for is longer than what can be demanded, or not known by its hash.
    NotShowable,
    /// The opening is longer than this game has room for.
    TooLong,
    /// The opening does not prove the cell's inputs.
    Unproven,
    /// The trace has a shape that cannot be played over.
    Shape,
}

impl fmt::Display for GameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Over => "the game is over",
            Self::NotNow => "this move cannot be made now",
            Self::WrongCount => "what is in dispute has another number of children or bytes",
            Self::WrongHash => "this does not hash to what is in dispute",
            Self::NoSuchChild => "there is no child or byte with this number",
            Self::WrongLength => "the length of the leaf is not shown, or is known",
            Self::WrongSteps => "the steps do not end in the leaf, or there are none",
            Self::NotShowable => "this cannot be demanded",
            Self::TooLong => "the opening is longer than the game has room for",
            Self::Unproven => "the opening does not prove the cell's inputs",
            Self::Shape => "the trace has a shape that cannot be played over",
        })
    }
}

impl core::error::Error for GameError {}
