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

pub mod asset;
mod audit_pay;
#[cfg(feature = "runtime-benchmarks")]
pub mod benchmarking;
mod calls;
mod claimed;
mod faults;
mod hooks;
mod late;
mod security;
mod shown;
mod transitions;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod types;
mod verdict;
mod weight;
pub mod weights;

pub use claimed::Claimed;
#[cfg(feature = "runtime-benchmarks")]
pub use hooks::LongCell;
pub use hooks::{DisputeReferee, RoundDisputes};
pub use late::CONVICTED_AT_ONCE;
pub use pallet::*;
pub use shown::SHOWN_MAX;
pub use transitions::accepted;
pub use types::{PhaseName, describe};
pub use weights::WeightInfo;

use frame_support::{BoundedVec, traits::ConstU32};
use frame_system::pallet_prelude::BlockNumberFor;
use surety_types::{
    limits,
    task::{AuditDraw, Round, RoundMember},
    trust::{Audit, Demand, InputDemand},
};

/// A round in this runtime's types.
pub type RoundOf<T> = Round<
    <T as frame_system::Config>::AccountId,
    <T as surety_pallet_trust_lock::Config>::Balance,
    BlockNumberFor<T>,
>;

/// A provider of a round in this runtime's types.
pub type MemberOf<T> =
    RoundMember<<T as frame_system::Config>::AccountId, <T as surety_pallet_trust_lock::Config>::Balance>;

/// An audit in this runtime's types.
pub type AuditOf<T> =
    Audit<<T as frame_system::Config>::AccountId, <T as surety_pallet_trust_lock::Config>::Balance>;

/// What auditors draw themselves with in this runtime's types.
pub type AuditDrawOf<T> = AuditDraw<<T as surety_pallet_trust_lock::Config>::Balance, BlockNumberFor<T>>;

/// A demand in this runtime's types.
pub type DemandOf<T> = Demand<
    <T as frame_system::Config>::AccountId,
    <T as surety_pallet_trust_lock::Config>::Balance,
    BlockNumberFor<T>,
>;

/// All demands on one provider that are open, oldest first.
pub type DemandsOf<T> = BoundedVec<DemandOf<T>, ConstU32<{ limits::DEMANDS_MAX }>>;

/// A demand of input in this runtime's types.
pub type InputDemandOf<T> = InputDemand<
    <T as frame_system::Config>::AccountId,
    <T as surety_pallet_trust_lock::Config>::Balance,
    BlockNumberFor<T>,
>;

/// What a referee has to know of a task, in this runtime's types.
pub type DisputeContextOf<T> = <<T as Config>::Referee as DisputeReferee>::DisputeContext;

#[frame_support::pallet]
#[allow(unused_qualifications)] // In what the macro writes.
pub mod pallet {
    use super::*;
    use frame_support::{pallet_prelude::*, traits::fungible::MutateHold};
    use frame_system::pallet_prelude::*;
    use sp_core::H256;
    use sp_runtime::{FixedU128, Permill};
    use surety_proofs::{PART_BYTES, PartOpening, SegmentOpening, SignedStatement};
    use surety_types::{
        ContentHash, TaskId,
        task::{ResultClaim, Verdict},
        traits::{BlockEntropy, DrawVerifier, SignatureVerifier, TaskClock, TaskOutcome},
        trust::{
            AuditAnswer, AuditProof, CommitNote, Content, ContentPart, DemandedParts, FaultKind, ItemLeaves,
            ItemsFound,
        },
    };

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(1);

