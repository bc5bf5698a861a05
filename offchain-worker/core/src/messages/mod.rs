//! What goes into and comes out of [`crate::Provider::step`] and [`crate::Verifier::step`].

mod effect;
mod record;

use sp_core::H256;
use surety_types::{
    task::ResultClaim,
    trust::{AuditProof, DisputeId},
    TaskId,
};
use surety_verification::bisection::Move;

use crate::{
    AccountId, Balance, BlockNumber, CommitteeRecord, DemandRecord, DisputeRecord, Hash, RoundRecord,
    TaskRecord,
};

pub use effect::{key_of, Effect, EffectKind};
pub use record::Record;

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
    /// We know whether we are to audit a result.
    Drawn {
        /// Of which task.
        task: TaskId,
        /// Whose result.
        provider: AccountId,
        /// That we are; nothing when we are not.
        proof: Option<AuditProof>,
    },
    /// A result has been computed again.
    AuditReady {
        /// Of which task.
        task: TaskId,
        /// Whose result.
        provider: AccountId,
        /// What we say.
        claim: ResultClaim,
    },
    /// The next move in a dispute has been found.
    MoveReady {
        /// On which task.
        task: TaskId,
        /// In which dispute.
        dispute: DisputeId,
        /// Moves before it, of both sides.
        number: u32,
        /// The move.
        played: Move,
    },
    /// We know whether we are drawn for a committee's ballot.
    SeatDrawn {
        /// On which task.
        task: TaskId,
        /// In which dispute.
        dispute: DisputeId,
        /// Ballots before this one.
        ballot: u32,
        /// That we are; nothing when we are not.
        proof: Option<AuditProof>,
    },
    /// The number that a committee is asked for has been computed.
    VoteReady {
        /// On which task.
        task: TaskId,
        /// In which dispute.
        dispute: DisputeId,
        /// Hash of what we have there.
        value: Hash,
    },
    /// An extrinsic made it into a block, or a check found what it looked for.
    EffectDone {
        /// For which task.
        task: TaskId,
        /// Which one.
        kind: EffectKind,
    },
    /// Something else did not work: an extrinsic did not make it into a block, or failed there; there is no audit, no
    /// move, or no data.
    EffectFailed {
        /// For which task.
        task: TaskId,
        /// Which one.
        kind: EffectKind,
        /// Whether trying again may help.
        retryable: bool,
    },
}

/// What one step comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// To be made durable first, all or none of them.
    pub records: Vec<Record>,
    /// To be carried out then, in any order.
    pub effects: Vec<Effect>,
}
