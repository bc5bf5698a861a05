#![doc = include_str!("../README.md")]

mod ask;
mod attempts;
mod blocks;
mod channels;
mod config;
mod connections;
mod entries;
mod finality;
mod gpu_proofs;
mod link;
mod node;
mod nonces;
mod openings;
mod payload;
mod reads;
mod reveals;
mod runtime;
mod search;
mod sign;
mod stake;
mod submit;
#[cfg(test)]
mod tests;
mod transcode;
mod versions;
mod words;

use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use codec::{Decode, Encode};
use scale_info::TypeInfo;
use sp_core::{H256, crypto::AccountId32};
use sp_runtime::FixedU128;
use surety_types::speed::MeasuredView;
use surety_types::trust::{DisputeId, SlashId};
use surety_types::{ContentHash, ModelId, TaskId};

use surety_chain_client::{
    Balance, BidRecord, BidTerms, BlockNumber, BlockRef, BlockStream, Call, Chain, ChainError, ChainEvent,
    ChainInfo, CommitRecord, CommitteeRecord, DemandRecord, DisputeRecord, Funds, GpuProofsChain, Included,
    ItemsOpening, OpenTasks, Parameter, PartKey, ProviderRecord, ProviderTerms, RegisteredModel, Sent,
    Signer, SlashRecord, StakeInfo, SubmitOptions, TaskInfo, TaskRecord, TrustInfo, When,
};

pub use ask::{NodeFault, NodeRpc};
use attempts::Queues;
pub use config::RpcConfig;
use connections::Connected;
use entries::{AccountInfo, Entry};
use link::Link;
use runtime::Runtime;
use versions::Versions;

/// The runtime this crate is made for.
const SPEC_NAME: &str = "surety";

/// A chain behind the RPC of its nodes. Clones share the connection.
#[derive(Clone)]
pub struct RpcChain(Arc<Inner>);

struct Inner {
    link: Link,
    info: ChainInfo,
    inclusion_patience: Duration,
    versions: Versions,
    queues: Queues,
    memory: Mutex<reads::Memory>,
}

impl RpcChain {
    /// Connects to a node, and checks that its chain is one that this crate fits.
    ///
    /// # Errors
    /// [`ChainError::Unreachable`], [`ChainError::WrongChain`], [`ChainError::Incompatible`].
    pub async fn connect(config: RpcConfig) -> Result<Self, ChainError> {
        let link = Link::new(config.urls, config.patience, config.return_after);
        let genesis = link.genesis().await?;
        let runtime = present_runtime(&link).await.map_err(incompatible)?;
        if let Some(misfit) = runtime.misfits().first() {
            return Err(ChainError::Incompatible {
                spec_version: runtime.spec_version(),
                what: misfit.clone(),
            });
        }
        let deposit = runtime.constant("Balances", "ExistentialDeposit");
        let info = ChainInfo {
            genesis,
            spec_name: SPEC_NAME.into(),
            spec_version: runtime.spec_version(),
            existential_deposit: deposit.map_err(incompatible)?,
        };
        Ok(Self(Arc::new(Inner {
            link,
            info,
            inclusion_patience: config.inclusion_patience,
            versions: Versions::new(runtime),
            queues: Queues::default(),
            memory: Mutex::default(),
        })))
    }
}

/// The runtime in the best block's state, by the first node that can tell.
async fn present_runtime(link: &Link) -> Result<Runtime, ChainError> {
    let mut tries = link.nodes();
    loop {
        let asked = link.connect().await?;
        let runtime = async { link.runtime(link.block_hash(None).await?).await };
        let runtime = runtime.await;
        tries = tries.saturating_sub(1);
        match runtime {
            Err(
                error @ (ChainError::Rpc { .. } | ChainError::Pruned { .. } | ChainError::Implausible { .. }),
            ) if tries > 0 => link.distrust(&asked, &error),
            Err(error @ ChainError::Implausible { .. }) => {
                link.ensure_chain().await?;
                return Err(error);
            }
            told => return told,
        }
    }
}

/// What does not fit when connecting does not fit at all.
fn incompatible(error: ChainError) -> ChainError {
    match error {
        ChainError::Outgrown { spec_version, what } => ChainError::Incompatible { spec_version, what },
        other => other,
    }
}

impl Inner {
    async fn head(&self, when: When) -> Result<BlockRef, ChainError> {
        match when {
            When::Finalized => self.link.finalized().await,
            When::Best => self.link.named(self.link.block_hash(None).await?).await,
            When::At(hash) => self.link.block(hash).await,
        }
    }

