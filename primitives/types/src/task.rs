//! A task's specification, its life, and what providers say of it.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::{ConstU32, H256};
use sp_runtime::BoundedVec;

use crate::{
    ContentHash, ModelId, TaskId,
    input::Work,
    limits,
    model::Operation,
    multiaddr::Endpoints,
    speed::Requirements,
    trust::{Audit, FaultKind, InputDemand, OpenDispute, SlashId},
};

mod audits;

pub use audits::{AuditRate, AuditTerms};

/// A list with one entry per provider of a task.
pub type PerMember<T> = BoundedVec<T, ConstU32<{ limits::REDUNDANCY_MAX }>>;

/// A list with one entry per bid on a task.
pub type PerBid<T> = BoundedVec<T, ConstU32<{ limits::BIDS_MAX }>>;

/// How many of the best bids a task's providers are drawn from. The first bid after them sets the price.
pub const fn shortlist(redundancy: u32) -> u32 {
    match redundancy {
        1 => 1,
        more => more.saturating_mul(2),
    }
}

/// How closely a client wants its task to be watched.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Encode,
    Decode,
    DecodeWithMemTracking,
    MaxEncodedLen,
    TypeInfo,
    Default,
)]
pub enum SecurityLevel {
    /// About one result in seven is audited.
    Basic,
    /// One auditor on average.
    #[default]
    Standard,
    /// Three auditors on average.
    High,
}

impl SecurityLevel {
    /// From the least watched to the most.
    pub const ALL: [Self; 3] = [Self::Basic, Self::Standard, Self::High];
}

/// What a client says of how its task is to be secured.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Security {
    /// How closely the task is watched. The chain raises what a client asks for where its value at risk needs
    /// more.
    pub level: SecurityLevel,
    /// What a wrong answer could be worth to somebody else, in plancks. Providers lock stake accordingly.
    pub value_at_risk: u128,
}

/// What the client wants computed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct TaskSpec {
    /// Model id.
    pub model: ModelId,
    /// What to do with it.
    pub operation: Operation,
    /// Content hash of the input blob.
    pub input: ContentHash,
    /// Size of the input blob, in bytes.
    pub input_bytes: u32,
    /// Units the client pays for: for `Embed` the items of the input, all of them; for `Generate` the most
    /// tokens, those of the prompt included.
    pub units_max: u32,
    /// How many independent providers compute it (k).
    pub redundancy: u32,
    /// Where the input can be fetched.
    pub sources: Endpoints,
    /// How it is watched and secured.
    pub security: Security,
    /// What its providers have to have shown, and declared.
    pub requirements: Requirements,
}

impl TaskSpec {
    /// What its input has to fit.
    pub const fn work(&self) -> Work {
        Work {
            operation: self.operation,
            input_bytes: self.input_bytes,
            units_max: self.units_max,
        }
    }
}

/// A bid as it is hashed into its seal.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Bid<Balance> {
    /// What the bidder asks for `units_max` units, in plancks.
    pub price: Balance,
    /// Seconds from assignment within which the bidder expects to commit. Breaks ties between equal scores.
    pub seconds: u32,
    /// Keeps the seal from being guessed; also part of the draw's seed.
    pub salt: H256,
}

impl<Balance: Encode> Bid<Balance> {
    /// `blake2_256(task ‖ bidder ‖ bid)`, in SCALE: what is sent while bids are sealed.
    pub fn seal<AccountId: Encode>(&self, task: TaskId, bidder: &AccountId) -> H256 {
        H256(sp_crypto_hashing::blake2_256(&(task, bidder, self).encode()))
    }
}

/// A provider that has been given a task.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Assignment<AccountId, Balance> {
    /// Provider's stash.
    pub provider: AccountId,
    /// What it is paid for `units_max` units when its result is accepted, in plancks.
    pub price: Balance,
}

/// What a provider says the answer is.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct ResultClaim {
    /// Content hash of the output blob.
    pub output: ContentHash,
    /// Root of the trace of the computation.
    pub trace_root: H256,
    /// Units of work in the input.
    pub units: u32,
}

/// Why nobody was paid.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum FailureReason {
    /// Fewer eligible bids than the redundancy asked for.
    NotEnoughBids,
    /// Too few providers committed in time, and there was nobody to replace them.
    NotEnoughResults,
    /// No result was shared by a majority.
    NoAgreement,
    /// The client did not show a piece of its input that a provider had demanded on chain.
    InputWithheld,
}

/// How a computation ended.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub enum Verdict<AccountId> {
    /// A majority of the redundancy agreed.
    Agreed {
        /// The accepted result.
        claim: ResultClaim,
        /// Who gave it; they are paid.
        majority: PerMember<AccountId>,
        /// Who gave another one in time, or was found at fault; they are not paid.
        minority: PerMember<AccountId>,
        /// Who committed nothing, or did not reveal in time; they are not paid.
        absent: PerMember<AccountId>,
    },
    /// No provider is paid, and the client is refunded.
    Failed(FailureReason),
}

