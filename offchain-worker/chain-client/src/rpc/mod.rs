//! [`Chain`] over a node's RPC.
//!
//! What the node answers is believed, so it should be the worker's own, or one of its owner's. The connection is made
//! anew when it breaks; questions are asked again for as long as [`RpcConfig::patience`] says, submitted calls never.

mod blocks;
mod link;
mod reads;
mod runtime;
mod submit;
#[cfg(test)]
mod tests;
mod words;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use codec::{Decode, Encode};
use sp_core::{crypto::AccountId32, H256};
use sp_runtime::FixedU128;
use surety_types::{
    trust::{DisputeId, SlashId},
    ModelId, TaskId,
};
use tokio::sync::RwLock;

use crate::{
    Balance, BlockNumber, BlockRef, Call, Chain, ChainError, ChainEvent, ChainInfo, CommitteeRecord,
    DemandRecord, DisputeRecord, FinalisedBlocks, Funds, Included, OpenTask, Parameter, ProviderRecord,
    RegisteredModel, Signer, SlashRecord, StakeInfo, TaskInfo, TaskRecord, TrustInfo, Until, When,
};

use link::Link;
use runtime::{Entry, Runtime};
use submit::Queues;

/// The runtime this crate is made for.
const SPEC_NAME: &str = "surety";
/// Runtimes kept at hand: the present one, and those of blocks around an upgrade.
const RUNTIMES_MAX: usize = 4;

/// How to reach a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcConfig {
    /// Its WebSocket address, for example `ws://127.0.0.1:9944`.
    pub url: String,
    /// How long to keep trying when it does not answer.
    pub patience: Duration,
    /// How long to wait for a submitted call to get into a block, and how long for that block to be finalised.
    pub inclusion_patience: Duration,
}

impl RpcConfig {
    /// The usual patience, for the node at `url`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            patience: Duration::from_secs(30),
            // Calls are good for 64 blocks of 2 seconds.
            inclusion_patience: Duration::from_secs(150),
        }
    }
}

/// A chain behind a node's RPC. Clones share the connection.
#[derive(Clone)]
pub struct RpcChain(Arc<Inner>);

struct Inner {
    link: Link,
    info: ChainInfo,
    inclusion_patience: Duration,
    /// By specification version; the last one is the present one.
    runtimes: RwLock<BTreeMap<u32, Arc<Runtime>>>,
    queues: Queues,
    /// Tasks that finalised state has shown to be finished; they stay so, and need not be read again.
    finished: Mutex<BTreeSet<TaskId>>,
}

impl RpcChain {
    /// Connects to a node, and checks that its chain is one that this crate fits.
    ///
    /// # Errors
    /// [`ChainError::Unreachable`], [`ChainError::WrongChain`], [`ChainError::Incompatible`].
    pub async fn connect(config: RpcConfig) -> Result<Self, ChainError> {
        let link = Link::new(config.url, config.patience);
        let genesis = link.genesis().await?;
        let best = link.block_hash(None).await?;
        let runtime = link.runtime(best).await?;
        let info = ChainInfo {
            genesis,
            spec_name: SPEC_NAME.into(),
            spec_version: runtime.spec_version(),
            existential_deposit: runtime.constant("Balances", "ExistentialDeposit")?,
        };
        let runtimes = BTreeMap::from([(runtime.spec_version(), Arc::new(runtime))]);
        Ok(Self(Arc::new(Inner {
            link,
            info,
            inclusion_patience: config.inclusion_patience,
            runtimes: RwLock::new(runtimes),
            queues: Queues::default(),
            finished: Mutex::default(),
        })))
    }
}

impl Inner {
    async fn hash(&self, when: When) -> Result<H256, ChainError> {
        match when {
            When::Finalised => self.link.finalised_head().await,
            When::Best => self.link.block_hash(None).await,
            When::At(hash) => Ok(hash),
        }
    }

    /// The runtime we last saw: what keys of storage are made with.
    async fn present_runtime(&self) -> Result<Arc<Runtime>, ChainError> {
        let runtimes = self.runtimes.read().await;
        let newest = runtimes.last_key_value().map(|(_, runtime)| runtime.clone());
        newest.ok_or_else(|| ChainError::Incompatible {
            spec_version: 0,
            what: "no runtime is known".into(),
        })
    }

