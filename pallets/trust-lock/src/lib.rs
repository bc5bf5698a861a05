#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod asset;
mod audit_pay;
#[cfg(feature = "runtime-benchmarks")]
mod benchmarking;
mod calls;
mod committee;
mod dispatch;
mod disputes;
mod errors;
mod events;
mod faults;
mod late;
mod matching;
#[cfg(test)]
mod mock;
mod record;
mod security;
mod slashes;
#[cfg(test)]
mod tests;
mod transitions;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod types;
mod verdict;
pub mod weights;

pub use pallet::*;
#[cfg(feature = "runtime-benchmarks")]
pub use types::LongCell;
pub use types::{DisputeReferee, PhaseName};
pub use weights::WeightInfo;

use frame_support::pallet_macros::import_section;
use frame_system::pallet_prelude::BlockNumberFor;
use surety_dispute_game::{
    committee::{DisputeCommittee, SeatDraw},
    dispute::Dispute,
};
use surety_types::{
    task::{Round, RoundMember},
    trust::{Audit, Conviction, Demand, InputDemand, Party, Slash, TrustRecord},
};

/// A round in this runtime's types.
pub type RoundOf<T> =
    Round<<T as frame_system::Config>::AccountId, <T as Config>::Balance, BlockNumberFor<T>>;

/// A provider of a round in this runtime's types.
pub type MemberOf<T> = RoundMember<<T as frame_system::Config>::AccountId, <T as Config>::Balance>;

/// An audit in this runtime's types.
pub type AuditOf<T> = Audit<<T as frame_system::Config>::AccountId, <T as Config>::Balance>;

/// A side of a dispute in this runtime's types.
pub type PartyOf<T> = Party<<T as frame_system::Config>::AccountId>;

/// A dispute in this runtime's types.
pub type DisputeOf<T> =
    Dispute<<T as frame_system::Config>::AccountId, <T as Config>::Balance, BlockNumberFor<T>>;

/// A slash in this runtime's types.
pub type SlashOf<T> =
    Slash<<T as frame_system::Config>::AccountId, <T as Config>::Balance, BlockNumberFor<T>>;

/// A demand in this runtime's types.
pub type DemandOf<T> =
    Demand<<T as frame_system::Config>::AccountId, <T as Config>::Balance, BlockNumberFor<T>>;

/// A demand of input in this runtime's types.
pub type InputDemandOf<T> =
    InputDemand<<T as frame_system::Config>::AccountId, <T as Config>::Balance, BlockNumberFor<T>>;

/// A conviction in this runtime's types.
pub type ConvictionOf<T> =
    Conviction<<T as frame_system::Config>::AccountId, <T as Config>::Balance, BlockNumberFor<T>>;

/// What a court knows of a task, in this runtime's types.
pub type FactsOf<T> = <<T as Config>::Referee as DisputeReferee>::Facts;

/// What is remembered of a stash, in this runtime's types.
pub type RecordOf<T> = TrustRecord<BlockNumberFor<T>>;

/// A dispute's committee in this runtime's types.
pub type CommitteeOf<T> =
    DisputeCommittee<<T as frame_system::Config>::AccountId, <T as Config>::Balance, BlockNumberFor<T>>;

/// What a committee's members draw themselves with, in this runtime's types.
pub type SeatDrawOf<T> = SeatDraw<<T as Config>::Balance, BlockNumberFor<T>>;

#[import_section(events::events)]
#[import_section(errors::errors)]
#[import_section(dispatch::dispatch)]
#[frame_support::pallet]
#[allow(unused_qualifications)] // In what the macro writes.
pub mod pallet {
    use super::*;
    use frame_support::{
        pallet_prelude::*,
        traits::{
            fungible::{Mutate, MutateHold},
            tokens, EnsureOrigin,
        },
    };
    use frame_system::pallet_prelude::*;
    use sp_core::H256;
    use sp_runtime::{traits::BlockNumberProvider, FixedU128, Permill};
    use surety_dispute_game::{
        bisection::{Cell, Move, Outcome, Side},
        snowflake::Decision,
    };
    use surety_proofs::{SegmentOpening, SignedStatement};
    use surety_types::{
        limits,
        task::{ResultClaim, Verdict},
        traits::{DrawVerifier, SignatureVerifier, StakeLedger, TaskClock, TaskOutcome},
        trust::{AuditProof, CommitNote, DisputeId, FaultKind, SlashId},
        TaskId,
    };

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(1);

