//! What a round's members say together. Pure.

use frame_support::BoundedVec;
use surety_dispute_game::{Agreement, agreement, majority};
use surety_types::task::{FailureReason, MemberProgress, PerMember, Round, RoundMember, Verdict};

/// How many members committed, whether or not they have revealed.
pub fn committed<A, B, N>(round: &Round<A, B, N>) -> u32 {
    let committed = round
        .members
        .iter()
        .filter(|member| member.progress != MemberProgress::Working);
    u32::try_from(committed.count()).unwrap_or(u32::MAX)
}

/// Whether enough members committed for a majority to be possible.
pub fn has_quorum<A, B, N>(round: &Round<A, B, N>) -> bool {
    committed(round) >= majority(round.redundancy())
}

/// The verdict as things are. Who has not revealed in time is absent, and not paid; who was found at fault no
/// longer counts.
///
/// What was revealed too late supports what others revealed in time, so that they do not lose their pay by
/// it, and nothing else: it takes one who was in time to be agreed with.
///
/// A majority is of those who have not lost a dispute or withheld their output, so that one who is right wins
/// against any number who were proven wrong. Who stays silent still counts, and supports nobody.
pub fn verdict<A: Clone, B, N>(round: &Round<A, B, N>) -> Verdict<A> {
    if !has_quorum(round) {
        return Verdict::Failed(FailureReason::NotEnoughResults);
    }
    let convicted = round.members.iter().filter(|member| member.has_lost());
    let convicted = u32::try_from(convicted.count()).unwrap_or(u32::MAX);
    let claims = round.members.iter().filter_map(RoundMember::standing_claim);
    let Agreement::Reached { claim, .. } = agreement(claims, round.redundancy().saturating_sub(convicted))
    else {
        return Verdict::Failed(FailureReason::NoAgreement);
    };
    let majority = select(round, |member| member.counted_claim() == Some(&claim));
    if majority.is_empty() {
        return Verdict::Failed(FailureReason::NoAgreement);
    }
    let is_absent = |member: &RoundMember<A, B>| member.claim().is_none() || member.missed_reveal;
    Verdict::Agreed {
        majority,
        minority: select(round, |member| {
            !is_absent(member) && member.counted_claim() != Some(&claim)
        }),
        absent: select(round, is_absent),
        claim,
    }
}

/// Members of whom `wanted` holds, in the order of the round.
fn select<A: Clone, B, N>(
    round: &Round<A, B, N>,
    wanted: impl Fn(&RoundMember<A, B>) -> bool,
) -> PerMember<A> {
    let selected = round.members.iter().filter(|member| wanted(member));
    // Some of a list with the same bound: nothing is cut off.
    BoundedVec::truncate_from(selected.map(|member| member.provider.clone()).collect())
}
