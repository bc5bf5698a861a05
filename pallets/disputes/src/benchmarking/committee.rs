//! The committees that cost most.

use alloc::vec::Vec;
use codec::{Decode, Encode};
use frame_benchmarking::v2::account;
use frame_support::traits::Get;
use sp_core::H256;
use sp_runtime::{
    SaturatedConversion, Saturating,
    traits::{One, Zero},
};
use surety_dispute_game::{
    bisection::{Cell, CellValue, Clocks, Game, Side},
    committee::{Candidate, CommitteeFund, CommitteeState, SeatDraw, value_hash, windows},
    quorum_streak::{BALLOTS_MAX, ROUNDS_MAX, SEATS, STREAK, seal},
};
use surety_pallet_results::{
    Rounds,
    benchmarking::setup::{TASK, at, challengeable, disputable, stake},
};
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_types::{limits::VOTERS_MAX, stake::Role, traits::StakeLedger, trust::Party};

use super::setup::{differing, dispute_about, lonely};
use crate::{CommitteeOf, Committees, Config, DisputeOf, Disputes, Pallet, SUSPENDED_AT_ONCE};

const QUESTION: H256 = H256::repeat_byte(5);

pub(super) fn salt() -> H256 {
    H256::repeat_byte(3)
}

fn claimed() -> CellValue {
    CellValue::Word([0; 4])
}

/// A dispute that waits for others to decide about a cell, in a full round. Auditors contradict its
/// challenger, who loses, or is in the dark. Nobody else stands by what that says.
pub(super) fn waiting<T: Config>() -> DisputeOf<T> {
    let said = disputable::<T>();
    let mut round = challengeable::<T>(&said, |seat| (seat == 1).then(|| lonely(&said)));
    differing::<T>(&mut round, &account("provider", 1, 0));
    let party = Party::Provider(account("provider", 1, 0));
    dispute_about::<T>(&mut round, (&said, &[]), party, Clocks::equal(1));
    Rounds::<T>::insert(TASK, round);
    Disputes::<T>::mutate(0, |dispute| {
        let dispute = dispute.as_mut().expect("it was opened just before");
        dispute.game = referred(&dispute.game);
        dispute.referred_at = Some(TrustLock::<T>::now());
        dispute.clone()
    })
}

/// What nobody can compute.
pub(super) fn cell() -> Cell {
    Cell {
        leaf: 0,
        length: 1,
        step: 0,
        row: 0,
        cell: 0,
        value: claimed(),
    }
}

/// The same game at a cell that no block can compute: its state is the first thing that is encoded, and the
/// first variant has no data.
fn referred(game: &Game) -> Game {
    const NEEDS_COMMITTEE: u8 = 6;
    let mut encoded = (NEEDS_COMMITTEE, cell()).encode();
    encoded.extend(game.encode().into_iter().skip(1));
    Game::decode(&mut encoded.as_slice()).expect("it is a game")
}

fn committee<T: Config>(state: CommitteeState<T::AccountId>) -> CommitteeOf<T> {
    CommitteeOf::<T> {
        state,
        claimed: value_hash(Some(claimed())),
        draw: SeatDraw {
            begun_at: frame_system::Pallet::<T>::block_number(),
            settled_by: frame_system::Pallet::<T>::block_number()
                .saturating_sub(T::SeatSeasoning::get().into()),
            epoch_randomness: H256::zero(),
            verifier_stake: One::one(),
            corrupt_stake: Zero::zero(),
            seed: Some(H256::repeat_byte(4)),
        },
        candidates: Default::default(),
        ticked_at: TrustLock::<T>::now(),
        suspended: 0,
        fund: None,
    }
}

/// All seats of the last ballot are taken, all members of the others kept silent, and the caller's stake and
/// key are old enough.
pub(super) fn drawing<T: Config>() {
    let seasoned: frame_system::pallet_prelude::BlockNumberFor<T> = T::SeatSeasoning::get().saturated_into();
    at::<T>(seasoned.saturating_add(2u32.into()));
    waiting::<T>();
    let mut committee = committee::<T>(after_ballots::<T>(BALLOTS_MAX - 1));
    for place in 0..SEATS {
        committee.enter(Candidate {
            verifier: account("member", place, 0),
            rank: u128::MAX,
            stake: 1,
            seal: H256::zero(),
        });
    }
    Committees::<T>::insert(0, committee);
}

fn member<T: Config>(ballot: u32, place: u32) -> T::AccountId {
    account("member", ballot * VOTERS_MAX + place, 0)
}

/// A state after some ballots: in each others sealed, and nobody opened. All that have room come to the vote
/// of all, so that rounds go on after it.
fn after_ballots<T: Config>(ballots: u32) -> CommitteeState<T::AccountId> {
    let mut state = CommitteeState::new(QUESTION, windows(100, 100));
    for ballot in 0..ballots {
        seal_silently::<T>(&mut state, ballot);
        state.tick(100);
    }
    state
}

