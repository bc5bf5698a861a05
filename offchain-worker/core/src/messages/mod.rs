//! What goes into and comes out of [`crate::Provider::step`] and [`crate::Verifier::step`].

mod effect;
mod kind;
mod record;

use sp_core::H256;
use surety_dispute_game::bisection::Move;
use surety_proofs::SignedStatement;
use surety_types::{
    ContentHash, ModelId, TaskId,
    model::Operation,
    region::Region,
    speed::MeasuredView,
    task::{ResultClaim, TaskSpec},
    trust::{AuditProof, DisputeId, ItemsFound, ItemsOpened, Refutation},
    view::BidTerms,
};

use crate::{
    AccountId, Balance, BlockNumber, CommitteeRecord, DemandRecord, DisputeRecord, Hash, RoundRecord,
    TaskRecord,
};

pub use effect::Effect;
pub use kind::{EffectKind, key_of};
pub use record::{KeptView, Record};

/// A task as one block's state shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSnapshot {
    /// Task id.
    pub id: TaskId,
    /// The task.
    pub task: TaskRecord,
    /// Its checking, while that lasts.
    pub round: Option<RoundRecord>,
    /// Our stash's bid on it.
    pub bid: Option<BidSeen>,
    /// What a bid for it can come to. Nothing is bid without it. The host asks while that is undecided.
    pub terms: Option<BidTerms<Balance>>,
    /// Every dispute that is open about it.
    pub disputes: Vec<(DisputeId, DisputeRecord)>,
    /// What providers, by their stashes, have to show of their outputs.
    pub demands: Vec<(AccountId, DemandRecord)>,
    /// The committees that sit about its disputes. A provider needs none.
    pub committees: Vec<(DisputeId, CommitteeRecord)>,
}

/// A bid as the chain shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BidSeen {
    /// Seal of the bid.
    pub seal: H256,
    /// Whether it has been opened.
    pub opened: bool,
}

/// What shows that we are to audit a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// That the output is our key's.
    pub proof: AuditProof,
    /// The VRF's output: which items are ours follows from it.
    pub output: [u8; 32],
}

/// What an audit came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// All was computed again.
    Whole(ResultClaim),
    /// Our items were.
    Items(ItemsFound),
}

