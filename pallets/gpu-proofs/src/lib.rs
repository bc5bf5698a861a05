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
pub use types::{Commitment, Gathered, Measurement, Round, Stage};
pub use weights::WeightInfo;

#[cfg(feature = "runtime-benchmarks")]
mod benchmarking;
mod calls;
#[cfg(test)]
mod mock;
mod rounds;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod types;
mod view;
mod weights;

use frame_system::pallet_prelude::BlockNumberFor;

/// A round, in this runtime's types.
pub type RoundOf<T> = Round<BlockNumberFor<T>>;

/// Authors whose outputs are put together, for a seed and for a draw. Who has all of these blocks knows what
/// is drawn before it commits to anything, and can then show what it has not computed: with a third of the
/// stake, that is one round in six thousand.
pub const AUTHORS: u32 = 8;

/// The pallet itself; see the crate's documentation.
// The pallet macro turns its own attributes into paths that this lint finds too long.
#[allow(unused_qualifications)]
#[frame_support::pallet]
pub mod pallet {
    use alloc::boxed::Box;
    use frame_support::{
        pallet_prelude::*,
        traits::{Time, tokens},
    };
    use frame_system::pallet_prelude::*;
    use sp_core::H256;
    use sp_runtime::traits::BlockNumberProvider;
    use surety_gpu_proofs::{Fault, MeasuredView, Openings, Plan};
    use surety_types::traits::{BlockEntropy, StakeLedger, StashClosed};

    use super::*;

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(0);

    /// The pallet.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the pallet needs of a runtime.
    #[pallet::config]
    pub trait Config: frame_system::Config<RuntimeEvent: From<Event<Self>>> {
        /// Balances of the ledger of stake. No money moves here.
        type Balance: tokens::Balance;

        /// Says which stash an agent acts for.
        type Stake: StakeLedger<Self::AccountId, Self::Balance>;

        /// What authors give for draws.
        type Entropy: BlockEntropy<BlockNumberFor<Self>>;

        /// Time of the present block, in milliseconds; of the last one while a block begins.
        type Time: Time<Moment = u64>;

        /// Blocks of running finality.
        type Clock: BlockNumberProvider<BlockNumber = BlockNumberFor<Self>>;

        /// Blocks without a round until one begins, on average. No round begins while it is 0.
        type RoundEvery: Get<u32>;

        /// Time for a run, in milliseconds.
        type RunWindow: Get<u64>;

        /// Blocks with room that there have to be in that time for the round to count for who has missed it.
        type BlocksMin: Get<u32>;

        /// Whether this block, at its end, has not left room for one more call with a deadline.
        type IsFull: Get<bool>;

        /// Time to show samples, by the clock.
        type OpenWindow: Get<BlockNumberFor<Self>>;

        /// Whether this block, at its end, has not left room for one more showing.
        type IsFullForShowing: Get<bool>;

        /// Blocks that such ones may add to the time at most.
        type LongerMax: Get<u32>;

        /// Weights of the calls, and of what begins and ends a block.
        type WeightInfo: WeightInfo;
    }

    /// The round that there is now.
    #[pallet::storage]
    pub type CurrentRound<T: Config> = StorageValue<_, RoundOf<T>>;

    /// Blocks by which the time to show samples is longer already, because so many were full.
    #[pallet::storage]
    pub type Longer<T: Config> = StorageValue<_, u32, ValueQuery>;

    /// How many rounds have begun.
    #[pallet::storage]
    pub type RoundsBegun<T: Config> = StorageValue<_, u32, ValueQuery>;

    /// How many rounds are over that count for who has missed them.
    #[pallet::storage]
    pub type RoundsOver<T: Config> = StorageValue<_, u32, ValueQuery>;

    /// Runs that nothing was shown of so far. One of a round that is over has failed.
    #[pallet::storage]
    pub type Commitments<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, Commitment>;

    /// What was shown last, by providers' stashes.
    #[pallet::storage]
    pub type Measurements<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, Measurement>;

    /// What happened.
    #[pallet::event]
    #[pallet::generate_deposit(pub(crate) fn deposit_event)]
    pub enum Event<T: Config> {
        /// A round has begun. Its entropy follows.
        RoundBegun {
            /// Its number.
            round: u32,
        },
        /// The entropy of a round's runs is there: time runs.
        RunsSeeded {
            /// The round's number.
            round: u32,
            /// The entropy.
            entropy: H256,
        },
        /// Samples were drawn of all runs that were committed to.
        SamplesDrawn {
            /// The round's number.
            round: u32,
            /// What they were drawn with.
            samples: H256,
        },
        /// A round is over.
        RoundOver {
            /// Its number.
            round: u32,
            /// Whether it counts for who has missed it.
            is_counted: bool,
        },
        /// A provider has committed to a run.
        RunCommitted {
            /// Provider's stash.
            provider: T::AccountId,
            /// How large the run is.
            plan: Plan,
        },
        /// A provider has shown its samples.
        Measured {
            /// Provider's stash.
            provider: T::AccountId,
            /// What it has shown.
            measurement: Measurement,
        },
    }

