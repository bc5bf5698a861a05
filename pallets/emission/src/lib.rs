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
pub use surety_emission::{CAP, genesis};
pub use types::{Allowance, Supply};
pub use weights::WeightInfo;

mod asset;
#[cfg(feature = "runtime-benchmarks")]
mod benchmarking;
#[cfg(test)]
mod mock;
mod providers;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod types;
mod validators;
mod weights;

use frame_system::pallet_prelude::BlockNumberFor;

/// What is kept of a provider, in this runtime's types.
pub type AllowanceOf<T> = Allowance<<T as Config>::Balance, BlockNumberFor<T>>;

/// Most operators that are paid for a day.
pub const OPERATORS_MAX: u32 = 1_000;

/// The pallet itself; see the crate's documentation.
// The pallet macro turns its own attributes into paths that this lint finds too long.
#[allow(unused_qualifications)]
#[frame_support::pallet]
pub mod pallet {
    use core::marker::PhantomData;
    use frame_support::{
        DefaultNoBound,
        pallet_prelude::*,
        traits::{fungible, tokens},
    };
    use frame_system::pallet_prelude::*;
    use sp_runtime::Permill;
    use surety_types::traits::{PoolLedger, Reliability, StakeLedger, StashClosed, ValidatorService};

    use super::*;

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(1);

    /// The pallet.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the pallet needs of a runtime.
    #[pallet::config]
    pub trait Config: frame_system::Config<RuntimeEvent: From<Event<Self>>> {
        /// Plancks.
        type Balance: tokens::Balance + Into<u128> + From<u128>;

        /// SURE.
        type Currency: fungible::Mutate<Self::AccountId, Balance = Self::Balance>;

        /// Pools that are paid for their operators' blocks.
        type Pools: PoolLedger<Self::AccountId, Self::Balance>;

        /// What operators did.
        type Services: ValidatorService<Self::AccountId, Self::Balance>;

        /// Stake of providers.
        type Stake: StakeLedger<Self::AccountId, Self::Balance>;

        /// Deadlines that providers have missed.
        type Reliability: Reliability<Self::AccountId>;

        /// Where validators' part of the protocol fees is collected.
        type ValidatorPot: Get<Self::AccountId>;

        /// Part of a protocol fee that goes there.
        type ValidatorShare: Get<Permill>;

        /// Sessions after which operators are paid: a day.
        type RewardSessions: Get<u32>;

        /// What paying weighs.
        type WeightInfo: WeightInfo;
    }

    /// All that was ever minted, genesis included, in plancks. It never becomes less.
    #[pallet::storage]
    pub type Minted<T: Config> = StorageValue<_, T::Balance, ValueQuery>;

    /// What providers' stake has earned, and their work has not claimed yet. As many as there are stashes.
    #[pallet::storage]
    pub type Allowances<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, AllowanceOf<T>>;

    /// Nothing of its own: what is endowed is the balances' to say.
    #[pallet::genesis_config]
    #[derive(DefaultNoBound)]
    pub struct GenesisConfig<T: Config> {
        /// Nothing.
        #[serde(skip)]
        pub _config: PhantomData<T>,
    }

    #[pallet::genesis_build]
    impl<T: Config> BuildGenesisConfig for GenesisConfig<T> {
        fn build(&self) {
            let endowed = asset::issued::<T>();
            assert!(
                endowed.into() <= surety_emission::CAP,
                "the genesis endows more than 21 million SURE"
            );
            Minted::<T>::put(endowed);
        }
    }

    /// What was minted for whom.
    #[pallet::event]
    #[pallet::generate_deposit(pub(crate) fn deposit_event)]
    pub enum Event<T: Config> {
        /// Operators were paid for a day; what each pool got, delegation says.
        DayPaid {
            /// The day's last session.
            session: u32,
            /// Minted for all of them together, in plancks.
            minted: T::Balance,
            /// Protocol fees that they got beside it, in plancks.
            fees: T::Balance,
        },
        /// A day could not be paid. It is paid with the next one.
        DayNotPaid {
            /// The day's last session.
            session: u32,
            /// Why.
            error: DispatchError,
        },
        /// A provider was paid for work beyond its price.
        WorkPaid {
            /// Provider's stash.
            provider: T::AccountId,
            /// Amount, in plancks.
            minted: T::Balance,
        },
        /// An operator was paid for what it served of a day, as its stake left its pool.
        LeavingPaid {
            /// Operator's account.
            operator: T::AccountId,
            /// Minted for its pool, in plancks. Its part of the fees comes when the day is over.
            minted: T::Balance,
        },
        /// That could not be paid. Where there is a pool still, it is paid with the day.
        LeavingNotPaid {
            /// Operator's account.
            operator: T::AccountId,
            /// Why.
            error: DispatchError,
        },
    }

    /// Why nothing is minted.
    #[pallet::error]
    pub enum Error<T> {
        /// More would be minted than may ever exist. This is a fault of the runtime: please report it.
        BeyondCap,
    }

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        #[cfg(feature = "std")]
        fn integrity_test() {
            let block = T::BlockWeights::get().max_block;
            assert!(
                T::WeightInfo::pay_day(OPERATORS_MAX).all_lte(block),
                "a day of all operators has to be paid in a block"
            );
        }

        #[cfg(feature = "try-runtime")]
        fn try_state(_now: BlockNumberFor<T>) -> Result<(), sp_runtime::TryRuntimeError> {
            Self::do_try_state()
        }
    }

    #[pallet::view_functions]
    impl<T: Config> Pallet<T> {
        /// How much SURE there is, was ever minted and may still be, and which part of the rate is paid now.
        pub fn supply() -> Supply<T::Balance> {
            let minted = asset::minted::<T>();
            Supply {
                issued: asset::issued::<T>(),
                minted: minted.into(),
                left: surety_emission::left(minted).into(),
                tau: surety_emission::tau(minted),
            }
        }

        /// What a provider's work could claim now, in plancks, if its fees were high enough.
        pub fn allowance(provider: T::AccountId) -> T::Balance {
            Self::allowance_now(&provider).into()
        }
    }

    impl<T: Config> StashClosed<T::AccountId> for Pallet<T> {
        fn closed(stash: &T::AccountId) {
            Allowances::<T>::remove(stash);
        }
    }
}
