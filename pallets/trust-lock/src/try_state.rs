//! What must hold between any two blocks, one function an invariant. The ids are explained in the README.

use frame_support::ensure;
use sp_runtime::TryRuntimeError;
use surety_types::task::{MemberProgress, RoundPhase};

use crate::{verdict, Config, Pallet, RoundOf, Rounds};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        Rounds::<T>::iter_values().try_for_each(|round| {
            trust_1_members_are_different::<T>(&round)?;
            trust_2_progress_fits_the_phase::<T>(&round)?;
            trust_3_the_verdict_follows_from_the_reveals::<T>(&round)?;
            trust_4_claims_stay_within_the_units_paid_for::<T>(&round)
        })
    }
}

fn trust_1_members_are_different<T: Config>(round: &RoundOf<T>) -> Result<(), TryRuntimeError> {
    let seats = u32::try_from(round.members.len()).unwrap_or(u32::MAX);
    ensure!(
        seats > 0 && seats == round.redundancy,
        "TRUST-1: a round with the wrong number of members"
    );
    for (seat, member) in round.members.iter().enumerate() {
        let earlier = round.members.iter().take(seat).map(|other| &other.provider);
        let mut others = earlier.chain(&round.dropped);
        ensure!(
            !others.any(|other| *other == member.provider),
            "TRUST-1: a provider twice in a round"
        );
    }
    Ok(())
}

fn trust_2_progress_fits_the_phase<T: Config>(round: &RoundOf<T>) -> Result<(), TryRuntimeError> {
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
        "TRUST-2: members are further than the phase allows, or the phase should be over"
    );
    Ok(())
}

fn trust_3_the_verdict_follows_from_the_reveals<T: Config>(
    round: &RoundOf<T>,
) -> Result<(), TryRuntimeError> {
    if let RoundPhase::Challengeable { verdict, .. } = &round.phase {
        ensure!(
            *verdict == verdict::verdict(round),
            "TRUST-3: a verdict that the reveals do not make"
        );
    }
    Ok(())
}

fn trust_4_claims_stay_within_the_units_paid_for<T: Config>(
    round: &RoundOf<T>,
) -> Result<(), TryRuntimeError> {
    let fits = |progress: &MemberProgress| match progress {
        MemberProgress::Revealed(claim) => claim.units <= round.units_max,
        MemberProgress::Working | MemberProgress::Committed(_) => true,
    };
    ensure!(
        round.members.iter().all(|member| fits(&member.progress)),
        "TRUST-4: a claim of too many units"
    );
    Ok(())
}
