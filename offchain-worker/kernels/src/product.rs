//! Matrix products of quantized rows, each cell as [`surety_exact::product_cell`] gives it.
//!
//! A tile of some rows and one or two blocks of outputs stays in registers for a whole group; then its sums,
//! which are exact, become `f32`, are scaled and added. The order within a cell is that of the groups,
//! whatever the tile: so the result of a row depends neither on its neighbors nor on the machine.
#![allow(unsafe_code)] // Pointers into the tile's rows; bounds are checked once per product.
#![allow(clippy::needless_range_loop)] // An index runs over several arrays at once.

use std::ops::Range;

use rayon::prelude::*;
use surety_exact::{ArithmeticError, Precision};

#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx2Int12, Avx512, Avx512Int12, AvxVnni, AvxVnniInt12, amx, avx2_rows, int12_tiles};
#[cfg(target_arch = "aarch64")]
use crate::simd::{Neon, NeonDot, NeonInt12};
use crate::{
    Packed, Rows,
    isa::{Isa, current},
    rows::widen,
    simd::{Floats, LANES, Scalar, ScalarInt12, SimdIsa},
};

/// Rows that are taken through all of a task's weights before the next: their values stay in a core's cache.
pub(crate) const ROWS_AT_ONCE: usize = 128;
/// Multiplications that are worth waking another thread.
const TASK: usize = 1 << 20;
/// Tiles do sixteen times as many of int8 in the time, and four times as many of int12.
const TILE_TASK: usize = 1 << 22;

/// What a product works on, checked to fit together.
pub(crate) struct Job<'a> {
    pub(crate) rows: &'a Rows,
    pub(crate) weights: &'a Packed,
    /// The rows' values in 16 bits ([`Rows::wide`]), for a machine that wants them so.
    pub(crate) wide: &'a [i16],
    /// `[rows][outputs]`
    out: *mut f32,
}

// SAFETY: tasks write to different columns through `out`, and only read the rest.
unsafe impl Sync for Job<'_> {}

impl Job<'_> {
    /// Writes the first lanes to a row's outputs from a block on, as many as there are.
    ///
    /// # Safety
    /// `row` and `block` are within the job, this task's own; and the machine has the instructions.
    #[inline(always)]
    pub(crate) unsafe fn write<F: Floats>(&self, row: usize, block: usize, values: F) {
        let (first, outputs) = (block * LANES, self.weights.outputs());
        // SAFETY: `out` has a row of `outputs` values per row, checked by `product`.
        unsafe {
            let to = self.out.add(row * outputs + first);
            match outputs.saturating_sub(first) {
                LANES.. => values.store(to),
                some => {
                    let mut lanes = [0.0; LANES];
                    values.store(lanes.as_mut_ptr());
                    std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, some);
                }
            }
        }
    }
}

/// Rows `row .. row + R` by blocks `block .. block + B`, in `U` interleaved sums: enough for the latency of a
/// dot product. Returns zeros, or NaN where a result is not finite.
///
/// # Safety
/// Rows and blocks are within the job, and the machine has the instructions.
#[inline(always)]
unsafe fn tile<M: SimdIsa, const R: usize, const B: usize, const U: usize>(
    job: &Job<'_>,
    row: usize,
    block: usize,
) -> M::Floats {
    let (rows, weights) = (job.rows, job.weights);
    let (steps, groups) = (weights.steps, weights.groups);
    // SAFETY: the pointers stay within the buffers: `steps` lines in each block, as many quads in each row's
    // stride, `groups` scales for each row and block.
    unsafe {
        let (from, quad_bytes) = if M::WIDE {
            (job.wide.as_ptr().cast::<u8>(), 8)
        } else {
            (rows.bytes().as_ptr().cast::<u8>(), 4)
        };
        let stride = rows.stride() * quad_bytes / 4;
        let mut from = from.add(row * stride);
        let mut lines = weights.lines.as_ptr().add(block * steps);
        let scales = rows.scales().as_ptr().add(row * groups);
        let offsets = rows.offsets().as_ptr().add(row * groups);
        let weight_scales = weights.scales.as_ptr().add(block * groups);
        let mut totals = [[M::Floats::splat(0.0); B]; R];
        let mut left = steps;
        for group in 0..groups {
            let mut sums = [[[M::start(0); B]; R]; U];
            for r in 0..R {
                sums[0][r] = [M::start(*offsets.add(r * groups + group)); B];
            }
            let here = left.min(M::GROUP_LINES);
            left -= here;
            for _ in 0..here / U {
                for (u, sums) in sums.iter_mut().enumerate() {
                    let mut ready = [M::weights(lines.add(u)); B];
                    for b in 1..B {
                        ready[b] = M::weights(lines.add(b * steps + u));
                    }
                    for r in 0..R {
                        let quad = M::quad(from.add(r * stride + u * quad_bytes));
                        for b in 0..B {
                            sums[r][b] = M::dot(sums[r][b], ready[b], quad);
                        }
                    }
                }
                lines = lines.add(U);
                from = from.add(U * quad_bytes);
            }
            for b in 0..B {
                let weight_scale = M::Floats::load(weight_scales.add(b * groups + group).cast());
                for r in 0..R {
                    let mut sum = sums[0][r][b];
                    for sums in &sums[1..] {
                        sum = M::join(sum, sums[r][b]);
                    }
                    let scale = M::Floats::splat(*scales.add(r * groups + group)).mul(weight_scale);
                    totals[r][b] = totals[r][b].add(M::floats(sum).mul(scale));
                }
            }
        }
        let mut poison = M::Floats::splat(0.0);
        for b in 0..B {
            let bias = M::Floats::load(weights.bias.as_ptr().add(block + b).cast());
            for (r, totals) in totals.iter().enumerate() {
                let value = totals[b].add(bias);
                poison = poison.add(value.mul(M::Floats::splat(0.0)));
                job.write(row + r, block + b, value);
            }
        }
        poison
    }
}

