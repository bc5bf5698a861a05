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

extern crate alloc;

pub use pallet::*;
pub use weights::WeightInfo;

use alloc::vec::Vec;

#[cfg(feature = "runtime-benchmarks")]
mod benchmarking;
pub mod inherent;
mod median;
#[cfg(test)]
mod mock;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod weights;

/// Most blocks that pass on the [running](Running) clock in one block. GRANDPA finalises a few at a time;
/// what becomes final in one go after a standstill is not time that anybody could have used.
pub const AT_ONCE_MAX: u32 = 6;

/// The running clock: blocks that have become final while finality was moving and blocks had room for
/// answers. What deadlines are measured with, in place of the block's height. Only differences mean anything.
///
/// It moves at the end of a block, so that it shows the same to everything in one.
pub struct Running<T>(core::marker::PhantomData<T>);

/// The progress of finality: blocks that have become final, [`AT_ONCE_MAX`] of them at most in one block,
/// full or not. Says whether finality stands still, which whoever fills blocks must not be able to feign.
/// Only differences mean anything.
///
/// It moves when [`Running`] does, and in full blocks besides.
pub struct Progress<T>(core::marker::PhantomData<T>);

/// Who makes blocks. Provided by the runtime.
pub trait BlockAuthors<AccountId> {
    /// Those of the present session, in any order, each once.
    fn all() -> Vec<AccountId>;

    /// Who makes this block, if that is known.
    fn of_this_block() -> Option<AccountId>;

    /// Makes there be `count` of them for benchmarks. One of them makes this block.
    #[cfg(feature = "runtime-benchmarks")]
    fn set_for_benchmark(count: u32);
}

/// The pallet itself; see the crate's documentation.
// The pallet macro turns its own attributes into paths that this lint finds too long.
#[allow(unused_qualifications)]
#[frame_support::pallet]
pub mod pallet {
    use alloc::collections::BTreeSet;
    use frame_support::{pallet_prelude::*, storage::bounded_btree_map::BoundedBTreeMap};
    use frame_system::pallet_prelude::*;

    use super::{
        AT_ONCE_MAX, BlockAuthors, Progress, Running, WeightInfo,
        inherent::{self, INHERENT_IDENTIFIER, InherentError},
        median::lower_median,
    };
    use sp_runtime::traits::{BlockNumberProvider, Saturating, Zero};

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(1);

    /// The pallet.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the pallet needs of a runtime.
    #[pallet::config]
    pub trait Config: frame_system::Config {
        /// Most authorities at once.
        type AuthoritiesMax: Get<u32>;

        /// Who they are, and which of them makes this block.
        type Authors: BlockAuthors<Self::AccountId>;

        /// Whether this block, at its end, has not left room for one more of what somebody loses money for
        /// not saying in time.
        type IsFull: Get<bool>;

        /// What the call weighs, and what the end of a block does.
        type WeightInfo: WeightInfo;
    }

    /// What has each authority noted last.
    #[pallet::storage]
    pub type Notes<T: Config> =
        StorageValue<_, BoundedBTreeMap<T::AccountId, BlockNumberFor<T>, T::AuthoritiesMax>, ValueQuery>;

    /// The height that finality has come to.
    #[pallet::storage]
    pub type Finalized<T: Config> = StorageValue<_, BlockNumberFor<T>, ValueQuery>;

    /// What the running clock shows: the time that everybody calls now.
    #[pallet::storage]
    pub type Elapsed<T: Config> = StorageValue<_, BlockNumberFor<T>, ValueQuery>;

    /// How far finality has come, without what became final in one go.
    #[pallet::storage]
    pub type Progressed<T: Config> = StorageValue<_, BlockNumberFor<T>, ValueQuery>;

    /// In which block the last note was taken.
    #[pallet::storage]
    pub type NotedAt<T: Config> = StorageValue<_, BlockNumberFor<T>, ValueQuery>;

    /// Why a note is not taken.
    #[pallet::error]
    pub enum Error<T> {
        /// This block has a note already. An author notes once, by the inherent: no one else calls this.
        AlreadyNoted,
        /// A block that is not below this one cannot be final. Note the number of the last one that is.
        NotBelow,
    }

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        /// Only for what the end of the block weighs.
        fn on_initialize(_now: BlockNumberFor<T>) -> Weight {
            T::WeightInfo::tick()
        }

        fn on_finalize(now: BlockNumberFor<T>) {
            if NotedAt::<T>::get() == now {
                Self::tick();
            }
        }

