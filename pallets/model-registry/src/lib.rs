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
pub use types::{Model, ModelUse};
pub use weights::WeightInfo;

mod asset;
mod audits;
#[cfg(feature = "runtime-benchmarks")]
mod benchmarking;
mod calls;
mod catalog;
#[cfg(test)]
mod mock;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod types;
mod weights;

use frame_support::traits::tokens::fungible;

/// Balances of the configured currency, in plancks.
pub type BalanceOf<T> =
    <<T as Config>::Currency as fungible::Inspect<<T as frame_system::Config>::AccountId>>::Balance;

/// A registered model.
pub type ModelOf<T> = Model<<T as frame_system::Config>::AccountId, BalanceOf<T>>;

/// The pallet itself; see the crate's documentation.
// The pallet macro turns its own attributes into paths that this lint finds too long.
#[allow(unused_qualifications)]
#[frame_support::pallet]
pub mod pallet {
    use alloc::boxed::Box;

    use frame_support::pallet_prelude::*;
    use frame_system::pallet_prelude::*;
    use surety_types::{
        ModelId,
        limits::MODEL_AUDITORS_MAX,
        model::ModelManifest,
        traits::{StakeLedger, WorkReferee},
    };

    use super::*;

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(0);

    /// The pallet.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the pallet needs of a runtime.
    #[pallet::config]
    pub trait Config: frame_system::Config {
        /// The currency of deposits.
        type Currency: fungible::Mutate<Self::AccountId>
            + fungible::hold::Mutate<Self::AccountId, Reason = Self::RuntimeHoldReason>;

        /// The runtime's reasons for holds.
        type RuntimeHoldReason: From<HoldReason>;

        /// Held from the owner while a model is registered, in plancks.
        type ModelDeposit: Get<BalanceOf<Self>>;

        /// Knows of which work a result can be checked.
        type Referee: WorkReferee;

        /// Who verifies, and with how much stake.
        type Stake: StakeLedger<Self::AccountId, BalanceOf<Self>>;

        /// Who says how fast a model's reference machine is. Not its owner: that is whoever came first, and
        /// with a machine that is faster than all there are nobody could audit a task in time.
        type SpeedOrigin: EnsureOrigin<Self::RuntimeOrigin>;

        /// Weights of the calls.
        type WeightInfo: WeightInfo;
    }

    /// Why funds are on hold.
    #[pallet::composite_enum]
    pub enum HoldReason {
        /// A model is registered.
        ModelDeposit,
    }

    /// Each registered model.
    #[pallet::storage]
    pub type Models<T: Config> = StorageMap<_, Blake2_128Concat, ModelId, ModelOf<T>>;

    /// What goes on with each model that tasks have asked for which are not over, or that is offered.
    #[pallet::storage]
    pub type Uses<T: Config> = StorageMap<_, Blake2_128Concat, ModelId, ModelUse>;

    /// Tokens that the reference machine of a model audits in 1,000 seconds, where that has been said. Stays
    /// when the model goes: it was said of the model, whoever registers it.
    #[pallet::storage]
    pub type AuditSpeeds<T: Config> = StorageMap<_, Blake2_128Concat, ModelId, u32>;

    /// Verifiers, by their stashes, that said that they audit a model. They stay when it goes, until they
    /// take it back: whoever registers it next finds them there.
    #[pallet::storage]
    pub type Auditors<T: Config> = StorageMap<
        _,
        Blake2_128Concat,
        ModelId,
        BoundedVec<T::AccountId, ConstU32<MODEL_AUDITORS_MAX>>,
        ValueQuery,
    >;

