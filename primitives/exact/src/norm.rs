//! Normalisation of one row.

use crate::{ArithmeticError, finite, lanes, rsqrt};

/// `1 / sqrt(mean + epsilon)` of squares that have been added up. When their sum overflows there is no value:
/// the quotient would be 0, and large values would vanish in silence.
#[inline(always)]
fn inverse_deviation(squares: f32, n: usize, epsilon: f32) -> Result<f32, ArithmeticError> {
    if squares.is_finite() {
        Ok(rsqrt(squares / n as f32 + epsilon))
    } else {
        Err(ArithmeticError::NotFinite)
    }
}

/// Mean and `1 / sqrt(variance + epsilon)` of a row.
///
/// `mean = sum(row) / n`; `variance = sum_of_squares(row - mean) / n`, the differences rounded first.
///
/// # Errors
/// [`ArithmeticError::Shape`] for no values, [`ArithmeticError::NotFinite`] when the sum of squares is not.
#[inline(always)]
pub fn layer_norm_stats(row: &[f32], epsilon: f32) -> Result<(f32, f32), ArithmeticError> {
    let n = row.len();
    if n == 0 {
        return Err(ArithmeticError::Shape);
    }
    let mean = lanes::sum(row) / n as f32;
    let squares = lanes::sum_with(row, |value| {
        let difference = value - mean;
        difference * difference
    });
    Ok((mean, inverse_deviation(squares, n, epsilon)?))
}

/// One value by the [`layer_norm_stats`] of its row: `((value - mean) * scale) * weight + bias`.
#[inline(always)]
pub fn layer_norm_cell(value: f32, (mean, scale): (f32, f32), weight: f32, bias: f32) -> f32 {
    ((value - mean) * scale) * weight + bias
}

/// [`layer_norm_cell`] of each value of a row.
///
/// # Errors
/// [`ArithmeticError::Shape`] unless all are of one length above 0, [`ArithmeticError::NotFinite`] when a
/// result or the sum of squares is not.
#[inline(always)]
pub fn layer_norm_row(
    row: &[f32],
    weight: &[f32],
    bias: &[f32],
    epsilon: f32,
    out: &mut [f32],
) -> Result<(), ArithmeticError> {
    if [weight.len(), bias.len(), out.len()] != [row.len(); 3] {
        return Err(ArithmeticError::Shape);
    }
    let stats = layer_norm_stats(row, epsilon)?;
    for (((out, value), weight), bias) in out.iter_mut().zip(row).zip(weight).zip(bias) {
        *out = layer_norm_cell(*value, stats, *weight, *bias);
    }
    finite(out)
}

/// `1 / sqrt(sum_of_squares(row) / n + epsilon)`.
///
/// # Errors
/// [`ArithmeticError::Shape`] for no values, [`ArithmeticError::NotFinite`] when the sum of squares is not.
#[inline(always)]
pub fn rms_norm_scale(row: &[f32], epsilon: f32) -> Result<f32, ArithmeticError> {
    match row.len() {
        0 => Err(ArithmeticError::Shape),
        n => inverse_deviation(lanes::sum_of_squares(row), n, epsilon),
    }
}

/// One value by the [`rms_norm_scale`] of its row: `(value * scale) * weight`.
#[inline(always)]
pub fn rms_norm_cell(value: f32, scale: f32, weight: f32) -> f32 {
    (value * scale) * weight
}

/// [`rms_norm_cell`] of each value of a row.
///
/// # Errors
/// [`ArithmeticError::Shape`] unless all are of one length above 0, [`ArithmeticError::NotFinite`] when a
/// result or the sum of squares is not.
#[inline(always)]
pub fn rms_norm_row(
    row: &[f32],
    weight: &[f32],
    epsilon: f32,
    out: &mut [f32],
) -> Result<(), ArithmeticError> {
    if [weight.len(), out.len()] != [row.len(); 2] {
        return Err(ArithmeticError::Shape);
    }
    let scale = rms_norm_scale(row, epsilon)?;
    for ((out, value), weight) in out.iter_mut().zip(row).zip(weight) {
        *out = rms_norm_cell(*value, scale, *weight);
    }
    finite(out)
}
