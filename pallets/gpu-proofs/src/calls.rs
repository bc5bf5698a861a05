//! What the calls do, once their origin is known, and what counts of it.

use frame_support::{ensure, traits::Time};
use sp_core::H256;
use sp_runtime::{DispatchError, DispatchResult, traits::BlockNumberProvider};
use surety_gpu_proofs::{Job, Openings, Plan, Standing, draw, seed, verify_all};
use surety_types::{stake::Role, traits::StakeLedger};

use crate::{
    Commitment, Commitments, Config, CurrentRound, Error, Event, Measurement, Measurements, Pallet,
    RoundsOver, Stage,
};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_commit_run(
        agent: T::AccountId,
        entropy: H256,
        plan: Plan,
        root: H256,
    ) -> DispatchResult {
        let provider = Self::provider_of(&agent)?;
        let round = CurrentRound::<T>::get().ok_or(Error::<T>::NotRunning)?;
        let Stage::Running {
            entropy: expected,
            since_ms,
            ..
        } = round.stage
        else {
            return Err(Error::<T>::NotRunning.into());
        };
        ensure!(entropy == expected, Error::<T>::OtherEntropy);
        let deadline = since_ms.saturating_add(round.window_ms);
        ensure!(T::Time::now() <= deadline, Error::<T>::TooLate);
        ensure!(plan.is_sound(), Error::<T>::UnsoundPlan);
        if let Some(before) = Commitments::<T>::get(&provider) {
            ensure!(before.round != round.number, Error::<T>::AlreadyCommitted);
            // It has failed: what was shown before counts no more.
            Measurements::<T>::remove(&provider);
        }
        let commitment = Commitment {
            round: round.number,
            plan,
            root,
        };
        Commitments::<T>::insert(&provider, commitment);
        Self::deposit_event(Event::RunCommitted { provider, plan });
        Ok(())
    }

    pub(crate) fn do_open_run(agent: T::AccountId, openings: &Openings) -> DispatchResult {
        let provider = Self::provider_of(&agent)?;
        let round = CurrentRound::<T>::get().ok_or(Error::<T>::NotOpening)?;
        let Stage::Opening {
            entropy,
            samples,
            until,
            is_counted,
        } = round.stage
        else {
            return Err(Error::<T>::NotOpening.into());
        };
        ensure!(T::Clock::current_block_number() <= until, Error::<T>::TooLate);
        let Commitment { plan, root, .. } = Commitments::<T>::get(&provider)
            .filter(|commitment| commitment.round == round.number)
            .ok_or(Error::<T>::NothingToOpen)?;
        let job = Job::new(plan, &seed(&entropy, round.number, &provider));
        let drawn = draw(plan, &samples, round.number, &provider);
        verify_all(&job, &root, &drawn, openings).map_err(Error::<T>::from)?;

        let over = RoundsOver::<T>::get();
        let before = Measurements::<T>::get(&provider).map(|measurement| measurement.standing);
        let before = before.filter(|standing| standing.holds(over));
        let measurement = Measurement {
            giga_operations: plan.giga_operations(round.window_ms),
            memory_mib: plan.memory_mib(),
            standing: Standing::passed(before, over, is_counted),
        };
        Commitments::<T>::remove(&provider);
        Measurements::<T>::insert(&provider, measurement);
        Self::deposit_event(Event::Measured {
            provider,
            measurement,
        });
        Ok(())
    }

    /// What a provider has shown, while it counts: not after a run that it has shown nothing of, nor when it
    /// has missed too many rounds.
    pub fn measurement(provider: &T::AccountId) -> Option<Measurement> {
        if let Some(commitment) = Commitments::<T>::get(provider) {
            let round = CurrentRound::<T>::get()?;
            if round.number != commitment.round {
                return None;
            }
        }
        let over = RoundsOver::<T>::get();
        Measurements::<T>::get(provider).filter(|measurement| measurement.standing.holds(over))
    }

    fn provider_of(agent: &T::AccountId) -> Result<T::AccountId, DispatchError> {
        T::Stake::stash_of(agent, Role::Provider).ok_or_else(|| Error::<T>::NotAgent.into())
    }
}
