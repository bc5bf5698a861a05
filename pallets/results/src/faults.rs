//! What a fault means for a round: what was said no longer counts, and what was locked for it is lost.

use sp_runtime::traits::Zero;
use surety_pallet_trust_lock::{Offence, Pallet as TrustLock};
use surety_types::{
    TaskId,
    traits::TaskOutcome,
    trust::{AuditState, DisputeId, FaultKind},
};

use crate::{Config, Event, Pallet, RoundOf};

impl<T: Config> Pallet<T> {
    /// Finds a provider of the round at fault, unless it was already.
    pub fn convict_provider(
        task: TaskId,
        round: &mut RoundOf<T>,
        provider: &T::AccountId,
        kind: FaultKind,
        finder: Option<T::AccountId>,
    ) {
        let mut members = round.members.iter_mut();
        let member = members.find(|member| member.provider == *provider && member.fault.is_none());
        let Some(member) = member else { return };
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
        TrustLock::<T>::convict(Offence {
            task,
            offender: provider.clone(),
            kind,
            lock: lost,
            finder,
            client: T::Outcome::client(task),
        });
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
