//! A chain in memory for tests of what stands on [`Chain`]: calls change its best state,
//! [`FakeChain::finalize`] makes that state final, and faults are scripted.
//!
//! It follows the pallets only as far as a worker can see; of money it knows what the test says, and holds
//! back what demands cost. Deadlines are the test's to keep: [`FakeChain::assign`],
//! [`FakeChain::open_reveals`] and [`FakeChain::settle`] move a task on.

mod audits;
mod blocks;
mod calls;
mod channels;
mod demands;
mod faults;
mod fees;
mod gpu_proofs;
mod inputs;
mod places;
mod rounds;
mod stake;
mod state;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use sp_core::{H256, crypto::AccountId32};
use sp_crypto_hashing::blake2_256;
use sp_runtime::FixedU128;
use surety_types::{
    ContentHash, ModelId, TaskId,
    speed::MeasuredView,
    trust::{DisputeId, SlashId},
};
use tokio::sync::watch;

use crate::{
    Balance, BidRecord, BidTerms, BlockNumber, BlockRef, BlockStream, Call, Chain, ChainError, ChainEvent,
    ChainInfo, CommitRecord, CommitteeRecord, DemandRecord, DisputeRecord, Funds, Included, ItemsOpening,
    OpenTasks, Parameter, PartKey, ProviderRecord, ProviderTerms, RegisteredModel, Sent, Signer, SlashRecord,
    StakeInfo, SubmitOptions, TaskInfo, TaskRecord, TrustInfo, When,
};

use blocks::{Blocks, genesis};
pub use channels::{FakeChannels, FakeDemand, FakeOffer, FakePoints};
use faults::Faults;
pub use gpu_proofs::FakeGpuProofs;
pub use stake::FakeDelegation;
pub use state::FakeState;

/// What an account keeps at least, in plancks: no fee takes it.
const DEPOSIT: Balance = 1;

/// A scripted chain in memory. Clones share it.
#[derive(Clone)]
pub struct FakeChain {
    info: Arc<ChainInfo>,
    inner: Arc<Mutex<Inner>>,
    finalized: watch::Sender<BlockNumber>,
    best: watch::Sender<BlockNumber>,
}

#[derive(Default)]
struct Inner {
    best: FakeState,
    finalized: FakeState,
    events: Vec<(BlockNumber, ChainEvent)>,
    calls: Vec<(AccountId32, Call)>,
    attempts: Vec<(AccountId32, Call, SubmitOptions)>,
    faults: Faults,
    /// What the next questions about a block come to.
    read_faults: VecDeque<Option<ChainError>>,
    unreachable: bool,
}

impl Default for FakeChain {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeChain {
    /// An empty chain at block 0.
    pub fn new() -> Self {
        let info = ChainInfo {
            genesis: genesis(),
            spec_name: "surety".into(),
            spec_version: 1,
            existential_deposit: DEPOSIT,
        };
        let state = FakeState {
            fee_multiplier: FixedU128::from_u32(1),
            ..FakeState::default()
        };
        let inner = Inner {
            best: state.clone(),
            finalized: state,
            ..Inner::default()
        };
        Self {
            info: Arc::new(info),
            inner: Arc::new(Mutex::new(inner)),
            finalized: watch::Sender::new(0),
            best: watch::Sender::new(0),
        }
    }

    /// Changes the best state directly. Call [`Self::finalize`] to make the change final.
    pub fn change<T>(&self, change: impl FnOnce(&mut FakeState) -> T) -> T {
        change(&mut self.lock().best)
    }

    /// Ends the block: the best state becomes final, the clock goes on, and whoever follows blocks hears of
    /// it.
    pub fn finalize(&self) -> BlockRef {
        let number = {
            let mut inner = self.lock();
            inner.best.number = inner.best.number.saturating_add(1);
            inner.best.clock = inner.best.clock.saturating_add(1);
            inner.finalized = inner.best.clone();
            inner.best.number
        };
        self.best.send_replace(number);
        self.finalized.send_replace(number);
        block_ref(number)
    }

