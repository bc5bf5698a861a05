//! Who plays whom.
//!
//! - Two providers that stand by different results play each other, one game at a time each, until all that
//!   stand say the same. The one whose result fewer stand by defends.
//! - An auditor whose result differs, and a challenger, play whoever stands by what they contradict, one
//!   after the other: the provider that they named, other providers that say the same, and when no provider
//!   answers for it any more, the auditors that confirmed it. A provider that says something else does not:
//!   it may challenge them, and has then a bond to lose instead of its lock.
//!
//! So who confirmed a wrong result is pursued however its provider came to lose, and whenever it opens its
//! seal. **Losing is personal**: what a defender shows below a leaf of its trace is its own, so its defeat
//! proves nothing against another that made the same claim. Each can defend it, and whoever is right wins.
//!
//! Whoever goes on does so with the same stake, in one game at a time: it is there in full for each of its
//! opponents, and lost to the first that is right.
//!
//! Every game but those that nobody can decide ends with somebody who has lost and plays no more in the
//! round, or with others that meet whoever has lost elsewhere.

use alloc::vec::Vec;
use frame_support::traits::Get;
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::{
    SaturatedConversion,
    traits::{Saturating, Zero},
};
use surety_dispute_game::{
    bisection::{Clocks, Game, Side},
    dispute::Dispute,
};
use surety_pallet_results::{AuditOf, DisputeContexts, DisputeReferee, Pallet as Results, RoundOf};
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_types::{
    TaskId, limits,
    task::ResultClaim,
    traits::TaskClock,
    trust::{AuditState, DisputeId, OpenDispute, Party},
};

use crate::{Committees, Config, DisputeOf, Disputes, Event, NextDisputeId, Pallet, PartyOf};

/// Most disputes opened and audits ended in one go. The rest are by the agenda, in the next blocks.
pub const OPENED_AT_ONCE: u32 = 4;

/// Who plays whom about what.
pub struct Matchup<T: Config> {
    /// Who stands by the claim.
    pub defender: PartyOf<T>,
    /// Who says that it is wrong.
    pub challenger: PartyOf<T>,
    /// What is in dispute.
    pub claim: ResultClaim,
}

impl<T: Config> Pallet<T> {
    /// Opens disputes that are due to be opened, and ends audits from which none can come. Says whether it
    /// did anything, so that there may be more.
    pub(crate) fn do_match_up(task: TaskId, round: &mut RoundOf<T>) -> bool {
        let mut busy = false;
        for _ in 0..OPENED_AT_ONCE {
            if !Self::has_room(round) || !Self::match_up_one(task, round) {
                break;
            }
            busy = true;
        }
        busy
    }

    /// Opens the next dispute, or ends the next audit from which none can come. Says whether there was one.
    fn match_up_one(task: TaskId, round: &mut RoundOf<T>) -> bool {
        let of_members = Self::next_of_members(task, round);
        if of_members.is_none() && Self::match_up_audit(task, round) {
            return true;
        }
        let Some((matchup, game)) = of_members else {
            return false;
        };
        Self::open_dispute(task, round, matchup, Default::default(), game);
        true
    }

    /// Has the next auditor whose result differs play, or ends its audit when nobody stands by what it
    /// contradicts, and nobody can any more. Says whether there was one.
    fn match_up_audit(task: TaskId, round: &mut RoundOf<T>) -> bool {
        let providers: Vec<_> = round
            .members
            .iter()
            .map(|member| member.provider.clone())
            .collect();
        for provider in providers {
            let differs =
                |audit: &&AuditOf<T>| audit.state == AuditState::Differs && audit.provider == provider;
            let differing = round.audits.iter().filter(differs);
            // Of two who cannot both have confirmed it one has somebody to play, or nobody has.
            let differing: Vec<_> = differing.map(|audit| audit.verifier.clone()).take(2).collect();
            let Some(first) = differing.first() else { continue };
            let matchup = differing.iter().find_map(|verifier| {
                let challenger = Party::Auditor {
                    verifier: verifier.clone(),
                    provider: provider.clone(),
                };
                Self::matchup_of(round, &provider, challenger)
            });
            let claim = Results::<T>::said(round, &provider);
            if matchup.is_none() && claim.is_some_and(|claim| Self::may_be_confirmed(round, claim)) {
                continue;
            }
            let game = matchup.and_then(|matchup| {
                let game = Self::new_game(task, round, &matchup.claim)?;
                Some((matchup, game))
            });
            match game {
                Some((matchup, game)) => {
                    Self::open_dispute(task, round, matchup, Default::default(), game);
                }
                None => Results::<T>::release_audit(round, first, &provider),
            }
            return true;
        }
        false
    }

