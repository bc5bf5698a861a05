//! Rows in memory.

use alloc::{vec, vec::Vec};
use core::ops::Range;

use sp_core::H256;
use surety_exact::{HEAD_PRECISION, Precision};

use crate::{
    NO_NUMBER,
    quanta::{bytes_of, quantized_bytes, read},
};
use surety_dispute_game::bisection::RowsShape;
use surety_proofs::{merkle_root, row_digest};

/// Rows of one length, of a step or as a trace records them.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// Numbers.
    Real {
        /// In each row.
        width: u32,
        /// Row by row.
        values: Vec<f32>,
    },
    /// Small integers, and then numbers: scales, and with what a decoder's leaf records a state.
    Quantized {
        /// Values in each row.
        width: u32,
        /// int8 or int12.
        precision: Precision,
        /// The values, row by row.
        q: Vec<i16>,
        /// Numbers in each row.
        words: u32,
        /// Row by row.
        scales: Vec<f32>,
    },
    /// Tokens that were chosen, an input or an output.
    Bytes {
        /// In each row.
        row_bytes: u32,
        /// Row by row.
        bytes: Vec<u8>,
    },
}

/// Whole words as numbers.
fn words(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| f32::from_le_bytes(*word))
}

fn part<T>(values: &[T], row: u32, width: u32) -> Option<&[T]> {
    let start = (row as usize).checked_mul(width as usize)?;
    values.get(start..start.checked_add(width as usize)?)
}

impl Rows {
    /// Nothing yet, of this shape; `precision` of quantized values, `real` where words are `f32`.
    #[allow(clippy::arithmetic_side_effects, reason = "a precision has at least one byte")]
    pub(super) fn empty(shape: &RowsShape, precision: Precision, real: bool) -> Self {
        match (shape.quantized, real) {
            (Some(bytes), _) => Self::Quantized {
                width: bytes / precision.bytes() as u32,
                precision,
                q: vec![],
                words: shape.row_bytes.saturating_sub(bytes) / 4,
                scales: vec![],
            },
            (None, true) => Self::Real {
                width: shape.row_bytes / 4,
                values: vec![],
            },
            (None, false) => Self::Bytes {
                row_bytes: shape.row_bytes,
                bytes: vec![],
            },
        }
    }

    /// Numbers, from their bytes in little-endian order; nothing when they make no whole number of rows.
    pub fn real(row_bytes: u32, bytes: &[u8]) -> Option<Self> {
        let whole = row_bytes > 0 && row_bytes.is_multiple_of(4);
        (whole && bytes.len().is_multiple_of(row_bytes as usize)).then(|| Self::Real {
            width: row_bytes / 4,
            values: words(bytes).collect(),
        })
    }

    /// What a decoder's leaf records: rows of int12 values and then numbers, from their bytes; nothing when
    /// they make no whole number of rows.
    pub fn recorded(shape: &RowsShape, bytes: &[u8]) -> Option<Self> {
        let whole = shape.row_bytes > 0 && bytes.len().is_multiple_of(shape.row_bytes as usize);
        let mut rows = Self::empty(shape, HEAD_PRECISION, true);
        let words = bytes.chunks(shape.row_bytes.max(1) as usize);
        words.for_each(|row| rows.push_bytes(row));
        whole.then_some(rows)
    }

    /// A blob as one row; nothing for an empty one.
    pub fn blob(bytes: Vec<u8>) -> Option<Self> {
        let row_bytes = u32::try_from(bytes.len()).ok().filter(|bytes| *bytes > 0)?;
        Some(Self::Bytes { row_bytes, bytes })
    }

    /// Bytes that they take in memory.
    pub fn memory(&self) -> usize {
        match self {
            Self::Real { values, .. } => size_of_val(values.as_slice()),
            Self::Quantized { q, scales, .. } => {
                size_of_val(q.as_slice()).saturating_add(size_of_val(scales.as_slice()))
            }
            Self::Bytes { bytes, .. } => bytes.len(),
        }
    }

