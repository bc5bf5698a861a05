//! The invariants of the README, one function each.

use frame_support::ensure;
use sp_runtime::{traits::Zero, TryRuntimeError};

use crate::{median::lower_median, Config, Elapsed, Finalised, Notes, Pallet};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        Self::clock_1_what_is_final_is_past()?;
        Self::clock_2_the_clock_follows_the_median()?;
        Self::clock_3_no_more_time_runs_than_becomes_final()
    }

    fn clock_1_what_is_final_is_past() -> Result<(), TryRuntimeError> {
        let now = frame_system::Pallet::<T>::block_number();
        let shown = Finalised::<T>::get();
        ensure!(
            shown < now || shown.is_zero(),
            "CLOCK-1: the clock is ahead of the chain"
        );
        let past = Notes::<T>::get().iter().all(|note| *note < now);
        ensure!(past, "CLOCK-1: a note is about a block to come");
        Ok(())
    }

    fn clock_2_the_clock_follows_the_median() -> Result<(), TryRuntimeError> {
        let median = lower_median(Notes::<T>::get().into_inner());
        ensure!(
            median.is_none_or(|median| median <= Finalised::<T>::get()),
            "CLOCK-2: the clock is behind the notes"
        );
        Ok(())
    }

    fn clock_3_no_more_time_runs_than_becomes_final() -> Result<(), TryRuntimeError> {
        ensure!(
            Elapsed::<T>::get() <= Finalised::<T>::get(),
            "CLOCK-3: more time has run than blocks are final"
        );
        Ok(())
    }
}
