//! Who acts for a stash.
//!
//! Whoever is nominated or confirmed has an account on the chain for as long, whatever money is on it: only
//! accounts can sign calls, and the stash pays for those that an agent makes for it.

use crate::{Agents, Config, Pallet, PendingAgents};

type System<T> = frame_system::Pallet<T>;

pub(crate) fn nominate<T: Config>(stash: &T::AccountId, agent: &T::AccountId) {
    // Before the last nomination goes, which may be the same: an account that is dropped loses its nonce.
    System::<T>::inc_sufficients(agent);
    forget_nomination::<T>(stash);
    PendingAgents::<T>::insert(stash, agent);
}

/// Says whether there was one.
pub(crate) fn forget_nomination<T: Config>(stash: &T::AccountId) -> bool {
    let nominated = PendingAgents::<T>::take(stash);
    if let Some(agent) = &nominated {
        System::<T>::dec_sufficients(agent);
    }
    nominated.is_some()
}

/// Makes an agent of whom the stash has nominated.
pub(crate) fn confirm<T: Config>(stash: &T::AccountId, agent: &T::AccountId) {
    // The reference to its account stays: it was counted with the nomination.
    PendingAgents::<T>::remove(stash);
    Agents::<T>::insert(agent, stash);
}

pub(crate) fn dismiss<T: Config>(agent: &T::AccountId) {
    Agents::<T>::remove(agent);
    System::<T>::dec_sufficients(agent);
}

impl<T: Config> Pallet<T> {
    /// The stash that an agent acts for, in whichever role.
    pub fn stash_of_agent(agent: &T::AccountId) -> Option<T::AccountId> {
        Agents::<T>::get(agent)
    }

    /// Whether a stash has nominated this agent, which has not confirmed yet.
    pub fn is_nominated(stash: &T::AccountId, agent: &T::AccountId) -> bool {
        PendingAgents::<T>::get(stash).as_ref() == Some(agent)
    }
}
