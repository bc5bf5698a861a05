//! x86 with 512-bit registers and VNNI.

use std::arch::x86_64::*;

use super::{
    Floats, Line, SimdIsa,
    avx2::{fold_eight, most_of_eight},
};

#[derive(Clone, Copy)]
pub(crate) struct Avx512;

impl Floats for __m512 {
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: the trait's contract.
        unsafe { _mm512_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the trait's contract.
        unsafe { _mm512_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the trait's contract.
        unsafe { _mm512_storeu_ps(to, self) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the trait's contract.
        unsafe { _mm512_add_ps(self, other) }
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: the trait's contract.
        unsafe { _mm512_mul_ps(self, other) }
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: the trait's contract.
        unsafe { _mm512_max_ps(self, other) }
    }
    #[inline(always)]
    unsafe fn fold(self) -> f32 {
        // SAFETY: the trait's contract.
        unsafe {
            fold_eight(_mm256_add_ps(
                _mm512_castps512_ps256(self),
                _mm512_extractf32x8_ps::<1>(self),
            ))
        }
    }
    #[inline(always)]
    unsafe fn most(self) -> f32 {
        // SAFETY: the trait's contract.
        unsafe {
            most_of_eight(_mm256_max_ps(
                _mm512_castps512_ps256(self),
                _mm512_extractf32x8_ps::<1>(self),
            ))
        }
    }
    #[inline(always)]
    unsafe fn store_rounded(self, to: *mut i16) {
        // SAFETY: the trait's contract. No code changes how a thread rounds: to the nearest, ties to even.
        unsafe {
            _mm256_storeu_si256(to.cast(), _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(self)));
        }
    }
}

/// `vpdpbusd` takes one side unsigned: weights go in as `w + 128`, and `128 Σ q` is taken off at the start.
impl SimdIsa for Avx512 {
    type Floats = __m512;
    type Sums = __m512i;
    type Weights = __m512i;
    type Quad = __m512i;

    #[inline(always)]
    unsafe fn start(offset: i32) -> Self::Sums {
        // SAFETY: the trait's contract.
        unsafe { _mm512_set1_epi32(-offset) }
    }
    #[inline(always)]
    unsafe fn weights(line: *const Line) -> Self::Weights {
        // SAFETY: the trait's contract. Flipping the top bit adds 128.
        unsafe { _mm512_xor_si512(_mm512_load_si512(line.cast()), _mm512_set1_epi8(i8::MIN)) }
    }
    #[inline(always)]
    unsafe fn quad(from: *const u8) -> Self::Quad {
        // SAFETY: the trait's contract.
        unsafe { _mm512_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn dot(sums: Self::Sums, weights: Self::Weights, quad: Self::Quad) -> Self::Sums {
        // SAFETY: the trait's contract.
        unsafe { _mm512_dpbusd_epi32(sums, weights, quad) }
    }
    #[inline(always)]
    unsafe fn join(a: Self::Sums, b: Self::Sums) -> Self::Sums {
        // SAFETY: the trait's contract.
        unsafe { _mm512_add_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn floats(sums: Self::Sums) -> Self::Floats {
        // SAFETY: the trait's contract.
        unsafe { _mm512_cvtepi32_ps(sums) }
    }
}
