
//! Estimated weights for `surety_pallet_block_entropy`, until `scripts/weights` has measured them.

#![cfg_attr(rustfmt, rustfmt_skip)]
#![allow(unused_parens)]
#![allow(unused_imports)]
#![allow(missing_docs)]

use frame_support::{traits::Get, weights::Weight};
use core::marker::PhantomData;

/// Weight functions for `surety_pallet_block_entropy`.
pub struct WeightInfo<T>(PhantomData<T>);
impl<T: frame_system::Config> surety_pallet_block_entropy::WeightInfo for WeightInfo<T> {
	/// Storage: `Babe::AuthorVrfRandomness` (r:1 w:0)
	/// Proof: `Babe::AuthorVrfRandomness` (`max_values`: Some(1), `max_size`: Some(33), added: 528, mode: `MaxEncodedLen`)
	/// Storage: `BlockEntropy::Recorded` (r:1 w:1)
	/// Proof: `BlockEntropy::Recorded` (`max_values`: Some(1), `max_size`: Some(8), added: 503, mode: `MaxEncodedLen`)
	/// Storage: `BlockEntropy::Outputs` (r:1 w:1)
	/// Proof: `BlockEntropy::Outputs` (`max_values`: None, `max_size`: Some(48), added: 2523, mode: `MaxEncodedLen`)
	fn record() -> Weight {
		Weight::from_parts(20_000_000, 0)
			.saturating_add(Weight::from_parts(0, 3513))
			.saturating_add(T::DbWeight::get().reads(3))
			.saturating_add(T::DbWeight::get().writes(2))
	}
}
