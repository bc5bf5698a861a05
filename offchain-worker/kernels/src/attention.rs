//! Attention over the keys and values of a sequence, each row as [`surety_exact::attention_row`] gives it.
//!
//! Scores of sixteen positions fill a register, and so do sixteen columns of a value: that is where the
//! definition's sums are independent of each other. Several queries, and the heads that share keys, go
//! together, so that one addition does not wait for the one before.
#![allow(unsafe_code)] // Pointers into the cache and the rows; bounds are checked once per call.
#![allow(clippy::needless_range_loop)] // An index runs over several arrays at once.

use std::ops::Range;

use rayon::prelude::*;
use surety_exact::{self as exact, ArithmeticError};

#[cfg(target_arch = "aarch64")]
use crate::simd::Neon;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512};
use crate::{
    cache::Cache,
    isa::{Isa, current},
    simd::{Floats, LANES, Scalar, SimdIsa, Sixteen},
};

/// Multiplications that are worth waking another thread.
const TASK: usize = 1 << 20;

/// Which positions a row sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// All of them.
    Full,
    /// Row `i` sees `0 ..= first + i`.
    Causal {
        /// Position of the first row.
        first: usize,
    },
}

/// What a call works on, checked to fit together.
struct Job<'a> {
    queries: &'a [f32],
    cache: &'a Cache,
    heads: usize,
    mask: Mask,
    scale: f32,
    /// As long as `queries`.
    out: *mut f32,
}

// SAFETY: tasks write to different heads and rows through `out`, and only read the rest.
unsafe impl Sync for Job<'_> {}

impl Job<'_> {
    /// Heads of queries that share one of the cache.
    fn group(&self) -> usize {
        self.heads / self.cache.kv_heads()
    }

    /// Queries of one of the cache's heads, by row, then by head.
    fn queries(&self) -> usize {
        self.queries.len() / (self.cache.kv_heads() * self.cache.head_dim())
    }

    /// Where such a query's values are, in the rows and in `out`.
    fn at(&self, kv_head: usize, query: usize) -> usize {
        let (row, head) = (
            query / self.group(),
            kv_head * self.group() + query % self.group(),
        );
        (row * self.heads + head) * self.cache.head_dim()
    }

    /// Positions that a query attends to, from the first.
    fn seen(&self, query: usize) -> usize {
        match self.mask {
            Mask::Full => self.cache.len(),
            Mask::Causal { first } => first + query / self.group() + 1,
        }
    }
}

/// Scores of `Q` queries on `B` blocks of positions, unscaled and then scaled.
///
/// # Safety
/// `from` are good for a head's width, the blocks are in the cache, `to` good for the blocks; and the machine
/// has the instructions.
#[inline(always)]
unsafe fn score<F: Floats, const Q: usize, const B: usize>(
    job: &Job<'_>,
    from: &[*const f32; Q],
    kv_head: usize,
    block: usize,
    to: &[*mut f32; Q],
) {
    let d = job.cache.head_dim();
    // SAFETY: the caller's contract.
    unsafe {
        let mut keys = [job.cache.key_block(block, kv_head); B];
        for (b, keys) in keys.iter_mut().enumerate() {
            *keys = job.cache.key_block(block + b, kv_head);
        }
        let mut sums = [[F::splat(0.0); B]; Q];
        for i in 0..d {
            let mut lanes = [F::load(keys[0].add(i).cast()); B];
            for b in 1..B {
                lanes[b] = F::load(keys[b].add(i).cast());
            }
            for q in 0..Q {
                let value = F::splat(*from[q].add(i));
                for b in 0..B {
                    sums[q][b] = sums[q][b].add(value.mul(lanes[b]));
                }
            }
        }
        for q in 0..Q {
            for b in 0..B {
                sums[q][b]
                    .mul(F::splat(job.scale))
                    .store(to[q].add((block + b) * LANES));
            }
        }
    }
}

