//! Money on hold: prices of demands, and bonds for pallets that build on this one.

use frame_support::{
    dispatch::DispatchResult,
    traits::{
        Defensive,
        fungible::{Inspect, MutateHold},
        tokens::{DepositConsequence, Fortitude, Precision, Provenance, Restriction},
    },
};
use sp_runtime::traits::Zero;

use crate::Config;

/// What is held on an account.
#[cfg(any(feature = "std", feature = "try-runtime"))]
pub fn held<T: Config>(reason: impl Into<T::RuntimeHoldReason>, who: &T::AccountId) -> T::Balance {
    use frame_support::traits::fungible::InspectHold;
    T::Currency::balance_on_hold(&reason.into(), who)
}

/// Puts free balance on hold.
pub fn hold<T: Config>(
    reason: impl Into<T::RuntimeHoldReason>,
    who: &T::AccountId,
    amount: T::Balance,
) -> DispatchResult {
    T::Currency::hold(&reason.into(), who, amount)
}

/// Makes held balance free again. Cannot fail by what callers do; should it fail all the same, it stays on
/// hold and the log says so.
pub fn release<T: Config>(reason: impl Into<T::RuntimeHoldReason>, who: &T::AccountId, amount: T::Balance) {
    let released = T::Currency::release(&reason.into(), who, amount, Precision::BestEffort);
    released.defensive_unwrap_or_default();
}

/// Moves held balance to `payee`. Returns what arrived: all of it, or nothing where `payee` cannot take it;
/// it is burned then.
pub fn hand_over<T: Config>(
    reason: impl Into<T::RuntimeHoldReason>,
    from: &T::AccountId,
    payee: &T::AccountId,
    amount: T::Balance,
) -> T::Balance {
    let reason: T::RuntimeHoldReason = reason.into();
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

/// Takes held balance away.
pub fn burn<T: Config>(reason: impl Into<T::RuntimeHoldReason>, who: &T::AccountId, amount: T::Balance) {
    let burned = T::Currency::burn_held(
        &reason.into(),
        who,
        amount,
        Precision::BestEffort,
        Fortitude::Force,
    );
    burned.defensive_unwrap_or_default();
}

/// Gives `who` so much that `amount` can be held on its account.
#[cfg(feature = "runtime-benchmarks")]
pub fn endow<T: Config>(who: &T::AccountId, amount: T::Balance) {
    use frame_support::traits::fungible::Mutate;
    use sp_runtime::Saturating;

    let amount = amount.saturating_add(T::Currency::minimum_balance());
    frame_support::assert_ok!(T::Currency::mint_into(who, amount));
}