/// Where a task is. The state carries its data.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub enum TaskState<AccountId, Balance, BlockNumber> {
    /// Sealed bids are taken up to and including this time.
    Bidding {
        /// Last time for bids.
        until: BlockNumber,
    },
    /// Bids are opened up to and including this time.
    Revealing {
        /// Last time for opened bids.
        until: BlockNumber,
    },
    /// Bids are closed; the draw waits for entropy that nobody knew while they were open.
    Drawing {
        /// Block (not the clock's time) in which it was noted that the time for opening bids is over. Entropy
        /// has to be younger.
        since: BlockNumber,
    },
    /// Providers are at work; the round that `results` keeps says how far.
    Running {
        /// Who was drawn first; the round holds who is on it now.
        assignments: PerMember<Assignment<AccountId, Balance>>,
        /// Next best bidders, best first: they replace providers that drop out.
        reserves: PerBid<Assignment<AccountId, Balance>>,
    },
    /// Paid. Kept for a while so that clients can read it.
    Settled {
        /// Block of settlement.
        at: BlockNumber,
        /// The accepted result.
        claim: ResultClaim,
        /// Who was paid how much.
        payments: PerMember<Assignment<AccountId, Balance>>,
        /// Amount that went back to the client, in plancks.
        refund: Balance,
        /// Protocol fee, in plancks.
        fee: Balance,
    },
    /// No provider was paid, and the client has its money back, but for audits of what was revealed too late.
    Failed {
        /// Block of failure.
        at: BlockNumber,
        /// Why it failed.
        reason: FailureReason,
    },
    /// The client withdrew it before it was assigned, and has its money back; but for the least fee, where
    /// somebody had bid.
    Cancelled {
        /// Block of cancellation.
        at: BlockNumber,
        /// What the client paid for it, in plancks.
        fee: Balance,
    },
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Task<AccountId, Balance, BlockNumber> {
    /// Who posted and pays.
    pub client: AccountId,
    /// What is to be done.
    pub spec: TaskSpec,
    /// How its results are audited.
    pub audits: AuditTerms,
    /// The most the client pays in all, fee included, in plancks.
    pub cap: Balance,
    /// Block in which it was posted.
    pub posted_at: BlockNumber,
    /// Where it is.
    pub state: TaskState<AccountId, Balance, BlockNumber>,
}

/// How far one provider of a round is.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub enum MemberProgress {
    /// Nothing heard yet.
    Working,
    /// A salted commitment was made.
    Committed(H256),
    /// The commitment was opened.
    Revealed(ResultClaim),
}

/// One provider in a round.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct RoundMember<AccountId, Balance> {
    /// Provider's stash.
    pub provider: AccountId,
    /// What it is paid for `units_max` units when its result is accepted (R), in plancks.
    pub price: Balance,
    /// Stake locked for this task, in plancks. What a slash will take is no longer counted here.
    pub lock: Balance,
    /// How its result is audited.
    pub audits: AuditRate,
    /// How far it is.
    pub progress: MemberProgress,
    /// What it was found to have done, if anything: the gravest. Its result no longer counts then.
    pub fault: Option<FaultKind>,
    /// What it is to be slashed with for that, if anything.
    pub slash: Option<SlashId>,
    /// After a dispute that nobody could decide another provider has played it, and nobody could decide that
    /// either: no third one does, so that it takes the pay of one other at most.
    pub undecided_again: bool,
    /// Pieces of the input that it has demanded so far.
    pub input_demands: u32,
    /// It did not open its commitment in the reveal window. It is not paid then, whatever it opens later;
    /// that it opens it at all is demanded until [`Round::reveals_until`].
    pub missed_reveal: bool,
}

impl<AccountId, Balance> RoundMember<AccountId, Balance> {
    /// A provider that has just been given the task, and is not audited.
    pub fn new(provider: AccountId, price: Balance, lock: Balance) -> Self {
        Self {
            provider,
            price,
            lock,
            audits: AuditRate::default(),
            progress: MemberProgress::Working,
            fault: None,
            slash: None,
            undecided_again: false,
            input_demands: 0,
            missed_reveal: false,
        }
    }

    /// What it says the answer is, if it has revealed and no fault was found.
    pub const fn standing_claim(&self) -> Option<&ResultClaim> {
        match (&self.progress, self.fault) {
            (MemberProgress::Revealed(claim), None) => Some(claim),
            _ => None,
        }
    }

    /// Whether it has lost, or was found to have cheated in another way.
    pub const fn has_lost(&self) -> bool {
        matches!(self.fault, Some(fault) if fault.is_grave())
    }

    /// What it says the answer is, if it still has to answer for that. A lesser fault ends its pay, and is no
    /// shield from a graver one.
    pub const fn disputable_claim(&self) -> Option<&ResultClaim> {
        if self.has_lost() {
            return None;
        }
        self.claim()
    }

    /// What it says the answer is, if it said so in time and no fault was found: what can be paid,
    /// or hold a verdict by itself.
    pub const fn counted_claim(&self) -> Option<&ResultClaim> {
        if self.missed_reveal {
            return None;
        }
        self.standing_claim()
    }

