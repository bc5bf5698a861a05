//! The only user of the currency. Escrow is in a pot: its records say whose it is.

use frame_support::{dispatch::DispatchResult, traits::Get};
use sp_runtime::{DispatchError, traits::AccountIdConversion};
use surety_pallet_holds::pot;

use crate::{BalanceOf, Config, HoldReason};

/// What became of an amount that somebody was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The payee has it.
    Arrived,
    /// The payee's account could not take it.
    Burned,
}

/// Where escrow is.
pub(crate) fn pot<T: Config>() -> T::AccountId {
    T::PotId::get().into_account_truncating()
}

/// Takes `amount` from the client: not what is frozen on its account, nor what keeps that.
pub(crate) fn take<T: Config>(client: &T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
    pot::put::<_, T::Currency>(&pot::<T>(), client, amount)
}

/// Pays `amount` of what is in escrow to `payee`, or burns it when `payee` cannot take it.
pub(crate) fn deliver<T: Config>(
    payee: &T::AccountId,
    amount: BalanceOf<T>,
) -> Result<Delivery, DispatchError> {
    let arrived = pot::pay_or_burn::<_, T::Currency>(&pot::<T>(), payee, amount)?;
    Ok(if arrived == amount {
        Delivery::Arrived
    } else {
        Delivery::Burned
    })
}

/// Burns `amount` of what is in escrow.
pub(crate) fn burn<T: Config>(amount: BalanceOf<T>) -> DispatchResult {
    pot::burn::<_, T::Currency>(&pot::<T>(), amount)
}

/// Whether all that is recorded can be paid.
#[cfg(any(feature = "std", feature = "try-runtime"))]
pub(crate) fn covers<T: Config>(recorded: BalanceOf<T>) -> bool {
    pot::covers::<_, T::Currency>(&pot::<T>(), recorded)
}

/// Whether nothing is on hold any more, as escrow was.
#[cfg(any(feature = "std", feature = "try-runtime"))]
pub(crate) fn is_nothing_on_hold<T: Config>() -> bool {
    let nothing = Default::default();
    surety_pallet_holds::are_recorded::<T, T::Currency>(&HoldReason::Escrow.into(), &nothing)
}

/// For the migration: moves what a client has on hold into the pot.
pub(crate) fn move_hold<T: Config>(client: &T::AccountId, amount: BalanceOf<T>) -> bool {
    pot::move_hold::<_, T::Currency>(&HoldReason::Escrow.into(), &pot::<T>(), client, amount)
}

/// Gives `who` so much that `amount` can be taken from its account, and the pot its own.
#[cfg(feature = "runtime-benchmarks")]
pub(crate) fn endow<T: Config>(who: &T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
    use frame_support::traits::fungible::{Inspect, Mutate};
    use sp_runtime::Saturating;
    let least = T::Currency::minimum_balance();
    T::Currency::mint_into(&pot::<T>(), least)?;
    T::Currency::mint_into(who, amount.saturating_add(least))?;
    Ok(())
}