/// Rows `row .. end` by a pair of blocks: in tiles of `R` rows and `B` blocks, then less. `U1` is for one
/// row, `U2` for two or three.
///
/// # Safety
/// As for [`tile`].
#[inline(always)]
pub(crate) unsafe fn pair<M: SimdIsa, const R: usize, const B: usize, const U1: usize, const U2: usize>(
    job: &Job<'_>,
    mut row: usize,
    end: usize,
    block: usize,
) -> M::Floats {
    // SAFETY: the caller's contract.
    unsafe {
        let mut poison = M::Floats::splat(0.0);
        while end - row >= R {
            for block in (block..block + 2).step_by(B) {
                poison = poison.add(tile::<M, R, B, 1>(job, row, block));
            }
            row += R;
        }
        while B == 2 && end - row >= 8 {
            poison = poison.add(tile::<M, 8, 2, 1>(job, row, block));
            row += 8;
        }
        while B == 2 && end - row >= 4 {
            poison = poison.add(tile::<M, 4, 2, 1>(job, row, block));
            row += 4;
        }
        // Few rows: what takes time is that the weights come from memory.
        for block in block..block + 2 {
            let mut row = row;
            while end - row >= 4 {
                poison = poison.add(tile::<M, 4, 1, 1>(job, row, block));
                row += 4;
            }
            poison = poison.add(match end - row {
                0 => continue,
                1 => tile::<M, 1, 1, U1>(job, row, block),
                2 => tile::<M, 2, 1, U2>(job, row, block),
                _ => tile::<M, 3, 1, U2>(job, row, block),
            });
        }
        poison
    }
}

/// Whether any lane is NaN.
///
/// # Safety
/// The machine has the instructions.
#[inline(always)]
pub(crate) unsafe fn poisoned<F: Floats>(poison: F) -> bool {
    let mut lanes = [0.0; LANES];
    // SAFETY: room for all lanes.
    unsafe { poison.store(lanes.as_mut_ptr()) };
    lanes.iter().any(|lane| lane.is_nan())
}

macro_rules! columns_for {
    ($name:ident, $machine:ty, $rows:literal, $blocks:literal, $one:literal, $few:literal $(, $features:literal)?) => {
        /// All rows by some pairs of blocks. Returns whether all results are finite.
        ///
        /// # Safety
        /// As for [`tile`].
        $(#[target_feature(enable = $features)])?
        unsafe fn $name(job: &Job<'_>, pairs: Range<usize>) -> bool {
            // SAFETY: the caller's contract; the machine has the features that this function enables.
            unsafe {
                let mut poison = <$machine as SimdIsa>::Floats::splat(0.0);
                for row in (0..job.rows.count()).step_by(ROWS_AT_ONCE) {
                    let end = job.rows.count().min(row + ROWS_AT_ONCE);
                    for block in pairs.clone().map(|pair| 2 * pair) {
                        poison = poison.add(pair::<$machine, $rows, $blocks, $one, $few>(job, row, end, block));
                    }
                }
                !poisoned(poison)
            }
        }
    };
}
// The numbers fill the registers: a block's sums take 4 of Avx2's 16, 2 of AvxVnni's 16, 1 of Avx512's 32, 8
// and 4 of Neon's and NeonDot's 32.
columns_for!(columns_scalar, Scalar, 1, 1, 1, 1);
columns_for!(columns_scalar_int12, ScalarInt12, 1, 1, 1, 1);
#[cfg(target_arch = "x86_64")]
columns_for!(columns_avx2, Avx2, 3, 1, 1, 1, "avx2");
#[cfg(target_arch = "x86_64")]
columns_for!(columns_avx_vnni, AvxVnni, 6, 1, 4, 2, "avx2,avxvnni");
#[cfg(target_arch = "x86_64")]
columns_for!(
    columns_avx512,
    Avx512,
    12,
    2,
    4,
    4,
    "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"
);
// With int12, sums take 2 of Avx2's 16, else as many as with int8.
#[cfg(target_arch = "x86_64")]
columns_for!(columns_avx2_int12, Avx2Int12, 6, 1, 2, 2, "avx2");
#[cfg(target_arch = "x86_64")]
columns_for!(columns_avx_vnni_int12, AvxVnniInt12, 6, 1, 4, 2, "avx2,avxvnni");
#[cfg(target_arch = "x86_64")]
columns_for!(
    columns_avx512_int12,
    Avx512Int12,
    12,
    2,
    4,
    4,
    "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"
);
#[cfg(target_arch = "aarch64")]
columns_for!(columns_neon_int12, NeonInt12, 2, 1, 1, 1, "neon");
#[cfg(target_arch = "aarch64")]
columns_for!(columns_neon, Neon, 2, 1, 1, 1, "neon");
#[cfg(target_arch = "aarch64")]
columns_for!(columns_neon_dot, NeonDot, 6, 1, 2, 2, "neon,dotprod");

/// # Safety
/// `pairs` are within the job and this task's own; `isa` is one of this machine's.
unsafe fn run(job: &Job<'_>, isa: Isa, pairs: Range<usize>) -> bool {
    // SAFETY: the caller's contract.
    unsafe {
        if job.weights.precision() == Precision::Int12 {
            return run_int12(job, isa, pairs);
        }
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 if job.rows.count() >= avx2_rows::ROWS_MIN => avx2_rows::columns(job, pairs),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => columns_avx2(job, pairs),
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni => columns_avx_vnni(job, pairs),
            #[cfg(target_arch = "x86_64")]
            Isa::Amx if job.rows.count() >= amx::ROWS_MIN => amx::columns(job, pairs),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni | Isa::Amx => columns_avx512(job, pairs),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => columns_neon(job, pairs),
            #[cfg(target_arch = "aarch64")]
            Isa::NeonDot => columns_neon_dot(job, pairs),
            _ => columns_scalar(job, pairs),
        }
    }
}

