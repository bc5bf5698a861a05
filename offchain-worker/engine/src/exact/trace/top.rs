//! The top level of a trace, written down while a model runs.

use surety_kernels::Rows;
use surety_types::ContentHash;

use super::{
    hash::{roots, row_digests, Digest},
    Shape,
};
use crate::exact::probe::{Op, Probe, Step};

/// Digests of what each stride of layers gives, row by row.
pub struct TopLevel {
    shape: Shape,
    /// For each stride, a digest for each row so far.
    rows: Vec<Vec<Digest>>,
    /// Rows that are being put together, of one stride.
    pending: Vec<u8>,
}

impl TopLevel {
    /// Nothing written down yet.
    pub fn new(shape: Shape) -> Self {
        Self {
            rows: vec![Vec::new(); shape.strides()],
            shape,
            pending: Vec::new(),
        }
    }

    /// The leaves of sequences that had so many rows, in the order chunk, stride.
    pub fn leaves(&self, sequences: &[usize]) -> Vec<Vec<ContentHash>> {
        let chunks = |rows: usize| self.shape.chunks(rows).map(|chunk| chunk.len());
        let columns: Vec<Vec<Digest>> = (0..)
            .zip(&self.rows)
            .map(|(stride, digests)| match self.shape.pools_in(stride) {
                true => roots(digests, vec![1; sequences.len()]),
                false => roots(digests, sequences.iter().flat_map(|rows| chunks(*rows)).collect()),
            })
            .collect();
        let mut chunk = 0..;
        let mut row = || {
            let chunk = chunk.next().unwrap_or_default();
            let leaves = columns.iter().map(move |column| column.get(chunk).copied());
            leaves.map(|leaf| ContentHash::from(leaf.unwrap_or_default()))
        };
        let of_one = |rows: &usize| (0..chunks(*rows).count()).flat_map(|_| row()).collect();
        sequences.iter().map(of_one).collect()
    }

    /// Puts rows into their columns of the pending ones.
    fn put(&mut self, at: usize, row_bytes: usize, rows: &[f32], width: usize) {
        let count = rows.len() / width.max(1);
        self.pending.resize(count * row_bytes, 0);
        let into = self.pending.chunks_exact_mut(row_bytes.max(1));
        for (row, into) in rows.chunks_exact(width.max(1)).zip(into) {
            let into = into.get_mut(at..).unwrap_or_default();
            for (value, bytes) in row.iter().zip(into.as_chunks_mut::<4>().0) {
                *bytes = value.to_le_bytes();
            }
        }
    }
}

impl Probe for TopLevel {
    fn real(&mut self, step: Step, rows: &[f32], width: usize) {
        let Some(place) = self.shape.place(step) else {
            return;
        };
        let row_bytes = self.shape.row_bytes(place.stride);
        self.put(place.at, row_bytes, rows, width);
        // The state, or the vector, comes last.
        if matches!(step.op, Op::Sum | Op::Pool) {
            if let Some(digests) = self.rows.get_mut(place.stride) {
                digests.extend(row_digests(&self.pending, row_bytes));
            }
        }
    }

    fn quantised(&mut self, _: Step, _: &[f32], _: usize, _: &Rows) {}
}