    /// Whether there is room for another dispute. Places for challenges are kept free.
    fn has_room(round: &RoundOf<T>) -> bool {
        let others = round.disputes.len().saturating_sub(round.challenges as usize);
        others < limits::DISPUTES_MAX.saturating_sub(limits::CHALLENGES_MAX) as usize
    }

    /// A game about a claim; nothing when there is no trace of it that can be played over. Each side has time
    /// to compute all of the task.
    pub(crate) fn new_game(task: TaskId, round: &RoundOf<T>, claim: &ResultClaim) -> Option<Game> {
        let referee = T::Referee::claim_referee(&DisputeContexts::<T>::get(task)?, claim)?;
        let all: u32 = Results::<T>::time_for_all(round).saturated_into();
        let clocks = Clocks::equal(T::DisputeClock::get().saturating_add(all));
        Game::new(claim.trace_root, &referee, clocks).ok()
    }

    /// The next two providers that stand by different results, and play nobody of the round yet. One of them
    /// may have been in a dispute that nobody could decide: it still has to answer for what it says.
    fn next_of_members(task: TaskId, round: &RoundOf<T>) -> Option<(Matchup<T>, Game)> {
        let answering: Vec<_> = (0u8..)
            .zip(&round.members)
            .filter(|(seat, _)| !is_busy::<T>(round, *seat))
            .filter_map(|(_, member)| member.disputable_claim().map(|claim| (member, claim)))
            .collect();
        let (_, any) = answering.first()?;
        let supporters = |claim: &ResultClaim| {
            let standing = round.members.iter().filter_map(|member| member.standing_claim());
            standing.filter(|said| *said == claim).count()
        };
        if answering.iter().all(|(_, claim)| claim == any) {
            return None;
        }
        DisputeContexts::<T>::get(task)?;
        let mut pairs = answering.iter().enumerate().flat_map(|(place, one)| {
            let later = answering.iter().skip(place.saturating_add(1));
            later
                .filter(|other| other.1 != one.1)
                .filter(|other| one.0.fault.is_none() || other.0.fault.is_none())
                .filter(|other| !one.0.undecided_again && !other.0.undecided_again)
                .map(move |other| (*one, *other))
        });
        pairs.find_map(|(one, other)| {
            let (defender, challenger) = if supporters(other.1) < supporters(one.1) {
                (other, one)
            } else {
                (one, other)
            };
            let matchup = Matchup {
                defender: Party::Provider(defender.0.provider.clone()),
                challenger: Party::Provider(challenger.0.provider.clone()),
                claim: defender.1.clone(),
            };
            Some((matchup, Self::new_game(task, round, defender.1)?))
        })
    }

    /// Whom somebody plays that contradicts what `provider` has said: the first that stands by it, which is
    /// the provider itself, another one that says the same, or an auditor that confirmed it.
    pub fn matchup_of(
        round: &RoundOf<T>,
        provider: &T::AccountId,
        challenger: PartyOf<T>,
    ) -> Option<Matchup<T>> {
        let claim = Results::<T>::said(round, provider)?;
        let says_so = round
            .members
            .iter()
            .filter(|member| member.disputable_claim() == Some(claim));
        let defender = match says_so.min_by_key(|member| member.provider != *provider) {
            Some(member) => Party::Provider(member.provider.clone()),
            None => Self::next_confirmer(round, claim, &challenger)?,
        };
        Some(Matchup {
            defender,
            challenger,
            claim: claim.clone(),
        })
    }

    /// The next auditor that confirmed a claim for which no provider answers any more. Auditors wait for one
    /// that plays nobody yet, so that there are no more games than somebody can lose.
    fn next_confirmer(
        round: &RoundOf<T>,
        claim: &ResultClaim,
        challenger: &PartyOf<T>,
    ) -> Option<PartyOf<T>> {
        if is_answered::<T>(round, claim) {
            return None;
        }
        let waits = !matches!(challenger, Party::Account(_));
        let confirmed = round.audits.iter().filter(|audit| {
            let answers = match audit.state {
                AuditState::Confirmed => audit.stands_by_all(),
                AuditState::Defends(_) => !waits,
                _ => false,
            };
            answers
                && audit.verifier != *challenger.account()
                && Results::<T>::said(round, &audit.provider) == Some(claim)
        });
        let next = confirmed.min_by_key(|audit| audit.state != AuditState::Confirmed);
        next.map(|audit| Party::Auditor {
            verifier: audit.verifier.clone(),
            provider: audit.provider.clone(),
        })
    }

    /// Whether somebody may still confirm a claim, or does already and plays somebody else.
    fn may_be_confirmed(round: &RoundOf<T>, claim: &ResultClaim) -> bool {
        let mut audits = round.audits.iter();
        audits.any(|audit| {
            matches!(audit.state, AuditState::Sealed(_) | AuditState::Defends(_))
                && Results::<T>::said(round, &audit.provider) == Some(claim)
        })
    }

