//! The rounds, disputes and slashes that cost most.

use alloc::vec::Vec;
use frame_benchmarking::v2::account;
use frame_support::BoundedVec;
use frame_system::pallet_prelude::BlockNumberFor;
use sp_core::H256;
use sp_runtime::{
    traits::{BlockNumberProvider, Bounded, One, Zero},
    Perquintill, Saturating,
};
use surety_dispute_game::{
    bisection::{Clocks, Game, Move},
    dispute::Dispute,
};
use surety_proofs::content_hash;
use surety_types::{
    limits::{AUDITS_MAX, CONVICTIONS_MAX, REDUNDANCY_MAX},
    model::Operation,
    stake::Role,
    task::{AuditDraw, MemberProgress, ResultClaim, Round, RoundMember, RoundPhase},
    traits::StakeLedger,
    trust::{Audit, AuditState, Conviction, FaultKind, OpenDispute, Party, Slash},
    TaskId,
};

use crate::{
    asset,
    types::{DisputeReferee, LongCell},
    verdict, Config, Convictions, Disputes, Facts, HoldReason, Pallet, PartyOf, RoundOf, Rounds, Slashes,
};

pub(super) const TASK: TaskId = 7;

/// Stake of the caller: 1,000 SURE. The calls lock and unlock nothing, so that only its being there counts.
pub(super) fn stake<T: Config>() -> T::Balance {
    T::Balance::from(1_000_000_000u32).saturating_mul(1_000_000u32.into())
}

pub(super) fn claim(output: u8) -> ResultClaim {
    ResultClaim {
        output: H256::repeat_byte(output),
        trace_root: H256::repeat_byte(1),
        units: 1,
    }
}

/// A round of the most members, all of them as far as `progress` says of their seats.
pub(super) fn full_round<T: Config>(
    phase: RoundPhase<T::AccountId, BlockNumberFor<T>>,
    progress: impl Fn(u32) -> MemberProgress,
) -> RoundOf<T> {
    let members: Vec<_> = (0..REDUNDANCY_MAX)
        .map(|seat| RoundMember {
            progress: progress(seat),
            ..RoundMember::new(account("provider", seat, 0), One::one(), T::Balance::max_value())
        })
        .collect();
    let dropped: Vec<_> = (0..REDUNDANCY_MAX)
        .map(|seat| account("dropped", seat, 0))
        .collect();
    let audits: Vec<_> = (1..AUDITS_MAX)
        .map(|place| Audit {
            verifier: account("verifier", place, 0),
            provider: account("provider", place % REDUNDANCY_MAX, 0),
            bond: Zero::zero(),
            state: AuditState::Confirmed,
        })
        .collect();
    Round {
        members: BoundedVec::truncate_from(members),
        dropped: BoundedVec::truncate_from(dropped),
        audits: BoundedVec::truncate_from(audits),
        phase,
        draw: Some(AuditDraw {
            seed: H256::repeat_byte(4),
            verifier_stake: One::one(),
            tranche: 0,
            is_short: false,
        }),
        ..Round::new(REDUNDANCY_MAX, u32::MAX, Zero::zero())
    }
}

/// A round of which everybody has revealed, `claim` or what `other` says of its seat.
pub(super) fn challengeable<T: Config>(
    claim: &ResultClaim,
    other: impl Fn(u32) -> Option<ResultClaim>,
) -> RoundOf<T> {
    let until = Pallet::<T>::now();
    let mut round = full_round::<T>(RoundPhase::Committing { until }, |seat| {
        MemberProgress::Revealed(other(seat).unwrap_or_else(|| claim.clone()))
    });
    let verdict = verdict::verdict(&round);
    round.phase = RoundPhase::Challengeable { until, verdict };
    round.openings_until = Some(until);
    round
}

/// It is this block, and this time.
pub(super) fn at<T: Config>(block: BlockNumberFor<T>) {
    frame_system::Pallet::<T>::set_block_number(block);
    T::BlockNumberProvider::set_block_number(block);
}

/// The verifier that audits the first provider, and its agent.
pub(super) fn verifier_of<T: Config>(agent: T::AccountId) -> (T::AccountId, T::AccountId) {
    at::<T>(One::one());
    let stash = account("auditor", 0, 0);
    T::Stake::endow(&stash, &agent, Role::Verifier, stake::<T>());
    (stash, agent)
}

/// A claim about [`TASK`] that can be disputed, about the largest model that can be registered.
pub(super) fn disputable<T: Config>() -> ResultClaim {
    let (facts, claim) = T::Referee::largest_for_benchmark(Operation::Generate);
    Facts::<T>::insert(TASK, facts);
    claim
}

/// An output as long as one of the largest encoder is, and a claim of it about [`TASK`].
pub(super) fn embedded<T: Config>() -> (ResultClaim, Vec<u8>) {
    let (facts, claim) = T::Referee::largest_for_benchmark(Operation::Embed);
    let bytes = T::Referee::output_bytes(&facts, &claim).expect("it follows from the claim");
    Facts::<T>::insert(TASK, facts);
    let output: Vec<u8> = core::iter::repeat_n(7u8, bytes as usize).collect();
    let claim = ResultClaim {
        output: content_hash(&output),
        ..claim
    };
    (claim, output)
}

