//! Channels and batches that are over end by time alone: each block looks at a few, in turn.

use alloc::vec::Vec;

use frame_support::{traits::Get, weights::Weight};

use crate::{BatchCursor, Channels, Config, Cursor, Pallet, Standings, WeightInfo};

impl<T: Config> Pallet<T> {
    /// Looks at the next channels, and ends those that are over.
    pub(crate) fn sweep() -> Weight {
        let most = T::SweptPerBlock::get();
        let from = Cursor::<T>::get();
        let iter = match from {
            Some(cursor) => Channels::<T>::iter_keys_from(Channels::<T>::hashed_key_for(cursor)),
            None => Channels::<T>::iter_keys(),
        };
        let ids: Vec<_> = iter.take(most as usize).collect();
        // At the end it begins again with the next block.
        let is_end = ids.len() < most as usize;
        Cursor::<T>::set(ids.last().copied().filter(|_| !is_end));
        for id in ids {
            // One that is not over stays as it is.
            let _ = Self::do_end(id);
        }
        T::WeightInfo::sweep_one().saturating_mul(most.into())
    }

    /// Looks at the next provider, and removes some batches of it whose time to be redeemed from is over: who
    /// commits no more does not do so itself.
    pub(crate) fn sweep_batches() -> Weight {
        let mut from = match BatchCursor::<T>::get() {
            Some(stash) => Standings::<T>::iter_from(Standings::<T>::hashed_key_for(stash)),
            None => Standings::<T>::iter(),
        };
        let next = from.next();
        // At the end it begins again with the next block.
        BatchCursor::<T>::set(next.as_ref().map(|(stash, _)| stash.clone()));
        if let Some((stash, mut provider)) = next {
            let kept = (provider.oldest, provider.audits);
            Self::prune(&stash, &mut provider);
            if (provider.oldest, provider.audits) != kept {
                Standings::<T>::insert(stash, provider);
            }
        }
        T::WeightInfo::sweep_batches()
    }
}