/// Sixteen times `C` columns of the outputs of `Q` queries, not divided yet.
///
/// # Safety
/// As for [`score`]; `weights` and the cache are good for `seen` positions, the columns are in the head.
#[inline(always)]
unsafe fn mix<F: Floats, const Q: usize, const C: usize>(
    job: &Job<'_>,
    weights: &[*const f32; Q],
    kv_head: usize,
    seen: usize,
    column: usize,
) -> [[F; C]; Q] {
    let across = job.cache.columns();
    // SAFETY: the caller's contract.
    unsafe {
        let mut sums = [[F::splat(0.0); C]; Q];
        for from in (0..seen).step_by(LANES) {
            let values = job.cache.value_block(from / LANES, kv_head).add(column);
            for j in 0..LANES.min(seen - from) {
                let values = values.add(j * across);
                let mut lanes = [F::load(values.cast()); C];
                for c in 1..C {
                    lanes[c] = F::load(values.add(c).cast());
                }
                for q in 0..Q {
                    let weight = F::splat(*weights[q].add(from + j));
                    for c in 0..C {
                        sums[q][c] = sums[q][c].add(weight.mul(lanes[c]));
                    }
                }
            }
        }
        sums
    }
}

/// [`exact::softmax_row`], with the largest score found in lanes: the order does not matter for that.
#[inline(always)]
fn softmax(scores: &mut [f32]) -> Result<f32, ArithmeticError> {
    let (chunks, rest) = scores.as_chunks::<LANES>();
    let (mut sizes, mut most) = ([0; LANES], [f32::MIN; LANES]);
    for chunk in chunks {
        for lane in 0..LANES {
            sizes[lane] = sizes[lane].max(chunk[lane].to_bits() & 0x7fff_ffff);
            most[lane] = if chunk[lane] > most[lane] {
                chunk[lane]
            } else {
                most[lane]
            };
        }
    }
    for (score, (size, most)) in rest.iter().zip(sizes.iter_mut().zip(&mut most)) {
        *size = (*size).max(score.to_bits() & 0x7fff_ffff);
        *most = if *score > *most { *score } else { *most };
    }
    // Upper half on lower half: sixteen steps one after the other would take longer than the exponentials.
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sizes[lane] = sizes[lane].max(sizes[lane + half]);
            most[lane] = if most[lane + half] > most[lane] {
                most[lane + half]
            } else {
                most[lane]
            };
        }
        half /= 2;
    }
    if sizes[0] >= f32::INFINITY.to_bits() {
        return Err(ArithmeticError::NotFinite);
    }
    let max = most[0];
    for score in scores.iter_mut() {
        *score = exact::exp(*score - max);
    }
    Ok(exact::sum(scores))
}

/// Divides and writes sixteen columns of one query. Returns whether they are finite.
///
/// # Safety
/// `to` is good for `width` values, and the machine has the instructions.
#[inline(always)]
unsafe fn finish<F: Floats>(sums: F, total: f32, to: *mut f32, width: usize) -> bool {
    let mut lanes = [0.0; LANES];
    // SAFETY: room for all lanes.
    unsafe { sums.store(lanes.as_mut_ptr()) };
    for lane in &mut lanes {
        *lane /= total;
    }
    // SAFETY: the caller's contract.
    unsafe {
        match width {
            LANES => to.cast::<[f32; LANES]>().write_unaligned(lanes),
            _ => std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, width),
        }
    }
    let size = lanes
        .iter()
        .fold(0, |size, lane| size.max(lane.to_bits() & 0x7fff_ffff));
    size < f32::INFINITY.to_bits()
}

