//! Every call that the worker and the command line make.

pub mod argument;
pub mod name;
pub mod stake;

use crate::{Balance, ChannelOpenings, ReceiptAtPoint, ReceiptSource, StakeCall};
use sp_core::{H256, crypto::AccountId32};
use surety_channels::{
    BatchEvidence, BatchNumber, BatchRoot, Batched, ChannelId, ChannelOpening, Equivocation, PointsFound,
    Region, Request, SignedChunkStatement, SignedVoucher, Time,
};
use surety_dispute_game::bisection::Move;
use surety_gpu_proofs::{Openings, Plan};
use surety_proofs::{PartOpening, SegmentOpening, SignedStatement};
use surety_types::model::{ModelManifest, Operation};
use surety_types::task::{Bid, ResultClaim, TaskSpec};
use surety_types::trust::{
    AuditAnswer, AuditProof, Content, DemandedParts, DisputeId, ItemsFound, Refutation, SlashId,
};
use surety_types::{ModelId, TaskId, multiaddr::Endpoints, provider::DeviceProfile, stake::Role};

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
    /// `Results.report_equivocation`: shows that a provider signed something else than it said before.
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
    /// `Channels.open`: opens a channel to a provider, with a deposit of the signer's.
    Open {
        /// Whom it pays: the provider's stash.
        payee: AccountId32,
        /// The key that signs its vouchers.
        key: AccountId32,
        /// How much is deposited, in plancks.
        deposit: Balance,
        /// Last time at which vouchers are redeemed.
        expiry: Time,
    },
    /// `Channels.top_up`: deposits more in the signer's channel.
    TopUp {
        /// Which.
        channel: ChannelId,
        /// How much more, in plancks.
        amount: Balance,
    },
    /// `Channels.extend`: lets the signer's channel expire later.
    Extend {
        /// Which.
        channel: ChannelId,
        /// Last time at which vouchers are redeemed.
        expiry: Time,
    },
    /// `Channels.stand`: the stash stands behind what it sells, or with a lock of 0 does no more.
    Stand {
        /// What it can lose, in plancks.
        lock: Balance,
        /// Most that its batches may cost which are not final, in plancks.
        cap: Balance,
    },
    /// `Channels.commit_batch`: commits a batch of receipts.
    CommitBatch {
        /// What fixes it.
        root: BatchRoot,
    },
    /// `Channels.redeem`: counts batches of a channel, and pays what they and the voucher cover.
    Redeem {
        /// The payer's promise.
        voucher: SignedVoucher<AccountId32>,
        /// What the channel has in each batch that was not counted, in the order of its requests.
        batches: ChannelOpenings,
    },
    /// `Channels.hold`: keeps the payer's money until a late batch is final.
    Hold {
        /// Of which channel.
        channel: ChannelId,
        /// Which batch.
        batch: BatchNumber,
        /// What the channel has in it.
        opening: ChannelOpening,
    },
    /// `Channels.close`: the payer wants its money back.
    Close {
        /// Of which channel.
        channel: ChannelId,
    },
    /// `Channels.close_agreed`: the payee gives back what it was not paid, and stays liable for its receipts.
    CloseAgreed {
        /// Which.
        channel: ChannelId,
    },
    /// `Channels.end`: ends a channel that is over.
    End {
        /// Which.
        channel: ChannelId,
    },
    /// `Channels.add_signer`: what the agent signs binds its provider from now on.
    AddSigner,
    /// `Channels.report_equivocation`: shows that a provider said two things in answer to one request.
    ReportChunkEquivocation {
        /// What shows it.
        equivocation: Box<Equivocation<AccountId32>>,
    },
    /// `Channels.report_batch`: shows that a batch is false.
    ReportBatch {
        /// Whose: the stash.
        provider: AccountId32,
        /// Which.
        batch: BatchNumber,
        /// Another batch that it is held against, where it is.
        other: Option<BatchNumber>,
        /// What shows it.
        evidence: Box<BatchEvidence<AccountId32>>,
    },
    /// `Channels.announce_points`: a verifier has computed what its points are in, with what it found sealed.
    AnnouncePoints {
        /// Whose batch: the stash.
        provider: AccountId32,
        /// Which.
        batch: BatchNumber,
        /// That the verifier drew them.
        proof: AuditProof,
        /// What it found, sealed.
        seal: H256,
    },
    /// `Channels.open_points`: opens that. Goes without a signature.
    OpenPoints {
        /// Whose batch: the stash.
        provider: AccountId32,
        /// Which.
        batch: BatchNumber,
        /// Whose points: the stash.
        verifier: AccountId32,
        /// What was found, point by point.
        found: PointsFound,
        /// What the seal was salted with.
        salt: H256,
    },
    /// `Channels.refute_points`: shows that a verifier found something else than the receipt says.
    RefutePoints {
        /// Whose batch: the stash.
        provider: AccountId32,
        /// Which.
        batch: BatchNumber,
        /// Whose points: the stash.
        verifier: AccountId32,
        /// Which of its points, in ascending order.
        place: u32,
        /// The receipt that it is in, what was asked for, and of an embedding the item's leaves.
        receipt: Box<ReceiptAtPoint>,
    },
    /// `Channels.end_points`: ends an audit of a batch that is over, and has it paid.
    EndPoints {
        /// Whose batch: the stash.
        provider: AccountId32,
        /// Which.
        batch: BatchNumber,
        /// Whose points: the stash.
        verifier: AccountId32,
    },
    /// `Channels.dispute`: says with a bond that a receipt is wrong.
    Dispute {
        /// The receipt.
        receipt: Box<ReceiptSource>,
        /// What was asked for.
        request: Box<Request>,
        /// The first segment of what was said, of a generation that a stop id has ended.
        head: Option<SegmentOpening>,
    },
    /// `Channels.demand_receipt`: has a provider show a batch with the receipt of an answer.
    DemandReceipt {
        /// What it has signed of that answer.
        held: Box<SignedChunkStatement<AccountId32>>,
    },
    /// `Channels.demand_point`: has a provider show the receipt that a point is in.
    DemandPoint {
        /// Whose batch: the stash.
        provider: AccountId32,
        /// Which.
        batch: BatchNumber,
        /// Which of the signer's points, in ascending order.
        place: u32,
        /// That the signer's verifier drew it.
        proof: AuditProof,
    },
    /// `Channels.show_receipt`: shows the receipt that a payer has demanded.
    ShowReceipt {
        /// Who has.
        demander: AccountId32,
        /// Which batch it is in.
        batch: BatchNumber,
        /// The receipt.
        receipt: Box<Batched<AccountId32>>,
        /// Where it says more than the payer holds: the segment of its output in which that ends.
        shown: Option<SegmentOpening>,
    },
    /// `Channels.show_point`: shows the receipt that points are in which a verifier has demanded.
    ShowPoint {
        /// Who has: its stash.
        demander: AccountId32,
        /// The batch.
        batch: BatchNumber,
        /// The receipt.
        receipt: Box<Batched<AccountId32>>,
        /// What was asked for.
        request: Box<Request>,
        /// The first segment of what was said, of a generation that a stop id has ended.
        head: Option<SegmentOpening>,
    },
    /// `Channels.end_demand`: ends what somebody demands that was not shown in time.
    EndDemand {
        /// Of whom: the stash.
        provider: AccountId32,
        /// By whom.
        demander: AccountId32,
    },
    /// `Channels.offer`: the stash offers an operation of a model, or changes the offer.
    Offer {
        /// Which model.
        model: ModelId,
        /// What it does with it.
        operation: Operation,
        /// Least that a unit costs, in plancks.
        unit_price: Balance,
        /// Requests that it answers at once. With 0 it takes nothing new.
        places: u32,
        /// Where it says that it is.
        region: Option<Region>,
    },
    /// `Channels.withdraw_offer`: the stash offers it no more.
    WithdrawOffer {
        /// Which model.
        model: ModelId,
        /// What it did with it.
        operation: Operation,
    },
    /// `Channels.report_busy`: says how many places of an offer are taken.
    ReportBusy {
        /// Which model.
        model: ModelId,
        /// What is done with it.
        operation: Operation,
        /// So many.
        busy: u32,
    },
    /// `GpuProofs.commit_run`: commits the provider to a run of the present round of the benchmark.
    CommitRun {
        /// What its seed was made with.
        entropy: H256,
        /// How large it is.
        plan: Plan,
        /// What all of its rows hash to.
        root: H256,
    },
    /// `GpuProofs.open_run`: shows what was drawn of that run.
    OpenRun {
        /// It, up to the root.
        openings: Box<Openings>,
    },
    /// `Balances.transfer_keep_alive`: sends money without closing the sender's account.
    Transfer {
        /// To whom.
        to: AccountId32,
        /// How much, in plancks.
        amount: Balance,
    },
    /// About stake behind validators, and about their keys.
    Stake(StakeCall),
    /// `Utility.batch_all`: all or none, of one signer. No batch is in it, and none [`Self::proves_itself`].
    Batch(Vec<Self>),
}
