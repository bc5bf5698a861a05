//! The benchmark, with as many outputs as are kept.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark that panics has failed"
)]

use frame_benchmarking::v2::*;
use frame_support::traits::Get;
use sp_core::H256;
use surety_types::traits::BlockEntropy;

use crate::{Config, KEPT, Pallet, Recorded};

#[benchmarks]
mod benches {
    use super::*;

    /// The author's output is asked for, and need not be there in a chain that is being measured.
    #[benchmark]
    fn record() -> Result<(), BenchmarkError> {
        Pallet::<T>::fill_for_benchmark(0u32.into());

        #[block]
        {
            let _ = T::AuthorOutput::get();
            Pallet::<T>::record(H256::zero(), 1_000u32.into());
        }

        assert_eq!(Recorded::<T>::get(), u64::from(KEPT).saturating_add(2));
        Ok(())
    }
}
