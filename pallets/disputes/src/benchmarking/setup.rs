//! Disputes of which calls are the last.

use alloc::vec;

use frame_benchmarking::v2::account;
use sp_runtime::traits::{One, Zero};
use surety_dispute_game::{
    bisection::{Blob, Clocks, DuePart, Game, Missing, Move, PARTS_MAX, PartOpening},
    dispute::{Dispute, Prepaid},
};
use surety_pallet_results::{
    DisputeContexts, DisputeReferee, LongCell, RoundOf, Rounds, asset,
    benchmarking::setup::{TASK, agent_of, challengeable, stake},
};
use surety_pallet_trust_lock::{Pallet as TrustLock, fill_convictions};
use surety_types::{
    limits,
    stake::Role,
    task::ResultClaim,
    traits::StakeLedger,
    trust::{AuditState, FaultKind, OpenDispute, Party},
};

use crate::{Config, Disputes, HoldReason, NextDisputeId, OPENED_AT_ONCE, PartyOf};

/// A challenge of the first provider of a full round, at its end but for the opening of such a cell: the
/// provider's agent, and the opening. It is refuted, the provider convicted, and the challenger goes on
/// against the next, as do as many auditors that contradict the provider as play at once.
pub(super) fn opening_is_due<T: Config>(cell: LongCell) -> (T::AccountId, Move) {
    let (context, said, mut moves) = T::Referee::for_benchmark(cell);
    DisputeContexts::<T>::insert(TASK, context);
    let (_, agent) = agent_of::<T>(0);
    let mut round = challengeable::<T>(&said, |_| None);
    differing::<T>(&mut round, &account("provider", 0, 0));
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

/// A challenge of the first provider of a full round, in which the challenger is to name a child: the
/// challenger, and its move. It asks for the output.
pub(super) fn naming_is_due<T: Config>() -> (T::AccountId, Move) {
    let (context, said, mut moves) = T::Referee::for_benchmark(LongCell::Choice);
    DisputeContexts::<T>::insert(TASK, context);
    let mut round = challengeable::<T>(&said, |_| None);
    let challenger: T::AccountId = account("challenger", 0, 0);
    asset::endow::<T>(&challenger, stake::<T>());
    moves.truncate(1);
    dispute_about::<T>(
        &mut round,
        (&said, &moves),
        Party::Account(challenger.clone()),
        Clocks::equal(100),
    );
    Disputes::<T>::mutate(0, |dispute| {
        if let Some(dispute) = dispute {
            dispute.prepaid = None;
        }
    });
    Rounds::<T>::insert(TASK, round);
    (challenger, Move::Ask(Missing::Output))
}

/// The last part of the longest content that can be demanded.
pub(super) fn largest_part() -> (DuePart, PartOpening) {
    let bytes = vec![7; PARTS_MAX as usize * PartOpening::bytes_max() as usize];
    let part = PARTS_MAX - 1;
    let shown = PartOpening::new(&bytes, part).expect("there is such a part");
    let bytes = u32::try_from(bytes.len()).unwrap_or_default();
    let content = shown.content(bytes).expect("it is a part of it");
    let blob = Blob { content, bytes };
    (DuePart { blob, part }, shown)
}

/// A claim that is like another one, and that nobody else makes.
pub(super) fn lonely(said: &ResultClaim) -> ResultClaim {
    ResultClaim {
        output: sp_core::H256::repeat_byte(99),
        ..said.clone()
    }
}

/// As many auditors as are done with in one step contradict `provider`, each with a bond. Nobody has
/// confirmed it.
pub(super) fn differing<T: Config>(round: &mut RoundOf<T>, provider: &T::AccountId) {
    for (place, audit) in (0..OPENED_AT_ONCE).zip(round.audits.iter_mut()) {
        let agent = account("agent of verifier", place, 0);
        T::Stake::endow(&audit.verifier, &agent, Role::Verifier, stake::<T>());
        audit.bond = One::one();
        frame_support::assert_ok!(T::Stake::lock(&audit.verifier, audit.bond));
        audit.provider = provider.clone();
        audit.state = AuditState::Differs;
    }
    let others = round.audits.iter_mut().skip(OPENED_AT_ONCE as usize);
    for audit in others.filter(|audit| audit.provider == *provider) {
        audit.state = AuditState::Over;
    }
}

/// All disputes that a round has room for but the one of the last challenger, all of them by others.
pub(super) fn all_but_one_dispute<T: Config>(round: &mut RoundOf<T>, claim: &ResultClaim) {
    let party = |place| Party::Account(account("another challenger", place, 0));
    dispute_about::<T>(round, (claim, &[]), party(0), Clocks::equal(100));
    let first = Disputes::<T>::get(0).expect("it was opened just before");
    for id in 1..limits::DISPUTES_MAX.saturating_sub(1) {
        let challenger = party(id);
        Disputes::<T>::insert(
            id,
            Dispute {
                challenger,
                ..first.clone()
            },
        );
        let open = OpenDispute {
            id,
            due: first.ticked_at,
            defender: Some(0),
            challenger: None,
        };
        frame_support::assert_ok!(round.disputes.try_push(open));
    }
    NextDisputeId::<T>::put(limits::DISPUTES_MAX.saturating_sub(1));
}

/// Whether the first provider's result was proven wrong.
pub(super) fn is_convicted<T: Config>() -> bool {
    let provider: T::AccountId = account("provider", 0, 0);
    let members = Rounds::<T>::get(TASK).map(|round| round.members);
    let mut members = members.into_iter().flatten();
    members.any(|member| member.provider == provider && member.fault == Some(FaultKind::WrongResult))
}

/// Content was asked for by an account of its own.
fn prepaid<T: Config>() -> Prepaid<T::AccountId, T::Balance> {
    let by: T::AccountId = account("player", 0, 0);
    asset::endow::<T>(&by, stake::<T>());
    let amount = T::Balance::from(2u32);
    frame_support::assert_ok!(asset::hold::<T>(HoldReason::Showing, &by, amount));
    Prepaid { by, amount }
}

/// A challenge of the first provider's `claim`, after these moves.
pub(super) fn dispute_about<T: Config>(
    round: &mut RoundOf<T>,
    (claim, moves): (&ResultClaim, &[Move]),
    challenger: PartyOf<T>,
    clocks: Clocks,
) {
    let referee =
        DisputeContexts::<T>::get(TASK).and_then(|context| T::Referee::claim_referee(&context, claim));
    let referee = referee.expect("the context has a referee");
    let mut game = Game::new(claim.trace_root, &referee, clocks).expect("the claim can be played over");
    for played in moves {
        let side = game.to_move().expect("the game goes on");
        frame_support::assert_ok!(game.step(side, played.clone(), &referee, &referee));
    }
    let bond = match challenger {
        Party::Account(_) => {
            round.challenges = round.challenges.saturating_add(1);
            T::Balance::from(2u32)
        }
        _ => Zero::zero(),
    };
    let now = TrustLock::<T>::now();
    let seat = matches!(challenger, Party::Provider(_)).then_some(1);
    let dispute = Dispute {
        task: TASK,
        defender: Party::Provider(account("provider", 0, 0)),
        challenger,
        claim: claim.clone(),
        game,
        bond,
        committee_bond: bond / 2u32.into(),
        prepaid: Some(prepaid::<T>()),
        moves: 0,
        opened_at: frame_system::Pallet::<T>::block_number(),
        ticked_at: TrustLock::<T>::now(),
        referred_at: None,
    };
    let open = OpenDispute {
        id: 0,
        due: now,
        defender: Some(0),
        challenger: seat,
    };
    frame_support::assert_ok!(round.disputes.try_push(open));
    NextDisputeId::<T>::put(1);
    Disputes::<T>::insert(0, dispute);
}
