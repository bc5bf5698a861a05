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

type CurrencyOf<T> = <T as Config>::Currency;

/// What is held on an account.
#[cfg(any(feature = "std", feature = "try-runtime"))]
pub fn held<T: Config>(reason: impl Into<T::RuntimeHoldReason>, who: &T::AccountId) -> T::Balance {
    use frame_support::traits::fungible::InspectHold;
    CurrencyOf::<T>::balance_on_hold(&reason.into(), who)
}

/// Puts free balance on hold.
pub fn hold<T: Config>(
    reason: impl Into<T::RuntimeHoldReason>,
    who: &T::AccountId,
    amount: T::Balance,
) -> DispatchResult {
    CurrencyOf::<T>::hold(&reason.into(), who, amount)
}

/// Makes held balance free again. Cannot fail by what callers do; should it fail all the same, it stays on
/// hold and the log says so.
pub fn release<T: Config>(reason: impl Into<T::RuntimeHoldReason>, who: &T::AccountId, amount: T::Balance) {
    let released = CurrencyOf::<T>::release(&reason.into(), who, amount, Precision::BestEffort);
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
    if CurrencyOf::<T>::can_deposit(payee, amount, Provenance::Extant) == DepositConsequence::Success {
        let moved = CurrencyOf::<T>::transfer_on_hold(
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
    let burned = CurrencyOf::<T>::burn_held(
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
    type Minting<T> = <T as surety_pallet_trust_lock::Config>::Currency;

    let amount = amount.saturating_add(CurrencyOf::<T>::minimum_balance());
    frame_support::assert_ok!(Minting::<T>::mint_into(who, amount));
}
