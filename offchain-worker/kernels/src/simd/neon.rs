//! Arm with 128-bit registers, four for sixteen lanes.

use std::arch::{aarch64::*, asm};

use super::{Floats, GROUP, Line, SimdIsa};

#[derive(Clone, Copy)]
pub(crate) struct Neon;
#[derive(Clone, Copy)]
pub(crate) struct NeonDot;
/// Products of int12, added up as they come.
#[derive(Clone, Copy)]
pub(crate) struct NeonInt12;

impl Floats for [float32x4_t; 4] {
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: the trait's contract.
        unsafe { [vdupq_n_f32(value); 4] }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the trait's contract.
        std::array::from_fn(|i| unsafe { vld1q_f32(from.add(4 * i)) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        for (i, part) in self.into_iter().enumerate() {
            // SAFETY: the trait's contract.
            unsafe { vst1q_f32(to.add(4 * i), part) }
        }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the trait's contract.
        std::array::from_fn(|i| unsafe { vaddq_f32(self[i], other[i]) })
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: the trait's contract.
        std::array::from_fn(|i| unsafe { vmulq_f32(self[i], other[i]) })
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: the trait's contract.
        std::array::from_fn(|i| unsafe { vmaxq_f32(self[i], other[i]) })
    }
    #[inline(always)]
    unsafe fn fold(self) -> f32 {
        // SAFETY: the trait's contract.
        unsafe {
            let eight = [vaddq_f32(self[0], self[2]), vaddq_f32(self[1], self[3])];
            let four = vaddq_f32(eight[0], eight[1]);
            let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
            vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
        }
    }
    #[inline(always)]
    unsafe fn most(self) -> f32 {
        // SAFETY: the trait's contract.
        unsafe {
            vmaxvq_f32(vmaxq_f32(
                vmaxq_f32(self[0], self[1]),
                vmaxq_f32(self[2], self[3]),
            ))
        }
    }
    #[inline(always)]
    unsafe fn store_rounded(self, to: *mut i16) {
        for (i, part) in self.into_iter().enumerate() {
            // SAFETY: the trait's contract.
            unsafe { vst1_s16(to.add(4 * i), vmovn_s32(vcvtnq_s32_f32(part))) }
        }
    }
}

/// Products of int8 as int16, added up in pairs.
impl SimdIsa for Neon {
    type Floats = [float32x4_t; 4];
    /// Each holds two outputs, in two parts next to each other.
    type Sums = [int32x4_t; 8];
    type Weights = [int8x8_t; 8];
    type Quad = int8x8_t;

    #[inline(always)]
    unsafe fn start(_offset: i32) -> Self::Sums {
        // SAFETY: the trait's contract.
        unsafe { [vdupq_n_s32(0); 8] }
    }
    #[inline(always)]
    unsafe fn weights(line: *const Line) -> Self::Weights {
        // SAFETY: the trait's contract.
        std::array::from_fn(|i| unsafe { vld1_s8(line.cast::<i8>().add(8 * i)) })
    }
    #[inline(always)]
    unsafe fn quad(from: *const u8) -> Self::Quad {
        // SAFETY: the trait's contract.
        unsafe { vreinterpret_s8_s32(vdup_n_s32(from.cast::<i32>().read_unaligned())) }
    }
    #[inline(always)]
    unsafe fn dot(sums: Self::Sums, weights: Self::Weights, quad: Self::Quad) -> Self::Sums {
        // SAFETY: the trait's contract.
        std::array::from_fn(|i| unsafe { vpadalq_s16(sums[i], vmull_s8(weights[i], quad)) })
    }
    #[inline(always)]
    unsafe fn join(a: Self::Sums, b: Self::Sums) -> Self::Sums {
        // SAFETY: the trait's contract.
        std::array::from_fn(|i| unsafe { vaddq_s32(a[i], b[i]) })
    }
    #[inline(always)]
    unsafe fn floats(sums: Self::Sums) -> Self::Floats {
        // SAFETY: the trait's contract.
        std::array::from_fn(|i| unsafe { vcvtq_f32_s32(vpaddq_s32(sums[2 * i], sums[2 * i + 1])) })
    }
}

impl SimdIsa for NeonDot {
    type Floats = [float32x4_t; 4];
    type Sums = [int32x4_t; 4];
    type Weights = [int8x16_t; 4];
    type Quad = int8x16_t;

