//! Normalisation of one row.

use crate::{finite, lanes, rsqrt, Fault};

/// `1 / sqrt(mean + epsilon)` of squares that have been added up. When their sum overflows there is no value: the
/// quotient would be 0, and large values would vanish in silence.
#[inline(always)]
fn inverse_deviation(squares: f32, n: usize, epsilon: f32) -> Result<f32, Fault> {
    match squares.is_finite() {
        true => Ok(rsqrt(squares / n as f32 + epsilon)),
        false => Err(Fault::NotFinite),
    }
}

/// `out[j] = (row[j] - mean) * (1 / sqrt(variance + epsilon)) * weight[j] + bias[j]`, in that order.
///
/// `mean = sum(row) / n`; `variance = sum_of_squares(row - mean) / n`, the differences rounded first.
///
/// # Errors
/// [`Fault::Shape`] unless all are of one length above 0, [`Fault::NotFinite`] when a result or the
/// sum of squares is not.
#[inline(always)]
pub fn layer_norm_row(
    row: &[f32],
    weight: &[f32],
    bias: &[f32],
    epsilon: f32,
    out: &mut [f32],
) -> Result<(), Fault> {
    let n = row.len();
    if n == 0 || [weight.len(), bias.len(), out.len()] != [n; 3] {
        return Err(Fault::Shape);
    }
    let mean = lanes::sum(row) / n as f32;
    for (out, value) in out.iter_mut().zip(row) {
        *out = value - mean;
    }
    let scale = inverse_deviation(lanes::sum_of_squares(out), n, epsilon)?;
    for ((out, weight), bias) in out.iter_mut().zip(weight).zip(bias) {
        *out = (*out * scale) * weight + bias;
    }
    finite(out)
}

/// `out[j] = row[j] * (1 / sqrt(sum_of_squares(row) / n + epsilon)) * weight[j]`, in that order.
///
/// # Errors
/// [`Fault::Shape`] unless all are of one length above 0, [`Fault::NotFinite`] when a result or the
/// sum of squares is not.
#[inline(always)]
pub fn rms_norm_row(row: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) -> Result<(), Fault> {
    let n = row.len();
    if n == 0 || [weight.len(), out.len()] != [n; 2] {
        return Err(Fault::Shape);
    }
    let scale = inverse_deviation(lanes::sum_of_squares(row), n, epsilon)?;
    for ((out, value), weight) in out.iter_mut().zip(row).zip(weight) {
        *out = (value * scale) * weight;
    }
    finite(out)
}