    /// Asks, and asks the next node where an answer cannot be true, a node fails, or the block's state is
    /// gone in the meantime.
    async fn believed<T, F>(&self, when: When, question: impl Fn(BlockRef) -> F) -> Result<T, ChainError>
    where
        F: Future<Output = Result<T, ChainError>>,
    {
        let mut tries = self.link.nodes().saturating_add(1);
        loop {
            let asked = self.link.connect().await?;
            let answer = async {
                let at = self.head(when).await?;
                self.of_new(at, question(at).await).await
            };
            let answer = self.judge(&asked, answer.await);
            tries = tries.saturating_sub(1);
            match answer {
                Err(ChainError::Implausible { .. }) if tries > 0 => {}
                // The one that failed has been left.
                Err(ChainError::Rpc { .. } | ChainError::Decode { .. })
                    if tries > 0 && !self.link.is_current(&asked) => {}
                // The next best block has its state.
                Err(ChainError::Pruned { .. }) if tries > 0 && when == When::Best => {}
                answer => return answer,
            }
        }
    }

    /// What a question comes to. When an answer cannot be true, the next node is turned to, unless the one
    /// that was asked has been left already: the one in its place has said nothing wrong.
    async fn judged<T>(
        &self,
        question: impl Future<Output = Result<T, ChainError>>,
    ) -> Result<T, ChainError> {
        let asked = self.link.connect().await?;
        self.judge(&asked, question.await)
    }

    fn judge<T>(&self, asked: &Connected, answer: Result<T, ChainError>) -> Result<T, ChainError> {
        match &answer {
            Err(error @ ChainError::Implausible { .. }) => self.link.distrust(asked, error),
            // What is read was found to fit the runtime's metadata: it is the bytes that are wrong.
            Err(error @ ChainError::Decode { .. }) if self.link.nodes() > 1 => {
                self.link.distrust(asked, error);
            }
            _ => {}
        }
        answer
    }

    /// What was answered of a block. A node that is well has the states of the newest blocks: where there is
    /// another node, one that knows such a block and not its state is not believed.
    async fn of_new<T>(&self, at: BlockRef, answer: Result<T, ChainError>) -> Result<T, ChainError> {
        let is_new = self.link.nodes() > 1 && at.number >= self.link.newest_final();
        match answer {
            Err(ChainError::Pruned { .. }) if is_new && self.link.parent(at.hash).await.is_ok() => Err(self
                .link
                .implausible(format!("it has no state of block {}", at.number))),
            Err(ChainError::Pruned { .. }) => Err(ChainError::Pruned {
                block: at.number.to_string(),
            }),
            answer => answer,
        }
    }

    async fn events(&self, at: BlockRef) -> Result<Vec<ChainEvent>, ChainError> {
        let runtime = self.runtime_of(at.hash).await?;
        let key = runtime.key(Entry::Events, &[])?;
        let bytes = self.value(at, &key).await?.unwrap_or_default();
        runtime.events(&bytes)
    }

    /// A value under one key or none.
    async fn read<T: Decode + TypeInfo + 'static>(
        &self,
        when: When,
        entry: Entry,
        keys: &[&[u8]],
    ) -> Result<Option<T>, ChainError> {
        let question = |at: BlockRef| self.read_at(at, entry, keys);
        self.believed(when, question).await
    }

    async fn read_at<T: Decode + TypeInfo + 'static>(
        &self,
        at: BlockRef,
        entry: Entry,
        keys: &[&[u8]],
    ) -> Result<Option<T>, ChainError> {
        let runtime = self.runtime_of(at.hash).await?;
        let key = runtime.key(entry, keys)?;
        let bytes = self.value(at, &key).await?;
        let reader = runtime.reader(entry)?;
        bytes.map(|bytes| reader.read(&bytes)).transpose()
    }

    /// What is under a key; nothing only if the node has the block's state.
    async fn value(&self, at: BlockRef, key: &[u8]) -> Result<Option<Vec<u8>>, ChainError> {
        let value = self.link.value(at.hash, key).await?;
        if value.is_none() {
            self.ensure_state(at).await?;
        }
        Ok(value)
    }

    async fn clock(&self, when: When) -> Result<BlockNumber, ChainError> {
        let question = |at: BlockRef| async move {
            let runtime = self.runtime_of(at.hash).await?;
            // Before it had a clock of its own, the chain counted blocks.
            if !runtime.has(Entry::Elapsed) {
                return Ok(at.number);
            }
            let elapsed = self.read_at(at, Entry::Elapsed, &[]).await?;
            Ok(elapsed.unwrap_or_default())
        };
        self.believed(when, question).await
    }
}

