//! How receipts of channels are audited: points on the line of a batch's price.
//!
//! A provider commits a batch of receipts; laid end to end, what they cost is a line of `P` plancks. After
//! its commitment each verifier draws **points** on it, a Poisson number with a mean of `a P w` for `a`
//! points per SURE and its part `w` of all verifiers' stake, and computes again what its points are in. So a
//! receipt is met in proportion to what it costs, whatever stands around it: of wrong receipts that cost `G`
//! together none is found with a probability of `exp(-k G)`, `k = a (w - f) d`, and padding a batch with
//! receipts of one's own changes nothing.
//!
//! The number is drawn by inversion: below cumulated probabilities that are never above the truth, and less
//! than 5 * 10^-11 below it, so that never fewer are drawn than Poisson's law has.
//!
//! Why the lock is what it is: a cheat that has `G` wrong, which is worth `v G` to it elsewhere, and can lose
//! `S = b L`, gains at most `exp(-k G) G + v G - (1 - exp(-k G)) S`. As `x / (exp(x) - 1) <= 1` and
//! `x / (1 - exp(-x)) <= 1 + x`, that is a loss for every `G <= E` once `S >= (1 + v) / k + v E`.

use alloc::vec::Vec;

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_arithmetic::{
    FixedPointNumber, FixedU128, Perquintill, Rounding,
    helpers_128bit::multiply_by_rational_with_rounding as multiply_by_rational, traits::Saturating,
};
use sp_core::{H256, U256};
use sp_crypto_hashing::blake2_256;

use crate::{AuditPay, AuditPolicy, EXP_ERROR, Refusal, draw::Field, exp_minus};

/// Plancks of one SURE: points are counted for so many.
pub const SURE: u128 = 1_000_000_000_000;

/// Label of the transcripts of draws about batches of receipts.
pub const RECEIPTS_LABEL: &[u8] = b"surety-receipts";

/// What bytes are made from their outputs for.
pub const RECEIPTS_CONTEXT: &[u8] = b"surety-receipts";

/// Most points that one verifier draws on one batch.
pub const POINTS_MAX: u32 = 64;

/// Highest mean that they are drawn with. More than [`POINTS_MAX`] are then drawn with a probability below
/// 10^-19, so that the cap takes nothing from anybody. A chain refuses batches that would need more.
pub const POINTS_MEAN_MAX: u32 = 16;

/// How many points there are for a SURE (`a`).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct PointRates {
    /// For a provider that is known.
    pub usual: FixedU128,
    /// For one of whom nothing was audited yet, because it is new or was at fault.
    pub newcomer: FixedU128,
    /// What has to be audited of a provider and found right until it is like anybody else, in plancks: the
    /// price of the receipts that points were in, not of all that it has sold to itself.
    pub probation: u128,
}

impl PointRates {
    /// Points per SURE for a provider of whom receipts of `audited` plancks were found right since it came or
    /// was last at fault. Falls in a straight line from the newcomers' rate to the usual one, which it never
    /// goes below.
    pub fn expected(&self, audited: u128) -> FixedU128 {
        let extra = self.newcomer.saturating_sub(self.usual).into_inner();
        let left = self.probation.saturating_sub(audited);
        let extra = multiply_by_rational(extra, left, self.probation, Rounding::Up);
        // No answer only for a probation of nothing: it is over.
        self.usual
            .saturating_add(FixedU128::from_inner(extra.unwrap_or(0)))
    }
}

/// What a verifier draws its points over.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct ReceiptsInput<AccountId> {
    /// The batch's [`receipts_seed`].
    pub seed: H256,
    /// Provider's stash.
    pub provider: AccountId,
    /// Which of its batches.
    pub batch: u32,
}

impl<AccountId: Encode> ReceiptsInput<AccountId> {
    /// The transcript's fields, in order: each value in SCALE. Their label is [`RECEIPTS_LABEL`].
    pub fn fields(&self) -> [Field; 3] {
        [
            (b"seed", self.seed.encode()),
            (b"provider", self.provider.encode()),
            (b"batch", self.batch.encode()),
        ]
    }
}