    /// Ends the block without finality: the clock stands still, and whoever follows best blocks hears of it.
    pub fn extend(&self) -> BlockRef {
        let number = {
            let mut inner = self.lock();
            inner.best.number = inner.best.number.saturating_add(1);
            inner.best.number
        };
        self.best.send_replace(number);
        block_ref(number)
    }

    /// Has something happen in a block.
    pub fn happen(&self, block: BlockNumber, event: ChainEvent) {
        self.lock().events.push((block, event));
    }

    /// Cuts the node off, or brings it back.
    pub fn set_unreachable(&self, unreachable: bool) {
        self.lock().unreachable = unreachable;
    }

    /// Gives a task to everybody who has opened a bid, at the price asked for; opens its round.
    pub fn assign(&self, task: TaskId, commit_until: BlockNumber) {
        self.change(|state| state.assign(task, commit_until));
    }

    /// Ends the commit window of a task.
    pub fn open_audits(&self, task: TaskId, until: BlockNumber) {
        self.change(|state| state.open_audits(task, until));
    }

    /// Ends the audit window of a task.
    pub fn open_reveals(&self, task: TaskId, until: BlockNumber) {
        self.change(|state| state.open_reveals(task, until));
    }

    /// Settles a task with the claim that most have revealed.
    pub fn settle(&self, task: TaskId) {
        self.change(|state| state.settle(task));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self, blocks: &watch::Sender<BlockNumber>) -> Result<Box<dyn BlockStream>, ChainError> {
        self.lock().check_reachable()?;
        Ok(Box::new(Blocks::new(self.clone(), blocks)))
    }

    fn read<T>(&self, when: When, read: impl FnOnce(&FakeState) -> T) -> Result<T, ChainError> {
        let mut inner = self.lock();
        inner.check_reachable()?;
        if matches!(when, When::At(_))
            && let Some(Some(fault)) = inner.read_faults.pop_front()
        {
            return Err(fault);
        }
        match when {
            When::Finalized => Ok(read(&inner.finalized)),
            When::Best => Ok(read(&inner.best)),
            When::At(hash) if hash == block_ref(inner.finalized.number).hash => Ok(read(&inner.finalized)),
            When::At(hash) if hash == block_ref(inner.best.number).hash => Ok(read(&inner.best)),
            When::At(hash) => Err(ChainError::Pruned {
                block: format!("{hash:?}"),
            }),
        }
    }
}

impl Inner {
    fn check_reachable(&self) -> Result<(), ChainError> {
        if self.unreachable {
            return Err(ChainError::Unreachable {
                url: "fake".into(),
                hint: "the test has cut it off".into(),
            });
        }
        Ok(())
    }
}

fn unreadable(what: &str) -> ChainError {
    ChainError::Decode {
        what: what.into(),
        reason: "the test has made it so".into(),
    }
}

fn block_ref(number: BlockNumber) -> BlockRef {
    BlockRef {
        number,
        hash: H256(blake2_256(&number.to_le_bytes())),
    }
}

#[async_trait]
impl Chain for FakeChain {
    fn info(&self) -> &ChainInfo {
        &self.info
    }

    async fn is_test_network(&self) -> Result<bool, ChainError> {
        self.read(When::Best, |state| !state.is_real_money)
    }

    async fn finalized_blocks(&self) -> Result<Box<dyn BlockStream>, ChainError> {
        self.follow(&self.finalized)
    }

    async fn best_blocks(&self) -> Result<Box<dyn BlockStream>, ChainError> {
        self.follow(&self.best)
    }

    async fn block(&self, when: When) -> Result<BlockRef, ChainError> {
        self.read(when, |state| block_ref(state.number))
    }

    async fn block_at(&self, number: BlockNumber) -> Result<BlockRef, ChainError> {
        self.lock().check_reachable()?;
        Ok(block_ref(number))
    }

    async fn clock(&self, when: When) -> Result<BlockNumber, ChainError> {
        self.read(when, |state| state.clock)
    }

