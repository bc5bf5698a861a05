//! Disputes of which calls are the last.

use frame_benchmarking::v2::account;
use sp_runtime::traits::{One, Zero};
use surety_dispute_game::{
    bisection::{Clocks, Game, Move},
    dispute::Dispute,
};
use surety_pallet_results::{
    DisputeContexts, DisputeReferee, LongCell, RoundOf, Rounds, asset,
    benchmarking::setup::{TASK, agent_of, challengeable, stake},
};
use surety_pallet_trust_lock::{Pallet as TrustLock, fill_convictions};
use surety_types::{
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
