//! The [`Toy`] computation with tokens that its defender alone has: a further leaf, of which the claim says
//! the hash. Who contradicts it has to ask for them.

#![allow(clippy::arithmetic_side_effects, reason = "numbers of tests")]

use alloc::{vec, vec::Vec};
use core::convert::Infallible;

use sp_core::H256;
use surety_proofs::{content_hash, merkle_root, row_digest};

use super::{
    dice::Dice,
    toy::{Computed, LEAVES, Toy, judge_among},
};
use crate::bisection::{
    Cell, Judgement, LeafKind, LeafShape, Length, Missing, Referee, Roots, RowsShape, Shape, Trace,
};

/// Bytes of an output: two parts, which are shown one by one.
pub const OUTPUT_BYTES: u32 = 12_000;

/// Shape and referee of claims about one output.
#[derive(Clone, Copy, Debug)]
pub struct Generated {
    output: H256,
}

/// A trace that ends with its output.
#[derive(Clone, Debug)]
pub struct WithOutput {
    computed: Computed,
    leaves: Vec<H256>,
    output: Vec<u8>,
}

/// Any tokens.
pub fn any_output(dice: &mut Dice) -> Vec<u8> {
    let bytes = dice.hash().0.into_iter().cycle();
    bytes.take(OUTPUT_BYTES as usize).collect()
}

impl Generated {
    /// About this output.
    pub fn new(output: &[u8]) -> Self {
        Self {
            output: content_hash(output),
        }
    }
}

impl Shape for Generated {
    fn leaves(&self) -> u32 {
        LEAVES + 1
    }

    fn leaf(&self, leaf: u32) -> Option<LeafShape> {
        if leaf != LEAVES {
            return Toy.leaf(leaf);
        }
        Some(LeafShape {
            length: Length::Known(1),
            kind: LeafKind::Fixed(self.output),
        })
    }

    fn steps(&self, leaf: u32, length: u32) -> Option<u32> {
        Toy.steps(leaf, length)
    }

    fn rows(&self, leaf: u32, length: u32, step: u32) -> Option<RowsShape> {
        if leaf != LEAVES {
            return Toy.rows(leaf, length, step);
        }
        Some(RowsShape {
            rows: 1,
            row_bytes: OUTPUT_BYTES,
            quantized: None,
        })
    }
}

impl Referee for Generated {
    /// A cell of the output is compared with nothing: what it is part of has the hash that the claim says.
    fn opening_bytes(&self, cell: &Cell) -> Option<u32> {
        Toy.opening_bytes(cell).filter(|_| cell.leaf < LEAVES)
    }

    fn needed(&self, _: &Cell) -> Option<Missing> {
        None
    }

    fn judge(&self, cell: &Cell, roots: &Roots, opening: &[u8]) -> Judgement {
        judge_among(cell, roots, opening, self.leaves())
    }
}

impl WithOutput {
    /// The trace of a computation, and of what it is claimed to have come to.
    pub fn new(mut computed: Computed, output: Vec<u8>) -> Self {
        let Ok(leaves) = computed.leaves();
        let leaves = leaves.iter().copied().chain([row_digest(&output)]).collect();
        Self {
            computed,
            leaves,
            output,
        }
    }

    /// What is committed to.
    pub fn root(&self) -> H256 {
        merkle_root(self.leaves.iter().copied())
    }
}

impl Trace for WithOutput {
    type Error = Infallible;

    fn leaves(&mut self) -> Result<&[H256], Infallible> {
        Ok(&self.leaves)
    }

    fn steps(&mut self, leaf: u32) -> Result<Vec<H256>, Infallible> {
        self.computed.steps(leaf)
    }

    fn rows(&mut self, leaf: u32, step: u32) -> Result<Vec<H256>, Infallible> {
        match leaf {
            LEAVES => Ok(vec![row_digest(&self.output)]),
            _ => self.computed.rows(leaf, step),
        }
    }

    fn row(&mut self, leaf: u32, step: u32, row: u32) -> Result<Vec<u8>, Infallible> {
        match leaf {
            LEAVES => Ok(self.output.clone()),
            _ => self.computed.row(leaf, step, row),
        }
    }

    fn open(&mut self, cell: &Cell) -> Result<Vec<u8>, Infallible> {
        self.computed.open_among(cell, self.leaves.clone())
    }
}
