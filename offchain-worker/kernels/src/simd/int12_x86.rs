//! Products of int12 on x86: two of each of eight or sixteen outputs in a register, added up in pairs.

use std::arch::x86_64::*;

use super::{Avx2, Avx512, GROUP, Line, SimdIsa};

/// `pmaddwd` and an addition.
#[derive(Clone, Copy)]
pub(crate) struct Avx2Int12;
/// `vpdpwssd`, which is both.
#[derive(Clone, Copy)]
pub(crate) struct AvxVnniInt12;
/// The same in 512 bits.
#[derive(Clone, Copy)]
pub(crate) struct Avx512Int12;

type Half = [__m256i; 2];

/// What both machines with 256-bit registers share.
macro_rules! halves {
    () => {
        type Floats = <Avx2 as SimdIsa>::Floats;
        type Sums = Half;
        type Weights = Half;
        type Quad = __m256i;
        const GROUP_LINES: usize = GROUP / 2;

        #[inline(always)]
        unsafe fn start(_offset: i32) -> Half {
            // SAFETY: the trait's contract.
            unsafe { [_mm256_setzero_si256(); 2] }
        }
        #[inline(always)]
        unsafe fn weights(line: *const Line) -> Half {
            // SAFETY: the trait's contract.
            let half = |i| unsafe { _mm256_load_si256(line.cast::<__m256i>().add(i)) };
            [half(0), half(1)]
        }
        #[inline(always)]
        unsafe fn quad(from: *const u8) -> __m256i {
            // SAFETY: the trait's contract.
            unsafe { _mm256_set1_epi32(from.cast::<i32>().read_unaligned()) }
        }
        #[inline(always)]
        unsafe fn join(a: Half, b: Half) -> Half {
            // SAFETY: the trait's contract.
            unsafe { [_mm256_add_epi32(a[0], b[0]), _mm256_add_epi32(a[1], b[1])] }
        }
        #[inline(always)]
        unsafe fn floats(sums: Half) -> Self::Floats {
            // SAFETY: the trait's contract.
            unsafe { [_mm256_cvtepi32_ps(sums[0]), _mm256_cvtepi32_ps(sums[1])] }
        }
    };
}

impl SimdIsa for Avx2Int12 {
    halves!();

    #[inline(always)]
    unsafe fn dot(sums: Half, weights: Half, quad: __m256i) -> Half {
        // SAFETY: the trait's contract.
        let half = |i: usize| unsafe { _mm256_add_epi32(sums[i], _mm256_madd_epi16(weights[i], quad)) };
        [half(0), half(1)]
    }
}

impl SimdIsa for AvxVnniInt12 {
    halves!();

    #[inline(always)]
    unsafe fn dot(sums: Half, weights: Half, quad: __m256i) -> Half {
        // SAFETY: the trait's contract.
        let half = |i: usize| unsafe { _mm256_dpwssd_avx_epi32(sums[i], weights[i], quad) };
        [half(0), half(1)]
    }
}

impl SimdIsa for Avx512Int12 {
    type Floats = __m512;
    type Sums = __m512i;
    type Weights = __m512i;
    type Quad = __m512i;
    const GROUP_LINES: usize = GROUP / 2;

    #[inline(always)]
    unsafe fn start(_offset: i32) -> Self::Sums {
        // SAFETY: the trait's contract.
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    unsafe fn weights(line: *const Line) -> Self::Weights {
        // SAFETY: the trait's contract.
        unsafe { _mm512_load_si512(line.cast()) }
    }
    #[inline(always)]
    unsafe fn quad(from: *const u8) -> Self::Quad {
        // SAFETY: the trait's contract.
        unsafe { Avx512::quad(from) }
    }
    #[inline(always)]
    unsafe fn dot(sums: Self::Sums, weights: Self::Weights, quad: Self::Quad) -> Self::Sums {
        // SAFETY: the trait's contract.
        unsafe { _mm512_dpwssd_epi32(sums, weights, quad) }
    }
    #[inline(always)]
    unsafe fn join(a: Self::Sums, b: Self::Sums) -> Self::Sums {
        // SAFETY: the trait's contract.
        unsafe { Avx512::join(a, b) }
    }
    #[inline(always)]
    unsafe fn floats(sums: Self::Sums) -> Self::Floats {
        // SAFETY: the trait's contract.
        unsafe { Avx512::floats(sums) }
    }
}
