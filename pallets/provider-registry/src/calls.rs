//! What the calls do, once their origin is known.

use frame_support::ensure;
use sp_runtime::{DispatchError, DispatchResult};
use surety_types::{
    multiaddr::{self, Endpoints},
    provider::{DeviceProfile, Provider},
    stake::Role,
    traits::{Admission, StakeLedger},
};

use crate::{Config, Error, Event, Pallet, Providers};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_register(
        agent: T::AccountId,
        device: DeviceProfile,
        endpoints: Endpoints,
    ) -> DispatchResult {
        let provider = Self::provider_of(&agent)?;
        ensure!(T::Admission::is_admitted(&provider), Error::<T>::NotAdmitted);
        ensure!(!endpoints.is_empty(), Error::<T>::NoEndpoints);
        for endpoint in &endpoints {
            multiaddr::check(endpoint).map_err(Error::<T>::from)?;
        }
        let known = Providers::<T>::contains_key(&provider);
        let last_heartbeat = frame_system::Pallet::<T>::block_number();
        let entry = Provider {
            device,
            endpoints,
            last_heartbeat,
        };
        Providers::<T>::insert(&provider, entry);
        Self::deposit_event(if known {
            Event::Updated { provider }
        } else {
            Event::Registered { provider }
        });
        Ok(())
    }

    pub(crate) fn do_heartbeat(agent: T::AccountId) -> DispatchResult {
        let provider = Self::provider_of(&agent)?;
        Providers::<T>::try_mutate(&provider, |entry| {
            let entry = entry.as_mut().ok_or(Error::<T>::NotRegistered)?;
            entry.last_heartbeat = frame_system::Pallet::<T>::block_number();
            Ok::<_, DispatchError>(())
        })?;
        Self::deposit_event(Event::HeartbeatReceived { provider });
        Ok(())
    }

    pub(crate) fn do_deregister(who: T::AccountId) -> DispatchResult {
        // The stash first: it must be able to leave the list whatever has become of its stake and its agent.
        let provider = if Providers::<T>::contains_key(&who) {
            who
        } else {
            Self::provider_of(&who)?
        };
        ensure!(
            Providers::<T>::take(&provider).is_some(),
            Error::<T>::NotRegistered
        );
        Self::deposit_event(Event::Deregistered { provider });
        Ok(())
    }

    fn provider_of(agent: &T::AccountId) -> Result<T::AccountId, DispatchError> {
        T::Stake::stash_of(agent, Role::Provider).ok_or_else(|| Error::<T>::NotAgent.into())
    }
}
