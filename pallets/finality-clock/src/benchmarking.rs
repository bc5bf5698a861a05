//! Benchmarks, with as many authorities as there may be, each of whom has noted something.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark that panics has failed"
)]

use frame_benchmarking::v2::*;
use frame_support::traits::Get;
use frame_system::RawOrigin;

use crate::{BlockAuthors, Call, Config, Elapsed, Finalized, NotedAt, Notes, Pallet, Progressed};

fn fill<T: Config>() {
    T::Authors::set_for_benchmark(T::AuthoritiesMax::get());
    for (place, authority) in (0u32..).zip(T::Authors::all()) {
        Notes::<T>::mutate(|notes| {
            let noted = notes.try_insert(authority, (place % 900).into());
            assert!(noted.is_ok());
        });
    }
}

#[benchmarks]
mod benches {
    use super::*;

    #[benchmark]
    fn note() -> Result<(), BenchmarkError> {
        fill::<T>();
        frame_system::Pallet::<T>::set_block_number(1_000u32.into());

        #[extrinsic_call]
        _(RawOrigin::None, 999u32.into());

        assert_eq!(NotedAt::<T>::get(), 1_000u32.into());
        Ok(())
    }

    #[benchmark]
    fn tick() -> Result<(), BenchmarkError> {
        fill::<T>();

        #[block]
        {
            Pallet::<T>::tick();
        }

        assert!(Finalized::<T>::get() > 0u32.into() && Elapsed::<T>::get() > 0u32.into());
        assert!(Progressed::<T>::get() > 0u32.into());
        Ok(())
    }
}
