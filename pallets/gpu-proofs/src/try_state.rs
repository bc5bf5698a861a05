//! The invariants of the README, one function each.

use frame_support::ensure;
use sp_runtime::{TryRuntimeError, traits::Zero};
use surety_gpu_proofs::GRACE_ROUNDS;
use surety_types::traits::StakeLedger;

use crate::{
    AUTHORS, Commitments, Config, CurrentRound, Gathered, Measurements, Pallet, RoundsBegun, RoundsOver,
    Stage,
};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    ///
    /// # Errors
    /// Says which does not hold.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        Self::gpu_1_rounds_are_counted()?;
        Self::gpu_2_commitments_are_sound()?;
        Self::gpu_3_measurements_are_past()?;
        Self::gpu_4_providers_have_stake()
    }

    fn gpu_1_rounds_are_counted() -> Result<(), TryRuntimeError> {
        let begun = RoundsBegun::<T>::get();
        let round = CurrentRound::<T>::get();
        ensure!(
            RoundsOver::<T>::get() <= begun.saturating_sub(round.is_some().into()),
            "GPU-1: more rounds are over than have begun"
        );
        let Some(round) = round else {
            return Ok(());
        };
        ensure!(
            round.number == begun,
            "GPU-1: the round is not the last that has begun"
        );
        if let Stage::Seeding { gathered } | Stage::Drawing { gathered, .. } = round.stage {
            let Gathered { authors_left, .. } = gathered;
            ensure!(
                (1..=AUTHORS).contains(&authors_left),
                "GPU-1: a round waits for no author, or for too many"
            );
        }
        Ok(())
    }

    fn gpu_2_commitments_are_sound() -> Result<(), TryRuntimeError> {
        for commitment in Commitments::<T>::iter_values() {
            ensure!(commitment.plan.is_sound(), "GPU-2: no run has such a size");
            ensure!(
                (1..=RoundsBegun::<T>::get()).contains(&commitment.round),
                "GPU-2: a commitment in a round that there was not"
            );
        }
        Ok(())
    }

    fn gpu_3_measurements_are_past() -> Result<(), TryRuntimeError> {
        let stage = CurrentRound::<T>::get().map(|round| round.stage);
        // Whoever has passed the present round has done so as if it was over.
        let is_counted = matches!(stage, Some(Stage::Opening { is_counted: true, .. }));
        let over = RoundsOver::<T>::get().saturating_add(is_counted.into());
        for measurement in Measurements::<T>::iter_values() {
            let standing = measurement.standing;
            ensure!(
                standing.rounds_over <= over,
                "GPU-3: somebody was measured in a round to come"
            );
            ensure!(
                standing.grace_from <= standing.rounds_over.saturating_add(GRACE_ROUNDS),
                "GPU-3: somebody waits too long until it may miss a round"
            );
        }
        Ok(())
    }

    fn gpu_4_providers_have_stake() -> Result<(), TryRuntimeError> {
        let known = Commitments::<T>::iter_keys().chain(Measurements::<T>::iter_keys());
        for provider in known {
            ensure!(
                !T::Stake::stake(&provider).is_zero(),
                "GPU-4: something is kept for somebody without stake"
            );
        }
        Ok(())
    }
}
