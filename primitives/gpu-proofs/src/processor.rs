//! The state in a machine's own memory, computed on by its processor.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "places in a run whose size was checked"
)]

use std::{num::NonZero, thread};

use sp_core::H256;
use surety_proofs::{Proof, Tree};

use crate::{
    PARENTS, ROW,
    job::{Job, Place, Row, SHIFT, tag, tag_of},
    opening::ShownRow,
    prover::{Memory, proofs},
};

/// Rows that share a read of the weights.
const TOGETHER: usize = 4;

/// Terms that are added up for one row before it is the next one's turn.
const PART: usize = 64;

/// Cells as processors multiply them.
type Wide = [i16; ROW];

/// The machine has not so much memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

/// A machine's own memory and processor.
#[derive(Debug)]
pub struct Processor {
    threads: NonZero<usize>,
    state: Vec<Row>,
    /// Of the rows of the state.
    tags: Vec<u64>,
    weights: Vec<Wide>,
    new: Vec<Row>,
    digests: Vec<H256>,
}

impl Processor {
    /// Computes on so many threads.
    pub const fn new(threads: NonZero<usize>) -> Self {
        Self {
            threads,
            state: Vec::new(),
            tags: Vec::new(),
            weights: Vec::new(),
            new: Vec::new(),
            digests: Vec::new(),
        }
    }

    /// How many rows each thread takes of so many.
    fn share(&self, rows: usize) -> usize {
        rows.div_ceil(self.threads.get()).max(1)
    }
}

impl Memory for Processor {
    type Error = OutOfMemory;

    fn fill(&mut self, job: &Job) -> Result<(), OutOfMemory> {
        let rows = job.plan().rows as usize;
        self.state.clear();
        self.state.try_reserve_exact(rows).map_err(|_| OutOfMemory)?;
        self.state.resize(rows, [0; ROW]);
        self.tags.clear();
        self.tags.try_reserve_exact(rows).map_err(|_| OutOfMemory)?;
        self.tags.resize(rows, 0);
        self.weights = (0..ROW as u32)
            .map(|column| job.weights(column).map(i16::from))
            .collect();
        let share = self.share(rows);
        thread::scope(|scope| {
            let parts = self.state.chunks_mut(share).zip(self.tags.chunks_mut(share));
            for (part, (rows, tags)) in parts.enumerate() {
                scope.spawn(move || {
                    for (number, (row, its)) in rows.iter_mut().zip(tags).enumerate() {
                        *row = job.initial_row((part * share + number) as u32);
                        *its = tag(row);
                    }
                });
            }
        });
        Ok(())
    }

    fn step(&mut self, job: &Job, layer: u32, batch: u32) -> Result<H256, OutOfMemory> {
        let rows = job.plan().batch_rows() as usize;
        let first = batch as usize * rows;
        self.new.resize(rows, [0; ROW]);
        self.digests.resize(rows, H256::zero());
        let share = self.share(rows);
        let (state, tags, weights) = (self.state.as_slice(), self.tags.as_slice(), &self.weights);
        thread::scope(|scope| {
            let parts = self.new.chunks_mut(share).zip(self.digests.chunks_mut(share));
            for (part, (new, digests)) in parts.enumerate() {
                scope.spawn(move || {
                    let mut row = (first + part * share) as u32;
                    let groups = new.chunks_mut(TOGETHER).zip(digests.chunks_mut(TOGETHER));
                    for (new, digests) in groups {
                        compute(job, (state, tags), weights, Place { layer, row }, new);
                        for (row, digest) in new.iter().zip(digests) {
                            *digest = ShownRow::digest(&row.map(|cell| cell as u8));
                        }
                        row += TOGETHER as u32;
                    }
                });
            }
        });
        for (old, new) in self.state.iter_mut().skip(first).zip(&self.new) {
            *old = *new;
        }
        for (old, digest) in self.tags.iter_mut().skip(first).zip(&self.digests) {
            *old = tag_of(digest);
        }
        Ok(Tree::new(&self.digests, self.threads).root())
    }

    fn digests(&mut self) -> Result<Vec<H256>, OutOfMemory> {
        Ok(self.digests.clone())
    }

    fn proofs(&mut self, rows: &[u32]) -> Result<Vec<Proof>, OutOfMemory> {
        Ok(proofs(&self.digests, rows, self.threads))
    }

    fn row(&mut self, row: u32) -> Result<Row, OutOfMemory> {
        Ok(self.state.get(row as usize).copied().unwrap_or([0; ROW]))
    }
}

/// Computes some rows, the first of which is at `place`.
fn compute(job: &Job, state: (&[Row], &[u64]), weights: &[Wide], place: Place, new: &mut [Row]) {
    const NOTHING: (&Row, u64) = (&[0; ROW], 0);
    let (rows, tags) = state;
    let at = |row: u32| Some((rows.get(row as usize)?, *tags.get(row as usize)?));
    let mut gathered = [[0; ROW]; TOGETHER];
    for (number, gathered) in gathered.iter_mut().take(new.len()).enumerate() {
        let place = Place {
            row: place.row + number as u32,
            ..place
        };
        let parents: [(&Row, u64); PARENTS] =
            job.parents(place).map(|parent| at(parent.row).unwrap_or(NOTHING));
        *gathered = job.gather(place, parents).map(i16::from);
    }
    for (column, weights) in weights.iter().enumerate() {
        for (new, sum) in new.iter_mut().zip(dots(&gathered, weights)) {
            if let Some(new) = new.get_mut(column) {
                *new = (sum >> SHIFT) as i8;
            }
        }
    }
}

/// The dot product of each row with the weights. Compilers make one instruction for eight terms of it.
#[inline(always)]
fn dots(rows: &[Wide; TOGETHER], weights: &Wide) -> [i32; TOGETHER] {
    let mut sums = [0i32; TOGETHER];
    for (part, weights) in weights.chunks_exact(PART).enumerate() {
        for (sum, row) in sums.iter_mut().zip(rows) {
            let Some(row) = row.get(part * PART..(part + 1) * PART) else {
                continue;
            };
            let terms = row.iter().zip(weights);
            *sum += terms.fold(0, |sum, (a, b)| sum + i32::from(*a) * i32::from(*b));
        }
    }
    sums
}
