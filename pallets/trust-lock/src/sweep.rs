//! What idle blocks do: carry out slashes that are due, and forget who has left.

use alloc::vec::Vec;
use frame_support::{traits::Get, weights::Weight};

use crate::{Config, Pallet, Records, RecordsSweptTo};

/// Records that an idle block looks at.
const RECORDS_AT_ONCE: u64 = 4;

impl<T: Config> Pallet<T> {
    /// Does what is due, as far as `limit` allows. Returns what it used.
    pub(crate) fn sweep(limit: Weight) -> Weight {
        let slashes = Self::sweep_slashes(limit);
        slashes.saturating_add(Self::sweep_records(limit.saturating_sub(slashes)))
    }

    /// Looks at the next few records, in the order of storage and from the first again after the last, and
    /// removes those of accounts that have neither stake nor a pool and are kept from nothing any more.
    /// Whoever leaves while in jail or suspended is remembered until that is over, and no call comes when it
    /// is.
    fn sweep_records(limit: Weight) -> Weight {
        // Its key and what it says, its stake, its pool and where the sweep stands; it is removed with its
        // terms in jail, and the place noted.
        let one = T::DbWeight::get().reads_writes(5, 3);
        let most = limit.checked_div_per_component(&one).unwrap_or(RECORDS_AT_ONCE);
        let most = usize::try_from(most.min(RECORDS_AT_ONCE)).unwrap_or_default();
        if most == 0 {
            return Weight::zero();
        }
        let from = RecordsSweptTo::<T>::get();
        let records = match from.clone() {
            Some(stash) => Records::<T>::iter_keys_from_key(stash),
            None => Records::<T>::iter_keys(),
        };
        let stashes: Vec<_> = records.take(most).collect();
        for stash in &stashes {
            Self::forget_if_gone(stash);
        }
        let last = stashes.last().filter(|_| stashes.len() == most).cloned();
        if last != from {
            RecordsSweptTo::<T>::set(last);
        }
        // Looking for the next one costs something where there is none.
        one.saturating_mul(u64::try_from(stashes.len()).unwrap_or_default().max(1))
    }
}