        #[cfg(feature = "try-runtime")]
        fn try_state(_now: BlockNumberFor<T>) -> Result<(), sp_runtime::TryRuntimeError> {
            Self::do_try_state()
        }
    }

    #[pallet::call]
    impl<T: Config> Pallet<T> {
        /// Takes down what the block's author has seen finalised.
        ///
        /// # Errors
        /// `AlreadyNoted`, `NotBelow`.
        #[pallet::call_index(0)]
        #[pallet::weight((T::WeightInfo::note(), DispatchClass::Mandatory))]
        pub fn note(origin: OriginFor<T>, #[pallet::compact] finalized: BlockNumberFor<T>) -> DispatchResult {
            ensure_none(origin)?;
            Self::do_note(finalized)
        }
    }

    #[pallet::inherent]
    impl<T: Config> ProvideInherent for Pallet<T> {
        type Call = Call<T>;
        type Error = InherentError;
        const INHERENT_IDENTIFIER: InherentIdentifier = INHERENT_IDENTIFIER;

        fn create_inherent(data: &InherentData) -> Option<Self::Call> {
            let finalized: BlockNumberFor<T> = inherent::read(data)?;
            // A node that is asked for a block far behind what it knows to be final says nothing.
            (finalized < frame_system::Pallet::<T>::block_number()).then_some(Call::note { finalized })
        }

        /// Blocks are checked on the state of their parent: the number there is the parent's, the highest
        /// that can be final.
        fn check_inherent(call: &Self::Call, _: &InherentData) -> Result<(), Self::Error> {
            match call {
                Call::note { finalized } if *finalized > frame_system::Pallet::<T>::block_number() => {
                    Err(InherentError::NotBelow)
                }
                _ => Ok(()),
            }
        }

        fn is_inherent(call: &Self::Call) -> bool {
            matches!(call, Call::note { .. })
        }
    }

    impl<T: Config> Pallet<T> {
        fn do_note(finalized: BlockNumberFor<T>) -> DispatchResult {
            let now = frame_system::Pallet::<T>::block_number();
            ensure!(NotedAt::<T>::get() < now, Error::<T>::AlreadyNoted);
            ensure!(finalized < now, Error::<T>::NotBelow);
            let authorities: BTreeSet<_> = T::Authors::all().into_iter().collect();
            // Of anybody else it counts for nothing. An error would make the block invalid.
            let author = T::Authors::of_this_block().filter(|author| authorities.contains(author));
            if let Some(author) = author {
                Notes::<T>::mutate(|notes| {
                    // Those who make no blocks any more leave room for those who do.
                    notes.retain(|noted, _| authorities.contains(noted));
                    let inserted = notes.try_insert(author, finalized);
                    debug_assert!(inserted.is_ok(), "there are as many authorities as there may be");
                });
            }
            NotedAt::<T>::put(now);
            Ok(())
        }

        /// The lower median over the newest note of each of the present authorities. Who has noted nothing
        /// yet says 0.
        pub(crate) fn median() -> BlockNumberFor<T> {
            let notes = Notes::<T>::get();
            let noted = |authority| notes.get(authority).copied().unwrap_or_else(Zero::zero);
            lower_median(T::Authors::all().iter().map(noted).collect()).unwrap_or_else(Zero::zero)
        }

        /// Moves all clocks on to what most authorities have seen.
        pub(crate) fn tick() {
            let median = Self::median();
            let passed = median.saturating_sub(Finalized::<T>::get());
            if passed.is_zero() {
                return;
            }
            Finalized::<T>::put(median);
            let passed = passed.min(AT_ONCE_MAX.into());
            Progressed::<T>::mutate(|progressed| *progressed = progressed.saturating_add(passed));
            // Who was kept out of this block could not have used its time.
            if !T::IsFull::get() {
                Elapsed::<T>::mutate(|elapsed| *elapsed = elapsed.saturating_add(passed));
            }
        }
    }

    impl<T: Config> BlockNumberProvider for Running<T> {
        type BlockNumber = BlockNumberFor<T>;

        fn current_block_number() -> BlockNumberFor<T> {
            Elapsed::<T>::get()
        }

        #[cfg(any(feature = "std", feature = "runtime-benchmarks"))]
        fn set_block_number(block: BlockNumberFor<T>) {
            Elapsed::<T>::put(block);
        }
    }

    impl<T: Config> BlockNumberProvider for Progress<T> {
        type BlockNumber = BlockNumberFor<T>;

        fn current_block_number() -> BlockNumberFor<T> {
            Progressed::<T>::get()
        }

        #[cfg(any(feature = "std", feature = "runtime-benchmarks"))]
        fn set_block_number(block: BlockNumberFor<T>) {
            Progressed::<T>::put(block);
        }
    }

    /// The height that finality has come to.
    impl<T: Config> Get<BlockNumberFor<T>> for Pallet<T> {
        fn get() -> BlockNumberFor<T> {
            Finalized::<T>::get()
        }
    }
}
