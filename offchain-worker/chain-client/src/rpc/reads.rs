//! Questions that take more than one value.

use codec::{Decode, DecodeAll, Encode};
use sp_core::{crypto::AccountId32, H256};
use sp_runtime::FixedU128;
use surety_types::{task::TaskState, TaskId};

use super::{
    runtime::{self, Entry, Runtime},
    Inner,
};
use crate::{Balance, BidRecord, ChainError, OpenTask, Parameter, RoundRecord, TaskInfo, TaskRecord, When};

/// Keys listed in one request; nodes refuse more.
const PAGE: u32 = 1000;
/// Most keys of one map that are listed: a limit on memory, far above what this chain keeps.
const KEYS_MAX: usize = 200_000;

impl Inner {
    pub async fn task(&self, when: When, id: TaskId) -> Result<Option<TaskInfo>, ChainError> {
        let hash = self.hash(when).await?;
        self.api(hash, "TaskApi_task", &id.encode()).await
    }

    pub async fn price_limit(
        &self,
        when: When,
        cap: Balance,
        redundancy: u32,
    ) -> Result<Option<Balance>, ChainError> {
        let hash = self.hash(when).await?;
        self.api(hash, "TaskApi_price_limit", &(cap, redundancy).encode())
            .await
    }

    pub async fn auditors_expected(
        &self,
        when: When,
        task: TaskId,
        provider: &AccountId32,
    ) -> Result<FixedU128, ChainError> {
        let hash = self.hash(when).await?;
        self.api(hash, "TrustApi_auditors_expected", &(task, provider).encode())
            .await
    }

    async fn api<T: Decode>(&self, hash: H256, function: &str, arguments: &[u8]) -> Result<T, ChainError> {
        let answer = self.link.state_call(hash, function, arguments).await?;
        T::decode_all(&mut answer.as_slice()).map_err(|error| ChainError::Decode {
            what: format!("the answer of {function}"),
            reason: error.to_string(),
        })
    }

