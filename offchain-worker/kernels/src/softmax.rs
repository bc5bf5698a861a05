//! The softmax of one block of positions, of several queries side by side: each step waits for the one
//! before, and meanwhile the other queries have theirs.
#![allow(unsafe_code)] // Registers; rows are arrays of a fixed length.
#![allow(clippy::needless_range_loop)] // An index runs over several arrays at once.

use surety_exact::{self as exact, ArithmeticError, BLOCK, LANES, Softmax, WEIGHT_MAX};

use crate::simd::Floats;

/// Numbers of a block's positions, in the lanes of a sum.
pub(crate) type Block<T> = [[T; LANES]; BLOCK / LANES];

/// Lanes of a register.
const WIDE: usize = crate::simd::LANES;
/// Registers of [`LANES`].
const PARTS: usize = LANES / WIDE;

/// What a block's softmax gives: its largest score and total, and the scale of its weights.
pub(crate) type Found = (Softmax, f32);

/// Puts a number in place of those scores that a query does not see: its first one, or what is said.
#[inline(always)]
fn hide<const Q: usize>(scores: &mut [Block<f32>; Q], counts: &[usize; Q], chunks: usize, with: Option<f32>) {
    for q in 0..Q {
        let with = with.unwrap_or(if counts[q] == 0 { 0.0 } else { scores[q][0][0] });
        for chunk in counts[q] / LANES..chunks {
            let seen = counts[q].saturating_sub(chunk * LANES) as u32;
            let scores = &mut scores[q][chunk];
            for lane in 0..LANES {
                scores[lane] = if (lane as u32) < seen { scores[lane] } else { with };
            }
        }
    }
}

/// The largest of each query's scores.
///
/// # Safety
/// The machine has the instructions.
#[inline(always)]
unsafe fn largest<F: Floats, const Q: usize>(
    scores: &[Block<f32>; Q],
    chunks: usize,
) -> Result<[f32; Q], ArithmeticError> {
    let mut largest = [0.0; Q];
    let mut poison = 0.0;
    for q in 0..Q {
        // SAFETY: the caller's contract; loads are within a chunk.
        unsafe {
            let (mut most, mut not_finite) = (F::splat(f32::MIN), F::splat(0.0));
            for chunk in &scores[q][..chunks] {
                for part in 0..PARTS {
                    let scores = F::load(chunk[part * WIDE..].as_ptr());
                    most = most.max(scores);
                    not_finite = not_finite.add(scores.mul(F::splat(0.0)));
                }
            }
            largest[q] = most.most();
            poison += not_finite.fold();
        }
    }
    if poison == 0.0 {
        Ok(largest)
    } else {
        Err(ArithmeticError::NotFinite)
    }
}

/// Exponentials to weights, before they are quantized: each times the scale of its value. Gives each query's
/// total and the largest weight.
///
/// # Safety
/// The machine has the instructions.
#[inline(always)]
unsafe fn weigh<F: Floats, const Q: usize>(
    scores: &mut [Block<f32>; Q],
    chunks: usize,
    value_scales: &[[f32; LANES]],
) -> ([f32; Q], [f32; Q]) {
    let (mut totals, mut sizes) = ([0.0; Q], [0.0; Q]);
    for q in 0..Q {
        // SAFETY: the caller's contract; loads and stores are within a chunk.
        unsafe {
            let (mut sums, mut most) = ([F::splat(0.0); PARTS], F::splat(0.0));
            for (chunk, scales) in scores[q][..chunks].iter_mut().zip(value_scales) {
                for part in 0..PARTS {
                    let exponentials = F::load(chunk[part * WIDE..].as_ptr());
                    sums[part] = sums[part].add(exponentials);
                    // Neither is negative.
                    let weights = exponentials.mul(F::load(scales[part * WIDE..].as_ptr()));
                    most = most.max(weights);
                    weights.store(chunk[part * WIDE..].as_mut_ptr());
                }
            }
            let mut sum = sums[0];
            for part in &sums[1..] {
                sum = sum.add(*part);
            }
            totals[q] = sum.fold();
            sizes[q] = most.most();
        }
    }
    (totals, sizes)
}

/// [`exact::softmax_block`] of the first `counts` of each query's scores, which become something else.
/// Of a query without any scores what is found means nothing.
///
/// # Safety
/// The machine has the instructions.
#[inline(always)]
pub(crate) unsafe fn softmax<F: Floats, const Q: usize>(
    scores: &mut [Block<f32>; Q],
    counts: &[usize; Q],
    value_scales: &[f32; BLOCK],
    weights: &mut [Block<i16>; Q],
) -> Result<[Found; Q], ArithmeticError> {
    let chunks = counts
        .iter()
        .fold(1, |most, count| count.div_ceil(LANES).max(most));
    // Whole lanes: what is behind the last score counts as the first one, and then as 0, which changes no
    // sum.
    hide(scores, counts, chunks, None);
    // SAFETY: the caller's contract.
    let largest = unsafe { largest::<F, Q>(scores, chunks)? };
    for q in 0..Q {
        for chunk in &mut scores[q][..chunks] {
            for score in chunk {
                *score = exact::exp(*score - largest[q]);
            }
        }
    }
    hide(scores, counts, chunks, Some(0.0));
    let (value_scales, _) = value_scales.as_chunks::<LANES>();
    // SAFETY: the caller's contract.
    let (totals, sizes) = unsafe { weigh::<F, Q>(scores, chunks, value_scales) };
    let mut found = [Found::default(); Q];
    for q in 0..Q {
        let (inverse, scale) = exact::steps(sizes[q], WEIGHT_MAX)?.unwrap_or((0.0, 0.0));
        found[q].0.largest = largest[q];
        found[q].0.total = totals[q];
        found[q].1 = scale;
        for (chunk, weights) in scores[q][..chunks].iter().zip(&mut weights[q]) {
            for part in (0..LANES).step_by(WIDE) {
                // SAFETY: the caller's contract; within a chunk.
                unsafe {
                    let scaled = F::load(chunk[part..].as_ptr()).mul(F::splat(inverse));
                    scaled.store_rounded(weights[part..].as_mut_ptr());
                }
            }
        }
    }
    Ok(found)
}