    async fn task(&self, when: When, id: TaskId) -> Result<Option<TaskInfo>, ChainError> {
        self.read(when, |state| {
            state.tasks.get(&id).map(|task| TaskInfo {
                task: task.clone(),
                round: state.rounds.get(&id).cloned(),
                escrow: 0,
            })
        })
    }

    async fn open_tasks(&self, when: When, bidder: Option<&AccountId32>) -> Result<OpenTasks, ChainError> {
        self.read(when, |state| state.open_tasks(bidder))
    }

    async fn recent_tasks(&self, when: When, limit: u32) -> Result<Vec<(TaskId, TaskRecord)>, ChainError> {
        self.read(when, |state| {
            let newest = state.tasks.iter().rev().take(limit as usize);
            newest.map(|(id, task)| (*id, task.clone())).collect()
        })
    }

    async fn bids(&self, when: When, task: TaskId) -> Result<Vec<(AccountId32, BidRecord)>, ChainError> {
        self.read(when, |state| {
            let bids = state.bids.iter().filter(|((of, _), _)| *of == task);
            bids.map(|((_, who), bid)| (who.clone(), bid.clone())).collect()
        })
    }

    async fn provider(&self, when: When, stash: &AccountId32) -> Result<Option<ProviderRecord>, ChainError> {
        self.read(when, |state| state.providers.get(stash).cloned())
    }

    async fn benchmarked(&self, when: When, stash: &AccountId32) -> Result<Option<MeasuredView>, ChainError> {
        self.read(when, |state| state.gpu_proofs.measured.get(stash).copied())
    }

    async fn providers(&self, when: When) -> Result<Vec<(AccountId32, ProviderRecord)>, ChainError> {
        self.read(when, |state| state.providers.clone().into_iter().collect())
    }

    async fn model(&self, when: When, id: &ModelId) -> Result<Option<RegisteredModel>, ChainError> {
        self.read(when, |state| state.models.get(id).cloned())
    }

    async fn models(&self, when: When) -> Result<Vec<(ModelId, RegisteredModel)>, ChainError> {
        self.read(when, |state| state.models.clone().into_iter().collect())
    }

    async fn auditors(&self, when: When, model: &ModelId) -> Result<Vec<AccountId32>, ChainError> {
        self.read(when, |state| {
            state.auditors.get(model).cloned().unwrap_or_default()
        })
    }

    async fn audit_speed(&self, when: When, model: &ModelId) -> Result<Option<u32>, ChainError> {
        self.read(when, |state| state.audit_speeds.get(model).copied())
    }

    async fn stake(&self, when: When, stash: &AccountId32) -> Result<Option<StakeInfo>, ChainError> {
        self.read(when, |state| state.stakes.get(stash).cloned())
    }

    async fn agent_stash(&self, when: When, agent: &AccountId32) -> Result<Option<AccountId32>, ChainError> {
        self.read(when, |state| state.agents.get(agent).cloned())
    }

    async fn pending_agent(
        &self,
        when: When,
        stash: &AccountId32,
    ) -> Result<Option<AccountId32>, ChainError> {
        self.read(when, |state| state.pending_agents.get(stash).cloned())
    }

    async fn funds(&self, when: When, account: &AccountId32) -> Result<Funds, ChainError> {
        self.read(when, |state| match state.unreadable_funds {
            true => Err(unreadable("an account")),
            false => Ok(state.funds.get(account).copied().unwrap_or_default()),
        })?
    }

    async fn sent(&self, account: &AccountId32) -> Result<Sent, ChainError> {
        let sent = |state: &FakeState| state.sent.get(account).copied().unwrap_or_default();
        Ok(Sent {
            finalized: self.read(When::Finalized, sent)?,
            all: self.read(When::Best, sent)?,
        })
    }

    async fn fee_multiplier(&self, when: When) -> Result<FixedU128, ChainError> {
        self.read(when, |state| state.fee_multiplier)
    }

