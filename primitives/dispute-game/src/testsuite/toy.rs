//! A computation small enough to be disputed a million times, with everything that a real one has: an input,
//! leaves computed in steps, rows, cells, and a referee who computes one of them again.
//!
//! Leaf 0 is the input: [`ROWS`] rows of [`WORDS`] words, and two steps that are the same, of cells that no
//! block can compute. Each further leaf takes the leaf before it through
//! two steps, word by word: `x -> 3 x + leaf`, and `x -> x xor 0x5a5a5a5a`, which is the leaf.

#![allow(clippy::arithmetic_side_effects, reason = "numbers of tests")]

use super::dice::Dice;
use crate::bisection::{
    Cell, CellValue, Judgement, LeafKind, LeafShape, Length, Missing, Referee, Roots, RowsShape, Shape, Trace,
};
use alloc::{vec, vec::Vec};
use codec::{Decode, Encode};
use core::convert::Infallible;
use sp_core::H256;
use surety_proofs::{CellOpening, Proof, merkle_root, row_digest, rows_digest};

/// Rows of each step.
pub const ROWS: u32 = 2;
/// Words of a row.
pub const WORDS: u32 = 4;
/// Leaves, the input included.
pub const LEAVES: u32 = 6;
/// Steps of a computed leaf.
pub const STEPS: u32 = 2;

const ROW_BYTES: u32 = 4 * WORDS;
const CELLS: usize = (ROWS * WORDS) as usize;

type Words = [u32; CELLS];

/// The shape of all toys.
#[derive(Clone, Copy, Debug, Default)]
pub struct Toy;

impl Shape for Toy {
    fn leaves(&self) -> u32 {
        LEAVES
    }

    fn leaf(&self, leaf: u32) -> Option<LeafShape> {
        (leaf < LEAVES).then_some(LeafShape {
            length: Length::Known(ROWS),
            kind: LeafKind::Computed,
        })
    }

    fn steps(&self, leaf: u32, _: u32) -> Option<u32> {
        (leaf < LEAVES).then_some(STEPS)
    }

    fn rows(&self, _: u32, _: u32, _: u32) -> Option<RowsShape> {
        Some(RowsShape {
            rows: ROWS,
            row_bytes: ROW_BYTES,
            quantized: None,
        })
    }
}

const fn step(leaf: u32, step: u32, x: u32) -> u32 {
    match step {
        0 => x.wrapping_mul(3).wrapping_add(leaf),
        _ => x ^ 0x5a5a_5a5a,
    }
}

/// Where a liar puts another number than the right one. What follows is computed from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alteration {
    /// The leaf, from 1.
    pub leaf: u32,
    /// The step.
    pub step: u32,
    /// Which of the step's words.
    pub word: u32,
    /// What is added to it; not 0.
    pub by: u32,
}

impl Alteration {
    /// Any alteration there can be.
    pub fn any(dice: &mut Dice) -> Self {
        Self {
            leaf: 1 + dice.below(LEAVES - 1),
            step: dice.below(STEPS),
            word: dice.below(ROWS * WORDS),
            by: 1 + dice.below(u32::MAX),
        }
    }
}

/// All that was computed.
#[derive(Clone, Debug)]
pub struct Computed {
    input: Words,
    /// By leaf from 1, by step.
    steps: Vec<[Words; STEPS as usize]>,
    leaves: Vec<H256>,
}

fn rows(words: &Words) -> Vec<Vec<u8>> {
    let bytes = |row: &[u32]| row.iter().flat_map(|word| word.to_le_bytes()).collect();
    words.chunks(WORDS as usize).map(bytes).collect()
}

fn digest(words: &Words) -> H256 {
    rows_digest(rows(words).iter().map(Vec::as_slice))
}

