//! What the pallets that keep money need beside the currency's own traits: to hand what is on hold to
//! somebody else, to see that none is on hold that no record explains, and to pay out of pots.
//!
//! No pallet: it has no storage and no calls. What can be lost is on hold on its owner's account, and votes;
//! what is paid in advance is in a [`pot`]. Pallets decide themselves what becomes of what a payee cannot
//! take.

#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

extern crate alloc;

pub mod pot;

#[cfg(any(feature = "std", feature = "try-runtime"))]
use alloc::collections::BTreeMap;
#[cfg(any(feature = "std", feature = "try-runtime"))]
use frame_support::traits::fungible::InspectHold;
use frame_support::traits::{
    fungible::{Inspect, MutateHold},
    tokens::{DepositConsequence, Fortitude, Precision, Provenance, Restriction},
};
use sp_runtime::DispatchError;
#[cfg(any(feature = "std", feature = "try-runtime"))]
use sp_runtime::traits::Zero;

/// Whether an account can take `amount`: it is there, or would be with that.
pub fn can_take<AccountId, Currency>(payee: &AccountId, amount: Currency::Balance) -> bool
where
    Currency: Inspect<AccountId>,
{
    Currency::can_deposit(payee, amount, Provenance::Extant) == DepositConsequence::Success
}

/// Hands `amount` of what `from` has on hold to `payee`, free: all of it, or nothing where the payee's
/// account cannot take it. Says whether it did.
///
/// By force: a freeze on the account covers what is on hold, too, and would let its owner withhold what it
/// owes.
///
/// # Errors
/// The currency's own, when less is on hold than that.
pub fn hand_over<AccountId, Currency>(
    reason: &Currency::Reason,
    from: &AccountId,
    payee: &AccountId,
    amount: Currency::Balance,
) -> Result<bool, DispatchError>
where
    Currency: MutateHold<AccountId>,
    AccountId: Eq,
{
    if !can_take::<AccountId, Currency>(payee, amount) {
        return Ok(false);
    }
    Currency::transfer_on_hold(
        reason,
        from,
        payee,
        amount,
        Precision::Exact,
        Restriction::Free,
        Fortitude::Force,
    )?;
    Ok(true)
}

/// Whether every account of the chain has on hold for `reason` what is recorded of it, and nothing where
/// nothing is: a hold that its record was removed from is money that nobody gets back.
#[cfg(any(feature = "std", feature = "try-runtime"))]
pub fn are_recorded<T, Currency>(
    reason: &Currency::Reason,
    recorded: &BTreeMap<T::AccountId, Currency::Balance>,
) -> bool
where
    T: frame_system::Config,
    Currency: InspectHold<T::AccountId>,
{
    let held = |who: &T::AccountId| Currency::balance_on_hold(reason, who);
    recorded.iter().all(|(who, amount)| held(who) == *amount)
        && frame_system::Account::<T>::iter_keys()
            .all(|who| recorded.contains_key(&who) || held(&who).is_zero())
}
