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
mod calls;
mod election;
mod key_owners;
#[cfg(test)]
mod mock;
mod offences;
mod presence;
mod services;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod types;
pub mod weights;

pub use key_owners::KeyOwners;
pub use pallet::*;
pub use types::{Candidate, ChillReason, Punishment, missing};
pub use weights::WeightInfo;

use surety_types::traits::Service;

/// What a validator did, in this runtime's types.
pub type ServiceOf<T> = Service<<T as Config>::Balance>;

/// What a validator loses, in this runtime's types.
pub type PunishmentOf<T> = Punishment<<T as Config>::Balance>;

#[frame_support::pallet]
#[allow(unused_qualifications)] // In what the macro writes.
pub mod pallet {
    use alloc::vec::Vec;
    use frame_support::{pallet_prelude::*, traits::tokens};
    use frame_system::pallet_prelude::*;
    use pallet_session::historical;
    use sp_runtime::{Perbill, traits::BlockNumberProvider};
    use sp_staking::SessionIndex;
    use surety_types::traits::{Jail, PoolLedger, ServicePay, ValidatorPenalties};

    use super::{Candidate, ChillReason, PunishmentOf, ServiceOf, WeightInfo};

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(1);

    /// Who validates.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the runtime provides.
    #[pallet::config]
    pub trait Config:
        frame_system::Config<RuntimeEvent: From<Event<Self>>>
        + pallet_session::Config<ValidatorId = <Self as frame_system::Config>::AccountId>
        + historical::Config<FullIdentification = ()>
    {
        /// Plancks.
        type Balance: tokens::Balance;

        /// Whose stake backs which operator.
        type Pools: PoolLedger<Self::AccountId, Self::Balance>;

        /// What validators lose for what they sign, and for being absent.
        type Penalties: ValidatorPenalties<Self::AccountId>;

        /// Who gets no work for a while.
        type Jail: Jail<Self::AccountId>;

        /// What service is worth.
        type Pay: ServicePay<Self::Balance>;

        /// The progress of finality, whether or not blocks are full: whoever fills them must neither unpay
        /// validators nor put off an election.
        type BlockNumberProvider: BlockNumberProvider<BlockNumber = BlockNumberFor<Self>>;

        /// Stake of its own that an operator has to have, in plancks.
        type MinSelfBond: Get<Self::Balance>;

        /// Where fewer validators than that are elected, those before them stay beside them.
        type ValidatorsMin: Get<u32>;

        /// More validators than that are not elected.
        type ValidatorsMax: Get<u32>;

        /// Most candidates.
        #[pallet::constant]
        type CandidatesMax: Get<u32>;

        /// Sessions for which it can be proved who held which keys.
        #[pallet::constant]
        type SessionsKept: Get<SessionIndex>;

        /// Weights of the calls, and of what sessions do.
        type WeightInfo: WeightInfo;
    }

    /// Operators that validate, have validated, or want to, while they have a pool.
    #[pallet::storage]
    pub type Candidates<T: Config> = CountedStorageMap<_, Blake2_128Concat, T::AccountId, Candidate>;

    /// Blocks of each validator in this session.
    #[pallet::storage]
    pub type Authored<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, u32, ValueQuery>;

    /// What candidates did since emission last took it.
    #[pallet::storage]
    pub type Services<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, ServiceOf<T>>;

    /// The validators of the running session, and the keys that they sign with in it. Those of the next one
    /// are `QueuedKeys` of Session, which forgets them when that begins.
    #[pallet::storage]
    #[pallet::unbounded] // As Session's: keys have no longest encoding for it. As many as validators.
    pub type RunningKeys<T: Config> = StorageValue<_, Vec<(T::AccountId, T::Keys)>, ValueQuery>;

    /// How far finality had come when the session began.
    #[pallet::storage]
    pub type BeganAt<T: Config> = StorageValue<_, BlockNumberFor<T>, ValueQuery>;

    /// Whether finality stood still for most of the last session.
    #[pallet::storage]
    pub type StoodStill<T: Config> = StorageValue<_, bool, ValueQuery>;

    /// What operators lose for what they signed twice, until nobody can report any more of it and, unless it
    /// was vetoed, none of their slashes waits. They cannot have their stake back by then, so that there are
    /// no more of them than stake is enough for.
    #[pallet::storage]
    pub type Punished<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, PunishmentOf<T>>;

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        /// Only for what noting the author weighs, which Authorship does not count.
        fn on_initialize(_now: BlockNumberFor<T>) -> Weight {
            <T as Config>::WeightInfo::note_author()
        }

