//! Pieces of output, demanded and supplied on chain.

use frame_support::{dispatch::DispatchResult, ensure, traits::Get};
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_proofs::{SegmentOpening, segments};
use surety_types::{
    TaskId, limits,
    task::ResultClaim,
    traits::{TaskClock, TaskOutcome},
    trust::{Demand, FaultKind},
};

use crate::{
    Config, Demands, DisputeContexts, DisputeReferee, Error, Event, HoldReason, Pallet, RoundOf, Rounds,
    asset,
};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_demand(
        by: T::AccountId,
        task: TaskId,
        provider: &T::AccountId,
        segment: u32,
    ) -> DispatchResult {
        let mut round = Self::round(task)?;
        Self::ensure_challengeable(&round)?;
        let member = Self::member(&mut round, provider)?;
        ensure!(member.disputable_claim().is_some(), Error::<T>::NotRevealed);
        let client = T::Outcome::client(task);
        let is_clients = |by: &T::AccountId| client.as_ref() == Some(by);
        if !is_clients(&by) {
            ensure!(round.demands < limits::DEMANDS_MAX, Error::<T>::TooManyDemands);
            round.demands = round.demands.saturating_add(1);
        }
        if let Some(other) = Demands::<T>::get(task, provider) {
            // Whoever pays for the output comes first: a provider that withholds it could demand of itself
            // for ever.
            ensure!(
                is_clients(&by) && !is_clients(&other.by),
                Error::<T>::AlreadyDemanded
            );
            asset::release::<T>(HoldReason::Demand, &other.by, other.price);
        }
        let price = T::SupplyPrice::get();
        asset::hold::<T>(HoldReason::Demand, &by, price)?;
        let until = TrustLock::<T>::window_end(T::SupplyWindow::get());
        let demand = Demand {
            by: by.clone(),
            segment,
            price,
            until,
        };
        Demands::<T>::insert(task, provider, demand);
        Rounds::<T>::insert(task, round);
        T::Clock::wake_after(task, until);
        Self::deposit_event(Event::DataDemanded {
            task,
            provider: provider.clone(),
            by,
            segment,
            until,
        });
        Ok(())
    }

    pub(crate) fn do_supply(
        agent: &T::AccountId,
        task: TaskId,
        output_bytes: u32,
        opening: &SegmentOpening,
    ) -> DispatchResult {
        let provider = Self::provider_of(agent)?;
        let mut round = Self::round(task)?;
        let claim = Self::member(&mut round, &provider)?.claim().cloned();
        let demand = Demands::<T>::get(task, &provider).ok_or(Error::<T>::NotDemanded)?;
        ensure!(!TrustLock::<T>::has_passed(demand.until), Error::<T>::WrongPhase);
        let claim = claim.ok_or(Error::<T>::NotRevealed)?;
        ensure!(
            Self::is_piece(task, &claim, demand.segment, output_bytes, opening),
            Error::<T>::WrongSegment
        );
        Demands::<T>::remove(task, &provider);
        asset::hand_over::<T>(HoldReason::Demand, &demand.by, &provider, demand.price);
        // It may be the last thing that the round waits for.
        T::Clock::wake_after(task, TrustLock::<T>::now());
        Self::deposit_event(Event::DataSupplied {
            task,
            provider,
            segment: opening.segment,
        });
        Ok(())
    }

    /// Whether `opening` is the piece of the claim's output that was asked for, or its last one when it has
    /// fewer.
    fn is_piece(
        task: TaskId,
        claim: &ResultClaim,
        wanted: u32,
        output_bytes: u32,
        opening: &SegmentOpening,
    ) -> bool {
        let last = segments(output_bytes).saturating_sub(1);
        let length =
            DisputeContexts::<T>::get(task).and_then(|context| T::Referee::output_bytes(&context, claim));
        let length = length.unwrap_or(output_bytes);
        length == output_bytes
            && opening.segment == wanted.min(last)
            && opening.row_digest(output_bytes) == Some(claim.output)
    }

    /// Ends one demand of the round that is overdue, or whose provider no longer counts. Says whether there
    /// was one.
    pub(crate) fn end_demand(task: TaskId, round: &mut RoundOf<T>) -> bool {
        for member in &round.members.clone() {
            let Some(demand) = Demands::<T>::get(task, &member.provider) else {
                continue;
            };
            let stands = member.disputable_claim().is_some();
            if stands && !TrustLock::<T>::has_passed(demand.until) {
                continue;
            }
            Demands::<T>::remove(task, &member.provider);
            asset::release::<T>(HoldReason::Demand, &demand.by, demand.price);
            if stands {
                Self::convict_provider(
                    task,
                    round,
                    &member.provider,
                    FaultKind::WithheldData,
                    Some(demand.by),
                );
                Self::update_verdict(task, round);
            }
            return true;
        }
        false
    }

    /// Whether something is demanded of a provider of the round.
    pub(crate) fn has_demands(task: TaskId) -> bool {
        Demands::<T>::iter_prefix_values(task).next().is_some()
    }
}
