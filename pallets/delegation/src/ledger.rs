//! The only file that writes records, keeps their totals, and closes what has run empty.

use frame_support::ensure;
use sp_runtime::{DispatchError, DispatchResult};
use surety_types::traits::StashClosed;

use crate::{
    Buckets, Config, DelegatorList, Delegators, Error, Event, Pallet, Pending, Pools, STAKES_MAX, StakeOf,
    Stakes, Totals, TotalsRecord, asset,
    fund::Fund,
    types::{Day, PLANCK_PARTS, PendingSlashes, Pool},
};

/// The pool of an operator, or `UnknownPool`.
pub(crate) fn read_pool<T: Config>(operator: &T::AccountId) -> Result<Pool, DispatchError> {
    Pools::<T>::get(operator).ok_or_else(|| Error::<T>::UnknownPool.into())
}

/// Stores a pool that nobody has shares of yet; whoever opens it has some before the call is over.
pub(crate) fn open<T: Config>(operator: &T::AccountId, pool: Pool) {
    Pools::<T>::insert(operator, pool);
}

/// Stores a pool, or closes it where nobody has shares. What its operator has not claimed is paid then.
pub(crate) fn write_pool<T: Config>(operator: &T::AccountId, pool: Pool) -> DispatchResult {
    let before = Pools::<T>::get(operator);
    let backed = before.as_ref().map_or(0, |before| before.fund.amount);
    let was_led = before.is_some_and(|before| before.is_led());
    change::<T>(|totals| {
        totals.backing = totals
            .backing
            .saturating_sub(backed)
            .saturating_add(pool.fund.amount);
        let others = totals.led.saturating_sub(u32::from(was_led));
        totals.led = others.saturating_add(u32::from(pool.is_led()));
    });
    if pool.fund.shares > 0 {
        Pools::<T>::insert(operator, pool);
        return Ok(());
    }
    Pools::<T>::remove(operator);
    // Nobody has shares, so that what was carried is whole plancks.
    let left = pool.earned.saturating_add(pool.carried / PLANCK_PARTS);
    if left > 0 {
        pay_or_burn::<T>(operator, left)?;
    }
    T::OnClosed::closed(operator);
    Pallet::<T>::deposit_event(Event::PoolClosed {
        operator: operator.clone(),
    });
    Ok(())
}

/// What left an operator on a day; nothing where nobody did.
pub(crate) fn read_bucket<T: Config>(operator: &T::AccountId, day: Day) -> Fund {
    Buckets::<T>::get(operator, day).unwrap_or_default()
}

/// Stores what left an operator on a day, or drops it where nobody has shares.
pub(crate) fn write_bucket<T: Config>(operator: &T::AccountId, day: Day, bucket: Fund) {
    let before = read_bucket::<T>(operator, day).amount;
    change::<T>(|totals| {
        totals.backing = totals
            .backing
            .saturating_sub(before)
            .saturating_add(bucket.amount);
    });
    match bucket.shares {
        0 => Buckets::<T>::remove(operator, day),
        _ => Buckets::<T>::insert(operator, day, bucket),
    }
}

/// Stores what somebody has, or drops it where that is nothing.
///
/// # Errors
/// `TooManyStakes`.
pub(crate) fn write_stake<T: Config>(who: &T::AccountId, stake: StakeOf<T>) -> DispatchResult {
    ensure!(stake.count() <= STAKES_MAX as usize, Error::<T>::TooManyStakes);
    let before = Stakes::<T>::get(who).map_or(0, |before| before.held());
    change::<T>(|totals| {
        totals.held = totals.held.saturating_sub(before).saturating_add(stake.held());
    });
    match stake.count() {
        0 => Stakes::<T>::remove(who),
        _ => Stakes::<T>::insert(who, stake),
    }
    Ok(())
}

/// Stores what waits, or drops it where that is nothing.
pub(crate) fn write_pending<T: Config>(operator: &T::AccountId, pending: PendingSlashes) {
    match pending.count {
        0 => Pending::<T>::remove(operator),
        _ => Pending::<T>::insert(operator, pending),
    }
}

/// Pays what somebody has earned.
pub(crate) fn pay<T: Config>(operator: &T::AccountId, payee: &T::AccountId, amount: u128) -> DispatchResult {
    asset::pay::<T>(payee, amount)?;
    change::<T>(|totals| totals.unclaimed = totals.unclaimed.saturating_sub(amount));
    Pallet::<T>::deposit_event(Event::Claimed {
        operator: operator.clone(),
        delegator: payee.clone(),
        amount,
    });
    Ok(())
}

/// The same of an operator that may have no account any more.
fn pay_or_burn<T: Config>(operator: &T::AccountId, amount: u128) -> DispatchResult {
    if surety_pallet_holds::can_take::<_, T::Currency>(operator, amount) {
        return pay::<T>(operator, operator, amount);
    }
    asset::burn_unpaid::<T>(amount)?;
    change::<T>(|totals| totals.unclaimed = totals.unclaimed.saturating_sub(amount));
    Ok(())
}

/// Changes the totals.
pub(crate) fn change<T: Config>(change: impl FnOnce(&mut TotalsRecord)) {
    Totals::<T>::mutate(change);
}

/// Puts a delegator of a pool where its shares belong. Of those with as many it leaves first: they were
/// there earlier. Without shares it goes.
///
/// # Errors
/// `PoolFull`.
pub(crate) fn place<T: Config>(
    operator: &T::AccountId,
    delegator: &T::AccountId,
    shares: u128,
) -> DispatchResult {
    let mut places: DelegatorList<T> = Delegators::<T>::get(operator);
    places.retain(|(_, other)| other != delegator);
    if shares > 0 {
        let place = places.partition_point(|(others, _)| *others < shares);
        places
            .try_insert(place, (shares, delegator.clone()))
            .map_err(|_| Error::<T>::PoolFull)?;
    }
    match places.len() {
        0 => Delegators::<T>::remove(operator),
        _ => Delegators::<T>::insert(operator, places),
    }
    Ok(())
}

/// Who has to make room for another delegator of a pool, and its shares. Nobody while it is not full.
pub(crate) fn smallest_of_full<T: Config>(operator: &T::AccountId) -> Option<(u128, T::AccountId)> {
    let places = Delegators::<T>::get(operator);
    places.is_full().then(|| places.first().cloned()).flatten()
}