    pub async fn open_tasks(
        &self,
        when: When,
        bidder: Option<&AccountId32>,
    ) -> Result<Vec<OpenTask>, ChainError> {
        let hash = self.hash(when).await?;
        let runtime = self.present_runtime().await?;
        // What is finished in finalised state stays so; elsewhere it may not be yet, or not be any more.
        let is_final = when == When::Finalised || hash == self.link.finalised_head().await?;
        let mut ids = self.task_ids(&runtime, hash).await?;
        if is_final {
            let mut finished = self.known_finished();
            let listed: std::collections::BTreeSet<_> = ids.iter().copied().collect();
            finished.retain(|id| listed.contains(id));
            ids.retain(|id| !finished.contains(id));
        }
        let tasks: Vec<Option<TaskRecord>> = self.by_task(&runtime, hash, Entry::Tasks, &ids, None).await?;
        let tasks: Vec<_> = ids
            .into_iter()
            .zip(tasks)
            .filter_map(|(id, task)| Some((id, task?)))
            .collect();
        let (open, finished): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|(_, task)| is_open(task));
        if is_final {
            self.known_finished().extend(finished.iter().map(|(id, _)| *id));
        }
        let ids: Vec<_> = open.iter().map(|(id, _)| *id).collect();
        let rounds: Vec<Option<RoundRecord>> =
            self.by_task(&runtime, hash, Entry::Rounds, &ids, None).await?;
        let bids: Vec<Option<BidRecord>> = match bidder {
            Some(_) => self.by_task(&runtime, hash, Entry::Bids, &ids, bidder).await?,
            None => ids.iter().map(|_| None).collect(),
        };
        let all = open.into_iter().zip(rounds).zip(bids);
        Ok(all
            .map(|(((id, task), round), bid)| OpenTask { id, task, round, bid })
            .collect())
    }

    pub async fn recent_tasks(
        &self,
        when: When,
        limit: u32,
    ) -> Result<Vec<(TaskId, TaskRecord)>, ChainError> {
        let hash = self.hash(when).await?;
        let runtime = self.present_runtime().await?;
        let mut ids = self.task_ids(&runtime, hash).await?;
        ids.reverse();
        ids.truncate(limit as usize);
        let tasks: Vec<Option<TaskRecord>> = self.by_task(&runtime, hash, Entry::Tasks, &ids, None).await?;
        let tasks = ids.into_iter().zip(tasks);
        Ok(tasks.filter_map(|(id, task)| Some((id, task?))).collect())
    }

    /// Everything in a map.
    pub async fn all<K: Decode, V: Decode>(
        &self,
        when: When,
        entry: Entry,
    ) -> Result<Vec<(K, V)>, ChainError> {
        let hash = self.hash(when).await?;
        let runtime = self.present_runtime().await?;
        let keys = self.keys(&runtime, hash, entry).await?;
        let values = self.link.values(hash, &keys).await?;
        let mut all = Vec::with_capacity(keys.len());
        for (key, value) in keys.iter().zip(values) {
            let Some(value) = value else {
                continue;
            };
            let key = runtime::decode(entry, &runtime.last_key(entry, key)?)?;
            all.push((key, runtime::decode(entry, &value)?));
        }
        Ok(all)
    }

    pub async fn parameters(&self, when: When) -> Result<Vec<Parameter>, ChainError> {
        let hash = self.hash(when).await?;
        let runtime = self.runtime_at(hash).await?;
        let keys = self.keys(&runtime, hash, Entry::Parameters).await?;
        let values = self.link.values(hash, &keys).await?;
        let pairs = keys
            .iter()
            .zip(values)
            .filter_map(|(key, value)| Some((key, value?)));
        let mut parameters = Vec::new();
        for (key, value) in pairs {
            parameters.push(runtime.parameter(key, &value)?);
        }
        parameters.sort_unstable_by(|a, b| (&a.group, &a.name).cmp(&(&b.group, &b.name)));
        Ok(parameters)
    }

    /// Numbers of all tasks that the chain keeps, in ascending order.
    async fn task_ids(&self, runtime: &Runtime, hash: H256) -> Result<Vec<TaskId>, ChainError> {
        let mut ids = Vec::new();
        for key in self.keys(runtime, hash, Entry::Tasks).await? {
            ids.push(runtime::decode(
                Entry::Tasks,
                &runtime.last_key(Entry::Tasks, &key)?,
            )?);
        }
        ids.sort_unstable();
        Ok(ids)
    }

    async fn keys(&self, runtime: &Runtime, hash: H256, entry: Entry) -> Result<Vec<Vec<u8>>, ChainError> {
        let prefix = runtime.prefix(entry);
        let mut keys: Vec<Vec<u8>> = Vec::new();
        loop {
            let start = keys.last().map(Vec::as_slice);
            let page = self.link.keys(hash, &prefix, PAGE, start).await?;
            let is_last = page.len() < PAGE as usize;
            keys.extend(page);
            if is_last {
                return Ok(keys);
            }
            if keys.len() >= KEYS_MAX {
                let (pallet, name, _) = entry.name();
                return Err(ChainError::Rpc {
                    what: format!("listing {pallet}.{name}"),
                    reason: format!("there are more than {KEYS_MAX}"),
                });
            }
        }
    }

    /// A value for each task, where there is one.
    async fn by_task<T: Decode>(
        &self,
        runtime: &Runtime,
        hash: H256,
        entry: Entry,
        ids: &[TaskId],
        second: Option<&AccountId32>,
    ) -> Result<Vec<Option<T>>, ChainError> {
        let mut keys = Vec::with_capacity(ids.len());
        for id in ids {
            let id = id.encode();
            let mut parts = vec![id.as_slice()];
            parts.extend(second.map(|account| -> &[u8] { account.as_ref() }));
            keys.push(runtime.key(entry, &parts)?);
        }
        let values = self.link.values(hash, &keys).await?;
        let mut decoded = Vec::with_capacity(values.len());
        for value in values {
            decoded.push(value.map(|bytes| runtime::decode(entry, &bytes)).transpose()?);
        }
        Ok(decoded)
    }
}

fn is_open(task: &TaskRecord) -> bool {
    matches!(
        task.state,
        TaskState::Bidding { .. } | TaskState::Revealing { .. } | TaskState::Running { .. }
    )
}
