//! What other pallets may know of providers.

use frame_support::traits::Get;
use sp_runtime::traits::Saturating;
use surety_types::traits::{Admission, Jail, ProviderDirectory, StashClosed};

use crate::{Config, Event, Pallet, ProviderOf, Providers};

/// The weight of every provider until the chain can check a measured one; the README says why.
pub(crate) const WEIGHT_NEUTRAL: u32 = 1_000;

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

    fn weight(_stash: &T::AccountId) -> u32 {
        WEIGHT_NEUTRAL
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn register_for_benchmark(stash: &T::AccountId) {
        T::Admission::admit_for_benchmark(stash);
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
