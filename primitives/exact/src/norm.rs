//! Normalisation of one row.

use crate::{finite, lanes, rsqrt, Fault};

/// `out[j] = (row[j] - mean) * (1 / sqrt(variance + epsilon)) * weight[j] + bias[j]`, in that order.
///
/// `mean = sum(row) / n`; `variance = sum_of_squares(row - mean) / n`, the differences rounded first.
///
/// # Errors
/// [`Fault::Shape`] unless all are of one length above 0, [`Fault::NotFinite`] when a result is not.
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
    let scale = rsqrt(lanes::sum_of_squares(out) / n as f32 + epsilon);
    for ((out, weight), bias) in out.iter_mut().zip(weight).zip(bias) {
        *out = (*out * scale) * weight + bias;
    }
    finite(out)
}

/// `out[j] = row[j] * (1 / sqrt(sum_of_squares(row) / n + epsilon)) * weight[j]`, in that order.
///
/// # Errors
/// [`Fault::Shape`] unless all are of one length above 0, [`Fault::NotFinite`] when a result is not.
#[inline(always)]
pub fn rms_norm_row(row: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) -> Result<(), Fault> {
    let n = row.len();
    if n == 0 || [weight.len(), out.len()] != [n; 2] {
        return Err(Fault::Shape);
    }
    let scale = rsqrt(lanes::sum_of_squares(row) / n as f32 + epsilon);
    for ((out, value), weight) in out.iter_mut().zip(row).zip(weight) {
        *out = (value * scale) * weight;
    }
    finite(out)
}
