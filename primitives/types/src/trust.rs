//! Audits, faults, slashes and demands, as results, disputes and trust-lock keep them.
//!
//! A dispute's record holds its game and is therefore in `surety_dispute_game::dispute`.

mod jail;

pub use jail::{JailTerm, JailTerms};

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::H256;
use sp_runtime::{BoundedVec, Perbill, Perquintill, traits::ConstU32};

use crate::{
    ContentHash, TaskId,
    limits::{AUDIT_ITEMS_MAX, DEMAND_PARTS_MAX, FINDERS_MAX, ITEM_SIBLINGS_MAX, LAYERS_MAX},
    traits::SessionIndex,
};

/// Disputes are numbered in the order in which they were opened, from 0.
pub type DisputeId = u32;

/// Slashes are numbered in the order in which they were proven, from 0.
pub type SlashId = u32;

/// That a verifier drew itself: the output of its agent's sr25519 VRF, and the proof of it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct AuditProof {
    /// The VRF's pre-output, a Ristretto point.
    pub pre_output: [u8; 32],
    /// The proof that it is the signer's: two scalars.
    pub proof: [u8; 64],
}

/// How far an audit is.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub enum AuditState {
    /// The verifier's own result is sealed with `surety_audit_economics::audit_seal`.
    Sealed(H256),
    /// The verifier says the same as the provider.
    Confirmed,
    /// The verifier says something else. It plays whoever stands by what the provider said, one after the
    /// other, as soon as there is room for it; it waits for as long as somebody may still open such a seal.
    Differs,
    /// The verifier says something else, and plays.
    Disputed(DisputeId),
    /// The verifier says the same as the provider, who has lost, and defends that.
    Defends(DisputeId),
    /// Nothing more comes of it. Its bond was released, or is behind a slash.
    Over,
}

/// One verifier's check of one provider's result.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Audit<AccountId, Balance> {
    /// Verifier's stash.
    pub verifier: AccountId,
    /// Provider's stash.
    pub provider: AccountId,
    /// Stake locked for it, in plancks; zero once it is over.
    pub bond: Balance,
    /// The output with which the verifier drew itself: says which items are its own.
    pub draw: H256,
    /// Once its seal was opened as one over items.
    pub items: Option<ItemsOpened>,
    /// How far it is.
    pub state: AuditState,
}

impl<AccountId, Balance> Audit<AccountId, Balance> {
    /// Whether the verifier stands by the whole result. One that computed some of its items stands by those
    /// alone.
    pub const fn stands_by_all(&self) -> bool {
        matches!(self.state, AuditState::Confirmed) && self.items.is_none()
    }
}

/// That an audit's seal was opened as one over items, and where that can be read.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct ItemsOpened {
    /// The seal.
    pub seal: H256,
    /// Height of the block that has the opening.
    pub block: u32,
}

/// What an auditor found of one item.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct ItemFound {
    /// Merkle root over the item's leaves of the trace.
    pub leaves: H256,
    /// `blake2_256` of its row of the output.
    pub row: H256,
}

/// What an auditor found of each of its own items, in ascending order.
pub type ItemsFound = BoundedVec<ItemFound, ConstU32<AUDIT_ITEMS_MAX>>;

/// Which of its two answers a verifier gives that computed some items, and the salt that shows it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct AuditAnswer {
    /// Whether the provider's result shows what the verifier found.
    pub agrees: bool,
    /// The salt of that answer.
    pub salt: H256,
    /// `surety_audit_economics::answer_hash` of the other one's.
    pub other: H256,
}

/// The leaves of one item in a provider's trace, and what shows that they are.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct ItemLeaves {
    /// The leaves, one for each stride of layers.
    pub leaves: BoundedVec<H256, ConstU32<LAYERS_MAX>>,
    /// The hashes that lead from them to the root, from left to right.
    pub siblings: BoundedVec<H256, ConstU32<ITEM_SIBLINGS_MAX>>,
}

/// What shows that an auditor of items confirmed what it had not computed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Refutation {
    /// What it opened its seal with.
    pub found: ItemsFound,
    /// The answer that it gave.
    pub answer: AuditAnswer,
    /// Which of its own items has other leaves in the provider's trace, from 0.
    pub place: u32,
    /// That item's leaves there.
    pub shown: ItemLeaves,
}

/// A side of a dispute.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub enum Party<AccountId> {
    /// The stash of a provider of the round, with its lock. Its agent plays.
    Provider(AccountId),
    /// An auditor, with its audit's bond. Its agent plays.
    Auditor {
        /// Auditor's stash.
        verifier: AccountId,
        /// The stash of the provider that it audited.
        provider: AccountId,
    },
    /// Anybody else, with a bond of its own. It plays itself. Never defends.
    Account(AccountId),
}

