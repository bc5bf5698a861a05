//! What is paid in advance, in an account of the pallet that keeps it. Its records say whose it is.
//!
//! No hold on the payer's account: what is on hold votes, and looks past votes and vesting, though it is its
//! owner's to give away. A transfer leaves what is frozen.
//!
//! Whatever is paid, a pot keeps the existential deposit that it has from genesis: what others are due would
//! be burned with its account.

use frame_support::traits::{
    fungible::{Inspect, Mutate, MutateHold},
    tokens::{Fortitude, Precision, Preservation},
};
use sp_runtime::{DispatchError, DispatchResult, traits::Zero};

use crate::{can_take, hand_over};

/// How much can leave an account: neither what is frozen, nor what keeps it.
pub fn payable<AccountId, Currency>(who: &AccountId) -> Currency::Balance
where
    Currency: Inspect<AccountId>,
{
    Currency::reducible_balance(who, Preservation::Preserve, Fortitude::Polite)
}

/// Puts `amount` of what `payer` can pay into a pot.
///
/// # Errors
/// The currency's own: it has not as much, it is frozen, or the account would be gone.
pub fn put<AccountId, Currency>(
    pot: &AccountId,
    payer: &AccountId,
    amount: Currency::Balance,
) -> DispatchResult
where
    Currency: Mutate<AccountId>,
    AccountId: Eq,
{
    Currency::transfer(payer, pot, amount, Preservation::Preserve).map(|_| ())
}

/// Pays `amount` to `payee`: all of it, or nothing where its account cannot take it. Says whether it did.
///
/// # Errors
/// The currency's own, when less is in the pot than that, beside its deposit.
pub fn pay<AccountId, Currency>(
    pot: &AccountId,
    payee: &AccountId,
    amount: Currency::Balance,
) -> Result<bool, DispatchError>
where
    Currency: Mutate<AccountId>,
    AccountId: Eq,
{
    if amount.is_zero() {
        return Ok(true);
    }
    if !can_take::<AccountId, Currency>(payee, amount) {
        return Ok(false);
    }
    Currency::transfer(pot, payee, amount, Preservation::Preserve)?;
    Ok(true)
}

/// Burns `amount` of a pot.
///
/// # Errors
/// The currency's own, when less is in the pot than that, beside its deposit.
pub fn burn<AccountId, Currency>(pot: &AccountId, amount: Currency::Balance) -> DispatchResult
where
    Currency: Mutate<AccountId>,
    AccountId: Eq,
{
    if amount.is_zero() {
        return Ok(());
    }
    let (preserve, exact) = (Preservation::Preserve, Precision::Exact);
    Currency::burn_from(pot, amount, preserve, exact, Fortitude::Polite).map(|_| ())
}

/// Pays to `payee`, or burns where it cannot take that. Returns how much has arrived: all or nothing.
///
/// # Errors
/// The currency's own, when less is in the pot than that, beside its deposit.
pub fn pay_or_burn<AccountId, Currency>(
    pot: &AccountId,
    payee: &AccountId,
    amount: Currency::Balance,
) -> Result<Currency::Balance, DispatchError>
where
    Currency: Mutate<AccountId>,
    AccountId: Eq,
{
    if pay::<AccountId, Currency>(pot, payee, amount)? {
        return Ok(amount);
    }
    burn::<AccountId, Currency>(pot, amount)?;
    Ok(Zero::zero())
}

/// Whether all that is recorded is in a pot beside what keeps its account. Anybody may give it more.
#[cfg(any(feature = "std", feature = "try-runtime"))]
pub fn covers<AccountId, Currency>(pot: &AccountId, recorded: Currency::Balance) -> bool
where
    Currency: Inspect<AccountId>,
{
    payable::<AccountId, Currency>(pot) >= recorded
}

/// For migrations: moves what `owner` has on hold into a pot, by force. Says whether all of it is there.
pub fn move_hold<AccountId, Currency>(
    reason: &Currency::Reason,
    pot: &AccountId,
    owner: &AccountId,
    amount: Currency::Balance,
) -> bool
where
    Currency: MutateHold<AccountId>,
    AccountId: Eq,
{
    amount.is_zero() || hand_over::<AccountId, Currency>(reason, owner, pot, amount) == Ok(true)
}
