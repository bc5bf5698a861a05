//! What can be asked of a chain, and the records it answers with.

use async_trait::async_trait;
use codec::{Decode, Encode};
use scale_info::TypeInfo;
use sp_core::{H256, crypto::AccountId32};
use sp_runtime::FixedU128;
use surety_dispute_game::{committee::DisputeCommittee, dispute::Dispute};
use surety_types::{
    ContentHash, ModelId, TaskId,
    model::ModelManifest,
    provider::Provider,
    speed::MeasuredView,
    stake::StakeRecord,
    task::{Bid, Round, Task, TaskState},
    trust::{AuditAnswer, CommitNote, Demand, DisputeId, ItemsFound, Slash, SlashId, TrustRecord},
    view::{self, TaskView},
};

use crate::{Call, ChainError, ChainEvent, Signer};

/// Plancks of SURE.
pub type Balance = u128;
/// Height of a block.
pub type BlockNumber = u32;
/// A task with this chain's types.
pub type TaskRecord = Task<AccountId32, Balance, BlockNumber>;
/// A round with this chain's types.
pub type RoundRecord = Round<AccountId32, Balance, BlockNumber>;
/// A task, its round and its escrow with this chain's types.
pub type TaskInfo = TaskView<AccountId32, Balance, BlockNumber>;
/// What a bid for a task can come to, with this chain's types.
pub type BidTerms = view::BidTerms<Balance>;
/// Parameters that providers work by, with this chain's types.
pub type ProviderTerms = view::ProviderTerms<BlockNumber>;
/// A provider with this chain's types.
pub type ProviderRecord = Provider<BlockNumber>;
/// A stash's stake with this chain's types.
pub type StakeInfo = StakeRecord<AccountId32, Balance, BlockNumber>;
/// A dispute with this chain's types.
pub type DisputeRecord = Dispute<AccountId32, Balance, BlockNumber>;
/// A dispute's committee with this chain's types.
pub type CommitteeRecord = DisputeCommittee<AccountId32, Balance, BlockNumber>;
/// A demand with this chain's types.
pub type DemandRecord = Demand<AccountId32, Balance, BlockNumber>;
/// What an auditor opened of its items, and how it answered.
pub type ItemsOpening = (ItemsFound, AuditAnswer);
/// A part of what was shown: the content's hash, its length in bytes, and the part's place in it.
pub type PartKey = (ContentHash, u32, u32);
/// What a provider committed to, with this chain's types.
pub type CommitRecord = CommitNote<AccountId32>;
/// A slash with this chain's types.
pub type SlashRecord = Slash<AccountId32, Balance, BlockNumber>;
/// What is remembered of a stash, with this chain's types.
pub type TrustInfo = TrustRecord<BlockNumber>;

/// Which state a question is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// The last finalised block: the state on which a worker decides what it promises.
    #[default]
    Finalized,
    /// The best block, which may still be replaced: enough for opening what was promised before.
    Best,
    /// This block.
    At(H256),
}

/// How long [`Chain::submit`] waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until the call is in a best block; the block may still be replaced.
    Included,
    /// Until the call's block is final.
    Finalized,
}

/// How [`Chain::submit`] goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmitOptions {
    /// How long it waits.
    pub until: Until,
    /// What the author of the block gets on top of the fee, in plancks. Calls that [prove
    /// themselves](Call::proves_itself) cannot give any.
    pub tip: Balance,
}

impl From<Until> for SubmitOptions {
    fn from(until: Until) -> Self {
        Self { until, tip: 0 }
    }
}

/// A block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRef {
    /// Its height.
    pub number: BlockNumber,
    /// Its hash.
    pub hash: H256,
}

/// What does not change while the chain's runtime stays the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainInfo {
    /// Hash of the first block: says which chain this is.
    pub genesis: H256,
    /// Name of the runtime's specification.
    pub spec_name: String,
    /// Version of the runtime when we connected.
    pub spec_version: u32,
    /// Smallest balance an account can hold, in plancks.
    pub existential_deposit: Balance,
}

