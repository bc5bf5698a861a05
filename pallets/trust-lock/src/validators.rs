//! What validators lose for what they sign: a part of their pools, deferred and open to a veto like any
//! slash.

use frame_support::traits::Get;
use sp_runtime::{
    Perbill,
    traits::{Saturating, Zero},
};
use surety_types::{
    traits::{PoolLedger, Reliability, SessionIndex, ValidatorPenalties},
    trust::{FaultKind, Slash, SlashCause, SlashId},
};

use crate::{Config, Pallet, Records, quintillionths};

impl<T: Config> ValidatorPenalties<T::AccountId> for Pallet<T> {
    fn convict(operator: &T::AccountId, session: SessionIndex, part: Perbill) -> SlashId {
        let id = Self::next_slash_id();
        Self::jail(operator, id);
        T::Pools::note_pending(operator, session);
        let now = Self::now();
        let slash = Slash {
            cause: SlashCause::Equivocation(session),
            offender: operator.clone(),
            kind: FaultKind::Equivocation,
            lock: Zero::zero(),
            part: quintillionths(part),
            finders: Default::default(),
            finder: None,
            client: None,
            proven_at: now,
            until: now.saturating_add(T::SlashDeferral::get()),
        };
        Self::defer_slash(id, slash);
        id
    }

    fn raise(slash: SlashId, part: Perbill) -> bool {
        Self::raise_to(slash, |slash| slash.part = slash.part.max(quintillionths(part)))
    }

    fn is_in_jail(operator: &T::AccountId) -> bool {
        Self::is_in_jail(operator)
    }

    fn note_missed(operator: &T::AccountId) {
        Self::note_missed(operator);
    }

    fn note_present(operator: &T::AccountId) {
        // Who has missed nothing needs no record.
        if Self::missed(operator) > 0 {
            Self::note_presence(operator);
        }
    }
}

impl<T: Config> Reliability<T::AccountId> for Pallet<T> {
    fn missed(stash: &T::AccountId) -> u32 {
        Records::<T>::get(stash).missed
    }
}