    #[inline(always)]
    unsafe fn start(_offset: i32) -> Self::Sums {
        // SAFETY: the trait's contract.
        unsafe { [vdupq_n_s32(0); 4] }
    }
    #[inline(always)]
    unsafe fn weights(line: *const Line) -> Self::Weights {
        // SAFETY: the trait's contract.
        std::array::from_fn(|i| unsafe { vld1q_s8(line.cast::<i8>().add(16 * i)) })
    }
    #[inline(always)]
    unsafe fn quad(from: *const u8) -> Self::Quad {
        // SAFETY: the trait's contract.
        unsafe { vreinterpretq_s8_s32(vdupq_n_s32(from.cast::<i32>().read_unaligned())) }
    }
    #[inline(always)]
    unsafe fn dot(mut sums: Self::Sums, weights: Self::Weights, quad: Self::Quad) -> Self::Sums {
        for (sums, weights) in sums.iter_mut().zip(weights) {
            // SAFETY: the trait's contract. The intrinsic is not stable in this Rust; the instruction touches
            // only its operands.
            unsafe {
                asm!(
                    ".arch_extension dotprod",
                    "sdot {sums:v}.4s, {weights:v}.16b, {quad:v}.16b",
                    sums = inout(vreg) *sums,
                    weights = in(vreg) weights,
                    quad = in(vreg) quad,
                    options(pure, nomem, nostack, preserves_flags),
                );
            }
        }
        sums
    }
    #[inline(always)]
    unsafe fn join(a: Self::Sums, b: Self::Sums) -> Self::Sums {
        // SAFETY: the trait's contract.
        std::array::from_fn(|i| unsafe { vaddq_s32(a[i], b[i]) })
    }
    #[inline(always)]
    unsafe fn floats(sums: Self::Sums) -> Self::Floats {
        // SAFETY: the trait's contract.
        std::array::from_fn(|i| unsafe { vcvtq_f32_s32(sums[i]) })
    }
}

impl SimdIsa for NeonInt12 {
    type Floats = [float32x4_t; 4];
    /// Each holds two outputs, in two parts next to each other.
    type Sums = [int32x4_t; 8];
    type Weights = [int16x4_t; 8];
    type Quad = int16x4_t;
    const GROUP_LINES: usize = GROUP / 2;

    #[inline(always)]
    unsafe fn start(offset: i32) -> Self::Sums {
        // SAFETY: the trait's contract.
        unsafe { Neon::start(offset) }
    }
    #[inline(always)]
    unsafe fn weights(line: *const Line) -> Self::Weights {
        // SAFETY: the trait's contract.
        std::array::from_fn(|i| unsafe { vld1_s16(line.cast::<i16>().add(4 * i)) })
    }
    #[inline(always)]
    unsafe fn quad(from: *const u8) -> Self::Quad {
        // SAFETY: the trait's contract.
        unsafe { vreinterpret_s16_s32(vdup_n_s32(from.cast::<i32>().read_unaligned())) }
    }
    #[inline(always)]
    unsafe fn dot(sums: Self::Sums, weights: Self::Weights, quad: Self::Quad) -> Self::Sums {
        // SAFETY: the trait's contract.
        std::array::from_fn(|i| unsafe { vmlal_s16(sums[i], weights[i], quad) })
    }
    #[inline(always)]
    unsafe fn join(a: Self::Sums, b: Self::Sums) -> Self::Sums {
        // SAFETY: the trait's contract.
        unsafe { Neon::join(a, b) }
    }
    #[inline(always)]
    unsafe fn floats(sums: Self::Sums) -> Self::Floats {
        // SAFETY: the trait's contract.
        unsafe { Neon::floats(sums) }
    }
}
