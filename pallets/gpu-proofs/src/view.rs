//! What clients and other pallets are told.

use frame_support::traits::Time;
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::traits::BlockNumberProvider;
use surety_gpu_proofs::{GpuRoundView, MeasuredView, RoundStage, RunView};
use surety_types::traits::MeasuredSpeed;

use crate::{Commitments, Config, CurrentRound, Pallet, RoundsOver, Stage};

impl<T: Config> Pallet<T> {
    /// The round that there is now, with what a provider needs to take part.
    pub fn round_view() -> Option<GpuRoundView<BlockNumberFor<T>>> {
        let round = CurrentRound::<T>::get()?;
        let stage = match round.stage {
            Stage::Seeding { gathered } => RoundStage::Seeding {
                authors_left: gathered.authors_left,
            },
            Stage::Running {
                entropy, since_ms, ..
            } => RoundStage::Running { entropy, since_ms },
            Stage::Drawing {
                entropy, gathered, ..
            } => RoundStage::Drawing {
                entropy,
                authors_left: gathered.authors_left,
            },
            Stage::Opening {
                entropy,
                samples,
                until,
                ..
            } => RoundStage::Opening {
                entropy,
                samples,
                until,
            },
        };
        Some(GpuRoundView {
            number: round.number,
            window_ms: round.window_ms,
            stage,
            time_ms: T::Time::now(),
            now: T::Clock::current_block_number(),
        })
    }

    /// The run of the present round that a provider has committed to and shown nothing of.
    pub fn run_view(provider: &T::AccountId) -> Option<RunView> {
        let number = CurrentRound::<T>::get()?.number;
        let commitment = Commitments::<T>::get(provider)?;
        (commitment.round == number).then_some(RunView {
            round: number,
            plan: commitment.plan,
            root: commitment.root,
        })
    }

    /// How fast a provider was measured to be; nothing where that counts no more, or it never was.
    pub fn measured_view(provider: &T::AccountId) -> Option<MeasuredView> {
        let measurement = Self::measurement(provider)?;
        Some(MeasuredView {
            tier: measurement.tier(),
            giga_operations: measurement.giga_operations,
            memory_mib: measurement.memory_mib,
            rounds_missed: measurement.standing.missed(RoundsOver::<T>::get()),
        })
    }
}

impl<T: Config> MeasuredSpeed<T::AccountId> for Pallet<T> {
    fn measured(stash: &T::AccountId) -> Option<MeasuredView> {
        Self::measured_view(stash)
    }

    /// It has passed the last round, and committed to a run of this one.
    #[cfg(feature = "runtime-benchmarks")]
    fn measure_for_benchmark(stash: &T::AccountId) {
        crate::benchmarking::measure::<T>(stash);
    }
}
