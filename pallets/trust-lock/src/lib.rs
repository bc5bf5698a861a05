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

#[cfg(feature = "runtime-benchmarks")]
mod benchmarking;
mod clock;
mod convictions;
mod insurance;
pub mod migrations;
mod record;
mod slashes;
mod sweep;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod validators;
pub mod weights;

pub use convictions::Offence;
pub use pallet::*;
pub use slashes::quintillionths;
pub use weights::WeightInfo;

#[cfg(feature = "runtime-benchmarks")]
pub use benchmarking::fill_convictions;

use frame_support::{BoundedVec, traits::ConstU32};
use frame_system::pallet_prelude::BlockNumberFor;
use surety_types::{
    limits,
    trust::{Conviction, Slash, TrustRecord},
};

/// A slash in this runtime's types.
pub type SlashOf<T> =
    Slash<<T as frame_system::Config>::AccountId, <T as Config>::Balance, BlockNumberFor<T>>;

/// Verifiers that share in a slash, in this runtime's types.
pub type FindersOf<T> = BoundedVec<<T as frame_system::Config>::AccountId, ConstU32<{ limits::FINDERS_MAX }>>;

/// A conviction in this runtime's types.
pub type ConvictionOf<T> =
    Conviction<<T as frame_system::Config>::AccountId, <T as Config>::Balance, BlockNumberFor<T>>;

/// What is remembered of a stash, in this runtime's types.
pub type RecordOf<T> = TrustRecord<BlockNumberFor<T>>;

#[frame_support::pallet]
#[allow(unused_qualifications)] // In what the macro writes.
pub mod pallet {
    use super::*;
    use frame_support::{
        pallet_prelude::*,
        traits::{EnsureOrigin, fungible::Mutate, tokens},
    };
    use frame_system::pallet_prelude::*;
    use sp_runtime::{Permill, Perquintill, traits::BlockNumberProvider};
    #[cfg(feature = "runtime-benchmarks")]
    use surety_types::traits::ProviderDirectory;
    use surety_types::{
        TaskId,
        traits::{EquivocationSpared, PoolLedger, StakeLedger},
        trust::{FaultKind, JailTerms, SlashCause, SlashId},
    };

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(2);

    /// Stakes at risk: what their owners did wrong, and what they lose for it.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the runtime provides.
    #[pallet::config]
    pub trait Config: frame_system::Config<RuntimeEvent: From<Event<Self>>> {
        /// Plancks.
        type Balance: tokens::Balance + Into<u128> + From<u128>;

        /// SURE, of the insurance pool.
        type Currency: Mutate<Self::AccountId, Balance = Self::Balance>;

        /// Stake of providers and verifiers, and their agents.
        type Stake: StakeLedger<Self::AccountId, Self::Balance>;

        /// Stake behind validators.
        type Pools: PoolLedger<Self::AccountId, Self::Balance>;

        /// Hears that a validator was spared.
        type Validators: EquivocationSpared<Self::AccountId>;

        /// The clock that every window is measured with. It stands still while finality does, and may move on
        /// by several blocks in one.
        type BlockNumberProvider: BlockNumberProvider<BlockNumber = BlockNumberFor<Self>>;

        /// Blocks for which whoever misses one deadline gets no work.
        type SuspensionPeriod: Get<BlockNumberFor<Self>>;

        /// Blocks for which a slash can be vetoed before it is carried out.
        type SlashDeferral: Get<BlockNumberFor<Self>>;

        /// Part of its other stake that a provider loses with its lock when the fault stands alone.
        type StakePart: Get<Permill>;

        /// Part of a slash for the verifiers that found something else, or for whoever proved the fault.
        type FinderShare: Get<Permill>;

        /// Part of a slash for the task's client, or for the insurance pool.
        type ClientShare: Get<Permill>;

        /// Blocks within which faults count as correlated.
        type CorrelationWindow: Get<BlockNumberFor<Self>>;

        /// Blocks for which an offender gets no work.
        type JailPeriod: Get<BlockNumberFor<Self>>;

        /// Clean tasks in a row after which a provider is audited like anybody else.
        type ProbationTasks: Get<u32>;

        /// Pays clients that were told a wrong result, and gets the shares of slashes that nobody else has a
        /// right to.
        type InsurancePool: Get<Self::AccountId>;

        /// Who may veto slashes that have not been carried out.
        type VetoOrigin: EnsureOrigin<Self::RuntimeOrigin>;

        /// Weights of the calls.
        type WeightInfo: WeightInfo;

        /// Where a benchmark registers the provider that loses everything.
        #[cfg(feature = "runtime-benchmarks")]
        type Providers: ProviderDirectory<Self::AccountId>;
    }

    /// The number of the next slash.
    #[pallet::storage]
    pub type NextSlashId<T: Config> = StorageValue<_, SlashId, ValueQuery>;

    /// Slashes that are not carried out yet, by their number.
    #[pallet::storage]
    pub type Slashes<T: Config> = StorageMap<_, Twox64Concat, SlashId, SlashOf<T>>;

    /// All slashes before this one are carried out, or were vetoed.
    #[pallet::storage]
    pub type SlashesSweptTo<T: Config> = StorageValue<_, SlashId, ValueQuery>;

    /// What is remembered of stashes.
    #[pallet::storage]
    pub type Records<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, RecordOf<T>, ValueQuery>;

