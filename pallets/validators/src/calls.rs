//! Who can be elected.

use frame_support::{dispatch::DispatchResult, ensure, traits::Get};
use pallet_session::Pallet as Session;
use surety_types::traits::{Jail, PoolLedger, StashClosed};

use crate::{Candidates, ChillReason, Config, Error, Event, Pallet, Services};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_validate(operator: T::AccountId) -> DispatchResult {
        let known = Candidates::<T>::get(&operator);
        let mut candidate = known.unwrap_or_default();
        ensure!(!candidate.wants_to, Error::<T>::AlreadyCandidate);
        ensure!(Session::<T>::load_keys(&operator).is_some(), Error::<T>::NoKeys);
        ensure!(
            T::Pools::own(&operator) >= T::MinSelfBond::get(),
            Error::<T>::OwnBondTooLow
        );
        ensure!(!T::Jail::is_jailed(&operator), Error::<T>::Jailed);
        ensure!(!T::Pools::is_pending(&operator), Error::<T>::SlashPending);
        ensure!(
            known.is_some() || Candidates::<T>::count() < T::CandidatesMax::get(),
            Error::<T>::TooManyCandidates
        );
        // What it has missed stays: who comes and goes would never have missed anything.
        candidate.wants_to = true;
        Candidates::<T>::insert(&operator, candidate);
        Self::deposit_event(Event::Validates { operator });
        Ok(())
    }

    pub(crate) fn do_chill(operator: T::AccountId) -> DispatchResult {
        ensure!(
            Self::stop(&operator, ChillReason::Asked),
            Error::<T>::NotCandidate
        );
        Ok(())
    }

    /// Has an operator elected no more. Says whether it could have been.
    pub(crate) fn stop(operator: &T::AccountId, reason: ChillReason) -> bool {
        let stopped = Candidates::<T>::mutate_exists(operator, |kept| {
            kept.as_mut()
                .is_some_and(|candidate| core::mem::take(&mut candidate.wants_to))
        });
        if stopped {
            Self::deposit_event(Event::Chilled {
                operator: operator.clone(),
                reason,
            });
        }
        stopped
    }
}

impl<T: Config> StashClosed<T::AccountId> for Pallet<T> {
    /// The pool is gone, and with it what it is paid: who left it last was paid before.
    fn closed(operator: &T::AccountId) {
        Candidates::<T>::remove(operator);
        Services::<T>::remove(operator);
    }
}