    /// What happened.
    #[pallet::event]
    #[pallet::generate_deposit(pub(crate) fn deposit_event)]
    pub enum Event<T: Config> {
        /// A model can be asked for.
        Registered {
            /// Model id.
            model: ModelId,
            /// Who registered it.
            owner: T::AccountId,
            /// What is held from the owner, in plancks.
            deposit: BalanceOf<T>,
        },
        /// It is known how fast the reference machine of a model is.
        AuditSpeedSet {
            /// Model id.
            model: ModelId,
            /// Tokens that it audits in 1,000 seconds.
            tokens: u32,
        },
        /// A verifier said that it audits a model, or that it does no more.
        AuditsOffered {
            /// Model id.
            model: ModelId,
            /// Verifier's stash.
            verifier: T::AccountId,
            /// Whether it does.
            offered: bool,
        },
        /// A model takes no new tasks and offers. It goes with the last of those that there are.
        Retired {
            /// Model id.
            model: ModelId,
            /// Who had registered it.
            owner: T::AccountId,
            /// Tasks that have asked for it and are not over.
            tasks: u32,
            /// Offers of it over channels, and disputes about their receipts.
            sales: u32,
        },
        /// A retired model is gone, or registered anew.
        Removed {
            /// Model id.
            model: ModelId,
            /// Who had registered it.
            owner: T::AccountId,
            /// What the owner got back, in plancks.
            deposit: BalanceOf<T>,
        },
    }