    /// Rounds of all running tasks.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the runtime provides.
    #[pallet::config]
    pub trait Config: frame_system::Config<RuntimeEvent: From<Event<Self>>> {
        /// Plancks.
        type Balance: tokens::Balance + Into<u128> + From<u128>;

        /// SURE, for the bonds of challengers and the insurance pool.
        type Currency: Mutate<Self::AccountId, Balance = Self::Balance>
            + MutateHold<Self::AccountId, Reason = Self::RuntimeHoldReason>;

        /// The runtime's reasons for holds.
        type RuntimeHoldReason: From<HoldReason>;

        /// Stake of providers and verifiers, and their agents.
        type Stake: StakeLedger<Self::AccountId, Self::Balance>;

        /// Who hears the verdict, and has reserves.
        type Outcome: TaskOutcome<Self::AccountId, Self::Balance>;

        /// Who wakes rounds up.
        type Clock: TaskClock<BlockNumberFor<Self>>;

        /// Blocks in which providers compute and commit.
        type CommitWindow: Get<BlockNumberFor<Self>>;

        /// Blocks between the last commitment and the first reveal.
        type AuditWindow: Get<BlockNumberFor<Self>>;

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

        /// Randomness of the present epoch. Never that of a block, which its author knows early.
        type EpochRandomness: Get<H256>;

        /// The clock that every window here is measured with. It stands still while finality does, and may move on by several
        /// blocks in one.
        type BlockNumberProvider: BlockNumberProvider<BlockNumber = BlockNumberFor<Self>>;

        /// Auditors expected for a provider's result in a task at the standard level.
        type AuditorsExpected: Get<FixedU128>;

        /// Auditors expected for the result of a provider without a clean task.
        type AuditorsNewcomer: Get<FixedU128>;

        /// Clean tasks in a row after which a provider is audited like anybody else.
        type ProbationTasks: Get<u32>;

        /// How many times a provider's price its auditor locks.
        type AuditBondMultiple: Get<u32>;

        /// How many times a provider's price a challenger puts on hold at least.
        type ChallengeBondMultiple: Get<u32>;

        /// What it costs to defend a result, in plancks. A challenger puts at least twice that on hold.
        type DefenceCost: Get<Self::Balance>;

        /// Blocks that each side of a dispute has in all.
        type DisputeClock: Get<u32>;

        /// Blocks for which a dispute waits for others to decide it.
        type DecisionWindow: Get<BlockNumberFor<Self>>;

        /// What a piece of output or input costs that is demanded on chain, in plancks. For its provider, or the client.
        type SupplyPrice: Get<Self::Balance>;

        /// Blocks in which a provider has to supply what was demanded.
        type SupplyWindow: Get<BlockNumberFor<Self>>;

        /// Blocks in which a piece of a task's input has to be supplied that was demanded. The round's deadline moves on by as
        /// much.
        type InputWindow: Get<BlockNumberFor<Self>>;

        /// Blocks for which a slash can be vetoed before it is carried out.
        type SlashDeferral: Get<BlockNumberFor<Self>>;

        /// Part of its other stake that a provider loses with its lock when the fault stands alone.
        type StakePart: Get<Permill>;

        /// Part of a slash for whoever proved the fault.
        type FinderShare: Get<Permill>;

        /// Part of a slash for the task's client, or for the insurance pool.
        type ClientShare: Get<Permill>;

        /// Blocks within which faults count as correlated.
        type CorrelationWindow: Get<BlockNumberFor<Self>>;

        /// Blocks for which an offender gets no work.
        type JailPeriod: Get<BlockNumberFor<Self>>;

