//! Who plays whom.
//!
//! - Two providers that stand by different results play each other, one game at a time each, until all that
//!   stand say the same. The one whose result fewer stand by defends.
//! - An auditor whose result differs plays the provider that it audited.
//! - A challenger that has won goes on against the next that stands by the same result: first other
//!   providers, then, if the result was judged wrong, auditors that confirmed it. **Losing is personal**:
//!   what a defender shows below a leaf of its trace is its own, so its defeat proves nothing against another
//!   that made the same claim. Each can defend it, and whoever is right wins.
//!
//! Every game but those that nobody can decide ends with somebody who has lost and plays no more in the
//! round, so there are no more games than members, audits and challenges.

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
use surety_pallet_results::{DisputeContexts, DisputeReferee, Pallet as Results, RoundOf};
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
pub(crate) struct Matchup<T: Config> {
    pub defender: PartyOf<T>,
    pub challenger: PartyOf<T>,
    pub claim: ResultClaim,
}

/// What a challenger has at stake, and has shown before.
#[derive(Clone, Copy)]
pub(crate) struct ChallengerStake<Balance> {
    /// On hold on its account.
    pub bond: Balance,
    /// Whether it has had the claim judged wrong before.
    pub proven: bool,
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
        let nothing = ChallengerStake {
            bond: Zero::zero(),
            proven: false,
        };
        if let Some((matchup, game)) = Self::next_of_members(task, round) {
            Self::open_dispute(task, round, matchup, nothing, game);
            return true;
        }
        let mut audits = round.audits.iter();
        let Some(audit) = audits.find(|audit| audit.state == AuditState::Differs).cloned() else {
            return false;
        };
        let (verifier, provider) = (&audit.verifier, &audit.provider);
        let Some((matchup, game)) = Self::game_of_audit(task, round, verifier, provider) else {
            Results::<T>::release_audit(round, verifier, provider);
            return true;
        };
        let id = Self::open_dispute(task, round, matchup, nothing, game);
        if let Some(audit) = Results::<T>::audit(round, verifier, provider) {
            audit.state = AuditState::Disputed(id);
        }
        true
    }

    pub(crate) fn has_room(round: &RoundOf<T>) -> bool {
        round.disputes.len() < limits::DISPUTES_MAX as usize
    }

    /// A game about a claim; nothing when there is no trace of it that can be played over.
    pub(crate) fn new_game(task: TaskId, claim: &ResultClaim) -> Option<Game> {
        let referee = T::Referee::claim_referee(&DisputeContexts::<T>::get(task)?, claim)?;
        Game::new(claim.trace_root, &referee, Clocks::equal(T::DisputeClock::get())).ok()
    }

    /// The next two providers that stand by different results, and play nobody of the round yet.
    fn next_of_members(task: TaskId, round: &RoundOf<T>) -> Option<(Matchup<T>, Game)> {
        let is_free = |seat: usize| {
            let mut taken = round
                .disputes
                .iter()
                .filter_map(|open| open.seats)
                .flat_map(|(one, other)| [usize::from(one), usize::from(other)]);
            !taken.any(|busy| busy == seat)
        };
        let standing: Vec<_> = round
            .members
            .iter()
            .enumerate()
            .filter(|(seat, _)| is_free(*seat))
            .filter_map(|(_, member)| member.standing_claim().map(|claim| (&member.provider, claim)))
            .collect();
        let (_, any) = standing.first()?;
        let supporters = |claim: &ResultClaim| {
            let standing = round.members.iter().filter_map(|member| member.standing_claim());
            standing.filter(|said| *said == claim).count()
        };
        if standing.iter().all(|(_, claim)| claim == any) {
            return None;
        }
        DisputeContexts::<T>::get(task)?;
        let mut pairs = standing.iter().enumerate().flat_map(|(place, one)| {
            let later = standing.iter().skip(place.saturating_add(1));
            later
                .filter(|other| other.1 != one.1)
                .map(move |other| (*one, *other))
        });
        pairs.find_map(|(one, other)| {
            let (defender, challenger) = if supporters(other.1) < supporters(one.1) {
                (other, one)
            } else {
                (one, other)
            };
            let matchup = Matchup {
                defender: Party::Provider(defender.0.clone()),
                challenger: Party::Provider(challenger.0.clone()),
                claim: defender.1.clone(),
            };
            Some((matchup, Self::new_game(task, defender.1)?))
        })
    }

    /// The game of an auditor that says something else than its provider. None when the provider no longer
    /// stands by anything, or there is no trace to play over.
    fn game_of_audit(
        task: TaskId,
        round: &RoundOf<T>,
        verifier: &T::AccountId,
        provider: &T::AccountId,
    ) -> Option<(Matchup<T>, Game)> {
        let mut members = round.members.iter();
        let member = members.find(|member| member.provider == *provider)?;
        let claim = member.standing_claim()?.clone();
        let game = Self::new_game(task, &claim)?;
        let matchup = Matchup {
            defender: Party::Provider(provider.clone()),
            challenger: Party::Auditor {
                verifier: verifier.clone(),
                provider: provider.clone(),
            },
            claim,
        };
        Some((matchup, game))
    }

    /// Who stands by the claim of a dispute that its challenger has won, and is to defend it next.
    pub(crate) fn next_defender(round: &RoundOf<T>, dispute: &DisputeOf<T>) -> Option<PartyOf<T>> {
        let others = round
            .members
            .iter()
            .filter(|member| member.standing_claim() == Some(&dispute.claim));
        let mut others = others.map(|member| Party::Provider(member.provider.clone()));
        // Providers of the round are matched by what they say.
        if let (false, Some(next)) = (matches!(dispute.challenger, Party::Provider(_)), others.next()) {
            return Some(next);
        }
        if !dispute.proven {
            return None;
        }
        let said = |provider: &T::AccountId| {
            let mut members = round.members.iter();
            let member = members.find(|member| member.provider == *provider);
            member.and_then(|member| member.claim())
        };
        let confirmed = round.audits.iter().find(|audit| {
            audit.state == AuditState::Confirmed
                && said(&audit.provider) == Some(&dispute.claim)
                && audit.verifier != *dispute.challenger.account()
        });
        confirmed.map(|audit| Party::Auditor {
            verifier: audit.verifier.clone(),
            provider: audit.provider.clone(),
        })
    }

    /// Opens a dispute. There has to be room for it.
    pub(crate) fn open_dispute(
        task: TaskId,
        round: &mut RoundOf<T>,
        matchup: Matchup<T>,
        stake: ChallengerStake<T::Balance>,
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
            bond: stake.bond,
        });
        let seats = Self::seats(round, &defender, &challenger);
        let dispute = Dispute {
            task,
            defender,
            challenger,
            claim,
            proven: stake.proven,
            game,
            bond: stake.bond,
            moves: 0,
            // A height, where its history begins.
            opened_at: frame_system::Pallet::<T>::block_number(),
            ticked_at: TrustLock::<T>::now(),
            referred_at: None,
        };
        let due = Self::due(id, &dispute);
        // There was room, or a dispute was taken out just before.
        let pushed = round.disputes.try_push(OpenDispute { id, due, seats });
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
                Some(committee) if committee.state.decision().is_some() => now,
                Some(committee) => now.saturating_add(committee.state.left().saturated_into()),
                None => {
                    let since = dispute.referred_at.unwrap_or(now);
                    since.saturating_add(T::DecisionWindow::get())
                }
            },
        }
    }

    fn seats(round: &RoundOf<T>, defender: &PartyOf<T>, challenger: &PartyOf<T>) -> Option<(u8, u8)> {
        let seat = |party: &PartyOf<T>| match party {
            Party::Provider(provider) => {
                let mut members = round.members.iter();
                let seat = members.position(|member| member.provider == *provider)?;
                u8::try_from(seat).ok()
            }
            Party::Auditor { .. } | Party::Account(_) => None,
        };
        Some((seat(defender)?, seat(challenger)?))
    }
}
