//! x86 with 256-bit registers, two for sixteen lanes.

use std::arch::x86_64::*;

use super::{Floats, Line, SimdIsa};

#[derive(Clone, Copy)]
pub(crate) struct Avx2;
#[derive(Clone, Copy)]
pub(crate) struct AvxVnni;

impl Floats for [__m256; 2] {
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: the trait's contract.
        unsafe { [_mm256_set1_ps(value); 2] }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the trait's contract.
        unsafe { [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))] }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the trait's contract.
        unsafe {
            _mm256_storeu_ps(to, self[0]);
            _mm256_storeu_ps(to.add(8), self[1]);
        }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the trait's contract.
        unsafe { [_mm256_add_ps(self[0], other[0]), _mm256_add_ps(self[1], other[1])] }
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: the trait's contract.
        unsafe { [_mm256_mul_ps(self[0], other[0]), _mm256_mul_ps(self[1], other[1])] }
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: the trait's contract.
        unsafe { [_mm256_max_ps(self[0], other[0]), _mm256_max_ps(self[1], other[1])] }
    }
    #[inline(always)]
    unsafe fn fold(self) -> f32 {
        // SAFETY: the trait's contract.
        unsafe { fold_eight(_mm256_add_ps(self[0], self[1])) }
    }
    #[inline(always)]
    unsafe fn most(self) -> f32 {
        // SAFETY: the trait's contract.
        unsafe { most_of_eight(_mm256_max_ps(self[0], self[1])) }
    }
    #[inline(always)]
    unsafe fn store_rounded(self, to: *mut i16) {
        // SAFETY: the trait's contract. No code changes how a thread rounds: to the nearest, ties to even.
        unsafe {
            let halves = _mm256_packs_epi32(_mm256_cvtps_epi32(self[0]), _mm256_cvtps_epi32(self[1]));
            // `packs` works in halves of a register.
            _mm256_storeu_si256(to.cast(), _mm256_permute4x64_epi64::<0b11_01_10_00>(halves));
        }
    }
}

/// Upper half of eight with lower half, until one is left.
macro_rules! halved {
    ($name:ident, $four:ident, $one:ident) => {
        /// # Safety
        /// The machine has AVX.
        #[inline(always)]
        pub(super) unsafe fn $name(lanes: __m256) -> f32 {
            // SAFETY: the caller's contract.
            unsafe {
                let four = $four(
                    _mm256_castps256_ps128(lanes),
                    _mm256_extractf128_ps::<1>(lanes),
                );
                let two = $four(four, _mm_movehl_ps(four, four));
                _mm_cvtss_f32($one(two, _mm_movehdup_ps(two)))
            }
        }
    };
}
halved!(fold_eight, _mm_add_ps, _mm_add_ss);
halved!(most_of_eight, _mm_max_ps, _mm_max_ss);

/// Both sides widened to 16 bits: `maddubs`, which multiplies int8 directly, would saturate.
impl SimdIsa for Avx2 {
    type Floats = [__m256; 2];
    /// Each holds four outputs, in two parts next to each other.
    type Sums = [__m256i; 4];
    type Weights = [__m256i; 4];
    type Quad = __m256i;
    const WIDE: bool = true;

    #[inline(always)]
    unsafe fn start(_offset: i32) -> Self::Sums {
        // SAFETY: the trait's contract.
        unsafe { [_mm256_setzero_si256(); 4] }
    }
    #[inline(always)]
    unsafe fn weights(line: *const Line) -> Self::Weights {
        // SAFETY: the trait's contract.
        let quarter = |i| unsafe { _mm256_cvtepi8_epi16(_mm_load_si128(line.cast::<__m128i>().add(i))) };
        [quarter(0), quarter(1), quarter(2), quarter(3)]
    }
    #[inline(always)]
    unsafe fn quad(from: *const u8) -> Self::Quad {
        // SAFETY: the trait's contract.
        unsafe { _mm256_set1_epi64x(from.cast::<i64>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn dot(sums: Self::Sums, weights: Self::Weights, quad: Self::Quad) -> Self::Sums {
        // SAFETY: the trait's contract.
        let quarter = |i: usize| unsafe { _mm256_add_epi32(sums[i], _mm256_madd_epi16(weights[i], quad)) };
        [quarter(0), quarter(1), quarter(2), quarter(3)]
    }
    #[inline(always)]
    unsafe fn join(a: Self::Sums, b: Self::Sums) -> Self::Sums {
        // SAFETY: the trait's contract.
        let quarter = |i: usize| unsafe { _mm256_add_epi32(a[i], b[i]) };
        [quarter(0), quarter(1), quarter(2), quarter(3)]
    }
    #[inline(always)]
    unsafe fn floats(sums: Self::Sums) -> Self::Floats {
        // SAFETY: the trait's contract. `hadd` works in halves of a register: its result is out of order.
        let half = |a, b| unsafe {
            _mm256_cvtepi32_ps(_mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_hadd_epi32(a, b)))
        };
        [half(sums[0], sums[1]), half(sums[2], sums[3])]
    }
}

/// As `Avx512`, in two halves.
impl SimdIsa for AvxVnni {
    type Floats = [__m256; 2];
    type Sums = [__m256i; 2];
    type Weights = [__m256i; 2];
    type Quad = __m256i;

    #[inline(always)]
    unsafe fn start(offset: i32) -> Self::Sums {
        // SAFETY: the trait's contract.
        unsafe { [_mm256_set1_epi32(-offset); 2] }
    }
    #[inline(always)]
    unsafe fn weights(line: *const Line) -> Self::Weights {
        // SAFETY: the trait's contract. Flipping the top bit adds 128.
        let half = |i| unsafe {
            _mm256_xor_si256(
                _mm256_load_si256(line.cast::<__m256i>().add(i)),
                _mm256_set1_epi8(i8::MIN),
            )
        };
        [half(0), half(1)]
    }
    #[inline(always)]
    unsafe fn quad(from: *const u8) -> Self::Quad {
        // SAFETY: the trait's contract.
        unsafe { _mm256_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn dot(sums: Self::Sums, weights: Self::Weights, quad: Self::Quad) -> Self::Sums {
        // SAFETY: the trait's contract.
        let half = |i: usize| unsafe { _mm256_dpbusd_avx_epi32(sums[i], weights[i], quad) };
        [half(0), half(1)]
    }
    #[inline(always)]
    unsafe fn join(a: Self::Sums, b: Self::Sums) -> Self::Sums {
        // SAFETY: the trait's contract.
        unsafe { [_mm256_add_epi32(a[0], b[0]), _mm256_add_epi32(a[1], b[1])] }
    }
    #[inline(always)]
    unsafe fn floats(sums: Self::Sums) -> Self::Floats {
        // SAFETY: the trait's contract.
        unsafe { [_mm256_cvtepi32_ps(sums[0]), _mm256_cvtepi32_ps(sums[1])] }
    }
}