    /// Why a call was refused.
    #[pallet::error]
    pub enum Error<T> {
        /// The caller is not the agent of a bonded provider. Bond the stash as a provider, name the caller by
        /// `set_agent`, and confirm with it.
        NotAgent,
        /// No round takes commitments now. Wait for `RunsSeeded`.
        NotRunning,
        /// The run was made from another entropy, of a fork perhaps. Make it again, if there is time.
        OtherEntropy,
        /// The time for it is over. The next round comes by itself.
        TooLate,
        /// No run has this size. Rows are a multiple of 32; layers are at least 8.
        UnsoundPlan,
        /// The provider has committed to a run of this round. It stands.
        AlreadyCommitted,
        /// No round takes samples now. Wait for `SamplesDrawn`.
        NotOpening,
        /// The provider has not committed to a run of this round, or has shown its samples. There is nothing
        /// to do until the next round.
        NothingToOpen,
        /// There are more or fewer samples, or rows of one, than were drawn. Show those that `draw` of
        /// `surety-gpu-proofs` gives for the run and what `SamplesDrawn` says.
        WrongCount,
        /// A row is not the one that was committed to. Compute the run again from the round's entropy, with
        /// the plan that was committed to, and show its rows.
        WrongRow,
        /// A cell does not follow from the rows that it is computed from: the run was not computed, or by a
        /// device that errs. Look at the worker's log.
        WrongCell,
    }

    impl<T> From<Fault> for Error<T> {
        fn from(fault: Fault) -> Self {
            match fault {
                Fault::Plan => Error::UnsoundPlan,
                Fault::Count => Error::WrongCount,
                Fault::Row => Error::WrongRow,
                Fault::Cell => Error::WrongCell,
            }
        }
    }

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        fn on_initialize(now: BlockNumberFor<T>) -> Weight {
            Self::advance(now);
            // A full block that makes the time to show longer counts that, too.
            let longer = T::DbWeight::get().reads_writes(1, 1);
            T::WeightInfo::on_initialize()
                .saturating_add(T::WeightInfo::on_finalize())
                .saturating_add(longer)
        }

        fn on_finalize(_now: BlockNumberFor<T>) {
            Self::note_room();
        }

        #[cfg(feature = "std")]
        fn integrity_test() {
            let block = T::BlockWeights::get().max_block;
            assert!(
                T::WeightInfo::open_run().saturating_mul(4).all_lte(block),
                "showing samples takes more than a quarter of a block"
            );
        }

        #[cfg(feature = "try-runtime")]
        fn try_state(_now: BlockNumberFor<T>) -> Result<(), sp_runtime::TryRuntimeError> {
            Self::do_try_state()
        }
    }

    #[pallet::view_functions]
    impl<T: Config> Pallet<T> {
        /// How fast a provider was measured to be, and over how much memory; nothing where that counts no
        /// more, or it never was. Whatever it declares.
        pub fn measured(stash: T::AccountId) -> Option<MeasuredView> {
            Self::measured_view(&stash)
        }
    }

    /// Calls; each is an origin check and a `do_*`. What is taken costs nothing.
    #[pallet::call(weight = <T as Config>::WeightInfo)]
    impl<T: Config> Pallet<T> {
        /// Commits the provider that the caller is the agent of to a run from this entropy. Operational: all
        /// send it in the same last blocks, which nobody shall fill beforehand.
        #[pallet::call_index(0)]
        #[pallet::weight((<T as Config>::WeightInfo::commit_run(), DispatchClass::Operational))]
        pub fn commit_run(
            origin: OriginFor<T>,
            entropy: H256,
            plan: Plan,
            root: H256,
        ) -> DispatchResultWithPostInfo {
            let agent = ensure_signed(origin)?;
            Self::do_commit_run(agent, entropy, plan, root)?;
            Ok(Pays::No.into())
        }

        /// Shows the samples of the run that the provider has committed to that the caller is the agent of.
        #[pallet::call_index(1)]
        pub fn open_run(origin: OriginFor<T>, openings: Box<Openings>) -> DispatchResultWithPostInfo {
            let agent = ensure_signed(origin)?;
            Self::do_open_run(agent, &openings)?;
            Ok(Pays::No.into())
        }
    }

    impl<T: Config> StashClosed<T::AccountId> for Pallet<T> {
        fn closed(stash: &T::AccountId) {
            Commitments::<T>::remove(stash);
            Measurements::<T>::remove(stash);
        }
    }
}