impl<AccountId> Party<AccountId> {
    /// The account that gains or loses by the dispute.
    pub const fn account(&self) -> &AccountId {
        match self {
            Self::Provider(account) | Self::Account(account) => account,
            Self::Auditor { verifier, .. } => verifier,
        }
    }

    /// Whose result it is about, and who serves it: an auditor has none of its own.
    pub const fn claimant(&self) -> &AccountId {
        match self {
            Self::Provider(account) | Self::Account(account) => account,
            Self::Auditor { provider, .. } => provider,
        }
    }
}

/// An open dispute, as its round knows it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct OpenDispute<BlockNumber> {
    /// Dispute id.
    pub id: DisputeId,
    /// To be looked at when this time has passed: by then whoever is to move may have run out of time.
    pub due: BlockNumber,
    /// The defender's seat, where it is a provider of the round.
    pub defender: Option<u8>,
    /// The challenger's seat, where it is a provider of the round.
    pub challenger: Option<u8>,
}

/// What somebody was found to have done.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum FaultKind {
    /// Provider: a cell of its trace was computed again on chain, or by the committee, and is wrong.
    WrongResult,
    /// Provider: lost a dispute in another way. It ran out of time, conceded, or challenged a cell that
    /// holds.
    LostDispute,
    /// Provider: did not supply a piece of its output.
    WithheldData,
    /// Provider: committed and did not reveal.
    NoReveal,
    /// Provider: was in a dispute that nobody could decide. It loses its pay and no stake.
    Undecided,
    /// Auditor: challenged a result and lost.
    FalseAudit,
    /// Auditor: had confirmed a result, and lost the dispute in which it defended it, or had sealed something
    /// else than it confirmed.
    ConfirmedWrong,
    /// Auditor: announced an audit and did not reveal it.
    AuditNoShow,
    /// Provider: signed two different results for one task, or another one than it committed to; or said two
    /// things over a channel. Validator: signed two blocks, or two votes, of a kind.
    Equivocation,
    /// Provider: committed a batch over what is none of its receipts.
    FalseBatch,
}

/// What a fault costs beside the pay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCost {
    /// The stake that was locked for the task, or the audit.
    pub lock: bool,
    /// Part of the other stake, more when many are at fault at once.
    pub other_stake: bool,
    /// The clean tasks that were counted so far.
    pub record: bool,
    /// Work for a while.
    pub work: Option<NoWork>,
}

/// For how long a stash gets no work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoWork {
    /// As for a missed deadline: longer with each that was not made good for.
    Suspended,
    /// For the jail period.
    Jailed,
}

impl FaultKind {
    /// What it costs.
    pub const fn cost(self) -> FaultCost {
        const NOTHING: FaultCost = FaultCost {
            lock: false,
            other_stake: false,
            record: false,
            work: None,
        };
        const LOCK: FaultCost = FaultCost {
            lock: true,
            ..NOTHING
        };
        match self {
            Self::Undecided => NOTHING,
            // The whole lock: for less, whoever sees that it is audited would be silent.
            Self::NoReveal => FaultCost { record: true, ..LOCK },
            Self::AuditNoShow => FaultCost {
                work: Some(NoWork::Suspended),
                ..LOCK
            },
            Self::FalseAudit | Self::ConfirmedWrong => FaultCost {
                work: Some(NoWork::Jailed),
                ..LOCK
            },
            Self::WrongResult
            | Self::LostDispute
            | Self::WithheldData
            | Self::Equivocation
            | Self::FalseBatch => FaultCost {
                lock: true,
                other_stake: true,
                record: true,
                work: Some(NoWork::Jailed),
            },
        }
    }

    /// Whether it costs more than what was locked for the task. What was said no longer counts then, and the
    /// fault makes those of others dearer.
    pub const fn is_grave(self) -> bool {
        self.cost().other_stake
    }

    /// Whether it costs more than `other`, and therefore takes its place.
    pub const fn is_graver_than(self, other: Self) -> bool {
        let (one, other) = (self.cost(), other.cost());
        (one.lock && !other.lock) || (one.other_stake && !other.other_stake)
    }
}

/// What a slash is about.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum SlashCause {
    /// A task, or a round about a receipt, which has a number among those of tasks.
    Task(TaskId),
    /// What a provider or a verifier did over channels, where no round was about it.
    Channels,
    /// What a validator signed in this session. Its pool pays for it.
    Equivocation(SessionIndex),
}

