//! Slashes that were proven: vetoed, or carried out when they have waited long enough.
//!
//! How much is lost is only computed when a slash is carried out, so that it makes no difference who of
//! several offenders was convicted first. Idle blocks carry out what is due in the order in which it was
//! proven.

use alloc::vec::Vec;
use frame_support::{
    dispatch::DispatchResult,
    ensure,
    storage::with_storage_layer,
    traits::Get,
    weights::{Weight, WeightMeter},
};
use sp_runtime::{
    PerThing, Perquintill,
    traits::{Saturating, Zero},
};
use surety_audit_economics::{SlashSplit, correlated_fraction};
use surety_types::{
    traits::{EquivocationSpared, PoolLedger, SessionIndex, StakeLedger},
    trust::{SlashCause, SlashId},
};

use crate::{Config, Error, Event, NextSlashId, Pallet, SlashOf, Slashes, SlashesSweptTo, WeightInfo};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_cancel_slash(id: SlashId) -> DispatchResult {
        let slash = Slashes::<T>::take(id).ok_or(Error::<T>::UnknownSlash)?;
        if let SlashCause::Equivocation(session) = slash.cause {
            T::Pools::spare(&slash.offender);
            T::Validators::spared(&slash.offender, session);
        } else {
            T::Stake::unlock(&slash.offender, slash.lock);
            Self::forget_conviction(&slash);
        }
        Self::deposit_event(Event::SlashCancelled {
            slash: id,
            offender: slash.offender.clone(),
        });
        Self::lift_jail_term(&slash.offender, id);
        Ok(())
    }

    pub(crate) fn do_carry_out_slash(id: SlashId) -> DispatchResult {
        let slash = Slashes::<T>::get(id).ok_or(Error::<T>::UnknownSlash)?;
        ensure!(Self::has_passed(slash.until), Error::<T>::NotDue);
        Self::carry_out(id, slash);
        Ok(())
    }

    /// Lets a verifier that has found something else share in a slash, as long as it has not been carried
    /// out.
    pub fn add_finder(id: SlashId, verifier: &T::AccountId) {
        Slashes::<T>::mutate_extant(id, |slash| {
            if !slash.finders.contains(verifier) {
                // A provider has no more audits than that.
                let _ = slash.finders.try_push(verifier.clone());
            }
        });
    }

    /// Takes a verifier that was wrong itself out of those that share in a slash.
    pub fn remove_finder(id: SlashId, verifier: &T::AccountId) {
        Slashes::<T>::mutate_extant(id, |slash| slash.finders.retain(|finder| finder != verifier));
    }

    /// Adds locked stake to what a slash takes. Says whether it could: not once it is carried out.
    pub fn raise_slash(id: SlashId, by: T::Balance) -> bool {
        Self::raise_to(id, |slash| slash.lock = slash.lock.saturating_add(by))
    }

    /// Has a slash that waits take more. Says whether it could.
    pub(crate) fn raise_to(id: SlashId, raise: impl FnOnce(&mut SlashOf<T>)) -> bool {
        let Some(mut slash) = Slashes::<T>::get(id) else {
            return false;
        };
        raise(&mut slash);
        Self::deposit_event(Event::SlashRaised {
            slash: id,
            lock: slash.lock,
            part: slash.part,
        });
        Slashes::<T>::insert(id, slash);
        true
    }

    /// Carries out slashes that are due, as far as `limit` allows. Returns what it used.
    pub(crate) fn sweep_slashes(limit: Weight) -> Weight {
        let mut meter = WeightMeter::with_limit(limit);
        if meter.try_consume(T::WeightInfo::sweep_base()).is_err() {
            return meter.consumed();
        }
        let one = Self::carry_out_weight();
        let started = SlashesSweptTo::<T>::get();
        let end = NextSlashId::<T>::get();
        let mut next = started;
        while next < end && meter.try_consume(one).is_ok() {
            match Slashes::<T>::get(next) {
                Some(slash) if !Self::has_passed(slash.until) => break,
                Some(slash) => {
                    let carried_out = with_storage_layer(|| {
                        Self::carry_out(next, slash);
                        DispatchResult::Ok(())
                    });
                    debug_assert!(carried_out.is_ok());
                }
                None => {}
            }
            next = next.saturating_add(1);
        }
        if next != started {
            SlashesSweptTo::<T>::put(next);
        }
        meter.consumed()
    }

    /// Most that it weighs to veto a slash, whoever is spared. One of a pool is spared beside what a bond's
    /// veto does in place of that, which is measured.
    pub(crate) fn cancel_weight() -> Weight {
        T::WeightInfo::cancel_slash().saturating_add(T::Validators::spared_weight())
    }

    /// Most that it weighs to carry out a slash, whoever loses by it.
    pub(crate) fn carry_out_weight() -> Weight {
        let of_pool = T::DbWeight::get()
            .reads_writes(1, 1)
            .saturating_add(T::Pools::slash_weight());
        T::WeightInfo::carry_out_slash().max(of_pool)
    }

    fn carry_out(id: SlashId, slash: SlashOf<T>) {
        Slashes::<T>::remove(id);
        match slash.cause {
            SlashCause::Equivocation(session) => Self::take_of_pool(id, &slash, session),
            SlashCause::Task(_) | SlashCause::Channels => Self::take_of_bond(id, slash),
        }
    }

    /// All of it is burned: nodes report by themselves, so that nobody has to be paid for it, and a friendly
    /// author could collect.
    fn take_of_pool(id: SlashId, slash: &SlashOf<T>, session: SessionIndex) {
        let taken = T::Pools::slash(&slash.offender, slash.part, session);
        Self::deposit_event(Event::SlashCarriedOut {
            slash: id,
            offender: slash.offender.clone(),
            taken,
            finder: Zero::zero(),
            client: Zero::zero(),
        });
    }

    fn take_of_bond(id: SlashId, slash: SlashOf<T>) {
        let stake: u128 = T::Stake::stake(&slash.offender).into();
        let lock = Into::<u128>::into(slash.lock).min(stake);
        let fraction = Self::fraction(&slash);
        let more = fraction.mul_ceil(stake.saturating_sub(lock));

        let split = SlashSplit {
            finder: quintillionths(T::FinderShare::get()),
            client: quintillionths(T::ClientShare::get()),
        };
        let shares = split.shares(lock.saturating_add(more));
        let or_pool = |payee: Option<T::AccountId>| payee.unwrap_or_else(T::InsurancePool::get);
        let mut finders = slash.finders.into_inner();
        if finders.is_empty() {
            finders.push(or_pool(slash.finder));
        }
        // What does not divide is burned, like all that nobody gets.
        let each = shares
            .finder
            .checked_div(finders.len() as u128)
            .unwrap_or_default();
        let found = each.saturating_mul(finders.len() as u128);
        let client = (or_pool(slash.client), shares.client.into());
        let payees = finders.into_iter().map(|finder| (finder, each.into()));
        let payees: Vec<_> = payees.chain([client]).collect();
        let taken = T::Stake::seize(&slash.offender, slash.lock, more.into(), &payees);
        Self::deposit_event(Event::SlashCarriedOut {
            slash: id,
            offender: slash.offender,
            taken,
            finder: found.into(),
            client: shares.client.into(),
        });
    }

    /// Part of the stake beside its lock that the offender loses.
    fn fraction(slash: &SlashOf<T>) -> Perquintill {
        if slash.part.is_zero() {
            return slash.part;
        }
        let others = Self::convicted_with(&slash.offender, slash.proven_at);
        correlated_fraction(slash.part, others, Self::provider_stake())
    }
}

/// The same part in finer units.
pub fn quintillionths<P: PerThing<Inner = u32>>(part: P) -> Perquintill {
    Perquintill::from_rational(u64::from(part.deconstruct()), u64::from(P::ACCURACY))
}
