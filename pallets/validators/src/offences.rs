//! Who signed two of a kind: disabled and chilled at once, convicted by trust-lock.
//!
//! `pallet-offences` names earlier offenders again when others did the same at the same time, with the larger
//! part that all of them lose then.
//!
//! All that can be reported of an operator when it is convicted, and for as long after, is one offence, of
//! the largest part. A vote for finality does not say in which session it was cast: who reports it chooses
//! one of all that its set has lasted for, maybe a day of them, and would else choose how often it is
//! punished.

use alloc::vec::Vec;
use frame_support::{traits::Get, weights::Weight};
use pallet_session::{Pallet as Session, historical::IdentificationTuple};
use sp_runtime::Perbill;
use sp_staking::{
    SessionIndex,
    offence::{OffenceDetails, OffenceSeverity, OnOffenceHandler},
};
use surety_types::{
    traits::{EquivocationSpared, PoolLedger, ValidatorPenalties},
    trust::SlashId,
};

use crate::{
    ChillReason, Config, Event, Pallet, Punished, Punishment, PunishmentOf, ServiceOf, Services, WeightInfo,
    missing,
};

impl<T: Config> OnOffenceHandler<T::AccountId, IdentificationTuple<T>, Weight> for Pallet<T> {
    fn on_offence(
        offenders: &[OffenceDetails<T::AccountId, IdentificationTuple<T>>],
        slash_fractions: &[Perbill],
        session: SessionIndex,
    ) -> Weight {
        let mut weight = Weight::zero();
        for (details, part) in offenders.iter().zip(slash_fractions) {
            let (operator, ()) = &details.offender;
            Self::punish(operator, session, *part);
            weight.saturating_accrue(<T as Config>::WeightInfo::on_offence());
        }
        weight
    }
}

impl<T: Config> Pallet<T> {
    fn punish(operator: &T::AccountId, session: SessionIndex, part: Perbill) {
        let known = Punished::<T>::get(operator).filter(|known| session <= known.until);
        let punishment = match known {
            None => {
                let (slash, withheld) = Self::convict(operator, session, part, part);
                let running = Session::<T>::current_index();
                Punishment {
                    session,
                    until: running.saturating_add(T::SessionsKept::get()),
                    slash: Some(slash),
                    before: Perbill::zero(),
                    part,
                    withheld,
                }
            }
            Some(known) => {
                let Some(slash) = known.slash.filter(|_| known.part < part) else {
                    return;
                };
                if T::Penalties::raise(slash, missing(known.before, part)) {
                    Punishment { part, ..known }
                } else {
                    // It is carried out already: what is missing takes a slash of its own.
                    let more = missing(known.part, part);
                    let (slash, withheld) = Self::convict(operator, known.session, more, part);
                    Punishment {
                        slash: Some(slash),
                        before: known.part,
                        part,
                        withheld,
                        ..known
                    }
                }
            }
        };
        Punished::<T>::insert(operator, punishment);
        Self::deposit_event(Event::Equivocated {
            operator: operator.clone(),
            session: punishment.session,
            part,
        });
    }

    /// Has an operator work and earn no more, and lose `part` of what is left of its stake: then `in_all` is
    /// lost. Returns its slash, and what it is not paid for because of that.
    fn convict(
        operator: &T::AccountId,
        session: SessionIndex,
        part: Perbill,
        in_all: Perbill,
    ) -> (SlashId, Option<ServiceOf<T>>) {
        Session::<T>::report_offence(operator.clone(), OffenceSeverity(in_all));
        Self::stop(operator, ChillReason::Convicted);
        let withheld = Services::<T>::take(operator);
        (T::Penalties::convict(operator, session, part), withheld)
    }

    /// As a session begins: disables who is in jail and there all the same, as far as finality can do without
    /// it, and nobody else. Session forgets it when a set comes in that was planned before, and remembers it
    /// for ever while none does.
    pub(crate) fn keep_disabled() {
        let disabled = Session::<T>::disabled_validators();
        let mut jailed = Vec::new();
        for (index, validator) in (0u32..).zip(Session::<T>::validators()) {
            if T::Penalties::is_in_jail(&validator) {
                jailed.push(validator);
            } else if disabled.binary_search(&index).is_ok() {
                Session::<T>::reenable_index(index);
            }
        }
        for validator in jailed {
            Session::<T>::report_offence(validator, OffenceSeverity::default());
        }
    }

    /// As the session `index` ends: drops what is kept of offences that nobody can report any more of, as
    /// the roots of their sessions go. Sessions go by while finality stands still and slashes wait for it:
    /// one that waits may be vetoed still.
    pub(crate) fn forget_punished(index: SessionIndex) {
        let kept = T::SessionsKept::get();
        let is_over = |punishment: &PunishmentOf<T>| punishment.until.saturating_add(kept) <= index;
        let waits = |operator: &T::AccountId, punishment: &PunishmentOf<T>| {
            punishment.slash.is_some() && T::Pools::is_pending(operator)
        };
        let over: Vec<_> = Punished::<T>::iter()
            .filter(|(operator, punishment)| is_over(punishment) && !waits(operator, punishment))
            .map(|(operator, _)| operator)
            .collect();
        for operator in over {
            Punished::<T>::remove(operator);
        }
    }
}

impl<T: Config> EquivocationSpared<T::AccountId> for Pallet<T> {
    fn spared(operator: &T::AccountId, session: u32) {
        let withheld = Punished::<T>::mutate_exists(operator, |kept| {
            let punishment = kept.as_mut().filter(|punishment| punishment.session == session)?;
            punishment.slash = None;
            // What it signs from now on was not forgiven.
            let running = Session::<T>::current_index().max(session);
            punishment.until = punishment.until.min(running);
            punishment.withheld.take()
        });
        if let Some(service) = withheld {
            Self::give_back(operator, service);
        }
    }

    fn spared_weight() -> Weight {
        // What it did and was not paid for, and the running session.
        T::DbWeight::get().reads_writes(5, 3)
    }
}