#[async_trait]
impl Chain for RpcChain {
    fn info(&self) -> &ChainInfo {
        &self.0.info
    }

    async fn is_test_network(&self) -> Result<bool, ChainError> {
        self.0.link.is_test_network().await
    }

    async fn finalized_blocks(&self) -> Result<Box<dyn BlockStream>, ChainError> {
        Ok(Box::new(blocks::Blocks::new(self.clone(), When::Finalized)))
    }

    async fn best_blocks(&self) -> Result<Box<dyn BlockStream>, ChainError> {
        Ok(Box::new(blocks::Blocks::new(self.clone(), When::Best)))
    }

    async fn block(&self, when: When) -> Result<BlockRef, ChainError> {
        let question = |at| async move { Ok(at) };
        self.0.believed(when, question).await
    }

    async fn block_at(&self, number: BlockNumber) -> Result<BlockRef, ChainError> {
        let hash = self.0.link.block_hash(Some(number)).await?;
        Ok(BlockRef { number, hash })
    }

    async fn clock(&self, when: When) -> Result<BlockNumber, ChainError> {
        self.0.clock(when).await
    }

    async fn task(&self, when: When, id: TaskId) -> Result<Option<TaskInfo>, ChainError> {
        self.0.task(when, id).await
    }

    async fn open_tasks(&self, when: When, bidder: Option<&AccountId32>) -> Result<OpenTasks, ChainError> {
        self.0.open_tasks(when, bidder).await
    }

    async fn recent_tasks(&self, when: When, limit: u32) -> Result<Vec<(TaskId, TaskRecord)>, ChainError> {
        self.0.recent_tasks(when, limit).await
    }

    async fn bids(&self, when: When, task: TaskId) -> Result<Vec<(AccountId32, BidRecord)>, ChainError> {
        self.0.all_under(when, Entry::Bids, &[&task.encode()]).await
    }

    async fn provider(&self, when: When, stash: &AccountId32) -> Result<Option<ProviderRecord>, ChainError> {
        self.0.read(when, Entry::Providers, &[stash.as_ref()]).await
    }

    async fn benchmarked(&self, when: When, stash: &AccountId32) -> Result<Option<MeasuredView>, ChainError> {
        match GpuProofsChain::measured(self, when, stash).await {
            Err(ChainError::Outgrown { .. }) => Ok(None),
            measured => measured,
        }
    }

    async fn providers(&self, when: When) -> Result<Vec<(AccountId32, ProviderRecord)>, ChainError> {
        self.0.all(when, Entry::Providers).await
    }

    async fn model(&self, when: When, id: &ModelId) -> Result<Option<RegisteredModel>, ChainError> {
        self.0.read(when, Entry::Models, &[id.as_ref()]).await
    }

    async fn models(&self, when: When) -> Result<Vec<(ModelId, RegisteredModel)>, ChainError> {
        self.0.all(when, Entry::Models).await
    }

    async fn auditors(&self, when: When, model: &ModelId) -> Result<Vec<AccountId32>, ChainError> {
        let auditors = self.0.read(when, Entry::Auditors, &[model.as_ref()]).await?;
        Ok(auditors.unwrap_or_default())
    }

    async fn audit_speed(&self, when: When, model: &ModelId) -> Result<Option<u32>, ChainError> {
        self.0.read(when, Entry::AuditSpeeds, &[model.as_ref()]).await
    }

    async fn stake(&self, when: When, stash: &AccountId32) -> Result<Option<StakeInfo>, ChainError> {
        self.0.read(when, Entry::Ledgers, &[stash.as_ref()]).await
    }

    async fn agent_stash(&self, when: When, agent: &AccountId32) -> Result<Option<AccountId32>, ChainError> {
        self.0.read(when, Entry::Agents, &[agent.as_ref()]).await
    }

    async fn pending_agent(
        &self,
        when: When,
        stash: &AccountId32,
    ) -> Result<Option<AccountId32>, ChainError> {
        self.0.read(when, Entry::PendingAgents, &[stash.as_ref()]).await
    }

    async fn funds(&self, when: When, account: &AccountId32) -> Result<Funds, ChainError> {
        let account: Option<AccountInfo> = self.0.read(when, Entry::Account, &[account.as_ref()]).await?;
        Ok(account.map_or_else(Funds::default, |account| Funds {
            free: account.data.spendable(),
            held: account.data.reserved,
        }))
    }

