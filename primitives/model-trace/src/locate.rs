//! Where a piece of a row is committed.

use core::ops::Range;

use surety_exact::{HEAD_PRECISION, Precision};

use crate::{
    delivered::length_of,
    inputs::Source,
    layout::{Layout, blob_of},
    span::siblings,
    tensors::{Tensor, tensors_of_layer, tensors_outside},
};
use surety_dispute_game::bisection::{OPENING_BYTES_MAX, RowsShape, Shape};
use surety_proofs::{SEGMENT_BYTES, segments};

/// Bytes of a hash.
pub(super) const HASH: u32 = 32;

/// Kinds of segments of tokens that a model may have; the architecture does not say how many it has.
const KINDS_MAX: u32 = 256;

/// Which root a piece is under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// That over the steps of the cell's leaf.
    Steps,
    /// That over the leaves of the trace.
    Trace,
    /// The task's input.
    Input,
    /// The claimed output.
    Output,
}

/// Neighboring segments of a row, and the way from them to a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub root: Root,
    /// The step or leaf among all of them.
    pub step: (u32, u32),
    /// The row among all of the step's.
    pub row: (u32, u32),
    /// Segments of 1 KiB of the row.
    pub segments: Range<u32>,
    pub row_bytes: u32,
}

/// Where a cell is, as far as it matters to what it may read.
#[derive(Clone, Copy)]
pub(super) struct Ground<'l> {
    pub layout: &'l Layout,
    pub leaf: u32,
    /// Nothing for an output.
    pub length: Option<u32>,
}

impl Ground<'_> {
    /// Where rows are: under which root, which step or leaf of all of them, and what they hold.
    fn rows(&self, from: Source) -> Option<(Root, (u32, u32), RowsShape)> {
        Some(match from {
            Source::Step(step) => {
                let plan = self.layout.plan(self.leaf, self.length?)?;
                (Root::Steps, (step, plan.steps()), plan.rows_of(step)?)
            }
            Source::Leaf(leaf) => {
                let length = length_of(self.layout, leaf, self.length)?;
                let rows = self.layout.recorded(leaf, length)?;
                (Root::Trace, (leaf, self.layout.leaves()), rows)
            }
            Source::Input => (Root::Input, (0, 1), blob_of(self.layout.facts.input_bytes)),
            Source::Output => (Root::Output, (0, 1), blob_of(self.layout.output_bytes())),
        })
    }

    /// The piece with some bytes of a row; nothing when there are no such bytes.
    pub fn piece(&self, from: Source, row: u32, bytes: Range<u32>) -> Option<Piece> {
        let (root, step, rows) = self.rows(from)?;
        let exists = row < rows.rows && !bytes.is_empty() && bytes.end <= rows.row_bytes;
        exists.then(|| Piece {
            root,
            step,
            row: (row, rows.rows),
            segments: bytes.start / SEGMENT_BYTES..bytes.end.div_ceil(SEGMENT_BYTES),
            row_bytes: rows.row_bytes,
        })
    }

    /// The piece with some words of a row, of those after its quantized values, and where in the row they
    /// are.
    pub fn words(&self, from: Source, row: u32, words: &Range<u32>) -> Option<(Piece, Range<u32>)> {
        let first = self.rows(from)?.2.quantized.unwrap_or(0);
        let byte = |word: u32| word.checked_mul(4)?.checked_add(first);
        let bytes = byte(words.start)?..byte(words.end)?;
        Some((self.piece(from, row, bytes.clone())?, bytes))
    }

    /// The piece with some of attention's quantized values, and where in the row they are.
    pub fn quanta(&self, from: Source, row: u32, values: &Range<u32>) -> Option<(Piece, Range<u32>)> {
        let each = HEAD_PRECISION.bytes() as u32;
        let bytes = values.start.checked_mul(each)?..values.end.checked_mul(each)?;
        Some((self.piece(from, row, bytes.clone())?, bytes))
    }

    /// A whole quantized row of a step, how many values it has, and what they are.
    pub fn quantized(&self, step: u32, row: u32) -> Option<(Piece, u32, Precision)> {
        let plan = self.layout.plan(self.leaf, self.length?)?;
        let rows = plan.rows_of(step)?;
        let piece = self.piece(Source::Step(step), row, 0..rows.row_bytes)?;
        let values = rows.quantized?.checked_div(plan.precision().bytes() as u32)?;
        Some((piece, values, plan.precision()))
    }
}

impl Piece {
    /// The bytes of the row that it holds.
    pub fn bytes(&self) -> Range<u32> {
        let end = self.segments.end.saturating_mul(SEGMENT_BYTES);
        self.segments.start.saturating_mul(SEGMENT_BYTES)..end.min(self.row_bytes)
    }

    /// The trees above it, from the segments' up: the span in each, and how many leaves it has.
    pub fn trees(&self) -> [Option<(Range<u32>, u32)>; 3] {
        let one = |(place, all): (u32, u32)| (place..place.saturating_add(1), all);
        let above = matches!(self.root, Root::Steps | Root::Trace);
        [
            Some((self.segments.clone(), segments(self.row_bytes))),
            above.then(|| one(self.row)),
            above.then(|| one(self.step)),
        ]
    }

    /// Bytes of its opening; nothing when they are more than any opening may have. The way to a piece has
    /// branches for each of its segments: of a longer one they are not even counted.
    pub fn size(&self) -> Option<u32> {
        let bytes = self.bytes().len() as u32;
        if bytes > OPENING_BYTES_MAX {
            return None;
        }
        let mut hashes = 0u32;
        for (span, leaves) in self.trees().into_iter().flatten() {
            hashes = hashes.checked_add(siblings(&span, leaves)?)?;
        }
        hashes.checked_mul(HASH)?.checked_add(bytes)
    }
}

impl Layout {
    /// Rows of all weights together, or a few more. Layers have the same ones, so that they are counted once.
    pub(super) fn weight_rows(&self) -> u32 {
        let rows = |tensor: Tensor| match tensor {
            Tensor::Types => KINDS_MAX,
            tensor => tensor.shape(&self.architecture).rows,
        };
        let sum = |sum: u32, tensor| sum.saturating_add(rows(tensor));
        let family = self.facts.family;
        let outside = tensors_outside(family, &self.architecture).fold(0, sum);
        let layer = tensors_of_layer(family, &self.architecture, 0).fold(0, sum);
        outside.saturating_add(layer.saturating_mul(self.architecture.layers))
    }
}
