//! What has to be durable.

use codec::{Decode, Encode};
use surety_dispute_game::bisection::Move;
use surety_proofs::SignedStatement;
use surety_types::{
    ContentHash, TaskId,
    task::{Bid, ResultClaim},
    trust::{DisputeId, ItemsFound, Refutation},
};

use crate::{AccountId, Balance, BlockNumber, Hash};

/// Something promised or learnt that a restart must know of. Each says when: a restart takes no finalised
/// state in that is older than its newest record, so that a node which lags behind cannot make it forget a
/// task.
///
/// Kept on disk in SCALE: new kinds come last, and none changes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Record {
    /// We bid for a task, with this bid and no other.
    BidMade {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// The bid.
        bid: Bid<Balance>,
    },
    /// We have a task's result, and it is this one and no other.
    ResultMade {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// The result.
        claim: ResultClaim,
        /// The commitment's salt.
        salt: Hash,
        /// The commitment.
        commitment: Hash,
    },
    /// The commitment made it into a block.
    CommitSubmitted {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
    },
    /// The opened commitment made it into a block.
    RevealSubmitted {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
    },
    /// We have nothing more to do with a task, ever.
    Finished {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
    },
    /// We have audited a result, and say this and nothing else of it.
    AuditMade {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// Result that we computed.
        claim: ResultClaim,
        /// The seal's salt.
        salt: Hash,
        /// Seal of the result.
        seal: Hash,
    },
    /// The seal was in a block. It may still be replaced.
    AuditAnnounced {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// Stash of the provider whose result it is.
        provider: AccountId,
    },
    /// The opened seal was in a block. It may still be replaced.
    AuditRevealed {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// Stash of the provider whose result it is.
        provider: AccountId,
    },
    /// In a dispute we play this move and no other.
    MoveMade {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// Dispute id.
        dispute: DisputeId,
        /// Moves before it, of both sides.
        number: u32,
        /// The move.
        played: Move,
    },
    /// The move was in a block. It may still be replaced.
    MoveSubmitted {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// Dispute id.
        dispute: DisputeId,
        /// Moves before it, of both sides.
        number: u32,
    },
    /// On a committee we answer this and nothing else.
    VoteMade {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// Dispute id.
        dispute: DisputeId,
        /// Ballots before this one.
        ballot: u32,
        /// Hash of the value that we computed.
        value: Hash,
        /// The seal's salt.
        salt: Hash,
        /// Seal of the answer.
        seal: Hash,
    },
    /// An input could not be fetched, for the first time since we wait for it.
    InputMissed {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// The block since which we wait.
        since: BlockNumber,
        /// Demands of ours until then.
        demands: u32,
    },
    /// We demand this piece of a task's input and no other, the first time or the next.
    InputDemandMade {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// Demands of ours before this one.
        number: u32,
        /// Which 1 KiB of it, from 0.
        segment: u32,
    },
    /// The leaves of our result's trace are in this blob.
    LeavesKept {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// Its content hash.
        leaves: ContentHash,
    },
    /// We have audited our items of a result, and say this and nothing else of them.
    ItemsAudited {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// What we found.
        found: ItemsFound,
        /// Salts of the two answers, the confirming one first.
        salts: [Hash; 2],
        /// Seal of it.
        seal: Hash,
    },
    /// We know whether a provider's result shows what we found of our items, and answer this.
    AuditCompared {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// Whether it does.
        agrees: bool,
    },
    /// A provider has signed what it handed over for an audit. It has to reveal that. A second one says
    /// something else.
    AuditServed {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// Its word.
        statement: SignedStatement<AccountId>,
    },
    /// We know whether an auditor that confirmed our result by its items has sealed what our trace has.
    ConfirmationChecked {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// Auditor's stash.
        verifier: AccountId,
        /// What we show of it; nothing where it has.
        refutation: Option<Box<Refutation>>,
    },
    /// What we play with about a claim of which we have computed some items alone.
    ViewKept {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// Where it is.
        view: KeptView,
    },
    /// A task's input was fetched for this very task: from then on it may be taken from here.
    InputFetched {
        /// Task id.
        task: TaskId,
        /// Last finalised block then.
        at: BlockNumber,
    },
}

/// Blobs of our own view of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct KeptView {
    /// The leaves of the trace.
    pub leaves: ContentHash,
    /// The output.
    pub output: ContentHash,
    /// Where it differs from the claim, where we know that by the parts alone which were shown on chain, and
    /// nothing of the rest: the leaf, and the segment of the output, which counts if the leaf is that.
    pub differs: Option<(u32, u32)>,
}

impl Record {
    /// Which task it is about.
    pub fn task(&self) -> TaskId {
        match self {
            Self::BidMade { task, .. }
            | Self::ResultMade { task, .. }
            | Self::CommitSubmitted { task, .. }
            | Self::RevealSubmitted { task, .. }
            | Self::Finished { task, .. }
            | Self::AuditMade { task, .. }
            | Self::AuditAnnounced { task, .. }
            | Self::AuditRevealed { task, .. }
            | Self::MoveMade { task, .. }
            | Self::MoveSubmitted { task, .. }
            | Self::VoteMade { task, .. }
            | Self::InputMissed { task, .. }
            | Self::InputDemandMade { task, .. }
            | Self::LeavesKept { task, .. }
            | Self::ItemsAudited { task, .. }
            | Self::AuditCompared { task, .. }
            | Self::AuditServed { task, .. }
            | Self::ConfirmationChecked { task, .. }
            | Self::ViewKept { task, .. }
            | Self::InputFetched { task, .. } => *task,
        }
    }

    /// The last finalised block when it was made.
    pub fn at(&self) -> BlockNumber {
        match self {
            Self::BidMade { at, .. }
            | Self::ResultMade { at, .. }
            | Self::CommitSubmitted { at, .. }
            | Self::RevealSubmitted { at, .. }
            | Self::Finished { at, .. }
            | Self::AuditMade { at, .. }
            | Self::AuditAnnounced { at, .. }
            | Self::AuditRevealed { at, .. }
            | Self::MoveMade { at, .. }
            | Self::MoveSubmitted { at, .. }
            | Self::VoteMade { at, .. }
            | Self::InputMissed { at, .. }
            | Self::InputDemandMade { at, .. }
            | Self::LeavesKept { at, .. }
            | Self::ItemsAudited { at, .. }
            | Self::AuditCompared { at, .. }
            | Self::AuditServed { at, .. }
            | Self::ConfirmationChecked { at, .. }
            | Self::ViewKept { at, .. }
            | Self::InputFetched { at, .. } => *at,
        }
    }
}
