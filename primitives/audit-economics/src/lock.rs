//! How much stake makes cheating a loss.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use core::fmt;
use scale_info::TypeInfo;
use sp_arithmetic::{FixedPointNumber, FixedU128, Perquintill, traits::Saturating};
use sp_core::U256;

use crate::{AuditRates, SecurityLevel, honest_audit};

/// What is at stake in one task, in plancks.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Terms {
    /// What the provider is paid for its work (R); lost when it is caught.
    pub reward: u128,
    /// What it saves by not doing the work (g).
    pub saved: u128,
    /// What a wrong answer may be worth to somebody (V): the value at risk that the client declares.
    pub outside: u128,
}

impl Terms {
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "sums and products of 128 bits are in 256"
    )]
    fn gain(&self) -> U256 {
        U256::from(self.saved) + U256::from(self.outside)
    }
}

/// Whether honesty pays: `caught (reward + lost) > saved + outside`, exactly.
///
/// `caught` is the probability of being convicted when cheating (p d). `lost` counts only what a convicted
/// cheat really loses, which is the burned part of its lock: the rest goes to the finder and the client, and
/// both may be itself.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "sums and products of 128 bits are in 256"
)]
pub fn honesty_pays(caught: Perquintill, terms: &Terms, lost: u128) -> bool {
    let risk = U256::from(terms.reward) + U256::from(lost);
    // At most 2^60 * 2^129, and 2^129 * 2^60.
    risk * U256::from(caught.deconstruct()) > terms.gain() * U256::from(FixedU128::DIV)
}

/// The least loss, in plancks, with which [`honesty_pays`]. None when no amount would do, or none below
/// 2^128.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "sums and products of 128 bits are in 256"
)]
pub fn least_loss(caught: Perquintill, terms: &Terms) -> Option<u128> {
    let scaled = terms.gain() * U256::from(FixedU128::DIV);
    let risk = scaled.checked_div(caught.deconstruct().into())? + U256::one();
    u128::try_from(risk.saturating_sub(terms.reward.into())).ok()
}

/// What the chain believes of its verifiers, and its rules for locks.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct AuditPolicy {
    /// Auditors per level.
    pub rates: AuditRates,
    /// Part of the verifiers, by the weight they are drawn with, that could audit the task (w).
    pub able: Perquintill,
    /// Part of the verifiers, by the same weight, that may be corrupt (f): all of them able.
    pub corrupt: Perquintill,
    /// Probability that an honest audit of a wrong result ends in a conviction (d).
    pub accuracy: Perquintill,
    /// Part of a slashed lock that is burned.
    pub burned: Perquintill,
    /// A lock is never less than this many times the reward.
    pub reward_multiple: u32,
}

/// How a task is watched and secured.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct AuditPlan {
    /// The level, not below what was asked for.
    pub level: SecurityLevel,
    /// Auditors expected (`lambda`).
    pub expected: FixedU128,
    /// Stake that each provider has to lock, in plancks.
    pub lock: u128,
}

/// Why a task with such a value at risk is not taken.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Refusal {
    /// All verifiers that could audit it may be corrupt.
    NobodyAble,
    /// Cheating would never cost anything: nobody audits, or nothing is burned.
    NeverPunished,
    /// It would take more stake than there is.
    BeyondStake {
        /// The least lock that would do at the highest level, in plancks. `u128::MAX` when even more is
        /// needed.
        needed: u128,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NobodyAble => write!(f, "nobody honest may be able to audit it"),
            Self::NeverPunished => write!(f, "cheating would never be punished"),
            Self::BeyondStake { needed } => write!(f, "a lock of {needed} plancks would be needed"),
        }
    }
}

impl core::error::Error for Refusal {}

impl AuditPolicy {
    /// Probability that a provider that cheats is convicted (p d), rounded down.
    pub fn caught(&self, expected: FixedU128) -> Perquintill {
        let honest = self.able.saturating_sub(self.corrupt);
        let audited = honest_audit(expected, honest).deconstruct();
        Perquintill::from_parts(self.accuracy.mul_floor(audited))
    }

    /// Whether an audit can catch anybody, and what.
    ///
    /// # Errors
    /// [`Refusal::NobodyAble`], [`Refusal::NeverPunished`].
    pub(crate) fn punished(&self, expected: FixedU128) -> Result<Perquintill, Refusal> {
        if self.able <= self.corrupt {
            return Err(Refusal::NobodyAble);
        }
        let caught = self.caught(expected);
        if caught.is_zero() || self.burned.is_zero() {
            return Err(Refusal::NeverPunished);
        }
        Ok(caught)
    }

    /// The least lock, in plancks, with which honesty pays and which the reward's multiple allows.
    ///
    /// # Errors
    /// [`Refusal::NobodyAble`] and [`Refusal::NeverPunished`] when no lock would do. A lock above `u128::MAX`
    /// is [`Refusal::BeyondStake`].
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "sums and products of 128 bits are in 256"
    )]
    pub fn least_lock(&self, expected: FixedU128, terms: &Terms) -> Result<u128, Refusal> {
        let caught = self.punished(expected)?;
        let beyond = Refusal::BeyondStake { needed: u128::MAX };
        let loss = least_loss(caught, terms).ok_or(beyond)?;
        // The least lock whose burned part, rounded down, is that loss.
        let one = U256::from(FixedU128::DIV);
        let burned = U256::from(self.burned.deconstruct());
        let lock = (U256::from(loss) * one + (burned - U256::one())) / burned;
        let usual = U256::from(terms.reward) * U256::from(self.reward_multiple);
        u128::try_from(lock.max(usual)).map_err(|_| beyond)
    }

    /// The lowest level, from `asked` up, at which a lock of no more than `available` makes honesty pay.
    ///
    /// `clean_tasks` is the least among the providers that may get the task.
    ///
    /// # Errors
    /// A [`Refusal`] when not even the highest level does.
    pub fn plan(
        &self,
        asked: SecurityLevel,
        clean_tasks: u32,
        terms: &Terms,
        available: u128,
    ) -> Result<AuditPlan, Refusal> {
        let mut refusal = Refusal::NeverPunished;
        for level in SecurityLevel::ALL.into_iter().filter(|level| *level >= asked) {
            let expected = self.rates.expected(level, clean_tasks);
            match self.least_lock(expected, terms) {
                Ok(lock) if lock <= available => {
                    return Ok(AuditPlan {
                        level,
                        expected,
                        lock,
                    });
                }
                Ok(needed) => refusal = Refusal::BeyondStake { needed },
                Err(why) => refusal = why,
            }
        }
        Err(refusal)
    }
}
