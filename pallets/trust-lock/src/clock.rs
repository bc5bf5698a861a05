//! Times of the clock that whoever owes something is measured with: here, and in the pallets that build on
//! this one, so that no two of them can mean different times.

use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::traits::{BlockNumberProvider, Saturating};

use crate::{Config, Pallet};

impl<T: Config> Pallet<T> {
    /// What the clock shows.
    pub fn now() -> BlockNumberFor<T> {
        T::BlockNumberProvider::current_block_number()
    }

    /// Whether a last time is over.
    pub fn has_passed(until: BlockNumberFor<T>) -> bool {
        Self::now() > until
    }

    /// The last time of a window that begins now.
    pub fn window_end(window: BlockNumberFor<T>) -> BlockNumberFor<T> {
        Self::now().saturating_add(window)
    }
}
