//! The only file that touches the currency, and the only place in the runtime where SURE is made.

use frame_support::{
    ensure,
    traits::{
        fungible::{Inspect, Mutate},
        tokens::{Fortitude, Precision, Preservation},
    },
};
use sp_runtime::{DispatchResult, traits::Zero};

use crate::{Config, Error, Minted};

/// What exists now.
pub(crate) fn issued<T: Config>() -> T::Balance {
    T::Currency::total_issuance()
}

/// All that was ever minted, in plancks. What exists was, whoever made it.
pub(crate) fn minted<T: Config>() -> u128 {
    Minted::<T>::get().max(issued::<T>()).into()
}

/// Mints `amount`: all of it or nothing.
///
/// # Errors
/// `BeyondCap`, whatever callers have computed; the currency's own where the account cannot take it.
pub(crate) fn mint<T: Config>(payee: &T::AccountId, amount: u128) -> DispatchResult {
    let minted = minted::<T>();
    ensure!(amount <= surety_emission::left(minted), Error::<T>::BeyondCap);
    if amount.is_zero() {
        return Ok(());
    }
    T::Currency::mint_into(payee, amount.into())?;
    Minted::<T>::put(T::Balance::from(minted.saturating_add(amount)));
    Ok(())
}

/// Fees that validators have not got yet.
pub(crate) fn fees<T: Config>(pot: &T::AccountId) -> u128 {
    T::Currency::reducible_balance(pot, Preservation::Preserve, Fortitude::Polite).into()
}

/// Moves fees from one pot to another.
pub(crate) fn transfer<T: Config>(from: &T::AccountId, to: &T::AccountId, amount: u128) -> DispatchResult {
    if amount.is_zero() {
        return Ok(());
    }
    T::Currency::transfer(from, to, amount.into(), Preservation::Preserve).map(|_| ())
}

/// Burns what nobody wanted.
pub(crate) fn burn<T: Config>(pot: &T::AccountId, amount: u128) -> DispatchResult {
    if amount.is_zero() {
        return Ok(());
    }
    let (preserve, exact) = (Preservation::Preserve, Precision::Exact);
    T::Currency::burn_from(pot, amount.into(), preserve, exact, Fortitude::Polite).map(|_| ())
}
