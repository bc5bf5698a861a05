//! Attention over the keys and values of a sequence, each row as [`surety_exact::attention_row`] gives it.
//!
//! Both products are those of [`product`](crate::product): with keys sixteen positions are its outputs, with
//! values sixteen columns. Several queries, and the heads that share keys, go together, so that each line
//! that is read serves all of them.
#![allow(unsafe_code)] // Pointers into the cache and the rows; bounds are checked once per call.
#![allow(clippy::needless_range_loop)] // An index runs over several arrays at once.

use std::ops::Range;

use rayon::prelude::*;
use surety_exact::{self as exact, ArithmeticError, BLOCK, Softmax};

#[cfg(target_arch = "aarch64")]
use crate::simd::NeonInt12;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2Int12, Avx512Int12, AvxVnniInt12};
use crate::{
    HeadRows,
    cache::Cache,
    isa::{Isa, current},
    simd::{Floats, LANES, Line, ScalarInt12, SimdIsa, Sixteen},
    softmax::{Block, softmax},
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
    queries: HeadRows<'a>,
    cache: &'a Cache,
    mask: Mask,
    scale: f32,
    /// `[rows][heads][head_dim]`
    out: *mut f32,
}

// SAFETY: tasks write to different heads and rows through `out`, and only read the rest.
unsafe impl Sync for Job<'_> {}

impl Job<'_> {
    /// Heads of queries that share one of the cache.
    fn group(&self) -> usize {
        self.queries.heads() / self.cache.kv_heads()
    }

    /// Which of all queries' heads such a query is.
    fn at(&self, kv_head: usize, query: usize) -> usize {
        let (row, head) = (
            query / self.group(),
            kv_head * self.group() + query % self.group(),
        );
        row * self.queries.heads() + head
    }

    /// Positions that a query attends to, from the first.
    fn seen(&self, query: usize) -> usize {
        match self.mask {
            Mask::Full => self.cache.len(),
            Mask::Causal { first } => first + query / self.group() + 1,
        }
    }
}

/// What `Q` queries that go together work in.
struct Scratch<const Q: usize> {
    scores: [Block<f32>; Q],
    weights: [Block<i16>; Q],
    /// `[columns]` for each query: what its blocks have found so far.
    sums: Vec<Sixteen>,
}

/// A query's part of what is merged in a block.
#[derive(Clone, Copy)]
struct Merge {
    weight_scale: f32,
    /// Of what was there and of the block's; nothing for the first block, which 0 is added to.
    factors: Option<(f32, f32)>,
}

/// Scores of `Q` queries on `B` times sixteen positions. `scales` are the queries', times that of all scores.
///
/// # Safety
/// `from` are good for a head's pairs, the positions are in the cache, `to` good for them; and the machine
/// has the instructions.
#[inline(always)]
unsafe fn score<M: SimdIsa, const Q: usize, const B: usize>(
    cache: &Cache,
    (from, scales): (&[*const u8; Q], &[f32; Q]),
    kv_head: usize,
    sixteen: usize,
    to: &[*mut f32; Q],
) {
    // SAFETY: the caller's contract.
    unsafe {
        let mut keys = [cache.key_block(sixteen, kv_head); B];
        for (b, keys) in keys.iter_mut().enumerate() {
            *keys = cache.key_block(sixteen + b, kv_head);
        }
        let mut sums = [[M::start(0); B]; Q];
        for pair in 0..cache.pairs() {
            let mut lines = [M::weights(keys[0].add(pair)); B];
            for b in 1..B {
                lines[b] = M::weights(keys[b].add(pair));
            }
            for q in 0..Q {
                let quad = M::quad(from[q].add(4 * pair));
                for b in 0..B {
                    sums[q][b] = M::dot(sums[q][b], lines[b], quad);
                }
            }
        }
        for b in 0..B {
            let key_scales = M::Floats::load(cache.key_scales(sixteen + b, kv_head).0.as_ptr());
            for q in 0..Q {
                let scale = M::Floats::splat(scales[q]).mul(key_scales);
                M::floats(sums[q][b]).mul(scale).store(to[q].add(b * LANES));
            }
        }
    }
}

