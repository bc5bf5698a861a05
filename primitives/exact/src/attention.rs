//! One query against the keys and values of its sequence.

use crate::{exp, finite, lanes, Fault};

/// Turns scores into `e^(score - max)` in place, and returns their [`lanes::sum`]. Dividing is left to the caller.
///
/// # Errors
/// [`Fault::Shape`] for no scores, [`Fault::NotFinite`] when one is not.
#[inline(always)]
pub fn softmax_row(scores: &mut [f32]) -> Result<f32, Fault> {
    if scores.is_empty() {
        return Err(Fault::Shape);
    }
    finite(scores)?;
    let max = scores
        .iter()
        .fold(f32::MIN, |max, score| if *score > max { *score } else { max });
    for score in scores.iter_mut() {
        *score = exp(*score - max);
    }
    Ok(lanes::sum(scores))
}

/// One head's attention of one query over `scores.len()` positions.
///
/// `key(j, d)` and `value(j, d)` are the elements of position `j`; `scores` is scratch. In order:
/// `score[j] = (((0 + q[0] k[j][0]) + q[1] k[j][1]) + ...) * scale`, [`softmax_row`], and
/// `out[d] = (((0 + e[0] v[0][d]) + e[1] v[1][d]) + ...) / sum`.
///
/// # Errors
/// [`Fault::Shape`] for no positions or an output of another width, [`Fault::NotFinite`] when a result is not.
#[inline(always)]
pub fn attention_row(
    query: &[f32],
    key: impl Fn(usize, usize) -> f32,
    value: impl Fn(usize, usize) -> f32,
    scale: f32,
    scores: &mut [f32],
    out: &mut [f32],
) -> Result<(), Fault> {
    if query.len() != out.len() {
        return Err(Fault::Shape);
    }
    for (j, score) in scores.iter_mut().enumerate() {
        let mut sum = 0.0;
        for (d, q) in query.iter().enumerate() {
            sum += q * key(j, d);
        }
        *score = sum * scale;
    }
    let total = softmax_row(scores)?;
    for (d, out) in out.iter_mut().enumerate() {
        let mut sum = 0.0;
        for (j, weight) in scores.iter().enumerate() {
            sum += weight * value(j, d);
        }
        *out = sum / total;
    }
    finite(out)
}
