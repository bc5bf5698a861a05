//! What is remembered of stashes: clean tasks, missed deadlines, and who is in jail.

use frame_support::traits::Get;
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::traits::{Saturating, Zero};
use surety_types::{
    traits::{Jail, PoolLedger, StakeLedger, StashClosed},
    trust::{JailTerm, SlashId},
};

use crate::{Config, Event, JailedFor, Pallet, Records};

/// How often a suspension is doubled at most: eleven hours at a time, with periods of ten minutes.
const DOUBLINGS_MAX: u32 = 6;

impl<T: Config> Jail<T::AccountId> for Pallet<T> {
    fn is_jailed(stash: &T::AccountId) -> bool {
        Self::is_in_jail(stash) || Self::is_suspended(stash)
    }

    fn is_suspended(stash: &T::AccountId) -> bool {
        Self::lasts(Records::<T>::get(stash).suspended_until)
    }
}

impl<T: Config> StashClosed<T::AccountId> for Pallet<T> {
    fn closed(stash: &T::AccountId) {
        Self::forget_if_gone(stash);
    }
}

impl<T: Config> Pallet<T> {
    /// Forgets who has neither stake nor a pool: a pool may close that its operator left long ago, and who is
    /// a provider by now. Who is in jail or suspended is remembered until that is over: leaving does not
    /// shorten it.
    pub(crate) fn forget_if_gone(stash: &T::AccountId) {
        let is_gone = T::Stake::stake(stash).is_zero() && T::Pools::backing(stash).is_zero();
        if is_gone && !Self::is_jailed(stash) {
            Records::<T>::remove(stash);
            JailedFor::<T>::remove(stash);
        }
    }

    fn lasts(until: Option<BlockNumberFor<T>>) -> bool {
        until.is_some_and(|until| !Self::has_passed(until))
    }

    /// Whether a stash was convicted lately. Beside that it may be suspended.
    pub fn is_in_jail(stash: &T::AccountId) -> bool {
        Self::lasts(Records::<T>::get(stash).jailed_until)
    }

    /// A stash has missed a deadline, which may be the line's fault: no stake is lost. It gets no work for a
    /// suspension period, and twice as long for each deadline before that it has not made good for, so that
    /// nobody takes work in order to leave it. Its stake has to stay meanwhile, because another name is
    /// cheap.
    ///
    /// What it misses while it is suspended is work that it had before: the same line, and no other time.
    pub fn note_missed(stash: &T::AccountId) {
        let until = Records::<T>::mutate(stash, |record| {
            if !Self::lasts(record.suspended_until) {
                record.missed = record.missed.saturating_add(1);
            }
            let doublings = record.missed.saturating_sub(1).min(DOUBLINGS_MAX);
            let windows = 2u32.saturating_pow(doublings);
            let until = Self::window_end(T::SuspensionPeriod::get().saturating_mul(windows.into()));
            record.suspended_until = record.suspended_until.max(Some(until));
            record.suspended_until
        });
        if let Some(until) = until {
            Self::deposit_event(Event::Suspended {
                stash: stash.clone(),
                until,
            });
        }
    }

    /// Adds a task to those that a provider did and was paid for.
    pub fn note_clean_task(provider: &T::AccountId) {
        // Beyond the probation it makes no difference.
        let most = T::ProbationTasks::get();
        Records::<T>::mutate(provider, |record| {
            record.clean_tasks = record.clean_tasks.saturating_add(1).min(most);
        });
        Self::note_presence(provider);
    }

    /// Work that was done makes good for work that was missed: one for one, or a task of one's own would make
    /// good for all that were left.
    pub fn note_presence(stash: &T::AccountId) {
        Records::<T>::mutate(stash, |record| {
            if !Self::lasts(record.suspended_until) {
                record.missed = record.missed.saturating_sub(1);
            }
        });
    }

    pub(crate) fn lose_record(provider: &T::AccountId) {
        Records::<T>::mutate(provider, |record| record.clean_tasks = 0);
    }

    /// Keeps a stash from work for the jail period, or until the slash that was proven with it is vetoed.
    pub fn jail(stash: &T::AccountId, slash: SlashId) {
        let until = Self::window_end(T::JailPeriod::get());
        let end = JailedFor::<T>::mutate(stash, |terms| {
            terms.forget(Self::has_passed);
            terms.add(JailTerm { slash, until });
            terms.end()
        });
        Records::<T>::mutate(stash, |record| record.jailed_until = end);
        Self::deposit_event(Event::Jailed {
            stash: stash.clone(),
            until,
        });
    }

    /// After a veto: the slash no longer keeps the stash in jail, which lets it out unless another term of
    /// its runs, of a slash that waits or was carried out.
    pub(crate) fn lift_jail_term(stash: &T::AccountId, slash: SlashId) {
        if !Self::is_in_jail(stash) {
            return;
        }
        let end = JailedFor::<T>::mutate_exists(stash, |kept| {
            let end = kept.as_mut().and_then(|terms| {
                terms.lift(slash);
                terms.end()
            });
            if end.is_none() {
                *kept = None;
            }
            end
        });
        Records::<T>::mutate(stash, |record| record.jailed_until = end);
        if !Self::lasts(end) {
            Self::deposit_event(Event::Released { stash: stash.clone() });
        }
    }
}
