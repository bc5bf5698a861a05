//! x86 with 256-bit registers, products of many rows: 6 rows by 16 outputs, two products deep.
//!
//! A register holds two products of each of eight outputs, so that twelve hold the sums, and every weight
//! that is read serves six rows. Weights of int12 lie like that in memory. Those of int8 are laid out anew, a
//! block after the other, in 16 bits; so few rows are left to [`Avx2`].

use std::{arch::x86_64::*, ops::Range};

use surety_exact::{GROUP, Precision};

use super::{Avx2, Floats, Line, SimdIsa};
use crate::product::{Job, ROWS_AT_ONCE, poisoned};

/// Fewer rows than this are left to [`Avx2`].
pub(crate) const ROWS_MIN: usize = 12;
/// Rows in a tile.
const TILE: usize = 6;
/// Pairs of a whole group.
const GROUP_PAIRS: usize = GROUP / 2;

type Sixteen = <Avx2 as SimdIsa>::Floats;

/// Two weights of each of sixteen outputs, the first eight's before the others'.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Pair([__m256i; 2]);

/// A block's lines of int12.
fn pairs_of(lines: &[Line]) -> &[Pair] {
    // SAFETY: both are 64 bytes of which any bits are a value, and a line is aligned to as many.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len()) }
}

/// Lays out a block's lines, each as two pairs.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn widen(lines: &[Line], pairs: &mut [Pair]) {
    for (line, pairs) in lines.iter().zip(pairs.chunks_exact_mut(2)) {
        // SAFETY: a line has four times sixteen bytes, on a boundary of as many.
        let four = |i| unsafe {
            let line = std::ptr::from_ref(line).cast::<__m128i>();
            _mm256_castsi256_ps(_mm256_cvtepi8_epi16(_mm_load_si128(line.add(i))))
        };
        // Each register has the first and the second two weights of four outputs in turns. `shuffle` works in
        // halves of a register: its result is out of order. SAFETY: arithmetic of registers.
        let eight = |a, b| unsafe {
            let order = |mixed| _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_castps_si256(mixed));
            (
                order(_mm256_shuffle_ps::<0b10_00_10_00>(a, b)),
                order(_mm256_shuffle_ps::<0b11_01_11_01>(a, b)),
            )
        };
        let (low, high) = (eight(four(0), four(1)), eight(four(2), four(3)));
        if let [first, second] = pairs {
            *first = Pair([low.0, high.0]);
            *second = Pair([low.1, high.1]);
        }
    }
}

/// Rows `row .. row + R` by a block. Returns zeros, or NaN where a result is not finite.
///
/// # Safety
/// Rows and block are within the job, whose rows are in 16 bits; `pairs` are the block's; the machine has
/// AVX2.
#[inline(always)]
unsafe fn tile<const R: usize>(job: &Job<'_>, row: usize, block: usize, pairs: &[Pair]) -> Sixteen {
    let (rows, weights) = (job.rows, job.weights);
    let groups = weights.groups;
    // SAFETY: the pointers stay within the buffers: as many pairs in each row's stride as in `pairs`,
    // `groups` scales for each row and block.
    unsafe {
        let stride = rows.stride() / rows.precision().bytes();
        let from = job.wide.as_ptr().add(row * stride);
        let scales = rows.scales().as_ptr().add(row * groups);
        let weight_scales = weights.scales.as_ptr().add(block * groups);
        let mut totals = [Sixteen::splat(0.0); R];
        for (group, pairs) in pairs.chunks(GROUP_PAIRS).enumerate() {
            let from = from.add(group * GROUP);
            let mut sums = [[_mm256_setzero_si256(); 2]; R];
            for (k, pair) in pairs.iter().enumerate() {
                for (r, sums) in sums.iter_mut().enumerate() {
                    let two = _mm256_set1_epi32(from.add(r * stride + 2 * k).cast::<i32>().read_unaligned());
                    sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(pair.0[0], two));
                    sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(pair.0[1], two));
                }
            }
            let weight_scale = Sixteen::load(weight_scales.add(group).cast());
            for (r, (total, [low, high])) in totals.iter_mut().zip(sums).enumerate() {
                let scale = Sixteen::splat(*scales.add(r * groups + group)).mul(weight_scale);
                let sum = [_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)];
                *total = total.add(sum.mul(scale));
            }
        }
        let bias = Sixteen::load(weights.bias.as_ptr().add(block).cast());
        let mut poison = Sixteen::splat(0.0);
        for (r, total) in totals.into_iter().enumerate() {
            let value = total.add(bias);
            poison = poison.add(value.mul(Sixteen::splat(0.0)));
            job.write(row + r, block, value);
        }
        poison
    }
}

/// Rows `row .. end` by a block, whose weights are `pairs`, in tiles of nearly the same height. Meanwhile the
/// `next` block's weights are fetched: they may be as far away as memory.
///
/// # Safety
/// As for [`tile`].
#[inline(always)]
unsafe fn tiles(
    job: &Job<'_>,
    mut row: usize,
    end: usize,
    block: usize,
    pairs: &[Pair],
    next: &[Line],
) -> Sixteen {
    let each = next.len().div_ceil((end - row).div_ceil(TILE).max(1)).max(1);
    let mut next = next.chunks(each);
    // SAFETY: the caller's contract; prefetching reads nothing.
    unsafe {
        let mut poison = Sixteen::splat(0.0);
        while row < end {
            for line in next.next().unwrap_or_default() {
                _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(line).cast());
            }
            let left = end - row;
            let (rows, results) = match left / left.div_ceil(TILE) {
                TILE => (TILE, tile::<TILE>(job, row, block, pairs)),
                5 => (5, tile::<5>(job, row, block, pairs)),
                4 => (4, tile::<4>(job, row, block, pairs)),
                _ => (1, tile::<1>(job, row, block, pairs)),
            };
            poison = poison.add(results);
            row += rows;
        }
        poison
    }
}

/// All rows by some pairs of blocks. Returns whether all results are finite.
///
/// # Safety
/// As for [`tile`].
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn columns(job: &Job<'_>, blocks: Range<usize>) -> bool {
    let steps = job.weights.steps;
    let is_laid_out = job.weights.precision() == Precision::Int12;
    let mut widened = if is_laid_out {
        Vec::new()
    } else {
        vec![Pair([_mm256_setzero_si256(); 2]); 2 * steps]
    };
    // SAFETY: the caller's contract.
    unsafe {
        let mut poison = Sixteen::splat(0.0);
        let count = job.rows.count();
        let together = count.div_ceil(count.div_ceil(ROWS_AT_ONCE).max(1)).max(1);
        for row in (0..count).step_by(together) {
            let end = count.min(row + together);
            for block in 2 * blocks.start..2 * blocks.end {
                let of_block = |block: usize| job.weights.lines.get(block * steps..(block + 1) * steps);
                let Some(lines) = of_block(block) else {
                    continue;
                };
                let next = of_block(block + 1).unwrap_or_default();
                let pairs = if is_laid_out {
                    pairs_of(lines)
                } else {
                    widen(lines, &mut widened);
                    &widened
                };
                poison = poison.add(tiles(job, row, end, block, pairs, next));
            }
        }
        !poisoned(poison)
    }
}
