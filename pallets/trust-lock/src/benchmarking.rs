//! The calls, among the most convictions that are kept. They need real signatures, draws and games, and
//! run over the runtime alone (`scripts/weights`).

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark that panics has failed"
)]

use alloc::vec::Vec;
use frame_benchmarking::v2::*;
use frame_support::{
    BoundedVec,
    traits::{
        EnsureOrigin,
        fungible::{Inspect, Mutate},
    },
    weights::Weight,
};
use frame_system::{RawOrigin, pallet_prelude::BlockNumberFor};
use sp_runtime::{
    Perquintill,
    traits::{BlockNumberProvider, One, Saturating, Zero},
};
use surety_types::{
    limits::{CONVICTIONS_MAX, FINDERS_MAX, JAIL_TERMS_MAX},
    stake::Role,
    traits::{ProviderDirectory, StakeLedger},
    trust::{Conviction, FaultKind, Slash, SlashCause},
};

use crate::{Call, Config, Convictions, JailedFor, NextSlashId, Pallet, Records, Slashes, SlashesSweptTo};

/// As many convictions as are kept, all within the window. Whoever is convicted next takes the place of one.
pub fn fill_convictions<T: Config>(now: BlockNumberFor<T>) {
    let convictions: Vec<_> = (0..CONVICTIONS_MAX)
        .map(|place| Conviction {
            offender: account("convict", place, 0),
            stake: One::one(),
            first: now,
            last: now,
            faults: 1,
        })
        .collect();
    Convictions::<T>::put(BoundedVec::truncate_from(convictions));
}

/// A slash of all the stake of a registered provider that is not in jail, which is due.
fn due_slash<T: Config>() -> T::AccountId {
    at::<T>(One::one());
    let (offender, agent) = (account("provider", 0, 0), account("agent", 0, 0));
    T::Stake::endow(
        &offender,
        &agent,
        Role::Provider,
        T::Balance::from(1_000_000_000_000_000u128),
    );
    T::Providers::register_for_benchmark(&offender);
    let lock = T::Stake::stake(&offender);
    frame_support::assert_ok!(T::Stake::lock(&offender, lock));
    let now = Pallet::<T>::now();
    fill_convictions::<T>(now);
    let rich = |name, place| {
        let payee = account(name, place, 0);
        let least = T::Currency::minimum_balance().saturating_add(One::one());
        frame_support::assert_ok!(T::Currency::mint_into(&payee, least));
        payee
    };
    let finder = |place| rich("finder", place);
    let slash = Slash {
        cause: SlashCause::Task(7),
        offender: offender.clone(),
        kind: FaultKind::WrongResult,
        lock,
        part: Perquintill::from_percent(5),
        finders: BoundedVec::truncate_from((0..FINDERS_MAX).map(finder).collect()),
        finder: None,
        client: Some(rich("client", 0)),
        proven_at: now,
        until: now,
    };
    Slashes::<T>::insert(0, slash);
    NextSlashId::<T>::put(1);
    Pallet::<T>::note_clean_task(&offender);
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

    /// The last of as many terms in jail as are kept is lifted.
    #[benchmark]
    fn cancel_slash() -> Result<(), BenchmarkError> {
        let offender = due_slash::<T>();
        for other in (0..JAIL_TERMS_MAX).rev() {
            Pallet::<T>::jail(&offender, other);
        }
        let origin = T::VetoOrigin::try_successful_origin().map_err(|_| BenchmarkError::Weightless)?;

        #[extrinsic_call]
        _(origin as T::RuntimeOrigin, 0);

        assert!(!Slashes::<T>::contains_key(0));
        assert_eq!(
            JailedFor::<T>::get(offender).terms.len(),
            JAIL_TERMS_MAX as usize - 1
        );
        Ok(())
    }

    /// Nothing is left: the ledger is closed, and what others keep for it goes with it.
    #[benchmark]
    fn carry_out_slash() {
        let offender = due_slash::<T>();
        let caller: T::AccountId = whitelisted_caller();

        #[extrinsic_call]
        _(RawOrigin::Signed(caller), 0);

        assert!(T::Stake::stake(&offender).is_zero());
        assert!(!Records::<T>::contains_key(&offender));
        assert!(!T::Providers::is_available(&offender));
    }

    /// Nothing is left of the next slash: it was vetoed.
    #[benchmark]
    fn sweep_base() {
        NextSlashId::<T>::put(1);

        #[block]
        {
            Pallet::<T>::sweep_slashes(Weight::MAX);
        }

        assert_eq!(SlashesSweptTo::<T>::get(), 1);
    }
}
