//! One head's query against the keys and values of its sequence: integer products, block by block.
//!
//! A sequence's positions fall into blocks of [`BLOCK`], counted from its first. Each block has a softmax of
//! its own, and blocks are merged in order as FlashAttention merges them: so a device may take the blocks one
//! after the other in registers, or each on another processor.

use crate::{
    ArithmeticError, exp, finite, lanes,
    product::dot,
    quantize::{GROUP, Precision, quantize_to, scale_row},
};

/// Positions that share a softmax, and whose weights share a scale.
pub const BLOCK: usize = GROUP;

/// The largest quantized weight. Weights are not negative, so that they have two bits more than int12: with
/// it the sum of a block's products still fits 32 bits, `128 * 8191 * 2047 < 2^31`.
pub const WEIGHT_MAX: i16 = 8191;

/// What a query, key or value is quantized to, whatever the precision of the weights.
pub const HEAD_PRECISION: Precision = Precision::Int12;

/// The widest head: its dot product of int12 still fits 32 bits, `512 * 2047^2 < 2^31`.
pub const HEAD_MAX: usize = 512;

/// How many blocks so many positions have. The last may be short.
pub const fn blocks(positions: usize) -> usize {
    positions.div_ceil(BLOCK)
}

/// A head of a query, a key or a value: int12 with one scale.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Head<'a> {
    /// At most [`HEAD_MAX`] values.
    pub q: &'a [i16],
    /// What a step of 1 stands for.
    pub scale: f32,
}

/// Quantizes the heads of a row, `head_dim` values each, with a scale for each of them.
///
/// # Errors
/// [`ArithmeticError::Shape`] unless they are whole heads of 1 to [`HEAD_MAX`] values, `q` as long as the row
/// and `scales` one a head; [`ArithmeticError::NotFinite`] for a NaN or an infinity.
#[inline(always)]
pub fn quantize_heads(
    row: &[f32],
    head_dim: usize,
    q: &mut [i16],
    scales: &mut [f32],
) -> Result<(), ArithmeticError> {
    let whole = (1..=HEAD_MAX).contains(&head_dim) && Some(row.len()) == scales.len().checked_mul(head_dim);
    if !whole || row.len() != q.len() {
        return Err(ArithmeticError::Shape);
    }
    let heads = row.chunks(head_dim).zip(q.chunks_mut(head_dim));
    for ((values, q), scale) in heads.zip(scales) {
        *scale = quantize_to(values, HEAD_PRECISION.max(), q)?;
    }
    Ok(())
}

/// The score of one key: `dot * ((query's scale * scale) * key's scale)`, with `scale` as a rule 1 /
/// sqrt(head_dim).
#[inline(always)]
pub fn score_cell(query: Head<'_>, key: Head<'_>, scale: f32) -> f32 {
    dot(query.q, key.q) as f32 * ((query.scale * scale) * key.scale)
}

/// The largest of a block's scores, which is taken from each before the exponential.
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

/// Quantizes a block's weights: each exponential times the scale of its position's value, to at most
/// [`WEIGHT_MAX`]. Returns their scale.
///
/// # Errors
/// [`ArithmeticError::Shape`] unless all three are of one length up to [`BLOCK`],
/// [`ArithmeticError::NotFinite`] when a product is not.
#[inline(always)]
pub fn quantize_weights(
    exponentials: &[f32],
    value_scales: &[f32],
    q: &mut [i16],
) -> Result<f32, ArithmeticError> {
    let mut weights = [0.0; BLOCK];
    let weights = weights
        .get_mut(..exponentials.len())
        .ok_or(ArithmeticError::Shape)?;
    scale_row(exponentials, value_scales, weights)?;
    quantize_to(weights, WEIGHT_MAX, q)
}

/// What blocks have found so far: to begin with, nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softmax {
    /// The largest score.
    pub largest: f32,
    /// The sum of the exponentials of what each score lacks to the largest.
    pub total: f32,
}

impl Default for Softmax {
    fn default() -> Self {
        Self {
            largest: f32::MIN,
            total: 0.0,
        }
    }
}

impl Softmax {
    /// Adds a block. Returns the factors of what was there and of the block's: [`merge_cell`] wants them.
    ///
    /// `largest' = max(largest, block's)`; the factors are `e^(largest - largest')` and
    /// `e^(block's - largest')`, of which one is exactly 1; `total' = total * first + block's * second`.
    #[inline(always)]
    pub fn merge(&mut self, block: Self) -> (f32, f32) {
        // e^0 is exactly 1.
        let factors = if block.largest > self.largest {
            (exp(self.largest - block.largest), 1.0)
        } else {
            (1.0, exp(block.largest - self.largest))
        };
        self.total = merge_cell(self.total, block.total, factors);
        self.largest = if block.largest > self.largest {
            block.largest
        } else {
            self.largest
        };
        factors
    }
}