/// A challenge of the first provider of a full round, at its end but for the opening of such a cell: the provider's
/// agent, and the opening. It is refuted, the provider convicted, and the challenger goes on against the next.
pub(super) fn opening_is_due<T: Config>(cell: LongCell) -> (T::AccountId, Move) {
    let (facts, said, mut moves) = T::Referee::for_benchmark(cell);
    Facts::<T>::insert(TASK, facts);
    let (_, agent) = agent_of::<T>(0);
    let mut round = challengeable::<T>(&said, |_| None);
    let last = moves.pop().expect("a game has moves");
    let challenger: T::AccountId = account("challenger", 0, 0);
    asset::endow::<T>(&challenger, stake::<T>());
    let bond = T::Balance::from(2u32);
    frame_support::assert_ok!(asset::hold::<T>(HoldReason::Challenge, &challenger, bond));
    fill_convictions::<T>(One::one());
    let party = Party::Account(challenger);
    dispute_about::<T>(&mut round, (&said, &moves), party, Clocks::equal(100));
    Rounds::<T>::insert(TASK, round);
    (agent, last)
}

/// Whether the first provider's result was proven wrong.
pub(super) fn is_convicted<T: Config>() -> bool {
    let provider: T::AccountId = account("provider", 0, 0);
    let members = Rounds::<T>::get(TASK).map(|round| round.members);
    let mut members = members.into_iter().flatten();
    members.any(|member| member.provider == provider && member.fault == Some(FaultKind::WrongResult))
}

/// A challenge of the first provider's `claim`, after these moves.
pub(super) fn dispute_about<T: Config>(
    round: &mut RoundOf<T>,
    (claim, moves): (&ResultClaim, &[Move]),
    challenger: PartyOf<T>,
    clocks: Clocks,
) {
    let court = Facts::<T>::get(TASK).and_then(|facts| T::Referee::court(&facts, claim));
    let court = court.expect("the facts have a court");
    let mut game = Game::new(claim.trace_root, &court, clocks).expect("the claim can be played over");
    for played in moves {
        let side = game.to_move().expect("the game goes on");
        frame_support::assert_ok!(game.step(side, played.clone(), &court, &court));
    }
    let bond = match challenger {
        Party::Account(_) => T::Balance::from(2u32),
        _ => Zero::zero(),
    };
    let now = Pallet::<T>::now();
    let seats = matches!(challenger, Party::Provider(_)).then_some((0, 1));
    let dispute = Dispute {
        task: TASK,
        defender: Party::Provider(account("provider", 0, 0)),
        challenger,
        claim: claim.clone(),
        proven: false,
        game,
        bond,
        moves: 0,
        opened_at: frame_system::Pallet::<T>::block_number(),
        ticked_at: Pallet::<T>::now(),
        beyond_since: None,
    };
    let open = OpenDispute {
        id: 0,
        due: now,
        seats,
    };
    frame_support::assert_ok!(round.disputes.try_push(open));
    crate::NextDisputeId::<T>::put(1);
    Disputes::<T>::insert(0, dispute);
}

/// As many convictions as are kept, all within the window.
pub(super) fn fill_convictions<T: Config>(now: BlockNumberFor<T>) {
    let convictions: Vec<_> = (0..CONVICTIONS_MAX)
        .map(|place| Conviction {
            offender: account("convict", place, 0),
            stake: One::one(),
            at: now,
        })
        .collect();
    Convictions::<T>::put(BoundedVec::truncate_from(convictions));
}

/// A slash of a provider with stake, which is due.
pub(super) fn due_slash<T: Config>() -> T::AccountId {
    let (offender, _) = agent_of::<T>(0);
    let lock = T::Balance::from(1_000u32);
    frame_support::assert_ok!(T::Stake::lock(&offender, lock));
    let now = Pallet::<T>::now();
    fill_convictions::<T>(now);
    let rich = |name| {
        let payee = account(name, 0, 0);
        asset::endow::<T>(&payee, One::one());
        payee
    };
    let slash = Slash {
        task: TASK,
        offender: offender.clone(),
        kind: FaultKind::WrongResult,
        lock,
        part: Perquintill::from_percent(5),
        finder: Some(rich("finder")),
        client: Some(rich("client")),
        proven_at: now,
        until: now,
    };
    Slashes::<T>::insert(0, slash);
    crate::NextSlashId::<T>::put(1);
    Pallet::<T>::jail(&offender);
    at::<T>(now + One::one());
    offender
}

/// The provider in `seat`, and its agent, in the block in which calls are measured.
pub(super) fn agent_of<T: Config>(seat: u32) -> (T::AccountId, T::AccountId) {
    at::<T>(One::one());
    let (stash, agent) = (account("provider", seat, 0), account("agent", seat, 0));
    T::Stake::endow(&stash, &agent, Role::Provider, stake::<T>());
    (stash, agent)
}

/// Gives every member stake, and locks some of it.
pub(super) fn lock_all<T: Config>(round: &mut RoundOf<T>) {
    for (seat, member) in (0..REDUNDANCY_MAX).zip(round.members.iter_mut()) {
        agent_of::<T>(seat);
        member.lock = One::one();
        frame_support::assert_ok!(T::Stake::lock(&member.provider, member.lock));
    }
}
