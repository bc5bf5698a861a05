//! The only file that touches the currency. Stake stays on its owner's account, on hold; rewards are in a
//! pot.

#[cfg(any(feature = "std", feature = "try-runtime"))]
use alloc::collections::BTreeMap;
use frame_support::traits::{
    Defensive, Get,
    fungible::{Mutate as _, hold::Mutate as _},
    tokens::{Fortitude, Precision, Preservation},
};
use sp_runtime::{DispatchResult, traits::AccountIdConversion};

use crate::{Config, HoldReason};

/// Whether what every account has on hold is what is recorded of it.
#[cfg(any(feature = "std", feature = "try-runtime"))]
pub(crate) fn are_recorded<T: Config>(recorded: &BTreeMap<T::AccountId, u128>) -> bool {
    surety_pallet_holds::are_recorded::<T, T::Currency>(&HoldReason::Delegated.into(), recorded)
}

/// Puts free balance on hold.
pub(crate) fn hold<T: Config>(who: &T::AccountId, amount: u128) -> DispatchResult {
    T::Currency::hold(&HoldReason::Delegated.into(), who, amount)
}

/// Makes held balance free: all of `amount`, or nothing.
pub(crate) fn release<T: Config>(who: &T::AccountId, amount: u128) -> DispatchResult {
    T::Currency::release(&HoldReason::Delegated.into(), who, amount, Precision::Exact).map(|_| ())
}

/// Burns held balance: up to `amount`, and says how much it was. A burn cannot fail by what callers do;
/// should it fail all the same, nothing is burned and the log says so.
pub(crate) fn burn<T: Config>(who: &T::AccountId, amount: u128) -> u128 {
    let reason = HoldReason::Delegated.into();
    T::Currency::burn_held(&reason, who, amount, Precision::BestEffort, Fortitude::Force)
        .defensive_unwrap_or_default()
}

/// Where rewards wait.
pub(crate) fn pot<T: Config>() -> T::AccountId {
    T::PotId::get().into_account_truncating()
}

/// What is in the pot beside what keeps its account.
pub(crate) fn in_pot<T: Config>() -> u128 {
    surety_pallet_holds::pot::payable::<_, T::Currency>(&pot::<T>())
}

/// Pays out of the pot.
pub(crate) fn pay<T: Config>(payee: &T::AccountId, amount: u128) -> DispatchResult {
    T::Currency::transfer(&pot::<T>(), payee, amount, Preservation::Preserve).map(|_| ())
}

/// Burns what is in the pot for somebody who cannot take it.
pub(crate) fn burn_unpaid<T: Config>(amount: u128) -> DispatchResult {
    surety_pallet_holds::pot::burn::<_, T::Currency>(&pot::<T>(), amount)
}

/// Mints `amount` and what the account needs to exist.
#[cfg(feature = "runtime-benchmarks")]
pub(crate) fn endow<T: Config>(who: &T::AccountId, amount: u128) -> DispatchResult {
    use frame_support::traits::fungible::Inspect as _;

    let amount = amount.saturating_add(T::Currency::minimum_balance());
    T::Currency::mint_into(who, amount).map(|_| ())
}
