//! What a provider sells, to what price, and how much of it is taken.

use alloc::vec::Vec;

use frame_support::{ensure, traits::Get};
use sp_runtime::DispatchResult;
use surety_audit_economics::tokens_worth;
use surety_channels::Region;
use surety_types::{
    ModelId,
    stake::Role,
    traits::{AbleVerifiers, Jail, SoldModels, StakeLedger},
};

use crate::{
    Config, Error, Event, OFFERS_MAX, Offer, Offers, PLACES_MAX, POOL_OFFERS_MAX, Pallet, Pool, PoolId,
    Pools, Provider, Standings,
    pool::{PriceBounds, period_of},
};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_offer(
        stash: T::AccountId,
        pool: PoolId,
        (unit_price, places): (u128, u32),
        region: Option<Region>,
    ) -> DispatchResult {
        let mut provider = Standings::<T>::get(&stash).ok_or(Error::<T>::NotStanding)?;
        ensure!(provider.lock > 0, Error::<T>::NotStanding);
        ensure!(!T::Jail::is_jailed(&stash), Error::<T>::InJail);
        // Who offers nothing new takes 0 places.
        if places > 0 {
            Self::ensure_takes_new(&stash, &provider)?;
        }
        ensure!(places <= PLACES_MAX, Error::<T>::TooManyPlaces);
        let (model, operation) = pool;
        let known = Offers::<T>::get(&stash, pool);
        if known.is_none() {
            T::Models::check(&model, operation)?;
            ensure!(provider.offers < OFFERS_MAX, Error::<T>::TooManyOffers);
            let others = Pools::<T>::get(pool).map_or(0, |pool| pool.offers);
            ensure!(others < POOL_OFFERS_MAX, Error::<T>::PoolFull);
        }
        // A wrong answer would be found less often than the lock is made for, or never.
        let is_more = places > known.as_ref().map_or(0, |offer| offer.places);
        let is_audited = !is_more || T::Verifiers::able(&model, operation) >= T::Policy::get().able;
        ensure!(is_audited, Error::<T>::NobodyAudits);
        let floor = Self::price_bounds(&model).floor;
        ensure!(unit_price >= floor, Error::<T>::PriceTooLow);
        let mut offer = known.unwrap_or_default();
        let covered = known.as_ref().map_or(0, Offer::covered);
        (offer.unit_price, offer.places, offer.region) = (unit_price, places, region);
        offer.busy = offer.busy.min(places);
        let places_after = provider
            .places
            .saturating_sub(covered)
            .saturating_add(offer.covered());
        let is_covered = Self::cap_for(places_after) <= provider.standing.cap;
        ensure!(
            is_covered || places_after <= provider.places,
            Error::<T>::PlacesNotCovered
        );
        provider.places = places_after;
        if known.is_none() {
            provider.offers = provider.offers.saturating_add(1);
            T::Models::acquire(&model);
        }
        Standings::<T>::insert(&stash, provider);
        Self::put_offer(stash, pool, known, offer);
        Ok(())
    }

    pub(crate) fn do_withdraw_offer(stash: T::AccountId, pool: PoolId) -> DispatchResult {
        let mut provider = Standings::<T>::get(&stash).ok_or(Error::<T>::NotStanding)?;
        let offer = Offers::<T>::get(&stash, pool).ok_or(Error::<T>::NoOffer)?;
        Self::finish_batches(&stash, &mut provider);
        // An embedding's points are refuted by what its model is.
        let is_needed = provider.is_in_use() || provider.audits > 0;
        ensure!(!is_needed, Error::<T>::OfferInUse);
        provider.offers = provider.offers.saturating_sub(1);
        provider.places = provider.places.saturating_sub(offer.covered());
        Standings::<T>::insert(&stash, provider);
        Self::end_offer(&stash, pool, &offer);
        Ok(())
    }

    pub(crate) fn do_report_busy(agent: &T::AccountId, pool: PoolId, busy: u32) -> DispatchResult {
        let stash = T::Stake::stash_of(agent, Role::Provider).ok_or(Error::<T>::NotAgent)?;
        let mut offer = Offers::<T>::get(&stash, pool).ok_or(Error::<T>::NoOffer)?;
        ensure!(busy <= offer.places, Error::<T>::TooBusy);
        let period = period_of(Self::now(), T::PoolPeriod::get());
        ensure!(offer.reported != Some(period), Error::<T>::ReportedAlready);
        let before = core::mem::replace(&mut offer.busy, busy);
        offer.reported = Some(period);
        Self::change_pool(pool, |pool| {
            pool.busy = changed(pool.busy, before, busy);
        });
        Offers::<T>::insert(&stash, pool, offer);
        let (model, operation) = pool;
        Self::deposit_event(Event::BusyReported {
            provider: stash,
            model,
            operation,
            busy,
        });
        Ok(())
    }

    /// Ends all offers of a provider that stands behind nothing any more: [`OFFERS_MAX`] at most.
    pub(crate) fn end_offers(stash: &T::AccountId, provider: &mut Provider<T::AccountId>) {
        let offers: Vec<_> = Offers::<T>::iter_prefix(stash).collect();
        for (pool, offer) in offers {
            Self::end_offer(stash, pool, &offer);
        }
        (provider.offers, provider.places) = (0, 0);
    }

    /// Has all offers of a provider that leaves no places any more: what it has said of them moves no price.
    pub(crate) fn empty_offers(stash: &T::AccountId, provider: &mut Provider<T::AccountId>) {
        let offers: Vec<_> = Offers::<T>::iter_prefix(stash).collect();
        let mut places: u32 = 0;
        for (pool, offer) in offers {
            let empty = Offer {
                places: 0,
                busy: 0,
                ..offer
            };
            places = places.saturating_add(empty.covered());
            Self::put_offer(stash.clone(), pool, Some(offer), empty);
        }
        provider.places = places;
    }

    /// Has a provider offer this in place of what is known of it, if anything is.
    fn put_offer(stash: T::AccountId, pool: PoolId, known: Option<Offer>, offer: Offer) {
        let before = known.unwrap_or_default();
        Self::change_pool(pool, |pool| {
            pool.offers = pool.offers.saturating_add(known.is_none().into());
            pool.places = changed(pool.places, before.places, offer.places);
            pool.busy = changed(pool.busy, before.busy, offer.busy);
        });
        Offers::<T>::insert(&stash, pool, offer);
        let (model, operation) = pool;
        Self::deposit_event(Event::Offered {
            provider: stash,
            model,
            operation,
            unit_price: offer.unit_price,
            places: offer.places,
            region: offer.region,
        });
    }

    fn end_offer(stash: &T::AccountId, pool: PoolId, offer: &Offer) {
        Offers::<T>::remove(stash, pool);
        Self::change_pool(pool, |pool| {
            pool.offers = pool.offers.saturating_sub(1);
            pool.places = changed(pool.places, offer.places, 0);
            pool.busy = changed(pool.busy, offer.busy, 0);
        });
        let (model, operation) = pool;
        // Last: what a unit costs at least is the model's.
        T::Models::release(&model);
        Self::deposit_event(Event::OfferWithdrawn {
            provider: stash.clone(),
            model,
            operation,
        });
    }

    /// Changes a pool, after what has become due there. One without offers is not kept.
    fn change_pool(id: PoolId, change: impl FnOnce(&mut Pool)) {
        let known = Pools::<T>::get(id);
        let before = known.as_ref().map(|pool| pool.price);
        let mut pool = Self::pool_now(&id, known);
        change(&mut pool);
        let (model, operation) = id;
        if pool.offers == 0 {
            Pools::<T>::remove(id);
            return;
        }
        let price = pool.price;
        Pools::<T>::insert(id, pool);
        if before != Some(price) {
            Self::deposit_event(Event::PoolPriced {
                model,
                operation,
                price,
            });
        }
    }

    /// A pool with its price as it is now. A new one begins with the least.
    pub(crate) fn pool_now((model, _): &PoolId, known: Option<Pool>) -> Pool {
        let bounds = Self::price_bounds(model);
        let mut pool = known.unwrap_or_else(|| Pool::new(bounds.floor, Self::now()));
        pool.advance(Self::now(), T::PoolPeriod::get(), bounds);
        pool
    }

    /// Between what prices of a model's units are held. A unit is worth a token's time at least, also where
    /// it is an item.
    pub(crate) fn price_bounds(model: &ModelId) -> PriceBounds {
        let speed = T::Models::speed(model).unwrap_or(u32::MAX);
        let floor = tokens_worth(1, speed, T::WorkPrice::get());
        PriceBounds::new(floor.max(1), T::PoolCeiling::get())
    }

    /// The least cap for so many places, in plancks.
    pub(crate) fn cap_for(places: u32) -> u128 {
        T::PlaceCap::get().saturating_mul(places.into())
    }
}

/// A sum with a part of it changed.
const fn changed(sum: u32, before: u32, after: u32) -> u32 {
    sum.saturating_sub(before).saturating_add(after)
}
