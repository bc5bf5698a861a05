//! Everything in a leaf, by the definition.

use alloc::{borrow::Cow, vec::Vec};
use core::{fmt, ops::Range};

use crate::{
    Rows,
    compute::{Stop, cell},
    inputs::{Inputs, QuantRow, Source, WeightRow},
    layout::Part,
    plan::LeafPlan,
    player::Records,
    steps::{Op, Step},
    tensors::Tensor,
};
use surety_dispute_game::bisection::CellValue;

/// Rows, or weights, that a computation asks for are not at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing;

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rows or weights that are needed are not at hand")
    }
}

impl core::error::Error for Missing {}

/// Inputs in memory: what is recorded, and the steps of the leaf so far.
pub(super) struct View<'a, R> {
    pub records: &'a R,
    pub steps: &'a [Rows],
}

impl<R> Clone for View<'_, R> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, R: Records> View<'a, R> {
    /// The rows of a source.
    pub fn rows(&self, from: Source) -> Result<&'a Rows, Missing> {
        let rows = match from {
            Source::Step(step) => self.steps.get(step as usize),
            Source::Leaf(leaf) => self.records.rows(leaf),
            Source::Input => self.records.rows(0),
            Source::Output => self.records.output(),
        };
        rows.ok_or(Missing)
    }
}

impl<'a, R: Records> Inputs<'a> for View<'a, R> {
    type Error = Missing;

    fn numbers(&mut self, from: Source, row: u32, words: Range<u32>) -> Result<Cow<'a, [f32]>, Missing> {
        let words = self.rows(from)?.words(row, words);
        words.map(Cow::Borrowed).ok_or(Missing)
    }

    fn integers(&mut self, from: Source, row: u32, words: Range<u32>) -> Result<Cow<'a, [u32]>, Missing> {
        let integers = self.rows(from)?.integers(row, words);
        integers.map(Cow::Owned).ok_or(Missing)
    }

    fn quanta(&mut self, from: Source, row: u32, values: Range<u32>) -> Result<Cow<'a, [i16]>, Missing> {
        let (q, _) = self.rows(from)?.quantized(row).ok_or(Missing)?;
        let values = q.get(values.start as usize..values.end as usize);
        values.map(Cow::Borrowed).ok_or(Missing)
    }

    fn quantized(&mut self, step: u32, row: u32) -> Result<QuantRow<'a>, Missing> {
        let (q, scales) = self.rows(Source::Step(step))?.quantized(row).ok_or(Missing)?;
        Ok(QuantRow {
            q: q.into(),
            scales: scales.into(),
        })
    }

    fn weights(&mut self, tensor: Tensor, row: u32) -> Result<WeightRow<'a>, Missing> {
        self.records.weights(tensor, row).ok_or(Missing)
    }
}

/// Rows that are computed side by side, with the feature `parallel`.
const ROWS_AT_ONCE: u32 = 256;

/// The rows of every step of a leaf, in order; the last are those that the trace records. Cell by cell, so
/// that it is right and not fast: seconds where the kernels take a small part of one. With the feature
/// `parallel` by all threads of the pool that it is called in.
///
/// # Errors
/// [`Missing`] unless the rows of the leaves that [`LeafPlan::reads`] are at hand, the weights, and the
/// output as claimed where the family generates.
pub fn execute_leaf<R: Records>(plan: &LeafPlan<'_>, records: &R) -> Result<Vec<Rows>, Missing> {
    let mut done = Vec::new();
    for step in 0..plan.steps() {
        let rows = execute_step(plan, step, &done, records)?;
        done.push(rows);
    }
    Ok(done)
}

/// The rows of a step, from those before it.
pub(super) fn execute_step<R: Records>(
    plan: &LeafPlan<'_>,
    step: u32,
    steps: &[Rows],
    records: &R,
) -> Result<Rows, Missing> {
    let shape = plan.rows_of(step).ok_or(Missing)?;
    let precision = plan.step(step).map(|step| plan.precision_of(step.op));
    let mut rows = Rows::empty(&shape, precision.ok_or(Missing)?, is_real(plan, step));
    let one = |row| {
        let mut inputs = View { records, steps };
        let mut bytes = Vec::with_capacity(shape.row_bytes as usize);
        for place in 0..shape.cells() {
            match cell(plan, step, row, place, &mut inputs) {
                Ok(CellValue::Byte(byte)) => bytes.push(byte),
                Ok(CellValue::Word(word)) => bytes.extend(word),
                Err(Stop::NoSuchPlace) => return Err(Missing),
                Err(Stop::Input(missing)) => return Err(missing),
            }
        }
        Ok(bytes)
    };
    let mut first = 0;
    while first < shape.rows {
        let end = first.saturating_add(ROWS_AT_ONCE).min(shape.rows);
        for row in side_by_side(first..end, one)? {
            rows.push_bytes(&row);
        }
        first = end;
    }
    Ok(rows)
}

#[cfg(feature = "parallel")]
fn side_by_side(
    rows: Range<u32>,
    one: impl Fn(u32) -> Result<Vec<u8>, Missing> + Send + Sync,
) -> Result<Vec<Vec<u8>>, Missing> {
    use rayon::prelude::*;

    rows.into_par_iter().map(one).collect()
}

#[cfg(not(feature = "parallel"))]
fn side_by_side(
    rows: Range<u32>,
    one: impl Fn(u32) -> Result<Vec<u8>, Missing>,
) -> Result<Vec<Vec<u8>>, Missing> {
    rows.map(one).collect()
}

/// Whether words of a step are `f32`: all but the tokens that are chosen.
fn is_real(plan: &LeafPlan<'_>, step: u32) -> bool {
    let records = matches!(plan.step(step), Some(Step { op: Op::Record, .. }));
    !(records && matches!(plan.part(), Part::SampledTokens { .. }))
}