    /// The runtime that made block `hash`.
    async fn runtime_at(&self, hash: H256) -> Result<Arc<Runtime>, ChainError> {
        let (spec_version, _) = self.link.version(hash).await?;
        if let Some(runtime) = self.runtimes.read().await.get(&spec_version) {
            return Ok(runtime.clone());
        }
        let runtime = Arc::new(self.link.runtime(hash).await?);
        let mut runtimes = self.runtimes.write().await;
        runtimes.insert(spec_version, runtime.clone());
        while runtimes.len() > RUNTIMES_MAX {
            runtimes.pop_first();
        }
        Ok(runtime)
    }

    async fn events(&self, block: H256) -> Result<Vec<ChainEvent>, ChainError> {
        let runtime = self.runtime_at(block).await?;
        let key = runtime.key(Entry::Events, &[])?;
        let bytes = self.link.value(block, &key).await?.unwrap_or_default();
        runtime.events(&bytes)
    }

    /// A value under one key or none.
    async fn read<T: Decode>(
        &self,
        when: When,
        entry: Entry,
        keys: &[&[u8]],
    ) -> Result<Option<T>, ChainError> {
        let hash = self.hash(when).await?;
        let key = self.present_runtime().await?.key(entry, keys)?;
        let bytes = self.link.value(hash, &key).await?;
        bytes.map(|bytes| runtime::decode(entry, &bytes)).transpose()
    }

    fn known_finished(&self) -> std::sync::MutexGuard<'_, BTreeSet<TaskId>> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Chain for RpcChain {
    fn info(&self) -> &ChainInfo {
        &self.0.info
    }

    async fn finalised_blocks(&self) -> Result<Box<dyn FinalisedBlocks>, ChainError> {
        Ok(Box::new(blocks::Blocks::new(self.clone())))
    }

    async fn block(&self, when: When) -> Result<BlockRef, ChainError> {
        let hash = self.0.hash(when).await?;
        let number = self.0.link.number(hash).await?;
        Ok(BlockRef { number, hash })
    }

    async fn block_at(&self, number: BlockNumber) -> Result<BlockRef, ChainError> {
        let hash = self.0.link.block_hash(Some(number)).await?;
        Ok(BlockRef { number, hash })
    }

    async fn task(&self, when: When, id: TaskId) -> Result<Option<TaskInfo>, ChainError> {
        self.0.task(when, id).await
    }

    async fn open_tasks(
        &self,
        when: When,
        bidder: Option<&AccountId32>,
    ) -> Result<Vec<OpenTask>, ChainError> {
        self.0.open_tasks(when, bidder).await
    }

    async fn recent_tasks(&self, when: When, limit: u32) -> Result<Vec<(TaskId, TaskRecord)>, ChainError> {
        self.0.recent_tasks(when, limit).await
    }

    async fn provider(&self, when: When, stash: &AccountId32) -> Result<Option<ProviderRecord>, ChainError> {
        self.0.read(when, Entry::Providers, &[stash.as_ref()]).await
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
        /// `frame_system::AccountInfo` with `pallet_balances::AccountData`.
        #[derive(Decode)]
        struct Account {
            _counters: [BlockNumber; 4],
            free: Balance,
            reserved: Balance,
            _frozen_and_flags: [Balance; 2],
        }
        let account: Option<Account> = self.0.read(when, Entry::Account, &[account.as_ref()]).await?;
        Ok(account.map_or_else(Funds::default, |account| Funds {
            free: account.free,
            held: account.reserved,
        }))
    }

    async fn price_limit(
        &self,
        when: When,
        cap: Balance,
        redundancy: u32,
    ) -> Result<Option<Balance>, ChainError> {
        self.0.price_limit(when, cap, redundancy).await
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

    async fn demand(
        &self,
        when: When,
        task: TaskId,
        provider: &AccountId32,
    ) -> Result<Option<DemandRecord>, ChainError> {
        let keys: [&[u8]; 2] = [&task.encode(), provider.as_ref()];
        self.0.read(when, Entry::Demands, &keys).await
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
        self.0.events(block).await
    }

    async fn submit(&self, signer: &Signer, call: Call, until: Until) -> Result<Included, ChainError> {
        self.0.submit(signer, call, until).await
    }
}
