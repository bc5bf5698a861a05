//! What a trace is made of.

use core::ops::Range;

use sp_core::H256;

use super::{LEAVES_MAX, ROWS_MAX, SEGMENTS_MAX, STEPS_MAX};
use surety_proofs::{SEGMENT_BYTES, segments};

/// Bytes of a word.
const WORD: u32 = 4;

/// What a claim's trace is made of. Follows from the model and the claim; the same answers throughout a game.
///
/// A game is lost by whoever has to go where a shape breaks its word, so: for each leaf below
/// [`leaves`](Self::leaves) there is a [`leaf`](Self::leaf); leaf 0 has a known length; for each length that
/// a right trace may have there are [`steps`](Self::steps) where a leaf is computed, and for each step
/// [`rows`](Self::rows) that [can be played over](RowsShape::is_playable); none is 0 or more than the limits
/// of the module. Where a length is a word of leaf 0, that leaf is [`LeafKind::Fixed`].
pub trait Shape {
    /// Leaves of the trace: 1 to [`LEAVES_MAX`].
    fn leaves(&self) -> u32;

    /// What is under a leaf; nothing when there is no such leaf.
    fn leaf(&self, leaf: u32) -> Option<LeafShape>;

    /// Steps of a computed leaf of this length: 1 to [`STEPS_MAX`]. Nothing for a leaf that is fixed, and for
    /// a length that there cannot be.
    fn steps(&self, leaf: u32, length: u32) -> Option<u32>;

    /// Rows of step `step` of a leaf of this length; for a fixed leaf `step` is 0. Nothing when there is no
    /// such step, and for a length that there cannot be.
    fn rows(&self, leaf: u32, length: u32, step: u32) -> Option<RowsShape>;
}

/// What is under a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafShape {
    /// How long it is, in whatever the shape counts.
    pub length: Length,
    /// Where it comes from.
    pub kind: LeafKind,
}

/// How long a leaf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Follows from the claim; anything where it does not matter.
    Known(u32),
    /// As this word of leaf 0 says, a little-endian `u32`.
    Word {
        /// The word, from 0.
        word: u32,
        /// More than that is read as that, and 0 as 1.
        most: u32,
    },
}

impl Length {
    /// The length that a word of leaf 0 says.
    pub fn read(word: [u8; 4], most: u32) -> u32 {
        u32::from_le_bytes(word).min(most).max(1)
    }
}

/// Where a leaf comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafKind {
    /// It is one blob, of which the task or the claim says the
    /// [`content_hash`](surety_proofs::content_hash); a trace with another leaf is wrong. It has no steps,
    /// and is no tree of rows: the leaf is the digest of its only row.
    Fixed(H256),
    /// It is computed in steps, of which the last is the leaf.
    Computed,
}

/// Rows of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsShape {
    /// How many: 1 to [`ROWS_MAX`].
    pub rows: u32,
    /// Bytes of each: 1 to 64 MiB.
    pub row_bytes: u32,
    /// Nothing where a row is words of four bytes, of which the last may be short. Else so many single bytes
    /// come before the words, a multiple of four, so that each word is in one segment.
    pub quantized: Option<u32>,
}

impl RowsShape {
    /// Whether a game can be played over such rows.
    pub fn is_playable(&self) -> bool {
        let values = self.quantized.unwrap_or(0);
        let fits = |count, most| (1..=most).contains(&count);
        fits(self.rows, ROWS_MAX)
            && fits(self.segments(), SEGMENTS_MAX)
            && values.is_multiple_of(WORD)
            && values <= self.row_bytes
    }

    /// Segments of a row.
    pub const fn segments(&self) -> u32 {
        segments(self.row_bytes)
    }

    /// Bytes of segment `segment` of a row, all of it but where a row ends; 0 when there is no such segment.
    pub fn segment_bytes(&self, segment: u32) -> u32 {
        let start = segment.saturating_mul(SEGMENT_BYTES);
        self.row_bytes.saturating_sub(start).min(SEGMENT_BYTES)
    }

    /// Cells of a row.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "quantized values are at most as many as a row has bytes"
    )]
    pub fn cells(&self) -> u32 {
        let values = self.quantized.unwrap_or(0).min(self.row_bytes);
        let words = (self.row_bytes - values).div_ceil(WORD);
        values + words
    }

    /// Where in a row cell `cell` is; nothing when there is no such cell.
    pub fn bytes_of(&self, cell: u32) -> Option<Range<u32>> {
        let values = self.quantized.unwrap_or(0);
        let (start, bytes) = match cell.checked_sub(values) {
            None => (cell, 1),
            Some(word) => (word.checked_mul(WORD)?.checked_add(values)?, WORD),
        };
        let end = start.saturating_add(bytes).min(self.row_bytes);
        (start < end).then_some(start..end)
    }

    /// The cell with byte `byte` of a row; nothing when there is no such byte.
    pub fn cell_at(&self, byte: u32) -> Option<u32> {
        let values = self.quantized.unwrap_or(0);
        (byte < self.row_bytes).then(|| match byte.checked_sub(values) {
            None => byte,
            Some(offset) => values.saturating_add(offset / WORD),
        })
    }
}

/// Those steps of a leaf that can be played over.
pub(super) fn playable_steps(shape: &impl Shape, leaf: u32, length: u32) -> Option<u32> {
    let steps = shape.steps(leaf, length);
    steps.filter(|steps| (1..=STEPS_MAX).contains(steps))
}

/// Those rows of a step that can be played over.
pub(super) fn playable_rows(shape: &impl Shape, leaf: u32, length: u32, step: u32) -> Option<RowsShape> {
    shape.rows(leaf, length, step).filter(RowsShape::is_playable)
}

/// The leaves of a trace that can be played over.
pub(super) fn playable_leaves(shape: &impl Shape) -> Option<u32> {
    Some(shape.leaves()).filter(|leaves| (1..=LEAVES_MAX).contains(leaves))
}
