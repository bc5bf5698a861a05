//! What must hold of committees.

use frame_support::ensure;
use sp_runtime::TryRuntimeError;
use surety_dispute_game::{
    bisection::{Cell, Missing, Referee, State, missing_blobs, missing_parts},
    committee::value_hash,
};
use surety_pallet_results::{DisputeContexts, DisputeReferee, Pallet as Results};
use surety_types::trust::DisputeId;

use crate::{CommitteeOf, Committees, Config, DisputeOf, Disputes, FundOf};

pub(super) fn check<T: Config>() -> Result<(), TryRuntimeError> {
    Committees::<T>::iter().try_for_each(|(id, committee)| {
        let dispute = disputes_3_committees_are_of_games_that_wait::<T>(id, &committee)?;
        disputes_4_candidates_are_different_and_fit::<T>(&dispute, &committee)
    })
}

fn disputes_3_committees_are_of_games_that_wait<T: Config>(
    id: DisputeId,
    committee: &CommitteeOf<T>,
) -> Result<DisputeOf<T>, TryRuntimeError> {
    let dispute = Disputes::<T>::get(id).ok_or("DISPUTES-3: a committee without a dispute")?;
    match (dispute.game.state(), &committee.fund) {
        (State::NeedsCommittee { cell }, None) => {
            ensure!(
                committee.claimed == value_hash(Some(cell.value)),
                "DISPUTES-3: a committee about another value than the defender's"
            );
            disputes_10_committees_can_read_what_they_need::<T>(&dispute, cell)?;
        }
        (State::Over(_), Some(fund)) => disputes_7_funds_pay_what_they_have::<T>(&dispute, fund)?,
        _ => return Err("DISPUTES-3: a committee about a game that can be played".into()),
    }
    ensure!(
        committee.state.decision().is_some() || committee.suspended == 0,
        "DISPUTES-3: a suspension before there is a decision"
    );
    Ok(dispute)
}

fn disputes_10_committees_can_read_what_they_need<T: Config>(
    dispute: &DisputeOf<T>,
    cell: &Cell,
) -> Result<(), TryRuntimeError> {
    let context = DisputeContexts::<T>::get(dispute.task);
    let referee = context.and_then(|context| T::Referee::claim_referee(&context, &dispute.claim));
    let referee = referee.ok_or("DISPUTES-10: a committee about a claim that has no referee")?;
    let showable = |missing: &Missing| missing_parts(*missing, &referee).is_some();
    let Some(missing) = referee.needed(cell).filter(showable) else {
        return Ok(());
    };
    ensure!(
        missing_blobs(missing, &referee).all(|blob| Results::<T>::is_shown(dispute.task, &blob)),
        "DISPUTES-10: a committee that cannot read what it needs"
    );
    Ok(())
}

fn disputes_7_funds_pay_what_they_have<T: Config>(
    dispute: &DisputeOf<T>,
    fund: &FundOf<T>,
) -> Result<(), TryRuntimeError> {
    let mut parties = [dispute.defender.account(), dispute.challenger.account()].into_iter();
    ensure!(
        parties.any(|party| *party == fund.payer),
        "DISPUTES-7: somebody pays a committee that was no party"
    );
    ensure!(
        fund.left <= fund.pot && (fund.is_stake || fund.left == dispute.bond),
        "DISPUTES-7: a committee's fund is not what is set aside for it"
    );
    Ok(())
}

fn disputes_4_candidates_are_different_and_fit<T: Config>(
    dispute: &DisputeOf<T>,
    committee: &CommitteeOf<T>,
) -> Result<(), TryRuntimeError> {
    let candidates = &committee.candidates;
    ensure!(
        u32::try_from(candidates.len()).is_ok_and(|count| count <= committee.room()),
        "DISPUTES-4: more candidates than seats"
    );
    ensure!(
        candidates.is_sorted_by_key(|candidate| candidate.rank),
        "DISPUTES-4: candidates out of order"
    );
    for (place, candidate) in candidates.iter().enumerate() {
        let verifier = &candidate.verifier;
        let mut earlier = candidates.iter().take(place);
        ensure!(
            !earlier.any(|other| other.verifier == *verifier),
            "DISPUTES-4: a candidate twice"
        );
        let parties = [dispute.defender.account(), dispute.challenger.account()];
        ensure!(!parties.contains(&verifier), "DISPUTES-4: a party is a candidate");
    }
    Ok(())
}
