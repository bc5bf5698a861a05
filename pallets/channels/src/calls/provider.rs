//! What a provider stands behind, and its batches.

use frame_support::{
    BoundedVec, ensure,
    traits::{Get, fungible::Mutate, tokens::Preservation},
};
use sp_runtime::{
    ArithmeticError, DispatchResult, FixedPointNumber, Perquintill, SaturatedConversion, traits::Saturating,
};
use surety_audit_economics::channels::{POINTS_MEAN_MAX, SURE};
use surety_channels::{BatchRoot, BatchWindow};
use surety_types::{
    stake::Role,
    task::AuditDraw,
    traits::{Jail, StakeLedger},
};

#[cfg(doc)]
use crate::UNFINISHED_MAX;
use crate::{
    BatchRecord, Batches, Config, Error, Event, Pallet, Provider, Since, Standings, calls::disputes::FROZEN,
};

/// Batches that a commitment, or a step of the sweep, removes at most: more than a commitment adds, so that
/// what is over goes away.
const PRUNED: u32 = 2;

impl<T: Config> Pallet<T> {
    /// The least lock for a cap, in plancks. Everybody is drawn like a newcomer: what was audited of whom is
    /// not counted yet.
    pub(crate) fn needed_lock(cap: u128) -> Option<u128> {
        let rates = T::Rates::get();
        let needed = T::Policy::get().standing_lock(rates.newcomer, T::AtRisk::get(), cap);
        needed.ok()
    }

    /// The part of a batch's price that pays for its audits, by the present terms. Where the whole would not
    /// do it is the whole: what is demanded has to be batched whatever it costs.
    fn levy() -> Perquintill {
        let levy = T::Pay::get().levy(T::Rates::get().newcomer, T::PointCost::get());
        levy.unwrap_or(Perquintill::one())
    }

    /// Whether a provider takes channels, and more for those that there are, and offers what is new: it does
    /// not leave, its lock is what its cap needs by the present terms, and its stake is as much as is locked.
    pub(crate) fn ensure_takes_new(
        stash: &T::AccountId,
        provider: &Provider<T::AccountId>,
    ) -> DispatchResult {
        ensure!(!provider.is_leaving, Error::<T>::Leaving);
        let needed = Self::needed_lock(provider.standing.cap);
        let is_present = needed.is_some_and(|needed| needed <= provider.lock);
        ensure!(is_present, Error::<T>::OldTerms);
        ensure!(T::Stake::covers_locks(stash), Error::<T>::NotCovered);
        Ok(())
    }

    pub(crate) fn do_stand(stash: T::AccountId, lock: u128, cap: u128) -> DispatchResult {
        let mut provider = Standings::<T>::get(&stash).unwrap_or_else(Provider::new);
        ensure!(lock > 0 || provider.lock > 0, Error::<T>::NotStanding);
        Self::finish_batches(&stash, &mut provider);
        if lock == 0 && provider.is_in_use() {
            return Self::leave(stash, provider);
        }
        let cap = if lock > 0 { cap } else { 0 };
        let is_less = lock < provider.lock || cap < provider.standing.cap;
        ensure!(!(provider.is_in_use() && is_less), Error::<T>::InUse);
        let is_covered = Self::cap_for(provider.places) <= cap && (lock > 0 || provider.offers == 0);
        ensure!(is_covered || !is_less, Error::<T>::PlacesNotCovered);
        if lock > 0 {
            ensure!(!T::Jail::is_jailed(&stash), Error::<T>::InJail);
            ensure!(T::Stake::bonded(&stash, Role::Provider) > 0, Error::<T>::NotAgent);
            let needed = Self::needed_lock(cap).ok_or(Error::<T>::NotInsurable)?;
            ensure!(needed <= lock, Error::<T>::LockTooSmall);
            let is_more = cap > provider.standing.cap || provider.is_leaving;
            ensure!(!is_more || T::Stake::covers_locks(&stash), Error::<T>::NotCovered);
        }
        if lock > provider.lock {
            T::Stake::lock(&stash, lock.saturating_sub(provider.lock))?;
        } else {
            T::Stake::unlock(&stash, provider.lock.saturating_sub(lock));
        }
        provider.lock = lock;
        provider.standing.cap = cap;
        provider.is_leaving = false;
        if lock == 0 {
            provider.signers = BoundedVec::new();
        }
        if lock == 0 && provider.next == 0 && provider.since == Since::default() {
            // Nothing was ever numbered for it, or has to be forgotten.
            Standings::<T>::remove(&stash);
        } else {
            Standings::<T>::insert(&stash, provider);
        }
        Self::deposit_event(Event::Stands {
            provider: stash,
            lock,
        });
        Ok(())
    }

    /// Keeps the lock until all is over that it is for, and everything new away: others could keep it for
    /// ever otherwise, one channel after the other.
    fn leave(stash: T::AccountId, mut provider: Provider<T::AccountId>) -> DispatchResult {
        ensure!(!provider.is_leaving, Error::<T>::InUse);
        provider.is_leaving = true;
        Self::empty_offers(&stash, &mut provider);
        Standings::<T>::insert(&stash, provider);
        Self::deposit_event(Event::Leaves { provider: stash });
        Ok(())
    }

