//! The committee of verifiers that decides what no block can compute again.
//!
//! ```text
//!             join_committee        seats filled       reveal_vote, time
//!  convene ─> Drawing ───────────────────────────────> Revealing ──┬─> decided: three quorums in a row
//!     │         ^       (fewer came: a round without quorum)       ├─> Drawing again, at most eight rounds
//!     │         └──────────────────────────────────────────────────┤
//!     └──────────────────────────> Summoning <─────────────────────┘
//!  with few verifiers                │ join_committee, time
//!                                    └──> Revealing ──> decided by two thirds of all stake, or undecided;
//!                                         where it had no room for all, rounds go on first
//!
//!  the dispute is decided, here or elsewhere:
//!     winding up: what is sealed is opened ──> who did not is suspended ──> who was right is paid ──> gone
//! ```
//!
//! `surety_dispute_game::quorum_streak` is the state machine, and its time is that of disputes. What it
//! decides ends the dispute as a judgement does. When it does not decide, the dispute waits for
//! `DecideOrigin` until `DecisionWindow` is over, and stays undecided then. Whose stake and keys count,
//! and what two thirds are of, is fixed when it is called together.

use frame_support::traits::Get;
use sp_runtime::{SaturatedConversion, traits::Saturating};
use surety_audit_economics::seat_seed;
use surety_dispute_game::{
    bisection::{Cell, Side},
    committee::{CANDIDATES_EXPECTED, CommitteeState, SeatDraw, question, value_hash, windows},
    quorum_streak::Stage,
};
use surety_pallet_results::Pallet as Results;
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_types::{
    stake::Role,
    traits::{BlockEntropy, ENTROPY_BLOCKS, ENTROPY_PATIENCE_BLOCKS, StakeLedger, TaskClock},
    trust::DisputeId,
};

use crate::{CommitteeOf, Committees, Config, DisputeOf, Event, Pallet, SeatDrawOf};

/// Most absent members suspended in one step. The rest are by the agenda, in the next blocks.
pub const SUSPENDED_AT_ONCE: u32 = 8;

impl<T: Config> Pallet<T> {
    /// Calls verifiers together about the cell that a dispute has come to. To find what is there may take
    /// computing all of the task.
    pub(crate) fn convene(id: DisputeId, dispute: &DisputeOf<T>, cell: &Cell, time_for_all: u32) {
        let asked = question(id, dispute.task, &dispute.claim, cell);
        let windows = windows(
            T::SeatWindow::get().saturating_add(time_for_all),
            T::VoteWindow::get(),
        );
        let draw = Self::seat_draw(dispute);
        // A draw among so few would ask nearly all of them, and could be short of members for no fault of
        // anybody.
        let few = T::Stake::stashes_in(Role::Verifier) < CANDIDATES_EXPECTED;
        let all_at_once = few || is_lopsided::<T>(&draw);
        let state = if all_at_once {
            CommitteeState::of_all(asked, windows)
        } else {
            CommitteeState::new(asked, windows)
        };
        let committee = CommitteeOf::<T> {
            state,
            claimed: value_hash(Some(cell.value)),
            draw,
            candidates: Default::default(),
            ticked_at: TrustLock::<T>::now(),
            suspended: 0,
            fund: None,
        };
        if Self::awaits_seed(&committee) {
            T::Clock::wake_with_entropy(dispute.task, committee.draw.begun_at);
        }
        Committees::<T>::insert(id, committee);
        Self::deposit_event(Event::CommitteeConvened {
            dispute: id,
            question: asked,
            all_at_once,
        });
    }

    /// Whose stake and keys count from now on. What verifiers draw with comes from a block that nobody has
    /// seen who makes the move that calls them together.
    fn seat_draw(dispute: &DisputeOf<T>) -> SeatDrawOf<T> {
        // Heights, like the randomness of epochs.
        let begun_at = frame_system::Pallet::<T>::block_number();
        let seasoned = begun_at.saturating_sub(T::SeatSeasoning::get().into());
        SeatDraw {
            begun_at,
            // The cell is known as long before as its defender takes to show what members need.
            settled_by: seasoned.min(dispute.opened_at),
            epoch_randomness: T::EpochRandomness::get(),
            verifier_stake: Self::electorate(dispute),
            corrupt_stake: T::VerifiersCorrupt::get().mul_floor(T::Stake::bonded_in_all(Role::Verifier)),
            seed: None,
        }
    }

    /// Stake of all verifiers that may decide a dispute: all but its parties, which would say what they said
    /// before. Stake that is bonded later counts neither here nor in a vote.
    fn electorate(dispute: &DisputeOf<T>) -> T::Balance {
        let parties = [&dispute.defender, &dispute.challenger];
        let theirs = parties.map(|party| T::Stake::bonded(party.account(), Role::Verifier));
        let all = T::Stake::bonded_in_all(Role::Verifier);
        theirs.into_iter().fold(all, T::Balance::saturating_sub)
    }

    /// Whether a committee is to be drawn and what with is not known yet.
    pub(crate) fn awaits_seed(committee: &CommitteeOf<T>) -> bool {
        committee.draw.seed.is_none() && *committee.state.stage() == Stage::Drawing
    }

