//! The leaves of states, written down while a model runs.

use std::ops::Range;

use rayon::prelude::*;
use surety_kernels::{Heads, Rows};
use surety_model_trace::{CachedHeads, Op, Step, TraceShape};
use surety_types::ContentHash;

use super::hash::{Digest, roots, row_digests};
use crate::exact::probe::Probe;

/// Digests of what each stride of layers gives, row by row.
#[derive(Clone)]
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

    /// How many digests it holds.
    pub(crate) fn digests(&self) -> usize {
        self.rows.iter().map(Vec::len).sum()
    }

    /// Takes over what another one has written down of some rows.
    pub(crate) fn extend(&mut self, other: &Self, rows: &Range<usize>) {
        for (digests, others) in self.rows.iter_mut().zip(&other.rows) {
            digests.extend(others.get(rows.clone()).unwrap_or_default());
        }
    }

    /// Whether rows are those of another one, which begins with them.
    pub(crate) fn has(&self, rows: &Range<usize>, other: &Self) -> bool {
        let same = |(own, other): (&Vec<Digest>, &Vec<Digest>)| {
            let others = other.get(..rows.len());
            others.is_some() && own.get(rows.clone()) == others
        };
        self.rows.len() == other.rows.len() && self.rows.iter().zip(&other.rows).all(same)
    }

    /// Whether these are the vectors that it has written down.
    pub(crate) fn has_pooled(&self, vectors: &[f32]) -> bool {
        let Some(stride) = self
            .shape
            .strides()
            .checked_sub(1)
            .filter(|last| self.shape.pools(*last))
        else {
            return false;
        };
        let row_bytes = self.shape.row_bytes(stride).unwrap_or_default() as usize;
        let bytes: Vec<u8> = vectors.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.rows.get(stride as usize) == Some(&row_digests(&bytes, row_bytes))
    }

    /// The leaves of sequences that had so many rows, and no more than were written down: for each its
    /// chunks, for each chunk its strides.
    pub fn leaves(&self, sequences: &[usize]) -> Vec<Vec<Vec<ContentHash>>> {
        let column = |(stride, digests): (usize, &Vec<Digest>)| {
            // No model has 2^32 layers.
            if self.shape.pools(stride as u32) {
                roots(digests, vec![1; sequences.len()])
            } else {
                roots(
                    digests,
                    sequences.iter().flat_map(|rows| self.chunks(*rows)).collect(),
                )
            }
        };
        let columns: Vec<Vec<Digest>> = match rayon::current_thread_index() {
            Some(_) => self.rows.par_iter().enumerate().map(column).collect(),
            // Who is in no pool would start one of all the machine's threads.
            None => self.rows.iter().enumerate().map(column).collect(),
        };
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

    /// The place in each of so many pending rows of a stride, to be filled. What they had before is still
    /// there: all of a row is filled before it is hashed.
    fn places(&mut self, stride: u32, at: &Range<u32>, rows: usize) -> impl Iterator<Item = &mut [u8]> {
        let row_bytes = self.shape.row_bytes(stride).unwrap_or_default().max(1) as usize;
        self.pending.resize(rows * row_bytes, 0);
        let at = at.start as usize..at.end as usize;
        let rows = self.pending.chunks_exact_mut(row_bytes);
        rows.filter_map(move |row| row.get_mut(at.clone()))
    }
}

/// Puts numbers into their place.
fn put<T: Copy, const BYTES: usize>(into: &mut [u8], values: &[T], bytes: fn(T) -> [u8; BYTES]) {
    for (into, value) in into.as_chunks_mut().0.iter_mut().zip(values) {
        *into = bytes(*value);
    }
}

impl Probe for TopLevel {
    fn digests_of(&self) -> Option<&TraceShape> {
        Some(&self.shape)
    }

    fn digests(&mut self, stride: u32, rows: &[Digest]) {
        if let Some(digests) = self.rows.get_mut(stride as usize) {
            digests.extend_from_slice(rows);
        }
    }

    fn wants(&self, step: Step) -> bool {
        place(&self.shape, step).is_some() || place_of_heads(&self.shape, step).is_some()
    }

    fn real(&mut self, step: Step, rows: &[f32], width: usize) {
        let Some((stride, at)) = place(&self.shape, step) else {
            return;
        };
        let rows = rows.chunks_exact(width.max(1));
        for (into, row) in self.places(stride, &at, rows.len()).zip(rows) {
            put(into, row, f32::to_le_bytes);
        }
        // The state, or the vector, comes last.
        let row_bytes = self.shape.row_bytes(stride).unwrap_or_default() as usize;
        if let Some(digests) = self.rows.get_mut(stride as usize) {
            digests.extend(row_digests(&self.pending, row_bytes));
        }
    }

    fn quantized(&mut self, _: Step, _: &[f32], _: usize, _: &Rows) {}

    fn heads(&mut self, step: Step, heads: &Heads) {
        let Some((stride, at)) = place_of_heads(&self.shape, step) else {
            return;
        };
        let heads = heads.all();
        let rows = || (0..heads.count()).filter_map(|row| heads.row(row));
        let head_bytes = (2 * heads.head_dim()).max(1);
        for (into, (q, _)) in self.places(stride, &at.q, heads.count()).zip(rows()) {
            for (into, q) in into.chunks_mut(head_bytes).zip(q) {
                put(into, q, i16::to_le_bytes);
            }
        }
        for (into, (_, scales)) in self.places(stride, &at.scales, heads.count()).zip(rows()) {
            put(into, scales, f32::to_le_bytes);
        }
    }
}

/// The stride that a state or vector belongs to, and its place in its rows; nothing when it is in no leaf.
pub(crate) fn place(shape: &TraceShape, Step { layer, op }: Step) -> Option<(u32, Range<u32>)> {
    let stride = shape.stride_of(layer)?;
    let last = layer + 1 == shape.layers_of(stride).end;
    let is_recorded = match op {
        Op::Sum => last && !shape.pools(stride),
        Op::Pool => true,
        _ => false,
    };
    is_recorded.then_some((stride, shape.state(stride)?))
}

/// The same of quantized keys and values.
pub(crate) fn place_of_heads(shape: &TraceShape, Step { layer, op }: Step) -> Option<(u32, CachedHeads)> {
    let stride = shape.stride_of(layer)?;
    let at = match op {
        Op::QuantKey => shape.key(layer)?,
        Op::QuantValue => shape.value(layer)?,
        _ => return None,
    };
    (shape.kv_heads > 0).then_some((stride, at))
}
