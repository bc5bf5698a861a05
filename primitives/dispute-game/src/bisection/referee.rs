//! Who computes a cell again.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::H256;

use super::Missing;

/// The cell that a game came to, and what the defender says it is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Cell {
    /// The leaf of the trace.
    pub leaf: u32,
    /// How long the leaf is.
    pub length: u32,
    /// The step of the leaf; 0 where it is fixed.
    pub step: u32,
    /// The row of the step.
    pub row: u32,
    /// Its place among the cells of the row.
    pub cell: u32,
    /// What the defender showed.
    pub value: CellValue,
}

/// What is in a cell.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum CellValue {
    /// A word: the bytes of an `f32` or a `u32`, little-endian. Zeros stand for what is missing at the end of
    /// a row.
    Word([u8; 4]),
    /// A quantized value, or one of its bytes.
    Byte(u8),
}

/// What the defender committed to. Everything in it that comes before the cell is what an honest challenger
/// has too.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Roots {
    /// The root over the leaves of the trace.
    pub trace: H256,
    /// The root over the steps of the cell's leaf, where it is computed.
    pub steps: Option<H256>,
}

/// What a referee finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The cell's inputs give the cell.
    Holds,
    /// They give something else.
    Refuted,
    /// The opening is no opening of this cell: its inputs are not proven. The move is refused, and nothing
    /// else: the defender may try again while it has time.
    Unproven,
}

/// Computes cells again.
pub trait Referee {
    /// Most bytes of an opening of `cell`, from its place alone; nothing when no block can compute it again.
    /// The game compares it with [`opening_room`](super::opening_room): a cell whose opening could be too
    /// long needs a committee.
    fn opening_bytes(&self, cell: &Cell) -> Option<u32>;

    /// What others have to have, beside the model, to compute `cell` in their own view of the claim. The
    /// defender shows it before a committee is asked.
    fn needed(&self, cell: &Cell) -> Option<Missing>;

    /// Judges `cell`. Its inputs have to be proven from `roots`, from the claim or from the model's weights,
    /// and have to come before the cell.
    fn judge(&self, cell: &Cell, roots: &Roots, opening: &[u8]) -> Judgement;
}
