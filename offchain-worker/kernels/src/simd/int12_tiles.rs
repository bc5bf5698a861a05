//! Products of int12 by tiles of bytes.
//!
//! A number of 16 bits is `256 high + low` of its two bytes, the high one signed, the low one not. So a
//! product is four of bytes, `65536 hh + 256 (hl + lh) + ll`, and a tile instruction for each pair of signs
//! adds them up. All of it is modulo 2^32, as the definition is: values beyond 12 bits give what they give
//! there.
//!
//! Everything but [`Tiles`] is plain code, so that tests run it on machines without tiles, too.
#![allow(clippy::needless_range_loop)] // An index runs over several arrays at once.

use std::ops::Range;

use surety_exact::{GROUP, SplitMix64};

use super::{Floats, LANES, Line};
use crate::{
    packed::PAD,
    product::{Job, ROWS_AT_ONCE},
    rows::values_mut,
};

/// Fewer rows than this are left to `vpdpwssd`: a tile takes as long for one row as for all.
pub(crate) const ROWS_MIN: usize = 16;
/// Rows in a tile.
pub(crate) const TILE: usize = 16;
/// Tiles of a whole group.
const GROUP_TILES: usize = GROUP / PAD;
/// Lines of weights in a tile.
pub(crate) const TILE_LINES: usize = PAD / 4;

/// Sums of four products of a tile of rows by sixteen outputs: high bytes of rows by high and by low bytes of
/// weights, low bytes by high and by low ones.
#[repr(C, align(64))]
pub(crate) struct Sums(pub(crate) [[[i32; LANES]; TILE]; 4]);

impl Sums {
    pub(crate) const ZERO: Self = Self([[[0; LANES]; TILE]; 4]);
}

/// What multiplies tiles.
pub(crate) trait Tiles {
    /// The sums of `depth` tiles' worth of one group. `rows` are the first high and the first low bytes of
    /// [`TILE`] rows that lie `stride` bytes apart, `lines` those of a block's weights: a line has four of
    /// each of sixteen outputs.
    ///
    /// # Safety
    /// The pointers are good for so many tiles, and the machine is ready for the instructions.
    unsafe fn dot(
        rows: [*const i8; 2],
        stride: usize,
        lines: [*const Line; 2],
        depth: usize,
        sums: &mut Sums,
    );
}

/// High bytes and low bytes, each in whole tiles.
struct Halves {
    high: Vec<Line>,
    low: Vec<Line>,
}

impl Halves {
    fn new(lines: usize) -> Self {
        Self {
            high: vec![Line([0; 64]); lines],
            low: vec![Line([0; 64]); lines],
        }
    }

    /// Of rows that lie `stride` values apart. What is behind them stays as it was.
    #[inline(always)]
    fn take_rows(&mut self, rows: &[i16], stride: usize, padded: usize) {
        let high = values_mut::<i8>(&mut self.high).chunks_exact_mut(padded);
        let low = values_mut::<i8>(&mut self.low).chunks_exact_mut(padded);
        for (row, (high, low)) in rows.chunks_exact(stride).zip(high.zip(low)) {
            for (high, value) in high.iter_mut().zip(row) {
                *high = (*value >> 8) as i8;
            }
            for (low, value) in low.iter_mut().zip(row) {
                *low = *value as i8;
            }
        }
    }

    /// Of a block of weights: two lines of two values each for an output become one of four bytes.
    #[inline(always)]
    fn take_weights(&mut self, lines: &[Line]) {
        let halves = self.high.iter_mut().zip(&mut self.low);
        for ([first, second], (high, low)) in lines.as_chunks::<2>().0.iter().zip(halves) {
            let (first, second) = (first.words(), second.words());
            let (high, low) = (high.words_mut(), low.words_mut());
            for lane in 0..LANES {
                let (a, b) = (first[lane], second[lane]);
                low[lane] = (a & 0xff) | ((a >> 8) & 0xff00) | ((b & 0xff) << 16) | ((b << 8) & 0xff00_0000);
                high[lane] =
                    ((a >> 8) & 0xff) | ((a >> 16) & 0xff00) | ((b << 8) & 0xff_0000) | (b & 0xff00_0000);
            }
        }
    }

    /// Both from a line on.
    fn at(&self, line: usize) -> [*const Line; 2] {
        [self.high[line..].as_ptr(), self.low[line..].as_ptr()]
    }
}

/// A row's sums of whole products.
#[inline(always)]
fn joined(sums: &Sums, row: usize) -> [i32; LANES] {
    let [hh, hl, lh, ll] = &sums.0;
    let mut whole = [0; LANES];
    for lane in 0..LANES {
        let middle = hl[row][lane].wrapping_add(lh[row][lane]);
        whole[lane] = (hh[row][lane] << 16)
            .wrapping_add(middle << 8)
            .wrapping_add(ll[row][lane]);
    }
    whole
}