    async fn fee_multiplier(&self, when: When) -> Result<FixedU128, ChainError> {
        let question = |at: BlockRef| async move {
            let runtime = self.0.runtime_of(at.hash).await?;
            if !runtime.has(Entry::FeeMultiplier) {
                return Ok(FixedU128::from_u32(1));
            }
            let found = self.0.read_at(at, Entry::FeeMultiplier, &[]).await?;
            Ok(found.unwrap_or(FixedU128::from_u32(1)))
        };
        self.0.believed(when, question).await
    }

    async fn sent(&self, account: &AccountId32) -> Result<Sent, ChainError> {
        self.0.sent(account).await
    }

    async fn price_limit(
        &self,
        when: When,
        cap: Balance,
        redundancy: u32,
    ) -> Result<Option<Balance>, ChainError> {
        self.0.price_limit(when, cap, redundancy).await
    }

    async fn bid_terms(&self, when: When, task: TaskId) -> Result<Option<BidTerms>, ChainError> {
        self.0.bid_terms(when, task).await
    }

    async fn provider_terms(&self, when: When) -> Result<ProviderTerms, ChainError> {
        self.0.provider_terms(when).await
    }

    async fn dispute(&self, when: When, id: DisputeId) -> Result<Option<DisputeRecord>, ChainError> {
        self.0.read(when, Entry::Disputes, &[&id.encode()]).await
    }

    async fn committee(&self, when: When, dispute: DisputeId) -> Result<Option<CommitteeRecord>, ChainError> {
        self.0.read(when, Entry::Committees, &[&dispute.encode()]).await
    }

    async fn disputes(&self, when: When) -> Result<Vec<(DisputeId, DisputeRecord)>, ChainError> {
        self.0.all(when, Entry::Disputes).await
    }

    async fn demands(
        &self,
        when: When,
        task: TaskId,
        provider: &AccountId32,
    ) -> Result<Vec<DemandRecord>, ChainError> {
        let keys: [&[u8]; 2] = [&task.encode(), provider.as_ref()];
        let demands: Option<Vec<_>> = self.0.read(when, Entry::Demands, &keys).await?;
        Ok(demands.unwrap_or_default())
    }

    async fn commit_note(
        &self,
        when: When,
        task: TaskId,
        provider: &AccountId32,
    ) -> Result<Option<CommitRecord>, ChainError> {
        let keys: [&[u8]; 2] = [&task.encode(), provider.as_ref()];
        self.0.read(when, Entry::CommitNotes, &keys).await
    }

    async fn shown(&self, when: When, task: TaskId, content: ContentHash) -> Result<Vec<u8>, ChainError> {
        self.0.shown(when, task, content).await
    }

    async fn shown_part(&self, at: When, task: TaskId, part: PartKey) -> Result<Option<Vec<u8>>, ChainError> {
        self.0.shown_part(at, task, part).await
    }

    async fn items_opened(
        &self,
        block: BlockNumber,
        task: TaskId,
        provider: &AccountId32,
        verifier: &AccountId32,
    ) -> Result<Vec<ItemsOpening>, ChainError> {
        self.0.items_opened(block, (task, provider, verifier)).await
    }

    async fn slashes(&self, when: When) -> Result<Vec<(SlashId, SlashRecord)>, ChainError> {
        self.0.all(when, Entry::Slashes).await
    }

    async fn trust(&self, when: When, stash: &AccountId32) -> Result<TrustInfo, ChainError> {
        let found = self.0.read(when, Entry::Records, &[stash.as_ref()]).await?;
        Ok(found.unwrap_or_default())
    }

    async fn auditors_expected(
        &self,
        when: When,
        task: TaskId,
        provider: &AccountId32,
    ) -> Result<FixedU128, ChainError> {
        self.0.auditors_expected(when, task, provider).await
    }

    async fn parameters(&self, when: When) -> Result<Vec<Parameter>, ChainError> {
        self.0.parameters(when).await
    }

    async fn events(&self, block: H256) -> Result<Vec<ChainEvent>, ChainError> {
        let question = |at: BlockRef| self.0.events(at);
        self.0.believed(When::At(block), question).await
    }

    async fn submit(
        &self,
        signer: &Signer,
        call: Call,
        options: SubmitOptions,
    ) -> Result<Included, ChainError> {
        self.0.submit(signer, call, options).await
    }
}
