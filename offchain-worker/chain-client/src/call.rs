//! Every call that the worker and the command line make.

mod argument;

use codec::Encode;
use sp_core::{H256, crypto::AccountId32};
use surety_dispute_game::bisection::Move;
use surety_proofs::{PartOpening, SegmentOpening, SignedStatement};
use surety_types::{
    ModelId, TaskId,
    model::ModelManifest,
    multiaddr::Endpoints,
    provider::DeviceProfile,
    stake::Role,
    task::{Bid, ResultClaim, TaskSpec},
    trust::{AuditAnswer, AuditProof, Content, DemandedParts, DisputeId, ItemsFound, Refutation, SlashId},
};

use crate::chain::Balance;

pub use argument::Argument;

/// A call, with its arguments as the pallet takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `Staking.bond`: puts `amount` plancks of the signer's to work; adds to what is bonded already.
    Bond {
        /// What for.
        role: Role,
        /// How much, in plancks.
        amount: Balance,
    },
    /// `Staking.unbond`: starts taking `amount` plancks out.
    Unbond {
        /// How much, in plancks.
        amount: Balance,
    },
    /// `Staking.withdraw_unbonded`: takes out what has waited long enough.
    WithdrawUnbonded,
    /// `Staking.rebond`: puts `amount` plancks that are on their way out back to work.
    Rebond {
        /// How much, in plancks.
        amount: Balance,
    },
    /// `Staking.set_agent`: the stash names the key that may act for it.
    SetAgent {
        /// The key.
        agent: AccountId32,
    },
    /// `Staking.confirm_agent`: the agent agrees to act for `stash`.
    ConfirmAgent {
        /// Whom it acts for.
        stash: AccountId32,
    },
    /// `Staking.remove_agent`: nobody acts for the stash any more.
    RemoveAgent,
    /// `ProviderRegistry.register`: offers a machine, or updates the offer.
    RegisterProvider {
        /// The machine.
        device: DeviceProfile,
        /// Where its data plane answers.
        endpoints: Endpoints,
    },
    /// `ProviderRegistry.heartbeat`: a sign of life.
    Heartbeat,
    /// `ProviderRegistry.deregister`: takes the offer back.
    DeregisterProvider,
    /// `ModelRegistry.register`: publishes a model.
    RegisterModel {
        /// What fixes its answers.
        manifest: ModelManifest,
    },
    /// `ModelRegistry.retire`: takes a model back.
    RetireModel {
        /// Which.
        model: ModelId,
    },
    /// `ModelRegistry.offer_audits`: says that a verifier audits a model, or does no more.
    OfferAudits {
        /// Which.
        model: ModelId,
        /// Whether it does.
        offered: bool,
    },
    /// `TaskAuction.post`: asks for work.
    PostTask {
        /// The work.
        spec: TaskSpec,
        /// The most it may cost in all, in plancks.
        cap: Balance,
    },
    /// `TaskAuction.bid`: a sealed bid.
    Bid {
        /// On which task.
        task: TaskId,
        /// The bid's hash.
        seal: H256,
    },
    /// `TaskAuction.reveal_bid`: opens a bid. Goes without a signature.
    RevealBid {
        /// On which task.
        task: TaskId,
        /// The bidder's stash.
        provider: AccountId32,
        /// The bid.
        bid: Bid<Balance>,
    },
    /// `TaskAuction.cancel`: the client withdraws a task that is not assigned yet.
    CancelTask {
        /// Which.
        task: TaskId,
    },
    /// `TaskAuction.advance`: has a task do what is due by time.
    AdvanceTask {
        /// Which.
        task: TaskId,
    },
    /// `Results.commit`: the salted hash of a result.
    Commit {
        /// Of which task.
        task: TaskId,
        /// The hash.
        commitment: H256,
    },
    /// `Results.reveal`: opens a commitment. Goes without a signature.
    Reveal {
        /// Of which task.
        task: TaskId,
        /// Whose: the stash.
        provider: AccountId32,
        /// The result.
        claim: ResultClaim,
        /// What the commitment was salted with.
        salt: H256,
    },
    /// `Results.announce_audit`: a verifier says that it audits, with its own result sealed.
    AnnounceAudit {
        /// Which task.
        task: TaskId,
        /// Whose result.
        provider: AccountId32,
        /// That the verifier drew itself.
        proof: AuditProof,
        /// The sealed result.
        seal: H256,
    },
    /// `Results.reveal_audit`: opens it. Goes without a signature.
    RevealAudit {
        /// Of which task.
        task: TaskId,
        /// Whose result it is held against.
        provider: AccountId32,
        /// Whose audit: the stash.
        verifier: AccountId32,
        /// The verifier's own result.
        claim: ResultClaim,
        /// What the seal was salted with.
        salt: H256,
    },
    /// `Results.reveal_items`: opens what was found of some items. Goes without a signature.
    RevealItems {
        /// Of which task.
        task: TaskId,
        /// Whose result it is held against.
        provider: AccountId32,
        /// Whose audit: the stash.
        verifier: AccountId32,
        /// What the verifier found.
        found: ItemsFound,
        /// Whether the provider's result shows it.
        answer: AuditAnswer,
    },
    /// `Results.refute_audit`: shows that an auditor of items confirmed what it had not computed.
    RefuteAudit {
        /// Of which task.
        task: TaskId,
        /// Whose result it confirmed.
        provider: AccountId32,
        /// Whose audit: the stash.
        verifier: AccountId32,
        /// What shows it.
        refutation: Box<Refutation>,
    },
    /// `Disputes.challenge`: says with a bond that a result is wrong.
    Challenge {
        /// Of which task.
        task: TaskId,
        /// Whose result.
        provider: AccountId32,
    },
    /// `Results.demand`: has a provider show on the chain what it does not serve.
    Demand {
        /// Of which task.
        task: TaskId,
        /// Of which provider.
        provider: AccountId32,
        /// What of it.
        parts: DemandedParts,
        /// That the signer's verifier drew itself, before the reveal.
        proof: Option<AuditProof>,
    },
    /// `Results.supply`: shows it.
    Supply {
        /// Of which task.
        task: TaskId,
        /// What the part is of.
        content: Content,
        /// Size of all of that.
        bytes: u32,
        /// The part, up to the hash of all of it.
        opening: PartOpening,
    },
    /// `Results.demand_input`: has a piece of a task's input shown on the chain.
    DemandInput {
        /// Of which task.
        task: TaskId,
        /// Which 1 KiB of it, from 0.
        segment: u32,
    },
    /// `Results.supply_input`: shows it.
    SupplyInput {
        /// Of which task.
        task: TaskId,
        /// The piece, up to the input's hash.
        opening: SegmentOpening,
    },
    /// `Disputes.play`: a move in a dispute.
    Play {
        /// In which dispute.
        dispute: DisputeId,
        /// Moves before it. A move that comes too late is refused, and not taken for one of a later state.
        number: u32,
        /// The move.
        played: Move,
    },
    /// `Disputes.advance_dispute`: has a dispute do what is due by time.
    AdvanceDispute {
        /// Which.
        dispute: DisputeId,
    },
    /// `Disputes.join_committee`: takes a seat in a dispute's committee, with an answer sealed.
    JoinCommittee {
        /// Of which dispute.
        dispute: DisputeId,
        /// Ballots before this one. A call that comes too late is refused.
        ballot: u32,
        /// That the verifier drew itself; nothing where all are summoned.
        proof: Option<AuditProof>,
        /// The sealed answer.
        seal: H256,
    },
    /// `Disputes.reveal_vote`: opens it. Goes without a signature.
    RevealVote {
        /// Of which dispute.
        dispute: DisputeId,
        /// Whose answer: the stash.
        verifier: AccountId32,
        /// The answer.
        value: H256,
        /// What the seal was salted with.
        salt: H256,
    },
    /// `Results.report_equivocation`: shows that a provider signed something else than it signed or said
    /// before.
    ReportEquivocation {
        /// What it signed.
        statement: Box<SignedStatement<AccountId32>>,
        /// What else it signed; nothing: it is held against what it committed to or revealed.
        other: Option<Box<SignedStatement<AccountId32>>>,
    },
    /// `TrustLock.carry_out_slash`: takes what a slash has waited for.
    CarryOutSlash {
        /// Which.
        slash: SlashId,
    },
    /// `Balances.transfer_keep_alive`: sends money without closing the sender's account.
    Transfer {
        /// To whom.
        to: AccountId32,
        /// How much, in plancks.
        amount: Balance,
    },
    /// `Utility.batch_all`: several calls of one signer in one extrinsic. When one of them fails none is
    /// carried out, and the failure is that of the call. A batch within a batch is refused, and so is a call
    /// that [proves itself](Self::proves_itself).
    Batch(Vec<Self>),
}