/// A slash that waits to be carried out, so that it can still be vetoed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Slash<AccountId, Balance, BlockNumber> {
    /// What it is about.
    pub cause: SlashCause,
    /// Offender's stash, or the operator of a pool.
    pub offender: AccountId,
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Locked stake that is lost, in plancks. It stays locked until then.
    pub lock: Balance,
    /// Part of the rest of its stake that is lost as well, before correlated faults make it more. Of a pool,
    /// of all that was in it.
    pub part: Perquintill,
    /// Verifiers that found something else than the offender had said. They share the finder's part equally.
    pub finders: BoundedVec<AccountId, ConstU32<FINDERS_MAX>>,
    /// Who proved it: gets the finder's part when no verifier does. The insurance pool stands in when nobody
    /// did.
    pub finder: Option<AccountId>,
    /// The task's client. The insurance pool stands in when it was not harmed.
    pub client: Option<AccountId>,
    /// Time of the clock at which it was proven.
    pub proven_at: BlockNumber,
    /// It can be carried out when this time has passed, and vetoed until it is.
    pub until: BlockNumber,
}

/// What is remembered of a stash.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct TrustRecord<BlockNumber> {
    /// Provider: tasks without a fault since it came or was last at fault.
    pub clean_tasks: u32,
    /// It gets no tasks and does no audits up to and including this time: the end of its [`JailTerms`].
    pub jailed_until: Option<BlockNumber>,
    /// Incidents of missed deadlines (a provider's commitment where others made theirs, or its opening; a
    /// verifier's audit or vote that it sealed), less one for each clean task, or opened audit or vote,
    /// since.
    pub missed: u32,
    /// Up to and including this time it gets no work and its stake cannot be unbonded, because it missed
    /// deadlines. Costs no stake.
    pub suspended_until: Option<BlockNumber>,
}

/// What a provider of a task has to have.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Encode,
    Decode,
    DecodeWithMemTracking,
    MaxEncodedLen,
    TypeInfo,
)]
pub enum Content {
    /// The task's input: whoever has committed has it.
    Input,
    /// The provider's output.
    Output,
    /// The leaves of its trace, 32 bytes each: what auditors hold their own items against, after the reveal.
    Leaves,
}

/// A part of 8 KiB of what a provider has.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Encode,
    Decode,
    DecodeWithMemTracking,
    MaxEncodedLen,
    TypeInfo,
)]
pub struct ContentPart {
    /// What it is a part of.
    pub content: Content,
    /// Which part, from 0.
    pub part: u32,
}

/// What one demand asks for.
pub type DemandedParts = BoundedVec<ContentPart, ConstU32<DEMAND_PARTS_MAX>>;

/// What a provider has to show on chain because somebody has not been served it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Demand<AccountId, Balance, BlockNumber> {
    /// The client's account, or an auditor's stash. Gets the finder's share where nothing is shown.
    pub demander: AccountId,
    /// Account that pays for it: the client's, or the auditor's agent.
    pub by: AccountId,
    /// What has not been shown yet.
    pub parts: DemandedParts,
    /// What each part costs, in plancks. On hold on the account that pays.
    pub price: Balance,
    /// Last time for the provider.
    pub until: BlockNumber,
}

/// The output of which a provider has shown a part before it revealed any.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct OutputShown<AccountId> {
    /// Its content hash.
    pub content: ContentHash,
    /// Its length.
    pub bytes: u32,
    /// Who had it shown: finds the provider at fault if that reveals another one.
    pub demander: AccountId,
}

/// A piece of a task's input that somebody has to show on chain, or the client has withheld it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct InputDemand<AccountId, Balance, BlockNumber> {
    /// The stash of the provider that wants it.
    pub provider: AccountId,
    /// The agent that demanded it and pays for it.
    pub by: AccountId,
    /// Which 1 KiB of the input, from 0.
    pub segment: u32,
    /// What the client gets for it, in plancks. On hold on the agent's account.
    pub price: Balance,
    /// Last time for it.
    pub until: BlockNumber,
}

/// A provider at fault lately, for what that costs others. All its faults are one.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Conviction<AccountId, Balance, BlockNumber> {
    /// Offender's stash.
    pub offender: AccountId,
    /// All its stake when it was convicted, in plancks; the most there was of several times.
    pub stake: Balance,
    /// Time of the first conviction.
    pub first: BlockNumber,
    /// Time of the last one.
    pub last: BlockNumber,
    /// Convictions that were not vetoed.
    pub faults: u32,
}

/// An audit that nobody contradicted, of a provider that is paid, or that is not because it revealed too
/// late: its verifier is paid either way.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct AuditToPay<AccountId> {
    /// The stash of the provider that was audited.
    pub provider: AccountId,
    /// Verifier's stash.
    pub verifier: AccountId,
    /// The part of what the provider earns, or would have, that it gets, as long as its audits get no more
    /// than all of it.
    pub share: Perbill,
    /// Units of the result that it audited.
    pub units: u32,
}

/// What a provider committed to, as it did. Its member's progress shows the commitment only until it is
/// opened.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct CommitNote<AccountId> {
    /// The agent that sent it. It answers for what it signed, whoever is the agent now.
    pub agent: AccountId,
    /// The commitment.
    pub commitment: H256,
    /// The output that it has shown an auditor on chain before the reveal.
    pub shown: Option<OutputShown<AccountId>>,
}
