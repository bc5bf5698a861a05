//! Queries, keys and values, quantized head by head.

use std::ops::Range;

use rayon::prelude::*;
use surety_exact::{self as exact, ArithmeticError};

use crate::isa::{Isa, current, per_isa};

/// Values that are worth a task of their own.
const TASK: usize = 1 << 15;

/// Rows of queries, keys or values as attention takes them: int12 with a scale for each head. Reuse one: it
/// keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct Heads {
    count: usize,
    heads: usize,
    head_dim: usize,
    /// `[count][heads][stride]`
    q: Vec<i16>,
    /// `[count][heads]`
    scales: Vec<f32>,
}

/// From a head to the next: values are multiplied in pairs.
fn stride(head_dim: usize) -> usize {
    head_dim.next_multiple_of(2)
}

per_isa! {
    fn quantize_part(rows: &[f32], head_dim: usize, q: &mut [i16], scales: &mut [f32]) -> Result<(), ArithmeticError> {
        let heads = rows.chunks_exact(head_dim).zip(q.chunks_exact_mut(stride(head_dim)));
        for ((values, q), scale) in heads.zip(scales.iter_mut()) {
            let (q, padding) = q.split_at_mut(head_dim);
            padding.fill(0);
            exact::quantize_heads(values, head_dim, q, std::slice::from_mut(scale))?;
        }
        Ok(())
    }
}

impl Heads {
    /// Rows that were quantized elsewhere: `q` is `[rows][heads][head_dim]`, `scales` is `[rows][heads]`.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] when the lengths do not fit together or a head is too wide.
    pub fn from_parts(
        (heads, head_dim): (usize, usize),
        q: &[i16],
        scales: Vec<f32>,
    ) -> Result<Self, ArithmeticError> {
        let fits = heads > 0
            && (1..=exact::HEAD_MAX).contains(&head_dim)
            && scales.len().is_multiple_of(heads)
            && scales.len().checked_mul(head_dim) == Some(q.len());
        if !fits {
            return Err(ArithmeticError::Shape);
        }
        let stride = stride(head_dim);
        let mut padded = vec![0; scales.len() * stride];
        for (into, head) in padded.chunks_exact_mut(stride).zip(q.chunks_exact(head_dim)) {
            into[..head_dim].copy_from_slice(head);
        }
        Ok(Self {
            count: scales.len() / heads,
            heads,
            head_dim,
            q: padded,
            scales,
        })
    }

    /// Quantizes rows of `heads * head_dim` values.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for another number of values or too wide a head,
    /// [`ArithmeticError::NotFinite`] for a NaN or an infinity.
    pub fn quantize(&mut self, rows: &[f32], heads: usize, head_dim: usize) -> Result<(), ArithmeticError> {
        let width = heads.checked_mul(head_dim).ok_or(ArithmeticError::Shape)?;
        if width == 0 || head_dim > exact::HEAD_MAX || !rows.len().is_multiple_of(width) {
            return Err(ArithmeticError::Shape);
        }
        (self.count, self.heads, self.head_dim) = (rows.len() / width, heads, head_dim);
        let all = self.count * heads;
        self.q.resize(all * stride(head_dim), 0);
        self.scales.resize(all, 0.0);
        let isa: Isa = current();
        if rows.len() < 2 * TASK || rayon::current_num_threads() == 1 {
            return quantize_part(isa, rows, head_dim, &mut self.q, &mut self.scales);
        }
        let each = TASK.div_ceil(head_dim);
        let into = self.q.par_chunks_mut(each * stride(head_dim));
        let parts = rows.par_chunks(each * head_dim).zip(into);
        let parts = parts.zip(self.scales.par_chunks_mut(each));
        parts.try_for_each(|((rows, q), scales)| quantize_part(isa, rows, head_dim, q, scales))
    }

    /// All rows.
    pub fn all(&self) -> HeadRows<'_> {
        HeadRows {
            count: self.count,
            heads: self.heads,
            head_dim: self.head_dim,
            q: &self.q,
            scales: &self.scales,
        }
    }

    /// Some of the rows; nothing when there are not so many.
    pub fn rows(&self, rows: Range<usize>) -> Option<HeadRows<'_>> {
        let heads = rows.start.checked_mul(self.heads)?..rows.end.checked_mul(self.heads)?;
        let stride = stride(self.head_dim);
        Some(HeadRows {
            count: rows.len(),
            q: self.q.get(heads.start * stride..heads.end * stride)?,
            scales: self.scales.get(heads)?,
            ..self.all()
        })
    }
}

/// Rows of [`Heads`].
#[derive(Clone, Copy, Debug)]
pub struct HeadRows<'a> {
    count: usize,
    heads: usize,
    head_dim: usize,
    q: &'a [i16],
    scales: &'a [f32],
}

impl<'a> HeadRows<'a> {
    /// Number of rows.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Heads of a row.
    pub fn heads(&self) -> usize {
        self.heads
    }

    /// Values of a head.
    pub fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// The values of each head of one row, and their scales; nothing when there is no such row.
    pub fn row(&self, row: usize) -> Option<(impl Iterator<Item = &'a [i16]> + use<'a>, &'a [f32])> {
        let heads = row.checked_mul(self.heads)?..row.checked_add(1)?.checked_mul(self.heads)?;
        let scales = self.scales.get(heads.clone())?;
        let all = *self;
        Some((heads.map(move |head| &all.q(head)[..all.head_dim]), scales))
    }

    /// A head's values, by row, then by head, with zeros to whole pairs.
    pub(crate) fn q(&self, head: usize) -> &'a [i16] {
        let stride = stride(self.head_dim);
        &self.q[head * stride..][..stride]
    }

    /// A head's scale, likewise.
    pub(crate) fn scale(&self, head: usize) -> f32 {
        self.scales[head]
    }
}
