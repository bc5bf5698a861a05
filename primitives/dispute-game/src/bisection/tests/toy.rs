//! A toy model: what its traces look like, and what each of their cells is a function of.
//!
//! Leaf 0 is the input: for each item how many tokens it has, how many bytes the output has (in the first
//! item), the tokens. Each item has a leaf for each stride, and each of a stride's layers the steps Mix,
//! Quant and Sum: words, bytes with a word for every four of them, words again. The last stride ends with
//! Pool, one row, and every one with Record. The last leaf is the output: all items' last records, and two
//! bytes more.

use super::super::*;
use alloc::vec::Vec;
use codec::Encode;
use core::ops::Range;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;

/// The model with a claim.
#[derive(Clone, Copy, Debug)]
pub struct Toy {
    pub items: u32,
    pub strides: u32,
    pub layers: u32,
    /// A multiple of four.
    pub width: u32,
    /// Most tokens of an item.
    pub positions: u32,
    /// A leaf whose cells no block can compute.
    pub too_large: Option<u32>,
    /// The task's.
    pub input: H256,
    /// The claim's.
    pub output: H256,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Mix,
    Quant,
    Sum,
    Pool,
    Record,
}

/// A cell's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Bytes of leaf 0.
    Given { at: Range<u32> },
    /// Bytes of a row of an earlier leaf.
    Leaf { leaf: u32, row: u32, at: Range<u32> },
    /// Bytes of a row of an earlier step of the same leaf.
    Step { step: u32, row: u32, at: Range<u32> },
}

/// Where a cell is: leaf, step, row, cell.
pub type At = (u32, u32, u32, u32);

fn word(number: u32) -> Range<u32> {
    4 * number..4 * number + 4
}

impl Toy {
    pub fn new(items: u32, strides: u32, layers: u32, width: u32, positions: u32) -> Self {
        Self {
            items,
            strides,
            layers,
            width,
            positions,
            too_large: None,
            input: H256::zero(),
            output: H256::zero(),
        }
    }

    pub fn last_leaf(&self) -> u32 {
        1 + self.items * self.strides
    }

    /// Item and stride of a computed leaf.
    pub fn place(&self, leaf: u32) -> Option<(u32, u32)> {
        let place = leaf.checked_sub(1).filter(|_| leaf < self.last_leaf())?;
        Some((place / self.strides, place % self.strides))
    }

    fn last_record(&self, item: u32) -> u32 {
        (item + 1) * self.strides
    }

    fn is_last(&self, leaf: u32) -> bool {
        self.place(leaf)
            .is_some_and(|(_, stride)| stride + 1 == self.strides)
    }

    pub fn steps_of(&self, leaf: u32) -> u32 {
        3 * self.layers + 1 + u32::from(self.is_last(leaf))
    }

    fn kind(&self, leaf: u32, step: u32) -> Option<Kind> {
        let steps = self.steps_of(leaf);
        Some(match steps.checked_sub(step)? {
            0 => return None,
            1 => Kind::Record,
            2 if self.is_last(leaf) => Kind::Pool,
            _ => [Kind::Mix, Kind::Quant, Kind::Sum][step as usize % 3],
        })
    }

    pub fn output_bytes(&self) -> u32 {
        4 * self.items * self.width + 2
    }

    fn words(&self, rows: u32) -> RowsShape {
        RowsShape {
            rows,
            row_bytes: 4 * self.width,
            quantized: None,
        }
    }

    /// Rows of the last step of an earlier leaf, as seen from a leaf of this length.
    fn record(&self, leaf: u32, length: u32) -> RowsShape {
        self.words(if self.is_last(leaf) { 1 } else { length })
    }

    /// Words of an item in leaf 0.
    pub fn item_words(&self) -> u32 {
        2 + self.positions
    }

    /// How many leaves there are below an input's root, where it is among them, and the rows there; nothing
    /// for the task's own input.
    pub fn under(&self, leaf: u32, length: u32, input: &Input) -> Option<(u32, u32, RowsShape)> {
        Some(match input {
            Input::Given { .. } => return None,
            Input::Leaf { leaf, .. } => (self.leaves(), *leaf, self.record(*leaf, length)),
            Input::Step { step, .. } => (self.steps_of(leaf), *step, self.rows(leaf, length, *step)?),
        })
    }

