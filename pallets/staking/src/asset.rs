//! The only file that touches the currency. Stake stays on its owner's account, on hold.

use frame_support::traits::{
    Defensive,
    fungible::{Inspect as _, hold::Mutate as _},
    tokens::{DepositConsequence, Fortitude, Precision, Provenance, Restriction},
};
use sp_runtime::DispatchResult;

use crate::{BalanceOf, Config, HoldReason};

/// What is on hold as stake.
#[cfg(any(feature = "std", feature = "try-runtime"))]
pub(crate) fn held<T: Config>(stash: &T::AccountId) -> BalanceOf<T> {
    use frame_support::traits::fungible::hold::Inspect as _;

    T::Currency::balance_on_hold(&HoldReason::Stake.into(), stash)
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
    let can_take = T::Currency::can_deposit(payee, amount, Provenance::Extant) == DepositConsequence::Success;
    can_take
        && T::Currency::transfer_on_hold(
            &reason,
            stash,
            payee,
            amount,
            Precision::Exact,
            Restriction::Free,
            Fortitude::Force,
        )
        .is_ok()
}

/// Mints `amount` and what the account needs to exist, so that it can bond `amount`.
#[cfg(feature = "runtime-benchmarks")]
pub(crate) fn endow<T: Config>(stash: &T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
    use frame_support::traits::fungible::Mutate as _;
    use sp_runtime::Saturating;

    let amount = amount.saturating_add(T::Currency::minimum_balance());
    T::Currency::mint_into(stash, amount).map(|_| ())
}