    /// Rounds of all running tasks.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the runtime provides.
    #[pallet::config]
    pub trait Config:
        frame_system::Config<RuntimeEvent: From<Event<Self>>> + surety_pallet_trust_lock::Config
    {
        /// SURE, for prices of demands and bonds of challenges.
        type Currency: MutateHold<Self::AccountId, Balance = Self::Balance, Reason = Self::RuntimeHoldReason>;

        /// The runtime's reasons for holds.
        type RuntimeHoldReason: From<HoldReason>;

        /// Disputes about results.
        type Disputes: RoundDisputes<RoundOf<Self>>;

        /// Who hears the verdict, and has reserves.
        type Outcome: TaskOutcome<Self::AccountId, Self::Balance>;

        /// Who wakes rounds up.
        type Clock: TaskClock<BlockNumberFor<Self>>;

        /// Blocks in which providers compute and commit.
        type CommitWindow: Get<BlockNumberFor<Self>>;

        /// Blocks between the moment in which auditors can draw themselves and the first reveal, at least.
        type AuditWindow: Get<BlockNumberFor<Self>>;

        /// The same at most: a task whose audits would take longer is refused.
        type AuditWindowMax: Get<BlockNumberFor<Self>>;

        /// What an audit is paid in the mean, as a multiple of what it costs.
        type AuditPremium: Get<FixedU128>;

        /// What one pass over tokens costs, as a part of what it costs to generate as many: what an audit of
        /// a generation costs, but for the prompt, which takes its provider a pass, too.
        type GenerationAuditCost: Get<Permill>;

        /// What a second of the reference machine is worth at least, in plancks: no provider is paid less for
        /// a task's work, so that nobody has auditors compute for nothing.
        type WorkPrice: Get<Self::Balance>;

        /// Part of the verifiers' stake that is taken to be able to audit any model, whoever has said so.
        type VerifiersAble: Get<Permill>;

        /// Blocks in which commitments are opened. Who does not is not paid.
        type RevealWindow: Get<BlockNumberFor<Self>>;

        /// Blocks after the verdict in which whatever was sealed has to be opened. Who does not loses stake.
        type OpeningWindow: Get<BlockNumberFor<Self>>;

        /// Blocks for which a verdict can be challenged.
        type ChallengeWindow: Get<BlockNumberFor<Self>>;

        /// How many times its price a provider locks for a task.
        type LockMultiple: Get<u32>;

        /// What traces are made of, and who computes their cells again.
        type Referee: DisputeReferee;

        /// Checks that verifiers drew themselves.
        type Draws: DrawVerifier<Self::AccountId>;

        /// Randomness of the present epoch.
        type EpochRandomness: Get<H256>;

        /// What the author of a block after the last commitment adds to it.
        type Entropy: BlockEntropy<BlockNumberFor<Self>>;

        /// Blocks of the chain before auditing begins in which a verifier's stake must not have grown and its
        /// agent not have changed: those for which an author may know what its own block will give.
        type VerifierSeasoning: Get<u32>;

        /// Auditors expected for a provider's result in a task at the basic level.
        type AuditorsBasic: Get<FixedU128>;

        /// Auditors expected for a provider's result in a task at the standard level.
        type AuditorsExpected: Get<FixedU128>;

        /// Auditors expected for a provider's result in a task at the high level.
        type AuditorsHigh: Get<FixedU128>;

        /// Auditors expected for the result of a provider without a clean task.
        type AuditorsNewcomer: Get<FixedU128>;

        /// Part of the verifiers' stake that may be corrupt.
        type VerifiersCorrupt: Get<Permill>;

        /// How likely an honest audit of a wrong result is to end in a conviction.
        type AuditAccuracy: Get<Permill>;

        /// How many times a provider's price its auditor locks.
        type AuditBondMultiple: Get<u32>;

        /// What 1 KiB costs that is shown on chain because it was demanded, in plancks. For its provider, or
        /// the client.
        type SupplyPrice: Get<Self::Balance>;

        /// Blocks in which a provider has to show what was demanded.
        type SupplyWindow: Get<BlockNumberFor<Self>>;

        /// Blocks in which a piece of a task's input has to be supplied that was demanded. The round's
        /// deadline moves on by as much.
        type InputWindow: Get<BlockNumberFor<Self>>;

        /// Checks what agents signed off chain.
        type Signatures: SignatureVerifier<Self::AccountId>;

        /// Weights of the calls.
        type WeightInfo: WeightInfo;
    }

    /// Why money is held.
    #[pallet::composite_enum]
    pub enum HoldReason {
        /// For content that was demanded.
        Demand,
    }

    /// Rounds by task, while they last.
    ///
    /// Task ids are given out in order by the chain, so that nobody can choose keys that collide.
    #[pallet::storage]
    pub type Rounds<T: Config> = StorageMap<_, Twox64Concat, TaskId, RoundOf<T>>;

    /// What the referee of a round's disputes has to know, by task. Nothing where there is no referee.
    #[pallet::storage]
    pub type DisputeContexts<T: Config> = StorageMap<_, Twox64Concat, TaskId, DisputeContextOf<T>>;