    /// The inputs of a cell.
    pub fn inputs(&self, (leaf, step, row, cell): At, length: u32) -> Vec<Input> {
        let before = |at: Range<u32>| {
            let step = step - 1;
            Input::Step { step, row, at }
        };
        if leaf == self.last_leaf() {
            let (item, at) = match cell / self.width {
                item if item == self.items => (0, 0..2),
                item => (item, word(cell % self.width)),
            };
            let leaf = self.last_record(item);
            return vec![Input::Leaf { leaf, row: 0, at }];
        }
        let Some((item, stride)) = self.place(leaf) else {
            return Vec::new();
        };
        match self.kind(leaf, step) {
            None => Vec::new(),
            Some(Kind::Mix) if step == 0 && stride == 0 => vec![Input::Given {
                at: word(item * self.item_words() + 2 + row),
            }],
            Some(Kind::Mix) if step == 0 => vec![Input::Leaf {
                leaf: leaf - 1,
                row,
                at: word(cell),
            }],
            Some(Kind::Mix | Kind::Record) => vec![before(word(cell))],
            Some(Kind::Quant) => match cell.checked_sub(self.width) {
                None => vec![before(word(cell))],
                Some(group) => vec![before(16 * group..16 * group + 16)],
            },
            Some(Kind::Sum) => {
                let scale = self.width + 4 * (cell / 4);
                vec![before(cell..cell + 1), before(scale..scale + 4)]
            }
            Some(Kind::Pool) => (0..length)
                .map(|row| Input::Step {
                    step: step - 1,
                    row,
                    at: word(cell),
                })
                .collect(),
        }
    }

    /// The bytes of a cell with these inputs.
    pub fn compute(&self, at: At, inputs: &[Vec<u8>]) -> Vec<u8> {
        let (leaf, step, _, cell) = at;
        let kind = self.place(leaf).and_then(|_| self.kind(leaf, step));
        let bytes = match kind {
            None | Some(Kind::Record) => return inputs.concat(),
            Some(Kind::Quant) if cell < self.width => 1,
            Some(_) => 4,
        };
        blake2_256(&(at, inputs).encode())[..bytes].to_vec()
    }
}

impl Shape for Toy {
    fn leaves(&self) -> u32 {
        self.last_leaf() + 1
    }

    fn leaf(&self, leaf: u32) -> Option<LeafShape> {
        let (length, kind) = if leaf == 0 {
            (Length::Known(0), LeafKind::Fixed(self.input))
        } else if leaf == self.last_leaf() {
            let most = u32::MAX;
            (Length::Word { word: 1, most }, LeafKind::Fixed(self.output))
        } else {
            let (item, _) = self.place(leaf)?;
            let (word, most) = (item * self.item_words(), self.positions);
            (Length::Word { word, most }, LeafKind::Computed)
        };
        Some(LeafShape { length, kind })
    }

    fn steps(&self, leaf: u32, length: u32) -> Option<u32> {
        self.place(leaf)?;
        (1..=self.positions)
            .contains(&length)
            .then(|| self.steps_of(leaf))
    }

    fn rows(&self, leaf: u32, length: u32, step: u32) -> Option<RowsShape> {
        let blob = |row_bytes| RowsShape {
            rows: 1,
            row_bytes,
            quantized: None,
        };
        if leaf == 0 {
            return (step == 0).then(|| blob(4 * self.items * self.item_words()));
        }
        if leaf == self.last_leaf() {
            return (step == 0).then(|| blob(length));
        }
        self.steps(leaf, length)?;
        Some(match self.kind(leaf, step)? {
            Kind::Quant => RowsShape {
                rows: length,
                row_bytes: 2 * self.width,
                quantized: Some(self.width),
            },
            Kind::Record => self.record(leaf, length),
            Kind::Pool => self.words(1),
            Kind::Mix | Kind::Sum => self.words(length),
        })
    }
}
