//! Benchmarks, each in the state that makes its call heaviest: a full pool, delegators with as much as one
//! can have, something to pay and something to burn.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark that panics has failed"
)]

use frame_benchmarking::{account, v2::*};
use frame_support::traits::Get;
use frame_system::{RawOrigin, pallet_prelude::BlockNumberFor};
use sp_runtime::{
    Permill, Perquintill,
    traits::{BlockNumberProvider, Saturating},
};
use surety_types::traits::{LeavingPay, PoolLedger, Sessions};

use crate::{
    Buckets, Call, Config, DELEGATIONS_MAX, DELEGATORS_MAX, Pallet, Pending, Pools, SLASHED_DAYS_MAX,
    STAKES_MAX, Stakes, asset, calls::read, ledger, types::Day,
};

fn operator<T: Config>() -> T::AccountId {
    account("operator", 0, 0)
}

/// A stake of which much can be taken out.
fn large<T: Config>() -> u128 {
    T::MinDelegation::get().max(1_000).saturating_mul(1_000)
}

fn fund<T: Config>(who: &T::AccountId, amount: u128) -> Result<(), BenchmarkError> {
    Ok(asset::endow::<T>(who, amount)?)
}

/// Opens a pool of which its operator can take much out.
fn open_pool<T: Config>(operator: &T::AccountId) {
    let own = T::MinSelfBond::get().saturating_add(large::<T>());
    Pallet::<T>::open_for_benchmark(operator, own);
}

fn back<T: Config>(who: &T::AccountId, operator: &T::AccountId, amount: u128) -> Result<(), BenchmarkError> {
    fund::<T>(who, amount)?;
    Ok(Pallet::<T>::do_delegate(who.clone(), operator.clone(), amount)?)
}

/// A pool with as many delegators as there may be, `who` the smallest of them.
fn full<T: Config>(who: &T::AccountId) -> Result<T::AccountId, BenchmarkError> {
    let operator = operator::<T>();
    open_pool::<T>(&operator);
    back::<T>(who, &operator, large::<T>())?;
    for index in 1..DELEGATORS_MAX {
        let other = account("delegator", index, 0);
        back::<T>(&other, &operator, large::<T>().saturating_mul(2))?;
    }
    Ok(operator)
}

/// Has the pool earn and lose something.
fn live<T: Config>(operator: &T::AccountId) -> Result<(), BenchmarkError> {
    let amount = large::<T>();
    fund::<T>(&Pallet::<T>::pot(), amount)?;
    assert_eq!(Pallet::<T>::reward(operator, amount), amount);
    let session = T::Sessions::current();
    Pallet::<T>::note_pending(operator, session);
    Pallet::<T>::slash(operator, Perquintill::from_percent(10), session);
    Ok(())
}

/// Has part of a stake leave on a day of which some was slashed.
fn leave_on<T: Config>(
    who: &T::AccountId,
    operator: &T::AccountId,
    amount: u128,
    day: Day,
) -> Result<(), BenchmarkError> {
    let mut stake = read::<T>(who)?;
    Pallet::<T>::leave(who, &mut stake, operator, Some(amount), day)?;
    ledger::write_stake::<T>(who, stake)?;
    let mut bucket = ledger::read_bucket::<T>(operator, day);
    bucket.slash(Perquintill::from_percent(10));
    ledger::write_bucket::<T>(operator, day, bucket);
    Ok(())
}

/// Gives somebody chunks of days from `first` on, until it has all but `room` of what it may have.
fn burden<T: Config>(
    who: &T::AccountId,
    operator: &T::AccountId,
    first: Day,
    room: u32,
) -> Result<(), BenchmarkError> {
    let most = STAKES_MAX.saturating_sub(room) as usize;
    let mut day = first;
    while Stakes::<T>::get(who).is_some_and(|stake| stake.count() < most) {
        leave_on::<T>(who, operator, T::MinDelegation::get().max(100), day)?;
        day = day.saturating_add(1);
    }
    Ok(())
}

/// Puts somebody behind so many other operators.
fn spread<T: Config>(who: &T::AccountId, operators: u32) -> Result<(), BenchmarkError> {
    for index in 0..operators {
        let other: T::AccountId = account("other", index, 0);
        if !Pools::<T>::contains_key(&other) {
            open_pool::<T>(&other);
        }
        back::<T>(who, &other, large::<T>())?;
    }
    Ok(())
}

