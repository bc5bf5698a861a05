//! What providers' agents do: commit and reveal.

use frame_support::{dispatch::DispatchResult, ensure};
use sp_core::H256;
use surety_types::{
    task::{MemberProgress, ResultClaim, RoundMember, RoundPhase},
    TaskId,
};

use crate::{Config, Error, Event, Pallet, Rounds};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_commit(agent: &T::AccountId, task: TaskId, commitment: H256) -> DispatchResult {
        let provider = Self::provider_of(agent)?;
        let mut round = Self::round(task)?;
        ensure!(
            matches!(round.phase, RoundPhase::Committing { until } if !Self::has_passed(until)),
            Error::<T>::WrongPhase
        );
        let member = Self::member(&mut round, &provider)?;
        ensure!(
            member.progress == MemberProgress::Working,
            Error::<T>::AlreadyCommitted
        );
        member.progress = MemberProgress::Committed(commitment);
        Self::note_commitment(task, &provider, agent, commitment);
        Self::deposit_event(Event::Committed {
            task,
            provider,
            commitment,
        });
        Self::lift_input_demand(task, &mut round);

        if round
            .members
            .iter()
            .all(|member| member.progress != MemberProgress::Working)
        {
            Self::start_auditing(task, &mut round);
        }
        Rounds::<T>::insert(task, round);
        Ok(())
    }

    pub(crate) fn do_reveal(
        agent: &T::AccountId,
        task: TaskId,
        claim: ResultClaim,
        salt: H256,
    ) -> DispatchResult {
        let provider = Self::provider_of(agent)?;
        let mut round = Self::round(task)?;
        if matches!(round.phase, RoundPhase::Auditing { until } if Self::has_passed(until)) {
            Self::start_revealing(task, &mut round);
        }
        ensure!(
            matches!(round.phase, RoundPhase::Revealing { until } if !Self::has_passed(until)),
            Error::<T>::WrongPhase
        );
        let units_max = round.units_max;
        let member = Self::member(&mut round, &provider)?;
        let commitment = match member.progress {
            MemberProgress::Working => Err(Error::<T>::NotCommitted),
            MemberProgress::Committed(commitment) => Ok(commitment),
            MemberProgress::Revealed(_) => Err(Error::<T>::AlreadyRevealed),
        }?;
        ensure!(
            surety_verification::commitment(task, &provider, &claim, &salt) == commitment,
            Error::<T>::CommitmentMismatch
        );
        ensure!(claim.units <= units_max, Error::<T>::TooManyUnits);
        ensure!(!Self::is_impossible(task, &claim), Error::<T>::ImpossibleClaim);
        member.progress = MemberProgress::Revealed(claim.clone());
        Self::deposit_event(Event::Revealed {
            task,
            provider,
            claim,
        });

        let sealed = |member: &RoundMember<_, _>| matches!(member.progress, MemberProgress::Committed(_));
        if !round.members.iter().any(sealed) {
            Self::conclude(task, &mut round);
        }
        Rounds::<T>::insert(task, round);
        Ok(())
    }
}
