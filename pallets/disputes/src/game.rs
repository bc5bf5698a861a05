//! The life of a dispute, from its first move to what its end means.
//!
//! ```text
//!         play                    play, time of a side     ┌ judged, decided, conceded, out of time:
//!  open ────────> Posting .. Opening ──────────────────> over ┤ the loser is convicted, or loses its bond
//!                     └──> Evidence                        ^  └ undecided: nobody loses stake
//!                             └──> NeedsCommittee ─────────┤
//!                                   it decides, or         │
//!                                   decide_dispute; it     │
//!                                   does not, and then ────┘
//!                                   DecisionWindow is over
//! ```
//!
//! At any time a dispute becomes **moot** when one of its parties has lost elsewhere. It is then only closed,
//! in the next blocks.
//!
//! A committee that sat about it stays for a while, and with it the dispute's record (`fund.rs`): it plays
//! nobody any more.

use frame_support::{dispatch::DispatchResult, ensure, traits::Get};
use sp_runtime::{
    SaturatedConversion,
    traits::{Saturating, Zero},
};
use surety_dispute_game::bisection::{GameError, Move, Outcome, Reason, Side, State};
use surety_pallet_results::{DisputeContexts, DisputeReferee, Pallet as Results, RoundOf, Rounds, asset};
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_types::{
    TaskId,
    stake::Role,
    traits::{StakeLedger, TaskClock},
    trust::{AuditState, DisputeId, FaultKind, OpenDispute, Party, SlashId},
};

