//! The top level of a trace, written down while a model runs.

use surety_kernels::Rows;
use surety_types::ContentHash;

use super::{
    hash::{roots, row_digests, Digest},
    Shape,
};
use crate::exact::probe::{Op, Probe, Step};

/// Digests of what each stride of layers gives, row by row.
pub(crate) struct TopLevel {
    shape: Shape,
    /// For each stride, a digest for each row so far.
    rows: Vec<Vec<Digest>>,
    /// Rows that are being put together, of one stride.
    pending: Vec<u8>,
}

impl TopLevel {
    pub(crate) fn new(shape: Shape) -> Self {
        Self {
            rows: vec![Vec::new(); shape.strides()],
            shape,
            pending: Vec::new(),
        }
    }

    /// Leaves of a sequence whose rows are `rows` of each stride, chunk by chunk and in each stride by stride.
    ///
    /// The last stride of an encoder has one row for the sequence, its number `sequence`.
    pub(crate) fn leaves(&self, sequence: usize, rows: std::ops::Range<usize>) -> Vec<ContentHash> {
        let mut leaves = Vec::new();
        for chunk in self.shape.chunks(rows.len()) {
            let chunk = rows.start + chunk.start..rows.start + chunk.end;
            for (stride, digests) in self.rows.iter().enumerate() {
                let pooled = self.shape.pools() && stride + 1 == self.rows.len();
                let chunk = if pooled {
                    sequence..sequence + 1
                } else {
                    chunk.clone()
                };
                let digests = digests.get(chunk).unwrap_or_default();
                let leaf = roots(digests, digests.len()).first().copied().unwrap_or_default();
                leaves.push(ContentHash::from(leaf));
            }
        }
        leaves
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
