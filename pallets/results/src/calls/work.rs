//! What providers do: commit and reveal.

use frame_support::{dispatch::DispatchResult, ensure};
use sp_core::H256;
use surety_dispute_game::majority;
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_types::{
    TaskId,
    task::{MemberProgress, ResultClaim, RoundMember, RoundPhase},
};

use crate::{Config, Error, Event, Pallet, Rounds, verdict};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_commit(agent: &T::AccountId, task: TaskId, commitment: H256) -> DispatchResult {
        let provider = Self::provider_of(agent)?;
        let mut round = Self::round(task)?;
        ensure!(
            matches!(round.phase, RoundPhase::Committing { until } if !TrustLock::<T>::has_passed(until)),
            Error::<T>::WrongPhase
        );
        let member = Self::member(&mut round, &provider)?;
        ensure!(
            member.progress == MemberProgress::Working,
            Error::<T>::AlreadyCommitted
        );
        member.progress = MemberProgress::Committed(commitment);
        let committed = verdict::committed(&round);
        if committed == majority(round.redundancy()) {
            // Whoever was replaced before has missed what could be done after all.
            let missed = round.dropped.iter().take(committed as usize);
            missed.for_each(TrustLock::<T>::note_missed);
        }
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

    /// Whoever calls: the opening proves that it is what the provider committed to.
    pub(crate) fn do_reveal(
        task: TaskId,
        provider: T::AccountId,
        claim: ResultClaim,
        salt: H256,
    ) -> DispatchResult {
        let mut round = Self::round(task)?;
        ensure!(Self::ensure_revealing(&round).is_ok(), Error::<T>::WrongPhase);
        Self::ensure_opens(&round, task, &provider, &claim, &salt)?;
        // When nobody has advanced the round.
        match round.phase {
            RoundPhase::Auditing { .. } => Self::start_revealing(task, &mut round),
            RoundPhase::Revealing { until } if TrustLock::<T>::has_passed(until) => {
                Self::note_missed_reveal(task, Self::member(&mut round, &provider)?);
            }
            _ => {}
        }
        Self::member(&mut round, &provider)?.progress = MemberProgress::Revealed(claim.clone());
        Self::deposit_event(Event::Revealed {
            task,
            provider: provider.clone(),
            claim: claim.clone(),
        });
        Self::compare_with_shown(task, &mut round, &provider, &claim);

        if matches!(round.phase, RoundPhase::Challengeable { .. }) {
            Self::after_late_reveal(task, &mut round, &provider);
        } else if !round.members.iter().any(RoundMember::owes_opening) {
            Self::conclude(task, &mut round);
        }
        Rounds::<T>::insert(task, round);
        Ok(())
    }
}
