//! The invariants of the README, one function each.

use frame_support::ensure;
use sp_runtime::TryRuntimeError;
use surety_types::multiaddr;

use crate::{Config, Pallet, Providers};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        Self::prov_1_endpoints_are_well_formed()?;
        Self::prov_2_heartbeats_are_past()
    }

    fn prov_1_endpoints_are_well_formed() -> Result<(), TryRuntimeError> {
        for provider in Providers::<T>::iter_values() {
            ensure!(
                !provider.endpoints.is_empty(),
                "PROV-1: a provider has no endpoint"
            );
            let sound = provider
                .endpoints
                .iter()
                .all(|endpoint| multiaddr::check(endpoint).is_ok());
            ensure!(sound, "PROV-1: an endpoint is not well-formed");
        }
        Ok(())
    }

    fn prov_2_heartbeats_are_past() -> Result<(), TryRuntimeError> {
        let now = frame_system::Pallet::<T>::block_number();
        for provider in Providers::<T>::iter_values() {
            ensure!(
                provider.last_heartbeat <= now,
                "PROV-2: a heartbeat lies in the future"
            );
        }
        Ok(())
    }
}
