//! The invariants of the README, one function each.

use frame_support::ensure;
use sp_runtime::{TryRuntimeError, traits::Zero};

use crate::{Config, Elapsed, Finalized, Notes, Pallet, Progressed};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        Self::clock_1_what_is_final_is_past()?;
        Self::clock_2_no_more_time_runs_than_becomes_final()
    }

    fn clock_1_what_is_final_is_past() -> Result<(), TryRuntimeError> {
        let now = frame_system::Pallet::<T>::block_number();
        let shown = Finalized::<T>::get();
        ensure!(
            shown < now || shown.is_zero(),
            "CLOCK-1: the clock is ahead of the chain"
        );
        let past = Notes::<T>::get().values().all(|note| *note < now);
        ensure!(past, "CLOCK-1: a note is about a block to come");
        Ok(())
    }

    fn clock_2_no_more_time_runs_than_becomes_final() -> Result<(), TryRuntimeError> {
        let progressed = Progressed::<T>::get();
        ensure!(
            progressed <= Finalized::<T>::get(),
            "CLOCK-2: finality has progressed by more blocks than are final"
        );
        ensure!(
            Elapsed::<T>::get() <= progressed,
            "CLOCK-2: more time has run than finality has progressed"
        );
        Ok(())
    }
}
