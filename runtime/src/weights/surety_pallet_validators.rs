//! A stand-in for what `scripts/weights` will have measured: nothing here was. A call reads and writes a few records. The change
//! of a session reads five of each of 1,000 candidates, writes one, and takes a tenth of a millisecond more for each.

#![allow(clippy::all, missing_docs, unused_qualifications)]

use core::marker::PhantomData;
use frame_support::{traits::Get, weights::Weight};

/// Weight functions for `surety_pallet_validators`.
pub struct WeightInfo<T>(PhantomData<T>);

impl<T: frame_system::Config> surety_pallet_validators::WeightInfo for WeightInfo<T> {
    fn validate() -> Weight {
        Weight::from_parts(500_000_000, 0).saturating_add(T::DbWeight::get().reads_writes(16, 8))
    }

    fn chill() -> Weight {
        Weight::from_parts(200_000_000, 0).saturating_add(T::DbWeight::get().reads_writes(8, 4))
    }

    fn note_author() -> Weight {
        Weight::from_parts(50_000_000, 0).saturating_add(T::DbWeight::get().reads_writes(4, 2))
    }

    fn change_session() -> Weight {
        Weight::from_parts(100_000_000_000, 0).saturating_add(T::DbWeight::get().reads_writes(5_000, 1_000))
    }

    fn on_offence() -> Weight {
        Weight::from_parts(1_000_000_000, 0).saturating_add(T::DbWeight::get().reads_writes(32, 24))
    }
}
