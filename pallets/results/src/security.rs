//! How closely a task is watched, and how much stake is locked for it: `surety_audit_economics::` with this
//! chain's parameters.
//!
//! A task asks for a level and declares its value at risk. When it is posted its level is raised until stake
//! that there is could make cheating a loss, or it is refused; when it is drawn, only providers with the
//! stake for its lock get it.

use frame_support::traits::Get;
use sp_runtime::{DispatchError, FixedU128, PerThing, traits::Saturating};
use surety_audit_economics::{AuditPolicy, AuditRates, Refusal, Terms};
use surety_pallet_trust_lock::{Records, quintillionths};
use surety_types::{
    limits,
    stake::Role,
    task::{Security, SecurityLevel},
    traits::StakeLedger,
};

use crate::{Config, Error, Pallet};

impl<T: Config> Pallet<T> {
    /// Auditors expected for a result of `provider` in a task that is watched at `level`.
    pub fn auditors_expected(provider: &T::AccountId, level: SecurityLevel) -> FixedU128 {
        let expected = Self::audit_rates().expected(level, Records::<T>::get(provider).clean_tasks);
        expected.min(FixedU128::from_u32(limits::AUDITORS_EXPECTED_MAX))
    }

    /// The level for a task. Without a value at risk that is what was asked for: the usual lock covers it.
    pub(crate) fn do_secure(
        price: T::Balance,
        redundancy: u32,
        security: &Security,
    ) -> Result<SecurityLevel, DispatchError> {
        if security.value_at_risk == 0 {
            return Ok(security.level);
        }
        // More than that no `redundancy` providers can have. Who can lock it is seen in the draw.
        let stake: u128 = T::Stake::bonded_in_all(Role::Provider).into();
        let available = stake.checked_div(redundancy.into()).unwrap_or_default();
        let plan = Self::audit_policy().plan(security.level, u32::MAX, &terms(price, security), available);
        match plan {
            Ok(plan) => Ok(plan.level),
            Err(Refusal::BeyondStake { .. }) => Err(Error::<T>::ValueAtRiskTooHigh.into()),
            Err(Refusal::NeverPunished) => Err(Error::<T>::NeverPunished.into()),
        }
    }

    /// The lock for a provider with enough clean tasks: it is audited least, and a newcomer locks no less.
    pub(crate) fn do_lock_for(price: T::Balance, security: &Security) -> T::Balance {
        let policy = Self::audit_policy();
        let expected = policy.rates.expected(security.level, u32::MAX);
        let lock = policy.least_lock(expected, &terms(price, security));
        // Nobody can lock what no lock would do for.
        let lock = lock.unwrap_or(u128::MAX);
        price
            .saturating_mul(T::LockMultiple::get().into())
            .max(lock.into())
    }

    /// What a provider that is paid `price` really loses of its lock at least, in plancks: the part that is
    /// burned.
    pub fn burned_lock(price: T::Balance, security: &Security) -> u128 {
        let lock = Self::do_lock_for(price, security);
        Self::audit_policy().burned.mul_ceil(lock.into())
    }

    fn audit_rates() -> AuditRates {
        AuditRates {
            basic: T::AuditorsBasic::get(),
            standard: T::AuditorsExpected::get(),
            high: T::AuditorsHigh::get(),
            newcomer: T::AuditorsNewcomer::get(),
            probation_tasks: T::ProbationTasks::get(),
        }
    }

    fn audit_policy() -> AuditPolicy {
        let shares = T::FinderShare::get().saturating_add(T::ClientShare::get());
        AuditPolicy {
            rates: Self::audit_rates(),
            corrupt: quintillionths(T::VerifiersCorrupt::get()),
            accuracy: quintillionths(T::AuditAccuracy::get()),
            burned: quintillionths(shares.left_from_one()),
            reward_multiple: T::LockMultiple::get(),
        }
    }
}

/// What is at stake. A cheat saves no more than it is paid: nobody offers work for less than it costs.
fn terms<Balance: Copy + Into<u128>>(price: Balance, security: &Security) -> Terms {
    Terms {
        reward: price.into(),
        saved: price.into(),
        outside: security.value_at_risk,
    }
}
