//! x86 with int8 tiles: 16 rows of activations by 16 outputs, 64 products deep, in one instruction. Those of
//! int12 are in [`int12_tiles`].
//!
//! The intrinsics are not stable in this Rust, hence assembly. Products of few rows stay with [`Avx512`]:
//! there the weights' way from memory counts.
#![allow(clippy::needless_range_loop)] // An index runs over several arrays at once.

use std::{
    arch::{
        asm,
        x86_64::{__cpuid_count, __m512, _mm512_load_si512, _xgetbv},
    },
    ops::Range,
    sync::OnceLock,
};

use surety_exact::GROUP;

use super::{
    Avx512, Floats, LANES, Line, SimdIsa,
    int12_tiles::{self, Sums, TILE, TILE_LINES, Tiles},
};
use crate::{
    packed::PAD,
    product::{Job, pair, poisoned},
};

/// Fewer rows than this are left to [`Avx512`].
pub(crate) const ROWS_MIN: usize = 5;
/// Tiles of a whole group.
const GROUP_TILES: usize = GROUP / PAD;

/// Whether the processor has int8 tiles and the system lets this process use them. Asks the system for it.
pub(crate) fn usable() -> bool {
    const TILE_AND_INT8: u32 = 0b11 << 24;
    const SAVES_TILES: u64 = 0b11 << 17;
    const OSXSAVE: u32 = 1 << 27;
    if __cpuid_count(0, 0).eax < 7 || __cpuid_count(1, 0).ecx & OSXSAVE == 0 {
        return false;
    }
    if __cpuid_count(7, 0).edx & TILE_AND_INT8 != TILE_AND_INT8 {
        return false;
    }
    #[target_feature(enable = "xsave")]
    fn saved() -> u64 {
        // SAFETY: register 0 is always there.
        unsafe { _xgetbv(0) }
    }
    // SAFETY: OSXSAVE was checked.
    (unsafe { saved() }) & SAVES_TILES == SAVES_TILES && permitted()
}

