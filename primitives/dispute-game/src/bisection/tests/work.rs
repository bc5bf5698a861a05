//! One side's view of the toy's work, and the referee that knows nothing of it.

use super::super::*;
use super::toy::{At, Input, Toy};
use crate::testsuite::dice::Dice;
use alloc::{collections::BTreeMap, vec::Vec};
use codec::{Decode, DecodeAll, Encode};
use core::{convert::Infallible, ops::Range};
use sp_core::H256;
use surety_proofs::{
    CellOpening, Proof, SEGMENT_BYTES, SegmentOpening, content_hash, merkle_root, row_digest, rows_digest,
};

/// All rows of all steps of all leaves.
#[derive(Clone)]
pub struct Work {
    pub toy: Toy,
    rows: Vec<Vec<Vec<Vec<u8>>>>,
    pub leaves: Vec<H256>,
    /// Digests that nobody can go below: of a step, or of a row of it.
    forged: BTreeMap<(u32, u32, Option<u32>), H256>,
}

impl Work {
    /// Rightly computed from random tokens.
    pub fn new(toy: Toy, dice: &mut Dice) -> Self {
        let tokens = (0..toy.items).map(|item| {
            let length = 1 + dice.below(toy.positions);
            let output = if item == 0 { toy.output_bytes() } else { 0 };
            let tokens =
                (0..toy.positions).map(|place| if place < length { dice.number() as u32 } else { 0 });
            let words: Vec<u32> = [length, output].into_iter().chain(tokens).collect();
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        });
        let input = tokens.collect::<Vec<Vec<u8>>>().concat();
        let mut work = Self {
            toy: Toy {
                input: content_hash(&input),
                ..toy
            },
            rows: vec![vec![vec![input]]],
            leaves: Vec::new(),
            forged: BTreeMap::new(),
        };
        work.run(None);
        work
    }

    /// Computes everything but leaf 0, with `mask` laid over one byte of one cell.
    fn run(&mut self, fault: Option<(At, usize, u8)>) {
        self.rows.truncate(1);
        for leaf in 1..self.toy.leaves() {
            self.rows.push(Vec::new());
            let length = self.length(leaf);
            for step in 0..self.steps_of(leaf) {
                let shape = self.toy.rows(leaf, length, step).unwrap();
                let row = |row| {
                    let cells = (0..shape.cells()).map(|cell| self.cell((leaf, step, row, cell), fault));
                    cells.collect::<Vec<_>>().concat()
                };
                let rows = (0..shape.rows).map(row).collect();
                self.rows.last_mut().unwrap().push(rows);
            }
        }
        self.seal();
    }

    fn cell(&self, at: At, fault: Option<(At, usize, u8)>) -> Vec<u8> {
        let inputs = self.toy.inputs(at, self.length(at.0));
        let inputs: Vec<Vec<u8>> = inputs.iter().map(|input| self.read(at.0, input)).collect();
        let mut bytes = self.toy.compute(at, &inputs);
        if let Some((_, byte, mask)) = fault.filter(|fault| fault.0 == at) {
            bytes[byte] ^= mask;
        }
        bytes
    }

    /// The digests of the leaves, and the claim's output.
    fn seal(&mut self) {
        self.leaves = self
            .rows
            .iter()
            .map(|steps| digest(steps.last().unwrap()))
            .collect();
        self.leaves[0] = content_hash(&self.rows[0][0][0]);
        self.toy.output = content_hash(&self.rows.last().unwrap()[0][0]);
        *self.leaves.last_mut().unwrap() = self.toy.output;
    }

    pub fn root(&self) -> H256 {
        merkle_root(self.leaves.iter().copied())
    }

    fn steps_of(&self, leaf: u32) -> u32 {
        self.toy.place(leaf).map_or(1, |_| self.toy.steps_of(leaf))
    }

    pub fn length(&self, leaf: u32) -> u32 {
        let word = |word: u32| {
            let bytes = &self.rows[0][0][0][4 * word as usize..];
            u32::from_le_bytes(bytes[..4].try_into().unwrap())
        };
        match (leaf, self.toy.place(leaf)) {
            (0, _) => 0,
            (_, Some((item, _))) => word(item * self.toy.item_words()).clamp(1, self.toy.positions),
            (_, None) => word(1).max(1),
        }
    }

    /// All cells, in the order in which they are computed.
    pub fn cells(&self) -> Vec<At> {
        let mut cells = Vec::new();
        for leaf in 0..self.toy.leaves() {
            for step in 0..self.steps_of(leaf) {
                let shape = self.toy.rows(leaf, self.length(leaf), step).unwrap();
                for row in 0..shape.rows {
                    cells.extend((0..shape.cells()).map(|cell| (leaf, step, row, cell)));
                }
            }
        }
        cells
    }