        #[cfg(feature = "std")]
        fn integrity_test() {
            assert!(
                T::CandidatesMax::get() >= T::ValidatorsMax::get(),
                "there would be more validators than candidates"
            );
            assert!(T::SessionsKept::get() > 0, "nobody could be held to anything");
            let change = <T as Config>::WeightInfo::change_session();
            assert!(
                change
                    .saturating_add(T::Pay::session_ended_weight())
                    .all_lte(T::BlockWeights::get().max_block),
                "a change of the session in which a day is paid has to fit into a block"
            );
        }

        #[cfg(feature = "try-runtime")]
        fn try_state(_now: BlockNumberFor<T>) -> Result<(), sp_runtime::TryRuntimeError> {
            Self::do_try_state()
        }
    }

    /// Candidates that there are from the beginning.
    #[pallet::genesis_config]
    #[derive(frame_support::DefaultNoBound)]
    pub struct GenesisConfig<T: Config> {
        /// Operators with keys, and a pool with `MinSelfBond` of their own, whose nodes are there.
        pub candidates: Vec<T::AccountId>,
    }

    #[pallet::genesis_build]
    impl<T: Config> BuildGenesisConfig for GenesisConfig<T> {
        fn build(&self) {
            for operator in &self.candidates {
                let known = Pallet::<T>::do_validate(operator.clone());
                assert!(known.is_ok(), "{operator:?} is no candidate: {known:?}");
                Candidates::<T>::mutate_exists(operator, |kept| {
                    if let Some(candidate) = kept {
                        candidate.proven = true;
                    }
                });
            }
        }
    }

    /// What the pallet tells the world.
    #[pallet::event]
    #[pallet::generate_deposit(pub(super) fn deposit_event)]
    pub enum Event<T: Config> {
        /// An operator can be elected.
        Validates {
            /// Operator's account.
            operator: T::AccountId,
        },
        /// An operator cannot be elected any longer. It works to the end of the next session.
        Chilled {
            /// Operator's account.
            operator: T::AccountId,
            /// Why.
            reason: ChillReason,
        },
        /// An operator has signed two of a kind.
        Equivocated {
            /// Operator's account.
            operator: T::AccountId,
            /// Session that the first report of its offence named.
            session: SessionIndex,
            /// Part of what was behind it then that is lost, unless that is vetoed.
            part: Perbill,
        },
        /// Other validators are elected, or the same with other keys.
        Elected {
            /// First session in which they work.
            session: SessionIndex,
            /// How many they are.
            validators: u32,
        },
    }

    /// Why calls do nothing.
    #[pallet::error]
    pub enum Error<T> {
        /// The operator is a candidate already. Nothing has to be done.
        AlreadyCandidate,
        /// The operator is no candidate. Call `validate` to be one.
        NotCandidate,
        /// The operator has no session keys. Make some on its node and send `Session.set_keys` first.
        NoKeys,
        /// The operator has less stake of its own in its pool than `MinSelfBond`. Open a pool or add to it.
        OwnBondTooLow,
        /// The operator is in jail or suspended. Wait until that is over.
        Jailed,
        /// A slash of the operator waits. Wait until it is carried out or vetoed.
        SlashPending,
        /// There are as many candidates as there may be. Try again in the next session: whoever has taken its
        /// own stake out makes room by then.
        TooManyCandidates,
    }

    #[pallet::call]
    impl<T: Config> Pallet<T> {
        /// Has an operator elected from the next session on, if its pool is among the largest, and few others
        /// that have made no block yet come before it. It works two sessions later. Its place is its own
        /// while it has `MinSelfBond` in its pool.
        ///
        /// # Errors
        /// `AlreadyCandidate`, `NoKeys`, `OwnBondTooLow`, `Jailed`, `SlashPending`, `TooManyCandidates`.
        #[pallet::call_index(0)]
        #[pallet::weight(<T as Config>::WeightInfo::validate())]
        pub fn validate(origin: OriginFor<T>) -> DispatchResult {
            let operator = ensure_signed(origin)?;
            Self::do_validate(operator)
        }

        /// Has an operator elected no more. It has to go on working while it is in the set: to the end of the
        /// next session.
        ///
        /// # Errors
        /// `NotCandidate`.
        #[pallet::call_index(1)]
        #[pallet::weight(<T as Config>::WeightInfo::chill())]
        pub fn chill(origin: OriginFor<T>) -> DispatchResult {
            let operator = ensure_signed(origin)?;
            Self::do_chill(operator)
        }
    }
}
