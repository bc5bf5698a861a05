#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

pub use pallet::*;
pub use weights::WeightInfo;

#[cfg(feature = "runtime-benchmarks")]
mod benchmarking;
#[cfg(test)]
mod mock;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod weights;

/// How many outputs are kept.
pub const KEPT: u32 = 256;

/// The pallet itself; see the crate's documentation.
// The pallet macro turns its own attributes into paths that this lint finds too long.
#[allow(unused_qualifications)]
#[frame_support::pallet]
pub mod pallet {
    use frame_support::pallet_prelude::*;
    use frame_system::pallet_prelude::*;
    use sp_core::H256;
    use sp_runtime::traits::{One, Saturating};
    use surety_types::traits::BlockEntropy;

    use super::{KEPT, WeightInfo};

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(1);

    /// The pallet.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the pallet needs of a runtime.
    #[pallet::config]
    pub trait Config: frame_system::Config {
        /// While a block begins, the VRF output of the author of the one before it; where that had none, the
        /// last that there was.
        type AuthorOutput: Get<Option<H256>>;

        /// What the beginning of a block weighs.
        type WeightInfo: WeightInfo;
    }

    /// Outputs, each with its block, in a ring.
    #[pallet::storage]
    pub type Outputs<T: Config> = StorageMap<_, Twox64Concat, u32, (H256, BlockNumberFor<T>)>;

    /// How many outputs there were so far: the next one's number.
    #[pallet::storage]
    pub type Recorded<T: Config> = StorageValue<_, u64, ValueQuery>;

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        fn on_initialize(now: BlockNumberFor<T>) -> Weight {
            if let Some(output) = T::AuthorOutput::get() {
                Self::record(output, now.saturating_sub(One::one()));
            }
            T::WeightInfo::record()
        }

        #[cfg(feature = "try-runtime")]
        fn try_state(_now: BlockNumberFor<T>) -> Result<(), sp_runtime::TryRuntimeError> {
            Self::do_try_state()
        }
    }

    impl<T: Config> Pallet<T> {
        /// Keeps the output of a block, unless it is an older one's.
        pub(crate) fn record(output: H256, block: BlockNumberFor<T>) {
            let number = Recorded::<T>::get();
            let newest = number.checked_sub(1).and_then(Self::output);
            if newest.is_some_and(|(known, _)| known == output) {
                return;
            }
            Outputs::<T>::insert(Self::place(number), (output, block));
            Recorded::<T>::put(number.saturating_add(1));
        }

        /// Where the output of this number is, while it is kept.
        fn place(number: u64) -> u32 {
            let place = number.checked_rem(KEPT.into());
            // It is less than `KEPT`.
            place.and_then(|place| place.try_into().ok()).unwrap_or_default()
        }

        pub(crate) fn output(number: u64) -> Option<(H256, BlockNumberFor<T>)> {
            Outputs::<T>::get(Self::place(number))
        }
    }

    impl<T: Config> BlockEntropy<BlockNumberFor<T>> for Pallet<T> {
        /// By bisection: blocks without an output leave gaps.
        fn first_after(block: BlockNumberFor<T>) -> Option<(H256, BlockNumberFor<T>)> {
            let end = Recorded::<T>::get();
            let (mut low, mut high) = (end.saturating_sub(KEPT.into()), end);
            while low < high {
                let middle = low.midpoint(high);
                if Self::output(middle).is_some_and(|(_, of)| of > block) {
                    high = middle;
                } else {
                    low = middle.saturating_add(1);
                }
            }
            (low < end).then(|| Self::output(low))?
        }

        #[cfg(feature = "runtime-benchmarks")]
        fn fill_for_benchmark(block: BlockNumberFor<T>) {
            for number in 1..=KEPT {
                let (output, of) = (
                    H256(sp_core::U256::from(number).to_big_endian()),
                    block.saturating_add(number.into()),
                );
                Outputs::<T>::insert(Self::place(number.into()), (output, of));
            }
            Recorded::<T>::put(u64::from(KEPT).saturating_add(1));
        }
    }
}