    /// Whether a commitment is still to be opened.
    pub const fn owes_opening(&self) -> bool {
        matches!((&self.progress, self.fault), (MemberProgress::Committed(_), None))
    }

    /// What it said the answer is, at fault or not.
    pub const fn claim(&self) -> Option<&ResultClaim> {
        match &self.progress {
            MemberProgress::Revealed(claim) => Some(claim),
            MemberProgress::Working | MemberProgress::Committed(_) => None,
        }
    }
}

/// The phases of a round, in order. Each ends by time alone at the latest.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub enum RoundPhase<AccountId, BlockNumber> {
    /// Providers compute and commit, up to and including this time.
    Committing {
        /// Last time for commitments.
        until: BlockNumber,
    },
    /// All commitments are in; auditors may work until this time has passed.
    Auditing {
        /// Last time of the audit window. It begins when it is known what auditors draw themselves with;
        /// as long as the round [awaits that](Round::awaits_seed), this says nothing.
        until: BlockNumber,
    },
    /// Commitments are opened, up to and including this time.
    Revealing {
        /// Last time for reveals.
        until: BlockNumber,
    },
    /// The verdict stands unless it is challenged up to and including this time.
    Challengeable {
        /// Last time for challenges.
        until: BlockNumber,
        /// What will be carried out.
        verdict: Verdict<AccountId>,
    },
}

/// What auditors of a round draw themselves with. All but the seed is fixed when all providers have
/// committed; the seed comes from a later block.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct AuditDraw<Balance, BlockNumber> {
    /// Block (not the clock's time) in which auditing began. The author of a later one gives the seed.
    pub begun_at: BlockNumber,
    /// Stake and key of a verifier must be of this block or an earlier one.
    pub settled_by: BlockNumber,
    /// Randomness of the epoch in which auditing began.
    pub epoch_randomness: H256,
    /// Bonded stake of all verifiers, in plancks.
    pub verifier_stake: Balance,
    /// What verifiers draw themselves with, once it is known.
    pub seed: Option<H256>,
}

/// The checking of one task.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Round<AccountId, Balance, BlockNumber> {
    /// Most units the client pays for: no claim may report more.
    pub units_max: u32,
    /// Who is on it now: as many as equal results are asked for.
    pub members: PerMember<RoundMember<AccountId, Balance>>,
    /// Providers that dropped out and were replaced.
    pub dropped: PerMember<AccountId>,
    /// How far it is.
    pub phase: RoundPhase<AccountId, BlockNumber>,
    /// What auditors draw themselves with, from when commitments are closed.
    pub draw: Option<AuditDraw<Balance, BlockNumber>>,
    /// Who audits.
    pub audits: BoundedVec<Audit<AccountId, Balance>, ConstU32<{ limits::AUDITS_MAX }>>,
    /// Disputes that are open.
    pub disputes: BoundedVec<OpenDispute<BlockNumber>, ConstU32<{ limits::DISPUTES_MAX }>>,
    /// Challenges that are played now by accounts that are neither providers nor auditors of the round.
    pub challenges: u32,
    /// Demands on its providers that are open.
    pub demands: u32,
    /// Last time for demands of auditors: before the reveal the end of the first audit window, set with the
    /// seed; after it, for leaves of traces, an audit window from the verdict or from a reveal that was late.
    pub demands_until: Option<BlockNumber>,
    /// The first output that a verdict accepted, if one did: what the client was told.
    pub announced: Option<ContentHash>,
    /// How it is watched and secured.
    pub security: Security,
    /// How its results are audited.
    pub terms: AuditTerms,
    /// The piece of its input that the client has to show now.
    pub input_demand: Option<InputDemand<AccountId, Balance, BlockNumber>>,
    /// Last time for commitments whose reveal window was missed. Set with the verdict, and never moved: only
    /// silence beyond it is a fault.
    pub reveals_until: Option<BlockNumber>,
    /// The same for audits that are sealed. A late reveal moves it on, so that they have their time.
    pub openings_until: Option<BlockNumber>,
}

impl<AccountId, Balance, BlockNumber> Round<AccountId, Balance, BlockNumber> {
    /// A round with nobody on it yet and of the usual security, whose commitments are taken up to and
    /// including `until`.
    pub fn new(units_max: u32, until: BlockNumber) -> Self {
        Self {
            units_max,
            members: BoundedVec::default(),
            dropped: BoundedVec::default(),
            phase: RoundPhase::Committing { until },
            draw: None,
            audits: BoundedVec::default(),
            disputes: BoundedVec::default(),
            challenges: 0,
            demands: 0,
            demands_until: None,
            announced: None,
            security: Security::default(),
            terms: AuditTerms::default(),
            input_demand: None,
            reveals_until: None,
            openings_until: None,
        }
    }

    /// How many equal results are asked for (k).
    pub fn redundancy(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX)
    }

    /// Whether auditing has begun, and it is not known yet what auditors draw themselves with.
    pub fn awaits_seed(&self) -> bool {
        let is_auditing = matches!(self.phase, RoundPhase::Auditing { .. });
        is_auditing && self.draw.as_ref().is_some_and(|draw| draw.seed.is_none())
    }
}
