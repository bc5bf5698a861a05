//! The client's own lock: a part of its task's cap, on hold beside the escrow, that only a proven fault of its own takes.
//!
//! It goes back whole at settlement, at a refund and at a cancellation, whoever else was at fault. What a client can
//! be guilty of has to be shown on the chain; that a result is not to its liking is no such thing, and neither is that
//! nobody wanted the task.

use frame_support::{dispatch::DispatchResult, traits::Get};
use sp_runtime::traits::Zero;
use surety_types::TaskId;

use crate::{
    asset::{self, Delivery},
    BalanceOf, Config, Event, Pallet,
};

impl<T: Config> Pallet<T> {
    /// What the client of a task with this cap locks, rounded up.
    pub fn client_lock(cap: BalanceOf<T>) -> BalanceOf<T> {
        T::ClientLock::get().mul_ceil(cap)
    }

    /// Puts the lock on hold beside the cap.
    pub(crate) fn take_lock(task: TaskId, client: &T::AccountId, lock: BalanceOf<T>) -> DispatchResult {
        if lock.is_zero() {
            return Ok(());
        }
        asset::hold::<T>(client, lock)?;
        Self::add_to_totals(|totals| &mut totals.opened, lock)?;
        let (client, amount) = (client.clone(), lock);
        Self::deposit_event(Event::ClientLocked { task, client, amount });
        Ok(())
    }

    /// Gives it back.
    pub(crate) fn return_lock(task: TaskId, client: &T::AccountId, lock: BalanceOf<T>) -> DispatchResult {
        if lock.is_zero() {
            return Ok(());
        }
        let (client, amount) = (client.clone(), lock);
        match asset::release::<T>(&client, amount)? {
            Delivery::Arrived => {
                Self::add_to_totals(|totals| &mut totals.refunded, amount)?;
                Self::deposit_event(Event::ClientUnlocked { task, client, amount });
            }
            Delivery::Burned => Self::note_dust(task, client, amount)?,
        }
        Ok(())
    }
}
