//! What must hold between any two blocks, one function an invariant. The ids are explained in the README.

use alloc::collections::BTreeMap;
use frame_support::ensure;
use sp_runtime::{
    TryRuntimeError,
    traits::{Saturating, Zero},
};
use surety_proofs::parts;
use surety_types::{
    limits,
    task::{MemberProgress, RoundPhase},
    trust::{AuditState, Content, FaultKind},
};

use crate::{
    CommitNotes, Config, Demands, DisputeContexts, HoldReason, MemberOf, Pallet, RoundOf, Rounds, Shown,
    asset, calls::held, verdict,
};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    ///
    /// # Errors
    /// Says which does not hold.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        Rounds::<T>::iter_values().try_for_each(|round| {
            results_1_members_are_different::<T>(&round)?;
            results_2_progress_fits_the_phase::<T>(&round)?;
            results_3_the_verdict_follows_from_the_reveals::<T>(&round)?;
            results_4_claims_stay_within_the_units_paid_for::<T>(&round)?;
            results_5_audits_are_one_of_a_pair::<T>(&round)?;
            results_10_input_is_demanded_by_who_waits_for_it::<T>(&round)?;
            results_11_who_was_late_owes_its_opening::<T>(&round)?;
            results_12_auditors_are_drawn_with_a_seed::<T>(&round)?;
            results_13_a_lock_is_lost_once::<T>(&round)?;
            results_15_nobody_plays_for_what_it_was_shown::<T>(&round)
        })?;
        results_7_holds_are_prices_of_demands::<T>()?;
        results_8_contexts_are_of_rounds::<T>()?;
        results_14_what_is_shown_is_of_rounds::<T>()?;
        results_16_leaves_are_demanded_by_who_can_still_compare::<T>()?;
        results_9_notes_are_of_who_committed::<T>()
    }
}

fn results_1_members_are_different<T: Config>(round: &RoundOf<T>) -> Result<(), TryRuntimeError> {
    ensure!(!round.members.is_empty(), "RESULTS-1: a round without members");
    for (seat, member) in round.members.iter().enumerate() {
        let earlier = round.members.iter().take(seat).map(|other| &other.provider);
        let mut others = earlier.chain(&round.dropped);
        ensure!(
            !others.any(|other| *other == member.provider),
            "RESULTS-1: a provider twice in a round"
        );
    }
    Ok(())
}

fn results_2_progress_fits_the_phase<T: Config>(round: &RoundOf<T>) -> Result<(), TryRuntimeError> {
    let some =
        |wanted: fn(&MemberProgress) -> bool| round.members.iter().any(|member| wanted(&member.progress));
    let some_working = some(|progress| matches!(progress, MemberProgress::Working));
    let some_sealed = some(|progress| matches!(progress, MemberProgress::Committed(_)));
    let some_revealed = some(|progress| matches!(progress, MemberProgress::Revealed(_)));
    let fits = match round.phase {
        RoundPhase::Committing { .. } => some_working && !some_revealed,
        RoundPhase::Auditing { .. } => verdict::has_quorum(round) && !some_revealed,
        RoundPhase::Revealing { .. } => verdict::has_quorum(round) && some_sealed,
        RoundPhase::Challengeable { .. } => true,
    };
    ensure!(
        fits,
        "RESULTS-2: members are further than the phase allows, or the phase should be over"
    );
    Ok(())
}

fn results_3_the_verdict_follows_from_the_reveals<T: Config>(
    round: &RoundOf<T>,
) -> Result<(), TryRuntimeError> {
    if let RoundPhase::Challengeable { verdict, .. } = &round.phase {
        ensure!(
            *verdict == verdict::verdict(round),
            "RESULTS-3: a verdict that the reveals do not make"
        );
    }
    Ok(())
}

fn results_4_claims_stay_within_the_units_paid_for<T: Config>(
    round: &RoundOf<T>,
) -> Result<(), TryRuntimeError> {
    let fits = |progress: &MemberProgress| match progress {
        MemberProgress::Revealed(claim) => claim.units <= round.units_max,
        MemberProgress::Working | MemberProgress::Committed(_) => true,
    };
    ensure!(
        round.members.iter().all(|member| fits(&member.progress)),
        "RESULTS-4: a claim of too many units"
    );
    Ok(())
}