/// `before * first + block * second`, each product rounded first.
#[inline(always)]
pub fn merge_cell(before: f32, block: f32, (first, second): (f32, f32)) -> f32 {
    before * first + block * second
}

/// A block's softmax: turns scores into `e^(score - largest)` in place, adds them up by [`lanes::sum`], and
/// quantizes the weights ([`quantize_weights`]). Returns largest and total, and the weights' scale.
///
/// # Errors
/// [`ArithmeticError::Shape`] for no scores or other lengths, [`ArithmeticError::NotFinite`] when a score is
/// not.
#[inline(always)]
pub fn softmax_block(
    scores: &mut [f32],
    value_scales: &[f32],
    weights: &mut [i16],
) -> Result<(Softmax, f32), ArithmeticError> {
    let largest = largest_score(scores)?;
    for score in scores.iter_mut() {
        *score = exp(*score - largest);
    }
    let total = lanes::sum(scores);
    let scale = quantize_weights(scores, value_scales, weights)?;
    Ok((Softmax { largest, total }, scale))
}

/// One column of what attention found, from what each block has of it: [`Softmax::merge`] and [`merge_cell`]
/// of one block after the other from 0, divided by the total.
///
/// # Errors
/// [`ArithmeticError::Shape`] for no blocks or other lengths, [`ArithmeticError::NotFinite`] when the result
/// is not.
#[inline(always)]
pub fn attention_cell(largest: &[f32], totals: &[f32], partials: &[f32]) -> Result<f32, ArithmeticError> {
    if largest.is_empty() || [totals.len(), partials.len()] != [largest.len(); 2] {
        return Err(ArithmeticError::Shape);
    }
    let (mut softmax, mut sum) = (Softmax::default(), 0.0);
    for ((largest, total), partial) in largest.iter().zip(totals).zip(partials) {
        let (largest, total) = (*largest, *total);
        let factors = softmax.merge(Softmax { largest, total });
        sum = merge_cell(sum, *partial, factors);
    }
    let out = sum / softmax.total;
    if out.is_finite() {
        Ok(out)
    } else {
        Err(ArithmeticError::NotFinite)
    }
}

/// One head's attention of one query over so many positions, from the first.
///
/// In order, for each block: [`score_cell`] of each position, [`softmax_block`], for each column the dot
/// product of the weights with the values, times the weights' scale, and [`merge_cell`] of that. At last
/// everything is divided by the total.
///
/// # Errors
/// [`ArithmeticError::Shape`] for no positions or heads of different widths, [`ArithmeticError::NotFinite`]
/// when a score or a result is not.
#[inline(always)]
pub fn attention_row<'a>(
    query: Head<'_>,
    key: impl Fn(usize) -> Head<'a>,
    value: impl Fn(usize) -> Head<'a>,
    positions: usize,
    scale: f32,
    out: &mut [f32],
) -> Result<(), ArithmeticError> {
    let width = query.q.len();
    let alike = |j| [key(j).q.len(), value(j).q.len()] == [width; 2];
    if positions == 0 || width > HEAD_MAX || out.len() != width || !(0..positions).all(alike) {
        return Err(ArithmeticError::Shape);
    }
    out.fill(0.0);
    let mut softmax = Softmax::default();
    for start in (0..positions).step_by(BLOCK) {
        let end = positions.min(start.saturating_add(BLOCK));
        let (mut scores, mut value_scales, mut weights) = ([0.0; BLOCK], [0.0; BLOCK], [0; BLOCK]);
        let count = end.saturating_sub(start);
        let (Some(scores), Some(value_scales), Some(weights)) = (
            scores.get_mut(..count),
            value_scales.get_mut(..count),
            weights.get_mut(..count),
        ) else {
            return Err(ArithmeticError::Shape);
        };
        for (j, (score, value_scale)) in (start..end).zip(scores.iter_mut().zip(value_scales.iter_mut())) {
            *score = score_cell(query, key(j), scale);
            *value_scale = value(j).scale;
        }
        let (block, weight_scale) = softmax_block(scores, value_scales, weights)?;
        let factors = softmax.merge(block);
        for (d, out) in out.iter_mut().enumerate() {
            let column = |j| value(j).q.get(d).copied().unwrap_or_default();
            let products = (start..end)
                .zip(weights.iter())
                .map(|(j, weight)| dot(&[*weight], &[column(j)]));
            let dot = products.fold(0, i32::wrapping_add);
            *out = merge_cell(*out, dot as f32 * weight_scale, factors);
        }
    }
    for out in out.iter_mut() {
        *out /= softmax.total;
    }
    finite(out)
}
