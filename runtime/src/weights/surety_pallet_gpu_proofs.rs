//! Stand-in weights for `surety_pallet_gpu_proofs`, written by hand and not measured: each is some times what
//! the call takes natively. `scripts/weights surety_pallet_gpu_proofs` puts measured ones in this place.

#![cfg_attr(rustfmt, rustfmt_skip)]
#![allow(unused_parens)]
#![allow(unused_imports)]
#![allow(missing_docs)]

use frame_support::{traits::Get, weights::Weight};
use core::marker::PhantomData;

/// Weight functions for `surety_pallet_gpu_proofs`.
pub struct WeightInfo<T>(PhantomData<T>);
impl<T: frame_system::Config> surety_pallet_gpu_proofs::WeightInfo for WeightInfo<T> {
	// The round, the last block with an output and nine of these, time, the clock, a parameter.
	fn on_initialize() -> Weight {
		Weight::from_parts(100_000_000, 0)
			.saturating_add(Weight::from_parts(0, 25_000))
			.saturating_add(T::DbWeight::get().reads(14))
			.saturating_add(T::DbWeight::get().writes(2))
	}
	// The round, and time.
	fn on_finalize() -> Weight {
		Weight::from_parts(30_000_000, 0)
			.saturating_add(Weight::from_parts(0, 2_000))
			.saturating_add(T::DbWeight::get().reads(2))
			.saturating_add(T::DbWeight::get().writes(1))
	}
	// The agent, its stash's stake, the round, time, a run that has failed and what was shown before it.
	fn commit_run() -> Weight {
		Weight::from_parts(100_000_000, 0)
			.saturating_add(Weight::from_parts(0, 6_000))
			.saturating_add(T::DbWeight::get().reads(6))
			.saturating_add(T::DbWeight::get().writes(2))
	}
	// 1.3 ms natively, on a busy machine; six times that. As many reads, and the clock.
	fn open_run() -> Weight {
		Weight::from_parts(8_000_000_000, 0)
			.saturating_add(Weight::from_parts(0, 6_000))
			.saturating_add(T::DbWeight::get().reads(7))
			.saturating_add(T::DbWeight::get().writes(2))
	}
}
