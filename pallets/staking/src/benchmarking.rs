//! Benchmarks, each in the state that makes its call heaviest.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark that panics has failed"
)]

use frame_benchmarking::{account, v2::*};
use frame_support::traits::Get;
use frame_system::{Pallet as System, RawOrigin, pallet_prelude::BlockNumberFor};
use sp_runtime::{
    SaturatedConversion,
    traits::{BlockNumberProvider, One, Saturating},
};
use surety_types::{limits::UNLOCKING_MAX, stake::Role, traits::StakeLedger};

use crate::{Agents, BalanceOf, Call, Collateral, Config, Ledgers, Pallet, PendingAgents, asset};

/// A stash that the account "agent" acts for, with `chunks` chunks of one planck on their way out and
/// `MinBond` bonded.
fn bonded<T: Config>(chunks: u32) -> Result<T::AccountId, BenchmarkError> {
    let stash: T::AccountId = account("stash", 0, 0);
    let agent: T::AccountId = account("agent", 0, 0);
    let stake = T::MinBond::get()
        .max(One::one())
        .saturating_add(BalanceOf::<T>::from(chunks));
    Pallet::<T>::endow(&stash, &agent, Role::Provider, stake);
    for _ in 0..chunks {
        Pallet::<T>::do_unbond(stash.clone(), One::one())?;
        pass_blocks::<T>(One::one());
    }
    Ok(stash)
}

fn pass_blocks<T: Config>(blocks: BlockNumberFor<T>) {
    let (block, time) = (
        System::<T>::block_number(),
        T::BlockNumberProvider::current_block_number(),
    );
    System::<T>::set_block_number(block.saturating_add(blocks));
    T::BlockNumberProvider::set_block_number(time.saturating_add(blocks));
}

#[benchmarks]
mod benches {
    use super::*;

    /// Collateral in one asset makes way for that in another.
    #[benchmark]
    fn bond() -> Result<(), BenchmarkError> {
        let stash = bonded::<T>(UNLOCKING_MAX)?;
        T::Collateral::demand_for_benchmark(&stash);
        let amount: BalanceOf<T> = One::one();
        asset::endow::<T>(&stash, amount)?;
        let before = Pallet::<T>::unlocked_stake(&stash);

        #[extrinsic_call]
        _(RawOrigin::Signed(stash.clone()), Role::Provider, amount);

        assert_eq!(Pallet::<T>::unlocked_stake(&stash), before.saturating_add(amount));
        Ok(())
    }

    #[benchmark]
    fn unbond() -> Result<(), BenchmarkError> {
        let stash = bonded::<T>(UNLOCKING_MAX.saturating_sub(1))?;
        let all = Pallet::<T>::unlocked_stake(&stash);

        #[extrinsic_call]
        _(RawOrigin::Signed(stash.clone()), all);

        let chunks = Ledgers::<T>::get(&stash).map(|ledger| ledger.unlocking.len());
        assert_eq!(chunks, Some(UNLOCKING_MAX.saturated_into()));
        Ok(())
    }

    /// Everything leaves, so that the ledger, the agent, a nomination and the collateral go too.
    #[benchmark]
    fn withdraw_unbonded() -> Result<(), BenchmarkError> {
        let stash = bonded::<T>(UNLOCKING_MAX.saturating_sub(1))?;
        Pallet::<T>::do_set_agent(stash.clone(), account("next", 0, 0))?;
        Pallet::<T>::do_unbond(stash.clone(), Pallet::<T>::unlocked_stake(&stash))?;
        pass_blocks::<T>(T::UnbondingPeriod::get().saturating_add(One::one()));

        #[extrinsic_call]
        _(RawOrigin::Signed(stash.clone()));

        assert!(!Ledgers::<T>::contains_key(&stash));
        Ok(())
    }

    /// As `bond`.
    #[benchmark]
    fn rebond() -> Result<(), BenchmarkError> {
        let stash = bonded::<T>(UNLOCKING_MAX)?;
        T::Collateral::demand_for_benchmark(&stash);
        let all = BalanceOf::<T>::from(UNLOCKING_MAX);

        #[extrinsic_call]
        _(RawOrigin::Signed(stash.clone()), all);

        assert!(Ledgers::<T>::get(&stash).is_some_and(|ledger| ledger.unlocking.is_empty()));
        Ok(())
    }

    #[benchmark]
    fn set_agent() -> Result<(), BenchmarkError> {
        let stash = bonded::<T>(UNLOCKING_MAX)?;
        let next: T::AccountId = account("next", 0, 0);
        Pallet::<T>::do_set_agent(stash.clone(), account("before", 0, 0))?;

        #[extrinsic_call]
        _(RawOrigin::Signed(stash.clone()), next.clone());

        assert_eq!(PendingAgents::<T>::get(&stash), Some(next));
        Ok(())
    }

    /// Replaces an agent.
    #[benchmark]
    fn confirm_agent() -> Result<(), BenchmarkError> {
        let stash = bonded::<T>(UNLOCKING_MAX)?;
        let next: T::AccountId = account("next", 0, 0);
        Pallet::<T>::do_set_agent(stash.clone(), next.clone())?;

        #[extrinsic_call]
        _(RawOrigin::Signed(next.clone()), stash.clone());

        assert_eq!(Agents::<T>::get(&next), Some(stash));
        Ok(())
    }

    /// Removes an agent and a nomination.
    #[benchmark]
    fn remove_agent() -> Result<(), BenchmarkError> {
        let stash = bonded::<T>(UNLOCKING_MAX)?;
        Pallet::<T>::do_set_agent(stash.clone(), account("next", 0, 0))?;

        #[extrinsic_call]
        _(RawOrigin::Signed(stash.clone()));

        assert!(!PendingAgents::<T>::contains_key(&stash));
        assert!(!Agents::<T>::contains_key(account::<T::AccountId>("agent", 0, 0)));
        Ok(())
    }

    impl_benchmark_test_suite!(Pallet, crate::mock::TestExt::new().build(), crate::mock::Test);
}
