//! Normalisation and rotary positions, row by row.

use surety_exact::{self as exact, ArithmeticError, Turns};

use crate::{
    isa::{current, per_isa},
    weights::Norm,
};

fn rows_of(rows: &[f32], by: &Norm, out: &[f32]) -> Result<usize, ArithmeticError> {
    let width = by.weight.len();
    if width > 0 && rows.len() == out.len() && rows.len().is_multiple_of(width) {
        Ok(width)
    } else {
        Err(ArithmeticError::Shape)
    }
}

per_isa! {
    fn layer_norm_rows(rows: &[f32], weight: &[f32], bias: &[f32], epsilon: f32, out: &mut [f32]) -> Result<(), ArithmeticError> {
        let width = weight.len();
        for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            exact::layer_norm_row(row, weight, bias, epsilon, out)?;
        }
        Ok(())
    }
}

per_isa! {
    fn rms_norm_rows(rows: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) -> Result<(), ArithmeticError> {
        let width = weight.len();
        for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            exact::rms_norm_row(row, weight, epsilon, out)?;
        }
        Ok(())
    }
}

/// Layer norm of each row.
///
/// # Errors
/// [`ArithmeticError::Shape`] for a norm without a bias or of another width, [`ArithmeticError::NotFinite`]
/// when a result is not.
pub fn layer_norm(rows: &[f32], by: &Norm, out: &mut [f32]) -> Result<(), ArithmeticError> {
    rows_of(rows, by, out)?;
    let bias = by.bias.as_ref().ok_or(ArithmeticError::Shape)?;
    layer_norm_rows(current(), rows, &by.weight, bias, by.epsilon, out)
}

/// RMS norm of each row.
///
/// # Errors
/// [`ArithmeticError::Shape`] for a norm of another width, [`ArithmeticError::NotFinite`] when a result is
/// not.
pub fn rms_norm(rows: &[f32], by: &Norm, out: &mut [f32]) -> Result<(), ArithmeticError> {
    rows_of(rows, by, out)?;
    rms_norm_rows(current(), rows, &by.weight, by.epsilon, out)
}

/// Sine and cosine of every pair at one position.
type Angles<'a> = (&'a mut [f32], &'a mut [f32]);

per_isa! {
    fn rotate_position(row: &mut [f32], turns: &[Turns], position: u32, angles: Angles<'_>) {
        let (sines, cosines) = angles;
        for ((turns, sine), cosine) in turns.iter().zip(sines.iter_mut()).zip(cosines.iter_mut()) {
            (*sine, *cosine) = turns.at(position);
        }
        for head in row.chunks_exact_mut(2 * turns.len()) {
            let (low, high) = head.split_at_mut(turns.len());
            let angles = sines.iter().zip(cosines.iter());
            for ((a, b), (sine, cosine)) in low.iter_mut().zip(high).zip(angles) {
                (*a, *b) = exact::rotate_pair(*a, *b, (*sine, *cosine));
            }
        }
    }
}

/// Rotates every head of every row, in place. Rows are `[heads][2 * turns.len()]`, one position after the
/// other.
///
/// # Errors
/// [`ArithmeticError::Shape`] for rows of another width, or positions beyond `u32`.
pub fn rotate(
    rows: &mut [f32],
    heads: usize,
    turns: &[Turns],
    first_position: u32,
) -> Result<(), ArithmeticError> {
    let width = 2 * turns.len() * heads;
    if width == 0 || !rows.len().is_multiple_of(width) {
        return Err(ArithmeticError::Shape);
    }
    let last = u32::try_from(rows.len() / width)
        .ok()
        .and_then(|count| first_position.checked_add(count));
    last.ok_or(ArithmeticError::Shape)?;
    let (mut sines, mut cosines) = (vec![0.0; turns.len()], vec![0.0; turns.len()]);
    for (row, position) in rows.chunks_exact_mut(width).zip(first_position..) {
        rotate_position(current(), row, turns, position, (&mut sines, &mut cosines));
    }
    Ok(())
}
