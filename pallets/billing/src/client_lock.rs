//! The client's own lock: a part of its task's cap, in the pot beside the escrow, that only a proven fault of
//! its own takes.
//!
//! It goes back whole at settlement, at a refund and at a cancellation, whoever else was at fault. What a
//! client can be guilty of has to be shown on the chain; that a result is not to its liking is no such thing,
//! and neither is that nobody wanted the task. Withholding its input is: a provider demanded a piece on the
//! chain, and nobody supplied it.
//!
//! Half of a lock that is lost goes to the providers who waited in vain, in equal shares, and half is burned:
//! a client that is its own provider loses by it, and providers who make a client lose it earn less than by
//! working.

use frame_support::{dispatch::DispatchResult, traits::Get};
use sp_runtime::{
    DispatchError, Permill, Saturating,
    traits::{CheckedDiv, Zero},
};
use surety_types::TaskId;

use crate::{
    BalanceOf, Config, Event, Pallet,
    asset::{self, Delivery},
};

impl<T: Config> Pallet<T> {
    /// What the client of a task with this cap locks, rounded up.
    pub fn client_lock(cap: BalanceOf<T>) -> BalanceOf<T> {
        T::ClientLock::get().mul_ceil(cap)
    }

    /// Takes the lock beside the cap.
    pub(crate) fn take_lock(task: TaskId, client: &T::AccountId, lock: BalanceOf<T>) -> DispatchResult {
        if lock.is_zero() {
            return Ok(());
        }
        asset::take::<T>(client, lock)?;
        Self::add_to_totals(|totals| &mut totals.opened, lock)?;
        let (client, amount) = (client.clone(), lock);
        Self::deposit_event(Event::ClientLocked { task, client, amount });
        Ok(())
    }

    /// Takes it: half is shared among `providers`, rounded down, and the rest is burned.
    pub(crate) fn lose_lock(
        task: TaskId,
        client: &T::AccountId,
        lock: BalanceOf<T>,
        providers: &[T::AccountId],
    ) -> DispatchResult {
        if lock.is_zero() {
            return Ok(());
        }
        let count = BalanceOf::<T>::from(u32::try_from(providers.len()).unwrap_or(u32::MAX));
        let half = Permill::from_percent(50).mul_floor(lock);
        let share = half.checked_div(&count).unwrap_or_else(Zero::zero);
        let mut shared = BalanceOf::<T>::zero();
        for provider in providers {
            shared = shared.saturating_add(Self::compensate(task, provider, share)?);
        }
        let burned = lock.saturating_sub(shared);
        // What a provider's account could not take is burned already.
        let unasked = lock.saturating_sub(share.saturating_mul(count));
        asset::burn::<T>(unasked)?;
        Self::add_to_totals(|totals| &mut totals.paid, shared)?;
        Self::add_to_totals(|totals| &mut totals.burned, burned)?;
        let client = client.clone();
        Self::deposit_event(Event::ClientForfeited {
            task,
            client,
            shared,
            burned,
        });
        Ok(())
    }

    /// Returns how much of `share` arrived: all or nothing of it.
    fn compensate(
        task: TaskId,
        provider: &T::AccountId,
        share: BalanceOf<T>,
    ) -> Result<BalanceOf<T>, DispatchError> {
        let amount = Self::deliver_share(provider, share)?;
        if !amount.is_zero() {
            let provider = provider.clone();
            Self::deposit_event(Event::ProviderCompensated {
                task,
                provider,
                amount,
            });
        }
        Ok(amount)
    }

    /// Gives it back.
    pub(crate) fn return_lock(task: TaskId, client: &T::AccountId, lock: BalanceOf<T>) -> DispatchResult {
        if lock.is_zero() {
            return Ok(());
        }
        let (client, amount) = (client.clone(), lock);
        match asset::deliver::<T>(&client, amount)? {
            Delivery::Arrived => {
                Self::add_to_totals(|totals| &mut totals.refunded, amount)?;
                Self::deposit_event(Event::ClientUnlocked { task, client, amount });
            }
            Delivery::Burned => Self::note_dust(task, client, amount)?,
        }
        Ok(())
    }
}