/// An account's money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Funds {
    /// What is not held, and neither votes nor vests: fees, new holds and what is paid in advance come out of
    /// it, all but the existential deposit.
    pub free: Balance,
    /// What is held: stake, bonds, deposits for storage. Escrow and what is in channels is not on the
    /// account.
    pub held: Balance,
}

impl Funds {
    /// What fees may take: nobody's fee takes the last of an account, its existential deposit.
    pub const fn for_fees(self, existential_deposit: Balance) -> Balance {
        self.free.saturating_sub(existential_deposit)
    }
}

/// How many calls an account has signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Those in final blocks.
    pub finalized: u32,
    /// Those and all that are on their way, as far as the node knows.
    pub all: u32,
}

/// A bid as the chain keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct BidRecord {
    /// What was sent while bids were sealed.
    pub seal: H256,
    /// The bid, once it is opened.
    pub opened: Option<Bid<Balance>>,
    /// Stake that it locks until it is opened, in plancks.
    pub deposit: Balance,
}

/// A model as the chain keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct RegisteredModel {
    /// Who registered it.
    pub owner: AccountId32,
    /// What it is.
    pub manifest: ModelManifest,
    /// What its owner gets back on retiring it, in plancks.
    pub deposit: Balance,
}

/// A task that is not finished, with what a provider needs to decide what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTask {
    /// Its number.
    pub id: TaskId,
    /// The task.
    pub task: TaskRecord,
    /// Its checking, while that lasts.
    pub round: Option<RoundRecord>,
    /// The bid of the stash asked about.
    pub bid: Option<BidRecord>,
}

/// Every task that is not finished.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenTasks {
    /// Those of which everything was read, in the order in which they were posted.
    pub tasks: Vec<OpenTask>,
    /// Those of which something could not be read, for example since the runtime has gone on without this
    /// program: they are there.
    pub unread: Vec<PartlyRead>,
}

/// What could be read of a task that is not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartlyRead {
    /// Its number.
    pub id: TaskId,
    /// The task; nothing where that cannot be read.
    pub task: Option<TaskRecord>,
    /// Its checking, if there is any; nothing where that cannot be read.
    pub round: Option<Option<RoundRecord>>,
    /// The bid of the stash asked about, if there is one; nothing where that cannot be read.
    pub bid: Option<Option<BidRecord>>,
}

/// Whether a task is not finished.
pub fn is_open(task: &TaskRecord) -> bool {
    match task.state {
        TaskState::Bidding { .. }
        | TaskState::Revealing { .. }
        | TaskState::Drawing { .. }
        | TaskState::Running { .. } => true,
        TaskState::Settled { .. } | TaskState::Failed { .. } | TaskState::Cancelled { .. } => false,
    }
}

/// A protocol parameter that governance has set. Those never set are at the runtime's default and not listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its group, for example `TaskAuction`.
    pub group: String,
    /// Its name, for example `BidWindow`.
    pub name: String,
    /// Its value as text.
    pub value: String,
}

/// A call that made it into a block, and succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Included {
    /// The block.
    pub block: BlockRef,
    /// Hash of the extrinsic.
    pub extrinsic: H256,
    /// What the call did.
    pub events: Vec<ChainEvent>,
}

impl Included {
    /// The first event of that pallet and name.
    pub fn event(&self, pallet: &str, name: &str) -> Option<&ChainEvent> {
        self.events.iter().find(|event| event.is(pallet, name))
    }
}

/// Blocks as they come.
///
/// Blocks may be skipped (after a reconnection, or when the reader is slow): it is state that counts, not
/// events.
#[async_trait]
pub trait BlockStream: Send {
    /// The next block that is another than the last one returned. The first call answers at once. Each
    /// finalised block is higher than the one before; a best block may be as high or lower, on another fork.
    ///
    /// # Errors
    /// [`ChainError::Unreachable`] when no node could be reached for longer than the client is told to try.
    /// Calling again tries again.
    async fn next(&mut self) -> Result<BlockRef, ChainError>;
}

/// The chain.
#[async_trait]
pub trait Chain: Send + Sync {
    /// What does not change.
    fn info(&self) -> &ChainInfo;