/// Scores from position 16 `at` on, `B` times sixteen at a time.
///
/// # Safety
/// As for [`score`]; `to` are good for the scores from the range's start on.
#[inline(always)]
unsafe fn scores<M: SimdIsa, const Q: usize, const B: usize>(
    cache: &Cache,
    queries: (&[*const u8; Q], &[f32; Q]),
    kv_head: usize,
    sixteens: &Range<usize>,
    to: &[*mut f32; Q],
    at: &mut usize,
) {
    while sixteens.end - *at >= B {
        // SAFETY: the caller's contract.
        unsafe {
            let to = to.map(|to| to.add((*at - sixteens.start) * LANES));
            score::<M, Q, B>(cache, queries, kv_head, *at, &to);
        }
        *at += B;
    }
}

/// Dot products of the weights of `Q` queries with sixteen times `C` columns, from `values` on, `across`
/// lines in a row.
///
/// # Safety
/// As for [`score`]: weights and values are good for so many pairs of positions.
#[inline(always)]
unsafe fn mix<M: SimdIsa, const Q: usize, const C: usize>(
    weights: &[*const u8; Q],
    values: *const Line,
    across: usize,
    pairs: usize,
) -> [[M::Floats; C]; Q] {
    // SAFETY: the caller's contract.
    unsafe {
        let mut sums = [[M::start(0); C]; Q];
        for pair in 0..pairs {
            let values = values.add(pair * across);
            let mut lines = [M::weights(values); C];
            for c in 1..C {
                lines[c] = M::weights(values.add(c));
            }
            for q in 0..Q {
                let quad = M::quad(weights[q].add(4 * pair));
                for c in 0..C {
                    sums[q][c] = M::dot(sums[q][c], lines[c], quad);
                }
            }
        }
        // No closures: they would be compiled without the machine's features.
        let mut floats = [[M::Floats::splat(0.0); C]; Q];
        for q in 0..Q {
            for c in 0..C {
                floats[q][c] = M::floats(sums[q][c]);
            }
        }
        floats
    }
}

/// Columns from `column` on, `C` at a time: a block's are merged with those of the blocks before.
///
/// # Safety
/// As for [`mix`].
#[inline(always)]
unsafe fn columns<M: SimdIsa, const Q: usize, const C: usize>(
    weights: &[*const u8; Q],
    merges: &[Option<Merge>; Q],
    values: *const Line,
    (across, pairs): (usize, usize),
    sums: &mut [Sixteen],
    column: &mut usize,
) {
    while across - *column >= C {
        // SAFETY: the caller's contract.
        unsafe {
            let found = mix::<M, Q, C>(weights, values.add(*column), across, pairs);
            for (q, (found, merge)) in found.into_iter().zip(merges).enumerate() {
                let Some(Merge {
                    weight_scale,
                    factors,
                }) = *merge
                else {
                    continue;
                };
                for (c, found) in found.into_iter().enumerate() {
                    let sum = sums[q * across + *column + c].0.as_mut_ptr();
                    let partial = found.mul(M::Floats::splat(weight_scale));
                    let merged = match factors {
                        Some((before, block)) => {
                            let before = M::Floats::load(sum).mul(M::Floats::splat(before));
                            before.add(partial.mul(M::Floats::splat(block)))
                        }
                        None => M::Floats::splat(0.0).add(partial),
                    };
                    merged.store(sum);
                }
            }
        }
        *column += C;
    }
}

