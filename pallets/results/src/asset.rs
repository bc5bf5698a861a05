//! Money on hold: prices of demands, and bonds for pallets that build on this one.

#[cfg(any(feature = "std", feature = "try-runtime"))]
use alloc::collections::BTreeMap;
use frame_support::{
    dispatch::DispatchResult,
    traits::{
        Defensive,
        fungible::{InspectHold, MutateHold},
        tokens::{Fortitude, Precision},
    },
};
use sp_runtime::{DispatchError, TokenError, traits::Zero};

use crate::Config;

type CurrencyOf<T> = <T as Config>::Currency;

/// Whether what every account has on hold is what is recorded of it.
#[cfg(any(feature = "std", feature = "try-runtime"))]
pub fn are_recorded<T: Config>(
    reason: impl Into<T::RuntimeHoldReason>,
    recorded: &BTreeMap<T::AccountId, T::Balance>,
) -> bool {
    surety_pallet_holds::are_recorded::<T, CurrencyOf<T>>(&reason.into(), recorded)
}

/// Puts free balance on hold.
pub fn hold<T: Config>(
    reason: impl Into<T::RuntimeHoldReason>,
    who: &T::AccountId,
    amount: T::Balance,
) -> DispatchResult {
    CurrencyOf::<T>::hold(&reason.into(), who, amount)
}

/// Puts balance on hold for what an agent does: its own, or its stash's where it has none. Says whose.
pub fn hold_for_work<T: Config>(
    reason: impl Into<T::RuntimeHoldReason>,
    (agent, stash): (&T::AccountId, &T::AccountId),
    amount: T::Balance,
) -> Result<T::AccountId, DispatchError> {
    let reason: T::RuntimeHoldReason = reason.into();
    for payer in [agent, stash] {
        if CurrencyOf::<T>::can_hold(&reason, payer, amount) {
            CurrencyOf::<T>::hold(&reason, payer, amount)?;
            return Ok(payer.clone());
        }
    }
    Err(TokenError::FundsUnavailable.into())
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
    if surety_pallet_holds::hand_over::<_, CurrencyOf<T>>(&reason, from, payee, amount) == Ok(true) {
        return amount;
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
    use frame_support::traits::fungible::{Inspect, Mutate};
    use sp_runtime::Saturating;
    type Minting<T> = <T as surety_pallet_trust_lock::Config>::Currency;

    let amount = amount.saturating_add(CurrencyOf::<T>::minimum_balance());
    frame_support::assert_ok!(Minting::<T>::mint_into(who, amount));
}