/// # Safety
/// As for [`run`].
unsafe fn run_int12(job: &Job<'_>, isa: Isa, pairs: Range<usize>) -> bool {
    // SAFETY: the caller's contract.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 if job.rows.count() >= avx2_rows::ROWS_MIN => avx2_rows::columns(job, pairs),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => columns_avx2_int12(job, pairs),
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni => columns_avx_vnni_int12(job, pairs),
            #[cfg(target_arch = "x86_64")]
            Isa::Amx if has_tiles(isa, job.rows) && amx::is_right_with_int12() => {
                amx::columns_int12(job, pairs)
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni | Isa::Amx => columns_avx512_int12(job, pairs),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon | Isa::NeonDot => columns_neon_int12(job, pairs),
            _ => columns_scalar_int12(job, pairs),
        }
    }
}

/// Whether products of these rows are taken in tiles.
#[cfg(target_arch = "x86_64")]
fn has_tiles(isa: Isa, rows: &Rows) -> bool {
    let least = match rows.precision() {
        Precision::Int8 => amx::ROWS_MIN,
        Precision::Int12 => int12_tiles::ROWS_MIN,
    };
    isa == Isa::Amx && rows.count() >= least
}

#[cfg(not(target_arch = "x86_64"))]
fn has_tiles(_isa: Isa, _rows: &Rows) -> bool {
    false
}

/// `out[m][outputs] = rows * weights`.
///
/// # Errors
/// [`ArithmeticError::Shape`] when widths or precisions do not fit together, [`ArithmeticError::NotFinite`]
/// when a result is not.
pub fn product(rows: &Rows, weights: &Packed, out: &mut [f32]) -> Result<(), ArithmeticError> {
    let same = rows.width() == weights.inputs() && rows.precision() == weights.precision();
    if !same || Some(out.len()) != rows.count().checked_mul(weights.outputs()) {
        return Err(ArithmeticError::Shape);
    }
    let isa = current();
    let mut widened = Vec::new();
    if isa == Isa::Avx2 && rows.wide().is_empty() {
        // They were quantized with other instructions.
        widen(isa, rows.bytes(), &mut widened);
    }
    let wide = match rows.wide() {
        [] => &widened,
        wide => wide,
    };
    let job = Job {
        rows,
        weights,
        wide,
        out: out.as_mut_ptr(),
    };
    let pairs = weights.pairs();
    let work = out.len() * weights.inputs();
    let task = if has_tiles(isa, rows) { TILE_TASK } else { TASK };
    let threads = rayon::current_num_threads();
    // Several tasks per thread: another program may hold one of them up.
    let tasks = (work / task).min(4 * threads).min(pairs);
    let finite = if threads == 1 || tasks < 2 {
        // SAFETY: the shapes were checked, `current` gives instructions of this machine, there is one task.
        unsafe { run(&job, isa, 0..pairs) }
    } else {
        let run_task = |task: usize| {
            let range = pairs * task / tasks..pairs * (task + 1) / tasks;
            // SAFETY: as above; ranges of different tasks do not overlap.
            unsafe { run(&job, isa, range) }
        };
        // Every task runs to its end: which of them finds a fault first would differ from run to run.
        (0..tasks)
            .into_par_iter()
            .map(run_task)
            .reduce(|| true, |a, b| a && b)
    };
    if finite {
        Ok(())
    } else {
        Err(ArithmeticError::NotFinite)
    }
}

#[cfg(test)]
mod emulated;