fn pass_period<T: Config>() {
    let now = T::BlockNumberProvider::current_block_number();
    let due: BlockNumberFor<T> = now.saturating_add(T::UnbondingPeriod::get());
    T::BlockNumberProvider::set_block_number(due);
}

#[benchmarks]
mod benches {
    use super::*;

    #[benchmark]
    fn open() -> Result<(), BenchmarkError> {
        let who = operator::<T>();
        spread::<T>(&who, DELEGATIONS_MAX.saturating_sub(1))?;
        burden::<T>(&who, &account("other", 0, 0), 0, 1)?;
        let bond = T::MinSelfBond::get();
        fund::<T>(&who, bond)?;

        #[extrinsic_call]
        _(RawOrigin::Signed(who.clone()), bond, Permill::from_percent(5));

        assert!(Pools::<T>::contains_key(&who));
        Ok(())
    }

    /// Displaces somebody.
    #[benchmark]
    fn delegate() -> Result<(), BenchmarkError> {
        let displaced: T::AccountId = account("displaced", 0, 0);
        let operator = full::<T>(&displaced)?;
        spread::<T>(&displaced, DELEGATIONS_MAX.saturating_sub(1))?;
        burden::<T>(&displaced, &account("other", 0, 0), 0, 0)?;
        live::<T>(&operator)?;
        let who: T::AccountId = account("who", 0, 0);
        spread::<T>(&who, DELEGATIONS_MAX.saturating_sub(1))?;
        burden::<T>(&who, &account("other", 0, 0), 100, 1)?;
        let amount = large::<T>().saturating_mul(3);
        fund::<T>(&who, amount)?;

        #[extrinsic_call]
        _(RawOrigin::Signed(who.clone()), operator.clone(), amount);

        let is_in = |who| Stakes::<T>::get(who).is_some_and(|stake| stake.delegation(&operator).is_some());
        assert!(is_in(who) && !is_in(displaced));
        Ok(())
    }

    /// Of a pool whose operator has left: what it served since then is paid before.
    #[benchmark]
    fn undelegate() -> Result<(), BenchmarkError> {
        let who: T::AccountId = account("who", 0, 0);
        let operator = full::<T>(&who)?;
        spread::<T>(&who, DELEGATIONS_MAX.saturating_sub(1))?;
        burden::<T>(&who, &account("other", 0, 0), 0, 1)?;
        let own = <Pallet<T> as PoolLedger<_, _>>::own(&operator);
        Pallet::<T>::do_undelegate(operator.clone(), operator.clone(), own)?;
        live::<T>(&operator)?;
        T::Pay::serve_for_benchmark(&operator);
        let amount = T::MinDelegation::get().max(1);

        #[extrinsic_call]
        _(RawOrigin::Signed(who.clone()), operator, amount);

        assert_eq!(read::<T>(&who)?.count(), STAKES_MAX as usize);
        Ok(())
    }

    /// To a full pool, which displaces somebody.
    #[benchmark]
    fn redelegate() -> Result<(), BenchmarkError> {
        let displaced: T::AccountId = account("displaced", 0, 0);
        let to = full::<T>(&displaced)?;
        spread::<T>(&displaced, DELEGATIONS_MAX.saturating_sub(1))?;
        burden::<T>(&displaced, &account("other", 0, 0), 0, 0)?;
        live::<T>(&to)?;
        let who: T::AccountId = account("who", 0, 0);
        spread::<T>(&who, DELEGATIONS_MAX.saturating_sub(1))?;
        let from: T::AccountId = account("other", 0, 0);
        let amount = large::<T>().saturating_mul(4);
        back::<T>(&who, &from, amount)?;
        leave_on::<T>(&who, &from, amount, 0)?;
        burden::<T>(&who, &from, 1, 1)?;
        T::Sessions::set_for_benchmark(T::SessionsKept::get().saturating_mul(2));
        // Of what a slash has left.
        let amount = large::<T>().saturating_mul(3);

        #[extrinsic_call]
        _(RawOrigin::Signed(who.clone()), from, 0, to.clone(), amount);

        assert!(read::<T>(&who)?.delegation(&to).is_some());
        Ok(())
    }