    /// Why stashes are in jail. Terms that are over go when the next is added, or the stash leaves.
    #[pallet::storage]
    pub type JailedFor<T: Config> =
        StorageMap<_, Blake2_128Concat, T::AccountId, JailTerms<BlockNumberFor<T>>, ValueQuery>;

    /// The record that the sweep has looked at last; nothing when it begins with the first.
    #[pallet::storage]
    pub type RecordsSweptTo<T: Config> = StorageValue<_, T::AccountId>;

    /// Providers convicted lately, each once.
    #[pallet::storage]
    pub type Convictions<T: Config> =
        StorageValue<_, BoundedVec<ConvictionOf<T>, ConstU32<{ limits::CONVICTIONS_MAX }>>, ValueQuery>;

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        fn on_idle(_now: BlockNumberFor<T>, remaining_weight: Weight) -> Weight {
            Self::sweep(remaining_weight)
        }

        #[cfg(feature = "std")]
        #[allow(clippy::arithmetic_side_effects, reason = "parts per million, in a test")]
        fn integrity_test() {
            let shares = T::FinderShare::get().deconstruct() + T::ClientShare::get().deconstruct();
            assert!(shares < 1_000_000, "some of a slash has to be burned");
        }

        #[cfg(feature = "try-runtime")]
        fn try_state(_now: BlockNumberFor<T>) -> Result<(), sp_runtime::TryRuntimeError> {
            Self::do_try_state()
        }
    }

    /// What the pallet tells the world.
    #[pallet::event]
    #[pallet::generate_deposit(pub(super) fn deposit_event)]
    pub enum Event<T: Config> {
        /// A slash will be carried out.
        SlashDeferred {
            /// Slash id.
            slash: SlashId,
            /// What it is about.
            cause: SlashCause,
            /// Offender's stash, or the operator of a pool.
            offender: T::AccountId,
            /// Kind of the fault.
            kind: FaultKind,
            /// Locked stake that it takes at least, in plancks.
            lock: T::Balance,
            /// Part that it takes beside that, at least: of the rest of a stash's stake, or of a pool.
            part: Perquintill,
            /// It can be vetoed up to this time, and until it is carried out.
            until: BlockNumberFor<T>,
        },
        /// A slash takes more than was said: a committee has not earned all that was set aside for it, or
        /// more validators have done the same at the same time.
        SlashRaised {
            /// Slash id.
            slash: SlashId,
            /// Locked stake that it takes at least now, in plancks.
            lock: T::Balance,
            /// Part that it takes beside that, at least.
            part: Perquintill,
        },
        /// A slash was vetoed.
        SlashCancelled {
            /// Slash id.
            slash: SlashId,
            /// The stash that was spared.
            offender: T::AccountId,
        },
        /// A slash was carried out.
        SlashCarriedOut {
            /// Slash id.
            slash: SlashId,
            /// Offender's stash.
            offender: T::AccountId,
            /// What it lost in all, in plancks.
            taken: T::Balance,
            /// The part for the verifiers that found something else, together; or for whoever proved the
            /// fault, or for the insurance pool.
            finder: T::Balance,
            /// The part for the client, or for the insurance pool.
            client: T::Balance,
        },
        /// A stash gets no work for a while.
        Jailed {
            /// Stash account.
            stash: T::AccountId,
            /// Up to this time.
            until: BlockNumberFor<T>,
        },
        /// A stash gets no work for a while and cannot unbond, because it missed a deadline. It loses no
        /// stake for that.
        Suspended {
            /// Stash account.
            stash: T::AccountId,
            /// Up to this time.
            until: BlockNumberFor<T>,
        },
        /// A stash gets work again before its time, because of a veto.
        Released {
            /// Stash account.
            stash: T::AccountId,
        },
        /// A client was paid because it had been told a wrong result.
        InsurancePaid {
            /// Task id.
            task: TaskId,
            /// Client's account.
            client: T::AccountId,
            /// Amount, in plancks.
            amount: T::Balance,
        },
    }

    /// Why calls do nothing.
    #[pallet::error]
    pub enum Error<T> {
        /// There is no such slash, or it was carried out or vetoed. Check its number.
        UnknownSlash,
        /// The slash waits for a veto. Carry it out when the running clock has passed its `until`.
        NotDue,
    }

    #[pallet::call]
    impl<T: Config> Pallet<T> {
        /// Vetoes a slash. Only as long as it is not carried out.
        ///
        /// # Errors
        /// `UnknownSlash`.
        #[pallet::call_index(0)]
        #[pallet::weight(Pallet::<T>::cancel_weight())]
        pub fn cancel_slash(origin: OriginFor<T>, slash: SlashId) -> DispatchResult {
            T::VetoOrigin::ensure_origin(origin)?;
            Self::do_cancel_slash(slash)
        }

        /// Carries out a slash that has waited long enough. Anybody may; idle blocks do it as well.
        ///
        /// # Errors
        /// `UnknownSlash`, `NotDue`.
        #[pallet::call_index(1)]
        #[pallet::weight(Pallet::<T>::carry_out_weight())]
        pub fn carry_out_slash(origin: OriginFor<T>, slash: SlashId) -> DispatchResult {
            ensure_signed(origin)?;
            Self::do_carry_out_slash(slash)
        }
    }
}
