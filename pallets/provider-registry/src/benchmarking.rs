//! Benchmarks, each with the largest entry that fits.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark that panics has failed"
)]

use frame_benchmarking::{account, v2::*};
use frame_system::RawOrigin;
use sp_runtime::{SaturatedConversion, traits::One};
use surety_types::{
    limits::{ENDPOINTS_MAX, MULTIADDR_BYTES_MAX, NAME_BYTES_MAX},
    model::Name,
    multiaddr::{Endpoint, Endpoints},
    provider::{DeviceKind, DeviceProfile, Provider},
    stake::Role,
    traits::StakeLedger,
};

use crate::{Call, Config, Pallet, ProviderOf, Providers};

/// The largest entry there can be, heard of just now.
pub(crate) fn largest<T: Config>() -> ProviderOf<T> {
    let mut endpoints = Endpoints::new();
    for _ in 0..ENDPOINTS_MAX {
        endpoints.force_push(longest_endpoint());
    }
    Provider {
        device: DeviceProfile {
            name: Name::cut(&"n".repeat(NAME_BYTES_MAX.saturated_into())),
            kind: DeviceKind::Cuda,
            cores: u16::MAX,
            memory_mib: u32::MAX,
            region: "DE".parse().ok(),
        },
        endpoints,
        last_heartbeat: frame_system::Pallet::<T>::block_number(),
    }
}

/// A well-formed endpoint of `MULTIADDR_BYTES_MAX` bytes.
fn longest_endpoint() -> Endpoint {
    let front = "/dns4/";
    let back = "/udp/65535/quic-v1/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp";
    let length: usize = MULTIADDR_BYTES_MAX.saturated_into();
    let host = "h".repeat(length.saturating_sub(front.len()).saturating_sub(back.len()));
    Endpoint::cut(&[front, &host, back].concat())
}

/// A bonded provider and its agent, in the block in which calls are measured.
fn bonded<T: Config>() -> (T::AccountId, T::AccountId) {
    frame_system::Pallet::<T>::set_block_number(One::one());
    let (stash, agent) = (account("stash", 0, 0), account("agent", 0, 0));
    T::Stake::endow(&stash, &agent, Role::Provider, One::one());
    (stash, agent)
}

#[benchmarks]
mod benches {
    use super::*;

    /// Replaces an entry.
    #[benchmark]
    fn register() -> Result<(), BenchmarkError> {
        let (stash, agent) = bonded::<T>();
        let entry = largest::<T>();
        Pallet::<T>::do_register(agent.clone(), entry.device.clone(), entry.endpoints.clone())?;

        #[extrinsic_call]
        _(
            RawOrigin::Signed(agent),
            entry.device.clone(),
            entry.endpoints.clone(),
        );

        assert_eq!(Providers::<T>::get(&stash), Some(entry));
        Ok(())
    }

    #[benchmark]
    fn heartbeat() -> Result<(), BenchmarkError> {
        let (stash, agent) = bonded::<T>();
        let entry = largest::<T>();
        Pallet::<T>::do_register(agent.clone(), entry.device, entry.endpoints)?;
        let later = entry.last_heartbeat + One::one();
        frame_system::Pallet::<T>::set_block_number(later);

        #[extrinsic_call]
        _(RawOrigin::Signed(agent));

        assert_eq!(
            Providers::<T>::get(&stash).map(|provider| provider.last_heartbeat),
            Some(later)
        );
        Ok(())
    }

    /// Called by the agent, which costs a look at the ledger of stake more than the stash.
    #[benchmark]
    fn deregister() -> Result<(), BenchmarkError> {
        let (stash, agent) = bonded::<T>();
        let entry = largest::<T>();
        Pallet::<T>::do_register(agent.clone(), entry.device, entry.endpoints)?;

        #[extrinsic_call]
        _(RawOrigin::Signed(agent));

        assert!(!Providers::<T>::contains_key(&stash));
        Ok(())
    }

    impl_benchmark_test_suite!(Pallet, crate::mock::TestExt::new().build(), crate::mock::Test);
}
