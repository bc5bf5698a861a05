//! A stand-in for what `scripts/weights` will have measured: nothing here was. Each call is given more than the
//! like of it took in other pallets: half a millisecond for a signature, a proof of a draw or a referee's layout,
//! several of each, and all that it could read and write.

#![allow(clippy::all, missing_docs, unused_qualifications)]

use core::marker::PhantomData;
use frame_support::{traits::Get, weights::Weight};

/// Weight functions for `surety_pallet_channels`.
pub struct WeightInfo<T>(PhantomData<T>);

impl<T: frame_system::Config> WeightInfo<T> {
    /// Three milliseconds, and a few records.
    fn usual() -> Weight {
        Weight::from_parts(3_000_000_000, 0).saturating_add(T::DbWeight::get().reads_writes(24, 24))
    }

    /// Four milliseconds, and all batches of a provider that are not final.
    fn all_batches() -> Weight {
        Weight::from_parts(4_000_000_000, 0).saturating_add(T::DbWeight::get().reads_writes(96, 96))
    }

    /// The same, and all its offers, each with its pool and its model: those end, too.
    fn conviction() -> Weight {
        Self::all_batches().saturating_add(T::DbWeight::get().reads_writes(80, 48))
    }
}

impl<T: frame_system::Config> surety_pallet_channels::WeightInfo for WeightInfo<T> {
    fn open() -> Weight {
        Self::usual()
    }

    fn top_up() -> Weight {
        Self::usual()
    }

    fn extend() -> Weight {
        Self::usual()
    }

    fn stand() -> Weight {
        Self::all_batches()
    }

    fn commit_batch() -> Weight {
        Self::all_batches()
    }

    fn redeem() -> Weight {
        Self::all_batches()
    }

    fn hold() -> Weight {
        Self::usual()
    }

    fn close() -> Weight {
        Self::usual()
    }

    fn close_agreed() -> Weight {
        Self::usual()
    }

    fn end() -> Weight {
        Self::usual()
    }

    fn add_signer() -> Weight {
        Self::usual()
    }

    fn report_equivocation() -> Weight {
        Self::conviction()
    }

    fn report_batch() -> Weight {
        Self::conviction()
    }

    fn dispute() -> Weight {
        Self::all_batches()
    }

    fn demand_receipt() -> Weight {
        Self::all_batches()
    }

    fn demand_point() -> Weight {
        Self::usual()
    }

    fn show_receipt() -> Weight {
        Self::usual()
    }

    fn show_point() -> Weight {
        Self::usual()
    }

    fn end_demand() -> Weight {
        Self::conviction()
    }

    fn announce_points() -> Weight {
        Self::usual()
    }

    fn open_points() -> Weight {
        Self::usual()
    }

    fn authorize_open_points() -> Weight {
        Self::usual()
    }

    fn refute_points() -> Weight {
        Self::usual()
    }

    fn end_points() -> Weight {
        Self::usual()
    }

    fn offer() -> Weight {
        Self::usual()
    }

    fn withdraw_offer() -> Weight {
        Self::all_batches()
    }

    fn report_busy() -> Weight {
        Self::usual()
    }

    fn sweep_one() -> Weight {
        Weight::from_parts(300_000_000, 0).saturating_add(T::DbWeight::get().reads_writes(8, 8))
    }
}