    /// Opens a dispute. There has to be room for it.
    pub(crate) fn open_dispute(
        task: TaskId,
        round: &mut RoundOf<T>,
        matchup: Matchup<T>,
        (bond, committee_bond): (T::Balance, T::Balance),
        game: Game,
    ) -> DisputeId {
        let id = NextDisputeId::<T>::mutate(|next| {
            let id = *next;
            *next = next.saturating_add(1);
            id
        });
        let Matchup {
            defender,
            challenger,
            claim,
        } = matchup;
        Self::deposit_event(Event::DisputeOpened {
            dispute: id,
            task,
            defender: defender.clone(),
            challenger: challenger.clone(),
            claim: claim.clone(),
            bond,
        });
        let seats = (Self::seat(round, &defender), Self::seat(round, &challenger));
        Self::note_audits(round, id, &defender, &challenger);
        let dispute = Dispute {
            task,
            defender,
            challenger,
            claim,
            game,
            bond,
            committee_bond,
            prepaid: None,
            moves: 0,
            // A height, where its history begins.
            opened_at: frame_system::Pallet::<T>::block_number(),
            ticked_at: TrustLock::<T>::now(),
            referred_at: None,
        };
        let due = Self::due(id, &dispute);
        // There was room, or a dispute was taken out just before.
        let pushed = round.disputes.try_push(OpenDispute {
            id,
            due,
            defender: seats.0,
            challenger: seats.1,
        });
        debug_assert!(pushed.is_ok());
        Disputes::<T>::insert(id, dispute);
        T::Clock::wake_after(task, due);
        id
    }

    /// The time after which a dispute has to be looked at.
    pub(crate) fn due(id: DisputeId, dispute: &DisputeOf<T>) -> BlockNumberFor<T> {
        let now = TrustLock::<T>::now();
        let left = |side: Side| {
            dispute
                .game
                .clocks()
                .left(side)
                .saturated_into::<BlockNumberFor<T>>()
        };
        match dispute.game.to_move() {
            Some(side) => now.saturating_add(left(side)),
            None => match Committees::<T>::get(id) {
                // Before anything else, and by blocks: whoever could choose how long it takes would choose
                // the seed once what is kept of the first block after has gone.
                Some(committee) if Self::awaits_seed(&committee) => Zero::zero(),
                Some(committee) if Self::has_work(&committee) => now,
                Some(committee) if committee.state.decision().is_none() => {
                    now.saturating_add(committee.state.left().saturated_into())
                }
                _ => {
                    let since = dispute.referred_at.unwrap_or(now);
                    since.saturating_add(T::DecisionWindow::get())
                }
            },
        }
    }

    /// Notes with the audits of both sides that they play.
    fn note_audits(round: &mut RoundOf<T>, id: DisputeId, defender: &PartyOf<T>, challenger: &PartyOf<T>) {
        if let Party::Auditor { verifier, provider } = challenger
            && let Some(audit) = Results::<T>::audit(round, verifier, provider)
        {
            audit.state = AuditState::Disputed(id);
        }
        if let Party::Auditor { verifier, provider } = defender
            && let Some(audit) = Results::<T>::audit(round, verifier, provider)
            && audit.state == AuditState::Confirmed
        {
            audit.state = AuditState::Defends(id);
        }
    }

    /// Their audits are as they were before a dispute that is over.
    pub(crate) fn forget_audits(round: &mut RoundOf<T>, id: DisputeId) {
        for audit in &mut round.audits {
            audit.state = match audit.state {
                AuditState::Disputed(open) if open == id => AuditState::Differs,
                AuditState::Defends(open) if open == id => AuditState::Confirmed,
                _ => continue,
            };
        }
    }

    fn seat(round: &RoundOf<T>, party: &PartyOf<T>) -> Option<u8> {
        match party {
            Party::Provider(provider) => {
                let mut members = round.members.iter();
                let seat = members.position(|member| member.provider == *provider)?;
                u8::try_from(seat).ok()
            }
            Party::Auditor { .. } | Party::Account(_) => None,
        }
    }
}

/// Whether a provider still answers for a claim.
fn is_answered<T: Config>(round: &RoundOf<T>, claim: &ResultClaim) -> bool {
    let mut members = round.members.iter();
    members.any(|member| member.disputable_claim() == Some(claim))
}

/// Whether the provider in a seat plays another one. Against auditors and challengers it defends itself
/// besides.
fn is_busy<T: Config>(round: &RoundOf<T>, seat: u8) -> bool {
    let mut open = round.disputes.iter();
    open.any(|open| {
        open.challenger == Some(seat) || (open.defender == Some(seat) && open.challenger.is_some())
    })
}
