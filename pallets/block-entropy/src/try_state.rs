//! The invariant of the README.

use frame_support::ensure;
use sp_runtime::TryRuntimeError;

use crate::{Config, KEPT, Outputs, Pallet, Recorded};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    ///
    /// # Errors
    /// Says which does not hold.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        Self::entropy_1_outputs_are_of_ever_later_blocks()
    }

    fn entropy_1_outputs_are_of_ever_later_blocks() -> Result<(), TryRuntimeError> {
        let end = Recorded::<T>::get();
        let first = end.saturating_sub(KEPT.into());
        let mut before = None;
        for number in first..end {
            let (_, block) = Self::output(number).ok_or("ENTROPY-1: an output is missing")?;
            ensure!(
                before.is_none_or(|before| before < block),
                "ENTROPY-1: outputs are out of order"
            );
            before = Some(block);
        }
        ensure!(
            before.is_none_or(|newest| newest < frame_system::Pallet::<T>::block_number()),
            "ENTROPY-1: an output of a block to come"
        );
        let kept = u64::try_from(Outputs::<T>::iter_keys().count()).unwrap_or(u64::MAX);
        ensure!(
            kept == end.saturating_sub(first),
            "ENTROPY-1: an output that nobody finds"
        );
        Ok(())
    }
}