    pub(crate) fn do_commit_batch(agent: T::AccountId, root: BatchRoot) -> DispatchResult {
        let stash = T::Stake::stash_of(&agent, Role::Provider).ok_or(Error::<T>::NotAgent)?;
        let mut provider = Standings::<T>::get(&stash).ok_or(Error::<T>::NotStanding)?;
        ensure!(provider.lock > 0, Error::<T>::NotStanding);
        ensure!(root.is_possible(), Error::<T>::ImpossibleBatch);
        let block = frame_system::Pallet::<T>::block_number().saturated_into();
        ensure!(
            provider.next == 0 || provider.batched_at < block,
            Error::<T>::OneABlock
        );
        Self::finish_batches(&stash, &mut provider);
        let price = root.sums.price;
        let rate = T::Rates::get().newcomer;
        let points = rate.saturating_mul_int(price);
        let most = SURE.saturating_mul(POINTS_MEAN_MAX.into());
        ensure!(points <= most, Error::<T>::TooDear);
        provider
            .standing
            .commit(price)
            .map_err(|_| Error::<T>::BeyondCap)?;
        let batch = provider.next;
        let added = provider.unfinished.try_push(batch);
        added.map_err(|_| Error::<T>::TooManyBatches)?;
        provider.next = batch.checked_add(1).ok_or(ArithmeticError::Overflow)?;
        provider.batched_at = block;
        Self::prune(&stash, &mut provider);
        // Before anything is drawn, so that what audits cost is there whatever becomes of the batch.
        let levy = Self::levy().mul_ceil(price);
        if levy > 0 {
            let paid = T::Currency::transfer(&stash, &T::LevyPot::get(), levy, Preservation::Preserve);
            paid.map_err(|_| Error::<T>::CannotPayLevy)?;
        }
        let until = if provider.are_places_taken() {
            FROZEN
        } else {
            Self::now().saturating_add(T::BatchWindowLength::get())
        };
        let begun_at = frame_system::Pallet::<T>::block_number();
        let record = BatchRecord {
            window: BatchWindow::new(root, until),
            draw: AuditDraw {
                begun_at,
                settled_by: begun_at.saturating_sub(T::VerifierSeasoning::get().into()),
                epoch_randomness: T::EpochRandomness::get(),
                verifier_stake: T::Stake::bonded_in_all(Role::Verifier),
                seed: None,
            },
            rate,
            begun: Self::now(),
            announce_until: Self::now().saturating_add(T::AnnounceWindow::get()),
            announced: 0,
        };
        Batches::<T>::insert(&stash, batch, record);
        Standings::<T>::insert(&stash, provider);
        Self::deposit_event(Event::BatchCommitted {
            provider: stash,
            batch,
            levy,
        });
        Ok(())
    }

    pub(crate) fn do_add_signer(agent: T::AccountId) -> DispatchResult {
        let stash = T::Stake::stash_of(&agent, Role::Provider).ok_or(Error::<T>::NotAgent)?;
        let mut provider = Standings::<T>::get(&stash).ok_or(Error::<T>::NotStanding)?;
        ensure!(provider.lock > 0, Error::<T>::NotStanding);
        if provider.signers.contains(&agent) {
            return Ok(());
        }
        let added = provider.signers.try_push(agent.clone());
        added.map_err(|_| Error::<T>::TooManySigners)?;
        Standings::<T>::insert(&stash, provider);
        Self::deposit_event(Event::SignerAdded {
            provider: stash,
            signer: agent,
        });
        Ok(())
    }

    /// Takes what became final out of the open sum, in whatever order: [`UNFINISHED_MAX`] batches at most.
    pub(crate) fn finish_batches(stash: &T::AccountId, provider: &mut Provider<T::AccountId>) {
        let Provider {
            unfinished, standing, ..
        } = provider;
        unfinished.retain(|batch| {
            let Some(BatchRecord { window, .. }) = Batches::<T>::get(stash, batch) else {
                return true;
            };
            let is_final = window.is_final(Self::now());
            if is_final {
                standing.finish(window.root.sums.price);
            }
            !is_final
        });
    }

    /// Removes batches whose time to be redeemed from is over.
    pub(crate) fn prune(stash: &T::AccountId, provider: &mut Provider<T::AccountId>) {
        for _ in 0..PRUNED {
            let Some(BatchRecord {
                window, announced, ..
            }) = Batches::<T>::get(stash, provider.oldest)
            else {
                return;
            };
            let is_kept = window.until.saturating_add(T::RedeemBy::get()) >= Self::now();
            if is_kept || !window.is_final(Self::now()) {
                return;
            }
            if announced > 0 {
                let oldest = provider.oldest;
                Self::end_some_points(stash, provider, oldest);
                return;
            }
            Batches::<T>::remove(stash, provider.oldest);
            // Nobody has looked since it became final.
            if provider.unfinished.first() == Some(&provider.oldest) {
                provider.unfinished.remove(0);
                provider.standing.finish(window.root.sums.price);
            }
            provider.oldest = provider.oldest.saturating_add(1);
        }
    }
}