use crate::{
    CommitteeOf, Committees, Config, DisputeOf, Disputes, Error, Event, HoldReason, Pallet, PartyOf, bond,
};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_play(player: &T::AccountId, id: DisputeId, number: u32, played: Move) -> DispatchResult {
        let mut dispute = Disputes::<T>::get(id).ok_or(Error::<T>::UnknownDispute)?;
        let mut round = Results::<T>::round(dispute.task)?;
        let side = Self::side_of(player, &dispute).ok_or(Error::<T>::NotPlayer)?;
        ensure!(!is_moot::<T>(&round, &dispute), Error::<T>::Moot);
        ensure!(dispute.moves == number, Error::<T>::StaleMove);
        Self::tick(&mut dispute);
        // Nothing is carried out by a move that comes too late: it would be undone with it.
        ensure!(dispute.game.outcome().is_none(), Error::<T>::NotNow);
        let context = DisputeContexts::<T>::get(dispute.task).ok_or(Error::<T>::NotDisputable)?;
        let referee = T::Referee::claim_referee(&context, &dispute.claim).ok_or(Error::<T>::NotDisputable)?;
        let mut game = dispute.game.clone();
        let stepped = game.step(side, played.clone(), &referee, &referee);
        stepped.map_err(refusal::<T>)?;
        Self::note_showing(player, (id, &mut dispute), (played, &mut game), &referee)?;
        dispute.game = game;
        dispute.moves = dispute.moves.saturating_add(1);
        Self::deposit_event(Event::MovePlayed {
            dispute: id,
            side,
            number: dispute.moves,
            next: dispute.game.to_move(),
        });
        Self::note_cell(&round, id, &mut dispute);
        match dispute.game.outcome() {
            Some(outcome) => Self::finish(&mut round, id, dispute, Some(outcome)),
            None => Self::store(&mut round, id, dispute),
        }
        Ok(())
    }

    pub(crate) fn do_advance_dispute(id: DisputeId) -> DispatchResult {
        let dispute = Disputes::<T>::get(id).ok_or(Error::<T>::UnknownDispute)?;
        let mut round = Results::<T>::round(dispute.task)?;
        ensure!(Self::poll_dispute(&mut round, id, dispute), Error::<T>::NotDue);
        Ok(())
    }

    pub(crate) fn do_decide_dispute(id: DisputeId, winner: Side) -> DispatchResult {
        let mut dispute = Disputes::<T>::get(id).ok_or(Error::<T>::UnknownDispute)?;
        let mut round = Results::<T>::round(dispute.task)?;
        ensure!(!is_moot::<T>(&round, &dispute), Error::<T>::Moot);
        let decided = dispute.game.decided(winner).is_ok();
        ensure!(decided, Error::<T>::NotReferred);
        let outcome = dispute.game.outcome();
        Self::finish(&mut round, id, dispute, outcome);
        Ok(())
    }

    /// Ends a dispute if that is due, and writes down when to poll it again if not. Says whether it has
    /// ended.
    pub(crate) fn poll_dispute(round: &mut RoundOf<T>, id: DisputeId, mut dispute: DisputeOf<T>) -> bool {
        if let Some(committee) = Committees::<T>::get(id).filter(|committee| committee.fund.is_some()) {
            return Self::poll_winding_up(round, id, dispute, committee);
        }
        if is_moot::<T>(round, &dispute) {
            Self::close_moot(round, id, dispute);
            return true;
        }
        Self::tick(&mut dispute);
        let sits = Self::run_committee(id, &mut dispute);
        let waited = dispute
            .referred_at
            .is_some_and(|since| TrustLock::<T>::has_passed(since.saturating_add(T::DecisionWindow::get())));
        match dispute.game.outcome() {
            Some(outcome) => Self::finish(round, id, dispute, Some(outcome)),
            None if waited && !sits => Self::finish(round, id, dispute, None),
            None => {
                Self::store(round, id, dispute);
                return false;
            }
        }
        true
    }

    /// Writes a dispute that goes on.
    pub(crate) fn store(round: &mut RoundOf<T>, id: DisputeId, dispute: DisputeOf<T>) {
        let due = Self::due(id, &dispute);
        if let Some(open) = round.disputes.iter_mut().find(|open| open.id == id) {
            open.due = due;
        }
        T::Clock::wake_after(dispute.task, due);
        Rounds::<T>::insert(dispute.task, &*round);
        Disputes::<T>::insert(id, dispute);
    }

    /// Takes the time that has passed from the side to move.
    fn tick(dispute: &mut DisputeOf<T>) {
        let now = TrustLock::<T>::now().max(dispute.ticked_at);
        let blocks = now.saturating_sub(dispute.ticked_at);
        dispute.game.tick(blocks.saturated_into());
        dispute.ticked_at = now;
    }

    /// Which side an account plays on. The side to move, should it be both.
    fn side_of(player: &T::AccountId, dispute: &DisputeOf<T>) -> Option<Side> {
        let plays = |side: Side| {
            let party = match side {
                Side::Defender => &dispute.defender,
                Side::Challenger => &dispute.challenger,
            };
            Self::acts_for(player, party).then_some(side)
        };
        let to_move = dispute.game.to_move().and_then(plays);
        to_move
            .or_else(|| plays(Side::Defender))
            .or_else(|| plays(Side::Challenger))
    }

    fn acts_for(player: &T::AccountId, party: &PartyOf<T>) -> bool {
        match party {
            Party::Provider(stash) => T::Stake::stash_of(player, Role::Provider).as_ref() == Some(stash),
            Party::Auditor { verifier, .. } => {
                T::Stake::stash_of(player, Role::Verifier).as_ref() == Some(verifier)
            }
            Party::Account(account) => account == player,
        }
    }

    fn note_cell(round: &RoundOf<T>, id: DisputeId, dispute: &mut DisputeOf<T>) {
        let (cell, needs_committee) = match dispute.game.state() {
            State::Opening { cell } => (*cell, false),
            State::NeedsCommittee { cell } => (*cell, true),
            _ => return,
        };
        if needs_committee {
            dispute.referred_at = Some(TrustLock::<T>::now());
            let time_for_all = Results::<T>::time_for_all(round).saturated_into();
            Self::convene(id, dispute, &cell, time_for_all);
        }
        Self::deposit_event(Event::CellReached {
            dispute: id,
            cell,
            needs_committee,
        });
    }

    /// Carries out what the end of a dispute means. No outcome: nobody could decide it.
    ///
    /// A committee that sat about it winds up, and what its loser pays for that is set aside first.
    pub(crate) fn finish(
        round: &mut RoundOf<T>,
        id: DisputeId,
        dispute: DisputeOf<T>,
        outcome: Option<Outcome>,
    ) {
        let task = dispute.task;
        let winds_up = outcome.is_some_and(|Outcome { winner, .. }| {
            let holds = winner == Side::Defender;
            Self::wind_up(round, id, &dispute, (winner.other(), Some(holds)))
        });
        Self::close(
            round,
            id,
            &dispute,
            (outcome, outcome.map(|outcome| outcome.winner)),
        );
        let slash = match outcome {
            Some(Outcome {
                winner: Side::Challenger,
                reason,
            }) => Self::convict_defender(round, &dispute, reason),
            Some(Outcome {
                winner: Side::Defender,
                ..
            }) => Self::convict_challenger(round, id, &dispute),
            None => {
                Self::leave_undecided(round, id, &dispute);
                None
            }
        };
        match outcome {
            Some(_) if winds_up => {
                Self::note_slash(id, slash);
                Self::keep(round, id, dispute);
            }
            Some(outcome) => Self::follow_up(round, id, dispute, Some(outcome.winner)),
            None => {}
        }
        Self::after_dispute(task, round);
    }

    fn close_moot(round: &mut RoundOf<T>, id: DisputeId, mut dispute: DisputeOf<T>) {
        let task = dispute.task;
        let loser = match (&dispute.challenger, stands::<T>(round, &dispute.defender)) {
            (_, false) => Side::Defender,
            (Party::Auditor { .. }, true) => {
                // An auditor that plays is over elsewhere in one way alone: its seal is void, for a lie of
                // its provider's. In a game with another nobody has lost, and it bears nothing of it.
                Self::close(round, id, &dispute, (None, Some(Side::Challenger)));
                return Self::after_dispute(task, round);
            }
            _ => Side::Challenger,
        };
        // Why it lost elsewhere says nothing about the claim.
        let winds_up = Self::wind_up(round, id, &dispute, (loser, None));
        Self::close(round, id, &dispute, (None, Some(loser.other())));
        if winds_up {
            let decided = dispute.game.decided(loser.other());
            debug_assert!(decided.is_ok());
            Self::keep(round, id, dispute);
        } else {
            // Where the defender has lost to somebody else, others may stand by the same claim.
            Self::follow_up(round, id, dispute, Some(loser.other()));
        }
        Self::after_dispute(task, round);
    }

    /// Takes a dispute out of its round, and tells of its end. One that has no object any more has no
    /// outcome, and a winner all the same: whoever has not lost elsewhere.
    fn close(
        round: &mut RoundOf<T>,
        id: DisputeId,
        dispute: &DisputeOf<T>,
        (outcome, winner): (Option<Outcome>, Option<Side>),
    ) {
        Disputes::<T>::remove(id);
        round.disputes.retain(|open| open.id != id);
        Self::forget_audits(round, id);
        if Committees::<T>::get(id).is_none_or(|committee| committee.fund.is_none()) {
            Committees::<T>::remove(id);
        }
        Self::settle_showing(id, dispute, winner);
        Self::deposit_event(Event::DisputeEnded {
            dispute: id,
            task: dispute.task,
            outcome,
        });
    }

    /// Keeps the record of a dispute that is over while its committee winds up, in the place that it had. It
    /// plays nobody any more.
    fn keep(round: &mut RoundOf<T>, id: DisputeId, mut dispute: DisputeOf<T>) {
        if let Some(fund) = Committees::<T>::get(id).and_then(|committee| committee.fund)
            && !fund.is_stake
        {
            dispute.bond = fund.left;
        }
        // What was shown is settled.
        dispute.prepaid = None;
        let due = Self::due(id, &dispute);
        // It was taken out just before.
        let pushed = round.disputes.try_push(OpenDispute {
            id,
            due,
            defender: None,
            challenger: None,
        });
        debug_assert!(pushed.is_ok());
        T::Clock::wake_after(dispute.task, due);
        Disputes::<T>::insert(id, dispute);
    }

    /// What comes when a dispute is over and its committee gone. The place of a challenger that has lost is
    /// free then; one that has not goes on.
    fn follow_up(round: &mut RoundOf<T>, id: DisputeId, dispute: DisputeOf<T>, winner: Option<Side>) {
        if winner == Some(Side::Challenger) {
            Self::go_on(round, id, dispute);
        } else if matches!(dispute.challenger, Party::Account(_)) {
            Self::free_place(dispute.task, round);
        }
    }

    /// Goes on with winding up the committee of a dispute that is decided. Says whether that is over.
    fn poll_winding_up(
        round: &mut RoundOf<T>,
        id: DisputeId,
        mut dispute: DisputeOf<T>,
        mut committee: CommitteeOf<T>,
    ) -> bool {
        if !Self::go_on_winding_up(id, &mut dispute, &mut committee) {
            Committees::<T>::insert(id, committee);
            Self::store(round, id, dispute);
            return false;
        }
        Self::return_rest(&committee);
        Committees::<T>::remove(id);
        Disputes::<T>::remove(id);
        round.disputes.retain(|open| open.id != id);
        let (task, winner) = (dispute.task, dispute.game.outcome().map(|outcome| outcome.winner));
        Self::follow_up(round, id, dispute, winner);
        Self::after_dispute(task, round);
        true
    }

    /// Opens what follows, writes the round and has it polled again.
    fn after_dispute(task: TaskId, round: &mut RoundOf<T>) {
        Results::<T>::update_verdict(task, round);
        Self::do_match_up(task, round);
        T::Clock::wake_after(task, TrustLock::<T>::now());
        Rounds::<T>::insert(task, &*round);
    }

    fn convict_defender(round: &mut RoundOf<T>, dispute: &DisputeOf<T>, reason: Reason) -> Option<SlashId> {
        let finder = Some(dispute.challenger.account().clone());
        match &dispute.defender {
            Party::Provider(provider) => {
                let kind = if is_proof(reason) {
                    FaultKind::WrongResult
                } else {
                    FaultKind::LostDispute
                };
                Results::<T>::convict_provider(dispute.task, round, provider, kind, finder)
            }
            Party::Auditor { verifier, provider } => {
                let kind = FaultKind::ConfirmedWrong;
                Results::<T>::convict_auditor(dispute.task, round, (verifier, provider), kind, finder)
            }
            Party::Account(_) => None,
        }
    }

    fn convict_challenger(round: &mut RoundOf<T>, id: DisputeId, dispute: &DisputeOf<T>) -> Option<SlashId> {
        let defender = dispute.defender.account();
        let finder = Some(defender.clone());
        match &dispute.challenger {
            Party::Provider(provider) => {
                Results::<T>::convict_provider(dispute.task, round, provider, FaultKind::LostDispute, finder)
            }
            Party::Auditor { verifier, provider } => {
                let kind = FaultKind::FalseAudit;
                Results::<T>::convict_auditor(dispute.task, round, (verifier, provider), kind, finder)
            }
            Party::Account(challenger) => {
                // What it pays a committee is on hold until that is paid.
                let fund = Committees::<T>::get(id).and_then(|committee| committee.fund);
                let kept = fund.map_or_else(Zero::zero, |fund| fund.left);
                let returned = dispute.committee_bond.saturating_sub(kept);
                asset::release::<T>(HoldReason::Challenge, challenger, returned);
                let forfeited = dispute.bond.saturating_sub(dispute.committee_bond);
                let (awarded, burned) = bond::forfeit::<T>(challenger, defender, forfeited);
                Self::deposit_event(Event::BondForfeited {
                    dispute: id,
                    challenger: challenger.clone(),
                    defender: defender.clone(),
                    awarded,
                    burned,
                });
                None
            }
        }
    }

    /// Has a challenger play the next that stands by the claim with the same bond, or releases it when nobody
    /// is left. Auditors and providers are matched by what they say.
    fn go_on(round: &mut RoundOf<T>, id: DisputeId, dispute: DisputeOf<T>) {
        let Party::Account(challenger) = &dispute.challenger else {
            return;
        };
        let (Party::Provider(provider) | Party::Auditor { provider, .. }) = &dispute.defender else {
            return;
        };
        let next = Self::matchup_of(round, provider, dispute.challenger.clone());
        let game = next.and_then(|matchup| {
            let game = Self::new_game(dispute.task, round, &matchup.claim)?;
            Some((matchup, game))
        });
        match game {
            Some((matchup, game)) => {
                let bonds = (dispute.bond, dispute.committee_bond);
                Self::open_dispute(dispute.task, round, matchup, bonds, game);
            }
            None => Self::release_challenger(round, id, &dispute, challenger),
        }
    }

    /// Gives a challenger its bond back.
    pub(crate) fn release_challenger(
        round: &mut RoundOf<T>,
        id: DisputeId,
        dispute: &DisputeOf<T>,
        challenger: &T::AccountId,
    ) {
        asset::release::<T>(HoldReason::Challenge, challenger, dispute.bond);
        Self::deposit_event(Event::BondReturned {
            dispute: id,
            challenger: challenger.clone(),
            amount: dispute.bond,
        });
        Self::free_place(dispute.task, round);
    }
}

