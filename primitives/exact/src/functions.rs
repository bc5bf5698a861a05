//! The functions that a processor's library would each compute in its own way, as polynomials.
//!
//! All are total. A finite argument gives a finite value, but for the square roots of what is not above 0.
//! Errors are bounds over the whole range, measured by this crate's tests against `f64`.

/// Adding and subtracting it rounds to the nearest integer, ties to even: 1.5 * 2^23.
pub(crate) const ROUNDER: f32 = 12_582_912.0;

const LOG2_E: f32 = f32::from_bits(0x3fb8_aa3b);
/// ln 2 in two parts; the upper has few enough bits for products with small integers to be exact.
const LN2_HIGH: f32 = 355.0 / 512.0;
const LN2_LOW: f32 = f32::from_bits(0xb95e_8083);
/// Below it the result would not be a normal number; above it, not finite.
const EXP_MIN: f32 = -87.0;
const EXP_MAX: f32 = 88.0;
/// From x^6 down to x^2 of the Taylor-like polynomial on [-ln 2 / 2, ln 2 / 2] (Cephes `expf`).
const EXP: [f32; 6] = [
    f32::from_bits(0x3950_6967),
    f32::from_bits(0x3ab7_43ce),
    f32::from_bits(0x3c08_8908),
    f32::from_bits(0x3d2a_a9c1),
    f32::from_bits(0x3e2a_aaaa),
    f32::from_bits(0x3f00_0000),
];

#[inline(always)]
fn clamp(x: f32, min: f32, max: f32) -> f32 {
    // Not `f32::clamp` or `max`: these forms are one instruction on every target.
    let x = if x < min { min } else { x };
    if x > max { max } else { x }
}

/// `e^x`, for `x` cut to -87 ..= 88. Relative error under 1e-7.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let x = clamp(x, EXP_MIN, EXP_MAX);
    let shifted = x * LOG2_E + ROUNDER;
    let n = shifted - ROUNDER;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let mut p = EXP[0];
    for coefficient in [EXP[1], EXP[2], EXP[3], EXP[4], EXP[5]] {
        p = p * r + coefficient;
    }
    let p = (p * (r * r) + r) + 1.0;
    // n as an integer stands in the lowest bits of `shifted`.
    let exponent = shifted
        .to_bits()
        .wrapping_sub(ROUNDER.to_bits())
        .wrapping_add(127);
    f32::from_bits(exponent << 23) * p
}

/// Square root, correctly rounded (IEEE 754). NaN below 0.
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    libm::sqrtf(x)
}

/// `1 / sqrt(x)`: two correctly rounded steps. Infinity for 0, NaN below it.
#[inline(always)]
pub fn rsqrt(x: f32) -> f32 {
    1.0 / sqrt(x)
}

/// Hyperbolic tangent. Absolute error under 1e-7.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let e = exp(-2.0 * x.abs());
    ((1.0 - e) / (1.0 + e)).copysign(x)
}

/// Error function by Abramowitz and Stegun 7.1.26. Absolute error under 6e-7.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let size = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * size);
    let mut p = 1.061_405_4_f32;
    for coefficient in [-1.453_152_f32, 1.421_413_8, -0.284_496_74, 0.254_829_6] {
        p = p * t + coefficient;
    }
    (1.0 - (p * t) * exp(-(size * size))).copysign(x)
}

/// `x Φ(x)` by [`erf`], as BERT uses it. Absolute error under 2.5e-7 max(1, |x|).
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    (0.5 * x) * (1.0 + erf(x * core::f32::consts::FRAC_1_SQRT_2))
}

/// The approximation of [`gelu`] by [`tanh`] (`gelu_new`, `gelu_pytorch_tanh`). Absolute error, as that
/// approximation, under 2e-7 max(1, |x|).
#[inline(always)]
pub fn gelu_tanh(x: f32) -> f32 {
    let inner = 0.797_884_6 * (x + 0.044_715 * ((x * x) * x));
    (0.5 * x) * (1.0 + tanh(inner))
}

/// `x / (1 + e^-x)`. Relative error under 2e-7 for `x` from -88 up; below, where [`exp`] is cut, the result
/// is `x / e^88`, less than 6.2e-39 |x| in size.
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// From x^7 down to x^1, on an eighth of a turn either side of 0, in units of turns (minimax for sin(2 pi
/// x)).
const SIN: [f32; 4] = [-76.704_6, 81.605_25, -41.341_7, 6.283_185_5];
/// From x^8 down to x^0, likewise for cos(2 pi x).
const COS: [f32; 5] = [60.244_64, -85.456_82, 64.939_39, -19.739_208, 1.0];

/// Sine and cosine of an angle of `turn / 2^32` turns. Absolute error under 5e-7.
///
/// An integer angle wraps exactly, so a position of a million is as accurate as the first.
#[inline(always)]
pub fn sin_cos_turn(turn: u32) -> (f32, f32) {
    // The nearest quarter, and what is left: -1/8 ..= 1/8 of a turn, exact to 24 bits.
    let quarter = turn.wrapping_add(1 << 29) >> 30;
    let rest = turn.wrapping_sub(quarter << 30) as i32;
    let x = (rest >> 6) as f32 * f32::from_bits(0x3280_0000); // 2^-26
    let x2 = x * x;
    let mut s = SIN[0];
    for coefficient in [SIN[1], SIN[2], SIN[3]] {
        s = s * x2 + coefficient;
    }
    let s = s * x;
    let mut c = COS[0];
    for coefficient in [COS[1], COS[2], COS[3], COS[4]] {
        c = c * x2 + coefficient;
    }
    match quarter & 3 {
        0 => (s, c),
        1 => (c, -s),
        2 => (-s, -c),
        _ => (-c, s),
    }
}