fn results_5_audits_are_one_of_a_pair<T: Config>(round: &RoundOf<T>) -> Result<(), TryRuntimeError> {
    for (place, audit) in round.audits.iter().enumerate() {
        let mut earlier = round.audits.iter().take(place);
        ensure!(
            !earlier.any(|other| other.verifier == audit.verifier && other.provider == audit.provider),
            "RESULTS-5: a verifier audits a provider twice"
        );
        let earlier = round.audits.iter().take(place);
        let of_provider = earlier.filter(|other| other.provider == audit.provider);
        ensure!(
            of_provider.count() < limits::AUDITS_PER_MEMBER_MAX as usize,
            "RESULTS-5: a provider with too many audits"
        );
        let over = audit.state == AuditState::Over;
        ensure!(
            !over || audit.bond.is_zero(),
            "RESULTS-5: an audit that is over has a bond"
        );
        let is_opened = !matches!(audit.state, AuditState::Sealed(_));
        let defends = matches!(audit.state, AuditState::Defends(_));
        ensure!(
            audit.items.is_none() || is_opened && !defends,
            "RESULTS-5: an audit of items that is sealed, or stands by the whole"
        );
    }
    Ok(())
}

fn results_7_holds_are_prices_of_demands<T: Config>() -> Result<(), TryRuntimeError> {
    let mut prices = BTreeMap::<T::AccountId, T::Balance>::new();
    let open = Demands::<T>::iter_values().flatten();
    let of_outputs = open.map(|demand| (demand.by.clone(), held(&demand)));
    let of_inputs = Rounds::<T>::iter_values().filter_map(|round| round.input_demand);
    for (by, price) in of_outputs.chain(of_inputs.map(|demand| (demand.by, demand.price))) {
        let sum = prices.entry(by).or_insert_with(Zero::zero);
        *sum = sum.saturating_add(price);
    }
    ensure!(
        asset::are_recorded::<T>(HoldReason::Demand, &prices),
        "RESULTS-7: a hold differs from the prices of demands"
    );
    let mut counts = BTreeMap::<_, usize>::new();
    for (task, _, demands) in Demands::<T>::iter() {
        let count = counts.entry(task).or_default();
        *count = count.saturating_add(demands.len());
        ensure!(
            Rounds::<T>::contains_key(task),
            "RESULTS-7: a demand without a round"
        );
        for (place, demand) in demands.iter().enumerate() {
            let mut earlier = demands.iter().take(place);
            ensure!(
                !demand.parts.is_empty() && earlier.all(|other| other.demander != demand.demander),
                "RESULTS-7: a demand for nothing, or two of one demander"
            );
        }
    }
    for (task, round) in Rounds::<T>::iter() {
        let count = counts.get(&task).copied().unwrap_or_default();
        ensure!(
            usize::try_from(round.demands) == Ok(count),
            "RESULTS-7: a round that counts other demands than there are"
        );
        let is_asked = matches!(
            round.phase,
            RoundPhase::Auditing { .. } | RoundPhase::Challengeable { .. }
        );
        ensure!(
            is_asked || count == 0,
            "RESULTS-7: something is demanded in a phase in which nothing can be"
        );
    }
    Ok(())
}

fn results_8_contexts_are_of_rounds<T: Config>() -> Result<(), TryRuntimeError> {
    for task in DisputeContexts::<T>::iter_keys() {
        ensure!(
            Rounds::<T>::contains_key(task),
            "RESULTS-8: a dispute context of a task that has no round"
        );
    }
    Ok(())
}

fn results_9_notes_are_of_who_committed<T: Config>() -> Result<(), TryRuntimeError> {
    for (task, provider, note) in CommitNotes::<T>::iter() {
        let members = Rounds::<T>::get(task).map(|round| round.members);
        let fits = |progress: &MemberProgress| match progress {
            MemberProgress::Working => false,
            MemberProgress::Committed(commitment) => *commitment == note.commitment,
            MemberProgress::Revealed(_) => true,
        };
        let mut members = members.into_iter().flatten();
        ensure!(
            members.any(|member| member.provider == provider && fits(&member.progress)),
            "RESULTS-9: a note of a commitment that nobody made"
        );
    }
    Ok(())
}

fn results_10_input_is_demanded_by_who_waits_for_it<T: Config>(
    round: &RoundOf<T>,
) -> Result<(), TryRuntimeError> {
    ensure!(
        round
            .members
            .iter()
            .all(|member| member.input_demands <= limits::INPUT_DEMANDS_MAX),
        "RESULTS-10: a provider that demanded too often"
    );
    let Some(demand) = &round.input_demand else {
        return Ok(());
    };
    let in_time = matches!(round.phase, RoundPhase::Committing { until } if demand.until <= until);
    let mut members = round.members.iter();
    let waits = members.any(|member| {
        let is_working = member.progress == MemberProgress::Working;
        member.provider == demand.provider && is_working && member.input_demands > 0
    });
    ensure!(
        in_time && waits && !verdict::has_quorum(round),
        "RESULTS-10: a demand of input that nobody needs"
    );
    Ok(())
}

