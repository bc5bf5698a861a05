//! Plain code.

use surety_exact::round;

use super::{Floats, GROUP, LANES, Line, SimdIsa};

#[derive(Clone, Copy)]
pub(crate) struct Scalar;
/// The same for int12.
#[derive(Clone, Copy)]
pub(crate) struct ScalarInt12;

impl Floats for [f32; LANES] {
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        [value; LANES]
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the trait's contract.
        unsafe { from.cast::<Self>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the trait's contract.
        unsafe { to.cast::<Self>().write_unaligned(self) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] + other[lane])
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] * other[lane])
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        std::array::from_fn(|lane| larger(self[lane], other[lane]))
    }
    #[inline(always)]
    unsafe fn fold(self) -> f32 {
        halved(self, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn most(self) -> f32 {
        halved(self, larger)
    }
    #[inline(always)]
    unsafe fn store_rounded(self, to: *mut i16) {
        // SAFETY: the trait's contract.
        unsafe {
            to.cast::<[i16; LANES]>()
                .write_unaligned(self.map(|lane| round(lane) as i16))
        };
    }
}

#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

/// Upper half with lower half, until one is left.
#[inline(always)]
fn halved(mut lanes: [f32; LANES], with: impl Fn(f32, f32) -> f32) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = with(lanes[lane], lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0]
}

impl SimdIsa for Scalar {
    type Floats = [f32; LANES];
    type Sums = [i32; LANES];
    type Weights = [i8; 64];
    type Quad = [i8; 4];

    #[inline(always)]
    unsafe fn start(_offset: i32) -> Self::Sums {
        [0; LANES]
    }
    #[inline(always)]
    unsafe fn weights(line: *const Line) -> Self::Weights {
        // SAFETY: the trait's contract.
        unsafe { (*line).0 }
    }
    #[inline(always)]
    unsafe fn quad(from: *const u8) -> Self::Quad {
        // SAFETY: the trait's contract.
        unsafe { from.cast::<Self::Quad>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn dot(sums: Self::Sums, weights: Self::Weights, quad: Self::Quad) -> Self::Sums {
        std::array::from_fn(|lane| {
            (0..4).fold(sums[lane], |sum, k| {
                sum + i32::from(weights[4 * lane + k]) * i32::from(quad[k])
            })
        })
    }
    #[inline(always)]
    unsafe fn join(a: Self::Sums, b: Self::Sums) -> Self::Sums {
        std::array::from_fn(|lane| a[lane] + b[lane])
    }
    #[inline(always)]
    unsafe fn floats(sums: Self::Sums) -> Self::Floats {
        sums.map(|sum| sum as f32)
    }
}

impl SimdIsa for ScalarInt12 {
    type Floats = [f32; LANES];
    type Sums = [i32; LANES];
    type Weights = [i16; 32];
    type Quad = [i16; 2];
    const GROUP_LINES: usize = GROUP / 2;

    #[inline(always)]
    unsafe fn start(_offset: i32) -> Self::Sums {
        [0; LANES]
    }
    #[inline(always)]
    unsafe fn weights(line: *const Line) -> Self::Weights {
        // SAFETY: the trait's contract.
        unsafe { line.cast::<Self::Weights>().read() }
    }
    #[inline(always)]
    unsafe fn quad(from: *const u8) -> Self::Quad {
        // SAFETY: the trait's contract.
        unsafe { from.cast::<Self::Quad>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn dot(sums: Self::Sums, weights: Self::Weights, quad: Self::Quad) -> Self::Sums {
        // Modulo 2^32, as the definition has it: a file may hold any 16 bits.
        std::array::from_fn(|lane| {
            (0..2).fold(sums[lane], |sum, k| {
                sum.wrapping_add(i32::from(weights[2 * lane + k]) * i32::from(quad[k]))
            })
        })
    }
    #[inline(always)]
    unsafe fn join(a: Self::Sums, b: Self::Sums) -> Self::Sums {
        std::array::from_fn(|lane| a[lane].wrapping_add(b[lane]))
    }
    #[inline(always)]
    unsafe fn floats(sums: Self::Sums) -> Self::Floats {
        sums.map(|sum| sum as f32)
    }
}