#[cfg(target_os = "linux")]
fn permitted() -> bool {
    const ARCH_PRCTL: u64 = 158;
    const ARCH_REQ_XCOMP_PERM: u64 = 0x1023;
    const TILE_DATA: u64 = 18;
    let mut result = ARCH_PRCTL;
    // SAFETY: the call takes numbers, changes nothing but this process's right to use tiles, and clobbers
    // what is said.
    unsafe {
        asm!(
            "syscall",
            inout("rax") result,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") TILE_DATA,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    result == 0
}

#[cfg(not(target_os = "linux"))]
fn permitted() -> bool {
    false
}

/// What `ldtilecfg` reads.
#[repr(C, align(64))]
struct Shapes {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// Tiles 0 to 3 are sums, 4 and 5 activations, 6 and 7 weights.
const SHAPES: Shapes = {
    let (sums, activations, weights) = (64, PAD as u16, 64);
    let (s, a, w) = (sums, activations, weights);
    let (rows, lines) = (TILE as u8, TILE_LINES as u8);
    Shapes {
        palette: 1,
        start_row: 0,
        reserved: [0; 14],
        row_bytes: [s, s, s, s, a, a, w, w, 0, 0, 0, 0, 0, 0, 0, 0],
        rows: [
            rows, rows, rows, rows, rows, rows, lines, lines, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
    }
};

macro_rules! two_by_two {
    ($(#[$meta:meta])* $name:ident, [$first:literal, $second:literal, $third:literal, $fourth:literal]) => {
        $(#[$meta])*
        ///
        /// # Safety
        /// As for `rows`, within the buffers.
        #[inline(always)]
        unsafe fn $name(
            from: [*const i8; 2],
            stride: usize,
            lines: [*const Line; 2],
            depth: usize,
            sums: &mut Sums,
        ) {
            // SAFETY: reads 16 rows of `depth * PAD` bytes from each of `from` and as many lines from each of
            // `lines`, writes `sums`; changes tiles and flags only.
            unsafe {
                asm!(
                    "tilezero tmm0",
                    "tilezero tmm1",
                    "tilezero tmm2",
                    "tilezero tmm3",
                    "2:",
                    "tileloadd tmm4, [{a0} + {stride}]",
                    "tileloadd tmm6, [{b0} + {line}]",
                    concat!($first, " tmm0, tmm4, tmm6"),
                    "tileloadd tmm7, [{b1} + {line}]",
                    concat!($second, " tmm1, tmm4, tmm7"),
                    "tileloadd tmm5, [{a1} + {stride}]",
                    concat!($third, " tmm2, tmm5, tmm6"),
                    concat!($fourth, " tmm3, tmm5, tmm7"),
                    "add {a0}, {pad}",
                    "add {a1}, {pad}",
                    "add {b0}, {tile}",
                    "add {b1}, {tile}",
                    "dec {depth}",
                    "jnz 2b",
                    "tilestored [{sums} + {line}], tmm0",
                    "tilestored [{sums} + {line} + 1024], tmm1",
                    "tilestored [{sums} + {line} + 2048], tmm2",
                    "tilestored [{sums} + {line} + 3072], tmm3",
                    a0 = inout(reg) from[0] => _,
                    a1 = inout(reg) from[1] => _,
                    b0 = inout(reg) lines[0] => _,
                    b1 = inout(reg) lines[1] => _,
                    stride = in(reg) stride,
                    line = in(reg) 64usize,
                    depth = inout(reg) depth => _,
                    sums = in(reg) sums,
                    pad = const PAD,
                    tile = const PAD * LANES,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }
    };
}
two_by_two!(
    /// Dot products of `depth` tiles' worth of one group: two tiles of rows by two blocks, in this order.
    dot,
    ["tdpbssd", "tdpbssd", "tdpbssd", "tdpbssd"]
);
two_by_two!(
    /// The same of one tile of rows and one block: high and low bytes of rows by those of weights.
    dot_halves,
    ["tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud"]
);

/// The tiles of this machine.
struct AmxTiles;

impl Tiles for AmxTiles {
    #[inline(always)]
    unsafe fn dot(
        rows: [*const i8; 2],
        stride: usize,
        lines: [*const Line; 2],
        depth: usize,
        sums: &mut Sums,
    ) {
        // SAFETY: the trait's contract.
        unsafe { dot_halves(rows, stride, lines, depth, sums) }
    }
}

/// The same for one tile of rows.
///
/// # Safety
/// As for [`dot`].
#[inline(always)]
unsafe fn dot_half(from: *const i8, stride: usize, lines: [*const Line; 2], depth: usize, sums: &mut Sums) {
    // SAFETY: as for `dot`.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "2:",
            "tileloadd tmm4, [{a0} + {stride}]",
            "tileloadd tmm6, [{b0} + {line}]",
            "tdpbssd tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{b1} + {line}]",
            "tdpbssd tmm1, tmm4, tmm7",
            "add {a0}, {pad}",
            "add {b0}, {tile}",
            "add {b1}, {tile}",
            "dec {depth}",
            "jnz 2b",
            "tilestored [{sums} + {line}], tmm0",
            "tilestored [{sums} + {line} + 1024], tmm1",
            a0 = inout(reg) from => _,
            b0 = inout(reg) lines[0] => _,
            b1 = inout(reg) lines[1] => _,
            stride = in(reg) stride,
            line = in(reg) 64usize,
            depth = inout(reg) depth => _,
            sums = in(reg) sums,
            pad = const PAD,
            tile = const PAD * LANES,
            out("tmm0") _, out("tmm1") _, out("tmm4") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// At most 32 rows by a pair of blocks.
///
/// # Safety
/// Rows and blocks are within the job, `row` is a multiple of 16, tiles are configured.
#[inline(always)]
unsafe fn rows(job: &Job<'_>, row: usize, count: usize, block: usize) -> __m512 {
    let (rows, weights) = (job.rows, job.weights);
    let (steps, groups, stride) = (weights.steps, weights.groups, rows.stride());
    let mut sums = Sums::ZERO;
    // SAFETY: as in `product::tile`; tiles of activations end within the rows' padding.
    unsafe {
        let mut totals = [[__m512::splat(0.0); 2]; 2 * TILE];
        let mut from = rows.bytes().as_ptr().add(row * stride);
        let mut lines = weights.lines.as_ptr().add(block * steps);
        let mut left = steps / TILE_LINES;
        for group in 0..groups {
            let depth = left.min(GROUP_TILES);
            left -= depth;
            if count > TILE {
                dot(
                    [from, from.add(TILE * stride)],
                    stride,
                    [lines, lines.add(steps)],
                    depth,
                    &mut sums,
                )
            } else {
                dot_half(from, stride, [lines, lines.add(steps)], depth, &mut sums)
            }
            from = from.add(depth * PAD);
            lines = lines.add(depth * TILE_LINES);
            let scales = rows.scales().as_ptr().add(row * groups + group);
            let weight_scales = weights.scales.as_ptr().add(block * groups + group);
            let weight_scales = [
                __m512::load(weight_scales.cast()),
                __m512::load(weight_scales.add(groups).cast()),
            ];
            for r in 0..count {
                let scale = __m512::splat(*scales.add(r * groups));
                for b in 0..2 {
                    let sum = _mm512_load_si512(sums.0[r / TILE * 2 + b][r % TILE].as_ptr().cast());
                    let scaled = Avx512::floats(sum).mul(scale.mul(weight_scales[b]));
                    totals[r][b] = totals[r][b].add(scaled);
                }
            }
        }
        let mut poison = __m512::splat(0.0);
        for b in 0..2 {
            let bias = __m512::load(weights.bias.as_ptr().add(block + b).cast());
            for (r, totals) in totals.iter().enumerate().take(count) {
                let value = totals[b].add(bias);
                poison = poison.add(value.mul(__m512::splat(0.0)));
                job.write(row + r, block + b, value);
            }
        }
        poison
    }
}

/// All rows by some pairs of blocks. Returns whether all results are finite.
///
/// # Safety
/// `pairs` are within the job and this task's own; the machine has the features and [`usable`] said yes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
pub(crate) unsafe fn columns(job: &Job<'_>, pairs: Range<usize>) -> bool {
    const ROWS_AT_ONCE: usize = 128;
    // SAFETY: the caller's contract. The configuration is this thread's, and is given back below.
    unsafe {
        asm!("ldtilecfg [{shapes}]", shapes = in(reg) &SHAPES, options(nostack, readonly, preserves_flags));
        let mut poison = __m512::splat(0.0);
        let all = job.rows.count();
        for first in (0..all).step_by(ROWS_AT_ONCE) {
            let end = all.min(first + ROWS_AT_ONCE);
            for block in pairs.clone().map(|pair| 2 * pair) {
                let mut row = first;
                while end - row >= ROWS_MIN {
                    let count = (end - row).min(2 * TILE);
                    poison = poison.add(rows(job, row, count, block));
                    row += count;
                }
                poison = poison.add(pair::<Avx512, 4, 2, 4, 4>(job, row, end, block));
            }
        }
        asm!("tilerelease", options(nostack, nomem, preserves_flags));
        !poisoned(poison)
    }
}

/// Whether products of int12 may be taken in tiles. That is tried once, before the first of them: a wrong sum
/// would cost an honest provider its stake.
///
/// # Safety
/// [`usable`] said yes.
pub(crate) unsafe fn is_right_with_int12() -> bool {
    static IS_RIGHT: OnceLock<bool> = OnceLock::new();
    // SAFETY: the caller's contract. The configuration is this thread's, and is given back.
    *IS_RIGHT.get_or_init(|| unsafe {
        asm!("ldtilecfg [{shapes}]", shapes = in(reg) &SHAPES, options(nostack, readonly, preserves_flags));
        let is_right = int12_tiles::are_right::<AmxTiles>();
        asm!("tilerelease", options(nostack, nomem, preserves_flags));
        is_right
    })
}

/// [`columns`] for int12.
///
/// # Safety
/// As for [`columns`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
pub(crate) unsafe fn columns_int12(job: &Job<'_>, pairs: Range<usize>) -> bool {
    // SAFETY: the caller's contract. The configuration is this thread's, and is given back below.
    unsafe {
        asm!("ldtilecfg [{shapes}]", shapes = in(reg) &SHAPES, options(nostack, readonly, preserves_flags));
        let poison = int12_tiles::columns::<AmxTiles, __m512>(job, pairs);
        asm!("tilerelease", options(nostack, nomem, preserves_flags));
        !poisoned(poison)
    }
}
