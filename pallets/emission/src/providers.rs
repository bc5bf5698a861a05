//! What providers get for work, beyond its price.

use frame_support::traits::{Defensive, Get};
use sp_runtime::{
    SaturatedConversion,
    traits::{Saturating, Zero},
};
use surety_types::{
    stake::Role,
    traits::{Reliability, StakeLedger, WorkPay},
};

use crate::{Allowance, Allowances, Config, Event, Pallet, asset};

impl<T: Config> WorkPay<T::AccountId, T::Balance> for Pallet<T> {
    fn note_settled(provider: &T::AccountId, fee: T::Balance) {
        let allowance = Self::allowance_now(provider);
        let claimed = surety_emission::claimed(fee.into(), T::ValidatorShare::get(), allowance);
        if T::Stake::bonded(provider, Role::Provider).is_zero() {
            Allowances::<T>::remove(provider);
            return;
        }
        let minted = asset::minted::<T>();
        let missed = T::Reliability::missed(provider);
        let wanted = surety_emission::work_pay(claimed, surety_emission::tau(minted), missed);
        let amount = surety_emission::granted(wanted, minted);
        // Who has stake has an account, and no more is asked for than is left.
        if asset::mint::<T>(provider, amount).defensive().is_err() {
            return;
        }
        let left = Allowance {
            amount: allowance.saturating_sub(claimed).into(),
            since: frame_system::Pallet::<T>::block_number(),
        };
        Allowances::<T>::insert(provider, left);
        if !amount.is_zero() {
            Self::deposit_event(Event::WorkPaid {
                provider: provider.clone(),
                minted: amount.into(),
            });
        }
    }
}

impl<T: Config> Pallet<T> {
    /// What a provider's work could claim now. Stake that is there now was there ever since it has last
    /// grown: until then it counts, and once.
    pub(crate) fn allowance_now(provider: &T::AccountId) -> u128 {
        let known = Allowances::<T>::get(provider);
        let now = frame_system::Pallet::<T>::block_number();
        let uncounted = known.map_or(u32::MAX, |known| now.saturating_sub(known.since).saturated_into());
        let blocks = uncounted.min(T::Stake::settled_for(provider));
        let bonded = T::Stake::bonded(provider, Role::Provider);
        let before = known.map_or(0, |known| known.amount.into());
        surety_emission::replenished(before, bonded.into(), blocks)
    }
}
