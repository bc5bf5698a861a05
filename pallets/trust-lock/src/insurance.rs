//! What clients get that were told something wrong.

use frame_support::traits::{
    Get,
    fungible::{Inspect, Mutate},
    tokens::{Fortitude, Preservation},
};
use sp_runtime::traits::Zero;
use surety_types::TaskId;

use crate::{Config, Event, Pallet};

impl<T: Config> Pallet<T> {
    /// Pays the client of a task up to `amount` out of the insurance pool, as far as it has it.
    pub fn insure(task: TaskId, client: T::AccountId, amount: T::Balance) {
        let pool = T::InsurancePool::get();
        let there = T::Currency::reducible_balance(&pool, Preservation::Preserve, Fortitude::Polite);
        let amount = amount.min(there);
        if amount.is_zero() || client == pool {
            return;
        }
        // It fails where the client's account cannot take it.
        if let Ok(amount) = T::Currency::transfer(&pool, &client, amount, Preservation::Preserve) {
            Self::deposit_event(Event::InsurancePaid { task, client, amount });
        }
    }
}
