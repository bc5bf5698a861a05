//! What a fault means for a round: what was said no longer counts, and what was locked for it is lost.

use alloc::vec::Vec;
use frame_support::{BoundedVec, traits::Get};
use sp_runtime::traits::{Saturating, Zero};
use surety_pallet_trust_lock::{FindersOf, Offence, Pallet as TrustLock};
use surety_types::{
    TaskId,
    model::Operation,
    task::{ResultClaim, RoundPhase},
    traits::{TaskClock, TaskOutcome},
    trust::{AuditState, DisputeId, FaultKind, SlashCause, SlashId},
};

use crate::{Config, Event, Pallet, RoundOf};

impl<T: Config> Pallet<T> {
    /// Finds a provider of the round at fault, unless it was already, as gravely. What a lesser fault has
    /// left of its lock is lost by a graver one.
    ///
    /// Who confirmed what it says answers for that from now on, and can be challenged for as long as it could
    /// have been; so can another provider that says the same. Returns what it is slashed with.
    pub fn convict_provider(
        task: TaskId,
        round: &mut RoundOf<T>,
        provider: &T::AccountId,
        kind: FaultKind,
        finder: Option<T::AccountId>,
    ) -> Option<SlashId> {
        let mut members = round.members.iter_mut();
        let member = members.find(|member| member.provider == *provider)?;
        if member.fault.is_some_and(|known| !kind.is_graver_than(known)) {
            return None;
        }
        member.fault = Some(kind);
        let mut lost = if kind.cost().lock {
            core::mem::take(&mut member.lock)
        } else {
            Zero::zero()
        };
        if kind.is_grave() {
            let more = T::Outcome::convicted(task, provider).unwrap_or_default();
            lost = lost.saturating_add(more);
        }
        Self::wake_disputes(round);
        Self::deposit_event(Event::FaultFound {
            task,
            offender: provider.clone(),
            kind,
        });
        let slash = TrustLock::<T>::convict(Offence {
            cause: SlashCause::Task(task),
            offender: provider.clone(),
            kind,
            lock: lost,
            finders: Self::differing(round, provider),
            finder,
            client: T::Outcome::client(task),
        });
        if let Ok(member) = Self::member(round, provider) {
            member.slash = slash.or(member.slash);
        }
        if kind == FaultKind::Equivocation {
            Self::void_audits(round, provider);
        }
        if kind.is_grave() && Self::is_shared(round, provider) {
            Self::reopen_challenges(task, round);
        }
        if round.demands > 0 {
            // Whatever else was demanded of it is moot.
            T::Clock::wake_after(task, TrustLock::<T>::now());
        }
        slash
    }

    /// Notes of a provider that has lost as much as this costs that it said two things, too. It loses nothing
    /// more. But if it could keep this from being shown, by losing to a friend first, auditors to which it
    /// had shown another output would have to play for that.
    pub(crate) fn note_equivocation(task: TaskId, round: &mut RoundOf<T>, provider: &T::AccountId) {
        if let Ok(member) = Self::member(round, provider) {
            member.fault = Some(FaultKind::Equivocation);
        }
        Self::wake_disputes(round);
        Self::void_audits(round, provider);
        if Self::is_shared(round, provider) {
            Self::reopen_challenges(task, round);
        }
    }

    /// Ends the audits that differ from what a provider revealed that said two things: its auditors may have
    /// been shown another one, and have sealed what is right of that. Whoever confirmed what it revealed
    /// still stands by it. Of embeddings auditors are shown nothing, and seal what they have computed.
    fn void_audits(round: &mut RoundOf<T>, provider: &T::AccountId) {
        if !Self::is_shown_to_auditors(round) {
            return;
        }
        let void = round.audits.iter().filter(|audit| {
            let differs = matches!(audit.state, AuditState::Differs | AuditState::Disputed(_));
            differs && audit.provider == *provider
        });
        let void: Vec<_> = void.map(|audit| audit.verifier.clone()).collect();
        for verifier in &void {
            Self::release_audit(round, verifier, provider);
        }
    }