/// Columns from `column` on, `C` at a time.
///
/// # Safety
/// As for [`mix`]; `at` are good for a head's width of `out`, this task's own.
#[inline(always)]
unsafe fn columns<F: Floats, const Q: usize, const C: usize>(
    job: &Job<'_>,
    weights: &[*const f32; Q],
    totals: &[f32; Q],
    kv_head: usize,
    seen: usize,
    at: &[usize; Q],
    column: &mut usize,
) -> bool {
    let mut finite = true;
    while job.cache.columns() - *column >= C {
        // SAFETY: the caller's contract.
        unsafe {
            let sums = mix::<F, Q, C>(job, weights, kv_head, seen, *column);
            for q in 0..Q {
                for (c, sums) in sums[q].into_iter().enumerate() {
                    let first = (*column + c) * LANES;
                    let width = LANES.min(job.cache.head_dim() - first);
                    finite &= finish(sums, totals[q], job.out.add(at[q] + first), width);
                }
            }
        }
        *column += C;
    }
    finite
}

/// `Q` queries of one of the cache's heads.
///
/// # Safety
/// Heads and queries are within the job and this task's own, `scratch` holds the last one's scores in whole
/// blocks, `Q` times; and the machine has the instructions.
#[inline(always)]
unsafe fn together<F: Floats, const Q: usize, const W: usize>(
    job: &Job<'_>,
    kv_head: usize,
    query: usize,
    scratch: &mut [Sixteen],
) -> Result<(), ArithmeticError> {
    let seen = job.seen(query + Q - 1);
    let blocks = seen.div_ceil(LANES);
    let (mut at, mut from, mut to) = (
        [0; Q],
        [job.queries.as_ptr(); Q],
        [std::ptr::null_mut::<f32>(); Q],
    );
    // SAFETY: the caller's contract. Scores behind a query's last position become 0, which changes no sum:
    // none is -0, and values are finite.
    unsafe {
        let scores = scratch.as_mut_ptr().cast::<f32>();
        for q in 0..Q {
            at[q] = job.at(kv_head, query + q);
            from[q] = job.queries.as_ptr().add(at[q]);
            to[q] = scores.add(q * blocks * LANES);
        }
        let mut block = 0;
        while blocks - block >= W {
            score::<F, Q, W>(job, &from, kv_head, block, &to);
            block += W;
        }
        while block < blocks {
            score::<F, Q, 1>(job, &from, kv_head, block, &to);
            block += 1;
        }
        let mut totals = [0.0; Q];
        for q in 0..Q {
            let scores = std::slice::from_raw_parts_mut(to[q], blocks * LANES);
            let (scores, rest) = scores.split_at_mut(job.seen(query + q));
            totals[q] = softmax(scores)?;
            rest.fill(0.0);
        }
        let weights = to.map(|to| to.cast_const());
        let mut column = 0;
        let mut finite = columns::<F, Q, W>(job, &weights, &totals, kv_head, seen, &at, &mut column);
        finite &= columns::<F, Q, 2>(job, &weights, &totals, kv_head, seen, &at, &mut column);
        finite &= columns::<F, Q, 1>(job, &weights, &totals, kv_head, seen, &at, &mut column);
        if finite {
            Ok(())
        } else {
            Err(ArithmeticError::NotFinite)
        }
    }
}

/// Some queries of one of the cache's heads.
///
/// # Safety
/// Heads and queries are within the job and this task's own, and the machine has the instructions.
#[inline(always)]
unsafe fn part<F: Floats, const Q: usize, const W: usize>(
    job: &Job<'_>,
    kv_head: usize,
    queries: Range<usize>,
) -> Result<(), ArithmeticError> {
    let blocks = job.seen(queries.end - 1).div_ceil(LANES);
    let mut scratch = vec![Sixteen([0.0; LANES]); Q * blocks];
    let mut query = queries.start;
    // SAFETY: the caller's contract.
    unsafe {
        while queries.end - query >= Q {
            together::<F, Q, W>(job, kv_head, query, &mut scratch)?;
            query += Q;
        }
        while query < queries.end {
            together::<F, 1, W>(job, kv_head, query, &mut scratch)?;
            query += 1;
        }
    }
    Ok(())
}