/// All members of a ballot seal what nobody can open.
fn seal_silently<T: Config>(state: &mut CommitteeState<T::AccountId>, ballot: u32) {
    let is_vote = ballot == ROUNDS_MAX;
    let members = 0..if is_vote { VOTERS_MAX } else { SEATS };
    let members: Vec<_> = members.map(|place| member::<T>(ballot, place)).collect();
    let opened = if is_vote {
        state.summon(members.clone())
    } else {
        state.draw(members.clone())
    };
    frame_support::assert_ok!(opened);
    for member in &members {
        frame_support::assert_ok!(state.commit(member, H256::zero()));
    }
}

/// The last member of the last ballot may open its answer, which decides. Returns the answer.
pub(super) fn voted<T: Config>(last: &T::AccountId) -> H256 {
    waiting::<T>();
    let right = value_hash(Some(claimed()));
    let mut state = after_ballots::<T>(BALLOTS_MAX - STREAK);
    for ballot in BALLOTS_MAX - STREAK..BALLOTS_MAX {
        let is_last = ballot + 1 == BALLOTS_MAX;
        let others = u32::from(is_last)..SEATS;
        let others: Vec<_> = others.map(|place| member::<T>(ballot, place)).collect();
        let members = others.iter().chain(is_last.then_some(last));
        frame_support::assert_ok!(state.draw(members.clone().cloned()));
        for member in members {
            let sealed = seal(QUESTION, ballot, member, right, salt());
            frame_support::assert_ok!(state.commit(member, sealed));
        }
        for member in &others {
            frame_support::assert_ok!(state.reveal(member, right, salt()));
        }
    }
    Committees::<T>::insert(0, committee::<T>(state));
    right
}

/// As many as a vote of all takes have come for it, with stake, and the time for that is over.
pub(super) fn summoned<T: Config>() {
    at::<T>(One::one());
    waiting::<T>();
    let mut committee = committee::<T>(after_ballots::<T>(ROUNDS_MAX));
    for place in 0..VOTERS_MAX {
        let (verifier, agent) = (account("voter", place, 0), account("agent of voter", place, 0));
        T::Stake::endow(&verifier, &agent, Role::Verifier, stake::<T>());
        committee.enter(Candidate {
            verifier,
            rank: u128::MAX,
            stake: 1,
            seal: H256::zero(),
        });
    }
    at::<T>(committee.state.left().saturating_add(2).into());
    Committees::<T>::insert(0, committee);
}

/// All members of the last ballot have sealed, nobody has opened, and the time of everything is over.
pub(super) fn silent<T: Config>() {
    at::<T>(One::one());
    waiting::<T>();
    let mut state = after_ballots::<T>(BALLOTS_MAX - 1);
    seal_silently::<T>(&mut state, BALLOTS_MAX - 1);
    Committees::<T>::insert(0, committee::<T>(state));
}

/// Has the time of the ballot pass, and that of the dispute with it, and suspends the last members.
pub(super) fn run_out<T: Config>() {
    let (Some(mut committee), Some(mut dispute)) = (Committees::<T>::get(0), Disputes::<T>::get(0)) else {
        return;
    };
    committee.state.tick(100);
    committee.suspended = u32::try_from(committee.state.absent().len()).unwrap_or(u32::MAX);
    committee.suspended = committee.suspended.saturating_sub(SUSPENDED_AT_ONCE);
    Pallet::<T>::end_ballot(0, &mut committee);
    Pallet::<T>::settle(0, &mut dispute, committee);
    if let Some(mut round) = Rounds::<T>::get(TASK) {
        Pallet::<T>::finish(&mut round, 0, dispute, None);
    }
}

/// A dispute that its challenger has lost. The members of the last rounds are to be paid, and nobody else has
/// given an answer.
pub(super) fn winding_up<T: Config>() {
    let pot = stake::<T>();
    let payer: T::AccountId = account("payer", 0, 0);
    T::Stake::endow(
        &payer,
        &account("agent of payer", 0, 0),
        Role::Verifier,
        pot.saturating_add(pot),
    );
    frame_support::assert_ok!(T::Stake::lock(&payer, pot));
    for ballot in BALLOTS_MAX - STREAK..BALLOTS_MAX {
        for place in 0..SEATS {
            let agent = account("agent of member", ballot * VOTERS_MAX + place, 0);
            T::Stake::endow(&member::<T>(ballot, place), &agent, Role::Verifier, pot);
        }
    }
    let last = member::<T>(BALLOTS_MAX - 1, 0);
    let right = voted::<T>(&last);
    let mut committee = Committees::<T>::get(0).expect("it sits");
    frame_support::assert_ok!(committee.state.reveal(&last, right, salt()));
    committee.suspended = u32::try_from(committee.state.absent().len()).unwrap_or(u32::MAX);
    committee.fund = Some(CommitteeFund {
        payer,
        is_stake: true,
        pot,
        left: pot,
        claim_holds: Some(true),
        paid: 0,
        from_lock: pot,
        slash: None,
    });
    Committees::<T>::insert(0, committee);
    Disputes::<T>::mutate(0, |dispute| {
        let dispute = dispute.as_mut().expect("it was opened just before");
        frame_support::assert_ok!(dispute.game.decided(Side::Defender));
    });
}
