//! What is deposited in channels, and paid for demands, is in a pot: their records say whose it is.

use frame_support::traits::Get;
use sp_runtime::{DispatchError, DispatchResult, traits::AccountIdConversion};
use surety_pallet_holds::pot;

use crate::{Config, HoldReason};

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

/// Whether nothing is on hold any more, as deposits and prices were.
#[cfg(any(feature = "std", feature = "try-runtime"))]
pub(crate) fn is_nothing_on_hold<T: Config>() -> bool {
    let nothing = Default::default();
    [HoldReason::Channel, HoldReason::Demand]
        .into_iter()
        .all(|reason| surety_pallet_holds::are_recorded::<T, T::Currency>(&reason.into(), &nothing))
}

/// For the migration: moves what somebody has on hold into the pot.
pub(crate) fn move_hold<T: Config>(reason: HoldReason, who: &T::AccountId, amount: u128) -> bool {
    pot::move_hold::<_, T::Currency>(&reason.into(), &pot::<T>(), who, amount)
}
