//! What operators' pools get: emission for the day that they served, and fees by the blocks that they made.
//! Emission for what they served of a day before they leave they get then.

use alloc::{vec, vec::Vec};
use frame_support::{storage::with_storage_layer, traits::Get, weights::Weight};
use sp_runtime::{
    DispatchError, DispatchResult,
    traits::{Saturating, Zero},
};
use surety_types::traits::{LeavingPay, PoolLedger, Service, ServicePay, ValidatorService};

use crate::{Config, Event, OPERATORS_MAX, Pallet, WeightInfo, asset};

/// What operators did.
type Services<T> = Vec<(
    <T as frame_system::Config>::AccountId,
    Service<<T as Config>::Balance>,
)>;

/// What one operator's pool is due, in plancks.
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

impl<T: Config> LeavingPay<T::AccountId> for Pallet<T> {
    fn pay_leaving(operator: &T::AccountId) {
        // Stake leaves whether or not it can be paid.
        if let Err(error) = with_storage_layer(|| Self::pay_one(operator)) {
            Self::deposit_event(Event::LeavingNotPaid {
                operator: operator.clone(),
                error,
            });
        }
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn serve_for_benchmark(operator: &T::AccountId) {
        let service = Service {
            made: 2,
            expected_millionths: 1_500_000,
            owed: surety_emission::SURE.into(),
            paid: (0, 0),
        };
        T::Services::serve_for_benchmark(operator, service);
        for pot in [T::ValidatorPot::get(), T::Pools::pot()] {
            frame_support::assert_ok!(asset::mint::<T>(&pot, surety_emission::SURE));
        }
    }
}

impl<T: Config> Pallet<T> {
    pub(crate) fn pay_day(session: u32) -> DispatchResult {
        let services = T::Services::take_services();
        let made = services.iter().fold(0u64, |sum, (_, service)| {
            sum.saturating_add(service.all_made().into())
        });
        let fees = asset::fees::<T>(&T::ValidatorPot::get());
        let (minted, fees) = Self::pay(services, made, fees)?;
        if !minted.saturating_add(fees).is_zero() {
            Self::deposit_event(Event::DayPaid {
                session,
                minted: minted.into(),
                fees: fees.into(),
            });
        }
        Ok(())
    }

    fn pay_one(operator: &T::AccountId) -> DispatchResult {
        let Some(service) = T::Services::take_owed(operator) else {
            return Ok(());
        };
        // What there will be of fees is known when the day is over: part of those that there are by now would
        // be more for whoever has had others' blocks become fewer than it has.
        let (minted, _) = Self::pay(vec![(operator.clone(), service)], 0, 0)?;
        if !minted.is_zero() {
            Self::deposit_event(Event::LeavingPaid {
                operator: operator.clone(),
                minted: minted.into(),
            });
        }
        Ok(())
    }

    /// Pays for services, of all who have made so many blocks together, and shares so much of fees. Returns
    /// what was minted, and the fees that were paid.
    fn pay(services: Services<T>, made: u64, fees: u128) -> Result<(u128, u128), DispatchError> {
        let (from, to) = (T::ValidatorPot::get(), T::Pools::pot());
        let dues = Self::dues(services, made, fees);
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
        Ok((minted, fees))
    }

    /// What everybody is due who served and has somebody's stake behind it. All together no more than may be
    /// minted, and no more fees than there are.
    fn dues(services: Services<T>, made: u64, fees: u128) -> Vec<Due<T::AccountId>> {
        let mut minted = asset::minted::<T>();
        let of_one = |(operator, service): (T::AccountId, Service<T::Balance>)| {
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
                fees: surety_emission::fees_of(fees, service.all_made(), made),
            })
        };
        services.into_iter().filter_map(of_one).collect()
    }
}