    /// Whether the chain's specification, as the node has it, says that its money is worth nothing.
    async fn is_test_network(&self) -> Result<bool, ChainError>;

    /// Finalised blocks from now on.
    async fn finalized_blocks(&self) -> Result<Box<dyn BlockStream>, ChainError>;

    /// Best blocks from now on.
    async fn best_blocks(&self) -> Result<Box<dyn BlockStream>, ChainError>;

    /// The block that `when` names now.
    async fn block(&self, when: When) -> Result<BlockRef, ChainError>;

    /// The block at that height, on the chain that the best block is on.
    async fn block_at(&self, number: BlockNumber) -> Result<BlockRef, ChainError>;

    /// The time on the chain's own clock, which stands still while finality does. Windows of a task's life
    /// end on it: every `until` of a record is a value of this clock.
    async fn clock(&self, when: When) -> Result<BlockNumber, ChainError>;

    /// A task with its round and escrow; nothing when it is unknown or long finished.
    async fn task(&self, when: When, id: TaskId) -> Result<Option<TaskInfo>, ChainError>;

    /// All tasks that are not finished, each with the bid of `bidder`.
    async fn open_tasks(&self, when: When, bidder: Option<&AccountId32>) -> Result<OpenTasks, ChainError>;

    /// Every task the chain still keeps, finished ones included, newest first, at most `limit`.
    async fn recent_tasks(&self, when: When, limit: u32) -> Result<Vec<(TaskId, TaskRecord)>, ChainError>;

    /// Every bid for a task, by who made it. They stay as long as the task does.
    async fn bids(&self, when: When, task: TaskId) -> Result<Vec<(AccountId32, BidRecord)>, ChainError>;

    /// The provider that `stash` has registered.
    async fn provider(&self, when: When, stash: &AccountId32) -> Result<Option<ProviderRecord>, ChainError>;

    /// What the benchmark has measured of a provider, where that counts. Where the runtime has none, nobody
    /// was measured.
    async fn benchmarked(&self, when: When, stash: &AccountId32) -> Result<Option<MeasuredView>, ChainError>;

    /// All registered providers.
    async fn providers(&self, when: When) -> Result<Vec<(AccountId32, ProviderRecord)>, ChainError>;

    /// A registered model.
    async fn model(&self, when: When, id: &ModelId) -> Result<Option<RegisteredModel>, ChainError>;

    /// All registered models.
    async fn models(&self, when: When) -> Result<Vec<(ModelId, RegisteredModel)>, ChainError>;

    /// Verifiers, by their stashes, that said that they audit a model.
    async fn auditors(&self, when: When, model: &ModelId) -> Result<Vec<AccountId32>, ChainError>;

    /// Tokens that a model's reference machine audits in 1,000 seconds, where its owner has said so.
    async fn audit_speed(&self, when: When, model: &ModelId) -> Result<Option<u32>, ChainError>;

    /// The stake of a stash.
    async fn stake(&self, when: When, stash: &AccountId32) -> Result<Option<StakeInfo>, ChainError>;

    /// The stash that `agent` acts for, once it has confirmed.
    async fn agent_stash(&self, when: When, agent: &AccountId32) -> Result<Option<AccountId32>, ChainError>;

    /// The agent that `stash` has nominated and that has not confirmed yet.
    async fn pending_agent(&self, when: When, stash: &AccountId32)
    -> Result<Option<AccountId32>, ChainError>;

    /// An account's money. Zero for accounts that do not exist.
    async fn funds(&self, when: When, account: &AccountId32) -> Result<Funds, ChainError>;

    /// How many calls an account has signed so far, by whichever program.
    async fn sent(&self, account: &AccountId32) -> Result<Sent, ChainError>;

    /// What the fee for a call's weight is multiplied by in the next block: it grows while blocks are full.
    async fn fee_multiplier(&self, when: When) -> Result<FixedU128, ChainError>;

    /// The most each of `redundancy` providers can be paid out of `cap`; nothing when `cap` is below the fee.
    async fn price_limit(
        &self,
        when: When,
        cap: Balance,
        redundancy: u32,
    ) -> Result<Option<Balance>, ChainError>;