/// A block of positions, for `Q` queries of which some may not see any of it.
///
/// # Safety
/// As for [`together`].
#[inline(always)]
unsafe fn block<M: SimdIsa, const Q: usize, const W: usize>(
    job: &Job<'_>,
    kv_head: usize,
    (from, scales): (&[*const u8; Q], &[f32; Q]),
    (block, counts): (usize, [usize; Q]),
    softmaxes: &mut [Softmax; Q],
    scratch: &mut Scratch<Q>,
) -> Result<(), ArithmeticError> {
    let cache = job.cache;
    let most = counts.into_iter().fold(0, usize::max);
    let first = block * (BLOCK / LANES);
    let sixteens = first..first + most.div_ceil(LANES);
    // SAFETY: the caller's contract.
    unsafe {
        let mut at = sixteens.start;
        let to = scratch
            .scores
            .each_mut()
            .map(|scores| scores.as_mut_ptr().cast::<f32>());
        scores::<M, Q, W>(cache, (from, scales), kv_head, &sixteens, &to, &mut at);
        scores::<M, Q, 2>(cache, (from, scales), kv_head, &sixteens, &to, &mut at);
        scores::<M, Q, 1>(cache, (from, scales), kv_head, &sixteens, &to, &mut at);
        let value_scales = cache.value_scales(block, kv_head);
        let weights = &mut scratch.weights;
        let found = softmax::<M::Floats, Q>(&mut scratch.scores, &counts, value_scales, weights)?;
        let mut merges = [None; Q];
        for q in (0..Q).filter(|q| counts[*q] > 0) {
            let (found, weight_scale) = found[q];
            let factors = match block {
                0 => {
                    softmaxes[q] = found;
                    None
                }
                _ => Some(softmaxes[q].merge(found)),
            };
            merges[q] = Some(Merge {
                weight_scale,
                factors,
            });
        }
        let weights = scratch.weights.each_ref().map(|weights| weights.as_ptr().cast());
        let (values, sums) = (cache.value_block(block, kv_head), &mut scratch.sums[..]);
        let size = (cache.columns(), most.div_ceil(2));
        let mut column = 0;
        columns::<M, Q, W>(&weights, &merges, values, size, sums, &mut column);
        columns::<M, Q, 2>(&weights, &merges, values, size, sums, &mut column);
        columns::<M, Q, 1>(&weights, &merges, values, size, sums, &mut column);
    }
    Ok(())
}

/// Divides and writes one query's columns. Returns whether they are finite.
///
/// # Safety
/// `to` is good for a head's values.
#[inline(always)]
unsafe fn finish(sums: &mut [Sixteen], total: f32, to: *mut f32, width: usize) -> bool {
    let mut size = 0;
    for (column, sums) in sums.iter_mut().enumerate() {
        for lane in &mut sums.0 {
            *lane /= total;
            size = size.max(lane.to_bits() & 0x7fff_ffff);
        }
        let first = column * LANES;
        // SAFETY: the caller's contract.
        unsafe {
            match width - first {
                LANES.. => to.add(first).cast::<[f32; LANES]>().write_unaligned(sums.0),
                rest => std::ptr::copy_nonoverlapping(sums.0.as_ptr(), to.add(first), rest),
            }
        }
    }
    size < f32::INFINITY.to_bits()
}

/// `Q` queries of one of the cache's heads.
///
/// # Safety
/// Heads and queries are within the job and this task's own, the scratch has a head's columns for each query;
/// and the machine has the instructions.
#[inline(always)]
unsafe fn together<M: SimdIsa, const Q: usize, const W: usize>(
    job: &Job<'_>,
    kv_head: usize,
    query: usize,
    scratch: &mut Scratch<Q>,
) -> Result<(), ArithmeticError> {
    let mut at = [0; Q];
    let (mut from, mut scales) = ([std::ptr::null(); Q], [0.0; Q]);
    for q in 0..Q {
        at[q] = job.at(kv_head, query + q);
        from[q] = job.queries.q(at[q]).as_ptr().cast();
        scales[q] = job.queries.scale(at[q]) * job.scale;
    }
    let mut softmaxes = [Softmax::default(); Q];
    // Later queries see more.
    for first in (0..job.seen(query + Q - 1)).step_by(BLOCK) {
        let mut counts = [0; Q];
        for q in 0..Q {
            counts[q] = job.seen(query + q).saturating_sub(first).min(BLOCK);
        }
        let place = (first / BLOCK, counts);
        // SAFETY: the caller's contract.
        unsafe { block::<M, Q, W>(job, kv_head, (&from, &scales), place, &mut softmaxes, scratch)? };
    }
    let (columns, width) = (job.cache.columns(), job.cache.head_dim());
    let mut finite = true;
    for q in 0..Q {
        let sums = &mut scratch.sums[q * columns..(q + 1) * columns];
        // SAFETY: the caller's contract.
        finite &= unsafe { finish(sums, softmaxes[q].total, job.out.add(at[q] * width), width) };
    }
    if finite {
        Ok(())
    } else {
        Err(ArithmeticError::NotFinite)
    }
}

