//! The committee of verifiers that decides what no block can compute again.
//!
//! ```text
//!             join_committee        seats filled       reveal_vote, time
//!  Beyond ──> Drawing ───────────────────────────────> Revealing ──┬─> decided: three quorums in a row
//!     │         ^       (fewer came: a round without quorum)       ├─> Drawing again, at most eight rounds
//!     │         └──────────────────────────────────────────────────┤
//!     └──────────────────────────> Summoning <─────────────────────┘
//!  with few verifiers                │ join_committee, time
//!                                    └──> Revealing ──> decided by two thirds of all stake, or undecided
//! ```
//!
//! `surety_verification::snowflake` is the machine, and its time is that of disputes: finalised blocks. What it decides ends
//! the dispute as a judgement does. When it does not decide, the dispute waits for `DecideOrigin` as long as
//! `DecisionWindow` lasts, and stays undecided then.

use frame_support::traits::Get;
use sp_runtime::{traits::Saturating, Permill, Perquintill, SaturatedConversion};
use surety_types::{
    stake::Role,
    traits::StakeLedger,
    trust::{DisputeId, FaultKind},
    TaskId,
};
use surety_verification::{
    bisection::{Cell, Side},
    committee::{question, value_hash, windows, Machine, SeatDraw, CANDIDATES_EXPECTED},
    snowflake::{Decision, Stage},
};

use crate::{types::quintillionths, CommitteeOf, Committees, Config, DisputeOf, Event, Pallet, SeatDrawOf};

impl<T: Config> Pallet<T> {
    /// Calls verifiers together about the cell that a dispute has come to.
    pub(crate) fn convene(id: DisputeId, dispute: &DisputeOf<T>, cell: &Cell) {
        let asked = question(id, dispute.task, &dispute.claim, cell);
        let windows = windows(T::SeatWindow::get(), T::VoteWindow::get());
        // A draw among so few would ask nearly all of them, and could be short of members for no fault of anybody.
        let all_at_once = T::Stake::stashes_in(Role::Verifier) < CANDIDATES_EXPECTED;
        let machine = match all_at_once {
            true => Machine::of_all(asked, windows),
            false => Machine::new(asked, windows),
        };
        let committee = CommitteeOf::<T> {
            machine,
            claimed: value_hash(Some(cell.value)),
            draw: Self::seat_draw(),
            candidates: Default::default(),
            ticked_at: T::FinalisedBlock::get(),
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
            begun_at: frame_system::Pallet::<T>::block_number(),
        }
    }

    /// Blocks that have become final since a committee was last looked at.
    pub(crate) fn committee_blocks(committee: &CommitteeOf<T>) -> u32 {
        let finalised = T::FinalisedBlock::get();
        finalised.saturating_sub(committee.ticked_at).saturated_into()
    }

    /// Whether the time of a committee's stage is over.
    pub(crate) fn is_stage_over(committee: &CommitteeOf<T>) -> bool {
        let blocks = Self::committee_blocks(committee);
        blocks > 0 && blocks >= committee.machine.left()
    }

    /// Has a dispute's committee go on as far as its time allows, and ends the game if it has decided. Says whether it still
    /// sits.
    pub(crate) fn run_committee(id: DisputeId, dispute: &mut DisputeOf<T>) -> bool {
        let Some(mut committee) = Committees::<T>::get(id) else {
            return false;
        };
        let blocks = Self::committee_blocks(&committee);
        let over = Self::is_stage_over(&committee);
        committee.ticked_at = committee.ticked_at.max(T::FinalisedBlock::get());
        if over && Self::open_ballot(id, dispute, &mut committee) {
            return Self::settle(id, dispute, committee);
        }
        committee.machine.tick(blocks);
        if over {
            Self::end_ballot(id, &mut committee);
        }
        Self::settle(id, dispute, committee)
    }

    /// Opens the ballot that candidates have come for. Says whether there is one.
    fn open_ballot(id: DisputeId, dispute: &DisputeOf<T>, committee: &mut CommitteeOf<T>) -> bool {
        let (ballot, members) = (committee.machine.rounds(), committee.candidates.len());
        let opened = match committee.machine.stage() {
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
        let (leader, streak) = match committee.machine.leader() {
            Some((value, streak)) => (Some(value), streak),
            None => (None, 0),
        };
        Self::deposit_event(Event::BallotEnded {
            dispute: id,
            rounds: committee.machine.rounds(),
            leader,
            streak,
        });
    }

    /// Keeps a committee that goes on, or ends it. Says whether it still sits.
    pub(crate) fn settle(id: DisputeId, dispute: &mut DisputeOf<T>, committee: CommitteeOf<T>) -> bool {
        match committee.machine.decision() {
            None => Committees::<T>::insert(id, committee),
            Some(decision) => {
                Self::end_committee(id, dispute, &committee, decision);
                return false;
            }
        }
        true
    }

    fn end_committee(
        id: DisputeId,
        dispute: &mut DisputeOf<T>,
        committee: &CommitteeOf<T>,
        decision: Decision,
    ) {
        Committees::<T>::remove(id);
        let winner = decision.value().map(|value| match value == committee.claimed {
            true => Side::Defender,
            false => Side::Challenger,
        });
        Self::deposit_event(Event::CommitteeEnded {
            dispute: id,
            decision,
            winner,
        });
        for member in committee.machine.losing_side() {
            Self::convict_member(dispute.task, &member, FaultKind::Dissent, T::DissentPart::get());
        }
        for member in committee.machine.absent() {
            let part = T::VoteNoShowPart::get();
            Self::convict_member(dispute.task, &member, FaultKind::VoteNoShow, part);
            Self::note_absence(&member);
        }
        if let Some(winner) = winner {
            // Committees are about games that wait for it.
            let decided = dispute.game.decided(winner);
            debug_assert!(decided.is_ok());
        }
    }

    /// Finds a member at fault. Nothing of its stake is locked: a part of all of it is lost.
    fn convict_member(task: TaskId, verifier: &T::AccountId, kind: FaultKind, part: Permill) {
        Self::deposit_event(Event::FaultFound {
            task,
            offender: verifier.clone(),
            kind,
        });
        let lost: (T::Balance, Perquintill) = (0u128.into(), quintillionths(part));
        Self::defer_slash(task, verifier, kind, lost, None, None);
    }
}