/// `blake2_256(SCALE("receipts seed", genesis, epoch_randomness, entropy, provider, batch))`. The entropy is
/// as in [`audit_seed`](crate::audit_seed), of a block after the one with the batch's root: what that commits
/// to is fixed by then, and is no part of the seed.
pub fn receipts_seed<AccountId: Encode>(
    genesis: &H256,
    provider: &AccountId,
    batch: u32,
    epoch_randomness: &H256,
    entropy: Option<&H256>,
) -> H256 {
    H256(blake2_256(
        &(
            b"receipts seed",
            genesis,
            epoch_randomness,
            entropy,
            provider,
            batch,
        )
            .encode(),
    ))
}

/// How many points a verifier with `stake` of the `total` that all verifiers have expects on a batch of
/// `price` plancks (`a P w`), rounded up: [`POINTS_MEAN_MAX`] at most.
pub fn points_mean(points: FixedU128, price: u128, stake: u128, total: u128) -> FixedU128 {
    let most = FixedU128::from_u32(POINTS_MEAN_MAX);
    let all = ceil_of(points.into_inner(), price, SURE);
    // No answer: no verifiers at all, where nobody asks, or more than can be counted.
    let own = multiply_by_rational(all, stake, total, Rounding::Up);
    own.map_or(if stake == 0 { FixedU128::default() } else { most }, |own| {
        FixedU128::from_inner(own).min(most)
    })
}

/// `one * other / divisor`, rounded up; the most there is where it is more.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "a product of 128 bits is in 256, and a quotient by more than one below its half"
)]
fn ceil_of(one: u128, other: u128, divisor: u128) -> u128 {
    let (quotient, rest) = (U256::from(one) * U256::from(other)).div_mod(divisor.max(2).into());
    let up = quotient + U256::from(u8::from(!rest.is_zero()));
    u128::try_from(up).unwrap_or(u128::MAX)
}

/// How many points a verifier draws whose VRF gave `output`. Reads the first 16 bytes, little endian.
pub fn points_drawn(output: &[u8; 32], mean: FixedU128) -> u32 {
    let low = output.first_chunk().map_or(0, |low| u128::from_le_bytes(*low));
    let drawn = share_of(low, FixedU128::DIV);
    let mut exactly = u128::from(exp_minus(mean).deconstruct().saturating_sub(EXP_ERROR));
    let mut cumulated = exactly;
    for points in 0..POINTS_MAX {
        if drawn < cumulated {
            return points;
        }
        // At most 10^18 and 16 * 10^18 before they are divided.
        let next = FixedU128::DIV.saturating_mul(u128::from(points).saturating_add(1));
        exactly = exactly
            .saturating_mul(mean.into_inner())
            .checked_div(next)
            .unwrap_or(0);
        cumulated = cumulated.saturating_add(exactly);
    }
    POINTS_MAX
}

/// Where a verifier's points are on the line of a batch's price, in ascending order: each in `0..price`, all
/// of it equally likely, `blake2_256(SCALE("receipts point", output, number))` read as [`points_drawn`] reads
/// the output.
pub fn drawn_points(output: &[u8; 32], price: u128, mean: FixedU128) -> Vec<u128> {
    if price == 0 {
        return Vec::new();
    }
    let point = |number: u32| {
        let hash = blake2_256(&(b"receipts point", output, number).encode());
        share_of(
            hash.first_chunk().map_or(0, |low| u128::from_le_bytes(*low)),
            price,
        )
    };
    let mut points: Vec<u128> = (0..points_drawn(output, mean)).map(point).collect();
    points.sort_unstable();
    points
}

/// Which of a receipt's `items` a point is in that is `offset` plancks behind the beginning of its `price`.
pub fn item_at(offset: u128, price: u128, items: u32) -> u32 {
    let item = multiply_by_rational(offset, items.into(), price, Rounding::Down);
    let item = item.and_then(|item| u32::try_from(item).ok());
    item.unwrap_or(0).min(items.saturating_sub(1))
}

