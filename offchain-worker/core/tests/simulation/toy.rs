//! A computation of a few given leaves, so that games about it are real and cheap.

use std::{convert::Infallible, sync::OnceLock};

use sp_core::H256;
use surety_dispute_game::bisection::{
    Cell, CellValue, Judgement, LeafKind, LeafShape, Length, Referee, Roots, RowsShape, Shape, Trace,
};
use surety_proofs::{merkle_root, row_digest, rows_digest};

pub const LEAVES: u32 = 40;
const ROWS: u32 = 3;
const ROW_BYTES: u32 = 1500;

/// What everything is, with one word changed or not.
#[derive(Clone)]
pub struct Toy {
    altered: Option<(u32, u32, u32)>,
    leaves: Vec<H256>,
}

impl Toy {
    fn new(altered: Option<(u32, u32, u32)>) -> Self {
        let mut toy = Self {
            altered,
            leaves: Vec::new(),
        };
        toy.leaves = (0..LEAVES).map(|leaf| toy.leaf_digest(leaf)).collect();
        toy
    }

    /// The right one.
    pub fn honest() -> Self {
        static HONEST: OnceLock<Toy> = OnceLock::new();
        HONEST.get_or_init(|| Self::new(None)).clone()
    }

    /// Changed at a place that follows from a number.
    pub fn altered_at(place: u64) -> Self {
        let pick = |shift: u64, bound: u32| (place >> shift) as u32 % bound;
        Self::new(Some((pick(0, LEAVES), pick(16, ROWS), pick(32, ROW_BYTES / 4))))
    }

    pub fn root(&self) -> H256 {
        merkle_root(self.leaves.iter().copied())
    }

    fn leaf_digest(&self, leaf: u32) -> H256 {
        let rows: Vec<_> = (0..ROWS).map(|row| self.bytes(leaf, row)).collect();
        rows_digest(rows.iter().map(Vec::as_slice))
    }

    fn word(&self, leaf: u32, row: u32, word: u32) -> [u8; 4] {
        let right = (leaf * 7919 + row * 31 + word) * 2;
        let wrong = u32::from(self.altered == Some((leaf, row, word)));
        (right + wrong).to_le_bytes()
    }

    fn bytes(&self, leaf: u32, row: u32) -> Vec<u8> {
        (0..ROW_BYTES / 4)
            .flat_map(|word| self.word(leaf, row, word))
            .collect()
    }
}

impl Trace for Toy {
    type Error = Infallible;

    fn leaves(&mut self) -> Result<&[H256], Infallible> {
        Ok(&self.leaves)
    }

    fn steps(&mut self, _: u32) -> Result<Vec<H256>, Infallible> {
        Ok(Vec::new())
    }

    fn rows(&mut self, leaf: u32, _: u32) -> Result<Vec<H256>, Infallible> {
        Ok((0..ROWS).map(|row| row_digest(&self.bytes(leaf, row))).collect())
    }

    fn row(&mut self, leaf: u32, _: u32, row: u32) -> Result<Vec<u8>, Infallible> {
        Ok(self.bytes(leaf, row))
    }

    fn open(&mut self, _: &Cell) -> Result<Vec<u8>, Infallible> {
        Ok(Vec::new())
    }
}

/// Knows what is right.
pub struct Knowing;

impl Shape for Knowing {
    fn leaves(&self) -> u32 {
        LEAVES
    }

    fn leaf(&self, leaf: u32) -> Option<LeafShape> {
        (leaf < LEAVES).then_some(LeafShape {
            length: Length::Known(1),
            kind: LeafKind::Given,
        })
    }

    fn steps(&self, _: u32, _: u32) -> Option<u32> {
        None
    }

    fn rows(&self, leaf: u32, _: u32, _: u32) -> Option<RowsShape> {
        (leaf < LEAVES).then_some(RowsShape {
            rows: ROWS,
            row_bytes: ROW_BYTES,
            quantised: None,
        })
    }
}

impl Referee for Knowing {
    fn opening_bytes(&self, _: &Cell) -> Option<u32> {
        Some(0)
    }

    fn judge(&self, cell: &Cell, _: &Roots, _: &[u8]) -> Judgement {
        let right = Toy::honest().word(cell.leaf, cell.row, cell.cell);
        match cell.value == CellValue::Word(right) {
            true => Judgement::Holds,
            false => Judgement::Refuted,
        }
    }
}
