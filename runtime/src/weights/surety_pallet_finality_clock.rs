use core::marker::PhantomData;
use frame_support::{traits::Get, weights::Weight};

pub struct WeightInfo<T>(PhantomData<T>);
impl<T: frame_system::Config> surety_pallet_finality_clock::WeightInfo for WeightInfo<T> {
    fn note() -> Weight {
        Weight::from_parts(20_000_000, 2_000).saturating_add(T::DbWeight::get().reads_writes(3, 3))
    }
}
