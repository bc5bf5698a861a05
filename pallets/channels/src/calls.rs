//! What calls do, by who makes them.

mod demands;
pub(crate) mod disputes;
mod offers;
mod payer;
mod points;
mod provider;
mod redeem;
mod reports;

use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::{SaturatedConversion, traits::BlockNumberProvider};
use surety_channels::{BatchNumber, Time};

use crate::{BatchRecord, Batches, Config, Pallet};

impl<T: Config> Pallet<T> {
    /// Time on the clock that stands still while finality does.
    pub(crate) fn now() -> Time {
        T::Clock::current_block_number().saturated_into()
    }

    /// Changes a batch, if it is kept.
    pub(crate) fn change_batch(
        stash: &T::AccountId,
        batch: BatchNumber,
        change: impl FnOnce(&mut BatchRecord<BlockNumberFor<T>>),
    ) {
        Batches::<T>::mutate_exists(stash, batch, |record| {
            if let Some(record) = record {
                change(record);
            }
        });
    }
}
