//! Content that a challenger has not got, and its defender shows.
//!
//! A view of a claim may need what only others have: the tokens that a generation is claimed to have, the
//! prompt. Their hashes are part of the task and of the claim, and the challenger cannot compute them. It
//! says once which of them it has not got; then it is the defender's turn until both are there for everybody
//! to read.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::H256;
use surety_proofs::{PARTS_MAX, PartOpening, parts, segments};

use super::{GameError, LeafKind, Length, Shape, shape::playable_rows};

/// What of the task and the claim a challenger has not got.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Missing {
    /// The input: leaf 0.
    Input,
    /// The output: the last leaf.
    Output,
    /// Both, the input first.
    Both,
}

impl Missing {
    /// What is missing of the two, if anything is.
    pub const fn new(input: bool, output: bool) -> Option<Self> {
        match (input, output) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::Input),
            (false, true) => Some(Self::Output),
            (false, false) => None,
        }
    }

    /// The blobs, in the order in which they are shown; nothing where one of them can have no part in a game.
    fn blobs(self, shape: &impl Shape) -> Option<[Option<Blob>; 2]> {
        let last = shape.leaves().checked_sub(1)?;
        let wanted = |leaf, is_wanted: bool| match is_wanted {
            true => Blob::of(shape, leaf).map(Some),
            false => Some(None),
        };
        let input = wanted(0, !matches!(self, Self::Output))?;
        let output = wanted(last, !matches!(self, Self::Input))?;
        Some([input, output])
    }
}

/// A fixed leaf, which is content that everybody knows the hash of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Its [`content_hash`](surety_proofs::content_hash).
    pub content: H256,
    /// How long it is.
    pub bytes: u32,
}

impl Blob {
    /// How many segments it has: what showing it is paid by.
    pub const fn segments(&self) -> u32 {
        segments(self.bytes)
    }

    fn of(shape: &impl Shape, leaf: u32) -> Option<Self> {
        let at = shape.leaf(leaf)?;
        let (LeafKind::Fixed(content), Length::Known(length)) = (at.kind, at.length) else {
            return None;
        };
        let bytes = playable_rows(shape, leaf, length, 0)?.row_bytes;
        Some(Self { content, bytes })
    }
}

/// A part that a defender is to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuePart {
    /// What it is a part of.
    pub blob: Blob,
    /// Which part.
    pub part: u32,
}

impl DuePart {
    /// Whether this is it.
    pub fn is(&self, shown: &PartOpening) -> bool {
        shown.part == self.part && shown.content(self.blob.bytes) == Some(self.blob.content)
    }
}

/// What has been asked for in a game.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Asked {
    missing: Missing,
    /// Parts that have been shown.
    shown: u8,
    /// Parts that have not.
    left: u8,
}

impl Asked {
    pub(super) fn new(missing: Missing, shape: &impl Shape) -> Result<Self, GameError> {
        let count = missing_parts(missing, shape).ok_or(GameError::NotShowable)?;
        Ok(Self {
            missing,
            shown: 0,
            left: count,
        })
    }

    /// Whether some of it has not been shown.
    pub const fn is_owed(&self) -> bool {
        self.left > 0
    }

    /// What is to be shown next.
    pub(super) fn due(&self, shape: &impl Shape) -> Option<DuePart> {
        if !self.is_owed() {
            return None;
        }
        let mut before = u32::from(self.shown);
        for blob in self.missing.blobs(shape)?.into_iter().flatten() {
            match before.checked_sub(parts(blob.bytes)) {
                Some(rest) => before = rest,
                None => return Some(DuePart { blob, part: before }),
            }
        }
        None
    }

    pub(super) fn note_all_shown(&mut self) {
        self.left = 0;
    }

    pub(super) fn note_shown(&mut self) {
        self.shown = self.shown.saturating_add(1);
        self.left = self.left.saturating_sub(1);
    }
}

/// The blobs that are missing, whole.
pub fn missing_blobs(missing: Missing, shape: &impl Shape) -> impl Iterator<Item = Blob> {
    missing.blobs(shape).into_iter().flatten().flatten()
}

/// How many parts there are of what is missing; nothing where it cannot be demanded.
pub fn missing_parts(missing: Missing, shape: &impl Shape) -> Option<u8> {
    let blobs = missing.blobs(shape)?;
    let count = blobs
        .iter()
        .flatten()
        .fold(0, |count: u32, blob| count.saturating_add(parts(blob.bytes)));
    u8::try_from(count)
        .ok()
        .filter(|_| (1..=PARTS_MAX).contains(&count))
}
