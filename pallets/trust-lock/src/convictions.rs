//! What a fault costs: a slash is written down, and the offender gets no work for a while.

use alloc::vec::Vec;
use codec::Encode;
use frame_support::traits::Get;
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::{Perquintill, traits::Saturating};
use surety_types::{
    TaskId,
    stake::Role,
    traits::StakeLedger,
    trust::{Conviction, FaultKind, NoWork, Slash, SlashId},
};

use crate::{
    Config, Convictions, Event, FindersOf, NextSlashId, Pallet, SlashOf, Slashes, slashes::quintillionths,
};

/// A fault that was proven, and who gains by that.
pub struct Offence<T: Config> {
    /// Task id.
    pub task: TaskId,
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
        let id = NextSlashId::<T>::mutate(|next| {
            let id = *next;
            *next = next.saturating_add(1);
            id
        });
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
        Self::defer_slash(id, offence, part);
        Some(id)
    }

    fn defer_slash(id: SlashId, offence: Offence<T>, part: Perquintill) {
        let now = Self::now();
        let until = now.saturating_add(T::SlashDeferral::get());
        let Offence {
            task,
            offender,
            kind,
            lock,
            finders,
            finder,
            client,
        } = offence;
        let slash: SlashOf<T> = Slash {
            task,
            offender: offender.clone(),
            kind,
            lock,
            part,
            finders,
            finder,
            client,
            proven_at: now,
            until,
        };
        Slashes::<T>::insert(id, slash);
        Self::deposit_event(Event::SlashDeferred {
            slash: id,
            task,
            offender,
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
