//! What an audit is paid.
//!
//! By the provider that was audited, out of what it earns, so that whoever audits itself pays itself. How
//! many audits it will have nobody knows when it names its price: the price has to cover those that are
//! expected. Take a price that does just that, `R = C (1 + lambda x)`, C the cost of the work and `x C`
//! that of an audit with the premium. Then `lambda x / (1 + lambda x)` of R is what all audits are paid in
//! the mean, and each gets the part of R with which that comes out when the number of audits is Poisson's
//! and all of them together never get more than R ([`AuditPay::share`]).

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_arithmetic::{
    FixedPointNumber, FixedU128, PerThing, Perbill, Permill, Perquintill, Rounding,
    helpers_128bit::multiply_by_rational_with_rounding as multiply_by_rational,
    traits::{AtLeast32BitUnsigned, Saturating},
};
use surety_types::limits::AUDITS_PER_MEMBER_MAX;

use crate::exp_minus;

/// Halvings by which a share is found: to a billionth.
const SHARE_BITS: u32 = 30;

/// Quintillionths in a billionth.
const QUINTILLIONTHS: u64 = 1_000_000_000;

/// How audits are paid.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct AuditPay {
    /// What an audit is paid in the mean, as a multiple of its cost.
    pub premium: FixedU128,
}

impl Default for AuditPay {
    /// 1.25.
    fn default() -> Self {
        Self {
            premium: FixedU128::from_rational(5, 4),
        }
    }
}

impl AuditPay {
    /// The part of what a provider earns that each of its audits is paid, where `expected` are expected and
    /// one costs `cost` of what the work does; less when they are so many that all of it is not enough.
    ///
    /// With it a provider whose price just covers work and audits pays each audit `premium` times its cost in
    /// the mean. Where not even all that it earns does, whenever it is audited, it is all of it.
    pub fn share(&self, cost: Perquintill, expected: FixedU128) -> Perbill {
        let mean = expected.min(FixedU128::from_u32(AUDITS_PER_MEMBER_MAX));
        let each = self.premium.saturating_mul(FixedU128::from(cost));
        let all = mean.saturating_mul(each);
        let whole = all.saturating_add(FixedU128::from_u32(1));
        let parts = multiply_by_rational(
            all.into_inner(),
            FixedU128::DIV,
            whole.into_inner().max(1),
            Rounding::Up,
        );
        let wanted = parts.and_then(|parts| u64::try_from(parts).ok());
        let wanted = Perquintill::from_parts(wanted.unwrap_or(u64::MAX));
        let mut share = Perquintill::one();
        if paid(share, mean) <= wanted {
            return Perbill::one();
        }
        let mut step = Perquintill::one().deconstruct();
        for _ in 0..SHARE_BITS {
            step = step.div_ceil(2);
            let less = Perquintill::from_parts(share.deconstruct().saturating_sub(step));
            // Rounded up.
            if paid(less, mean) >= wanted {
                share = less;
            }
        }
        let billionths = share.deconstruct().div_ceil(QUINTILLIONTHS);
        Perbill::from_parts(u32::try_from(billionths).unwrap_or(u32::MAX))
    }

    /// What each of `audits` audits gets of `earned` plancks when it should get `share` of it, rounded down.
    /// All of them together never get more than `earned`.
    pub fn of<Balance: AtLeast32BitUnsigned + Copy>(share: Perbill, earned: Balance, audits: u32) -> Balance {
        let equal = earned.checked_div(&Balance::from(audits));
        // No answer: no audits.
        equal.map_or_else(Balance::zero, |equal| share.mul_floor(earned).min(equal))
    }
}

/// What an audit of a generation costs, as a part of what its work does: one pass over all of its `units`
/// tokens at once, where `pass` is what that costs of generating as many. Of the `prompt` among them whoever
/// generates computes no more than that either: the longer it is, the less an audit saves. Rounded up.
pub fn generation_audit(pass: Permill, prompt: u32, units: u32) -> Perquintill {
    // 20 bits times 32.
    let cost = |tokens: u32, each: Permill| u64::from(each.deconstruct()).saturating_mul(tokens.into());
    let units = units.max(1);
    let prompt = prompt.min(units);
    let generated = cost(units.saturating_sub(prompt), Permill::one());
    let work = cost(prompt, pass).saturating_add(generated);
    let part = Perquintill::from_rational_with_rounding(cost(units, pass), work, Rounding::Up);
    // Nothing costs nothing.
    part.unwrap_or_default()
}

/// The part of its earnings that a provider pays in the mean when each audit gets `share`, or all of them
/// everything: `sum P(k) min(k share, 1)`, the number of audits being Poisson's.
fn paid(share: Perquintill, mean: FixedU128) -> Perquintill {
    let one = FixedU128::DIV;
    let mut exactly = u128::from(exp_minus(mean).deconstruct());
    let mut left = one.saturating_sub(exactly);
    let mut sum = 0u128;
    for audits in 1..=AUDITS_PER_MEMBER_MAX {
        let next = multiply_by_rational(exactly, mean.into_inner(), one, Rounding::Down);
        exactly = next
            .and_then(|next| next.checked_div(audits.into()))
            .unwrap_or(0)
            .min(left);
        left = left.saturating_sub(exactly);
        let part = u128::from(share.deconstruct())
            .saturating_mul(audits.into())
            .min(one);
        sum = sum.saturating_add(multiply_by_rational(exactly, part, one, Rounding::Down).unwrap_or(0));
    }
    // More than there are places for: all that is earned.
    Perquintill::from_parts(sum.saturating_add(left).min(one) as u64)
}

#[cfg(test)]
mod tests;
