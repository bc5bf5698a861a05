//! A stand-in for what `scripts/weights` will have measured: nothing here was. Each operator's pool is read and written, and its
//! part of the mint counted.

#![allow(clippy::all, missing_docs, unused_qualifications)]

use core::marker::PhantomData;
use frame_support::{traits::Get, weights::Weight};

/// Weight functions for `surety_pallet_emission`.
pub struct WeightInfo<T>(PhantomData<T>);

impl<T: frame_system::Config> surety_pallet_emission::WeightInfo for WeightInfo<T> {
    fn pay_day(operators: u32) -> Weight {
        Weight::from_parts(2_000_000_000, 0)
            .saturating_add(T::DbWeight::get().reads_writes(16, 16))
            .saturating_add(Weight::from_parts(60_000_000, 0).saturating_mul(operators.into()))
            .saturating_add(
                T::DbWeight::get()
                    .reads_writes(3, 3)
                    .saturating_mul(operators.into()),
            )
    }
}
