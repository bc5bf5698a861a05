//! The only user of the currency.

use frame_support::{
    dispatch::DispatchResult,
    traits::{
        fungible::{Inspect, MutateHold},
        tokens::{DepositConsequence, Fortitude, Precision, Provenance, Restriction},
    },
};
use sp_runtime::{DispatchError, traits::Zero};

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

/// What is held on the client's account for all its tasks.
#[cfg(any(feature = "std", feature = "try-runtime"))]
pub(crate) fn held<T: Config>(client: &T::AccountId) -> BalanceOf<T> {
    use frame_support::traits::fungible::InspectHold;
    T::Currency::balance_on_hold(&HoldReason::Escrow.into(), client)
}

/// Moves `amount` of the client's escrow to `payee`, or burns it when `payee` cannot take it.
pub(crate) fn deliver<T: Config>(
    client: &T::AccountId,
    payee: &T::AccountId,
    amount: BalanceOf<T>,
) -> Result<Delivery, DispatchError> {
    if !can_take::<T>(payee, amount) {
        burn::<T>(client, amount)?;
        return Ok(Delivery::Burned);
    }
    // By force: a freeze on the client's account covers what is held, too, and would let it withhold pay.
    T::Currency::transfer_on_hold(
        &HoldReason::Escrow.into(),
        client,
        payee,
        amount,
        Precision::Exact,
        Restriction::Free,
        Fortitude::Force,
    )?;
    Ok(Delivery::Arrived)
}

/// Returns `amount` of its escrow to the client, or burns it when the client's account cannot take it.
pub(crate) fn release<T: Config>(
    client: &T::AccountId,
    amount: BalanceOf<T>,
) -> Result<Delivery, DispatchError> {
    if !can_take::<T>(client, amount) {
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

fn can_take<T: Config>(payee: &T::AccountId, amount: BalanceOf<T>) -> bool {
    T::Currency::can_deposit(payee, amount, Provenance::Extant) == DepositConsequence::Success
}

/// Gives `who` so much that `amount` can be held on its account.
#[cfg(feature = "runtime-benchmarks")]
pub(crate) fn endow<T: Config>(who: &T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
    use frame_support::traits::fungible::Mutate;
    use sp_runtime::Saturating;
    T::Currency::mint_into(who, amount.saturating_add(T::Currency::minimum_balance()))?;
    Ok(())
}
