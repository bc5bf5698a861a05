//! From a sequence's states to one vector.

use crate::{ArithmeticError, finite, lanes, sqrt};

/// Mean over rows: `out[j] = (((0 + rows[0][j]) + rows[1][j]) + ...) / n`.
///
/// `rows` is row-major, `n` rows of `out.len()` columns.
///
/// # Errors
/// [`ArithmeticError::Shape`] when `rows` holds no whole positive number of rows,
/// [`ArithmeticError::NotFinite`] when a result is.
#[allow(clippy::arithmetic_side_effects, reason = "the width was checked above")]
pub fn mean_pool(rows: &[f32], out: &mut [f32]) -> Result<(), ArithmeticError> {
    let width = out.len();
    if width == 0 || rows.is_empty() || !rows.len().is_multiple_of(width) {
        return Err(ArithmeticError::Shape);
    }
    out.fill(0.0);
    for row in rows.chunks_exact(width) {
        for (sum, value) in out.iter_mut().zip(row) {
            *sum += value;
        }
    }
    // Exact up to 2^24 rows, far above any sequence length.
    let count = (rows.len() / width) as f32;
    for sum in out.iter_mut() {
        *sum /= count;
    }
    finite(out)
}

/// One number of [`mean_pool`]: the mean of a column.
///
/// # Errors
/// [`ArithmeticError::Shape`] for no rows, [`ArithmeticError::NotFinite`] when the result is.
pub fn mean_cell(column: &[f32]) -> Result<f32, ArithmeticError> {
    let mut mean = [0.0];
    mean_pool(column, &mut mean)?;
    let [mean] = mean;
    Ok(mean)
}

/// Length of a row: the root of its [`sum_of_squares`](lanes::sum_of_squares).
///
/// # Errors
/// [`ArithmeticError::ZeroNorm`] for a row of zeros or squares that vanish, [`ArithmeticError::NotFinite`]
/// when a square overflows.
pub fn l2_norm(row: &[f32]) -> Result<f32, ArithmeticError> {
    let squares = lanes::sum_of_squares(row);
    if !squares.is_finite() {
        return Err(ArithmeticError::NotFinite);
    }
    if squares == 0.0 {
        return Err(ArithmeticError::ZeroNorm);
    }
    Ok(sqrt(squares))
}

/// Scales a row to length 1: each value is divided by the [`l2_norm`].
///
/// # Errors
/// Those of [`l2_norm`].
pub fn l2_normalize(row: &mut [f32]) -> Result<(), ArithmeticError> {
    let norm = l2_norm(row)?;
    for value in row.iter_mut() {
        *value /= norm;
    }
    finite(row)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn golden_bits_hold() {
        let rows = [0.1f32, -0.2, 0.3, 0.7, 1e-3, -5.5];
        let mut pooled = [0.0f32; 3];
        mean_pool(&rows, &mut pooled).unwrap();
        l2_normalize(&mut pooled).unwrap();
        assert_eq!(pooled.map(f32::to_bits), [0x3e1b_9866, 0xbd1a_d13d, 0xbf7c_d7a5]);
    }

    #[test]
    fn each_fault_is_named() {
        let mut out = [0.0f32; 2];
        assert_eq!(mean_pool(&[], &mut out), Err(ArithmeticError::Shape));
        assert_eq!(mean_pool(&[1.0; 3], &mut out), Err(ArithmeticError::Shape));
        assert_eq!(mean_pool(&[1.0; 2], &mut []), Err(ArithmeticError::Shape));
        assert_eq!(
            mean_pool(&[f32::NAN, 1.0], &mut out),
            Err(ArithmeticError::NotFinite)
        );
        assert_eq!(l2_normalize(&mut [0.0, 0.0]), Err(ArithmeticError::ZeroNorm));
        assert_eq!(
            l2_normalize(&mut [f32::MAX, 1.0]),
            Err(ArithmeticError::NotFinite)
        );
    }

    proptest! {
        #[test]
        fn a_normalised_row_has_length_one(mut row in proptest::collection::vec(-100.0f32..100.0, 1..512)) {
            prop_assume!(row.iter().any(|value| value.abs() > 1e-3));
            l2_normalize(&mut row).unwrap();
            let length: f64 = row.iter().map(|value| f64::from(*value).powi(2)).sum();
            prop_assert!((length - 1.0).abs() < 1e-4);
        }

        #[test]
        fn pooling_equal_rows_gives_the_row(row in proptest::collection::vec(-100i16..100, 1..64), n in 1usize..64) {
            let row: Vec<f32> = row.into_iter().map(f32::from).collect();
            let mut out = row.clone();
            mean_pool(&row.repeat(n), &mut out).unwrap();
            prop_assert_eq!(out, row);
        }
    }
}
