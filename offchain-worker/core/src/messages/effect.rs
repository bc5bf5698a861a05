//! What is to be done.

use surety_audit_economics::{AuditInput, SeatInput};
use surety_dispute_game::bisection::{Move, Side};
use surety_proofs::SignedStatement;
use surety_types::{
    ContentHash, ModelId, TaskId,
    model::Operation,
    multiaddr::Endpoints,
    task::{Bid, ResultClaim, TaskSpec},
    trust::{AuditAnswer, AuditProof, ContentPart, DemandedParts, DisputeId, ItemsFound, Refutation},
};

use super::{Confirmation, EffectKind, KeptView, key_of};
use crate::{AccountId, Balance, BlockNumber, DisputeRecord, Hash};

/// Something to be done, after the records of the same step are durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send a sealed bid.
    SubmitBid {
        /// Task id.
        task: TaskId,
        /// Seal of the bid.
        seal: Hash,
    },
    /// Open a bid.
    SubmitBidReveal {
        /// Task id.
        task: TaskId,
        /// The bid.
        bid: Bid<Balance>,
    },
    /// Fetch an input, and check it against its hash.
    FetchInput {
        /// Task id.
        task: TaskId,
        /// Hash of the input.
        hash: ContentHash,
        /// Its size in bytes.
        bytes: u32,
        /// Where the client says it is.
        sources: Endpoints,
        /// Whether it may be taken from here. Else it has to come from others, also where the same bytes lie
        /// here for another task.
        may_be_here: bool,
    },
    /// Compute a task whose input is here.
    Compute {
        /// Task id.
        task: TaskId,
        /// Model id.
        model: ModelId,
        /// Operation of the task.
        operation: Operation,
        /// Hash of the input.
        input: ContentHash,
        /// Most units that are paid for; an input with more cannot be claimed for.
        units_max: u32,
    },
    /// Commit to a result.
    SubmitCommit {
        /// Task id.
        task: TaskId,
        /// The commitment.
        commitment: Hash,
    },
    /// Open a commitment.
    SubmitReveal {
        /// Task id.
        task: TaskId,
        /// The result.
        claim: ResultClaim,
        /// The commitment's salt.
        salt: Hash,
    },
    /// Show a part of the input, of our output, or of our trace's leaves, on the chain. Of content that has
    /// fewer the last one does.
    SubmitSupply {
        /// Task id.
        task: TaskId,
        /// Which part.
        part: ContentPart,
        /// The hash of what it is a part of.
        hash: ContentHash,
    },
    /// Find out whether we are to audit a result: evaluate the VRF of the agent's key, and compare it with
    /// our chances.
    Draw {
        /// Input of the VRF.
        input: AuditInput<AccountId>,
        /// Bonded stake of all verifiers, in plancks.
        verifier_stake: Balance,
        /// Our stake and key must be older than this block of the chain.
        settled_by: BlockNumber,
    },
    /// Fetch what an audit needs: the input, and the output that the provider has said where it matters.
    FetchAudit {
        /// Task id.
        task: TaskId,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// What was to be done.
        spec: TaskSpec,
        /// The output that the provider has signed before: it and no other.
        output: Option<ContentHash>,
    },
    /// Compute somebody's task again, from what was fetched for it.
    Audit {
        /// Task id.
        task: TaskId,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// What was to be done.
        spec: TaskSpec,
        /// The output that the provider has signed.
        output: Option<ContentHash>,
        /// Our items, in ascending order, where not all of it is ours. A model whose items cannot be computed
        /// alone is computed in whole.
        items: Option<Vec<u32>>,
    },
    /// Find out whether a provider's result shows what we found of our items, by what it serves of its trace
    /// and its output.
    CompareAudit {
        /// Task id.
        task: TaskId,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// What was to be done.
        spec: TaskSpec,
        /// What the provider says.
        claim: ResultClaim,
        /// Our items, and what we found of them.
        own: (Vec<u32>, ItemsFound),
    },
    /// The same of a provider that serves nothing, by computing all of it.
    CompareAll {
        /// Task id.
        task: TaskId,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// What was to be done.
        spec: TaskSpec,
        /// What the provider says.
        claim: ResultClaim,
    },
    /// Say on the chain that we audit, with our own result sealed.
    SubmitAnnouncement {
        /// Task id.
        task: TaskId,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// That we were drawn.
        proof: AuditProof,
        /// Seal of our result.
        seal: Hash,
    },
    /// Open our own result.
    SubmitAuditReveal {
        /// Task id.
        task: TaskId,
        /// Stash of the provider whose result it is held against.
        provider: AccountId,
        /// Our result.
        claim: ResultClaim,
        /// The seal's salt.
        salt: Hash,
    },
    /// Open what we found of our items.
    SubmitItemsReveal {
        /// Task id.
        task: TaskId,
        /// Stash of the provider whose result it is held against.
        provider: AccountId,
        /// What we found.
        found: ItemsFound,
        /// Whether the provider's result shows it.
        answer: AuditAnswer,
    },
    /// See whether a provider serves the output that it has revealed.
    CheckData {
        /// Task id.
        task: TaskId,
        /// Provider's stash.
        provider: AccountId,
        /// What was to be done.
        spec: TaskSpec,
        /// The output's hash.
        output: ContentHash,
    },
    /// Demand on the chain what a provider does not serve.
    SubmitDemand {
        /// Task id.
        task: TaskId,
        /// Provider's stash.
        provider: AccountId,
        /// What of it.
        parts: DemandedParts,
        /// That we are drawn: before the reveal.
        proof: Option<AuditProof>,
    },
    /// Demand on the chain what a provider does not serve of what our items are held against.
    SubmitLeavesDemand {
        /// Task id.
        task: TaskId,
        /// Stash of the provider whose result it is.
        provider: AccountId,
        /// What was to be done.
        spec: TaskSpec,
        /// Which items are ours.
        items: Vec<u32>,
    },
    /// Find our next move in a dispute.
    ComputeMove {
        /// Dispute id.
        dispute: DisputeId,
        /// Record of the dispute in finalised state.
        record: Box<DisputeRecord>,
        /// Which side is ours.
        side: Side,
        /// The task it is about.
        spec: TaskSpec,
        /// Our own view, where it is kept: nothing is computed for it then.
        view: Option<KeptView>,
    },
    /// Play a move.
    SubmitMove {
        /// Task id.
        task: TaskId,
        /// Dispute id.
        dispute: DisputeId,
        /// Moves before it, of both sides. With it the chain refuses a move that comes too late.
        number: u32,
        /// The move.
        played: Move,
    },
    /// Have a dispute take note that the other side's time is over.
    SubmitAdvance {
        /// Task id.
        task: TaskId,
        /// Dispute id.
        dispute: DisputeId,
    },
    /// Find out whether we are drawn for a ballot of a committee: evaluate the VRF of the agent's key.
    DrawSeat {
        /// Task id.
        task: TaskId,
        /// Input of the VRF.
        input: SeatInput,
        /// Bonded stake of all verifiers, in plancks.
        verifier_stake: Balance,
    },
    /// Compute the number that a committee is asked for.
    ComputeVote {
        /// Dispute id.
        dispute: DisputeId,
        /// Record of the dispute in finalised state.
        record: Box<DisputeRecord>,
        /// The task it is about.
        spec: TaskSpec,
    },
    /// Take a seat, with our answer sealed.
    SubmitJoin {
        /// Task id.
        task: TaskId,
        /// Dispute id.
        dispute: DisputeId,
        /// Ballots before this one.
        ballot: u32,
        /// That we are drawn; nothing where all are summoned.
        proof: Option<AuditProof>,
        /// Seal of our answer.
        seal: Hash,
    },
    /// Open our answer.
    SubmitVote {
        /// Task id.
        task: TaskId,
        /// Dispute id.
        dispute: DisputeId,
        /// The answer.
        value: Hash,
        /// The seal's salt.
        salt: Hash,
    },
    /// Report a provider that has signed two different things of what it handed over, or revealed something
    /// else.
    SubmitReport {
        /// Task id.
        task: TaskId,
        /// Its stash.
        provider: AccountId,
        /// What it had signed.
        statement: SignedStatement<AccountId>,
        /// What else it had; nothing: it is held against what it revealed.
        other: Option<SignedStatement<AccountId>>,
    },
    /// Find out whether an auditor that confirmed our result by its items has sealed what our trace has of
    /// them.
    CheckConfirmation {
        /// Task id.
        task: TaskId,
        /// The auditor's word, and what it is held against.
        confirmation: Confirmation,
    },
    /// Show on the chain that an auditor has confirmed what it never computed.
    SubmitRefutation {
        /// Task id.
        task: TaskId,
        /// Auditor's stash.
        verifier: AccountId,
        /// What shows it.
        refutation: Box<Refutation>,
    },
    /// Demand a piece of a task's input on the chain.
    SubmitInputDemand {
        /// Task id.
        task: TaskId,
        /// Demands of ours before this one.
        number: u32,
        /// Which 1 KiB of it, from 0.
        segment: u32,
    },
    /// Stop an effect that is under way, and say nothing of how it went: it can no longer matter.
    Cancel {
        /// Task id.
        task: TaskId,
        /// Kind of the effect.
        kind: EffectKind,
    },
    /// Stop what is under way for a task, and drop what is kept for it, in the journal too.
    Forget {
        /// Task id.
        task: TaskId,
    },
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
            Self::SubmitSupply { part, .. } => EffectKind::Supply(*part),
            Self::Draw { input, .. } => EffectKind::Draw(key_of(&input.provider)),
            Self::FetchAudit { provider, .. } => EffectKind::FetchAudit(key_of(provider)),
            Self::Audit { provider, .. } => EffectKind::Audit(key_of(provider)),
            Self::SubmitAnnouncement { provider, .. } => EffectKind::Announce(key_of(provider)),
            Self::CompareAudit { provider, .. } => EffectKind::CompareAudit(key_of(provider)),
            Self::CompareAll { provider, .. } => EffectKind::CompareAll(key_of(provider)),
            Self::SubmitAuditReveal { provider, .. } | Self::SubmitItemsReveal { provider, .. } => {
                EffectKind::AuditReveal(key_of(provider))
            }
            Self::CheckData { provider, .. } => EffectKind::CheckData(key_of(provider)),
            Self::SubmitDemand { provider, .. } => EffectKind::Demand(key_of(provider)),
            Self::SubmitLeavesDemand { provider, .. } => EffectKind::DemandLeaves(key_of(provider)),
            Self::ComputeMove { dispute, .. } => EffectKind::ComputeMove(*dispute),
            Self::SubmitMove { dispute, .. } => EffectKind::Play(*dispute),
            Self::SubmitAdvance { dispute, .. } => EffectKind::Advance(*dispute),
            Self::DrawSeat { input, .. } => EffectKind::DrawSeat(input.dispute),
            Self::ComputeVote { dispute, .. } => EffectKind::ComputeVote(*dispute),
            Self::SubmitJoin { dispute, .. } => EffectKind::Join(*dispute),
            Self::SubmitVote { dispute, .. } => EffectKind::Vote(*dispute),
            Self::SubmitReport { provider, .. } => EffectKind::Report(key_of(provider)),
            Self::CheckConfirmation { confirmation, .. } => {
                EffectKind::CheckConfirmation(key_of(&confirmation.verifier))
            }
            Self::SubmitRefutation { verifier, .. } => EffectKind::Refute(key_of(verifier)),
            Self::SubmitInputDemand { number, .. } => EffectKind::DemandInput(*number),
            Self::Cancel { .. } => EffectKind::Cancel,
            Self::Forget { .. } => EffectKind::Forget,
        }
    }

    /// For which task it is.
    pub fn task(&self) -> TaskId {
        match self {
            Self::Draw { input, .. } => input.task,
            Self::ComputeMove { record, .. } | Self::ComputeVote { record, .. } => record.task,
            Self::SubmitBid { task, .. }
            | Self::SubmitBidReveal { task, .. }
            | Self::FetchInput { task, .. }
            | Self::Compute { task, .. }
            | Self::SubmitCommit { task, .. }
            | Self::SubmitReveal { task, .. }
            | Self::SubmitSupply { task, .. }
            | Self::FetchAudit { task, .. }
            | Self::Audit { task, .. }
            | Self::SubmitAnnouncement { task, .. }
            | Self::CompareAudit { task, .. }
            | Self::CompareAll { task, .. }
            | Self::SubmitAuditReveal { task, .. }
            | Self::SubmitItemsReveal { task, .. }
            | Self::CheckData { task, .. }
            | Self::SubmitDemand { task, .. }
            | Self::SubmitLeavesDemand { task, .. }
            | Self::SubmitMove { task, .. }
            | Self::SubmitAdvance { task, .. }
            | Self::DrawSeat { task, .. }
            | Self::SubmitJoin { task, .. }
            | Self::SubmitVote { task, .. }
            | Self::SubmitReport { task, .. }
            | Self::CheckConfirmation { task, .. }
            | Self::SubmitRefutation { task, .. }
            | Self::SubmitInputDemand { task, .. }
            | Self::Cancel { task, .. }
            | Self::Forget { task } => *task,
        }
    }
}
