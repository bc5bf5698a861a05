//! The committee of verifiers that decides what no block can compute again.
//!
//! ```text
//!             join_committee        seats filled       reveal_vote, time
//!  convene ─> Drawing ───────────────────────────────> Revealing ──┬─> decided: three quorums in a row
//!     │         ^       (fewer came: a round without quorum)       ├─> Drawing again, at most eight rounds
//!     │         └──────────────────────────────────────────────────┤
//!     └──────────────────────────> Summoning <─────────────────────┘
//!  with few verifiers                │ join_committee, time
//!                                    └──> Revealing ──> decided by two thirds of all stake, or undecided
//! ```
//!
//! `surety_dispute_game::quorum_streak` is the state machine, and its time is that of disputes. What it
//! decides ends the dispute as a judgement does. When it does not decide, the dispute waits for
//! `DecideOrigin` as long as `DecisionWindow` lasts, and stays undecided then.

use frame_support::traits::Get;
use sp_runtime::{SaturatedConversion, traits::Saturating};
use surety_dispute_game::{
    bisection::{Cell, Side},
    committee::{CANDIDATES_EXPECTED, CommitteeState, SeatDraw, question, value_hash, windows},
    quorum_streak::Stage,
};
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_types::{stake::Role, traits::StakeLedger, trust::DisputeId};

use crate::{CommitteeOf, Committees, Config, DisputeOf, Event, Pallet, SeatDrawOf};

/// Most absent members suspended in one step. The rest are by the agenda, in the next blocks.
pub const SUSPENDED_AT_ONCE: u32 = 8;

impl<T: Config> Pallet<T> {
    /// Calls verifiers together about the cell that a dispute has come to.
    pub(crate) fn convene(id: DisputeId, dispute: &DisputeOf<T>, cell: &Cell) {
        let asked = question(id, dispute.task, &dispute.claim, cell);
        let windows = windows(T::SeatWindow::get(), T::VoteWindow::get());
        // A draw among so few would ask nearly all of them, and could be short of members for no fault of
        // anybody.
        let all_at_once = T::Stake::stashes_in(Role::Verifier) < CANDIDATES_EXPECTED;
        let state = if all_at_once {
            CommitteeState::of_all(asked, windows)
        } else {
            CommitteeState::new(asked, windows)
        };
        let committee = CommitteeOf::<T> {
            state,
            claimed: value_hash(Some(cell.value)),
            draw: Self::seat_draw(),
            candidates: Default::default(),
            ticked_at: TrustLock::<T>::now(),
            suspended: 0,
        };
        Committees::<T>::insert(id, committee);
        Self::deposit_event(Event::CommitteeConvened {
            dispute: id,
            question: asked,
            all_at_once,
        });
    }

    /// What verifiers draw themselves with from now on.
    fn seat_draw() -> SeatDrawOf<T> {
        SeatDraw {
            seed: T::EpochRandomness::get(),
            verifier_stake: T::Stake::bonded_in_all(Role::Verifier),
            // A height, like the randomness of epochs.
            begun_at: frame_system::Pallet::<T>::block_number(),
        }
    }

    /// Blocks that have become final since a committee was last looked at.
    pub(crate) fn committee_blocks(committee: &CommitteeOf<T>) -> u32 {
        let now = TrustLock::<T>::now();
        now.saturating_sub(committee.ticked_at).saturated_into()
    }

    /// Whether the time of a committee's stage is over, or all of it is.
    pub(crate) fn is_stage_over(committee: &CommitteeOf<T>) -> bool {
        let blocks = Self::committee_blocks(committee);
        let passed = blocks > 0 && blocks >= committee.state.left();
        passed || committee.state.decision().is_some()
    }

