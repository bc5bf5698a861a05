//! The leaves of states, written down while a model runs.

use std::ops::Range;

use surety_kernels::Rows;
use surety_model_trace::{Op, Step, TraceShape};
use surety_types::ContentHash;

use super::hash::{Digest, roots, row_digests};
use crate::exact::probe::Probe;

/// Digests of what each stride of layers gives, row by row.
pub struct TopLevel {
    shape: TraceShape,
    /// For each stride, a digest for each row so far.
    rows: Vec<Vec<Digest>>,
    /// Rows that are being put together, of one stride.
    pending: Vec<u8>,
}

impl TopLevel {
    /// Nothing written down yet.
    pub fn new(shape: TraceShape) -> Self {
        Self {
            rows: vec![Vec::new(); shape.strides() as usize],
            shape,
            pending: Vec::new(),
        }
    }

    /// The leaves of sequences that had so many rows: for each its chunks, for each chunk its strides.
    pub fn leaves(&self, sequences: &[usize]) -> Vec<Vec<Vec<ContentHash>>> {
        let columns: Vec<Vec<Digest>> = (0..)
            .zip(&self.rows)
            .map(|(stride, digests)| {
                if self.shape.pools(stride) {
                    roots(digests, vec![1; sequences.len()])
                } else {
                    roots(
                        digests,
                        sequences.iter().flat_map(|rows| self.chunks(*rows)).collect(),
                    )
                }
            })
            .collect();
        let mut chunk = 0..;
        let mut strides = |_| {
            let chunk: usize = chunk.next().unwrap_or_default();
            let leaves = columns.iter().map(|column| column.get(chunk).copied());
            leaves
                .map(|leaf| ContentHash::from(leaf.unwrap_or_default()))
                .collect()
        };
        let of_one = |rows: &usize| self.chunks(*rows).map(&mut strides).collect();
        sequences.iter().map(of_one).collect()
    }

    /// Rows of a chunk, but for the last of a sequence.
    pub(super) fn chunk_rows(&self) -> usize {
        self.shape.chunk.max(1) as usize
    }

    /// Rows of each chunk of a sequence.
    fn chunks(&self, rows: usize) -> impl Iterator<Item = usize> + '_ {
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        (0..self.shape.chunks(rows)).map(move |chunk| self.shape.rows_of(chunk, rows).len())
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
        let Some((stride, at)) = place(&self.shape, step) else {
            return;
        };
        let row_bytes = self.shape.row_bytes(stride).unwrap_or_default() as usize;
        self.put(at.start as usize, row_bytes, rows, width);
        // The state, or the vector, comes last.
        if matches!(step.op, Op::Sum | Op::Pool)
            && let Some(digests) = self.rows.get_mut(stride as usize)
        {
            digests.extend(row_digests(&self.pending, row_bytes));
        }
    }

    fn quantised(&mut self, _: Step, _: &[f32], _: usize, _: &Rows) {}
}

/// The stride that a step's rows belong to, and their place in its rows; nothing when they are in no leaf.
pub(crate) fn place(shape: &TraceShape, Step { layer, op }: Step) -> Option<(u32, Range<u32>)> {
    let stride = shape.stride_of(layer)?;
    let decodes = shape.kv_width > 0;
    let at = match op {
        Op::Sum if layer + 1 == shape.layers_of(stride).end && !shape.pools(stride) => shape.state()?,
        Op::Pool => shape.state()?,
        Op::RotateKey if decodes => shape.key(layer)?,
        Op::Value if decodes => shape.value(layer)?,
        _ => return None,
    };
    Some((stride, at))
}
