//! What the kernels need of an instruction set: sixteen lanes of `f32`, and dot products of four int8 or two
//! int12.
//!
//! The kernels are generic over [`SimdIsa`] and are compiled once per instruction set, in a function that
//! enables its features; everything here is inlined there. Additions and multiplications are those of `f32`,
//! each rounded, never fused: so every machine gives the bits of [`Scalar`].
#![allow(unsafe_code)] // Intrinsics. The contract of each function is that of its trait.

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2_rows;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(target_arch = "x86_64", test))]
pub(crate) mod int12_tiles;
#[cfg(target_arch = "x86_64")]
mod int12_x86;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

#[cfg(target_arch = "x86_64")]
pub(crate) use self::{
    avx2::{Avx2, AvxVnni},
    avx512::Avx512,
    int12_x86::{Avx2Int12, Avx512Int12, AvxVnniInt12},
};
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::{Neon, NeonDot, NeonInt12};
pub(crate) use scalar::{Scalar, ScalarInt12};
use surety_exact::GROUP;

/// Lanes of a register, real or composed; outputs in a block of packed weights.
pub(crate) const LANES: usize = 16;

/// 64 bytes: four int8 or two int12 values for each of sixteen outputs, or a stretch of an activation row.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [i8; 64]);

impl Line {
    /// Two values for each of sixteen places.
    pub(crate) fn pairs(&self) -> &[[i16; 2]; LANES] {
        // SAFETY: as many bytes, of which any are values, aligned to no less.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }

    pub(crate) fn pairs_mut(&mut self) -> &mut [[i16; 2]; LANES] {
        // SAFETY: as above.
        unsafe { &mut *std::ptr::from_mut(self).cast() }
    }

    /// The same as words.
    #[cfg(any(target_arch = "x86_64", test))]
    pub(crate) fn words(&self) -> &[u32; LANES] {
        // SAFETY: as above.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }

    #[cfg(any(target_arch = "x86_64", test))]
    pub(crate) fn words_mut(&mut self) -> &mut [u32; LANES] {
        // SAFETY: as above.
        unsafe { &mut *std::ptr::from_mut(self).cast() }
    }
}

/// Sixteen numbers.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Sixteen(pub(crate) [f32; LANES]);

/// Sixteen lanes of `f32`.
///
/// # Safety
/// Every function may be called only on a machine that has the instruction set; pointers must be good for the
/// sixteen values (or as many as is said), at any alignment.
pub(crate) trait Floats: Copy {
    unsafe fn splat(value: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// The larger of each two, where neither is NaN.
    unsafe fn max(self, other: Self) -> Self;
    /// The sum of the lanes, upper half to lower half until one is left.
    unsafe fn fold(self) -> f32;
    /// The largest of the lanes, where none is NaN.
    unsafe fn most(self) -> f32;
    /// Writes sixteen int16, each the nearest to a lane, ties to even.
    unsafe fn store_rounded(self, to: *mut i16);
}

/// Dot products of int8, or of int12.
///
/// # Safety
/// As for [`Floats`]; `line` is good for 64 bytes, `quad` for those of as many values as a line has of an
/// output.
pub(crate) trait SimdIsa {
    type Floats: Floats;
    /// Sixteen sums of `i32`, maybe in parts.
    type Sums: Copy;
    /// A line of weights, made ready.
    type Weights: Copy;
    /// Four values of an activation row, or two of int12, in every lane.
    type Quad: Copy;
    /// Whether [`SimdIsa::quad`] reads int8 values that were widened to 16 bits.
    const WIDE: bool = false;
    /// Lines of a whole group.
    const GROUP_LINES: usize = GROUP / 4;

    /// Sums to start from; `offset` is 128 times the sum of the group's activations.
    unsafe fn start(offset: i32) -> Self::Sums;
    unsafe fn weights(line: *const Line) -> Self::Weights;
    unsafe fn quad(from: *const u8) -> Self::Quad;
    unsafe fn dot(sums: Self::Sums, weights: Self::Weights, quad: Self::Quad) -> Self::Sums;
    /// Sums of parts that were started with 0, except for one.
    unsafe fn join(a: Self::Sums, b: Self::Sums) -> Self::Sums;
    unsafe fn floats(sums: Self::Sums) -> Self::Floats;
}
