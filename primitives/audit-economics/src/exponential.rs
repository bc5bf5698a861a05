//! `exp(-x)` in fixed point with a proven bound.

use sp_arithmetic::{
    FixedPointNumber, FixedU128, Perquintill, Rounding,
    helpers_128bit::multiply_by_rational_with_rounding as multiply_by_rational,
};

/// [`exp_minus`] is less than this many units of 10^-18 from the truth, on either side.
pub const EXP_ERROR: u64 = 2;

/// One, in the units of the computation: 2^-64.
const ONE: u128 = 1 << 64;
/// ln 2 * 2^64, to the nearest; the error is under 0.22 units.
const LN2: u128 = 12_786_308_645_202_655_660;
/// From here on `exp(-x)` is under 0.03 units of 10^-18. In those units.
const ZERO_FROM: u128 = 45 * FixedU128::DIV;
/// The remainder after so many terms of the series is r^21 / 21! < 10^-23.
const TERMS: u128 = 20;

/// `exp(-x)`, off by less than [`EXP_ERROR`] units of 10^-18.
///
/// `x = n ln 2 + r` with `0 <= r < ln 2`, so `exp(-x) = exp(-r) / 2^n`. The error, in units of u = 2^-64:
///
/// - Horner's rule `h_k = 1 - r h_{k+1} / k` rounds once a step, by less than u. Step k's error reaches the
///   result times r^(k-1) / (k-1)!, together less than `exp(r) <= 2`. The terms left out add less than 0.001.
/// - r is off by less than `1 + 0.22 n`: x is rounded down once, and ln 2 is taken n times. `exp(-r)` has a
///   slope of at most 1, and the division by 2^n makes less than 1 of it for every n.
/// - Dividing by 2^n rounds down by less than 1.
///
/// In all less than 4.1 u = 0.23 * 10^-18; rounding down to 10^-18 takes less than one unit more.
#[allow(clippy::arithmetic_side_effects, reason = "no divisor is zero")]
pub fn exp_minus(x: FixedU128) -> Perquintill {
    if x.into_inner() >= ZERO_FROM {
        return Perquintill::zero();
    }
    // x < 45, so that the product is below 2^70.
    let x = multiply_by_rational(x.into_inner(), ONE, FixedU128::DIV, Rounding::Down).unwrap_or(0);
    // Both fit: n <= 64, and r, h <= 2^64 with r h < 2^128 as r < 0.7 * 2^64.
    let (halvings, r) = (x / LN2, x % LN2);
    let series = (1..=TERMS)
        .rev()
        .fold(ONE, |h, k| ONE.saturating_sub((r.saturating_mul(h) >> 64) / k));
    let result = series >> halvings;
    let parts = result.saturating_mul(FixedU128::DIV) >> 64;
    Perquintill::from_parts(u64::try_from(parts).unwrap_or(u64::MAX))
}

/// `1 - exp(-mean)`, the probability of at least one event of a Poisson distribution. Never above the truth,
/// and less than 4 * 10^-18 below it.
pub fn at_least_one(mean: FixedU128) -> Perquintill {
    let none = exp_minus(mean).deconstruct().saturating_add(EXP_ERROR);
    Perquintill::from_parts(Perquintill::one().deconstruct().saturating_sub(none))
}