    /// Appends a row.
    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        match self {
            Self::Real { values, .. } => values.extend(words(bytes)),
            Self::Quantized {
                width,
                precision,
                q,
                scales,
                ..
            } => {
                let (of_values, rest) = bytes
                    .split_at_checked(bytes_of(*precision, *width) as usize)
                    .unwrap_or_default();
                q.extend(read(*precision, of_values));
                scales.extend(words(rest));
            }
            Self::Bytes { bytes: all, .. } => all.extend(bytes),
        }
    }

    /// Number of rows.
    pub fn count(&self) -> u32 {
        let (len, width) = match self {
            Self::Real { width, values } => (values.len(), *width),
            Self::Quantized { width, q, .. } => (q.len(), *width),
            Self::Bytes { row_bytes, bytes } => (bytes.len(), *row_bytes),
        };
        let rows = len.checked_div(width as usize).unwrap_or(0);
        u32::try_from(rows).unwrap_or(u32::MAX)
    }

    /// Bytes of each.
    pub fn row_bytes(&self) -> u32 {
        match self {
            Self::Real { width, .. } => width.saturating_mul(4),
            Self::Quantized { words, .. } => words.saturating_mul(4).saturating_add(self.quantized_bytes()),
            Self::Bytes { row_bytes, .. } => *row_bytes,
        }
    }

    /// Bytes of each row that are of quantized values.
    fn quantized_bytes(&self) -> u32 {
        match self {
            Self::Quantized { width, precision, .. } => bytes_of(*precision, *width),
            _ => 0,
        }
    }

    /// Some of a row's numbers, of those after its quantized values.
    pub(super) fn words(&self, row: u32, words: Range<u32>) -> Option<&[f32]> {
        let all = match self {
            Self::Quantized { .. } => self.quantized(row)?.1,
            _ => self.numbers(row)?,
        };
        all.get(words.start as usize..words.end as usize)
    }

    /// The numbers of a row; nothing unless rows are numbers and there is such a row.
    pub fn numbers(&self, row: u32) -> Option<&[f32]> {
        match self {
            Self::Real { width, values } => part(values, row, *width),
            _ => None,
        }
    }

    /// Some words of a row that are integers.
    pub fn integers(&self, row: u32, words: Range<u32>) -> Option<Vec<u32>> {
        let Self::Bytes { row_bytes, bytes } = self else {
            return None;
        };
        let row = part(bytes, row, *row_bytes)?;
        let range = words.start.checked_mul(4)? as usize..words.end.checked_mul(4)? as usize;
        let (words, _) = row.get(range)?.as_chunks::<4>();
        Some(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    /// The values and scales of a row; nothing unless rows are quantized and there is such a row.
    pub fn quantized(&self, row: u32) -> Option<(&[i16], &[f32])> {
        match self {
            Self::Quantized {
                width,
                q,
                words,
                scales,
                ..
            } => Some((part(q, row, *width)?, part(scales, row, *words)?)),
            _ => None,
        }
    }

    /// The bytes of a row; nothing when there is no such row.
    pub fn row(&self, row: u32) -> Option<Vec<u8>> {
        let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect();
        match self {
            Self::Real { .. } => self.numbers(row).map(bytes),
            Self::Quantized { precision, .. } => {
                let (q, scales) = self.quantized(row)?;
                let mut row = quantized_bytes(*precision, q);
                row.extend::<Vec<u8>>(bytes(scales));
                Some(row)
            }
            Self::Bytes { row_bytes, bytes } => part(bytes, row, *row_bytes).map(<[u8]>::to_vec),
        }
    }

    /// Each row's digest.
    pub fn digests(&self) -> Vec<H256> {
        (0..self.count())
            .filter_map(|row| self.row(row))
            .map(|row| row_digest(&row))
            .collect()
    }

    /// Each row's digest, of rows that a leaf computes: a row in which something has no value has one that no
    /// row has.
    pub fn recorded_digests(&self) -> Vec<H256> {
        let digest = |row: Vec<u8>| match self.lacking(&row) {
            Some(_) => H256::zero(),
            None => row_digest(&row),
        };
        let rows = (0..self.count()).filter_map(|row| self.row(row));
        rows.map(digest).collect()
    }

    /// The same with one bit changed in a byte of a row; nothing when there is no such byte.
    pub(super) fn altered(&self, row: u32, byte: u32) -> Option<Self> {
        let mut bytes = self.row(row)?;
        *bytes.get_mut(byte as usize)? ^= 1;
        let mut altered = self.clone();
        let start = row as usize;
        match &mut altered {
            Self::Real { width, values } => {
                let at = start.checked_mul(*width as usize)?;
                let new: Vec<f32> = words(&bytes).collect();
                values
                    .get_mut(at..at.checked_add(new.len())?)?
                    .copy_from_slice(&new);
            }
            Self::Quantized {
                width,
                precision,
                q,
                words: count,
                scales: all,
            } => {
                let (new_q, new_scales) = bytes.split_at_checked(bytes_of(*precision, *width) as usize)?;
                let new_q = read(*precision, new_q);
                let (at, groups) = (start.checked_mul(new_q.len())?, *count as usize);
                q.get_mut(at..at.checked_add(new_q.len())?)?
                    .copy_from_slice(&new_q);
                let at = start.checked_mul(groups)?;
                let new: Vec<f32> = words(new_scales).collect();
                all.get_mut(at..at.checked_add(groups)?)?.copy_from_slice(&new);
            }
            Self::Bytes {
                row_bytes,
                bytes: all,
            } => {
                let at = start.checked_mul(*row_bytes as usize)?;
                all.get_mut(at..at.checked_add(bytes.len())?)?
                    .copy_from_slice(&bytes);
            }
        }
        Some(altered)
    }

    /// The first byte of the first number of a row that has no value.
    pub(super) fn lacking(&self, row: &[u8]) -> Option<usize> {
        let first = self.quantized_bytes() as usize;
        let (words, _) = row.get(first..)?.as_chunks::<4>();
        let word = words.iter().position(|word| *word == NO_NUMBER.to_le_bytes())?;
        word.checked_mul(4)?.checked_add(first)
    }

    /// The digest of a leaf that computes them.
    pub fn leaf(&self) -> H256 {
        merkle_root(self.recorded_digests().into_iter())
    }
}
