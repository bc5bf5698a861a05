//! Sums in a fixed order that wide registers can keep.

/// Partial sums of a long sum. A multiple of every register width in use, so that wide and narrow ones agree.
pub const LANES: usize = 16;

/// Adds the partial sums up, upper half to lower half, until one is left.
#[inline(always)]
#[allow(
    clippy::indexing_slicing,
    reason = "places below a fixed length, and sums of floats"
)]
#[allow(
    clippy::arithmetic_side_effects,
    reason = "places below a fixed length, and sums of floats"
)]
pub fn fold(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
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

/// Sum of a row: lane `l` adds the values `l`, `l + 16`, `l + 32`, ... in that order, from 0; then [`fold`].
#[inline(always)]
pub fn sum(row: &[f32]) -> f32 {
    sum_with(row, |value| value)
}

/// Sum of the squares of a row, in the order of [`sum`]. Each square is rounded before it is added.
#[inline(always)]
pub fn sum_of_squares(row: &[f32]) -> f32 {
    sum_with(row, |value| value * value)
}