        /// Pays clients that were told a wrong result, and gets the shares of slashes that nobody else has a right to.
        type InsurancePool: Get<Self::AccountId>;

        /// Who may veto slashes that have not been carried out.
        type VetoOrigin: EnsureOrigin<Self::RuntimeOrigin>;

        /// Who may decide disputes that no block can.
        type DecideOrigin: EnsureOrigin<Self::RuntimeOrigin>;

        /// Blocks in which seats of a committee are taken, and answers sealed with them.
        type SeatWindow: Get<u32>;

        /// Blocks in which the members of a committee open their answers.
        type VoteWindow: Get<u32>;

        /// Blocks of the chain, not of the clock, before a draw began in which a member's stake must not have grown and its key must not have changed. At least
        /// as long as the draw's seed is known before it is used.
        type SeatSeasoning: Get<u32>;

        /// Weights of the calls.
        type WeightInfo: WeightInfo;

        /// Auditors expected for a provider's result in a task at the basic level.
        type AuditorsBasic: Get<FixedU128>;

        /// Auditors expected for a provider's result in a task at the high level.
        type AuditorsHigh: Get<FixedU128>;

        /// Part of the verifiers' stake that may be corrupt.
        type VerifiersCorrupt: Get<Permill>;

        /// How likely an honest audit of a wrong result is to end in a conviction.
        type AuditAccuracy: Get<Permill>;

        /// Checks what agents signed off chain.
        type Signatures: SignatureVerifier<Self::AccountId>;
    }

    /// Rounds by task, while they last.
    ///
    /// Task ids are given out in order by the chain, so that nobody can choose keys that collide.
    #[pallet::storage]
    pub type Rounds<T: Config> = StorageMap<_, Twox64Concat, TaskId, RoundOf<T>>;

    /// Why money is held.
    #[pallet::composite_enum]
    pub enum HoldReason {
        /// Behind a challenge.
        Challenge,
        /// For a piece of output or input that was demanded.
        Demand,
    }

    /// What the court of a round's disputes knows of its task. Nothing where there is no court.
    #[pallet::storage]
    pub type Facts<T: Config> = StorageMap<_, Twox64Concat, TaskId, FactsOf<T>>;

    /// The number of the next dispute.
    #[pallet::storage]
    pub type NextDisputeId<T: Config> = StorageValue<_, DisputeId, ValueQuery>;

    /// Disputes that are open, by their number. Their rounds list them.
    #[pallet::storage]
    pub type Disputes<T: Config> = StorageMap<_, Twox64Concat, DisputeId, DisputeOf<T>>;

    /// Pieces of output that are demanded, by task and the provider's stash: one at a time.
    #[pallet::storage]
    pub type Demands<T: Config> =
        StorageDoubleMap<_, Twox64Concat, TaskId, Blake2_128Concat, T::AccountId, DemandOf<T>>;

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

    /// Providers convicted lately, oldest first.
    #[pallet::storage]
    pub type Convictions<T: Config> =
        StorageValue<_, BoundedVec<ConvictionOf<T>, ConstU32<{ limits::CONVICTIONS_MAX }>>, ValueQuery>;

    /// Committees that sit, by their dispute.
    #[pallet::storage]
    pub type Committees<T: Config> = StorageMap<_, Twox64Concat, DisputeId, CommitteeOf<T>>;

    /// What providers of rounds committed to and which of their agents did, by task and the provider's stash.
    #[pallet::storage]
    pub type CommitNotes<T: Config> =
        StorageDoubleMap<_, Twox64Concat, TaskId, Blake2_128Concat, T::AccountId, CommitNote<T::AccountId>>;

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        fn on_idle(_now: BlockNumberFor<T>, remaining_weight: Weight) -> Weight {
            Self::sweep_slashes(remaining_weight)
        }

        #[cfg(feature = "std")]
        fn integrity_test() {
            Self::check_configuration();
        }

        #[cfg(feature = "try-runtime")]
        fn try_state(_now: BlockNumberFor<T>) -> Result<(), sp_runtime::TryRuntimeError> {
            Self::do_try_state()
        }
    }
}
