//! Real rows to int8: groups of 128 values with a scale each.

use crate::{functions::ROUNDER, Fault};

/// Values that share one scale. Short enough for an outlier to spoil few neighbours, long enough for the scales to
/// cost little: four steps of a 512-bit dot product per lane, one round of an int8 tensor core.
pub const GROUP: usize = 128;

/// The largest quantised value; -128 is not used, so negation is exact.
pub const QUANTUM_MAX: f32 = 127.0;

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
/// A product that overflows becomes an infinity here, which [`quantise_group`] refuses.
///
/// # Errors
/// [`Fault::Shape`] unless all three are of one length.
#[inline(always)]
pub fn scale_row(row: &[f32], by: &[f32], out: &mut [f32]) -> Result<(), Fault> {
    if row.len() != by.len() || row.len() != out.len() {
        return Err(Fault::Shape);
    }
    for ((out, value), by) in out.iter_mut().zip(row).zip(by) {
        *out = value * by;
    }
    Ok(())
}

/// Quantises at most [`GROUP`] values: `scale = max|x| / 127`, `q = round(x * (127 / max|x|))`. Returns the scale.
///
/// # Errors
/// [`Fault::NotFinite`] for a NaN or an infinity, [`Fault::Shape`] unless `q` is as long as `values`.
#[inline(always)]
pub fn quantise_group(values: &[f32], q: &mut [i8]) -> Result<f32, Fault> {
    if values.len() != q.len() {
        return Err(Fault::Shape);
    }
    // Comparing sizes as integers orders finite numbers, and puts infinities and NaN above them all.
    let size = values
        .iter()
        .fold(0, |size, value| size.max(value.to_bits() & 0x7fff_ffff));
    let size = f32::from_bits(size);
    if !size.is_finite() {
        return Err(Fault::NotFinite);
    }
    if size < VANISHING {
        q.fill(0);
        return Ok(0.0);
    }
    let inverse = QUANTUM_MAX / size;
    for (q, value) in q.iter_mut().zip(values) {
        *q = round(value * inverse) as i8;
    }
    Ok(size / QUANTUM_MAX)
}

/// Quantises a row group by group: `q` as long as the row, `scales` one per group.
///
/// # Errors
/// Those of [`quantise_group`].
#[inline(always)]
pub fn quantise_row(row: &[f32], q: &mut [i8], scales: &mut [f32]) -> Result<(), Fault> {
    if row.len() != q.len() || scales.len() != groups(row.len()) {
        return Err(Fault::Shape);
    }
    for ((values, q), scale) in row.chunks(GROUP).zip(q.chunks_mut(GROUP)).zip(scales) {
        *scale = quantise_group(values, q)?;
    }
    Ok(())
}
