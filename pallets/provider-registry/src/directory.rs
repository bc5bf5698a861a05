//! What other pallets may know of providers.

use frame_support::traits::Get;
use sp_runtime::traits::Saturating;
use surety_types::{
    speed::{Requirements, Tier},
    traits::{Admission, Jail, MeasuredSpeed, ProviderDirectory, StashClosed},
};

use crate::{Config, Event, Pallet, ProviderOf, Providers};

/// The weight of a provider that was not measured, or is slow; the README says why they are what they are.
pub(crate) const WEIGHT_NEUTRAL: u32 = 1_000;
pub(crate) const WEIGHT_B: u32 = 1_100;
pub(crate) const WEIGHT_A: u32 = 1_250;

impl<T: Config> ProviderDirectory<T::AccountId> for Pallet<T> {
    fn is_available(stash: &T::AccountId) -> bool {
        let now = frame_system::Pallet::<T>::block_number();
        let heard_of = |provider: ProviderOf<T>| {
            now <= provider.last_heartbeat.saturating_add(T::HeartbeatWindow::get())
        };
        Providers::<T>::get(stash).is_some_and(heard_of)
            && !T::Jail::is_jailed(stash)
            && T::Admission::is_admitted(stash)
    }

    fn weight(stash: &T::AccountId) -> u32 {
        match T::Speed::measured(stash).map(|measured| measured.tier) {
            Some(Tier::A) => WEIGHT_A,
            Some(Tier::B) => WEIGHT_B,
            Some(Tier::C) | None => WEIGHT_NEUTRAL,
        }
    }

    fn meets(stash: &T::AccountId, requirements: &Requirements) -> bool {
        // Each is looked up only where it is asked for.
        let declared = requirements
            .region
            .and_then(|_| Providers::<T>::get(stash)?.device.region);
        let measured = requirements
            .ask_for_measured()
            .then(|| T::Speed::measured(stash))
            .flatten();
        requirements.are_met_by(declared, measured.as_ref())
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn register_for_benchmark(stash: &T::AccountId) {
        T::Admission::admit_for_benchmark(stash);
        T::Speed::measure_for_benchmark(stash);
        Providers::<T>::insert(stash, crate::benchmarking::largest::<T>());
    }
}

impl<T: Config> StashClosed<T::AccountId> for Pallet<T> {
    fn closed(stash: &T::AccountId) {
        if Providers::<T>::take(stash).is_some() {
            Self::deposit_event(Event::Deregistered {
                provider: stash.clone(),
            });
        }
    }
}
