//! The only file that touches the currency. Deposits stay on their owner's account, on hold.

#[cfg(any(feature = "std", feature = "try-runtime"))]
use alloc::collections::BTreeMap;
use frame_support::traits::{fungible::hold::Mutate as _, tokens::Precision};
use sp_runtime::DispatchResult;

use crate::{BalanceOf, Config, HoldReason};

/// Whether what every account has on hold is what is recorded of it.
#[cfg(any(feature = "std", feature = "try-runtime"))]
pub(crate) fn are_recorded<T: Config>(recorded: &BTreeMap<T::AccountId, BalanceOf<T>>) -> bool {
    surety_pallet_holds::are_recorded::<T, T::Currency>(&HoldReason::ModelDeposit.into(), recorded)
}

/// Puts free balance on hold.
pub(crate) fn hold<T: Config>(owner: &T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
    T::Currency::hold(&HoldReason::ModelDeposit.into(), owner, amount)
}

/// Makes held balance free: all of `amount`, or nothing.
pub(crate) fn release<T: Config>(owner: &T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
    T::Currency::release(&HoldReason::ModelDeposit.into(), owner, amount, Precision::Exact).map(|_| ())
}

/// Mints a deposit and what the account needs to exist.
#[cfg(feature = "runtime-benchmarks")]
pub(crate) fn endow<T: Config>(owner: &T::AccountId) -> DispatchResult {
    use frame_support::traits::{
        Get,
        fungible::{Inspect as _, Mutate as _},
    };
    use sp_runtime::Saturating;

    let amount = T::ModelDeposit::get().saturating_add(T::Currency::minimum_balance());
    T::Currency::mint_into(owner, amount).map(|_| ())
}
