//! The only user of the currency: bonds of challengers, prices of demands, and the insurance pool.

use frame_support::{
    dispatch::DispatchResult,
    traits::{
        fungible::{Inspect, Mutate, MutateHold},
        tokens::{DepositConsequence, Fortitude, Precision, Preservation, Provenance, Restriction},
        Defensive,
    },
};
use sp_runtime::traits::{Saturating, Zero};

use crate::{Config, HoldReason};

/// What is held on an account.
#[cfg(any(feature = "std", feature = "try-runtime"))]
pub(crate) fn held<T: Config>(reason: HoldReason, who: &T::AccountId) -> T::Balance {
    use frame_support::traits::fungible::InspectHold;
    T::Currency::balance_on_hold(&reason.into(), who)
}

/// Puts free balance on hold.
pub(crate) fn hold<T: Config>(reason: HoldReason, who: &T::AccountId, amount: T::Balance) -> DispatchResult {
    T::Currency::hold(&reason.into(), who, amount)
}

/// Makes held balance free again. Cannot fail by what callers do; should it fail all the same, it stays on hold and the
/// log says so.
pub(crate) fn release<T: Config>(reason: HoldReason, who: &T::AccountId, amount: T::Balance) {
    let released = T::Currency::release(&reason.into(), who, amount, Precision::BestEffort);
    released.defensive_unwrap_or_default();
}

/// Moves held balance to `payee`. Returns what arrived: all of it, or nothing where `payee` cannot take it; it is burned
/// then.
pub(crate) fn hand_over<T: Config>(
    reason: HoldReason,
    from: &T::AccountId,
    payee: &T::AccountId,
    amount: T::Balance,
) -> T::Balance {
    let reason = reason.into();
    if T::Currency::can_deposit(payee, amount, Provenance::Extant) == DepositConsequence::Success {
        let moved = T::Currency::transfer_on_hold(
            &reason,
            from,
            payee,
            amount,
            Precision::Exact,
            Restriction::Free,
            Fortitude::Force,
        );
        if moved.is_ok() {
            return amount;
        }
    }
    burn::<T>(reason, from, amount);
    Zero::zero()
}

/// Takes a bond: half of it goes to `defender`, the rest is burned. Returns what each of the two got.
pub(crate) fn forfeit<T: Config>(
    challenger: &T::AccountId,
    defender: &T::AccountId,
    bond: T::Balance,
) -> (T::Balance, T::Balance) {
    let half = T::Balance::from(Into::<u128>::into(bond) / 2);
    let awarded = hand_over::<T>(HoldReason::Challenge, challenger, defender, half);
    let rest = bond.saturating_sub(half);
    burn::<T>(HoldReason::Challenge.into(), challenger, rest);
    (awarded, bond.saturating_sub(awarded))
}

fn burn<T: Config>(reason: T::RuntimeHoldReason, who: &T::AccountId, amount: T::Balance) {
    let burned = T::Currency::burn_held(&reason, who, amount, Precision::BestEffort, Fortitude::Force);
    burned.defensive_unwrap_or_default();
}

/// Pays up to `amount` out of the insurance pool, as far as it has it. Returns what was paid.
pub(crate) fn insure<T: Config>(client: &T::AccountId, amount: T::Balance) -> T::Balance {
    use frame_support::traits::Get;

    let pool = T::InsurancePool::get();
    let there = T::Currency::reducible_balance(&pool, Preservation::Preserve, Fortitude::Polite);
    let amount = amount.min(there);
    if amount.is_zero() || *client == pool {
        return Zero::zero();
    }
    match T::Currency::transfer(&pool, client, amount, Preservation::Preserve) {
        Ok(paid) => paid,
        // The client's account cannot take it.
        Err(_) => Zero::zero(),
    }
}

/// Gives `who` so much that `amount` can be held on its account.
#[cfg(feature = "runtime-benchmarks")]
pub(crate) fn endow<T: Config>(who: &T::AccountId, amount: T::Balance) {
    let amount = amount.saturating_add(T::Currency::minimum_balance());
    frame_support::assert_ok!(T::Currency::mint_into(who, amount));
}
