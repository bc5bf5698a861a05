//! The only file that touches the currency. Stake stays on its owner's account, on hold.

#[cfg(any(feature = "std", feature = "try-runtime"))]
use alloc::collections::BTreeMap;
use frame_support::traits::{
    Defensive,
    fungible::hold::Mutate as _,
    tokens::{Fortitude, Precision},
};
use sp_runtime::DispatchResult;

use crate::{BalanceOf, Config, HoldReason};

/// Whether what every account has on hold is what is recorded of it.
#[cfg(any(feature = "std", feature = "try-runtime"))]
pub(crate) fn are_recorded<T: Config>(recorded: &BTreeMap<T::AccountId, BalanceOf<T>>) -> bool {
    surety_pallet_holds::are_recorded::<T, T::Currency>(&HoldReason::Stake.into(), recorded)
}

/// Puts free balance on hold.
pub(crate) fn hold<T: Config>(stash: &T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
    T::Currency::hold(&HoldReason::Stake.into(), stash, amount)
}

/// Makes held balance free: all of `amount`, or nothing.
pub(crate) fn release<T: Config>(stash: &T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
    T::Currency::release(&HoldReason::Stake.into(), stash, amount, Precision::Exact).map(|_| ())
}

/// Burns held balance: up to `amount`, and says how much it was. A burn cannot fail by what callers do;
/// should it fail all the same, nothing is burned and the log says so.
pub(crate) fn burn<T: Config>(stash: &T::AccountId, amount: BalanceOf<T>) -> BalanceOf<T> {
    let reason = HoldReason::Stake.into();
    T::Currency::burn_held(&reason, stash, amount, Precision::BestEffort, Fortitude::Force)
        .defensive_unwrap_or_default()
}

/// Hands held balance to `payee`: all of `amount`, or nothing where its account cannot take it. Says whether
/// it did.
pub(crate) fn award<T: Config>(stash: &T::AccountId, payee: &T::AccountId, amount: BalanceOf<T>) -> bool {
    let reason = HoldReason::Stake.into();
    surety_pallet_holds::hand_over::<_, T::Currency>(&reason, stash, payee, amount) == Ok(true)
}

/// Mints `amount` and what the account needs to exist, so that it can bond `amount`.
#[cfg(feature = "runtime-benchmarks")]
pub(crate) fn endow<T: Config>(stash: &T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
    use frame_support::traits::fungible::{Inspect as _, Mutate as _};
    use sp_runtime::Saturating;

    let amount = amount.saturating_add(T::Currency::minimum_balance());
    T::Currency::mint_into(stash, amount).map(|_| ())
}