impl<const Q: usize> Scratch<Q> {
    fn new(columns: usize) -> Self {
        Self {
            scores: [Block::default(); Q],
            weights: [Block::default(); Q],
            sums: vec![Sixteen([0.0; LANES]); Q * columns],
        }
    }
}

/// Some queries of one of the cache's heads.
///
/// # Safety
/// Heads and queries are within the job and this task's own, and the machine has the instructions.
#[inline(always)]
unsafe fn part<M: SimdIsa, const Q: usize, const W: usize>(
    job: &Job<'_>,
    kv_head: usize,
    queries: Range<usize>,
) -> Result<(), ArithmeticError> {
    let mut query = queries.start;
    // SAFETY: the caller's contract.
    unsafe {
        if queries.end - query >= Q {
            let mut scratch = Scratch::new(job.cache.columns());
            while queries.end - query >= Q {
                together::<M, Q, W>(job, kv_head, query, &mut scratch)?;
                query += Q;
            }
        }
        if query < queries.end {
            let mut scratch = Scratch::new(job.cache.columns());
            while query < queries.end {
                together::<M, 1, W>(job, kv_head, query, &mut scratch)?;
                query += 1;
            }
        }
    }
    Ok(())
}

macro_rules! part_for {
    ($name:ident, $machine:ty, $together:literal, $features:literal) => {
        #[target_feature(enable = $features)]
        unsafe fn $name(job: &Job<'_>, kv_head: usize, queries: Range<usize>) -> Result<(), ArithmeticError> {
            // SAFETY: the caller's contract; the machine has the features that this function enables.
            unsafe { part::<$machine, $together, $together>(job, kv_head, queries) }
        }
    };
}
#[cfg(target_arch = "x86_64")]
part_for!(part_avx2, Avx2Int12, 2, "avx2");
#[cfg(target_arch = "x86_64")]
part_for!(part_avx_vnni, AvxVnniInt12, 2, "avx2,avxvnni");
#[cfg(target_arch = "x86_64")]
part_for!(
    part_avx512,
    Avx512Int12,
    4,
    "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"
);
#[cfg(target_arch = "aarch64")]
part_for!(part_neon, NeonInt12, 2, "neon");

/// # Safety
/// Heads and queries are within the job and this task's own; `isa` is one of this machine's.
unsafe fn run(job: &Job<'_>, isa: Isa, kv_head: usize, queries: Range<usize>) -> Result<(), ArithmeticError> {
    // SAFETY: the caller's contract.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => part_avx2(job, kv_head, queries),
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni => part_avx_vnni(job, kv_head, queries),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni | Isa::Amx => part_avx512(job, kv_head, queries),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon | Isa::NeonDot => part_neon(job, kv_head, queries),
            _ => part::<ScalarInt12, 2, 2>(job, kv_head, queries),
        }
    }
}

/// Attention of rows of queries over a cache; several heads share one of the cache when it has fewer. Scores
/// are scaled by `1 / sqrt(head_dim)`.
///
/// # Errors
/// [`ArithmeticError::Shape`] when the widths do not fit together or a row sees positions that are not there,
/// [`ArithmeticError::NotFinite`] when a result is not.
pub fn attention(
    queries: HeadRows<'_>,
    cache: &Cache,
    mask: Mask,
    out: &mut [f32],
) -> Result<(), ArithmeticError> {
    let (rows, heads, d) = (queries.count(), queries.heads(), queries.head_dim());
    let fits = heads > 0 && cache.kv_heads() > 0 && heads.is_multiple_of(cache.kv_heads());
    if !fits || d != cache.head_dim() || out.len() != rows * heads * d {
        return Err(ArithmeticError::Shape);
    }
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
        mask,
        scale: exact::rsqrt(d as f32),
        out: out.as_mut_ptr(),
    };
    let (isa, kv_heads) = (current(), cache.kv_heads());
    let work = out.len() * cache.len();
    let all = rows * job.group();
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
