//! A stand-in for what `scripts/weights` will have measured: nothing here was. Each call is given more than its like takes
//! in other pallets: a list of 128 delegators and one of 48 stakes are decoded, changed and written, two accounts
//! are paid, and each of them is read and written more than once.

#![allow(clippy::all, missing_docs, unused_qualifications)]

use core::marker::PhantomData;
use frame_support::{traits::Get, weights::Weight};

/// Weight functions for `surety_pallet_delegation`.
pub struct WeightInfo<T>(PhantomData<T>);

impl<T: frame_system::Config> WeightInfo<T> {
    /// Half a millisecond, and some two dozen records.
    fn usual() -> Weight {
        Weight::from_parts(500_000_000, 0).saturating_add(T::DbWeight::get().reads_writes(24, 24))
    }
}

impl<T: frame_system::Config> surety_pallet_delegation::WeightInfo for WeightInfo<T> {
    fn open() -> Weight {
        Self::usual()
    }

    fn delegate() -> Weight {
        Self::usual()
    }

    fn undelegate() -> Weight {
        Self::usual()
    }

    fn redelegate() -> Weight {
        Self::usual()
    }

    fn withdraw() -> Weight {
        Self::usual()
    }

    fn claim() -> Weight {
        Self::usual()
    }

    fn settle() -> Weight {
        Self::usual()
    }

    fn set_commission() -> Weight {
        Self::usual()
    }

    fn reward() -> Weight {
        Self::usual()
    }

    fn note_pending() -> Weight {
        Self::usual()
    }

    fn slash() -> Weight {
        Self::usual()
    }
}