    async fn price_limit(
        &self,
        when: When,
        cap: Balance,
        redundancy: u32,
    ) -> Result<Option<Balance>, ChainError> {
        self.read(when, |_| {
            cap.checked_div(redundancy.into()).filter(|limit| *limit > 0)
        })
    }

    async fn bid_terms(&self, when: When, task: TaskId) -> Result<Option<BidTerms>, ChainError> {
        self.read(when, |state| state.bid_terms(task))?
    }

    async fn provider_terms(&self, when: When) -> Result<ProviderTerms, ChainError> {
        self.read(when, |state| state.provider_terms())
    }

    async fn dispute(&self, when: When, id: DisputeId) -> Result<Option<DisputeRecord>, ChainError> {
        self.read(when, |state| match state.unreadable.contains(&id) {
            true => Err(unreadable(&format!("dispute {id}"))),
            false => Ok(state.disputes.get(&id).cloned()),
        })?
    }

    async fn committee(&self, when: When, dispute: DisputeId) -> Result<Option<CommitteeRecord>, ChainError> {
        self.read(when, |state| state.committees.get(&dispute).cloned())
    }

    async fn disputes(&self, when: When) -> Result<Vec<(DisputeId, DisputeRecord)>, ChainError> {
        self.read(when, |state| state.disputes.clone().into_iter().collect())
    }

    async fn demands(
        &self,
        when: When,
        task: TaskId,
        provider: &AccountId32,
    ) -> Result<Vec<DemandRecord>, ChainError> {
        self.read(when, |state| {
            let demands = state.demands.get(&(task, provider.clone()));
            demands.cloned().unwrap_or_default()
        })
    }

    async fn commit_note(
        &self,
        when: When,
        task: TaskId,
        provider: &AccountId32,
    ) -> Result<Option<CommitRecord>, ChainError> {
        self.read(when, |state| {
            state.commit_notes.get(&(task, provider.clone())).cloned()
        })
    }

    async fn shown(&self, when: When, task: TaskId, content: ContentHash) -> Result<Vec<u8>, ChainError> {
        self.read(when, |state| {
            state.shown.get(&(task, content)).cloned().unwrap_or_default()
        })
    }

    async fn shown_part(&self, at: When, task: TaskId, part: PartKey) -> Result<Option<Vec<u8>>, ChainError> {
        self.read(at, |state| state.shown_part(task, part))
    }

    async fn items_opened(
        &self,
        block: BlockNumber,
        task: TaskId,
        provider: &AccountId32,
        verifier: &AccountId32,
    ) -> Result<Vec<ItemsOpening>, ChainError> {
        let key = (block, task, provider.clone(), verifier.clone());
        self.read(When::Best, |state| state.items_opened(&key))?
    }

    async fn slashes(&self, when: When) -> Result<Vec<(SlashId, SlashRecord)>, ChainError> {
        self.read(when, |state| state.slashes.clone().into_iter().collect())
    }

    async fn trust(&self, when: When, stash: &AccountId32) -> Result<TrustInfo, ChainError> {
        self.read(when, |state| {
            state.records.get(stash).cloned().unwrap_or_default()
        })
    }

    async fn auditors_expected(
        &self,
        when: When,
        _task: TaskId,
        _provider: &AccountId32,
    ) -> Result<FixedU128, ChainError> {
        self.read(when, |state| FixedU128::from_inner(state.auditors_expected))
    }

    async fn parameters(&self, when: When) -> Result<Vec<Parameter>, ChainError> {
        self.read(when, |state| state.parameters.clone())
    }

    async fn events(&self, block: H256) -> Result<Vec<ChainEvent>, ChainError> {
        let inner = self.lock();
        inner.check_reachable()?;
        let in_block = |(number, _): &&(BlockNumber, ChainEvent)| block_ref(*number).hash == block;
        Ok(inner
            .events
            .iter()
            .filter(in_block)
            .map(|(_, event)| event.clone())
            .collect())
    }

    async fn submit(
        &self,
        signer: &Signer,
        call: Call,
        options: SubmitOptions,
    ) -> Result<Included, ChainError> {
        self.hand_over(signer, call, options).await
    }
}
