//! What calls do, by who makes them.

mod payer;
mod provider;
mod redeem;

use sp_runtime::{SaturatedConversion, traits::BlockNumberProvider};
use surety_channels::Time;

use crate::{Config, Pallet};

impl<T: Config> Pallet<T> {
    /// Time on the clock that stands still while finality does.
    pub(crate) fn now() -> Time {
        T::Clock::current_block_number().saturated_into()
    }
}
