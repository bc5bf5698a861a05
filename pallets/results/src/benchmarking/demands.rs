//! Demands of what a provider does not serve.

use frame_benchmarking::v2::account;
use sp_core::H256;
use sp_runtime::traits::{One, Zero};
use surety_dispute_game::bisection::Shape;
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_proofs::{LEAF_BYTES, PART_BYTES, PARTS_MAX, PartOpening, parts};
use surety_types::{
    limits::DEMAND_PARTS_MAX,
    model::Operation,
    trust::{Audit, AuditState, Content, ContentPart, Demand, DemandedParts, OutputShown},
};

use super::setup::{TASK, auditing_round, challengeable};
use crate::{
    CommitNotes, Config, Demands, DemandsOf, DisputeContexts, DisputeReferee, HoldReason, Pallet, RoundOf,
    Rounds, asset, calls::held,
};

/// The first parts of the input.
pub(super) fn input_parts(count: u32) -> DemandedParts {
    let part = |part| ContentPart {
        content: Content::Input,
        part,
    };
    DemandedParts::truncate_from((0..count).map(part).collect())
}

/// As many parts as one demand names, of which this is the first.
pub(super) fn among_others(content: Content, part: u32) -> DemandedParts {
    let other = match content {
        Content::Output => Content::Input,
        Content::Input | Content::Leaves => Content::Output,
    };
    let others = (0..DEMAND_PARTS_MAX).map(|part| ContentPart { content: other, part });
    let all = only(content, part).into_iter().chain(others);
    DemandedParts::truncate_from(all.take(DEMAND_PARTS_MAX as usize).collect())
}

/// The first parts of the leaves of a trace, which are so many bytes, and after them those of the output.
pub(super) fn leaves_parts(count: u32, bytes: u32) -> DemandedParts {
    let leaves = parts(bytes);
    let part = |part: u32| match part.checked_sub(leaves) {
        None => ContentPart {
            content: Content::Leaves,
            part,
        },
        Some(part) => ContentPart {
            content: Content::Output,
            part,
        },
    };
    DemandedParts::truncate_from((0..count).map(part).collect())
}

/// One part.
pub(super) fn only(content: Content, part: u32) -> DemandedParts {
    DemandedParts::truncate_from(alloc::vec![ContentPart { content, part }])
}

/// The last part of the longest output that can be named by it.
pub(super) fn output_part() -> (u32, PartOpening) {
    let output = alloc::vec![7; (PARTS_MAX * PART_BYTES) as usize];
    let part = PartOpening::new(&output, PARTS_MAX - 1).expect("there is such a part");
    (PARTS_MAX * PART_BYTES, part)
}

/// All providers have revealed a claim about the largest trace, and so many have demanded the first part of
/// its leaves of one, all but the first among others. Returns how long they are, and that part.
pub(super) fn leaves_demanded<T: Config>(provider: &T::AccountId, demanders: u32) -> (u32, PartOpening) {
    let (context, mut claim, _) = T::Referee::item_for_benchmark();
    let leaves = T::Referee::claim_referee(&context, &claim).map_or(0, |referee| referee.leaves());
    let bytes = leaves.saturating_mul(LEAF_BYTES);
    let mut part = PartOpening {
        part: 0,
        bytes: alloc::vec![7; bytes.min(PART_BYTES) as usize]
            .try_into()
            .expect("a part"),
        siblings: Default::default(),
    };
    // As many as lead to a root of so many leaves.
    claim.trace_root = loop {
        match part.trace_root(bytes) {
            Some(root) => break root,
            None => part.siblings.try_push(H256::repeat_byte(9)).expect("a way up"),
        }
    };
    DisputeContexts::<T>::insert(TASK, context);
    demanding_round::<T>(provider, (Content::Leaves, part.part), demanders);
    let mut round = challengeable::<T>(&claim, |_| None);
    round.demands = demanders;
    Rounds::<T>::insert(TASK, round);
    (bytes, part)
}

/// A verifier has sealed some items of what a provider has revealed, and may demand leaves yet.
pub(super) fn sampled_by<T: Config>(verifier: &T::AccountId, provider: &T::AccountId) {
    let mut round = Rounds::<T>::get(TASK).expect("it was written before");
    round.terms.operation = Operation::Embed;
    round.demands_until = Some(TrustLock::<T>::now());
    // Whatever the claim has of items, one of them lies in as many parts as a demand names.
    round.terms.item_parts = DEMAND_PARTS_MAX;
    for member in &mut round.members {
        member.audits.items = 1;
    }
    frame_support::assert_ok!(round.audits.try_push(Audit {
        verifier: verifier.clone(),
        provider: provider.clone(),
        bond: One::one(),
        draw: Default::default(),
        items: None,
        state: AuditState::Sealed(H256::repeat_byte(5)),
    }));
    Rounds::<T>::insert(TASK, round);
}

/// Some have had a part of an output of a provider shown that nobody claims.
pub(super) fn shown_before<T: Config>(provider: &T::AccountId, agent: &T::AccountId) {
    Pallet::<T>::note_commitment(TASK, provider, agent, H256::zero());
    CommitNotes::<T>::mutate(TASK, provider, |note| {
        let note = note.as_mut().expect("it was written just before");
        note.shown = Some(OutputShown {
            content: H256::repeat_byte(8),
            bytes: 1,
            demander: account("demander", 0, 0),
        });
    });
}

/// A full round of a generation in its audit window. So many have demanded a part of a provider: the first
/// that alone, and the others as many as one demand names.
pub(super) fn demanding_round<T: Config>(
    provider: &T::AccountId,
    (content, part): (Content, u32),
    demanders: u32,
) -> RoundOf<T> {
    let wanted = |place| match place {
        0 => only(content, part),
        _ => among_others(content, part),
    };
    let until = TrustLock::<T>::now();
    let mut round = auditing_round::<T>();
    round.terms.operation = Operation::Generate;
    round.demands_until = Some(until);
    round.demands = demanders;
    let demands = (0..demanders).map(|place| {
        let by: T::AccountId = account("demander", place, 0);
        let demand = Demand {
            demander: account("verifier", place, 1),
            by,
            parts: wanted(place),
            price: T::Balance::from(1_000_000u32),
            until,
        };
        let amount = held(&demand);
        asset::endow::<T>(&demand.by, amount);
        frame_support::assert_ok!(asset::hold::<T>(HoldReason::Demand, &demand.by, amount));
        demand
    });
    Demands::<T>::insert(TASK, provider, DemandsOf::<T>::truncate_from(demands.collect()));
    round
}

/// All demands but those on one provider are met later.
pub(super) fn not_due_before<T: Config>(last: &T::AccountId) {
    let now = TrustLock::<T>::now();
    Demands::<T>::translate_values(|mut demands: DemandsOf<T>| {
        demands.iter_mut().for_each(|demand| demand.until = now);
        Some(demands)
    });
    Demands::<T>::mutate(TASK, last, |demands| {
        demands.iter_mut().for_each(|demand| demand.until = Zero::zero());
    });
}