/// An auditor's word that our result is right, by some of its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmation {
    /// Auditor's stash.
    pub verifier: AccountId,
    /// What was to be done.
    pub spec: TaskSpec,
    /// What we have revealed.
    pub claim: ResultClaim,
    /// Content hash of the blob of its trace's leaves.
    pub leaves: ContentHash,
    /// The auditor's items, in ascending order.
    pub items: Vec<u32>,
    /// Which block has what it opened.
    pub opened: ItemsOpened,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A block was finalised.
    Finalized {
        /// Height of the block.
        block: BlockNumber,
        /// What the chain's running clock shows in its state: deadlines compare with it, and with nothing
        /// else.
        clock: BlockNumber,
        /// Every task in its state that is not finished. One that is missing for long enough is over.
        tasks: Vec<TaskSnapshot>,
        /// Those of which something could not be read. That says nothing of them but that they are there.
        unread: Vec<TaskId>,
    },
    /// There is a new best block, which may still be replaced. What was sealed is opened, and what is
    /// demanded is shown, as soon as it asks for it; nothing new is promised because of it.
    Best {
        /// Height of the block.
        block: BlockNumber,
        /// What the chain's running clock shows in its state.
        clock: BlockNumber,
        /// Tasks in its state that are not finished: at least those that finalised state lists.
        tasks: Vec<TaskSnapshot>,
    },
    /// Work of one kind was measured: what is bid from now on knows how fast this machine is.
    Measured {
        /// Model id.
        model: ModelId,
        /// Operation that was measured.
        operation: Operation,
        /// How much of it.
        units: u32,
        /// How long computing took, in milliseconds. Not the fetching, nor the waiting for an engine.
        millis: u64,
    },
    /// Work of one kind was stopped before it was done, for example as it came too late: that much of it
    /// takes longer. What is bid from now on knows this machine to be no faster.
    TookLonger {
        /// Model id.
        model: ModelId,
        /// Operation that was stopped.
        operation: Operation,
        /// How much of it there was, at most.
        units: u32,
        /// How long it had been computed, in milliseconds.
        millis: u64,
    },
    /// Something else computes than before, a device less for example: nothing that was measured counts.
    Unmeasured,
    /// How much of our stake is free for locks. Without it, bids do not depend on stake.
    Stake {
        /// Bonded and not locked, in plancks.
        free: Balance,
    },
    /// How much money is free for fees. Without it, bids do not depend on money.
    Money {
        /// Of the stash and its agent together, in plancks: whichever can pays for a call.
        free: Balance,
    },
    /// What the chain's benchmark has measured of us. Without it, no task is bid for that asks for any of it.
    Benchmarked {
        /// Nothing where it never was, or that counts no more.
        measured: Option<MeasuredView>,
    },
    /// Where we have told the chain that we are. Without it, no task is bid for that asks for a region.
    Declared {
        /// Nothing where we have not said it.
        region: Option<Region>,
    },
    /// How long the chain gives a provider to compute and commit. Governance may have changed it.
    CommitWindow {
        /// In seconds.
        seconds: u32,
    },
    /// How long the chain gives an auditor to open its seal. Governance may have changed it.
    OpeningWindow {
        /// In seconds.
        seconds: u32,
    },
    /// Whether the chain takes bids of ours.
    Barred {
        /// Our suspension or our time in jail lasts up to and including this time of the running clock.
        until: Option<BlockNumber>,
    },
    /// Whether the journal is down to its reserve, the machine is paused or shall be, or its speed is not
    /// known. What was promised is kept in that, or was counted before, so nothing new is promised meanwhile.
    Room {
        /// It is.
        is_short: bool,
    },
    /// The input of a task is here, and is what its hash says.
    InputReady {
        /// Task id.
        task: TaskId,
    },
    /// A task has been computed, and its output stored.
    ResultReady {
        /// Task id.
        task: TaskId,
        /// The result.
        claim: ResultClaim,
        /// Content hash of the blob of its trace's leaves, where there is one.
        leaves: Option<ContentHash>,
    },
    /// We know whether we are to audit a result.
    Drawn {
        /// Task id.
        task: TaskId,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// That we are; nothing when we are not.
        drawn: Option<Drawn>,
    },
    /// The input of a task of items is here, which is all that an audit takes.
    AuditInput {
        /// Task id.
        task: TaskId,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// Tokens of all its items together.
        tokens: u64,
    },
    /// The provider has signed what it hands over for an audit. What the audit takes is here, unless it had
    /// signed something else before.
    AuditFetched {
        /// Task id.
        task: TaskId,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// Its word.
        statement: SignedStatement<AccountId>,
    },
    /// The provider has shown its output on the chain, and what the audit takes is here.
    AuditShown {
        /// Task id.
        task: TaskId,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// The output.
        output: ContentHash,
    },
    /// A result has been computed again, or our items of it.
    AuditReady {
        /// Task id.
        task: TaskId,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// What came of it.
        found: Found,
    },
    /// It is known whether a provider's result shows what we found of our items.
    AuditCompared {
        /// Task id.
        task: TaskId,
        /// How that was found out: [`EffectKind::CompareAudit`] or [`EffectKind::CompareAll`].
        kind: EffectKind,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// Whether it does.
        agrees: bool,
        /// What we play about it with, where it does not.
        view: Option<KeptView>,
    },
    /// It is known whether an auditor that confirmed our result by its items has sealed what our trace has of
    /// them.
    ConfirmationChecked {
        /// Task id.
        task: TaskId,
        /// Auditor's stash.
        verifier: AccountId,
        /// What shows that it has not; nothing when it has.
        refutation: Option<Box<Refutation>>,
    },
    /// The next move in a dispute has been found.
    MoveReady {
        /// Task id.
        task: TaskId,
        /// Dispute id.
        dispute: DisputeId,
        /// Moves before it, of both sides.
        number: u32,
        /// The move.
        played: Move,
    },
    /// We know whether we are drawn for a committee's ballot.
    SeatDrawn {
        /// Task id.
        task: TaskId,
        /// Dispute id.
        dispute: DisputeId,
        /// Ballots before this one.
        ballot: u32,
        /// That we are; nothing when we are not.
        proof: Option<AuditProof>,
    },
    /// The number that a committee is asked for has been computed.
    VoteReady {
        /// Task id.
        task: TaskId,
        /// Dispute id.
        dispute: DisputeId,
        /// Hash of what we have there.
        value: Hash,
    },
    /// An extrinsic made it into a block, or a check found what it looked for.
    EffectDone {
        /// Task id.
        task: TaskId,
        /// Kind of the effect.
        kind: EffectKind,
        /// Height of the block that the extrinsic is in.
        block: Option<BlockNumber>,
    },
    /// An effect came to nothing: an extrinsic did not make it into a block, or failed there; there is no
    /// input, no result, no audit, no move, or no data.
    EffectFailed {
        /// Task id.
        task: TaskId,
        /// Kind of the effect.
        kind: EffectKind,
        /// What that means for the next attempt.
        failure: Failure,
    },
}

/// What a failure means for the next attempt. A call to the chain is sent again until its deadline, whatever
/// it is; only a bid, an announcement and a refutation end with [`Failure::Failed`], and a bid waits after
/// [`Failure::Unbacked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It cost nothing: not in any block, or its fate is unknown, or nobody was there. Tried again within two
    /// blocks.
    Refused,
    /// It cost a fee or much work. Tried again after pauses that grow up to a bound.
    Failed,
    /// A bid cost its fee: other tasks have locked our stake. Made again once enough of it is free, after
    /// pauses that grow up to a bound.
    Unbacked,
    /// What it takes is no longer here: it is fetched or computed again first. Tried again after pauses that
    /// grow up to a bound.
    Gone,
    /// This machine can never do it, for example because the input is malformed. Ends fetching and computing;
    /// a call or a move of a dispute is tried again as after [`Failure::Failed`].
    Permanent,
}

/// An effect, and how soon it has to be through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// What is to be done.
    pub effect: Effect,
    /// What is left until its deadline on the chain's running clock; the maximum where there is none.
    pub left: BlockNumber,
    /// For calls: the deadline is near, or the call was refused again and again. A tip is in place.
    pub urgent: bool,
}

/// What one step comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// To be made durable first, all or none of them.
    pub records: Vec<Record>,
    /// To be carried out then: started in this order, moves and openings before work.
    pub effects: Vec<Due>,
}