    /// All that somebody may have is chunks, and all are due.
    #[benchmark]
    fn withdraw() -> Result<(), BenchmarkError> {
        let who: T::AccountId = account("who", 0, 0);
        let operator = full::<T>(&who)?;
        burden::<T>(&who, &operator, 0, 0)?;
        let rest = read::<T>(&who)?.delegation(&operator).map_or(0, |one| one.held);
        leave_on::<T>(&who, &operator, rest, STAKES_MAX)?;
        pass_period::<T>();

        #[extrinsic_call]
        _(RawOrigin::Signed(who.clone()));

        assert!(!Stakes::<T>::contains_key(&who));
        Ok(())
    }

    /// By an operator, of its own and its commission.
    #[benchmark]
    fn claim() -> Result<(), BenchmarkError> {
        let operator = full::<T>(&account("who", 0, 0))?;
        spread::<T>(&operator, DELEGATIONS_MAX.saturating_sub(1))?;
        burden::<T>(&operator, &account("other", 0, 0), 0, 0)?;
        live::<T>(&operator)?;

        #[extrinsic_call]
        _(RawOrigin::Signed(operator.clone()), operator.clone());

        assert_eq!(Pallet::<T>::view_claimable(&operator, &operator), 0);
        Ok(())
    }

    /// All that somebody may have is of one operator, and has lost something.
    #[benchmark]
    fn settle() -> Result<(), BenchmarkError> {
        let who: T::AccountId = account("who", 0, 0);
        let operator = full::<T>(&who)?;
        burden::<T>(&who, &operator, 0, 0)?;
        live::<T>(&operator)?;
        let before = read::<T>(&who)?.held();

        #[extrinsic_call]
        _(RawOrigin::Signed(account("anybody", 0, 0)), who.clone(), operator);

        assert!(read::<T>(&who)?.held() < before);
        Ok(())
    }

    #[benchmark]
    fn set_commission() -> Result<(), BenchmarkError> {
        let operator = full::<T>(&account("who", 0, 0))?;
        T::Sessions::set_for_benchmark(T::SessionsKept::get().saturating_mul(9));
        let commission = Permill::from_percent(11);

        #[extrinsic_call]
        _(RawOrigin::Signed(operator.clone()), commission);

        assert_eq!(
            Pools::<T>::get(&operator).map(|pool| pool.commission),
            Some(commission)
        );
        Ok(())
    }

    #[benchmark]
    fn reward() -> Result<(), BenchmarkError> {
        let operator = full::<T>(&account("who", 0, 0))?;
        live::<T>(&operator)?;
        let amount = large::<T>();
        fund::<T>(&Pallet::<T>::pot(), amount)?;
        let shared;

        #[block]
        {
            shared = Pallet::<T>::reward(&operator, amount);
        }

        assert_eq!(shared, amount);
        Ok(())
    }

    #[benchmark]
    fn note_pending() -> Result<(), BenchmarkError> {
        let operator = operator::<T>();
        Pallet::<T>::note_pending(&operator, 0);

        #[block]
        {
            Pallet::<T>::note_pending(&operator, 0);
        }

        assert_eq!(Pending::<T>::get(&operator).map(|pending| pending.count), Some(2));
        Ok(())
    }

    /// Of an operator whose own stake left on as many days as it can.
    #[benchmark]
    fn slash() -> Result<(), BenchmarkError> {
        let operator = full::<T>(&account("who", 0, 0))?;
        let days = SLASHED_DAYS_MAX.saturating_sub(1);
        T::Sessions::set_for_benchmark(T::SessionsKept::get().saturating_mul(days));
        burden::<T>(&operator, &operator, 0, 0)?;
        Pallet::<T>::note_pending(&operator, 0);
        let part = Perquintill::from_percent(50);
        let taken;

        #[block]
        {
            taken = Pallet::<T>::slash(&operator, part, 0);
        }

        assert!(taken > 0 && Buckets::<T>::contains_key(&operator, days));
        Ok(())
    }

    impl_benchmark_test_suite!(Pallet, crate::mock::TestExt::new().build(), crate::mock::Test);
}