/// `uniform / 2^128` of `whole`, rounded down.
#[allow(clippy::arithmetic_side_effects, reason = "a product of 128 bits is in 256")]
fn share_of(uniform: u128, whole: u128) -> u128 {
    let share: U256 = (U256::from(uniform) * U256::from(whole)) >> 128;
    // Below `whole`.
    u128::try_from(share).unwrap_or(0)
}

impl AuditPolicy {
    /// Convictions to be expected for each SURE that wrong receipts cost (`k = a (w - f) d`), rounded down.
    pub fn conviction_rate(&self, points: FixedU128) -> FixedU128 {
        let honest = self.able.saturating_sub(self.corrupt);
        let by = |rate: FixedU128, part: Perquintill| {
            let parts = part.deconstruct().into();
            let less = multiply_by_rational(rate.into_inner(), parts, FixedU128::DIV, Rounding::Down);
            // Cannot fail: the factor is at most one.
            FixedU128::from_inner(less.unwrap_or(0))
        };
        by(by(points, honest), self.accuracy)
    }

    /// The least standing lock, in plancks, with which wrong receipts are a loss to whoever sells them,
    /// however many they are: `((1 + v) / k + v E) / b`.
    ///
    /// `at_risk` (v) is what a wrong answer may be worth to somebody, as a multiple of its price, and `open`
    /// (E) the most that batches may cost which are not final, in plancks.
    ///
    /// # Errors
    /// [`Refusal::NobodyAble`] and [`Refusal::NeverPunished`] when no lock would do. A lock above `u128::MAX`
    /// is [`Refusal::BeyondStake`].
    pub fn standing_lock(&self, points: FixedU128, at_risk: FixedU128, open: u128) -> Result<u128, Refusal> {
        if self.able <= self.corrupt {
            return Err(Refusal::NobodyAble);
        }
        let rate = self.conviction_rate(points).into_inner();
        if rate == 0 || self.burned.is_zero() {
            return Err(Refusal::NeverPunished);
        }
        let one = U256::from(FixedU128::DIV);
        let gains = U256::from(at_risk.into_inner()).checked_add(one);
        let found = gains.and_then(|gains| up(gains.checked_mul(SURE.into())?, rate.into()));
        let kept = U256::from(at_risk.into_inner()).checked_mul(open.into());
        let kept = kept.and_then(|kept| up(kept, one));
        let lost = found.and_then(|found| found.checked_add(kept?));
        let burned = self.burned.deconstruct().into();
        let lock = lost.and_then(|lost| up(lost.checked_mul(one)?, burned));
        lock.and_then(|lock| u128::try_from(lock).ok())
            .ok_or(Refusal::BeyondStake { needed: u128::MAX })
    }
}

/// A quotient, rounded up; nothing where that is beyond 256 bits, or the divisor is zero.
fn up(sum: U256, divisor: U256) -> Option<U256> {
    let (quotient, rest) = (sum.checked_div(divisor)?, sum.checked_rem(divisor)?);
    quotient.checked_add(u8::from(!rest.is_zero()).into())
}

impl AuditPay {
    /// What a point is paid whose audit is expected to cost `cost` plancks, rounded up.
    pub fn point(&self, cost: u128) -> u128 {
        ceil_of(self.premium.into_inner(), cost, FixedU128::DIV)
    }

    /// The part of a batch's price that pays for points, rounded up: as many as are expected, at
    /// [`Self::point`] each. Nothing where the whole would not do: such an offer sells for less than its
    /// audits cost.
    pub fn levy(&self, points: FixedU128, cost: u128) -> Option<Perquintill> {
        let parts = ceil_of(points.into_inner(), self.point(cost), SURE);
        let parts = u64::try_from(parts).ok()?;
        (parts < Perquintill::one().deconstruct()).then(|| Perquintill::from_parts(parts))
    }
}

#[cfg(test)]
mod tests;
