//! Sums in a fixed order that wide registers can keep.

/// Partial sums of a long sum: the threads of a GPU's warp. A multiple of every register width in use, so
/// that wide and narrow ones agree.
pub const LANES: usize = 32;

/// The upper half added to the lower one, in straight code that a compiler takes in registers.
#[inline(always)]
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "places below a fixed length, and sums of floats"
)]
fn halved<const N: usize, const HALF: usize>(lanes: [f32; N]) -> [f32; HALF] {
    const { assert!(2 * HALF == N) };
    let mut sums = [0.0; HALF];
    for lane in 0..HALF {
        sums[lane] = lanes[lane] + lanes[lane + HALF];
    }
    sums
}

/// Adds the partial sums up, upper half to lower half, until one is left: what a warp's shuffles do.
#[inline(always)]
pub fn fold(lanes: [f32; LANES]) -> f32 {
    let lanes: [f32; 16] = halved(lanes);
    let lanes: [f32; 8] = halved(lanes);
    let lanes: [f32; 4] = halved(lanes);
    let lanes: [f32; 2] = halved(lanes);
    let [sum] = halved(lanes);
    sum
}

/// [`sum`] of `term` of each value.
#[inline(always)]
pub(crate) fn sum_with(row: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let (whole, rest) = row.as_chunks::<LANES>();
    for chunk in whole {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += term(*value);
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane += term(*value);
    }
    fold(lanes)
}

/// Sum of a row: lane `l` adds the values `l`, `l + 32`, `l + 64`, ... in that order, from 0; then [`fold`].
#[inline(always)]
pub fn sum(row: &[f32]) -> f32 {
    sum_with(row, |value| value)
}

/// Sum of the squares of a row, in the order of [`sum`]. Each square is rounded before it is added.
#[inline(always)]
pub fn sum_of_squares(row: &[f32]) -> f32 {
    sum_with(row, |value| value * value)
}