fn results_12_auditors_are_drawn_with_a_seed<T: Config>(round: &RoundOf<T>) -> Result<(), TryRuntimeError> {
    let draw = round.draw.as_ref();
    let has_seed = draw.is_some_and(|draw| draw.seed.is_some());
    let fits = match round.phase {
        RoundPhase::Committing { .. } => draw.is_none(),
        RoundPhase::Auditing { .. } => draw.is_some(),
        RoundPhase::Revealing { .. } => has_seed,
        RoundPhase::Challengeable { .. } => draw.is_none() || has_seed,
    };
    ensure!(
        fits && (has_seed || round.audits.is_empty()),
        "RESULTS-12: auditors that nothing was drawn with"
    );
    ensure!(
        draw.is_none_or(|draw| draw.settled_by <= draw.begun_at),
        "RESULTS-12: keys may be younger than the draw"
    );
    Ok(())
}

fn results_11_who_was_late_owes_its_opening<T: Config>(round: &RoundOf<T>) -> Result<(), TryRuntimeError> {
    let challengeable = matches!(round.phase, RoundPhase::Challengeable { .. });
    // Who opens late may do so before anybody has ended the phase.
    let asked = matches!(round.phase, RoundPhase::Revealing { .. }) || round.reveals_until.is_some();
    ensure!(
        challengeable || (round.openings_until.is_none() && round.reveals_until.is_none()),
        "RESULTS-11: a time for late openings before there is a verdict"
    );
    for member in &round.members {
        let late = member.missed_reveal;
        ensure!(
            !late || (asked && member.progress != MemberProgress::Working),
            "RESULTS-11: a provider is late for what is not asked of it"
        );
        ensure!(
            late || member.fault != Some(FaultKind::NoReveal),
            "RESULTS-11: a provider is convicted of silence that was not late"
        );
    }
    Ok(())
}

fn results_13_a_lock_is_lost_once<T: Config>(round: &RoundOf<T>) -> Result<(), TryRuntimeError> {
    for member in &round.members {
        let loses = member.fault.is_some_and(|fault| fault.cost().lock);
        ensure!(
            member.slash.is_some() == loses && (!loses || member.lock.is_zero()),
            "RESULTS-13: a slash without a fault that costs the lock, or a lock that is left beside it"
        );
    }
    Ok(())
}

fn results_14_what_is_shown_is_of_rounds<T: Config>() -> Result<(), TryRuntimeError> {
    for (task, (_, bytes, part)) in Shown::<T>::iter_keys() {
        ensure!(
            Rounds::<T>::contains_key(task) && part < parts(bytes),
            "RESULTS-14: content is kept of a task without a round, or a part that its content has not"
        );
    }
    for (task, provider, note) in CommitNotes::<T>::iter() {
        let Some(shown) = note.shown else { continue };
        let revealed = Rounds::<T>::get(task).and_then(|round| {
            let mut members = round.members.into_iter();
            members.find(|member| member.provider == provider)
        });
        let is_other = |member: &MemberOf<T>| {
            let claim = member.claim();
            claim.is_some_and(|claim| claim.output != shown.content) && !member.has_lost()
        };
        ensure!(
            !revealed.as_ref().is_some_and(is_other),
            "RESULTS-14: a provider stands that has shown another output than it revealed"
        );
    }
    Ok(())
}

fn results_16_leaves_are_demanded_by_who_can_still_compare<T: Config>() -> Result<(), TryRuntimeError> {
    for (task, provider, demands) in Demands::<T>::iter() {
        let Some(round) = Rounds::<T>::get(task) else {
            continue;
        };
        let mut members = round.members.iter();
        let revealed = members.any(|member| member.provider == provider && member.claim().is_some());
        for demand in &demands {
            if demand.parts.iter().all(|part| part.content != Content::Leaves) {
                continue;
            }
            let mut audits = round.audits.iter();
            let audits = audits.any(|audit| audit.verifier == demand.demander && audit.provider == provider);
            ensure!(
                revealed && audits && round.openings_until > Some(demand.until),
                "RESULTS-16: leaves are demanded that are not revealed, or by who cannot compare with them"
            );
        }
    }
    Ok(())
}

fn results_15_nobody_plays_for_what_it_was_shown<T: Config>(
    round: &RoundOf<T>,
) -> Result<(), TryRuntimeError> {
    let is_two_faced = |provider: &T::AccountId| {
        let mut members = round.members.iter();
        members.any(|member| member.provider == *provider && member.fault == Some(FaultKind::Equivocation))
    };
    let differs = |state: &AuditState| matches!(state, AuditState::Differs | AuditState::Disputed(_));
    let mut audits = round.audits.iter();
    ensure!(
        !Pallet::<T>::is_shown_to_auditors(round)
            || !audits.any(|audit| differs(&audit.state) && is_two_faced(&audit.provider)),
        "RESULTS-15: an audit that differs from what a provider revealed that said two things"
    );
    Ok(())
}
