//! How long an opening can be.

use alloc::{borrow::Cow, vec};
use core::ops::Range;

use crate::{
    inputs::{Inputs, QuantRow, Source, WeightRow},
    locate::{Ground, HASH},
    quanta::bytes_of,
    tensors::{Tensor, scales},
};
use surety_dispute_game::bisection::OPENING_BYTES_MAX;
use surety_proofs::{SEGMENT_BYTES, segments};

/// Levels above the leaves of a tree of so many.
#[allow(clippy::arithmetic_side_effects, reason = "at most all bits are zeros")]
const fn depth(leaves: u32) -> u32 {
    u32::BITS - leaves.saturating_sub(1).leading_zeros()
}

/// The place of a row of weights and the number of them.
const WEIGHT_PLACE_BYTES: u32 = 8;

/// Counts what a cell asks for, and gives zeros.
pub(super) struct Measure<'l> {
    ground: Ground<'l>,
    weight_rows: Option<u32>,
    /// Bytes so far.
    pub bytes: u32,
}

/// It would be more than any opening may have, or cannot be.
pub(super) struct TooLong;

impl<'l> Measure<'l> {
    pub fn new(ground: Ground<'l>) -> Self {
        Self {
            ground,
            weight_rows: None,
            bytes: 0,
        }
    }

    fn add(&mut self, bytes: Option<u32>) -> Result<(), TooLong> {
        let bytes = bytes.and_then(|bytes| bytes.checked_add(self.bytes));
        self.bytes = bytes.filter(|bytes| *bytes <= OPENING_BYTES_MAX).ok_or(TooLong)?;
        Ok(())
    }
}

impl Inputs<'static> for Measure<'_> {
    type Error = TooLong;

    fn numbers(&mut self, from: Source, row: u32, words: Range<u32>) -> Result<Cow<'static, [f32]>, TooLong> {
        let (piece, _) = self.ground.words(from, row, &words).ok_or(TooLong)?;
        self.add(piece.size())?;
        Ok(vec![0.0; words.len()].into())
    }

    /// One word of the input is a token, whose place may depend on words before it: any segment, with the
    /// longest way up.
    fn integers(
        &mut self,
        from: Source,
        row: u32,
        words: Range<u32>,
    ) -> Result<Cow<'static, [u32]>, TooLong> {
        if from == Source::Input && words.len() == 1 {
            let bytes = self.ground.layout.facts().input_bytes;
            let depth = HASH.checked_mul(depth(segments(bytes)));
            self.add(depth.and_then(|depth| depth.checked_add(bytes.min(SEGMENT_BYTES))))?;
            return Ok(vec![0].into());
        }
        let (piece, _) = self.ground.words(from, row, &words).ok_or(TooLong)?;
        self.add(piece.size())?;
        Ok(vec![0; words.len()].into())
    }

    fn quanta(&mut self, from: Source, row: u32, values: Range<u32>) -> Result<Cow<'static, [i16]>, TooLong> {
        let (piece, _) = self.ground.quanta(from, row, &values).ok_or(TooLong)?;
        self.add(piece.size())?;
        Ok(vec![0; values.len()].into())
    }

    fn quantized(&mut self, step: u32, row: u32) -> Result<QuantRow<'static>, TooLong> {
        let (piece, values, _) = self.ground.quantized(step, row).ok_or(TooLong)?;
        self.add(piece.size())?;
        Ok(QuantRow {
            q: vec![0; values as usize].into(),
            scales: vec![0.0; scales(values) as usize].into(),
        })
    }

    #[allow(
        clippy::arithmetic_side_effects,
        reason = "a depth in bits, and sizes of single pieces"
    )]
    fn weights(&mut self, tensor: Tensor, row: u32) -> Result<WeightRow<'static>, TooLong> {
        let layout = self.ground.layout;
        let shape = tensor.shape(layout.architecture());
        let scales = shape.scales_of(row).ok_or(TooLong)?;
        let rows = *self.weight_rows.get_or_insert_with(|| layout.weight_rows());
        let depth = depth(rows);
        let bias = if shape.biased { 1 + 4 } else { 0 };
        let above = depth * HASH + WEIGHT_PLACE_BYTES + bias;
        let own = scales
            .checked_mul(4)
            .and_then(|scales| scales.checked_add(bytes_of(shape.precision, shape.values)));
        self.add(own.and_then(|own| own.checked_add(above)))?;
        Ok(WeightRow {
            q: vec![0; shape.values as usize].into(),
            scales: vec![0.0; scales as usize].into(),
            bias: None,
        })
    }
}