    /// Why a call, or a task, was refused.
    #[pallet::error]
    pub enum Error<T> {
        /// The model is registered already. Ask for it under its id: nothing else has to be done.
        AlreadyRegistered,
        /// The manifest offers no operation. List what the model can do.
        NoOperations,
        /// The model has no name. Give it one, of 64 bytes at most.
        InvalidName,
        /// The weights have no bytes. Make the manifest again from the model's file.
        EmptyWeights,
        /// The model is not registered. Check its id, or register its manifest first.
        UnknownModel,
        /// The model does not offer the operation. Ask for one that its manifest lists, or for another model.
        OperationNotOffered,
        /// The input has no whole number of words. Send ids as four bytes each.
        InputRagged,
        /// The input is shorter than what it must hold: a table entry and an id for each item that is paid
        /// for, or settings and an id. Pay for fewer units, or send all of the input.
        InputTooShort,
        /// Nothing could be added to the prompt: it takes all tokens that are paid for, or all positions that
        /// the model has. Pay for more tokens, or shorten the prompt.
        PromptTooLong,
        /// Results of so many units of this model could not be checked. Ask for fewer, in several tasks.
        WorkTooLarge,
        /// Somebody else registered the model. Sign with the account that did.
        NotOwner,
        /// The manifest offers an operation that the model's family cannot do on the exact tier. Offer
        /// `Embed` for BERT, `Generate` for Llama.
        ForeignOperation,
        /// The manifest lists a special token that the model does not have. Use ids below the size of its
        /// vocabulary.
        UnknownToken,
        /// One of the model's dimensions is 0. Make the manifest again from the model's configuration.
        ZeroDimension,
        /// The model's vocabulary has more than 524,288 tokens. Register a model with fewer.
        VocabularyTooLarge,
        /// The model's states are wider than 16,384 numbers. Register a narrower model.
        TooWide,
        /// The model has more than 160 layers. Register one with fewer.
        TooManyLayers,
        /// The model has more than 256 attention heads. Register one with fewer.
        TooManyHeads,
        /// One of the model's heads is wider than 1,024 numbers, or all together are wider than 32,768.
        /// Register a narrower model.
        HeadsTooWide,
        /// The model's inner width is more than 65,536 numbers. Register a narrower model.
        InnerTooWide,
        /// The model has more than 1,048,576 positions, or 16,384 where it is an encoder, or so many that a
        /// part of an encoder's trace takes more than 2 GiB. Declare fewer: it may have more.
        TooManyPositions,
        /// The model is a decoder and has fewer than two positions. Declare one for a token of the prompt,
        /// and one for what follows.
        TooFewPositions,
        /// The model's heads do not fit together. There must be a multiple of those of keys, of an even width
        /// in a decoder; in an encoder as many, which share the width of a state.
        UnevenHeads,
        /// A width of the model is no multiple of 4: that of a state, of all heads, or between a layer's last
        /// products. Pad the weights, or register another model.
        UnalignedWidth,
        /// The model's family does not use this activation. Declare SwiGLU for Llama, a form of GELU for
        /// BERT.
        ForeignActivation,
        /// The model is a decoder, and says that it pools by the first token. Declare `Mean`: it pools
        /// nothing.
        ForeignPooling,
        /// The model's epsilon is not between 0 and 1. Give the bits of an `f32` that is.
        InvalidEpsilon,
        /// The model was retired and takes no new tasks or offers. Use another one, or register this one
        /// anew.
        TakesNoTasks,
        /// The model is not on the exact tier: nobody could show that an answer of it is wrong. Offer one
        /// that is.
        NotExact,
        /// The signer is not the agent of a verifier. Bond a stash as a verifier, and confirm this key as its
        /// agent.
        NotVerifierAgent,
        /// The verifier audits the model already, or has not said that it does. Nothing has to be done.
        NothingChanges,
        /// As many verifiers as are counted audit the model, none with less stake. Bond more, or offer audits
        /// of another model.
        TooManyAuditors,
        /// No reference machine is so fast, or so slow. Give between a tenth and a hundred times the
        /// multiplications a second that the chain takes it for.
        ImplausibleSpeed,
        /// The model was retired before. Wait: it goes when the tasks are over that have asked for it, and
        /// nobody offers it.
        AlreadyRetired,
    }

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        #[cfg(feature = "try-runtime")]
        fn try_state(_now: BlockNumberFor<T>) -> Result<(), sp_runtime::TryRuntimeError> {
            Self::do_try_state()
        }
    }

    /// Calls; each is an origin check and a `do_*`.
    #[pallet::call(weight = <T as Config>::WeightInfo)]
    impl<T: Config> Pallet<T> {
        /// Registers a model under the hash of its manifest, and holds `ModelDeposit` from the caller. One
        /// that was retired and has tasks becomes the caller's, and whoever had it gets its deposit back.
        // At most what a registration and the end of another one cost.
        #[pallet::call_index(0)]
        #[pallet::weight(
            <T as Config>::WeightInfo::register().saturating_add(<T as Config>::WeightInfo::retire())
        )]
        pub fn register(origin: OriginFor<T>, manifest: Box<ModelManifest>) -> DispatchResult {
            let owner = ensure_signed(origin)?;
            Self::do_register(owner, *manifest).map(|_| ())
        }

        /// Has a model that the caller registered take no new tasks and offers. It is taken out, and the
        /// deposit returned, when those that there are are over: at once when there are none.
        #[pallet::call_index(1)]
        pub fn retire(origin: OriginFor<T>, model: ModelId) -> DispatchResult {
            let owner = ensure_signed(origin)?;
            Self::do_retire(owner, model)
        }

        /// Says how many tokens of a model its reference machine audits in 1,000 seconds: auditors of tasks
        /// that are posted from now on have three times as long. `SpeedOrigin` does, in good time before:
        /// verifiers take back what they can no longer offer.
        #[pallet::call_index(2)]
        pub fn set_audit_speed(origin: OriginFor<T>, model: ModelId, tokens: u32) -> DispatchResult {
            T::SpeedOrigin::ensure_origin(origin)?;
            Self::do_set_audit_speed(model, tokens)
        }

        /// Says, for the signer's stash, that it audits a model as fast as its reference machine does, or
        /// that it does no more. Tasks are taken for models that enough of the verifiers' stake can audit.
        /// Of many verifiers those with most stake count.
        #[pallet::call_index(3)]
        pub fn offer_audits(origin: OriginFor<T>, model: ModelId, offered: bool) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_offer_audits(&agent, model, offered)
        }
    }
}
