//! The benchmark, with as many notes as are kept.

use frame_benchmarking::v2::*;
use frame_system::RawOrigin;
use sp_runtime::SaturatedConversion;

use crate::{Call, Config, Finalised, Notes, Pallet, NOTES_MAX};

#[benchmarks]
mod benches {
    use super::*;

    #[benchmark]
    fn note() -> Result<(), BenchmarkError> {
        frame_system::Pallet::<T>::set_block_number(1_000u32.into());
        for height in (0..NOTES_MAX).rev() {
            Notes::<T>::mutate(|notes| notes.force_push(height.into()));
        }

        #[extrinsic_call]
        _(RawOrigin::None, 999u32.into());

        assert_eq!(Notes::<T>::get().len(), NOTES_MAX.saturated_into::<usize>());
        assert!(Finalised::<T>::get() > 0u32.into());
        Ok(())
    }
}