    /// What providers have to show because somebody was not served it, by task and the provider's stash.
    #[pallet::storage]
    pub type Demands<T: Config> =
        StorageDoubleMap<_, Twox64Concat, TaskId, Blake2_128Concat, T::AccountId, DemandsOf<T>, ValueQuery>;

    /// Parts of inputs and outputs that were shown on chain, by task, content hash, length in bytes and
    /// place, while the round lasts; of leaves of traces by [`surety_proofs::leaves_name`].
    #[pallet::storage]
    pub type Shown<T: Config> = StorageDoubleMap<
        _,
        Twox64Concat,
        TaskId,
        Blake2_128Concat,
        (ContentHash, u32, u32),
        BoundedVec<u8, ConstU32<PART_BYTES>>,
    >;

    /// What providers of rounds committed to and which of their agents did, by task and the provider's stash.
    #[pallet::storage]
    pub type CommitNotes<T: Config> =
        StorageDoubleMap<_, Twox64Concat, TaskId, Blake2_128Concat, T::AccountId, CommitNote<T::AccountId>>;

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        #[cfg(feature = "std")]
        fn integrity_test() {
            Self::check_configuration();
        }

        #[cfg(feature = "try-runtime")]
        fn try_state(_now: BlockNumberFor<T>) -> Result<(), sp_runtime::TryRuntimeError> {
            Self::do_try_state()
        }
    }

    #[pallet::view_functions]
    impl<T: Config> Pallet<T> {
        /// The round of a task: who works on it, who audits and how far they are. Nothing before it was given
        /// to providers, and when it is over.
        pub fn round_of(task: TaskId) -> Option<RoundOf<T>> {
            Rounds::<T>::get(task)
        }
    }

    /// What the pallet tells the world.
    #[pallet::event]
    #[pallet::generate_deposit(pub(super) fn deposit_event)]
    pub enum Event<T: Config> {
        /// Providers were put to work on a task, and their stake was locked.
        RoundOpened {
            /// Task id.
            task: TaskId,
            /// Last time for commitments.
            until: BlockNumberFor<T>,
        },
        /// A provider committed to a result.
        Committed {
            /// Task id.
            task: TaskId,
            /// Provider's stash.
            provider: T::AccountId,
            /// What it will have to open.
            commitment: H256,
        },
        /// A provider that committed nothing in time was replaced, and its stake unlocked.
        ProviderReplaced {
            /// Task id.
            task: TaskId,
            /// Who is off it.
            dropped: T::AccountId,
            /// Who is on it now.
            by: T::AccountId,
        },
        /// A round entered a phase, or the same one again with providers replaced.
        PhaseChanged {
            /// Task id.
            task: TaskId,
            /// The phase it is in now.
            phase: PhaseName,
            /// Last time of that phase. Of the audit window, [`Event::AuditorsSeeded`] tells it.
            until: BlockNumberFor<T>,
        },
        /// Everybody has the whole window for challenges again.
        ChallengesReopened {
            /// Task id.
            task: TaskId,
            /// Its last time.
            until: BlockNumberFor<T>,
        },
        /// A provider opened its commitment.
        Revealed {
            /// Task id.
            task: TaskId,
            /// Provider's stash.
            provider: T::AccountId,
            /// What it had committed to.
            claim: ResultClaim,
        },
        /// A provider has not opened its commitment in time, and is not paid. It still has to.
        RevealMissed {
            /// Task id.
            task: TaskId,
            /// Provider's stash.
            provider: T::AccountId,
        },
        /// It is known how the task went, or known better than before. Carried out when the challenge window
        /// has passed and no dispute is open.
        VerdictReached {
            /// Task id.
            task: TaskId,
            /// The verdict, with everybody's part in it.
            verdict: Verdict<T::AccountId>,
        },
        /// The round is over, and the stake behind it unlocked.
        RoundClosed {
            /// Task id.
            task: TaskId,
        },
        /// It is known what auditors draw themselves with: their window begins.
        AuditorsSeeded {
            /// Task id.
            task: TaskId,
            /// What they draw themselves with: [`surety_audit_economics::audit_seed`].
            seed: H256,
            /// The VRF output that went into it and the block whose author gave it. None where blocks had
            /// none for long.
            entropy: Option<(H256, BlockNumberFor<T>)>,
            /// Last time for audits.
            until: BlockNumberFor<T>,
        },
        /// A verifier drew itself and sealed its own result; its bond was locked.
        AuditAnnounced {
            /// Task id.
            task: TaskId,
            /// The stash of the provider that it audits.
            provider: T::AccountId,
            /// Verifier's stash.
            verifier: T::AccountId,
            /// What it will have to open.
            seal: H256,
        },
        /// A verifier opened its seal.
        AuditRevealed {
            /// Task id.
            task: TaskId,
            /// The stash of the provider that it audited.
            provider: T::AccountId,
            /// Verifier's stash.
            verifier: T::AccountId,
            /// What it computed.
            claim: ResultClaim,
            /// Whether that is what the provider said.
            agrees: bool,
        },
        /// Somebody was found at fault. Of somebody who was before, it is a graver fault.
        FaultFound {
            /// Task id.
            task: TaskId,
            /// Offender's stash.
            offender: T::AccountId,
            /// Kind of the fault.
            kind: FaultKind,
        },
        /// A verifier opened its seal over some items.
        ItemsRevealed {
            /// Task id.
            task: TaskId,
            /// The stash of the provider that it audited.
            provider: T::AccountId,
            /// Verifier's stash.
            verifier: T::AccountId,
            /// What it found.
            found: ItemsFound,
            /// Whether it says that the provider's result has the same.
            agrees: bool,
        },
        /// A provider has to show what it has on chain.
        DataDemanded {
            /// Task id.
            task: TaskId,
            /// Provider's stash.
            provider: T::AccountId,
            /// The client's account, or the stash of the auditor that demands it.
            by: T::AccountId,
            /// What it has to show: nobody has before.
            parts: DemandedParts,
            /// Last time for it.
            until: BlockNumberFor<T>,
        },
        /// A provider has shown something that was demanded. It can be read while the round lasts.
        DataSupplied {
            /// Task id.
            task: TaskId,
            /// Provider's stash.
            provider: T::AccountId,
            /// What it has shown.
            part: ContentPart,
            /// Hash of the content that it is a part of.
            shown: ContentHash,
            /// Length of that, in bytes.
            bytes: u32,
        },
        /// A piece of a task's input has to be supplied on chain. The time for commitments moves on
        /// meanwhile.
        InputDemanded {
            /// Task id.
            task: TaskId,
            /// The stash of the provider that wants it.
            provider: T::AccountId,
            /// Number of the piece of 1 KiB, from 0.
            segment: u32,
            /// Last time for it.
            until: BlockNumberFor<T>,
            /// Last time for commitments now.
            commit_until: BlockNumberFor<T>,
        },
        /// A piece of input was supplied. It is in the extrinsic.
        InputSupplied {
            /// Task id.
            task: TaskId,
            /// Number of the piece of 1 KiB, from 0.
            segment: u32,
            /// Account that supplied it.
            by: T::AccountId,
        },
        /// What was demanded is needed no more: the provider that had demanded it, or a majority, has
        /// committed.
        InputDemandLifted {
            /// Task id.
            task: TaskId,
            /// Provider's stash.
            provider: T::AccountId,
        },
        /// A piece of input was not supplied in time: the task fails, and its client loses its lock.
        InputWithheld {
            /// Task id.
            task: TaskId,
            /// The stash of the provider that had demanded it.
            provider: T::AccountId,
            /// Number of the piece of 1 KiB, from 0.
            segment: u32,
        },
        /// Somebody showed that a provider said two different things of one task.
        EquivocationReported {
            /// Task id.
            task: TaskId,
            /// Provider's stash.
            provider: T::AccountId,
            /// Account that reported it.
            by: T::AccountId,
        },
    }

    /// Why calls do nothing.
    #[pallet::error]
    pub enum Error<T> {
        /// The task has a round already. Nothing has to be opened.
        RoundExists,
        /// The task has no round: it was not given to providers yet, or is over. Check its number and its
        /// state.
        UnknownRound,
        /// The task has no provider, or more than a round takes. Assign between 1 and 16.
        WrongMemberCount,
        /// A provider is assigned to the task twice. Assign it once.
        DuplicateMember,
        /// The signer is not the agent of a provider. Bond a stash as a provider, and confirm this key as its
        /// agent.
        NotProviderAgent,
        /// The provider is not on this task, or not any more. Check the task's number and the providers that
        /// it was given to.
        NotMember,
        /// The round is not in the phase for this call, or its time is over. Read its phase and deadline
        /// before you call again.
        WrongPhase,
        /// The provider has committed before. A commitment stands: reveal it when the audits are over.
        AlreadyCommitted,
        /// The provider has not committed. Only what was committed to in time can be revealed.
        NotCommitted,
        /// The provider, or the auditor, has revealed before. Nothing more has to be done.
        AlreadyRevealed,
        /// Claim and salt do not open the commitment. Give those that it was made of.
        CommitmentMismatch,
        /// The claim reports more units than the client pays for. Report at most `units_max` of the task.
        TooManyUnits,
        /// No result of the task can be like this claim. Compute the task again, by the model of its
        /// manifest.
        ImpossibleClaim,
        /// The signer is not the agent of a verifier. Bond a stash as a verifier, and confirm this key as its
        /// agent.
        NotVerifierAgent,
        /// The stash was at fault, or missed a deadline, and gets no work for a while. Wait until its term is
        /// over.
        InJail,
        /// The proof does not show that the verifier drew itself, or it did not. Draw with the agent's key
        /// and this round's seed; otherwise the audit is not yours to make.
        NotDrawn,
        /// The verifier audits this provider already. Open that audit when the provider has revealed.
        AlreadyAuditing,
        /// The provider has all the audits that its result can take. Leave it to them.
        TooManyAudits,
        /// The verifier's stake has grown or its agent has changed too shortly before the audit window. Wait:
        /// it may audit later tasks.
        Unsettled,
        /// The verifier does not audit this provider. Only an audit that was announced in the audit window
        /// can be opened.
        NotAuditor,
        /// The provider has not revealed. Wait until it has.
        NotRevealed,
        /// Claim and salt do not open the seal. Give those that it was made of.
        SealMismatch,
        /// The audit confirms another input, or fewer items than were the verifier's own. One that computed
        /// all of them confirms with `reveal_audit`.
        IncompleteAudit,
        /// The audit confirmed nothing by its items, or what is shown is what it sealed, or not of its item.
        /// Show the leaves of an item in which they differ.
        NothingRefuted,
        /// The provider's result has no trace that can be played over, or no longer counts. Audit or refute
        /// one that does.
        NotDisputable,
        /// The signer has demanded something of the provider that is not shown yet, or a piece of the input
        /// has to be supplied first. Wait until that is shown, or its time is over.
        AlreadyDemanded,
        /// The provider has all the demands that it can have, or has demanded all the input it can. Wait
        /// until one of them is over, or fetch the input from its sources.
        TooManyDemands,
        /// Nothing is demanded of the provider, or of the input. Nothing has to be shown.
        NotDemanded,
        /// This is nothing that was demanded, or not of that content. Show the parts that the demand names,
        /// with their proofs.
        WrongSegment,
        /// More is at risk than the stake of all providers could secure. Lower `value_at_risk`, or split the
        /// task.
        ValueAtRiskTooHigh,
        /// As the parameters are, no stake would make cheating a loss. Ask for another security level, or
        /// wait for more verifiers.
        NeverPunished,
        /// Verifiers that said that they audit this model, and have the bond free that this price takes,
        /// have too little stake: all of it may be corrupt. Lower the cap, ask for another model, or wait
        /// until more of them offer audits.
        NobodyAudits,
        /// An audit of the task would take longer than auditors can be waited for. Ask for fewer units.
        AuditTooLong,
        /// The task would pay its providers less than its work is worth at least, so that its auditors would
        /// compute for next to nothing. Raise its cap, or ask for fewer units.
        PriceTooLow,
        /// The statements do not contradict each other, or the chain. Report two that do, of one provider
        /// about one task.
        NoEquivocation,
        /// The key that signed is not the provider's agent, and was not when it committed. Report statements
        /// that the agent's key has signed.
        WrongSigner,
        /// The signature is not of this statement for this chain. Report the statement as it was signed.
        BadSignature,
        /// The provider was found at fault before, as gravely; or it was shown that it said two things.
        /// Nothing more has to be done.
        AlreadyAtFault,
        /// The task's input has no such piece. Count from 0, in pieces of the input's length.
        NoSuchSegment,
        /// Only the task's client, and verifiers that audit the provider, demand what it has; leaves of its
        /// trace those that have sealed some of its items and not opened that. Sign with the account of one
        /// of them.
        MayNotDemand,
        /// An auditor demands four parts at once after the reveal, or as many as its items can lie in. Name
        /// those that are needed.
        TooManyParts,
        /// A majority has committed, so that the input is to be had. Fetch it from its sources, or from those
        /// providers.
        EnoughCommitted,
        /// No wrong result of this model can be proven, so that whatever is locked, no lie ever costs it. Put
        /// nothing at risk and ask for embeddings alone, or ask a model on the exact tier.
        NoReferee,
    }

    #[pallet::call]
    impl<T: Config> Pallet<T> {
        /// Commits the signer's stash to a result of `task` without showing it.
        ///
        /// `commitment` is [`surety_proofs::commitment`] of the task, the **stash**, the claim and a salt. It
        /// cannot be taken back or changed. The one that makes a majority suspends who was replaced before
        /// it, the first of them, as many as have committed. After the last one, auditing begins.
        ///
        /// # Errors
        /// `NotProviderAgent`, `UnknownRound`, `WrongPhase` after the deadline, `NotMember`,
        /// `AlreadyCommitted`.
        #[pallet::call_index(0)]
        #[pallet::weight((<T as Config>::WeightInfo::commit(), DispatchClass::Operational))]
        pub fn commit(origin: OriginFor<T>, task: TaskId, commitment: H256) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_commit(&agent, task, commitment)
        }

        /// Opens the commitment of the stash `provider`. Without signature and fee, as a general transaction:
        /// the opening proves itself, and anybody may pass it on. One that would fail enters no block, so
        /// that there is at most one for each commitment, which was paid for.
        ///
        /// Possible as soon as the audit window has passed. The last reveal brings the verdict. Who reveals
        /// later than the window for it is not paid, and can until
        /// [`Round::reveals_until`](surety_types::task::Round::reveals_until).
        ///
        /// # Errors
        /// `UnknownRound`, `WrongPhase` before and after its time, `NotMember`, `NotCommitted`,
        /// `AlreadyRevealed`, `CommitmentMismatch`, `TooManyUnits`, `ImpossibleClaim`; `BadOrigin` when it is
        /// signed. Pools refuse it instead: as `Future` or `Stale` by its time, as `Stale` the second time,
        /// as `BadProof` when the opening is not the right one, as `Call` when there is nothing to open.
        #[pallet::call_index(1)]
        #[pallet::weight((<T as Config>::WeightInfo::reveal(), DispatchClass::Operational))]
        #[pallet::authorize(Self::authorize_reveal)]
        #[pallet::weight_of_authorize(<T as Config>::WeightInfo::authorize_reveal())]
        pub fn reveal(
            origin: OriginFor<T>,
            task: TaskId,
            provider: T::AccountId,
            claim: ResultClaim,
            salt: H256,
        ) -> DispatchResult {
            ensure_authorized(origin)?;
            Self::do_reveal(task, provider, claim, salt)
        }

        /// Announces, for the signer's stash, that it audits `provider`, and seals what it computed itself.
        ///
        /// `proof` is of the VRF of the signer's key over [`surety_audit_economics::AuditInput`], whose
        /// output has to be below the threshold for the stash's stake. `seal` is
        /// [`surety_audit_economics::audit_seal`]. Locks the bond. Costs no fee, which audits of little work
        /// would not be worth; one that is refused does.
        ///
        /// # Errors
        /// `NotVerifierAgent`, `InJail`, `UnknownRound`, `WrongPhase` outside the audit window and before the
        /// seed is known, `Unsettled`, `NotMember`, `NotDisputable`, `AlreadyAuditing`, `TooManyAudits`,
        /// `NotDrawn`; staking's own when the bond cannot be locked.
        #[pallet::call_index(2)]
        #[pallet::weight((<T as Config>::WeightInfo::announce_audit(), DispatchClass::Operational))]
        pub fn announce_audit(
            origin: OriginFor<T>,
            task: TaskId,
            provider: T::AccountId,
            proof: AuditProof,
            seal: H256,
        ) -> DispatchResultWithPostInfo {
            let agent = ensure_signed(origin)?;
            Self::do_announce_audit(&agent, task, &provider, &proof, seal)?;
            Ok(Pays::No.into())
        }

        /// Opens the seal of the audit of `provider` by the stash `verifier`. Without signature and fee, like
        /// [`Pallet::reveal`]. Possible once the provider has revealed, until
        /// [`Round::openings_until`](surety_types::task::Round::openings_until). Another result than the
        /// provider's opens a dispute. After the provider has lost it gets the verifier a share of the slash,
        /// and the same result can be challenged.
        ///
        /// # Errors
        /// `UnknownRound`, `WrongPhase`, `NotMember`, `NotRevealed`, `NotAuditor`, `AlreadyRevealed`,
        /// `SealMismatch`; `BadOrigin` when it is signed. Pools refuse it instead, as they do
        /// [`Pallet::reveal`].
        #[pallet::call_index(3)]
        #[pallet::weight((<T as Config>::WeightInfo::reveal_audit(), DispatchClass::Operational))]
        #[pallet::authorize(Self::authorize_reveal_audit)]
        #[pallet::weight_of_authorize(<T as Config>::WeightInfo::authorize_reveal_audit())]
        pub fn reveal_audit(
            origin: OriginFor<T>,
            task: TaskId,
            provider: T::AccountId,
            verifier: T::AccountId,
            claim: ResultClaim,
            salt: H256,
        ) -> DispatchResult {
            ensure_authorized(origin)?;
            Self::do_reveal_audit(task, &provider, &verifier, claim, salt)
        }

        /// Demands that a provider shows on chain what it does not serve: parts of the task's input, or of
        /// its output. In the first audit window a verifier that drew itself does, with the `proof` that it
        /// announces with; after the reveal the task's client, and verifiers that audit the provider, and one
        /// that has sealed some of its items the leaves of its trace for the time of an audit. Each makes one
        /// demand at a time, and puts the price on hold: an auditor bears half of it, a client all.
        /// A provider that does not show all of it in time has withheld it, and loses its lock. What can be
        /// read on chain already costs nothing.
        ///
        /// # Errors
        /// `UnknownRound`, `WrongPhase`, `NotMember`, `NotRevealed`, `MayNotDemand`, those of
        /// [`Pallet::announce_audit`], `TooManyParts`, `AlreadyDemanded`, `TooManyDemands`, `NoSuchSegment`;
        /// the currency's own.
        #[pallet::call_index(4)]
        #[pallet::weight((
            <T as Config>::WeightInfo::demand(u32::try_from(parts.len()).unwrap_or(u32::MAX)),
            DispatchClass::Operational,
        ))]
        pub fn demand(
            origin: OriginFor<T>,
            task: TaskId,
            provider: T::AccountId,
            parts: DemandedParts,
            proof: Option<AuditProof>,
        ) -> DispatchResult {
            let by = ensure_signed(origin)?;
            Self::do_demand(by, task, &provider, parts, proof.as_ref())
        }

        /// Shows, for the signer's stash, a part of what was demanded of it, for everybody to read: of an
        /// input or output of `bytes` bytes, or of the leaves of its trace. The last part does where the
        /// output has fewer. Before the reveal the first part names the output: a provider that reveals
        /// another one has said two things.
        ///
        /// # Errors
        /// `NotProviderAgent`, `UnknownRound`, `NotMember`, `NotDemanded`, `WrongPhase` when it is too late,
        /// `WrongSegment`.
        #[pallet::call_index(5)]
        #[pallet::weight((<T as Config>::WeightInfo::supply(limits::DEMANDS_MAX), DispatchClass::Operational))]
        pub fn supply(
            origin: OriginFor<T>,
            task: TaskId,
            content: Content,
            bytes: u32,
            opening: PartOpening,
        ) -> DispatchResultWithPostInfo {
            let agent = ensure_signed(origin)?;
            let open = Self::do_supply(&agent, task, (content, bytes), opening)?;
            Ok(Some(<T as Config>::WeightInfo::supply(open)).into())
        }

        /// Shows that a provider signed two different statements about one task, or, without the second one,
        /// a statement that is not what it committed to, showed or revealed on chain. Anybody may; who does
        /// gets the finder's share of the slash. Of a provider that has lost as much before it is only noted;
        /// those of its audits are void all the same that differ from what it revealed. Possible as long as
        /// the task has its round.
        ///
        /// # Errors
        /// `UnknownRound`, `NotMember`, `AlreadyAtFault`, `NoEquivocation`, `WrongSigner`, `BadSignature`.
        #[pallet::call_index(6)]
        #[pallet::weight((<T as Config>::WeightInfo::report_equivocation(), DispatchClass::Operational))]
        pub fn report_equivocation(
            origin: OriginFor<T>,
            statement: SignedStatement<T::AccountId>,
            other: Option<SignedStatement<T::AccountId>>,
        ) -> DispatchResult {
            let reporter = ensure_signed(origin)?;
            Self::do_report_equivocation(reporter, statement, other)
        }

        /// Demands, for the signer's stash, that a piece of the task's input is shown on chain: for a
        /// provider that cannot fetch it. The price is the client's, unless the piece is not supplied in
        /// time: then the task fails, the client loses its lock, and the signer has the price back. The time
        /// for commitments moves on by as much as the client has.
        ///
        /// # Errors
        /// `NotProviderAgent`, `UnknownRound`, `WrongPhase`, `NotMember`, `AlreadyCommitted`,
        /// `AlreadyAtFault`, `TooManyDemands`, `AlreadyDemanded`, `EnoughCommitted`, `NoSuchSegment`; the
        /// currency's own.
        #[pallet::call_index(7)]
        #[pallet::weight((<T as Config>::WeightInfo::demand_input(), DispatchClass::Operational))]
        pub fn demand_input(origin: OriginFor<T>, task: TaskId, segment: u32) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_demand_input(agent, task, segment)
        }

        /// Supplies the piece of a task's input that was demanded. Anybody may: it proves itself.
        ///
        /// # Errors
        /// `UnknownRound`, `NotDemanded`, `WrongPhase` when it is too late, `WrongSegment`.
        #[pallet::call_index(8)]
        #[pallet::weight((<T as Config>::WeightInfo::supply_input(), DispatchClass::Operational))]
        pub fn supply_input(origin: OriginFor<T>, task: TaskId, opening: SegmentOpening) -> DispatchResult {
            let by = ensure_signed(origin)?;
            Self::do_supply_input(by, task, &opening)
        }

        /// Opens the seal of the audit of `provider` by the stash `verifier` that computed some of the task's
        /// items: those that its own draw says. Without signature and fee, like [`Pallet::reveal_audit`], and
        /// with an answer that was sealed like the rest: whether the provider's result has the same of them.
        /// One that says no plays a dispute, in which the provider can be wrong in any cell.
        ///
        /// # Errors
        /// Those of [`Pallet::reveal_audit`]; `IncompleteAudit`.
        #[pallet::call_index(9)]
        #[pallet::weight((<T as Config>::WeightInfo::reveal_items(), DispatchClass::Operational))]
        #[pallet::authorize(Self::authorize_reveal_items)]
        #[pallet::weight_of_authorize(<T as Config>::WeightInfo::authorize_reveal_items())]
        pub fn reveal_items(
            origin: OriginFor<T>,
            task: TaskId,
            provider: T::AccountId,
            verifier: T::AccountId,
            found: ItemsFound,
            answer: AuditAnswer,
        ) -> DispatchResult {
            ensure_authorized(origin)?;
            Self::do_reveal_items(task, &provider, &verifier, found, &answer)
        }

        /// Shows that an audit which confirmed a result by its items has sealed something else than the
        /// result's trace has: the leaves of the item at `place` among the verifier's own. It loses its bond,
        /// and whoever shows it gets the finder's part.
        ///
        /// # Errors
        /// `UnknownRound`, `NotRevealed`, `NotAuditor`, `SealMismatch`, `NotDisputable`, `NothingRefuted`.
        #[pallet::call_index(10)]
        #[pallet::weight((<T as Config>::WeightInfo::refute_audit(), DispatchClass::Operational))]
        pub fn refute_audit(
            origin: OriginFor<T>,
            task: TaskId,
            provider: T::AccountId,
            verifier: T::AccountId,
            opened: (ItemsFound, AuditAnswer),
            place: u32,
            shown: ItemLeaves,
        ) -> DispatchResult {
            let finder = ensure_signed(origin)?;
            let (found, answer) = (&opened.0, &opened.1);
            Self::do_refute_audit(
                finder,
                task,
                (provider, verifier),
                (found, answer),
                (place, &shown),
            )
        }
    }
}
