//! What a provider stands behind, and its batches.

use frame_support::{ensure, traits::Get};
use sp_runtime::{ArithmeticError, DispatchResult, SaturatedConversion};
use surety_channels::{BatchRoot, BatchWindow, Standing};
use surety_types::{stake::Role, traits::StakeLedger};

use crate::{Batches, Config, Error, Event, Pallet, Provider, Standings, UNFINISHED_MAX};

/// Batches that a commitment removes at most: more than it adds, so that what is over goes away.
const PRUNED: u32 = 2;

impl<T: Config> Pallet<T> {
    /// The least lock for a cap, in plancks. Everybody is drawn like a newcomer: what was audited of whom is
    /// not counted yet.
    pub(crate) fn needed_lock(cap: u128) -> Option<u128> {
        let rates = T::Rates::get();
        let needed = T::Policy::get().standing_lock(rates.newcomer, T::AtRisk::get(), cap);
        needed.ok()
    }

    pub(crate) fn do_stand(stash: T::AccountId, lock: u128, cap: u128) -> DispatchResult {
        let levy = T::Pay::get().levy(T::Rates::get().newcomer, T::PointCost::get());
        let levy = levy.ok_or(Error::<T>::NotInsurable)?;
        let mut provider = Standings::<T>::get(&stash).unwrap_or(Provider {
            lock: 0,
            standing: Standing { cap: 0, open: 0 },
            levy,
            channels: 0,
            oldest: 0,
            unfinished: 0,
            next: 0,
            batched_at: 0,
        });
        Self::finish_batches(&stash, &mut provider);
        let is_in_use = provider.channels > 0 || provider.unfinished < provider.next;
        let is_less = lock < provider.lock || cap < provider.standing.cap;
        ensure!(!(is_in_use && is_less), Error::<T>::InUse);
        if lock > 0 {
            ensure!(T::Stake::bonded(&stash, Role::Provider) > 0, Error::<T>::NotAgent);
            let needed = Self::needed_lock(cap).ok_or(Error::<T>::NotInsurable)?;
            ensure!(needed <= lock, Error::<T>::LockTooSmall);
        }
        if lock > provider.lock {
            T::Stake::lock(&stash, lock.saturating_sub(provider.lock))?;
        } else {
            T::Stake::unlock(&stash, provider.lock.saturating_sub(lock));
        }
        provider.lock = lock;
        provider.standing.cap = if lock > 0 { cap } else { 0 };
        provider.levy = levy;
        Standings::<T>::insert(&stash, provider);
        Self::deposit_event(Event::Stands {
            provider: stash,
            lock,
        });
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
        let unfinished = provider.next.saturating_sub(provider.unfinished);
        ensure!(unfinished < UNFINISHED_MAX, Error::<T>::TooManyBatches);
        let price = root.sums.price;
        provider
            .standing
            .commit(price)
            .map_err(|_| Error::<T>::BeyondCap)?;
        let batch = provider.next;
        provider.next = batch.checked_add(1).ok_or(ArithmeticError::Overflow)?;
        provider.batched_at = block;
        Self::prune(&stash, &mut provider);
        let until = Self::now().saturating_add(T::BatchWindowLength::get());
        Batches::<T>::insert(&stash, batch, BatchWindow::new(root, until));
        Standings::<T>::insert(&stash, provider);
        Self::deposit_event(Event::BatchCommitted {
            provider: stash,
            batch,
        });
        Ok(())
    }

    /// Takes what became final out of the open sum: [`UNFINISHED_MAX`] batches at most.
    fn finish_batches(stash: &T::AccountId, provider: &mut Provider) {
        while provider.unfinished < provider.next {
            let Some(window) = Batches::<T>::get(stash, provider.unfinished) else {
                return;
            };
            if !window.is_final(Self::now()) {
                return;
            }
            provider.standing.finish(window.root.sums.price);
            provider.unfinished = provider.unfinished.saturating_add(1);
        }
    }

    /// Removes batches whose time to be redeemed from is over.
    fn prune(stash: &T::AccountId, provider: &mut Provider) {
        for _ in 0..PRUNED {
            if provider.oldest >= provider.unfinished {
                return;
            }
            let window = Batches::<T>::get(stash, provider.oldest);
            let is_over = |window: BatchWindow| window.until.saturating_add(T::RedeemBy::get()) < Self::now();
            if !window.is_none_or(is_over) {
                return;
            }
            Batches::<T>::remove(stash, provider.oldest);
            provider.oldest = provider.oldest.saturating_add(1);
        }
    }
}