    /// Has a dispute's committee go on as far as its time allows, and ends the game if it has decided. Says
    /// whether it still sits.
    pub(crate) fn run_committee(id: DisputeId, dispute: &mut DisputeOf<T>) -> bool {
        let Some(mut committee) = Committees::<T>::get(id) else {
            return false;
        };
        if committee.state.decision().is_some() {
            return Self::settle(id, dispute, committee);
        }
        let blocks = Self::committee_blocks(&committee);
        let over = Self::is_stage_over(&committee);
        committee.ticked_at = committee.ticked_at.max(TrustLock::<T>::now());
        if over && Self::open_ballot(id, dispute, &mut committee) {
            return Self::settle(id, dispute, committee);
        }
        committee.state.tick(blocks);
        if over {
            Self::end_ballot(id, &mut committee);
        }
        Self::settle(id, dispute, committee)
    }

    /// Opens the ballot that candidates have come for. Says whether there is one.
    fn open_ballot(id: DisputeId, dispute: &DisputeOf<T>, committee: &mut CommitteeOf<T>) -> bool {
        let (ballot, members) = (committee.state.rounds(), committee.candidates.len());
        let opened = match committee.state.stage() {
            Stage::Drawing => committee.seat(),
            Stage::Summoning => {
                let weight = |verifier: &T::AccountId| T::Stake::bonded(verifier, Role::Verifier).into();
                committee.summon(weight, Self::electorate(dispute))
            }
            Stage::Round(_) | Stage::Voting(_) | Stage::Over(_) => false,
        };
        if opened {
            Self::deposit_event(Event::BallotOpened {
                dispute: id,
                ballot,
                members: u32::try_from(members).unwrap_or(u32::MAX),
            });
        }
        opened
    }

    /// Stake of all verifiers that may vote about a dispute: all but its parties.
    fn electorate(dispute: &DisputeOf<T>) -> u128 {
        let parties = [&dispute.defender, &dispute.challenger];
        let theirs = parties.map(|party| T::Stake::bonded(party.account(), Role::Verifier));
        let all = T::Stake::bonded_in_all(Role::Verifier);
        theirs.into_iter().fold(all, T::Balance::saturating_sub).into()
    }

    /// Makes ready for what comes after a ballot. Those who came for one that was not opened go.
    pub(crate) fn end_ballot(id: DisputeId, committee: &mut CommitteeOf<T>) {
        committee.candidates.clear();
        committee.draw = Self::seat_draw();
        let (leader, streak) = match committee.state.leader() {
            Some((value, streak)) => (Some(value), streak),
            None => (None, 0),
        };
        Self::deposit_event(Event::BallotEnded {
            dispute: id,
            rounds: committee.state.rounds(),
            leader,
            streak,
        });
    }

    /// Keeps a committee that goes on, or ends it. Says whether it still sits.
    pub(crate) fn settle(id: DisputeId, dispute: &mut DisputeOf<T>, mut committee: CommitteeOf<T>) -> bool {
        let Some(decision) = committee.state.decision() else {
            Committees::<T>::insert(id, committee);
            return true;
        };
        let winner = decision.value().map(|value| {
            if value == committee.claimed {
                Side::Defender
            } else {
                Side::Challenger
            }
        });
        if committee.suspended == 0 {
            Self::deposit_event(Event::CommitteeEnded {
                dispute: id,
                decision,
                winner,
            });
        }
        if Self::suspend_some(&mut committee) {
            Committees::<T>::insert(id, committee);
            return true;
        }
        Committees::<T>::remove(id);
        if let Some(winner) = winner {
            // Committees are about games that wait for it.
            let decided = dispute.game.decided(winner);
            debug_assert!(decided.is_ok());
        }
        false
    }

    /// Suspends the next few members that sealed an answer and did not open it, so that no step of a round
    /// costs more than others. Says whether there are more.
    ///
    /// Nobody loses stake for a vote: silence may be the line's fault, and an answer that others did not give
    /// is no proof of a lie.
    fn suspend_some(committee: &mut CommitteeOf<T>) -> bool {
        let absent = committee.state.absent().into_iter();
        let mut left = absent.skip(committee.suspended as usize);
        for member in left.by_ref().take(SUSPENDED_AT_ONCE as usize) {
            TrustLock::<T>::note_missed(&member);
            committee.suspended = committee.suspended.saturating_add(1);
        }
        left.next().is_some()
    }
}
