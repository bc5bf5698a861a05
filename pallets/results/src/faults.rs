//! What a fault means for a round: what was said no longer counts, and what was locked for it is lost.

use frame_support::{BoundedVec, traits::Get};
use sp_runtime::traits::Zero;
use surety_pallet_trust_lock::{FindersOf, Offence, Pallet as TrustLock};
use surety_types::{
    TaskId,
    task::{ResultClaim, RoundPhase},
    traits::{TaskClock, TaskOutcome},
    trust::{AuditState, DisputeId, FaultKind},
};

use crate::{Config, Event, Pallet, RoundOf};

impl<T: Config> Pallet<T> {
    /// Finds a provider of the round at fault, unless it was already, as gravely. What a lesser fault has
    /// left of its lock is lost by a graver one.
    ///
    /// Who confirmed what it says answers for that from now on, and can be challenged for as long as it could
    /// have been.
    pub fn convict_provider(
        task: TaskId,
        round: &mut RoundOf<T>,
        provider: &T::AccountId,
        kind: FaultKind,
        finder: Option<T::AccountId>,
    ) {
        let mut members = round.members.iter_mut();
        let Some(member) = members.find(|member| member.provider == *provider) else {
            return;
        };
        if member.fault.is_some_and(|known| !kind.is_graver_than(known)) {
            return;
        }
        member.fault = Some(kind);
        let lost = if kind.cost().lock {
            core::mem::take(&mut member.lock)
        } else {
            Zero::zero()
        };
        Self::wake_disputes(round);
        Self::deposit_event(Event::FaultFound {
            task,
            offender: provider.clone(),
            kind,
        });
        let slash = TrustLock::<T>::convict(Offence {
            task,
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
        if kind.is_grave() && Self::is_confirmed(round, provider) {
            Self::reopen_challenges(task, round);
        }
    }

    /// What a provider of the round says the answer is, at fault or not.
    pub fn said<'a>(round: &'a RoundOf<T>, provider: &T::AccountId) -> Option<&'a ResultClaim> {
        let mut members = round.members.iter();
        members.find(|member| member.provider == *provider)?.claim()
    }

    /// Whether an auditor has confirmed what a provider says, when that provider or another said so.
    fn is_confirmed(round: &RoundOf<T>, provider: &T::AccountId) -> bool {
        let said = Self::said(round, provider);
        let mut audits = round.audits.iter();
        said.is_some()
            && audits.any(|audit| audit.stands_by_all() && Self::said(round, &audit.provider) == said)
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

    /// Finds the auditor of a provider at fault. Its whole bond is lost.
    pub fn convict_auditor(
        task: TaskId,
        round: &mut RoundOf<T>,
        (verifier, provider): (&T::AccountId, &T::AccountId),
        kind: FaultKind,
        finder: Option<T::AccountId>,
    ) {
        let Some(audit) = Self::audit(round, verifier, provider) else {
            return;
        };
        if audit.state == AuditState::Over {
            return;
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
            task,
            offender: verifier.clone(),
            kind,
            lock: lost,
            finders: Default::default(),
            finder,
            client: None,
        });
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
