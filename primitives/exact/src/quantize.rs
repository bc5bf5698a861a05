//! Real rows to small integers: groups of 128 values with a scale each.

use crate::{ArithmeticError, functions::ROUNDER};

/// How finely a model's rows are quantized, weights and activations alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// -127 to 127, one byte each.
    #[default]
    Int8,
    /// -2047 to 2047, two bytes each, little-endian. A group's sum still fits 32 bits.
    Int12,
}

impl Precision {
    /// The largest quantized value; the one below its negative is not used, so negation is exact.
    pub const fn max(self) -> i16 {
        match self {
            Self::Int8 => 127,
            Self::Int12 => 2047,
        }
    }

    /// Bytes of a quantized value.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Int8 => 1,
            Self::Int12 => 2,
        }
    }
}

/// What holds a quantized value.
pub trait Quantum: Copy + Into<i32> {
    /// Of an integer that fits.
    fn of(value: i32) -> Self;
}

impl Quantum for i8 {
    #[inline(always)]
    fn of(value: i32) -> Self {
        value as Self
    }
}

impl Quantum for i16 {
    #[inline(always)]
    fn of(value: i32) -> Self {
        value as Self
    }
}

/// Values that share one scale. Short enough for an outlier to spoil few neighbors, long enough for the
/// scales to cost little: four steps of a 512-bit dot product per lane, one round of an int8 tensor core.
pub const GROUP: usize = 128;

/// A group that is smaller than this everywhere is zero: the inverse of its scale would not be finite.
const VANISHING: f32 = 1e-30;

/// How many groups a row of `values` has. The last may be short.
pub const fn groups(values: usize) -> usize {
    values.div_ceil(GROUP)
}

/// The nearest integer, ties to even, for |x| up to 2^22.
#[inline(always)]
pub fn round(x: f32) -> i32 {
    (x + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits()) as i32
}

/// `out[k] = row[k] * by[k]`: channels with large values give some of their range to the weights.
///
/// A product that overflows becomes an infinity here, which [`quantize_group`] refuses.
///
/// # Errors
/// [`ArithmeticError::Shape`] unless all three are of one length.
#[inline(always)]
pub fn scale_row(row: &[f32], by: &[f32], out: &mut [f32]) -> Result<(), ArithmeticError> {
    if row.len() != by.len() || row.len() != out.len() {
        return Err(ArithmeticError::Shape);
    }
    for ((out, value), by) in out.iter_mut().zip(row).zip(by) {
        *out = value * by;
    }
    Ok(())
}

/// Quantizes at most [`GROUP`] values: `scale = max|x| / max`, `q = round(x * (max / max|x|))`, with the
/// precision's largest value as `max`. Returns the scale.
///
/// # Errors
/// [`ArithmeticError::NotFinite`] for a NaN or an infinity, [`ArithmeticError::Shape`] unless `q` is as long
/// as `values`.
#[inline(always)]
pub fn quantize_group<Q: Quantum>(
    values: &[f32],
    precision: Precision,
    q: &mut [Q],
) -> Result<f32, ArithmeticError> {
    quantize_to(values, precision.max(), q)
}

/// [`quantize_group`] of any number of values, to at most `max` in size.
#[inline(always)]
pub(crate) fn quantize_to<Q: Quantum>(values: &[f32], max: i16, q: &mut [Q]) -> Result<f32, ArithmeticError> {
    if values.len() != q.len() {
        return Err(ArithmeticError::Shape);
    }
    // Comparing sizes as integers orders finite numbers, and puts infinities and NaN above them all.
    let size = values
        .iter()
        .fold(0, |size, value| size.max(value.to_bits() & 0x7fff_ffff));
    let Some((inverse, scale)) = steps(f32::from_bits(size), max)? else {
        q.fill(Q::of(0));
        return Ok(0.0);
    };
    for (q, value) in q.iter_mut().zip(values) {
        *q = Q::of(round(value * inverse));
    }
    Ok(scale)
}

/// How values of which the largest has this size are quantized: what they are multiplied by, and the scale.
/// Nothing where they vanish: all are 0 then, and so is the scale.
///
/// # Errors
/// [`ArithmeticError::NotFinite`] for a NaN or an infinity.
#[inline(always)]
pub fn steps(size: f32, max: i16) -> Result<Option<(f32, f32)>, ArithmeticError> {
    let max = f32::from(max);
    if !size.is_finite() {
        return Err(ArithmeticError::NotFinite);
    }
    Ok((size >= VANISHING).then(|| (max / size, size / max)))
}

/// Quantizes a row group by group: `q` as long as the row, `scales` one per group.
///
/// # Errors
/// Those of [`quantize_group`].
#[inline(always)]
pub fn quantize_row<Q: Quantum>(
    row: &[f32],
    precision: Precision,
    q: &mut [Q],
    scales: &mut [f32],
) -> Result<(), ArithmeticError> {
    if row.len() != q.len() || scales.len() != groups(row.len()) {
        return Err(ArithmeticError::Shape);
    }
    for ((values, q), scale) in row.chunks(GROUP).zip(q.chunks_mut(GROUP)).zip(scales) {
        *scale = quantize_group(values, precision, q)?;
    }
    Ok(())
}
