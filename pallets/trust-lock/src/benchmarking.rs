//! The calls, among the most convictions that are kept. They need real signatures, draws and games, and
//! run over the runtime alone (`scripts/weights`).

use alloc::vec::Vec;
use frame_benchmarking::v2::*;
use frame_support::{
    BoundedVec,
    traits::{
        EnsureOrigin,
        fungible::{Inspect, Mutate},
    },
};
use frame_system::{RawOrigin, pallet_prelude::BlockNumberFor};
use sp_runtime::{
    Perquintill,
    traits::{BlockNumberProvider, One, Saturating},
};
use surety_types::{
    limits::CONVICTIONS_MAX,
    stake::Role,
    traits::StakeLedger,
    trust::{Conviction, FaultKind, Slash},
};

use crate::{Call, Config, Convictions, NextSlashId, Pallet, Slashes};

/// As many convictions as are kept, all within the window.
pub fn fill_convictions<T: Config>(now: BlockNumberFor<T>) {
    let convictions: Vec<_> = (0..CONVICTIONS_MAX)
        .map(|place| Conviction {
            offender: account("convict", place, 0),
            stake: One::one(),
            at: now,
        })
        .collect();
    Convictions::<T>::put(BoundedVec::truncate_from(convictions));
}

/// A slash of a provider with stake, which is due.
fn due_slash<T: Config>() -> T::AccountId {
    at::<T>(One::one());
    let (offender, agent) = (account("provider", 0, 0), account("agent", 0, 0));
    T::Stake::endow(
        &offender,
        &agent,
        Role::Provider,
        T::Balance::from(1_000_000_000_000_000u128),
    );
    let lock = T::Balance::from(1_000u32);
    frame_support::assert_ok!(T::Stake::lock(&offender, lock));
    let now = Pallet::<T>::now();
    fill_convictions::<T>(now);
    let rich = |name| {
        let payee = account(name, 0, 0);
        let least = T::Currency::minimum_balance().saturating_add(One::one());
        frame_support::assert_ok!(T::Currency::mint_into(&payee, least));
        payee
    };
    let slash = Slash {
        task: 7,
        offender: offender.clone(),
        kind: FaultKind::WrongResult,
        lock,
        part: Perquintill::from_percent(5),
        finder: Some(rich("finder")),
        client: Some(rich("client")),
        proven_at: now,
        until: now,
    };
    Slashes::<T>::insert(0, slash);
    NextSlashId::<T>::put(1);
    Pallet::<T>::jail(&offender);
    at::<T>(now + One::one());
    offender
}

/// It is this block, and this time.
fn at<T: Config>(block: BlockNumberFor<T>) {
    frame_system::Pallet::<T>::set_block_number(block);
    T::BlockNumberProvider::set_block_number(block);
}

#[benchmarks]
mod benchmarks {
    use super::*;

    #[benchmark]
    fn cancel_slash() -> Result<(), BenchmarkError> {
        due_slash::<T>();
        let origin = T::VetoOrigin::try_successful_origin().map_err(|_| BenchmarkError::Weightless)?;

        #[extrinsic_call]
        _(origin as T::RuntimeOrigin, 0);

        assert!(!Slashes::<T>::contains_key(0));
        Ok(())
    }

    #[benchmark]
    fn carry_out_slash() {
        let offender = due_slash::<T>();
        let before = T::Stake::stake(&offender);
        let caller: T::AccountId = whitelisted_caller();

        #[extrinsic_call]
        _(RawOrigin::Signed(caller), 0);

        assert!(T::Stake::stake(&offender) < before);
    }
}
