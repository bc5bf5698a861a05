//! What is deposited in channels, and paid for demands, is in a pot: their records say whose it is.

use frame_support::traits::Get;
use sp_runtime::{DispatchError, DispatchResult, traits::AccountIdConversion};
use surety_pallet_holds::pot;

use crate::{Config, Pallet};

impl<T: Config> Pallet<T> {
    /// The account that deposits, and what demands cost, are in.
    pub fn pot() -> T::AccountId {
        pot::<T>()
    }
}

/// Where it is.
pub(crate) fn pot<T: Config>() -> T::AccountId {
    T::PotId::get().into_account_truncating()
}

/// Whether `payer` has so much that is neither frozen nor what keeps its account.
pub(crate) fn can_put<T: Config>(payer: &T::AccountId, amount: u128) -> bool {
    pot::payable::<_, T::Currency>(payer) >= amount
}

/// Takes `amount` from `payer`.
pub(crate) fn put<T: Config>(payer: &T::AccountId, amount: u128) -> DispatchResult {
    pot::put::<_, T::Currency>(&pot::<T>(), payer, amount)
}

/// Pays `amount` to `payee`: all of it, or nothing where its account cannot take it. Says whether it did.
pub(crate) fn pay<T: Config>(payee: &T::AccountId, amount: u128) -> Result<bool, DispatchError> {
    pot::pay::<_, T::Currency>(&pot::<T>(), payee, amount)
}

/// Gives `amount` back to whoever has put it there. Returns what has arrived: nothing where it is burned, too
/// little for an account that is gone.
pub(crate) fn pay_back<T: Config>(payer: &T::AccountId, amount: u128) -> Result<u128, DispatchError> {
    pot::pay_or_burn::<_, T::Currency>(&pot::<T>(), payer, amount)
}

/// Pays out the price of a demand that is over: `part` of it to the provider, where its account can take
/// that, and the rest back to who has paid it. Whoever shows, or has somebody convicted, does not wait for a
/// pot that lacks it: then it is lost.
pub(crate) fn pay_out_price<T: Config>(provider: &T::AccountId, part: u128, by: &T::AccountId, price: u128) {
    let is_paid = pay::<T>(provider, part).unwrap_or(false);
    let left = price.saturating_sub(if is_paid { part } else { 0 });
    pay_back::<T>(by, left).ok();
}

/// Whether all that is recorded can be paid.
#[cfg(any(feature = "std", feature = "try-runtime"))]
pub(crate) fn covers<T: Config>(recorded: u128) -> bool {
    pot::covers::<_, T::Currency>(&pot::<T>(), recorded)
}
