//! The rounds that cost most, for the benchmarks of pallets that build on this one, too.

use alloc::{vec, vec::Vec};
use frame_benchmarking::v2::account;
use frame_support::BoundedVec;
use frame_system::pallet_prelude::BlockNumberFor;
use sp_core::H256;
use sp_runtime::{
    FixedU128, Saturating,
    traits::{BlockNumberProvider, Bounded, One, Zero},
};
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_proofs::PART_BYTES;
use surety_types::{
    TaskId,
    limits::{AUDIT_ITEMS_MAX, AUDITS_MAX, AUDITS_PER_MEMBER_MAX, REDUNDANCY_MAX},
    model::Operation,
    stake::Role,
    task::{AuditDraw, AuditRate, MemberProgress, ResultClaim, Round, RoundMember, RoundPhase},
    traits::StakeLedger,
    trust::{Audit, AuditState},
};

use crate::{Config, DisputeContexts, DisputeReferee, RoundOf, Rounds, Shown, verdict};

/// The task of all benchmarks.
pub const TASK: TaskId = 7;

/// How many disputes begin in one step at least.
pub(super) const DISPUTES_AT_ONCE: usize = 4;

/// Block before which keys and stake have to be there that are drawn. Theirs are there in block 1.
pub(super) const SETTLED: u32 = 2;

/// Stake of the caller: 1,000 SURE. The calls lock and unlock nothing, so that only its being there counts.
pub fn stake<T: Config>() -> T::Balance {
    T::Balance::from(1_000_000_000u32).saturating_mul(1_000_000u32.into())
}

/// A claim that nobody can dispute.
pub fn claim(output: u8) -> ResultClaim {
    ResultClaim {
        output: H256::repeat_byte(output),
        trace_root: H256::repeat_byte(1),
        units: 1,
    }
}

/// A round of the most members, all of them as far as `progress` says of their seats.
pub fn full_round<T: Config>(
    phase: RoundPhase<T::AccountId, BlockNumberFor<T>>,
    progress: impl Fn(u32) -> MemberProgress,
) -> RoundOf<T> {
    let members: Vec<_> = (0..REDUNDANCY_MAX)
        .map(|seat| RoundMember {
            progress: progress(seat),
            audits: AuditRate {
                expected: FixedU128::from_u32(3),
                items: AUDIT_ITEMS_MAX,
            },
            ..RoundMember::new(account("provider", seat, 0), One::one(), T::Balance::max_value())
        })
        .collect();
    let dropped: Vec<_> = (0..REDUNDANCY_MAX)
        .map(|seat| account("dropped", seat, 0))
        .collect();
    // The first provider has room for one more.
    let audits: Vec<_> = (1..AUDITS_MAX)
        .map(|place| Audit {
            verifier: account("verifier", place, 0),
            provider: account("provider", place % REDUNDANCY_MAX, 0),
            bond: Zero::zero(),
            draw: Default::default(),
            items: None,
            state: AuditState::Confirmed,
        })
        .collect();
    Round {
        members: BoundedVec::truncate_from(members),
        dropped: BoundedVec::truncate_from(dropped),
        audits: BoundedVec::truncate_from(audits),
        phase,
        draw: Some(AuditDraw {
            begun_at: SETTLED.into(),
            settled_by: SETTLED.into(),
            epoch_randomness: H256::repeat_byte(3),
            verifier_stake: One::one(),
            seed: Some(H256::repeat_byte(4)),
        }),
        ..Round::new(u32::MAX, Zero::zero())
    }
}

/// A full round in its audit window.
pub(super) fn auditing_round<T: Config>() -> RoundOf<T> {
    let until = TrustLock::<T>::now();
    full_round::<T>(RoundPhase::Auditing { until }, |_| {
        MemberProgress::Committed(H256::repeat_byte(2))
    })
}

/// A round of which everybody has revealed, `claim` or what `other` says of its seat.
pub fn challengeable<T: Config>(
    claim: &ResultClaim,
    other: impl Fn(u32) -> Option<ResultClaim>,
) -> RoundOf<T> {
    let until = TrustLock::<T>::now();
    let mut round = full_round::<T>(RoundPhase::Committing { until }, |seat| {
        MemberProgress::Revealed(other(seat).unwrap_or_else(|| claim.clone()))
    });
    let verdict = verdict::verdict(&round);
    round.phase = RoundPhase::Challengeable { until, verdict };
    round.openings_until = Some(until);
    round.reveals_until = Some(until);
    round
}