    /// What a provider of the round says the answer is, at fault or not.
    pub fn said<'a>(round: &'a RoundOf<T>, provider: &T::AccountId) -> Option<&'a ResultClaim> {
        let mut members = round.members.iter();
        members.find(|member| member.provider == *provider)?.claim()
    }

    /// Whether what auditors seal rests on an output that they were shown.
    pub(crate) fn is_shown_to_auditors(round: &RoundOf<T>) -> bool {
        round.terms.operation == Operation::Generate
    }

    /// Whether somebody else answers for what a provider says: an auditor that has confirmed it, of that
    /// provider or another, or another provider.
    fn is_shared(round: &RoundOf<T>, provider: &T::AccountId) -> bool {
        let said = Self::said(round, provider);
        let mut audits = round.audits.iter();
        let mut others = round.members.iter().filter(|other| other.provider != *provider);
        said.is_some()
            && (audits.any(|audit| audit.stands_by_all() && Self::said(round, &audit.provider) == said)
                || others.any(|other| other.disputable_claim() == said))
    }

    /// Verifiers whose seals are open and say something else of a provider's result, and who have not lost.
    fn differing(round: &RoundOf<T>, provider: &T::AccountId) -> FindersOf<T> {
        let audits = round.audits.iter().filter(|audit| {
            let differs = matches!(audit.state, AuditState::Differs | AuditState::Disputed(_));
            differs && audit.provider == *provider
        });
        BoundedVec::truncate_from(audits.map(|audit| audit.verifier.clone()).collect())
    }

    /// Gives everybody the whole window for challenges again, from now on.
    pub fn reopen_challenges(task: TaskId, round: &mut RoundOf<T>) {
        let window = TrustLock::<T>::window_end(T::ChallengeWindow::get());
        if let RoundPhase::Challengeable { until, .. } = &mut round.phase {
            *until = window.max(*until);
            let until = *until;
            T::Clock::wake_after(task, until);
            Self::deposit_event(Event::ChallengesReopened { task, until });
        }
    }

    /// Finds the auditor of a provider at fault. Its whole bond is lost. Returns what it is slashed with.
    pub fn convict_auditor(
        task: TaskId,
        round: &mut RoundOf<T>,
        (verifier, provider): (&T::AccountId, &T::AccountId),
        kind: FaultKind,
        finder: Option<T::AccountId>,
    ) -> Option<SlashId> {
        let audit = Self::audit(round, verifier, provider)?;
        if audit.state == AuditState::Over {
            return None;
        }
        audit.state = AuditState::Over;
        let lost = core::mem::take(&mut audit.bond);
        if let Ok(member) = Self::member(round, provider)
            && let Some(slash) = member.slash
        {
            TrustLock::<T>::remove_finder(slash, verifier);
        }
        Self::wake_disputes(round);
        Self::deposit_event(Event::FaultFound {
            task,
            offender: verifier.clone(),
            kind,
        });
        TrustLock::<T>::convict(Offence {
            cause: SlashCause::Task(task),
            offender: verifier.clone(),
            kind,
            lock: lost,
            finders: Default::default(),
            finder,
            client: None,
        })
    }

    /// Makes every dispute of a round due now: somebody has lost, so some may be moot.
    pub(crate) fn wake_disputes(round: &mut RoundOf<T>) {
        let now = TrustLock::<T>::now();
        for open in &mut round.disputes {
            open.due = open.due.min(now);
        }
    }

    /// The open dispute that is to be looked at first, if one is due.
    pub(crate) fn due_dispute(round: &RoundOf<T>) -> Option<DisputeId> {
        let due = round
            .disputes
            .iter()
            .filter(|open| TrustLock::<T>::has_passed(open.due));
        due.min_by_key(|open| open.due).map(|open| open.id)
    }
}
