//! Benchmarks: the longest proofs that there are, and outputs of authors that are as hard to find as can be.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark that panics has failed"
)]

use alloc::boxed::Box;

use frame_benchmarking::{account, v2::*};
use frame_support::traits::{Get, Time};
use frame_system::{RawOrigin, pallet_prelude::BlockNumberFor};
use sp_core::H256;
use sp_runtime::traits::{BlockNumberProvider, One, Zero};
use surety_gpu_proofs::{Job, Plan, Standing, draw, for_benchmark, seed};
use surety_types::{
    stake::Role,
    traits::{BlockEntropy, StakeLedger},
};

use crate::{
    Call, Commitment, Commitments, Config, CurrentRound, Gathered, Measurement, Measurements, Pallet, Round,
    RoundOf, RoundsBegun, Stage,
};

const ENTROPY: H256 = H256::repeat_byte(1);

/// As deep as a run can be: 22 levels of a batch, and 17 of batches.
const PLAN: Plan = Plan {
    rows: 32 * ((1 << 21) + 1),
    layers: (1 << 12) - 1,
};

fn bonded<T: Config>() -> (T::AccountId, T::AccountId) {
    let (stash, agent) = (account("stash", 0, 0), account("agent", 0, 0));
    T::Stake::endow(&stash, &agent, Role::Provider, One::one());
    (stash, agent)
}

fn enter<T: Config>(stage: Stage<BlockNumberFor<T>>) {
    RoundsBegun::<T>::put(1);
    CurrentRound::<T>::put(RoundOf::<T> {
        number: 1,
        window_ms: T::RunWindow::get(),
        stage,
    });
}

/// Somebody who has shown a run, and has committed to one of the round that there is now.
pub(crate) fn measure<T: Config>(stash: &T::AccountId) {
    enter::<T>(Stage::Running {
        entropy: ENTROPY,
        since_ms: T::Time::now(),
        blocks: 0,
        last_ms: 0,
    });
    let commitment = Commitment {
        round: 1,
        plan: PLAN,
        root: ENTROPY,
    };
    Commitments::<T>::insert(stash, commitment);
    let measurement = Measurement {
        giga_operations: PLAN.giga_operations(T::RunWindow::get()),
        memory_mib: PLAN.memory_mib(),
        standing: Standing::passed(None, 0, false),
    };
    Measurements::<T>::insert(stash, measurement);
}

#[benchmarks]
mod benches {
    use super::*;

    /// The last output that the samples are drawn with.
    #[benchmark]
    fn on_initialize() -> Result<(), BenchmarkError> {
        T::Entropy::fill_for_benchmark(Zero::zero());
        let gathered = Gathered {
            last: Zero::zero(),
            authors_left: 1,
            hash: ENTROPY,
        };
        enter::<T>(Stage::Drawing {
            entropy: ENTROPY,
            is_counted: true,
            gathered,
        });

        #[block]
        {
            Pallet::<T>::advance(frame_system::Pallet::<T>::block_number());
        }

        let stage = CurrentRound::<T>::get().map(|round: Round<_>| round.stage);
        assert!(matches!(stage, Some(Stage::Opening { .. })));
        Ok(())
    }

    /// A block of a window.
    #[benchmark]
    fn on_finalize() -> Result<(), BenchmarkError> {
        enter::<T>(Stage::Running {
            entropy: ENTROPY,
            since_ms: T::Time::now(),
            blocks: 0,
            last_ms: 0,
        });

        #[block]
        {
            Pallet::<T>::note_room();
        }

        let stage = CurrentRound::<T>::get().map(|round: Round<_>| round.stage);
        assert!(matches!(stage, Some(Stage::Running { blocks: 1, .. })));
        Ok(())
    }

    /// After a run that has failed.
    #[benchmark]
    fn commit_run() -> Result<(), BenchmarkError> {
        let (stash, agent) = bonded::<T>();
        enter::<T>(Stage::Running {
            entropy: ENTROPY,
            since_ms: T::Time::now(),
            blocks: 0,
            last_ms: 0,
        });
        let failed = Commitment {
            round: 0,
            plan: PLAN,
            root: ENTROPY,
        };
        Commitments::<T>::insert(&stash, failed);

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), ENTROPY, PLAN, H256::zero());

        let commitment = Commitments::<T>::get(&stash);
        assert!(commitment.is_some_and(|commitment| commitment.round == 1));
        Ok(())
    }

    #[benchmark]
    fn open_run() -> Result<(), BenchmarkError> {
        let (stash, agent) = bonded::<T>();
        enter::<T>(Stage::Opening {
            entropy: ENTROPY,
            is_counted: true,
            samples: ENTROPY,
            until: T::Clock::current_block_number(),
        });
        let job = Job::new(PLAN, &seed(&ENTROPY, 1, &stash));
        let (root, openings) = for_benchmark(&job, &draw(PLAN, &ENTROPY, 1, &stash));
        let commitment = Commitment {
            round: 1,
            plan: PLAN,
            root,
        };
        Commitments::<T>::insert(&stash, commitment);

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), Box::new(openings));

        assert!(Measurements::<T>::contains_key(&stash) && !Commitments::<T>::contains_key(&stash));
        Ok(())
    }

    impl_benchmark_test_suite!(Pallet, crate::mock::TestExt::new().build(), crate::mock::Test);
}
