//! What operators' pools get: emission for the day that they served, and fees by the blocks that they made.

use alloc::vec::Vec;
use frame_support::{storage::with_storage_layer, traits::Get, weights::Weight};
use sp_runtime::{
    DispatchResult,
    traits::{Saturating, Zero},
};
use surety_types::traits::{PoolLedger, ServicePay, ValidatorService};

use crate::{Config, Event, OPERATORS_MAX, Pallet, WeightInfo, asset};

/// What one operator's pool is due for a day, in plancks.
struct Due<AccountId> {
    operator: AccountId,
    minted: u128,
    fees: u128,
}

impl<T: Config> ServicePay<T::Balance> for Pallet<T> {
    fn session_pay(backing: T::Balance) -> T::Balance {
        let tau = surety_emission::tau(asset::minted::<T>());
        surety_emission::session_pay(backing.into(), tau).into()
    }

    fn session_ended(session: u32) {
        let day = T::RewardSessions::get().max(1);
        if session.saturating_add(1).checked_rem(day) != Some(0) {
            return;
        }
        // Services are given back, too, where it fails: they are paid with the next day.
        if let Err(error) = with_storage_layer(|| Self::pay_day(session)) {
            Self::deposit_event(Event::DayNotPaid { session, error });
        }
    }

    fn session_ended_weight() -> Weight {
        <T as Config>::WeightInfo::pay_day(OPERATORS_MAX)
    }
}

impl<T: Config> Pallet<T> {
    pub(crate) fn pay_day(session: u32) -> DispatchResult {
        let (from, to) = (T::ValidatorPot::get(), T::Pools::pot());
        let dues = Self::dues(asset::fees::<T>(&from));
        let minted = dues
            .iter()
            .fold(0, |sum: u128, due| sum.saturating_add(due.minted));
        let fees = dues.iter().fold(0, |sum: u128, due| sum.saturating_add(due.fees));
        asset::mint::<T>(&to, minted)?;
        asset::transfer::<T>(&from, &to, fees)?;

        let mut left = minted.saturating_add(fees);
        for due in dues {
            let amount = due.minted.saturating_add(due.fees);
            let shared = T::Pools::reward(&due.operator, amount.into());
            left.saturating_reduce(shared.into());
        }
        // Nothing, as somebody backs all of them.
        asset::burn::<T>(&to, left)?;
        if !minted.saturating_add(fees).is_zero() {
            Self::deposit_event(Event::DayPaid {
                session,
                minted: minted.into(),
                fees: fees.into(),
            });
        }
        Ok(())
    }

    /// What everybody is due who served and has somebody's stake behind it. All together no more than may be
    /// minted, and no more fees than there are.
    fn dues(fees: u128) -> Vec<Due<T::AccountId>> {
        let services = T::Services::take_services();
        let made = services
            .iter()
            .fold(0u64, |sum, (_, service)| sum.saturating_add(service.made.into()));
        let mut minted = asset::minted::<T>();
        let of_one = |(operator, service): (T::AccountId, surety_types::traits::Service<T::Balance>)| {
            if T::Pools::backing(&operator).is_zero() {
                return None;
            }
            let earned =
                surety_emission::earned(service.owed.into(), service.made, service.expected_millionths);
            let granted = surety_emission::granted(earned, minted);
            minted.saturating_accrue(granted);
            Some(Due {
                operator,
                minted: granted,
                fees: surety_emission::fees_of(fees, service.made, made),
            })
        };
        services.into_iter().filter_map(of_one).collect()
    }
}
