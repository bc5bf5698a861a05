//! Where the numbers that a cell is computed from come from.

use alloc::borrow::Cow;
use core::ops::Range;

use crate::tensors::Tensor;

/// What a cell may read rows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A step of the cell's own leaf, by its number.
    Step(u32),
    /// An earlier leaf, as the trace records it.
    Leaf(u32),
    /// The task's input: one row.
    Input,
    /// The output as claimed: one row.
    Output,
}

/// A row of weights, as it is committed.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightRow<'a> {
    /// Quantized values.
    pub q: Cow<'a, [i16]>,
    /// A scale for each group of them; the numbers themselves where there are none.
    pub scales: Cow<'a, [f32]>,
    /// Added to the product with this row, where there is one.
    pub bias: Option<f32>,
}

/// A row of quantized values.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantRow<'a> {
    /// Quantized values.
    pub q: Cow<'a, [i16]>,
    /// A scale for each group of them.
    pub scales: Cow<'a, [f32]>,
}

/// Gives a cell what it asks for, piece by piece. The same cell asks for the same pieces in the same order,
/// whoever gives them, as long as tokens and lengths are the same.
pub trait Inputs<'a> {
    /// Why there is no such piece.
    type Error;

    /// Numbers of a row, of those after its quantized values.
    ///
    /// # Errors
    /// When there are none to be had.
    fn numbers(&mut self, from: Source, row: u32, words: Range<u32>) -> Result<Cow<'a, [f32]>, Self::Error>;

    /// Words of a row that are integers.
    ///
    /// # Errors
    /// When there are none to be had.
    fn integers(&mut self, from: Source, row: u32, words: Range<u32>) -> Result<Cow<'a, [u32]>, Self::Error>;

    /// Some of the int12 values that a row begins with.
    ///
    /// # Errors
    /// When there are none to be had.
    fn quanta(&mut self, from: Source, row: u32, values: Range<u32>) -> Result<Cow<'a, [i16]>, Self::Error>;

    /// A quantized row of a step of the cell's leaf.
    ///
    /// # Errors
    /// When there is none to be had.
    fn quantized(&mut self, step: u32, row: u32) -> Result<QuantRow<'a>, Self::Error>;

    /// A row of weights.
    ///
    /// # Errors
    /// When there is none to be had.
    fn weights(&mut self, tensor: Tensor, row: u32) -> Result<WeightRow<'a>, Self::Error>;
}
