//! What a round's members say together. Pure.

use frame_support::BoundedVec;
use surety_types::task::{
    FailureReason, MemberProgress, PerMember, ResultClaim, Round, RoundMember, Verdict,
};
use surety_verification::{agreement, majority, Agreement};

/// How many members committed, whether or not they have revealed.
pub(crate) fn committed<A, B, N>(round: &Round<A, B, N>) -> u32 {
    let committed = round
        .members
        .iter()
        .filter(|member| member.progress != MemberProgress::Working);
    u32::try_from(committed.count()).unwrap_or(u32::MAX)
}

/// Whether enough members committed for a majority to be possible.
pub(crate) fn has_quorum<A, B, N>(round: &Round<A, B, N>) -> bool {
    committed(round) >= majority(round.redundancy)
}

/// The verdict as things are. Who has not revealed is absent.
pub(crate) fn verdict<A: Clone, B, N>(round: &Round<A, B, N>) -> Verdict<A> {
    if !has_quorum(round) {
        return Verdict::Failed(FailureReason::NotEnoughResults);
    }
    let claims = round.members.iter().filter_map(revealed);
    let Agreement::Reached { claim, .. } = agreement(claims, round.redundancy) else {
        return Verdict::Failed(FailureReason::NoAgreement);
    };
    Verdict::Agreed {
        majority: select(round, |said| said == Some(&claim)),
        minority: select(round, |said| said.is_some_and(|said| *said != claim)),
        absent: select(round, |said| said.is_none()),
        claim,
    }
}

fn revealed<A, B>(member: &RoundMember<A, B>) -> Option<&ResultClaim> {
    match &member.progress {
        MemberProgress::Revealed(claim) => Some(claim),
        MemberProgress::Working | MemberProgress::Committed(_) => None,
    }
}

/// Members of whose revealed claim `wanted` holds, in the order of the round.
fn select<A: Clone, B, N>(
    round: &Round<A, B, N>,
    wanted: impl Fn(Option<&ResultClaim>) -> bool,
) -> PerMember<A> {
    let selected = round.members.iter().filter(|member| wanted(revealed(member)));
    // Some of a list with the same bound: nothing is cut off.
    BoundedVec::truncate_from(selected.map(|member| member.provider.clone()).collect())
}
