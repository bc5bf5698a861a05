//! One query against the keys and values of its sequence.

use crate::{ArithmeticError, exp, finite, lanes};

/// The score of one key: `(((0 + q[0] k[0]) + q[1] k[1]) + ...) * scale`.
#[inline(always)]
pub fn score_cell(query: &[f32], key: impl Fn(usize) -> f32, scale: f32) -> f32 {
    let mut sum = 0.0;
    for (d, q) in query.iter().enumerate() {
        sum += q * key(d);
    }
    sum * scale
}

/// The largest of some scores, which [`softmax_row`] takes from each before the exponential.
///
/// # Errors
/// [`ArithmeticError::Shape`] for no scores, [`ArithmeticError::NotFinite`] when one is not.
#[inline(always)]
pub fn largest_score(scores: &[f32]) -> Result<f32, ArithmeticError> {
    if scores.is_empty() {
        return Err(ArithmeticError::Shape);
    }
    finite(scores)?;
    Ok(scores
        .iter()
        .fold(f32::MIN, |max, score| if *score > max { *score } else { max }))
}

/// One column of what attention found: `(((0 + e[0] v[0]) + e[1] v[1]) + ...) / total`.
#[inline(always)]
pub fn mixed_cell(weights: &[f32], value: impl Fn(usize) -> f32, total: f32) -> f32 {
    let mut sum = 0.0;
    for (j, weight) in weights.iter().enumerate() {
        sum += weight * value(j);
    }
    sum / total
}

/// Turns scores into `e^(score - max)` in place, and returns their [`lanes::sum`]. Dividing is left to the
/// caller.
///
/// # Errors
/// [`ArithmeticError::Shape`] for no scores, [`ArithmeticError::NotFinite`] when one is not.
#[inline(always)]
pub fn softmax_row(scores: &mut [f32]) -> Result<f32, ArithmeticError> {
    let max = largest_score(scores)?;
    for score in scores.iter_mut() {
        *score = exp(*score - max);
    }
    Ok(lanes::sum(scores))
}

/// One head's attention of one query over `scores.len()` positions.
///
/// `key(j, d)` and `value(j, d)` are the elements of position `j`; `scores` is scratch. In order:
/// [`score_cell`] of each position, [`softmax_row`], and [`mixed_cell`] of each column.
///
/// # Errors
/// [`ArithmeticError::Shape`] for no positions or an output of another width, [`ArithmeticError::NotFinite`]
/// when a result is not.
#[inline(always)]
pub fn attention_row(
    query: &[f32],
    key: impl Fn(usize, usize) -> f32,
    value: impl Fn(usize, usize) -> f32,
    scale: f32,
    scores: &mut [f32],
    out: &mut [f32],
) -> Result<(), ArithmeticError> {
    if query.len() != out.len() {
        return Err(ArithmeticError::Shape);
    }
    for (j, score) in scores.iter_mut().enumerate() {
        *score = score_cell(query, |d| key(j, d), scale);
    }
    let total = softmax_row(scores)?;
    for (d, out) in out.iter_mut().enumerate() {
        *out = mixed_cell(scores, |j| value(j, d), total);
    }
    finite(out)
}
