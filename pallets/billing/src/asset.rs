//! The only user of the currency.

#[cfg(any(feature = "std", feature = "try-runtime"))]
use alloc::collections::BTreeMap;
use frame_support::{
    dispatch::DispatchResult,
    traits::{
        fungible::MutateHold,
        tokens::{Fortitude, Precision},
    },
};
use sp_runtime::{DispatchError, traits::Zero};
use surety_pallet_holds::{can_take, hand_over};

use crate::{BalanceOf, Config, HoldReason};

/// What became of an amount that somebody was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The payee has it.
    Arrived,
    /// The payee's account could not take it.
    Burned,
}

/// Holds `amount` on the client's account.
pub(crate) fn hold<T: Config>(client: &T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
    T::Currency::hold(&HoldReason::Escrow.into(), client, amount)
}

/// Whether what every account has on hold is what is recorded of it.
#[cfg(any(feature = "std", feature = "try-runtime"))]
pub(crate) fn are_recorded<T: Config>(recorded: &BTreeMap<T::AccountId, BalanceOf<T>>) -> bool {
    surety_pallet_holds::are_recorded::<T, T::Currency>(&HoldReason::Escrow.into(), recorded)
}

/// Moves `amount` of the client's escrow to `payee`, or burns it when `payee` cannot take it.
pub(crate) fn deliver<T: Config>(
    client: &T::AccountId,
    payee: &T::AccountId,
    amount: BalanceOf<T>,
) -> Result<Delivery, DispatchError> {
    if hand_over::<_, T::Currency>(&HoldReason::Escrow.into(), client, payee, amount)? {
        return Ok(Delivery::Arrived);
    }
    burn::<T>(client, amount)?;
    Ok(Delivery::Burned)
}

/// Returns `amount` of its escrow to the client, or burns it when the client's account cannot take it.
pub(crate) fn release<T: Config>(
    client: &T::AccountId,
    amount: BalanceOf<T>,
) -> Result<Delivery, DispatchError> {
    if !can_take::<_, T::Currency>(client, amount) {
        burn::<T>(client, amount)?;
        return Ok(Delivery::Burned);
    }
    T::Currency::release(&HoldReason::Escrow.into(), client, amount, Precision::Exact)?;
    Ok(Delivery::Arrived)
}

/// Burns `amount` of the client's escrow.
pub(crate) fn burn<T: Config>(client: &T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
    if !amount.is_zero() {
        T::Currency::burn_held(
            &HoldReason::Escrow.into(),
            client,
            amount,
            Precision::Exact,
            Fortitude::Force,
        )?;
    }
    Ok(())
}

/// Gives `who` so much that `amount` can be held on its account.
#[cfg(feature = "runtime-benchmarks")]
pub(crate) fn endow<T: Config>(who: &T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
    use frame_support::traits::fungible::{Inspect, Mutate};
    use sp_runtime::Saturating;
    T::Currency::mint_into(who, amount.saturating_add(T::Currency::minimum_balance()))?;
    Ok(())
}