/// It is this block, and this time.
pub fn at<T: Config>(block: BlockNumberFor<T>) {
    frame_system::Pallet::<T>::set_block_number(block);
    T::BlockNumberProvider::set_block_number(block);
}

/// The verifier that audits the first provider, and its agent.
pub fn verifier_of<T: Config>(agent: T::AccountId) -> (T::AccountId, T::AccountId) {
    at::<T>(One::one());
    let stash = account("auditor", 0, 0);
    T::Stake::endow(&stash, &agent, Role::Verifier, stake::<T>());
    (stash, agent)
}

/// A claim about [`TASK`] that can be disputed, about the largest model that can be registered.
pub fn disputable<T: Config>() -> ResultClaim {
    let (context, claim) = T::Referee::largest_for_benchmark(Operation::Generate);
    DisputeContexts::<T>::insert(TASK, context);
    claim
}

/// The provider in `seat`, and its agent, in the block in which calls are measured.
pub fn agent_of<T: Config>(seat: u32) -> (T::AccountId, T::AccountId) {
    at::<T>(One::one());
    let (stash, agent) = (account("provider", seat, 0), account("agent", seat, 0));
    T::Stake::endow(&stash, &agent, Role::Provider, stake::<T>());
    (stash, agent)
}

/// Leaves `count` auditors, gives each of them stake, and locks some of it.
pub(super) fn lock_audits<T: Config>(round: &mut RoundOf<T>, count: u32) {
    let last = Audit {
        verifier: account("verifier", 0, 0),
        provider: account("provider", 0, 0),
        bond: Zero::zero(),
        draw: Default::default(),
        items: None,
        state: AuditState::Confirmed,
    };
    frame_support::assert_ok!(round.audits.try_insert(0, last));
    round.audits.truncate(count as usize);
    for (place, audit) in (0..AUDITS_MAX).zip(round.audits.iter_mut()) {
        let agent = account("agent of verifier", place, 0);
        T::Stake::endow(&audit.verifier, &agent, Role::Verifier, stake::<T>());
        audit.bond = One::one();
        frame_support::assert_ok!(T::Stake::lock(&audit.verifier, audit.bond));
    }
}

/// Lets a provider's result be audited by as many as can, all of them with a bond, who found another.
pub(super) fn audited_by_all<T: Config>(round: &mut RoundOf<T>, provider: &T::AccountId) {
    lock_audits::<T>(round, AUDITS_PER_MEMBER_MAX);
    for audit in &mut round.audits {
        audit.provider = provider.clone();
        audit.state = AuditState::Differs;
    }
}

/// As many others as play at once contradict a provider.
pub(super) fn contradicted<T: Config>(round: &mut RoundOf<T>, provider: &T::AccountId) {
    for place in 0..DISPUTES_AT_ONCE {
        let audit = Audit {
            verifier: account("other verifier", place as u32, 0),
            provider: provider.clone(),
            bond: Zero::zero(),
            draw: Default::default(),
            items: None,
            state: AuditState::Differs,
        };
        frame_support::assert_ok!(round.audits.try_push(audit));
    }
}

/// Gives every member stake, and locks some of it.
pub fn lock_all<T: Config>(round: &mut RoundOf<T>) {
    for (seat, member) in (0..REDUNDANCY_MAX).zip(round.members.iter_mut()) {
        agent_of::<T>(seat);
        member.lock = One::one();
        frame_support::assert_ok!(T::Stake::lock(&member.provider, member.lock));
    }
}

/// Has so many parts of content been shown.
pub(super) fn show_parts<T: Config>(parts: u32) {
    for number in 0..parts {
        let content = H256::repeat_byte(u8::try_from(number).unwrap_or_default());
        Shown::<T>::insert(
            TASK,
            (content, PART_BYTES, 0),
            BoundedVec::truncate_from(vec![1; PART_BYTES as usize]),
        );
    }
}

/// Whether the round has a dispute.
pub(super) fn is_disputed<T: Config>() -> bool {
    Rounds::<T>::get(TASK).is_some_and(|round| !round.disputes.is_empty())
}