    fn place_of(&self, (leaf, step, _, cell): At) -> Range<usize> {
        let shape = self.toy.rows(leaf, self.length(leaf), step).unwrap();
        let range = shape.bytes_of(cell).unwrap();
        range.start as usize..range.end as usize
    }

    pub fn bytes_of(&self, at: At) -> &[u8] {
        &self.rows[at.0 as usize][at.1 as usize][at.2 as usize][self.place_of(at)]
    }

    /// With one byte of one cell altered. What is computed later is computed from that, or is as it was but
    /// for the leaf's own digest.
    pub fn altered(&self, at: At, byte: usize, mask: u8, goes_on: bool) -> Self {
        let mut other = self.clone();
        let (leaf, step) = (at.0 as usize, at.1 as usize);
        if goes_on && self.toy.place(at.0).is_some() {
            other.run(Some((at, byte, mask)));
            return other;
        }
        let place = self.place_of(at).start + byte;
        other.rows[leaf][step][at.2 as usize][place] ^= mask;
        if step + 1 < other.rows[leaf].len() {
            other.rows[leaf].last_mut().unwrap()[0][0] ^= mask;
        }
        // A token may be another one, and everything be computed from that.
        let (item, word) = (at.3 / self.toy.item_words(), at.3 % self.toy.item_words());
        if goes_on && leaf == 0 && (2..2 + self.length(1 + item * self.toy.strides)).contains(&word) {
            other.run(None)
        } else {
            other.seal()
        }
        other
    }

    /// Its step `step` has this digest, and if `to_leaf` so has the leaf what follows from it.
    pub fn forge_step(&mut self, leaf: u32, step: u32, digest: H256) {
        self.forged.insert((leaf, step, None), digest);
        if step + 1 == self.steps_of(leaf) {
            self.leaves[leaf as usize] = digest;
        }
    }

    /// A row of its step has this digest.
    pub fn forge_row(&mut self, (leaf, step, row, _): At, digest: H256) {
        self.forged.insert((leaf, step, Some(row)), digest);
        let steps = self.steps(leaf).unwrap();
        self.leaves[leaf as usize] = *steps.last().unwrap();
    }

    /// The leaf has this digest, with which its steps have nothing to do.
    pub fn forge_leaf(&mut self, leaf: u32, digest: H256) {
        self.leaves[leaf as usize] = digest;
    }

    /// Its own output is shorter by so many bytes.
    pub fn cut_output(&mut self, bytes: u32) {
        let output = &mut self.rows.last_mut().unwrap()[0][0];
        output.truncate(output.len() - bytes as usize);
        self.seal();
    }

    fn step(&self, leaf: u32, step: u32) -> H256 {
        let forged = self.forged.get(&(leaf, step, None)).copied();
        forged.unwrap_or_else(|| merkle_root(self.row_digests(leaf, step).into_iter()))
    }

    fn row_digests(&self, leaf: u32, step: u32) -> Vec<H256> {
        let rows = (0u32..).zip(&self.rows[leaf as usize][step as usize]);
        rows.map(|(row, bytes)| {
            let forged = self.forged.get(&(leaf, step, Some(row))).copied();
            forged.unwrap_or_else(|| row_digest(bytes))
        })
        .collect()
    }

    fn read(&self, leaf: u32, input: &Input) -> Vec<u8> {
        let (rows, row, at) = match input {
            Input::Given { at } => (&self.rows[0][0], &0, at),
            Input::Leaf { leaf, row, at } => (self.rows[*leaf as usize].last().unwrap(), row, at),
            Input::Step { step, row, at } => (&self.rows[leaf as usize][*step as usize], row, at),
        };
        rows[*row as usize][at.start as usize..at.end as usize].to_vec()
    }

    fn piece(&self, of: u32, input: &Input) -> Piece {
        let (leaf, step, row, at) = match input {
            Input::Given { at } => {
                let segment = SegmentOpening::new(&self.rows[0][0][0], at.start / SEGMENT_BYTES);
                return Piece::Given(segment.unwrap());
            }
            Input::Leaf { leaf, row, at } => (*leaf, self.steps_of(*leaf) - 1, *row, at),
            Input::Step { step, row, at } => (of, *step, *row, at),
        };
        let (tree, place) = match input {
            Input::Step { .. } => (
                (0..self.steps_of(of)).map(|step| self.step(of, step)).collect(),
                step,
            ),
            _ => (self.leaves.clone(), leaf),
        };
        let bytes = &self.rows[leaf as usize][step as usize][row as usize];
        Piece::Computed(
            tree[place as usize],
            Proof::new(&tree, place).unwrap(),
            CellOpening::new(&self.row_digests(leaf, step), row, bytes, at.start).unwrap(),
        )
    }
}

