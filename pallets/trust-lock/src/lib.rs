#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod asset;
mod audit_pay;
#[cfg(feature = "runtime-benchmarks")]
mod benchmarking;
mod calls;
mod committee;
mod disputes;
mod faults;
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
pub use types::{DisputeReferee, PhaseName};
pub use weights::WeightInfo;

use frame_system::pallet_prelude::BlockNumberFor;
use surety_types::{
    task::{Round, RoundMember},
    trust::{Audit, Conviction, Demand, Party, Slash, TrustRecord},
};
use surety_verification::{
    committee::{DisputeCommittee, SeatDraw},
    dispute::Dispute,
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
    use sp_runtime::{FixedU128, Permill};
    use surety_types::{
        limits,
        task::{ResultClaim, Verdict},
        traits::{DrawVerifier, SignatureVerifier, StakeLedger, TaskClock, TaskOutcome},
        trust::{AuditProof, CommitNote, DisputeId, FaultKind, SlashId},
        TaskId,
    };
    use surety_verification::{
        bisection::{Cell, Move, Outcome, Side},
        snowflake::Decision,
        SegmentOpening, SignedStatement,
    };

    /// Rounds of all running tasks.
    #[pallet::pallet]
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

        /// Blocks in which commitments are opened.
        type RevealWindow: Get<BlockNumberFor<Self>>;

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

        /// The last block that is known to be final. Clocks run by it.
        type FinalisedBlock: Get<BlockNumberFor<Self>>;

        /// Auditors expected for a provider's result in a task at the standard level.
        type AuditorsExpected: Get<FixedU128>;

        /// Auditors expected for the result of a provider without a clean task.
        type AuditorsNewcomer: Get<FixedU128>;

        /// Clean tasks in a row after which a provider is audited like anybody else.
        type ProbationTasks: Get<u32>;

        /// How many times a provider's price its auditor locks.
        type AuditBondMultiple: Get<u32>;

        /// Audits in a row that a verifier may announce and not reveal before it is jailed for it.
        type AbsencesMax: Get<u32>;

        /// How many times a provider's price a challenger puts on hold at least.
        type ChallengeBondMultiple: Get<u32>;

        /// What it costs to defend a result, in plancks. A challenger puts at least twice that on hold.
        type DefenceCost: Get<Self::Balance>;

        /// Finalised blocks that each side of a dispute has in all.
        type DisputeClock: Get<u32>;

        /// Blocks for which a dispute waits for others to decide it.
        type DecisionWindow: Get<BlockNumberFor<Self>>;

        /// What a piece of output costs that is demanded on chain, in plancks. For its provider.
        type SupplyPrice: Get<Self::Balance>;

        /// Blocks in which a provider has to supply what was demanded.
        type SupplyWindow: Get<BlockNumberFor<Self>>;

        /// Blocks for which a slash can be vetoed before it is carried out.
        type SlashDeferral: Get<BlockNumberFor<Self>>;

        /// Part of its other stake that a provider loses with its lock when the fault stands alone.
        type StakePart: Get<Permill>;

        /// Part of its lock that a provider loses beside its price when it commits and does not reveal.
        type NoRevealPart: Get<Permill>;

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

        /// Finalised blocks in which seats of a committee are taken, and answers sealed with them.
        type SeatWindow: Get<u32>;

        /// Finalised blocks in which the members of a committee open their answers.
        type VoteWindow: Get<u32>;

        /// Blocks before a draw began in which a member's stake must not have grown and its key must not have changed. At least
        /// as long as the draw's seed is known before it is used.
        type SeatSeasoning: Get<u32>;

        /// Part of its stake that a member loses that gave another answer than the one decided on.
        type DissentPart: Get<Permill>;

        /// Part of its stake that a member loses that sealed an answer and did not open it.
        type VoteNoShowPart: Get<Permill>;

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
        /// For a piece of output that was demanded.
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

    /// How a round went on.
    #[pallet::event]
    #[pallet::generate_deposit(pub(super) fn deposit_event)]
    pub enum Event<T: Config> {
        /// Providers were put to work on a task, and their stake was locked.
        RoundOpened {
            /// The task.
            task: TaskId,
            /// Last block for commitments.
            until: BlockNumberFor<T>,
        },
        /// A provider committed to a result.
        Committed {
            /// For which task.
            task: TaskId,
            /// The provider's stash.
            provider: T::AccountId,
            /// What it will have to open.
            commitment: H256,
        },
        /// A provider that committed nothing in time was replaced, and its stake unlocked.
        ProviderReplaced {
            /// On which task.
            task: TaskId,
            /// Who is off it.
            dropped: T::AccountId,
            /// Who is on it now.
            by: T::AccountId,
        },
        /// A round entered a phase, or the same one again with providers replaced.
        PhaseChanged {
            /// Of which task.
            task: TaskId,
            /// The phase it is in now.
            phase: PhaseName,
            /// Last block of that phase.
            until: BlockNumberFor<T>,
        },
        /// A provider opened its commitment.
        Revealed {
            /// For which task.
            task: TaskId,
            /// The provider's stash.
            provider: T::AccountId,
            /// What it had committed to.
            claim: ResultClaim,
        },
        /// It is known how the task went, or known better than before. Carried out when the challenge window has
        /// passed and no dispute is open.
        VerdictReached {
            /// Which task.
            task: TaskId,
            /// The verdict, with everybody's part in it.
            verdict: Verdict<T::AccountId>,
        },
        /// The round is over, and the stake behind it unlocked.
        RoundClosed {
            /// Of which task.
            task: TaskId,
        },
        /// A verifier drew itself and sealed its own result; its bond was locked.
        AuditAnnounced {
            /// For which task.
            task: TaskId,
            /// The stash of the provider that it audits.
            provider: T::AccountId,
            /// The verifier's stash.
            verifier: T::AccountId,
            /// How often auditors had been drawn again.
            tranche: u8,
            /// What it will have to open.
            seal: H256,
        },
        /// A verifier opened its seal.
        AuditRevealed {
            /// For which task.
            task: TaskId,
            /// The stash of the provider that it audited.
            provider: T::AccountId,
            /// The verifier's stash.
            verifier: T::AccountId,
            /// What it computed.
            claim: ResultClaim,
            /// Whether that is what the provider said.
            agrees: bool,
        },
        /// Auditors did not show, so others may draw themselves.
        AuditorsDrawnAgain {
            /// For which task.
            task: TaskId,
            /// How often that has been so.
            tranche: u8,
            /// Last block for them.
            until: BlockNumberFor<T>,
        },
        /// Two parties say different things, and play.
        DisputeOpened {
            /// The dispute's number.
            dispute: DisputeId,
            /// About which task.
            task: TaskId,
            /// Who stands by the claim.
            defender: PartyOf<T>,
            /// Who says that it is wrong.
            challenger: PartyOf<T>,
            /// The claim.
            claim: ResultClaim,
            /// On hold on the challenger's account, in plancks.
            bond: T::Balance,
        },
        /// A move was made. What it was is in the extrinsic.
        MovePlayed {
            /// In which dispute.
            dispute: DisputeId,
            /// By which side.
            side: Side,
            /// Its number in the dispute, from 1.
            number: u32,
            /// Who is to move next; nobody when the dispute is over or beyond.
            next: Option<Side>,
        },
        /// A dispute came to one cell.
        CellReached {
            /// Which dispute.
            dispute: DisputeId,
            /// What is in dispute now.
            cell: Cell,
            /// Whether it is for others to decide, because no block can compute it again.
            beyond: bool,
        },
        /// A dispute is over.
        DisputeEnded {
            /// Which.
            dispute: DisputeId,
            /// About which task it was.
            task: TaskId,
            /// Who won and why. Nothing when nobody could decide it, and when one of the parties lost elsewhere.
            outcome: Option<Outcome>,
        },
        /// A challenger lost its bond.
        BondForfeited {
            /// In which dispute.
            dispute: DisputeId,
            /// Whose it was.
            challenger: T::AccountId,
            /// Who got a part of it.
            defender: T::AccountId,
            /// That part, in plancks.
            awarded: T::Balance,
            /// What was burned, in plancks.
            burned: T::Balance,
        },
        /// A challenger got its bond back.
        BondReturned {
            /// In which dispute.
            dispute: DisputeId,
            /// Whose it is.
            challenger: T::AccountId,
            /// How much, in plancks.
            amount: T::Balance,
        },
        /// A piece of output has to be supplied on chain.
        DataDemanded {
            /// Of which task.
            task: TaskId,
            /// The provider's stash.
            provider: T::AccountId,
            /// Who wants it.
            by: T::AccountId,
            /// Which 1 KiB.
            segment: u32,
            /// Last block for it.
            until: BlockNumberFor<T>,
        },
        /// A piece of output was supplied. It is in the extrinsic.
        DataSupplied {
            /// Of which task.
            task: TaskId,
            /// The provider's stash.
            provider: T::AccountId,
            /// Which 1 KiB.
            segment: u32,
        },
        /// Somebody was found at fault.
        FaultFound {
            /// On which task.
            task: TaskId,
            /// Its stash.
            offender: T::AccountId,
            /// What it did.
            kind: FaultKind,
        },
        /// A slash will be carried out.
        SlashDeferred {
            /// Its number.
            slash: SlashId,
            /// On which task.
            task: TaskId,
            /// The offender's stash.
            offender: T::AccountId,
            /// For what.
            kind: FaultKind,
            /// Locked stake that it takes at least, in plancks.
            lock: T::Balance,
            /// It can be vetoed up to this block, and until it is carried out.
            until: BlockNumberFor<T>,
        },
        /// A slash was vetoed.
        SlashCancelled {
            /// Its number.
            slash: SlashId,
            /// The stash that was spared.
            offender: T::AccountId,
        },
        /// A slash was carried out.
        SlashCarriedOut {
            /// Its number.
            slash: SlashId,
            /// The offender's stash.
            offender: T::AccountId,
            /// What it lost in all, in plancks.
            taken: T::Balance,
            /// The part for whoever proved the fault, or for the insurance pool.
            finder: T::Balance,
            /// The part for the client, or for the insurance pool.
            client: T::Balance,
        },
        /// A stash gets no work for a while.
        Jailed {
            /// Which.
            stash: T::AccountId,
            /// Up to this block.
            until: BlockNumberFor<T>,
        },
        /// A stash gets work again before its time, because of a veto.
        Released {
            /// Which.
            stash: T::AccountId,
        },
        /// A client was paid because it had been told a wrong result.
        InsurancePaid {
            /// Of which task.
            task: TaskId,
            /// The client.
            client: T::AccountId,
            /// How much, in plancks.
            amount: T::Balance,
        },
        /// Verifiers are called together about a cell that no block can compute again.
        CommitteeConvened {
            /// Of which dispute.
            dispute: DisputeId,
            /// What they are asked: their seals name it.
            question: H256,
            /// Whether all are asked at once, because they are few.
            all_at_once: bool,
        },
        /// A verifier took a seat and sealed its answer. It keeps the seat unless others draw better.
        SeatTaken {
            /// In which dispute.
            dispute: DisputeId,
            /// Ballots before this one.
            ballot: u32,
            /// The verifier's stash.
            verifier: T::AccountId,
            /// What it will have to open.
            seal: H256,
            /// Who lost the seat by it.
            instead_of: Option<T::AccountId>,
        },
        /// Seats are filled; answers are opened from now on.
        BallotOpened {
            /// In which dispute.
            dispute: DisputeId,
            /// Ballots before this one.
            ballot: u32,
            /// How many sealed an answer.
            members: u32,
        },
        /// A member opened its answer.
        VoteRevealed {
            /// In which dispute.
            dispute: DisputeId,
            /// The verifier's stash.
            verifier: T::AccountId,
            /// Hash of the value that it computed.
            value: H256,
        },
        /// A ballot is over, or too few came for it.
        BallotEnded {
            /// In which dispute.
            dispute: DisputeId,
            /// Rounds so far.
            rounds: u32,
            /// The value that rounds had a quorum for, if any had.
            leader: Option<H256>,
            /// How many in a row up to the last one.
            streak: u32,
        },
        /// A committee is over.
        CommitteeEnded {
            /// In which dispute.
            dispute: DisputeId,
            /// What it decided, if it did.
            decision: Decision,
            /// Who was right. Nobody knows when nothing was decided: the dispute waits a while for others to decide.
            winner: Option<Side>,
        },
        /// Somebody showed that a provider said two different things of one task.
        EquivocationReported {
            /// Of which task.
            task: TaskId,
            /// The provider's stash.
            provider: T::AccountId,
            /// Who showed it.
            by: T::AccountId,
        },
    }

    /// Why nothing was done.
    #[pallet::error]
    pub enum Error<T> {
        /// The task has a round already.
        RoundExists,
        /// The task has no round.
        UnknownRound,
        /// The redundancy is not the number of providers, or is zero.
        WrongMemberCount,
        /// A provider is assigned to the task twice.
        DuplicateMember,
        /// The signer is not the agent of a provider.
        NotProviderAgent,
        /// The provider is not on this task, or not any more.
        NotMember,
        /// The round is not in the phase for this call, or its time is over.
        WrongPhase,
        /// The provider has committed before.
        AlreadyCommitted,
        /// The provider has not committed.
        NotCommitted,
        /// The provider has revealed before.
        AlreadyRevealed,
        /// Claim and salt do not open the commitment.
        CommitmentMismatch,
        /// The claim reports more units than the client pays for.
        TooManyUnits,
        /// No result of the task can be like this claim.
        ImpossibleClaim,
        /// The signer is not the agent of a verifier.
        NotVerifierAgent,
        /// The stash was at fault and gets no work for a while.
        InJail,
        /// The proof does not show that the verifier drew itself, or it did not.
        NotDrawn,
        /// The verifier audits this provider already.
        AlreadyAuditing,
        /// The task has all the audits it can take.
        TooManyAudits,
        /// The verifier does not audit this provider.
        NotAuditor,
        /// The provider has not revealed.
        NotRevealed,
        /// Claim and salt do not open the seal.
        SealMismatch,
        /// The provider's result has no trace that can be played over, or no longer counts.
        NotDisputable,
        /// The task has all the challenges or disputes that it can take.
        TooManyDisputes,
        /// There is no such dispute, or it is over.
        UnknownDispute,
        /// The signer plays on neither side of the dispute.
        NotPlayer,
        /// A party of the dispute lost elsewhere: it only waits to be ended.
        Moot,
        /// The other side is to move, or the move is not one that can be made now.
        NotNow,
        /// The dispute has another number of moves: this one was made for an earlier state.
        StaleMove,
        /// What was posted or shown is not what is in dispute.
        WrongMove,
        /// The opening does not prove the cell's inputs.
        Unproven,
        /// The time for it has not run out, and nothing else is due.
        NotDue,
        /// The dispute can be decided by playing.
        NotBeyond,
        /// The provider has to supply something else first.
        AlreadyDemanded,
        /// The task has all the demands that it can take.
        TooManyDemands,
        /// Nothing is demanded of the provider.
        NotDemanded,
        /// This is not the piece of the output that was demanded.
        WrongSegment,
        /// There is no such slash, or it was carried out.
        UnknownSlash,
        /// No committee sits about the dispute.
        NoCommittee,
        /// The committee has come to another ballot: this seal was made for an earlier one.
        StaleBallot,
        /// The verifier gains or loses by the dispute.
        IsParty,
        /// The verifier has taken a seat already.
        AlreadySeated,
        /// All seats are taken by verifiers that drew better, or have more stake.
        Outranked,
        /// The verifier's stake or key is newer than what it draws itself with.
        Unsettled,
        /// The verifier has no seat in this ballot.
        NotSeated,
        /// More is at risk than the stake of all providers could secure.
        ValueAtRiskTooHigh,
        /// As the parameters are, no stake would make cheating a loss.
        NeverPunished,
        /// The statements do not contradict each other, or the chain.
        NoEquivocation,
        /// The key that signed is not the provider's agent, and was not when it committed.
        WrongSigner,
        /// The signature is not of this statement for this chain.
        BadSignature,
        /// The provider was found at fault before.
        AlreadyAtFault,
    }

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

    #[pallet::call]
    impl<T: Config> Pallet<T> {
        /// Commits the signer's stash to a result of `task` without showing it.
        ///
        /// `commitment` is [`surety_verification::commitment`] of the task, the **stash**, the claim and a salt. It
        /// cannot be taken back or changed. The last commitment opens the audit window.
        ///
        /// # Errors
        /// `NotProviderAgent`, `UnknownRound`, `WrongPhase` after the deadline, `NotMember`, `AlreadyCommitted`.
        #[pallet::call_index(0)]
        #[pallet::weight(T::WeightInfo::commit())]
        pub fn commit(origin: OriginFor<T>, task: TaskId, commitment: H256) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_commit(&agent, task, commitment)
        }

        /// Opens the commitment of the signer's stash.
        ///
        /// Possible as soon as the audit window has passed. The last reveal brings the verdict.
        ///
        /// # Errors
        /// `NotProviderAgent`, `UnknownRound`, `WrongPhase` before and after its time, `NotMember`, `NotCommitted`,
        /// `AlreadyRevealed`, `CommitmentMismatch`, `TooManyUnits`, `ImpossibleClaim`.
        #[pallet::call_index(1)]
        #[pallet::weight(T::WeightInfo::reveal())]
        pub fn reveal(origin: OriginFor<T>, task: TaskId, claim: ResultClaim, salt: H256) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_reveal(&agent, task, claim, salt)
        }

        /// Announces, for the signer's stash, that it audits `provider`, and seals what it computed itself.
        ///
        /// `proof` is of the VRF of the signer's key over [`surety_verification::AuditInput`], whose output has to be
        /// below the threshold for the stash's stake. `seal` is [`surety_verification::audit_seal`]. Locks the bond.
        ///
        /// # Errors
        /// `NotVerifierAgent`, `InJail`, `UnknownRound`, `WrongPhase` outside the audit window and later tranches,
        /// `NotMember`, `NotDisputable`, `AlreadyAuditing`, `NotDrawn`, `TooManyAudits`; staking's own when the bond
        /// cannot be locked.
        #[pallet::call_index(2)]
        #[pallet::weight(T::WeightInfo::announce_audit())]
        pub fn announce_audit(
            origin: OriginFor<T>,
            task: TaskId,
            provider: T::AccountId,
            proof: AuditProof,
            seal: H256,
        ) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_announce_audit(&agent, task, &provider, &proof, seal)
        }

        /// Opens the seal of an audit by the signer's stash. Possible once the provider has revealed, until the verdict's
        /// challenge window has passed. Another result than the provider's opens a dispute.
        ///
        /// # Errors
        /// `NotVerifierAgent`, `UnknownRound`, `WrongPhase`, `NotMember`, `NotRevealed`, `NotAuditor`, `SealMismatch`.
        #[pallet::call_index(3)]
        #[pallet::weight(T::WeightInfo::reveal_audit())]
        pub fn reveal_audit(
            origin: OriginFor<T>,
            task: TaskId,
            provider: T::AccountId,
            claim: ResultClaim,
            salt: H256,
        ) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_reveal_audit(&agent, task, &provider, claim, salt)
        }

        /// Says that a provider's result is wrong. Anybody may, while the verdict can be challenged; the bond is put on
        /// hold. It is returned unless the challenger loses: then half goes to the defender and half is burned.
        ///
        /// # Errors
        /// `UnknownRound`, `WrongPhase`, `NotMember`, `NotDisputable`, `TooManyDisputes`; the currency's own.
        #[pallet::call_index(4)]
        #[pallet::weight(T::WeightInfo::challenge())]
        pub fn challenge(origin: OriginFor<T>, task: TaskId, provider: T::AccountId) -> DispatchResult {
            let challenger = ensure_signed(origin)?;
            Self::do_challenge(challenger, task, &provider)
        }

        /// Demands that a provider shows a piece of its output on chain. Anybody may, for a price that the provider
        /// earns by it. A provider that does not supply it in time has withheld it, and loses its lock.
        ///
        /// # Errors
        /// `UnknownRound`, `WrongPhase`, `NotMember`, `NotRevealed`, `AlreadyDemanded`, `TooManyDemands`; the
        /// currency's own.
        #[pallet::call_index(5)]
        #[pallet::weight(T::WeightInfo::demand())]
        pub fn demand(
            origin: OriginFor<T>,
            task: TaskId,
            provider: T::AccountId,
            segment: u32,
        ) -> DispatchResult {
            let by = ensure_signed(origin)?;
            Self::do_demand(by, task, &provider, segment)
        }

        /// Supplies, for the signer's stash, the piece of output that was demanded: of an output of `output_bytes`
        /// bytes. The last piece does where the output has fewer.
        ///
        /// # Errors
        /// `NotProviderAgent`, `UnknownRound`, `NotMember`, `NotDemanded`, `WrongPhase` when it is too late,
        /// `WrongSegment`.
        #[pallet::call_index(6)]
        #[pallet::weight(T::WeightInfo::supply())]
        pub fn supply(
            origin: OriginFor<T>,
            task: TaskId,
            output_bytes: u32,
            opening: SegmentOpening,
        ) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_supply(&agent, task, output_bytes, &opening)
        }

        /// Plays move `number` of a dispute, counted from 0. For the agents of providers and auditors, and for
        /// challengers that are neither.
        ///
        /// With its number a move that is sent twice, because it seemed lost, is refused the second time: two moves
        /// later it might be a legal one, and a wrong one.
        ///
        /// # Errors
        /// `UnknownDispute`, `NotPlayer`, `Moot`, `StaleMove`, `NotNow`, `WrongMove`, `Unproven`.
        #[pallet::call_index(7)]
        #[pallet::weight(T::WeightInfo::play())]
        pub fn play(origin: OriginFor<T>, dispute: DisputeId, number: u32, played: Move) -> DispatchResult {
            let player = ensure_signed(origin)?;
            Self::do_play(&player, dispute, number, played)
        }

        /// Ends a dispute whose time is over, or in which a party has lost elsewhere. Anybody may; the agenda does it
        /// as well.
        ///
        /// # Errors
        /// `UnknownDispute`, `NotDue`.
        #[pallet::call_index(8)]
        #[pallet::weight(T::WeightInfo::advance_dispute().max(T::WeightInfo::advance_committee()))]
        pub fn advance_dispute(origin: OriginFor<T>, dispute: DisputeId) -> DispatchResult {
            ensure_signed(origin)?;
            Self::do_advance_dispute(dispute)
        }

        /// Vetoes a slash. Only as long as it is not carried out.
        ///
        /// # Errors
        /// `UnknownSlash`.
        #[pallet::call_index(9)]
        #[pallet::weight(T::WeightInfo::cancel_slash())]
        pub fn cancel_slash(origin: OriginFor<T>, slash: SlashId) -> DispatchResult {
            T::VetoOrigin::ensure_origin(origin)?;
            Self::do_cancel_slash(slash)
        }

        /// Carries out a slash that has waited long enough. Anybody may; idle blocks do it as well.
        ///
        /// # Errors
        /// `UnknownSlash`, `NotDue`.
        #[pallet::call_index(10)]
        #[pallet::weight(T::WeightInfo::carry_out_slash())]
        pub fn carry_out_slash(origin: OriginFor<T>, slash: SlashId) -> DispatchResult {
            ensure_signed(origin)?;
            Self::do_carry_out_slash(slash)
        }

        /// Decides a dispute about a cell that no block can compute again: the last resort, beside and after its committee.
        ///
        /// # Errors
        /// `UnknownDispute`, `Moot`, `NotBeyond`.
        #[pallet::call_index(14)]
        #[pallet::weight(T::WeightInfo::play())]
        pub fn decide_dispute(origin: OriginFor<T>, dispute: DisputeId, winner: Side) -> DispatchResult {
            T::DecideOrigin::ensure_origin(origin)?;
            Self::do_decide_dispute(dispute, winner)
        }

        /// Takes, for the signer's stash, a seat in the ballot of a dispute's committee that comes after `ballot` others, and
        /// seals what it computed itself. While a round is drawn with a proof of the VRF of the signer's key over
        /// [`surety_verification::audit::SeatInput`], whose output has to be below the threshold for the stash's stake; the
        /// best draws are seated when the time is over. Without one when all are summoned.
        ///
        /// `seal` is [`surety_verification::snowflake::seal`] of the committee's question, `ballot`, the **stash**,
        /// [`surety_verification::committee::value_hash`] and a salt.
        ///
        /// # Errors
        /// `NotVerifierAgent`, `InJail`, `UnknownDispute`, `Moot`, `NoCommittee`, `IsParty`, `StaleBallot`, `NotNow`,
        /// `AlreadySeated`, `Unsettled`, `NotDrawn`, `Outranked`.
        #[pallet::call_index(11)]
        #[pallet::weight(T::WeightInfo::join_committee())]
        pub fn join_committee(
            origin: OriginFor<T>,
            dispute: DisputeId,
            ballot: u32,
            proof: Option<AuditProof>,
            seal: H256,
        ) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_join_committee(&agent, dispute, ballot, proof, seal)
        }

        /// Opens the answer that the signer's stash has sealed. The last one ends the ballot.
        ///
        /// # Errors
        /// `NotVerifierAgent`, `UnknownDispute`, `Moot`, `NoCommittee`, `NotNow`, `NotSeated`, `AlreadyRevealed`,
        /// `SealMismatch`.
        #[pallet::call_index(12)]
        #[pallet::weight(T::WeightInfo::reveal_vote())]
        pub fn reveal_vote(
            origin: OriginFor<T>,
            dispute: DisputeId,
            value: H256,
            salt: H256,
        ) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_reveal_vote(&agent, dispute, value, salt)
        }

        /// Has a committee go on whose time for what it does is over. Anybody may; the agenda does it as well.
        ///
        /// # Errors
        /// `UnknownDispute`, `Moot`, `NoCommittee`, `NotDue`.
        #[pallet::call_index(13)]
        #[pallet::weight(T::WeightInfo::advance_committee())]
        pub fn advance_committee(origin: OriginFor<T>, dispute: DisputeId) -> DispatchResult {
            ensure_signed(origin)?;
            Self::do_advance_committee(dispute)
        }

        /// Shows that a provider signed two different statements about one task, or, without the second one, a statement
        /// that is not what it committed to or revealed on chain. Anybody may; who does gets the finder's share of the
        /// slash. Possible as long as the task has its round.
        ///
        /// # Errors
        /// `UnknownRound`, `NotMember`, `AlreadyAtFault`, `NoEquivocation`, `WrongSigner`, `BadSignature`.
        #[pallet::call_index(15)]
        #[pallet::weight(T::WeightInfo::report_equivocation())]
        pub fn report_equivocation(
            origin: OriginFor<T>,
            statement: SignedStatement<T::AccountId>,
            other: Option<SignedStatement<T::AccountId>>,
        ) -> DispatchResult {
            let reporter = ensure_signed(origin)?;
            Self::do_report_equivocation(reporter, statement, other)
        }
    }
}