    /// Finds out what verifiers draw themselves with, once it can be known. A chain whose blocks have had no
    /// entropy for long gets on with its epoch's randomness alone.
    fn seed_seats(id: DisputeId, committee: &mut CommitteeOf<T>) {
        let draw = &mut committee.draw;
        let now = frame_system::Pallet::<T>::block_number();
        let kept = draw.begun_at.saturating_add(ENTROPY_BLOCKS.into());
        let entropy = T::Entropy::first_after(draw.begun_at).filter(|_| now <= kept);
        let patience = draw.begun_at.saturating_add(ENTROPY_PATIENCE_BLOCKS.into());
        if entropy.is_none() && now <= patience {
            return;
        }
        let output = entropy.as_ref().map(|(output, _)| output);
        let seed = seat_seed(&Results::<T>::genesis(), id, &draw.epoch_randomness, output);
        draw.seed = Some(seed);
        Self::deposit_event(Event::SeatsSeeded { dispute: id, seed });
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
    /// whether there is more to be done before the dispute can be left undecided.
    pub(crate) fn run_committee(id: DisputeId, dispute: &mut DisputeOf<T>) -> bool {
        let Some(mut committee) = Committees::<T>::get(id) else {
            return false;
        };
        if committee.state.decision().is_some() {
            // It came to nothing. Its record stays, for whoever decides instead.
            let more = Self::suspend_some(&mut committee);
            Committees::<T>::insert(id, committee);
            return more;
        }
        if Self::awaits_seed(&committee) {
            // The time for taking seats begins when they can be drawn. Other committees of the round may wait
            // for the same, and a step looks at one of them.
            Self::seed_seats(id, &mut committee);
            T::Clock::wake_with_entropy(dispute.task, committee.draw.begun_at);
            committee.ticked_at = TrustLock::<T>::now();
            Committees::<T>::insert(id, committee);
            return true;
        }
        let blocks = Self::committee_blocks(&committee);
        let over = Self::is_stage_over(&committee);
        committee.ticked_at = committee.ticked_at.max(TrustLock::<T>::now());
        if over && Self::open_ballot(id, &mut committee) {
            return Self::settle(id, dispute, committee);
        }
        committee.state.tick(blocks);
        if over {
            Self::end_ballot(id, &mut committee);
        }
        Self::settle(id, dispute, committee)
    }

    /// Opens the ballot that candidates have come for. Says whether there is one.
    fn open_ballot(id: DisputeId, committee: &mut CommitteeOf<T>) -> bool {
        let (ballot, members) = (committee.state.rounds(), committee.candidates.len());
        let opened = match committee.state.stage() {
            Stage::Drawing => committee.seat(),
            Stage::Summoning => committee.summon(),
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

    /// Makes ready for what comes after a ballot. Those who came for one that was not opened go.
    pub(crate) fn end_ballot(id: DisputeId, committee: &mut CommitteeOf<T>) {
        committee.candidates.clear();
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

    /// Keeps a committee, and ends the game if it has decided. Says whether there is more to be done before
    /// the dispute can be left undecided.
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
        Self::deposit_event(Event::CommitteeEnded {
            dispute: id,
            decision,
            winner,
        });
        let Some(winner) = winner else {
            let more = Self::suspend_some(&mut committee);
            Committees::<T>::insert(id, committee);
            return more;
        };
        Committees::<T>::insert(id, committee);
        // Committees are about games that wait for it.
        let decided = dispute.game.decided(winner);
        debug_assert!(decided.is_ok());
        false
    }

    /// Whether there is something to be done about a committee that is over.
    pub(crate) fn has_work(committee: &CommitteeOf<T>) -> bool {
        let over = committee.state.decision().is_some();
        over && (committee.fund.is_some() || Self::has_absent(committee))
    }

    /// Whether members are still to be suspended.
    pub(crate) fn has_absent(committee: &CommitteeOf<T>) -> bool {
        committee.state.absent().len() > committee.suspended as usize
    }

    /// Suspends the next few members that sealed an answer and did not open it, so that no step of a round
    /// costs more than others. Says whether there are more.
    ///
    /// Nobody loses stake for a vote: silence may be the line's fault, and an answer that others did not give
    /// is no proof of a lie.
    pub(crate) fn suspend_some(committee: &mut CommitteeOf<T>) -> bool {
        let absent = committee.state.absent().into_iter();
        let mut left = absent.skip(committee.suspended as usize);
        for member in left.by_ref().take(SUSPENDED_AT_ONCE as usize) {
            TrustLock::<T>::note_missed(&member);
            committee.suspended = committee.suspended.saturating_add(1);
        }
        left.next().is_some()
    }
}

/// Whether corrupt verifiers could have more than two fifths of the stake that is drawn from, because that of
/// the parties is not among it. At two fifths one round in 600 has a quorum for what they say, and all vote
/// at once instead: what is decided then takes more stake than they have.
fn is_lopsided<T: Config>(draw: &SeatDrawOf<T>) -> bool {
    let (drawn, corrupt): (u128, u128) = (draw.verifier_stake.into(), draw.corrupt_stake.into());
    corrupt.saturating_mul(5) > drawn.saturating_mul(2)
}