/// Whether an end of this kind shows that the claim is wrong, as far as the loser has told.
const fn is_proof(reason: Reason) -> bool {
    matches!(reason, Reason::Judged | Reason::Decided)
}

/// Whether a party has not lost in this round.
fn stands<T: Config>(round: &RoundOf<T>, party: &PartyOf<T>) -> bool {
    match party {
        Party::Provider(stash) => round
            .members
            .iter()
            .any(|member| member.provider == *stash && !member.has_lost()),
        Party::Auditor { verifier, provider } => round.audits.iter().any(|audit| {
            audit.verifier == *verifier && audit.provider == *provider && audit.state != AuditState::Over
        }),
        Party::Account(_) => true,
    }
}

/// Whether a party of the dispute has lost elsewhere.
pub(crate) fn is_moot<T: Config>(round: &RoundOf<T>, dispute: &DisputeOf<T>) -> bool {
    !stands::<T>(round, &dispute.defender) || !stands::<T>(round, &dispute.challenger)
}

const fn refusal<T: Config>(error: GameError) -> Error<T> {
    match error {
        GameError::Over | GameError::NotNow => Error::NotNow,
        GameError::Unproven => Error::Unproven,
        GameError::Shape => Error::NotDisputable,
        GameError::WrongCount
        | GameError::WrongHash
        | GameError::NoSuchChild
        | GameError::WrongLength
        | GameError::WrongSteps
        | GameError::NotShowable
        | GameError::TooLong => Error::WrongMove,
    }
}