/// Where a call is found in the runtime's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallName {
    /// The pallet.
    pub pallet: &'static str,
    /// The call.
    pub call: &'static str,
    /// Its arguments, in order.
    pub arguments: &'static [&'static str],
}

impl Call {
    /// Whether it opens something that stands on the chain, and so needs neither signature nor fee.
    pub fn proves_itself(&self) -> bool {
        matches!(
            self,
            Self::RevealBid { .. }
                | Self::Reveal { .. }
                | Self::RevealAudit { .. }
                | Self::RevealItems { .. }
                | Self::RevealVote { .. }
        )
    }

    /// Pallet, call and arguments by name.
    pub fn name(&self) -> CallName {
        let (pallet, call, arguments): (_, _, &'static [&'static str]) = match self {
            Self::Bond { .. } => ("Staking", "bond", &["role", "amount"]),
            Self::Unbond { .. } => ("Staking", "unbond", &["amount"]),
            Self::WithdrawUnbonded => ("Staking", "withdraw_unbonded", &[]),
            Self::Rebond { .. } => ("Staking", "rebond", &["amount"]),
            Self::SetAgent { .. } => ("Staking", "set_agent", &["agent"]),
            Self::ConfirmAgent { .. } => ("Staking", "confirm_agent", &["stash"]),
            Self::RemoveAgent => ("Staking", "remove_agent", &[]),
            Self::RegisterProvider { .. } => ("ProviderRegistry", "register", &["device", "endpoints"]),
            Self::Heartbeat => ("ProviderRegistry", "heartbeat", &[]),
            Self::DeregisterProvider => ("ProviderRegistry", "deregister", &[]),
            Self::RegisterModel { .. } => ("ModelRegistry", "register", &["manifest"]),
            Self::RetireModel { .. } => ("ModelRegistry", "retire", &["model"]),
            Self::OfferAudits { .. } => ("ModelRegistry", "offer_audits", &["model", "offered"]),
            Self::PostTask { .. } => ("TaskAuction", "post", &["spec", "cap"]),
            Self::Bid { .. } => ("TaskAuction", "bid", &["task", "seal"]),
            Self::RevealBid { .. } => ("TaskAuction", "reveal_bid", &["task", "provider", "bid"]),
            Self::CancelTask { .. } => ("TaskAuction", "cancel", &["task"]),
            Self::AdvanceTask { .. } => ("TaskAuction", "advance", &["task"]),
            Self::Commit { .. } => ("Results", "commit", &["task", "commitment"]),
            Self::Reveal { .. } => ("Results", "reveal", &["task", "provider", "claim", "salt"]),
            Self::AnnounceAudit { .. } => (
                "Results",
                "announce_audit",
                &["task", "provider", "proof", "seal"],
            ),
            Self::RevealAudit { .. } => (
                "Results",
                "reveal_audit",
                &["task", "provider", "verifier", "claim", "salt"],
            ),
            Self::RevealItems { .. } => (
                "Results",
                "reveal_items",
                &["task", "provider", "verifier", "found", "answer"],
            ),
            Self::RefuteAudit { .. } => (
                "Results",
                "refute_audit",
                &["task", "provider", "verifier", "opened", "place", "shown"],
            ),
            Self::Challenge { .. } => ("Disputes", "challenge", &["task", "provider"]),
            Self::Demand { .. } => ("Results", "demand", &["task", "provider", "parts", "proof"]),
            Self::Supply { .. } => ("Results", "supply", &["task", "content", "bytes", "opening"]),
            Self::DemandInput { .. } => ("Results", "demand_input", &["task", "segment"]),
            Self::SupplyInput { .. } => ("Results", "supply_input", &["task", "opening"]),
            Self::Play { .. } => ("Disputes", "play", &["dispute", "number", "played"]),
            Self::AdvanceDispute { .. } => ("Disputes", "advance_dispute", &["dispute"]),
            Self::JoinCommittee { .. } => (
                "Disputes",
                "join_committee",
                &["dispute", "ballot", "proof", "seal"],
            ),
            Self::RevealVote { .. } => (
                "Disputes",
                "reveal_vote",
                &["dispute", "verifier", "value", "salt"],
            ),
            Self::ReportEquivocation { .. } => ("Results", "report_equivocation", &["statement", "other"]),
            Self::CarryOutSlash { .. } => ("TrustLock", "carry_out_slash", &["slash"]),
            Self::Transfer { .. } => ("Balances", "transfer_keep_alive", &["dest", "value"]),
            Self::Batch(_) => ("Utility", "batch_all", &["calls"]),
        };
        CallName {
            pallet,
            call,
            arguments,
        }
    }

    /// The arguments in SCALE, one after the other, as this program knows the call. Calls of a batch have
    /// their names here in place of the indices that only a runtime knows.
    pub fn encode_arguments(&self) -> Vec<u8> {
        if let Self::Batch(calls) = self {
            let named = |call: &Self| (call.name().pallet, call.name().call, call.encode_arguments());
            return calls.iter().map(named).collect::<Vec<_>>().encode();
        }
        let arguments = self.arguments().into_iter();
        arguments.flat_map(|argument| argument.bytes).collect()
    }
}

#[cfg(test)]
mod tests;
