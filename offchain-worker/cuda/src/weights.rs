//! Quantized matrices in the computer's memory.

use surety_exact::Precision;

/// Numbers of 16 bits that are `64 h + l` with both in a byte, as tensor cores take them.
const LIMBS: std::ops::RangeInclusive<i16> = -8192..=8191;

/// Quantized values in the computer's memory.
#[derive(Clone, Copy, Debug)]
pub enum Quanta<'a> {
    /// One byte each.
    Int8(&'a [i8]),
    /// Two bytes each.
    Int12(&'a [i16]),
}

impl Quanta<'_> {
    /// int8 or int12.
    pub fn precision(&self) -> Precision {
        match self {
            Self::Int8(_) => Precision::Int8,
            Self::Int12(_) => Precision::Int12,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Int8(q) => q.len(),
            Self::Int12(q) => q.len(),
        }
    }

    /// Whether tensor cores take them.
    pub(crate) fn are_narrow(&self) -> bool {
        match self {
            Self::Int8(_) => true,
            Self::Int12(q) => q.iter().all(|quantum| LIMBS.contains(quantum)),
        }
    }

    /// Rows of `inputs` values as bytes, each padded with zeros to `padded` values.
    pub(crate) fn padded(&self, inputs: usize, padded: usize) -> Vec<u8> {
        match self {
            Self::Int8(q) => lay_out(q, inputs, padded, |quantum| quantum.to_le_bytes()),
            Self::Int12(q) => lay_out(q, inputs, padded, |quantum| quantum.to_le_bytes()),
        }
    }
}

fn lay_out<Q: Copy, const BYTES: usize>(
    q: &[Q],
    inputs: usize,
    padded: usize,
    bytes: impl Fn(Q) -> [u8; BYTES],
) -> Vec<u8> {
    let mut all = vec![0; q.len() / inputs * padded * BYTES];
    for (into, row) in all.chunks_exact_mut(padded * BYTES).zip(q.chunks_exact(inputs)) {
        for (into, quantum) in into.chunks_exact_mut(BYTES).zip(row) {
            into.copy_from_slice(&bytes(*quantum));
        }
    }
    all
}

/// A quantized matrix or table in the computer's memory.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    /// Columns of `q`.
    pub inputs: usize,
    /// Rows of `q`.
    pub outputs: usize,
    /// `[outputs][inputs]`.
    pub q: Quanta<'a>,
    /// `[outputs][groups(inputs)]`.
    pub scales: &'a [f32],
    /// `[outputs]`.
    pub bias: Option<&'a [f32]>,
}
