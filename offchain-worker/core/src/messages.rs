//! What goes into and comes out of [`crate::Provider::step`].

use codec::{Decode, Encode};
use sp_core::H256;
use surety_types::{
    model::Operation,
    multiaddr::Endpoints,
    task::{Bid, ResultClaim},
    ContentHash, ModelId, TaskId,
};

use crate::{Balance, BlockNumber, RoundRecord, TaskRecord};

/// A task as finalised state shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSnapshot {
    /// Its number.
    pub id: TaskId,
    /// The task.
    pub task: TaskRecord,
    /// Its checking, while that lasts.
    pub round: Option<RoundRecord>,
    /// Our stash's bid on it.
    pub bid: Option<BidSeen>,
    /// The most a provider can be paid for it, where the host has asked the chain. Without it, the client's cap
    /// shared out is taken, which leaves the fee out of account.
    pub price_limit: Option<Balance>,
}

/// A bid as the chain shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BidSeen {
    /// Its seal.
    pub seal: H256,
    /// Whether it has been opened.
    pub opened: bool,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A block was finalised.
    Finalised {
        /// Its height.
        block: BlockNumber,
        /// Every task in its state that is not finished. One that is missing is over.
        tasks: Vec<TaskSnapshot>,
    },
    /// The input of a task is here, and is what its hash says.
    InputReady {
        /// Which task.
        task: TaskId,
    },
    /// The input of a task could not be fetched.
    InputFailed {
        /// Which task.
        task: TaskId,
        /// Whether trying again may help.
        retryable: bool,
    },
    /// A task has been computed, and its output stored.
    ResultReady {
        /// Which task.
        task: TaskId,
        /// The result.
        claim: ResultClaim,
    },
    /// A task could not be computed.
    ComputeFailed {
        /// Which task.
        task: TaskId,
        /// Whether trying again may help.
        retryable: bool,
    },
    /// An extrinsic made it into a block.
    EffectDone {
        /// For which task.
        task: TaskId,
        /// Which one.
        kind: EffectKind,
    },
    /// An extrinsic did not make it into a block, or failed there.
    EffectFailed {
        /// For which task.
        task: TaskId,
        /// Which one.
        kind: EffectKind,
        /// Whether trying again may help.
        retryable: bool,
    },
}

/// Something to be done, after the records of the same step are durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send a sealed bid.
    SubmitBid {
        /// On which task.
        task: TaskId,
        /// The seal.
        seal: H256,
    },
    /// Open a bid.
    SubmitBidReveal {
        /// On which task.
        task: TaskId,
        /// The bid.
        bid: Bid<Balance>,
    },
    /// Fetch an input, and check it against its hash.
    FetchInput {
        /// Of which task.
        task: TaskId,
        /// Its hash.
        hash: ContentHash,
        /// Its size in bytes.
        bytes: u32,
        /// Where the client says it is.
        sources: Endpoints,
    },
    /// Compute a task whose input is here.
    Compute {
        /// Which task.
        task: TaskId,
        /// With which model.
        model: ModelId,
        /// What.
        operation: Operation,
        /// On what.
        input: ContentHash,
        /// Most units that are paid for; an input with more cannot be claimed for.
        units_max: u32,
    },
    /// Commit to a result.
    SubmitCommit {
        /// Of which task.
        task: TaskId,
        /// The commitment.
        commitment: H256,
    },
    /// Open a commitment.
    SubmitReveal {
        /// Of which task.
        task: TaskId,
        /// The result.
        claim: ResultClaim,
        /// The commitment's salt.
        salt: H256,
    },
    /// Stop what is under way for a task, and drop what is kept for it, in the journal too.
    Forget {
        /// Which task.
        task: TaskId,
    },
}

/// The kinds of [`Effect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectKind {
    /// [`Effect::SubmitBid`].
    Bid,
    /// [`Effect::SubmitBidReveal`].
    BidReveal,
    /// [`Effect::FetchInput`].
    Fetch,
    /// [`Effect::Compute`].
    Compute,
    /// [`Effect::SubmitCommit`].
    Commit,
    /// [`Effect::SubmitReveal`].
    Reveal,
    /// [`Effect::Forget`].
    Forget,
}

impl Effect {
    /// Of which kind it is.
    pub fn kind(&self) -> EffectKind {
        match self {
            Self::SubmitBid { .. } => EffectKind::Bid,
            Self::SubmitBidReveal { .. } => EffectKind::BidReveal,
            Self::FetchInput { .. } => EffectKind::Fetch,
            Self::Compute { .. } => EffectKind::Compute,
            Self::SubmitCommit { .. } => EffectKind::Commit,
            Self::SubmitReveal { .. } => EffectKind::Reveal,
            Self::Forget { .. } => EffectKind::Forget,
        }
    }

    /// For which task it is.
    pub fn task(&self) -> TaskId {
        match self {
            Self::SubmitBid { task, .. }
            | Self::SubmitBidReveal { task, .. }
            | Self::FetchInput { task, .. }
            | Self::Compute { task, .. }
            | Self::SubmitCommit { task, .. }
            | Self::SubmitReveal { task, .. }
            | Self::Forget { task } => *task,
        }
    }
}

/// Something promised or learnt that a restart must know of. Each says when: a restart takes no finalised state in
/// that is older than its newest record, so that a node which lags behind cannot make it forget a task.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Record {
    /// We bid for a task, with this bid and no other.
    BidMade {
        /// Which task.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// The bid.
        bid: Bid<Balance>,
    },
    /// We have a task's result, and it is this one and no other.
    ResultMade {
        /// Which task.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// The result.
        claim: ResultClaim,
        /// The commitment's salt.
        salt: H256,
        /// The commitment.
        commitment: H256,
    },
    /// The commitment made it into a block.
    CommitSubmitted {
        /// Of which task.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
    },
    /// The opened commitment made it into a block.
    RevealSubmitted {
        /// Of which task.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
    },
    /// We have nothing more to do with a task, ever.
    Finished {
        /// Which task.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
    },
}

impl Record {
    /// Which task it is about.
    pub fn task(&self) -> TaskId {
        match self {
            Self::BidMade { task, .. }
            | Self::ResultMade { task, .. }
            | Self::CommitSubmitted { task, .. }
            | Self::RevealSubmitted { task, .. }
            | Self::Finished { task, .. } => *task,
        }
    }

    /// The last finalised block when it was made.
    pub fn at(&self) -> BlockNumber {
        match self {
            Self::BidMade { at, .. }
            | Self::ResultMade { at, .. }
            | Self::CommitSubmitted { at, .. }
            | Self::RevealSubmitted { at, .. }
            | Self::Finished { at, .. } => *at,
        }
    }
}

/// What one step comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// To be made durable first, all or none of them.
    pub records: Vec<Record>,
    /// To be carried out then, in any order.
    pub effects: Vec<Effect>,
}