    /// What a bid for a task can come to; nothing when its cap is below the fee.
    async fn bid_terms(&self, when: When, task: TaskId) -> Result<Option<BidTerms>, ChainError>;

    /// Parameters that providers work by.
    async fn provider_terms(&self, when: When) -> Result<ProviderTerms, ChainError>;

    /// A dispute that is open.
    async fn dispute(&self, when: When, id: DisputeId) -> Result<Option<DisputeRecord>, ChainError>;

    /// Disputes that are open.
    async fn disputes(&self, when: When) -> Result<Vec<(DisputeId, DisputeRecord)>, ChainError>;

    /// The committee of a dispute, while it sits.
    async fn committee(&self, when: When, dispute: DisputeId) -> Result<Option<CommitteeRecord>, ChainError>;

    /// What a provider has to show on the chain of a task, oldest demand first.
    async fn demands(
        &self,
        when: When,
        task: TaskId,
        provider: &AccountId32,
    ) -> Result<Vec<DemandRecord>, ChainError>;

    /// What a provider committed to in a round that goes on, and which of its agents did. What that key signs
    /// about the task counts for as long as the round lasts, whoever acts for the provider later.
    async fn commit_note(
        &self,
        when: When,
        task: TaskId,
        provider: &AccountId32,
    ) -> Result<Option<CommitRecord>, ChainError>;

    /// Some content of a task, once all of it has been shown on chain, and nothing before. Whoever does not
    /// believe the node hashes it.
    async fn shown(&self, when: When, task: TaskId, content: ContentHash) -> Result<Vec<u8>, ChainError>;

    /// A part of 8 KiB of some content of a task, if it has been shown on chain. The leaves of a trace go by
    /// [`surety_proofs::leaves_name`].
    async fn shown_part(&self, at: When, task: TaskId, part: PartKey) -> Result<Option<Vec<u8>>, ChainError>;

    /// What the block at that height says that a verifier opened of its items of a provider's result. The
    /// author of a block may put calls of others before the one that was carried out: the seal tells which.
    async fn items_opened(
        &self,
        block: BlockNumber,
        task: TaskId,
        provider: &AccountId32,
        verifier: &AccountId32,
    ) -> Result<Vec<ItemsOpening>, ChainError>;

    /// Slashes that wait to be carried out.
    async fn slashes(&self, when: When) -> Result<Vec<(SlashId, SlashRecord)>, ChainError>;

    /// What is remembered of a stash.
    async fn trust(&self, when: When, stash: &AccountId32) -> Result<TrustInfo, ChainError>;

    /// Auditors that a result of `provider` is to have in the mean, in a task that is running.
    async fn auditors_expected(
        &self,
        when: When,
        task: TaskId,
        provider: &AccountId32,
    ) -> Result<FixedU128, ChainError>;

    /// Protocol parameters that differ from the runtime's defaults.
    async fn parameters(&self, when: When) -> Result<Vec<Parameter>, ChainError>;

    /// What happened in a block.
    async fn events(&self, block: H256) -> Result<Vec<ChainEvent>, ChainError>;

    /// Signs a call, submits it, and waits for it. Calls of one signer may be submitted at the same time. A
    /// call that [proves itself](Call::proves_itself) is not signed and costs nothing.
    ///
    /// What a fresh signature cures (a used nonce, a dead era, an upgraded runtime, a full pool) is tried
    /// again for a while before it is reported. A call that is given again while its fate is unknown is the
    /// same call: it replaces the first in the pool, with a higher tip, or is found to have been carried out;
    /// it is never carried out twice.
    ///
    /// # Errors
    /// [`ChainError::Dispatch`] when it was carried out and failed, [`ChainError::Rejected`] when it never
    /// got into a block, [`ChainError::Unknown`] when we lost sight of it: it may still be carried out.
    /// [`ChainError::class`] says what to make of them.
    async fn submit(
        &self,
        signer: &Signer,
        call: Call,
        options: SubmitOptions,
    ) -> Result<Included, ChainError>;
}