/// Whether tiles of chance numbers give the sums of the definition.
///
/// # Safety
/// The machine is ready for the instructions.
pub(crate) unsafe fn are_right<T: Tiles>() -> bool {
    let random = &mut SplitMix64::new(12);
    let mut numbers = || -> Vec<i16> { (0..TILE * GROUP).map(|_| random.next() as i16).collect() };
    let (rows, weights) = (numbers(), numbers());
    let mut packed = [Line([0; 64]); GROUP / 2];
    for (lane, weights) in weights.chunks_exact(GROUP).enumerate() {
        for (line, pair) in packed.iter_mut().zip(weights.as_chunks::<2>().0) {
            line.pairs_mut()[lane] = *pair;
        }
    }
    let mut values = Halves::new(TILE * GROUP / 64);
    values.take_rows(&rows, GROUP, GROUP);
    let mut lines = Halves::new(GROUP_TILES * TILE_LINES);
    lines.take_weights(&packed);
    let mut sums = Sums::ZERO;
    // SAFETY: a group's tiles of rows and of lines; the caller's contract.
    unsafe {
        let from = values.at(0).map(|half| half.cast());
        T::dot(from, GROUP, lines.at(0), GROUP_TILES, &mut sums);
    }
    rows.chunks_exact(GROUP).enumerate().all(|(row, values)| {
        let right = weights
            .chunks_exact(GROUP)
            .map(|weights| surety_exact::dot(values, weights));
        joined(&sums, row).into_iter().eq(right)
    })
}

/// At most [`TILE`] rows by a block. Returns zeros, or NaN where a result is not finite. What the sums hold
/// does not matter.
///
/// # Safety
/// Rows and block are within the job, `values` begins with the first of these rows, `lines` are the block's;
/// and the machine is ready for the instructions.
#[inline(always)]
unsafe fn tile<T: Tiles, F: Floats>(
    job: &Job<'_>,
    (rows, block): (Range<usize>, usize),
    values: [*const Line; 2],
    lines: &Halves,
    [mut now, mut next]: [&mut Sums; 2],
) -> F {
    let (weights, groups) = (job.weights, job.weights.groups);
    let tiles = weights.inputs().div_ceil(PAD);
    // SAFETY: the pointers stay within whole tiles of these rows and lines; `groups` scales for each row and
    // block.
    unsafe {
        let dot = |group: usize, sums: &mut Sums| {
            let first = group * GROUP_TILES;
            let depth = (tiles - first).min(GROUP_TILES);
            let from = values.map(|half| half.cast::<i8>().add(first * PAD));
            T::dot(from, tiles * PAD, lines.at(first * TILE_LINES), depth, sums);
        };
        let mut totals = [F::splat(0.0); TILE];
        dot(0, now);
        for group in 0..groups {
            // A group ahead: what tiles have stored is not there at once.
            if group + 1 < groups {
                dot(group + 1, next);
            }
            let weight_scale = F::load(weights.scales[block * groups + group].0.as_ptr());
            for (r, row) in rows.clone().enumerate() {
                let scale = F::splat(job.rows.scales()[row * groups + group]).mul(weight_scale);
                let mut sum = [0.0; LANES];
                for (float, whole) in sum.iter_mut().zip(joined(now, r)) {
                    *float = whole as f32;
                }
                totals[r] = totals[r].add(F::load(sum.as_ptr()).mul(scale));
            }
            (now, next) = (next, now);
        }
        let bias = F::load(weights.bias[block].0.as_ptr());
        let mut poison = F::splat(0.0);
        for (r, row) in rows.enumerate() {
            let value = totals[r].add(bias);
            poison = poison.add(value.mul(F::splat(0.0)));
            job.write(row, block, value);
        }
        poison
    }
}

/// All rows by some pairs of blocks. Returns zeros, or NaN where a result is not finite.
///
/// # Safety
/// `pairs` are within the job and this task's own, of which the weights are int12; the machine is ready for
/// the instructions.
#[inline(always)]
pub(crate) unsafe fn columns<T: Tiles, F: Floats>(job: &Job<'_>, pairs: Range<usize>) -> F {
    let (weights, count) = (job.weights, job.rows.count());
    let (steps, tiles) = (weights.steps, weights.inputs().div_ceil(PAD));
    let stride = job.rows.stride() / job.rows.precision().bytes();
    // A line of whole tiles has `PAD` of a row's bytes, or four weights of each of sixteen outputs.
    let mut values = Halves::new(count.min(ROWS_AT_ONCE).next_multiple_of(TILE) * tiles * PAD / 64);
    let mut lines = Halves::new(tiles * TILE_LINES);
    let [mut now, mut next] = [Sums::ZERO; 2];
    // SAFETY: the caller's contract.
    unsafe {
        let mut poison = F::splat(0.0);
        for first in (0..count).step_by(ROWS_AT_ONCE) {
            let end = count.min(first + ROWS_AT_ONCE);
            values.take_rows(&job.wide[first * stride..end * stride], stride, tiles * PAD);
            for block in 2 * pairs.start..2 * pairs.end {
                lines.take_weights(&weights.lines[block * steps..(block + 1) * steps]);
                for row in (first..end).step_by(TILE) {
                    let rows = row..end.min(row + TILE);
                    let from = values.at((row - first) * tiles * PAD / 64);
                    let sums = [&mut now, &mut next];
                    poison = poison.add(tile::<T, F>(job, (rows, block), from, &lines, sums));
                }
            }
        }
        poison
    }
}
