//! What must hold between any two blocks, one function an invariant. The ids are explained in the README.

mod committees;

use alloc::collections::{BTreeMap, BTreeSet};
use codec::Encode;
use frame_support::ensure;
use sp_runtime::{
    TryRuntimeError,
    traits::{Saturating, Zero},
};
use surety_pallet_results::{RoundOf, Rounds, asset};
use surety_types::{
    TaskId, limits,
    task::RoundPhase,
    trust::{AuditState, DisputeId, Party},
};

use crate::{Committees, Config, DisputeOf, Disputes, HoldReason, NextDisputeId, Pallet};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    ///
    /// # Errors
    /// Says which does not hold.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        Rounds::<T>::iter()
            .try_for_each(|(task, round)| disputes_1_disputes_are_those_of_their_rounds::<T>(task, &round))?;
        disputes_1_disputes_have_rounds::<T>()?;
        disputes_9_challenges_of_an_account_are_of_different_claims::<T>()?;
        disputes_2_holds_are_bonds::<T>()?;
        disputes_8_holds_are_prices_of_showing::<T>()?;
        Rounds::<T>::iter()
            .try_for_each(|(task, round)| disputes_5_places_are_those_of_challengers::<T>(task, &round))?;
        Rounds::<T>::iter_values().try_for_each(|round| disputes_6_audits_that_play_do::<T>(&round))?;
        committees::check::<T>()
    }
}

fn disputes_1_disputes_are_those_of_their_rounds<T: Config>(
    task: TaskId,
    round: &RoundOf<T>,
) -> Result<(), TryRuntimeError> {
    for open in &round.disputes {
        let dispute = Disputes::<T>::get(open.id);
        ensure!(
            dispute.is_some_and(|dispute| dispute.task == task && is_open::<T>(open.id, &dispute)),
            "DISPUTES-1: a round lists a dispute that is not open"
        );
    }
    let challengeable = matches!(round.phase, RoundPhase::Challengeable { .. });
    ensure!(
        challengeable || round.disputes.is_empty(),
        "DISPUTES-1: a dispute before there is a verdict"
    );
    Ok(())
}

/// Whether a dispute is played, or its committee winds up.
fn is_open<T: Config>(id: DisputeId, dispute: &DisputeOf<T>) -> bool {
    let winds_up = Committees::<T>::get(id).is_some_and(|committee| committee.fund.is_some());
    winds_up == dispute.game.outcome().is_some()
}

fn disputes_1_disputes_have_rounds<T: Config>() -> Result<(), TryRuntimeError> {
    let next = NextDisputeId::<T>::get();
    for (id, dispute) in Disputes::<T>::iter() {
        let round = Rounds::<T>::get(dispute.task);
        let listed = round.is_some_and(|round| round.disputes.iter().any(|open| open.id == id));
        ensure!(
            listed && id < next,
            "DISPUTES-1: a dispute that its round does not list"
        );
    }
    Ok(())
}

fn disputes_5_places_are_those_of_challengers<T: Config>(
    task: TaskId,
    round: &RoundOf<T>,
) -> Result<(), TryRuntimeError> {
    let of_task = Disputes::<T>::iter_values().filter(|dispute| dispute.task == task);
    let challenged = of_task.filter(|dispute| matches!(dispute.challenger, Party::Account(_)));
    ensure!(
        u32::try_from(challenged.count()) == Ok(round.challenges)
            && round.challenges <= limits::CHALLENGES_MAX,
        "DISPUTES-5: places of challengers that are not theirs"
    );
    Ok(())
}

fn disputes_9_challenges_of_an_account_are_of_different_claims<T: Config>() -> Result<(), TryRuntimeError> {
    let mut seen = BTreeSet::new();
    for dispute in Disputes::<T>::iter_values() {
        if let Party::Account(challenger) = dispute.challenger {
            ensure!(
                seen.insert((challenger, dispute.task, dispute.claim.encode())),
                "DISPUTES-9: an account challenges a claim twice at a time"
            );
        }
    }
    Ok(())
}

fn disputes_6_audits_that_play_do<T: Config>(round: &RoundOf<T>) -> Result<(), TryRuntimeError> {
    for audit in &round.audits {
        let party = Party::Auditor {
            verifier: audit.verifier.clone(),
            provider: audit.provider.clone(),
        };
        let plays = match audit.state {
            AuditState::Disputed(id) => Disputes::<T>::get(id).is_some_and(|open| open.challenger == party),
            AuditState::Defends(id) => Disputes::<T>::get(id).is_some_and(|open| open.defender == party),
            _ => true,
        };
        ensure!(plays, "DISPUTES-6: an audit that plays, and in no dispute");
    }
    Ok(())
}

fn disputes_2_holds_are_bonds<T: Config>() -> Result<(), TryRuntimeError> {
    let mut bonds = BTreeMap::<T::AccountId, T::Balance>::new();
    for dispute in Disputes::<T>::iter_values() {
        if let Party::Account(challenger) = dispute.challenger {
            let sum = bonds.entry(challenger).or_insert_with(Zero::zero);
            *sum = sum.saturating_add(dispute.bond);
        }
    }
    ensure!(
        asset::are_recorded::<T>(HoldReason::Challenge, &bonds),
        "DISPUTES-2: a hold differs from the bonds of challenges"
    );
    Ok(())
}

fn disputes_8_holds_are_prices_of_showing<T: Config>() -> Result<(), TryRuntimeError> {
    let mut prices = BTreeMap::<T::AccountId, T::Balance>::new();
    for dispute in Disputes::<T>::iter_values() {
        ensure!(
            match dispute.game.asked() {
                Some(asked) => dispute.prepaid.is_some() || !asked.is_owed(),
                None => dispute.prepaid.is_none(),
            },
            "DISPUTES-8: content is owed without a price, or paid for without being asked for"
        );
        if let Some(prepaid) = dispute.prepaid {
            let sum = prices.entry(prepaid.by).or_insert_with(Zero::zero);
            *sum = sum.saturating_add(prepaid.amount);
        }
    }
    ensure!(
        asset::are_recorded::<T>(HoldReason::Showing, &prices),
        "DISPUTES-8: a hold differs from the prices of content that was asked for"
    );
    Ok(())
}
