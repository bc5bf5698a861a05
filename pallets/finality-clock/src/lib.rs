#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub use pallet::*;
pub use weights::WeightInfo;

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

/// How many notes the clock goes by: enough for a minority of authors to have no say, few enough to follow finality
/// within a minute.
pub const NOTES_MAX: u32 = 21;

/// Most blocks that pass on the [running](Running) clock in one block. GRANDPA finalises a few at a time; what becomes
/// final in one go after a standstill is not time that anybody could have used.
pub const AT_ONCE_MAX: u32 = 6;

/// Blocks that have become final while finality was moving, as a [`Get`](frame_support::traits::Get): what deadlines are
/// measured with. Only differences mean anything.
pub struct Running<T>(core::marker::PhantomData<T>);

/// The pallet itself; see the crate's documentation.
// The pallet macro turns its own attributes into paths that this lint finds too long.
#[allow(unused_qualifications)]
#[frame_support::pallet]
pub mod pallet {
    use frame_support::{pallet_prelude::*, BoundedVec};
    use frame_system::pallet_prelude::*;

    use super::{
        inherent::{self, InherentError, INHERENT_IDENTIFIER},
        median::lower_median,
        Running, WeightInfo, AT_ONCE_MAX, NOTES_MAX,
    };
    use sp_runtime::traits::{Saturating, Zero};

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(0);

    /// The pallet.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the pallet needs of a runtime.
    #[pallet::config]
    pub trait Config: frame_system::Config {
        /// What the call weighs.
        type WeightInfo: WeightInfo;
    }

    /// What the authors of the last blocks have noted, oldest first.
    #[pallet::storage]
    pub type Notes<T: Config> =
        StorageValue<_, BoundedVec<BlockNumberFor<T>, ConstU32<NOTES_MAX>>, ValueQuery>;

    /// What the clock shows.
    #[pallet::storage]
    pub type Finalised<T: Config> = StorageValue<_, BlockNumberFor<T>, ValueQuery>;

    /// How far the running clock is.
    #[pallet::storage]
    pub type Elapsed<T: Config> = StorageValue<_, BlockNumberFor<T>, ValueQuery>;

    /// In which block the last note was taken.
    #[pallet::storage]
    pub type NotedAt<T: Config> = StorageValue<_, BlockNumberFor<T>, ValueQuery>;

    /// Why a note is not taken.
    #[pallet::error]
    pub enum Error<T> {
        /// This block has a note already.
        AlreadyNoted,
        /// A block that is not below this one cannot be final.
        NotBelow,
    }

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
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
        pub fn note(origin: OriginFor<T>, #[pallet::compact] finalised: BlockNumberFor<T>) -> DispatchResult {
            ensure_none(origin)?;
            Self::do_note(finalised)
        }
    }

    #[pallet::inherent]
    impl<T: Config> ProvideInherent for Pallet<T> {
        type Call = Call<T>;
        type Error = InherentError;
        const INHERENT_IDENTIFIER: InherentIdentifier = INHERENT_IDENTIFIER;

        fn create_inherent(data: &InherentData) -> Option<Self::Call> {
            let finalised: BlockNumberFor<T> = inherent::read(data)?;
            // A node that is asked for a block far behind what it knows to be final says nothing.
            (finalised < frame_system::Pallet::<T>::block_number()).then_some(Call::note { finalised })
        }

        /// Blocks are checked on the state of their parent: the number there is the parent's, the highest that can be
        /// final.
        fn check_inherent(call: &Self::Call, _: &InherentData) -> Result<(), Self::Error> {
            match call {
                Call::note { finalised } if *finalised > frame_system::Pallet::<T>::block_number() => {
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
        fn do_note(finalised: BlockNumberFor<T>) -> DispatchResult {
            let now = frame_system::Pallet::<T>::block_number();
            ensure!(NotedAt::<T>::get() < now, Error::<T>::AlreadyNoted);
            ensure!(finalised < now, Error::<T>::NotBelow);
            NotedAt::<T>::put(now);
            let notes = Notes::<T>::mutate(|notes| {
                if notes.is_full() {
                    notes.remove(0);
                }
                // There is room: one was taken out.
                let pushed = notes.try_push(finalised);
                debug_assert!(pushed.is_ok());
                notes.clone()
            });
            if let Some(median) = lower_median(notes.into_inner()) {
                Self::move_to(median);
            }
            Ok(())
        }

        fn move_to(median: BlockNumberFor<T>) {
            let shown = Finalised::<T>::get();
            let passed = median.saturating_sub(shown);
            if passed.is_zero() {
                return;
            }
            Finalised::<T>::put(median);
            let passed = passed.min(AT_ONCE_MAX.into());
            Elapsed::<T>::mutate(|elapsed| *elapsed = elapsed.saturating_add(passed));
        }
    }

    impl<T: Config> Get<BlockNumberFor<T>> for Running<T> {
        fn get() -> BlockNumberFor<T> {
            Elapsed::<T>::get()
        }
    }

    /// The height that finality has come to.
    impl<T: Config> Get<BlockNumberFor<T>> for Pallet<T> {
        fn get() -> BlockNumberFor<T> {
            Finalised::<T>::get()
        }
    }
}
