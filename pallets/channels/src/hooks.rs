//! Channels that are over end by time alone: each block looks at a few, in turn.

use alloc::vec::Vec;

use frame_support::{traits::Get, weights::Weight};

use crate::{Channels, Config, Cursor, Pallet, WeightInfo};

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
}