impl Computed {
    /// From an input, with an alteration or without.
    pub fn new(seed: u64, alteration: Option<Alteration>) -> Self {
        let mut input = [0u32; CELLS];
        for (at, word) in (0u64..).zip(&mut input) {
            *word = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (at + 8)) as u32;
        }
        let (mut words, mut steps, mut leaves) = (input, Vec::new(), vec![digest(&input)]);
        for leaf in 1..LEAVES {
            let mut of_leaf = [[0; CELLS]; STEPS as usize];
            for (number, made) in (0u32..).zip(&mut of_leaf) {
                words = words.map(|x| step(leaf, number, x));
                let here =
                    alteration.filter(|alteration| (alteration.leaf, alteration.step) == (leaf, number));
                if let Some(word) = here.and_then(|alteration| words.get_mut(alteration.word as usize)) {
                    *word = word.wrapping_add(here.map_or(0, |alteration| alteration.by));
                }
                *made = words;
            }
            steps.push(of_leaf);
            leaves.push(digest(&words));
        }
        Self { input, steps, leaves }
    }

    /// What is committed to.
    pub fn root(&self) -> H256 {
        merkle_root(self.leaves.iter().copied())
    }

    /// What shows a cell's input, in a trace of these leaves.
    pub(super) fn open_among(&mut self, cell: &Cell, leaves: Vec<H256>) -> Result<Vec<u8>, Infallible> {
        let before = cell.leaf.saturating_sub(1);
        let (leaf, step, digests, place) = match cell.step {
            0 => (before, STEPS - 1, leaves, before),
            _ => (cell.leaf, 0, self.steps(cell.leaf)?, 0),
        };
        let row = self.row(leaf, step, cell.row)?;
        let of_rows = self.rows(leaf, step)?;
        let opened = CellOpening::new(&of_rows, cell.row, &row, 4 * cell.cell);
        let proof = Proof::new(&digests, place);
        let digest = digests.get(place as usize).copied();
        Ok(match (digest, proof, opened) {
            (Some(digest), Some(proof), Some(opened)) => (digest, proof, opened).encode(),
            _ => Vec::new(),
        })
    }

    fn words(&self, leaf: u32, step: u32) -> &Words {
        let of_leaf = (leaf as usize)
            .checked_sub(1)
            .and_then(|leaf| self.steps.get(leaf));
        of_leaf
            .and_then(|steps| steps.get(step as usize))
            .unwrap_or(&self.input)
    }
}

/// The input of a cell: the digest of what it is in, its way up to a root, and its own way up to the digest.
type Opening = (H256, Proof, CellOpening);

impl Trace for Computed {
    type Error = Infallible;

    fn leaves(&mut self) -> Result<&[H256], Infallible> {
        Ok(&self.leaves)
    }

    fn steps(&mut self, leaf: u32) -> Result<Vec<H256>, Infallible> {
        Ok((0..STEPS).map(|step| digest(self.words(leaf, step))).collect())
    }

    fn rows(&mut self, leaf: u32, step: u32) -> Result<Vec<H256>, Infallible> {
        Ok(rows(self.words(leaf, step))
            .iter()
            .map(|row| row_digest(row))
            .collect())
    }

    fn row(&mut self, leaf: u32, step: u32, row: u32) -> Result<Vec<u8>, Infallible> {
        Ok(rows(self.words(leaf, step))
            .into_iter()
            .nth(row as usize)
            .unwrap_or_default())
    }

    fn open(&mut self, cell: &Cell) -> Result<Vec<u8>, Infallible> {
        let leaves = self.leaves.clone();
        self.open_among(cell, leaves)
    }
}

impl Referee for Toy {
    fn opening_bytes(&self, cell: &Cell) -> Option<u32> {
        (cell.leaf > 0).then_some(512)
    }

    fn needed(&self, _: &Cell) -> Option<Missing> {
        None
    }

    fn judge(&self, cell: &Cell, roots: &Roots, opening: &[u8]) -> Judgement {
        judge_among(cell, roots, opening, LEAVES)
    }
}

/// What a referee finds of a cell in a trace of so many leaves.
pub(super) fn judge_among(cell: &Cell, roots: &Roots, opening: &[u8], leaves: u32) -> Judgement {
    let Some(x) = input_of(cell, roots, opening, leaves) else {
        return Judgement::Unproven;
    };
    if CellValue::Word(step(cell.leaf, cell.step, x).to_le_bytes()) == cell.value {
        Judgement::Holds
    } else {
        Judgement::Refuted
    }
}

/// The input of a computed cell, if the opening proves it.
fn input_of(cell: &Cell, roots: &Roots, mut opening: &[u8], leaves: u32) -> Option<u32> {
    let (digest, proof, opened) = Opening::decode(&mut opening).ok()?;
    let (root, place, among) = match cell.step {
        0 => (roots.trace, cell.leaf.checked_sub(1)?, leaves),
        _ => (roots.steps?, 0, STEPS),
    };
    if opened.row.row != cell.row || !proof.verify(&root, &digest, place, among) {
        return None;
    }
    let start = 4 * cell.cell;
    let bytes = opened.bytes(&digest, ROWS, ROW_BYTES, start..start + 4)?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}
