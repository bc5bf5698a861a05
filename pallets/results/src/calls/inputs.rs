//! Pieces of a task's input, demanded and supplied on chain: what a client can be shown to have withheld.
//!
//! One piece is open at a time, and only while fewer than a majority have committed: whoever commits has the
//! input. The price comes back only when the client has withheld the piece, so that nobody gains time for
//! nothing; the client is paid for the piece alone, and the rest is burned.

use alloc::vec::Vec;
use frame_support::{dispatch::DispatchResult, ensure, traits::Get, weights::Weight};
use sp_runtime::{
    DispatchError, Perbill,
    traits::{Saturating, Zero},
};
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_proofs::{PART_BYTES, PART_SEGMENTS, SegmentOpening, segments};
use surety_types::{
    TaskId, limits,
    task::{FailureReason, MemberProgress, RoundPhase, Verdict},
    traits::{TaskClock, TaskOutcome},
};

use crate::{
    Config, Error, Event, HoldReason, InputDemandOf, Pallet, RoundOf, Rounds, WeightInfo, asset, verdict,
};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_demand_input(agent: T::AccountId, task: TaskId, segment: u32) -> DispatchResult {
        let provider = Self::provider_of(&agent)?;
        let mut round = Self::round(task)?;
        let commit_until = match round.phase {
            RoundPhase::Committing { until } if !TrustLock::<T>::has_passed(until) => Ok(until),
            _ => Err(Error::<T>::WrongPhase),
        }?;
        let member = Self::member(&mut round, &provider)?;
        ensure!(
            member.progress == MemberProgress::Working,
            Error::<T>::AlreadyCommitted
        );
        ensure!(member.fault.is_none(), Error::<T>::AlreadyAtFault);
        ensure!(
            member.input_demands < limits::INPUT_DEMANDS_MAX,
            Error::<T>::TooManyDemands
        );
        member.input_demands = member.input_demands.saturating_add(1);
        ensure!(round.input_demand.is_none(), Error::<T>::AlreadyDemanded);
        ensure!(!verdict::has_quorum(&round), Error::<T>::EnoughCommitted);
        let (_, input_bytes) = T::Outcome::input(task).ok_or(Error::<T>::UnknownRound)?;
        ensure!(segment < segments(input_bytes), Error::<T>::NoSuchSegment);
        // That of a part, for a segment. The client is paid for the bytes of the segment, which is less than
        // the fee of showing them: it does not live on what it has not served.
        let price = T::SupplyPrice::get().saturating_mul(PART_SEGMENTS.into());
        let by = asset::hold_for_work::<T>(HoldReason::Demand, (&agent, &provider), price)?;

        let window = T::InputWindow::get();
        let until = TrustLock::<T>::window_end(window);
        // Whoever waits for the input has as much time left afterwards as it has now.
        let commit_until = commit_until.saturating_add(window);
        round.phase = RoundPhase::Committing { until: commit_until };
        round.input_demand = Some(InputDemandOf::<T> {
            provider: provider.clone(),
            by,
            segment,
            price,
            until,
        });
        Rounds::<T>::insert(task, round);
        T::Clock::wake_after(task, until);
        T::Clock::wake_after(task, commit_until);
        Self::deposit_event(Event::InputDemanded {
            task,
            provider,
            segment,
            until,
            commit_until,
        });
        Ok(())
    }

    pub(crate) fn do_supply_input(
        by: T::AccountId,
        task: TaskId,
        opening: &SegmentOpening,
    ) -> DispatchResult {
        let mut round = Self::round(task)?;
        let demand = round.input_demand.take().ok_or(Error::<T>::NotDemanded)?;
        ensure!(!TrustLock::<T>::has_passed(demand.until), Error::<T>::WrongPhase);
        let (input, input_bytes) = T::Outcome::input(task).ok_or(Error::<T>::UnknownRound)?;
        let segment = opening.segment;
        ensure!(
            segment == demand.segment && opening.row_digest(input_bytes) == Some(input),
            Error::<T>::WrongSegment
        );
        Rounds::<T>::insert(task, round);
        // The client's, whoever has shown it: a provider cannot get its price back through an accomplice.
        let paid = match T::Outcome::client(task) {
            Some(client) => {
                let shown = u32::try_from(opening.bytes.len()).unwrap_or(u32::MAX);
                let paid = Perbill::from_rational(shown, PART_BYTES).mul_floor(demand.price);
                asset::hand_over::<T>(HoldReason::Demand, &demand.by, &client, paid);
                paid
            }
            // Cannot be: a task with a round is known.
            None => Zero::zero(),
        };
        asset::burn::<T>(HoldReason::Demand, &demand.by, demand.price.saturating_sub(paid));
        Self::deposit_event(Event::InputSupplied { task, segment, by });
        Ok(())
    }

    /// After a commitment: ends the open demand if whoever made it has committed itself, or a majority has.
    /// The input was to be had then, and the demand costs its price all the same.
    pub(crate) fn lift_input_demand(task: TaskId, round: &mut RoundOf<T>) {
        let is_needed = |demand: &InputDemandOf<T>| {
            let mut members = round.members.iter();
            let waits = members.any(|member| {
                member.provider == demand.provider && member.progress == MemberProgress::Working
            });
            waits && !verdict::has_quorum(round)
        };
        if round.input_demand.as_ref().is_none_or(is_needed) {
            return;
        }
        let Some(demand) = round.input_demand.take() else {
            return;
        };
        asset::burn::<T>(HoldReason::Demand, &demand.by, demand.price);
        let provider = demand.provider;
        Self::deposit_event(Event::InputDemandLifted { task, provider });
    }

    /// Whether the open demand has not been met in time.
    pub(crate) fn is_input_withheld(round: &RoundOf<T>) -> bool {
        let demand = round.input_demand.as_ref();
        demand.is_some_and(|demand| TrustLock::<T>::has_passed(demand.until))
    }

    /// Ends the round of a client that has withheld its input.
    pub(crate) fn fail_withheld(task: TaskId, round: RoundOf<T>) -> Result<Weight, DispatchError> {
        let waited = round.members.iter().filter(|member| member.fault.is_none());
        let providers: Vec<_> = waited.map(|member| member.provider.clone()).collect();
        Self::end_withheld(task, round);
        let outcome = T::Outcome::withheld(task, &providers)?;
        Ok(outcome.saturating_add(<T as Config>::WeightInfo::withhold_input()))
    }

    /// Everything about it but the task's and the client's part.
    pub(crate) fn end_withheld(task: TaskId, mut round: RoundOf<T>) {
        if let Some(demand) = round.input_demand.take() {
            asset::release::<T>(HoldReason::Demand, &demand.by, demand.price);
            Self::deposit_event(Event::InputWithheld {
                task,
                provider: demand.provider,
                segment: demand.segment,
            });
        }
        Self::deposit_event(Event::VerdictReached {
            task,
            verdict: Verdict::Failed(FailureReason::InputWithheld),
        });
        Self::close(task, &round);
    }
}