fn digest(rows: &[Vec<u8>]) -> H256 {
    rows_digest(rows.iter().map(Vec::as_slice))
}

impl Trace for Work {
    type Error = Infallible;

    fn leaves(&mut self) -> Result<&[H256], Infallible> {
        Ok(&self.leaves)
    }

    fn steps(&mut self, leaf: u32) -> Result<Vec<H256>, Infallible> {
        Ok((0..self.steps_of(leaf))
            .map(|step| self.step(leaf, step))
            .collect())
    }

    fn rows(&mut self, leaf: u32, step: u32) -> Result<Vec<H256>, Infallible> {
        Ok(self.row_digests(leaf, step))
    }

    fn row(&mut self, leaf: u32, step: u32, row: u32) -> Result<Vec<u8>, Infallible> {
        Ok(self.rows[leaf as usize][step as usize][row as usize].clone())
    }

    fn open(&mut self, cell: &Cell) -> Result<Vec<u8>, Infallible> {
        let inputs = self
            .toy
            .inputs((cell.leaf, cell.step, cell.row, cell.cell), cell.length);
        let pieces: Vec<Piece> = inputs.iter().map(|input| self.piece(cell.leaf, input)).collect();
        let opening = pieces.encode();
        assert!(opening.len() as u32 <= Judge(self.toy).opening_bytes(cell).unwrap());
        Ok(opening)
    }
}

/// An input of a cell, with what proves it from a root.
#[derive(Encode, Decode)]
enum Piece {
    /// Of the task's input.
    Given(SegmentOpening),
    /// The digest of the leaf or step that it is in, from there to the root, and from it to the digest.
    Computed(H256, Proof, CellOpening),
}

/// Computes cells again from what is proven.
pub struct Judge(pub Toy);

impl Judge {
    fn prove(&self, cell: &Cell, roots: &Roots, input: &Input, piece: &Piece) -> Option<Vec<u8>> {
        let (root, row, at) = match input {
            Input::Given { at } => {
                let Piece::Given(segment) = piece else { return None };
                let blob = self.0.rows(0, 0, 0)?.row_bytes;
                let shown = segment.row_digest(blob) == Some(self.0.input);
                return segment.slice(at.clone()).filter(|_| shown).map(<[u8]>::to_vec);
            }
            Input::Leaf { row, at, .. } => (roots.trace, row, at),
            Input::Step { row, at, .. } => (roots.steps?, row, at),
        };
        let (leaves, index, rows) = self.0.under(cell.leaf, cell.length, input)?;
        let Piece::Computed(digest, proof, bytes) = piece else {
            return None;
        };
        if bytes.row.row != *row || !proof.verify(&root, digest, index, leaves) {
            return None;
        }
        let bytes = bytes.bytes(digest, rows.rows, rows.row_bytes, at.clone());
        bytes.map(<[u8]>::to_vec)
    }

    fn inputs(&self, cell: &Cell, roots: &Roots, mut opening: &[u8]) -> Option<Vec<Vec<u8>>> {
        let pieces = Vec::<Piece>::decode_all(&mut opening).ok()?;
        let inputs = self
            .0
            .inputs((cell.leaf, cell.step, cell.row, cell.cell), cell.length);
        if inputs.len() != pieces.len() {
            return None;
        }
        let proven = inputs
            .iter()
            .zip(&pieces)
            .map(|(input, piece)| self.prove(cell, roots, input, piece));
        proven.collect()
    }
}

impl Referee for Judge {
    fn opening_bytes(&self, cell: &Cell) -> Option<u32> {
        let inputs = self
            .0
            .inputs((cell.leaf, cell.step, cell.row, cell.cell), cell.length);
        (self.0.too_large != Some(cell.leaf)).then(|| 1 + 1500 * inputs.len() as u32)
    }

    fn needed(&self, _: &Cell) -> Option<Missing> {
        Some(Missing::Input)
    }

    fn judge(&self, cell: &Cell, roots: &Roots, opening: &[u8]) -> Judgement {
        if cell.leaf == 0 {
            // It is the task's, or nobody would be asked.
            return Judgement::Holds;
        }
        let Some(inputs) = self.inputs(cell, roots, opening) else {
            return Judgement::Unproven;
        };
        let mut value = self
            .0
            .compute((cell.leaf, cell.step, cell.row, cell.cell), &inputs);
        let holds = match cell.value {
            CellValue::Byte(byte) => value == [byte],
            CellValue::Word(word) => {
                value.resize(4, 0);
                value == word
            }
        };
        if holds {
            Judgement::Holds
        } else {
            Judgement::Refuted
        }
    }
}
