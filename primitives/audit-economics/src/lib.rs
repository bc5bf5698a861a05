#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

extern crate alloc;

pub mod channels;
mod committee_pay;
pub mod draw;
mod exponential;
mod items;
mod lock;
mod pay;
mod places;
mod slash;
mod window;

pub use channels::{
    POINTS_MAX, POINTS_MEAN_MAX, PointRates, ReceiptsInput, SURE, drawn_points, item_at, points_drawn,
    points_mean, receipts_seed,
};
pub use committee_pay::CommitteePay;
pub use draw::{
    AuditInput, SeatInput, answer_hash, answer_hashes, audit_seal, audit_seed, items_seal, seat_seed,
};
pub use exponential::{EXP_ERROR, at_least_one, exp_minus};
pub use items::drawn_items;
pub use lock::{AuditPlan, AuditPolicy, Refusal, Terms, honesty_pays, least_loss};
pub use pay::{AuditPay, generation_audit};
pub use places::PlaceRank;
pub use slash::{SlashShares, SlashSplit, correlated_fraction};
pub use surety_types::task::SecurityLevel;
pub use window::{AuditWork, OFFERED_SLACK, WINDOW_SLACK, tokens_worth};

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_arithmetic::{
    FixedPointNumber, FixedU128, Perquintill, Rounding,
    helpers_128bit::multiply_by_rational_with_rounding as multiply_by_rational, traits::Saturating,
};

/// How many auditors a task is expected to have (`lambda`).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct AuditRates {
    /// At [`SecurityLevel::Basic`].
    pub basic: FixedU128,
    /// At [`SecurityLevel::Standard`].
    pub standard: FixedU128,
    /// At [`SecurityLevel::High`].
    pub high: FixedU128,
    /// For a provider without a clean task: because it is new, or because it was at fault.
    pub newcomer: FixedU128,
    /// Clean tasks in a row after which a provider is audited like anybody else.
    pub probation_tasks: u32,
}

impl Default for AuditRates {
    fn default() -> Self {
        Self {
            basic: FixedU128::from_rational(15, 100),
            standard: FixedU128::from_u32(1),
            high: FixedU128::from_u32(3),
            newcomer: FixedU128::from_u32(3),
            probation_tasks: 200,
        }
    }
}

impl AuditRates {
    /// Auditors expected on a task at `level` by a provider with `clean_tasks` clean tasks since it came or
    /// was last at fault. Falls in a straight line from the newcomers' rate to the level's, which it never
    /// goes below.
    pub fn expected(&self, level: SecurityLevel, clean_tasks: u32) -> FixedU128 {
        let rate = match level {
            SecurityLevel::Basic => self.basic,
            SecurityLevel::Standard => self.standard,
            SecurityLevel::High => self.high,
        };
        let extra = self.newcomer.saturating_sub(rate).into_inner();
        let left = self.probation_tasks.saturating_sub(clean_tasks);
        let extra = multiply_by_rational(extra, left.into(), self.probation_tasks.into(), Rounding::Up);
        // No answer only for a probation of no tasks: it is over.
        rate.saturating_add(FixedU128::from_inner(extra.unwrap_or(0)))
    }
}

/// Below which VRF output a verifier is an auditor: a probability in units of 2^-128.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Encode,
    Decode,
    DecodeWithMemTracking,
    MaxEncodedLen,
    TypeInfo,
)]
pub struct AuditThreshold(u128);

impl AuditThreshold {
    /// For one of `verifiers` that are all alike. With fewer verifiers than expected auditors, all of them
    /// audit.
    pub fn equal(expected: FixedU128, verifiers: u32) -> Self {
        Self::weighted(expected, 1, verifiers.into())
    }

    /// For a verifier with `stake` of the `total` that all verifiers have (both in the same unit), so that
    /// splitting a stake among many names gains nothing. `f` is then the corrupt part of the stake.
    ///
    /// The probability is `min(1, expected * stake / total)`, rounded up by less than 2 * 10^-18. As
    /// `1 - min(1, q) <= exp(-q)`, [`honest_audit`] bounds the outcome from below whatever the weights are.
    pub fn weighted(expected: FixedU128, stake: u128, total: u128) -> Self {
        let odds = multiply_by_rational(expected.into_inner(), stake, total, Rounding::Up);
        // No answer: no verifiers at all, where nobody asks, or a product beyond 128 bits.
        match odds {
            Some(0) => Self(0),
            Some(odds) if odds < FixedU128::DIV => {
                let scaled = multiply_by_rational(odds, u128::MAX, FixedU128::DIV, Rounding::Up);
                Self(scaled.map_or(u128::MAX, |scaled| scaled.saturating_add(1)))
            }
            _ if stake == 0 => Self(0),
            _ => Self(u128::MAX),
        }
    }

    /// Whether a verifier whose VRF gave `output` audits. Reads the first 16 bytes, little endian.
    pub fn draws(&self, output: &[u8; 32]) -> bool {
        let draw = output
            .first_chunk()
            .map_or(u128::MAX, |low| u128::from_le_bytes(*low));
        self.0 == u128::MAX || draw < self.0
    }
}

/// Probability that at least one honest verifier audits, where those who are honest and able have a part
/// `honest` of the weight that all are drawn with: `1 - exp(-expected honest)`, never above the truth and
/// less than 5 * 10^-18 below it.
pub fn honest_audit(expected: FixedU128, honest: Perquintill) -> Perquintill {
    let honest = u128::from(honest.deconstruct());
    // Cannot fail: the factor is at most one.
    let mean = multiply_by_rational(expected.into_inner(), honest, FixedU128::DIV, Rounding::Down);
    at_least_one(FixedU128::from_inner(mean.unwrap_or(0)))
}

#[cfg(test)]
mod tests;
