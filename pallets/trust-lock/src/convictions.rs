//! What a fault costs: a slash is written down, and the offender gets no work for a while.

use frame_support::traits::Get;
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::{Perquintill, traits::Saturating};
use surety_types::{
    stake::Role,
    traits::StakeLedger,
    trust::{Conviction, FaultKind, NoWork, Slash, SlashCause, SlashId},
};

use crate::{
    Config, ConvictionOf, Convictions, Event, FindersOf, NextSlashId, Pallet, SlashOf, Slashes,
    slashes::quintillionths,
};

/// A fault that was proven, and who gains by that.
pub struct Offence<T: Config> {
    /// A task, or channels. What validators sign is `ValidatorPenalties`' to punish.
    pub cause: SlashCause,
    /// Offender's stash.
    pub offender: T::AccountId,
    /// Kind of the fault.
    pub kind: FaultKind,
    /// What it had locked for that, in plancks. All of it is lost.
    pub lock: T::Balance,
    /// Verifiers that found something else than the offender had said.
    pub finders: FindersOf<T>,
    /// Who proved it, if anybody did.
    pub finder: Option<T::AccountId>,
    /// The client that was told or promised something wrong, if one was.
    pub client: Option<T::AccountId>,
}

impl<T: Config> Pallet<T> {
    /// Has a stash lose what its fault costs, when the time for a veto is over, and get no work for so long
    /// as it costs. Returns the slash, if it costs one.
    pub fn convict(offence: Offence<T>) -> Option<SlashId> {
        let offender = &offence.offender;
        let cost = offence.kind.cost();
        if !cost.lock {
            return None;
        }
        let id = Self::next_slash_id();
        let mut part = Perquintill::zero();
        if cost.other_stake {
            part = quintillionths(T::StakePart::get());
            Self::note_conviction(offender);
        }
        if cost.record {
            Self::lose_record(offender);
        }
        match cost.work {
            Some(NoWork::Suspended) => Self::note_missed(offender),
            Some(NoWork::Jailed) => Self::jail(offender, id),
            None => {}
        }
        let now = Self::now();
        let Offence {
            cause,
            offender,
            kind,
            lock,
            finders,
            finder,
            client,
        } = offence;
        let slash = Slash {
            cause,
            offender,
            kind,
            lock,
            part,
            finders,
            finder,
            client,
            proven_at: now,
            until: now.saturating_add(T::SlashDeferral::get()),
        };
        Self::defer_slash(id, slash);
        Some(id)
    }

    /// The number of a slash that is about to be written down.
    pub(crate) fn next_slash_id() -> SlashId {
        NextSlashId::<T>::mutate(|next| {
            let id = *next;
            *next = next.saturating_add(1);
            id
        })
    }

    /// Writes a slash down that waits for a veto.
    pub(crate) fn defer_slash(id: SlashId, slash: SlashOf<T>) {
        Self::deposit_event(Event::SlashDeferred {
            slash: id,
            cause: slash.cause,
            offender: slash.offender.clone(),
            kind: slash.kind,
            lock: slash.lock,
            part: slash.part,
            until: slash.until,
        });
        Slashes::<T>::insert(id, slash);
    }

    /// How often a stash was at fault within the time in which that makes others' faults dearer.
    pub fn faults_lately(stash: &T::AccountId) -> u32 {
        let convictions = Convictions::<T>::get();
        let known = convictions.iter().find(|known| known.offender == *stash);
        known
            .filter(|known| Self::is_late(known))
            .map_or(0, |known| known.faults)
    }

    /// Whether an offender may still make others' faults dearer.
    fn is_late(known: &ConvictionOf<T>) -> bool {
        let kept = T::CorrelationWindow::get().saturating_add(T::SlashDeferral::get());
        known.last.saturating_add(kept) >= Self::now()
    }

    /// Remembers a provider that was at fault. However often it is, it takes one place, and none of somebody
    /// with as much stake: faults cost nobody less than they would alone.
    fn note_conviction(provider: &T::AccountId) {
        let now = Self::now();
        let stake = T::Stake::stake(provider);
        Convictions::<T>::mutate(|convictions| {
            convictions.retain(Self::is_late);
            let mut all = convictions.iter_mut();
            if let Some(known) = all.find(|known| known.offender == *provider) {
                known.stake = known.stake.max(stake);
                known.last = known.last.max(now);
                known.faults = known.faults.saturating_add(1);
                return;
            }
            if convictions.is_full() {
                let places = convictions.iter().enumerate();
                let least = places.min_by_key(|(_, known)| known.stake);
                match least.filter(|(_, known)| known.stake < stake) {
                    Some((place, _)) => convictions.remove(place),
                    None => return,
                };
            }
            // There was room, or room was made for it.
            let pushed = convictions.try_push(Conviction {
                offender: provider.clone(),
                stake,
                first: now,
                last: now,
                faults: 1,
            });
            debug_assert!(pushed.is_ok());
        });
    }

    /// After a veto: the fault no longer makes those of others dearer, unless its offender was at fault
    /// again.
    pub(crate) fn forget_conviction(slash: &SlashOf<T>) {
        if !slash.kind.is_grave() {
            return;
        }
        Convictions::<T>::mutate(|convictions| {
            let vetoed = |known: &&mut ConvictionOf<T>| {
                known.offender == slash.offender && (known.first..=known.last).contains(&slash.proven_at)
            };
            if let Some(known) = convictions.iter_mut().find(vetoed) {
                known.faults = known.faults.saturating_sub(1);
            }
            convictions.retain(|known| known.faults > 0);
        });
    }

    /// Stake of everybody else who was convicted within the window around `at`.
    pub(crate) fn convicted_with(offender: &T::AccountId, at: BlockNumberFor<T>) -> u128 {
        let window = T::CorrelationWindow::get();
        let convictions = Convictions::<T>::get();
        let near = convictions.iter().filter(|known| {
            at.saturating_add(window) >= known.first && known.last.saturating_add(window) >= at
        });
        let others = near.filter(|known| known.offender != *offender);
        others.fold(0, |sum: u128, known| sum.saturating_add(known.stake.into()))
    }

    pub(crate) fn provider_stake() -> u128 {
        T::Stake::bonded_in_all(Role::Provider).into()
    }
}
