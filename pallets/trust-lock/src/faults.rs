//! What a fault costs: the result no longer counts, a slash is written down, and the offender gets no work for a while.

use alloc::vec::Vec;
use codec::Encode;
use frame_support::traits::Get;
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::{
    traits::{Saturating, Zero},
    Perquintill,
};
use surety_types::{
    stake::Role,
    traits::{StakeLedger, TaskOutcome},
    trust::{AuditState, Conviction, FaultKind, Slash},
    TaskId,
};

use crate::{
    types::quintillionths, Config, Convictions, Event, MemberOf, NextSlashId, Pallet, RoundOf, SlashOf,
    Slashes,
};

impl<T: Config> Pallet<T> {
    /// Finds a provider of the round at fault, unless it was already.
    pub(crate) fn convict_provider(
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
        let lost = Self::lost_lock(member, kind);
        member.lock = member.lock.saturating_sub(lost);
        Self::look_at_all(round);
        Self::deposit_event(Event::FaultFound {
            task,
            offender: provider.clone(),
            kind,
        });
        if !kind.is_slashed() {
            return;
        }
        Self::lose_record(provider);
        let mut part = Perquintill::zero();
        if is_grave(kind) {
            part = quintillionths(T::StakePart::get());
            Self::note_conviction(provider);
            Self::jail(provider);
        }
        Self::defer_slash(
            task,
            provider,
            kind,
            (lost, part),
            finder,
            T::Outcome::client(task),
        );
    }

    /// Finds the auditor of a provider at fault. Its whole bond is lost.
    pub(crate) fn convict_auditor(
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
        Self::look_at_all(round);
        Self::deposit_event(Event::FaultFound {
            task,
            offender: verifier.clone(),
            kind,
        });
        match kind {
            FaultKind::AuditNoShow => Self::note_missed(verifier),
            _ => Self::jail(verifier),
        }
        Self::defer_slash(task, verifier, kind, (lost, Perquintill::zero()), finder, None);
    }

    fn lost_lock(member: &MemberOf<T>, kind: FaultKind) -> T::Balance {
        match kind {
            FaultKind::Undecided => Zero::zero(),
            // Silence too: for less, whoever sees that it is audited would be silent.
            _ => member.lock,
        }
    }

    pub(crate) fn defer_slash(
        task: TaskId,
        offender: &T::AccountId,
        kind: FaultKind,
        (lock, part): (T::Balance, Perquintill),
        finder: Option<T::AccountId>,
        client: Option<T::AccountId>,
    ) {
        let id = NextSlashId::<T>::mutate(|next| {
            let id = *next;
            *next = next.saturating_add(1);
            id
        });
        let now = Self::now();
        let until = now.saturating_add(T::SlashDeferral::get());
        let slash: SlashOf<T> = Slash {
            task,
            offender: offender.clone(),
            kind,
            lock,
            part,
            finder,
            client,
            proven_at: now,
            until,
        };
        Slashes::<T>::insert(id, slash);
        Self::deposit_event(Event::SlashDeferred {
            slash: id,
            task,
            offender: offender.clone(),
            kind,
            lock,
            until,
        });
    }

    fn note_conviction(provider: &T::AccountId) {
        let now = Self::now();
        let conviction = Conviction {
            offender: provider.clone(),
            stake: T::Stake::stake(provider),
            at: now,
        };
        let kept = T::CorrelationWindow::get().saturating_add(T::SlashDeferral::get());
        Convictions::<T>::mutate(|convictions| {
            convictions.retain(|known| known.at.saturating_add(kept) >= now);
            if convictions.is_full() {
                convictions.remove(0);
            }
            // Room was made for it.
            let pushed = convictions.try_push(conviction);
            debug_assert!(pushed.is_ok());
        });
    }

    /// Stake of everybody else who was convicted within the window around `at`, each once.
    pub(crate) fn convicted_with(offender: &T::AccountId, at: BlockNumberFor<T>) -> u128 {
        let window = T::CorrelationWindow::get();
        let near = |other: BlockNumberFor<T>| {
            at.saturating_add(window) >= other && other.saturating_add(window) >= at
        };
        let convictions = Convictions::<T>::get();
        let mut others: Vec<_> = convictions
            .iter()
            .filter(|known| known.offender != *offender && near(known.at))
            .map(|known| (&known.offender, Into::<u128>::into(known.stake)))
            .collect();
        // The largest stake of each comes first.
        others
            .sort_by(|(one, stake), (other, least)| one.encode().cmp(&other.encode()).then(least.cmp(stake)));
        others.dedup_by(|(later, _), (earlier, _)| later == earlier);
        others
            .iter()
            .fold(0, |sum: u128, (_, stake)| sum.saturating_add(*stake))
    }

    pub(crate) fn provider_stake() -> u128 {
        T::Stake::bonded_in_all(Role::Provider).into()
    }
}

/// Whether other stake than the lock is lost for it, and work.
pub(crate) const fn is_grave(kind: FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::WrongResult | FaultKind::LostDispute | FaultKind::WithheldData | FaultKind::Equivocation
    )
}
