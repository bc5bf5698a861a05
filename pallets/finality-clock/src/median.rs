//! The middle of some heights.

use alloc::vec::Vec;

/// The lower median: at least half of the heights are not below it, more than half not above. None of none.
pub(crate) fn lower_median<Height: Copy + Ord>(mut heights: Vec<Height>) -> Option<Height> {
    heights.sort_unstable();
    let middle = heights.len().checked_sub(1)? / 2;
    heights.get(middle).copied()
}