macro_rules! part_for {
    ($name:ident, $machine:ty, $together:literal, $features:literal) => {
        #[target_feature(enable = $features)]
        unsafe fn $name(job: &Job<'_>, kv_head: usize, queries: Range<usize>) -> Result<(), ArithmeticError> {
            // SAFETY: the caller's contract; the machine has the features that this function enables.
            unsafe { part::<<$machine as SimdIsa>::Floats, $together, $together>(job, kv_head, queries) }
        }
    };
}
#[cfg(target_arch = "x86_64")]
part_for!(part_avx2, Avx2, 2, "avx2");
#[cfg(target_arch = "x86_64")]
part_for!(part_avx512, Avx512, 4, "avx512f,avx512bw,avx512vl,avx512dq");
#[cfg(target_arch = "aarch64")]
part_for!(part_neon, Neon, 2, "neon");

/// # Safety
/// Heads and queries are within the job and this task's own; `isa` is one of this machine's.
unsafe fn run(job: &Job<'_>, isa: Isa, kv_head: usize, queries: Range<usize>) -> Result<(), ArithmeticError> {
    // SAFETY: the caller's contract.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::AvxVnni => part_avx2(job, kv_head, queries),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni | Isa::Amx => part_avx512(job, kv_head, queries),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon | Isa::NeonDot => part_neon(job, kv_head, queries),
            _ => part::<<Scalar as SimdIsa>::Floats, 2, 2>(job, kv_head, queries),
        }
    }
}

/// Attention of rows of `heads * head_dim` values over a cache; several heads share one of the cache when it
/// has fewer. Scores are scaled by `1 / sqrt(head_dim)`.
///
/// # Errors
/// [`ArithmeticError::Shape`] when the widths do not fit together or a row sees positions that are not there,
/// [`ArithmeticError::NotFinite`] when a result is not.
pub fn attention(
    queries: &[f32],
    cache: &Cache,
    heads: usize,
    mask: Mask,
    out: &mut [f32],
) -> Result<(), ArithmeticError> {
    let (d, kv_heads) = (cache.head_dim(), cache.kv_heads());
    let width = heads.checked_mul(d).ok_or(ArithmeticError::Shape)?;
    let fits = width > 0 && kv_heads > 0 && heads.is_multiple_of(kv_heads);
    if !fits || queries.len() != out.len() || !queries.len().is_multiple_of(width) {
        return Err(ArithmeticError::Shape);
    }
    let rows = queries.len() / width;
    let seen = match mask {
        Mask::Full => Some(cache.len()),
        Mask::Causal { first } => first.checked_add(rows),
    };
    if rows == 0 {
        return Ok(());
    }
    if cache.is_empty() || seen.is_none_or(|seen| seen > cache.len()) {
        return Err(ArithmeticError::Shape);
    }
    let job = Job {
        queries,
        cache,
        heads,
        mask,
        scale: exact::rsqrt(d as f32),
        out: out.as_mut_ptr(),
    };
    let isa = current();
    let work = queries.len() * cache.len();
    let all = job.queries();
    if work < 2 * TASK || rayon::current_num_threads() == 1 {
        // SAFETY: the shapes were checked, `current` gives instructions of this machine, there is one task.
        return (0..kv_heads).try_for_each(|kv_head| unsafe { run(&job, isa, kv_head, 0..all) });
    }
    // Rows that see more take longer: many tasks, and they even out.
    let each = (all * TASK / work).next_multiple_of(8);
    let parts = all.div_ceil(each);
    let run_task = |task: usize| {
        let first = task % parts * each;
        // SAFETY: as above; heads or queries of different tasks differ.
        unsafe { run(&job, isa, task / parts, first..all.min(first + each)) }
    };
    // Every task runs to its end, and faults are of one kind here: what is returned does not depend on
    // threads.
    let faults = (0..kv_heads * parts).into_par_iter().map(run_task);
    faults.reduce(|| Ok(()), Result::and)
}
