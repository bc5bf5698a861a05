//! Questions that take more than one value.

use std::sync::{MutexGuard, PoisonError};

use codec::{Decode, DecodeAll, Encode};
use scale_info::TypeInfo;
use sp_core::{H256, crypto::AccountId32};
use sp_runtime::FixedU128;
use surety_types::{ContentHash, TaskId};

use super::{Inner, entries::Entry, runtime::Runtime};
use surety_chain_client::{
    Balance, BidRecord, BidTerms, BlockNumber, BlockRef, ChainError, OpenTask, OpenTasks, Parameter, PartKey,
    PartlyRead, ProviderTerms, RoundRecord, TaskInfo, TaskRecord, When, is_open,
};

/// Keys listed in one request; nodes refuse more.
const PAGE: u32 = 1000;
/// Most keys of one map that are listed: a limit on memory, far above what this chain keeps open.
const KEYS_MAX: usize = 200_000;
/// Tasks of which the record is asked for at once when the newest are listed.
const RECENT_PAGE: TaskId = 500;

/// What was read before, to hold against what is read now.
#[derive(Default)]
pub(super) struct Memory {
    /// The newest finalised block that was looked at, and the lowest number that the next task can have after
    /// it.
    next_task: (BlockNumber, TaskId),
}

impl Inner {
    pub async fn task(&self, when: When, id: TaskId) -> Result<Option<TaskInfo>, ChainError> {
        self.api(when, ("TaskApi", "task"), &id.encode()).await
    }

    pub async fn price_limit(
        &self,
        when: When,
        cap: Balance,
        redundancy: u32,
    ) -> Result<Option<Balance>, ChainError> {
        let arguments = (cap, redundancy).encode();
        self.api(when, ("TaskApi", "price_limit"), &arguments).await
    }

    pub async fn bid_terms(&self, when: When, task: TaskId) -> Result<Option<BidTerms>, ChainError> {
        self.api(when, ("TaskApi", "bid_terms"), &task.encode()).await
    }

    pub async fn provider_terms(&self, when: When) -> Result<ProviderTerms, ChainError> {
        self.api(when, ("TaskApi", "provider_terms"), &[]).await
    }

    pub async fn auditors_expected(
        &self,
        when: When,
        task: TaskId,
        provider: &AccountId32,
    ) -> Result<FixedU128, ChainError> {
        let arguments = (task, provider).encode();
        let expected = self
            .api(when, ("TrustApi", "auditors_expected"), &arguments)
            .await?;
        Ok(FixedU128::from_inner(expected))
    }

    pub async fn shown(&self, when: When, task: TaskId, content: ContentHash) -> Result<Vec<u8>, ChainError> {
        let arguments = (task, content).encode();
        self.api(when, ("TrustApi", "shown"), &arguments).await
    }

    pub async fn shown_part(
        &self,
        when: When,
        task: TaskId,
        part: PartKey,
    ) -> Result<Option<Vec<u8>>, ChainError> {
        let keys: [&[u8]; 2] = [&task.encode(), &part.encode()];
        self.read(when, Entry::Shown, &keys).await
    }

    pub(super) async fn api<T: Decode + TypeInfo + 'static>(
        &self,
        when: When,
        (api, method): (&str, &str),
        arguments: &[u8],
    ) -> Result<T, ChainError> {
        let question = |at: BlockRef| async move {
            // At the block of an upgrade the new runtime would read what the old one wrote and nobody has
            // moved over yet.
            let hash = self.writer_of(at.hash).await?;
            let runtime = self.runtime_after(hash).await?;
            // Before it is called: of a function that is not there nodes say what they say of one that fails.
            let reader = runtime.answer(api, method)?;
            let function = format!("{api}_{method}");
            let answer = self.link.state_call(hash, &function, arguments).await?;
            reader.read(&answer)
        };
        self.believed(when, question).await
    }

    pub async fn open_tasks(
        &self,
        when: When,
        bidder: Option<&AccountId32>,
    ) -> Result<OpenTasks, ChainError> {
        let question = |at: BlockRef| self.open_tasks_at(when, at, bidder);
        self.believed(when, question).await
    }

    async fn open_tasks_at(
        &self,
        when: When,
        at: BlockRef,
        bidder: Option<&AccountId32>,
    ) -> Result<OpenTasks, ChainError> {
        let runtime = self.runtime_of(at.hash).await?;
        let index = match runtime.has(Entry::OpenTasks) {
            true => Entry::OpenTasks,
            false => Entry::Tasks,
        };
        let ids = self.task_ids(&runtime, at.hash, index).await?;
        if ids.is_empty() {
            self.ensure_none(when, at).await?;
        }
        let newest = ids.last().map_or(0, |last| last.saturating_add(1));
        let bids = async {
            match bidder {
                Some(_) => {
                    self.by_task::<BidRecord>(&runtime, at.hash, Entry::Bids, &ids, bidder)
                        .await
                }
                None => Ok(ids.iter().map(|_| Found::Nothing).collect()),
            }
        };
        // At once: over a slow line each question takes seconds.
        let (tasks, rounds, bids) = tokio::try_join!(
            self.by_task::<TaskRecord>(&runtime, at.hash, Entry::Tasks, &ids, None),
            self.by_task::<RoundRecord>(&runtime, at.hash, Entry::Rounds, &ids, None),
            bids,
        )?;
        if !ids.is_empty() && tasks.iter().all(|task| matches!(task, Found::Nothing)) {
            let reason = format!(
                "it lists {} tasks at block {} and has none of them",
                ids.len(),
                at.number
            );
            return Err(self.link.implausible(reason));
        }
        self.note_known(when, at, newest).await?;
        let all = ids.into_iter().zip(tasks).zip(rounds).zip(bids);
        let mut open = OpenTasks::default();
        for (((id, task), round), bid) in all {
            let found = PartlyRead {
                id,
                task: match task.read() {
                    Some(None) => continue,
                    Some(Some(task)) if !is_open(&task) => continue,
                    task => task.flatten(),
                },
                round: round.read(),
                bid: bid.read(),
            };
            match found {
                PartlyRead {
                    id,
                    task: Some(task),
                    round: Some(round),
                    bid: Some(bid),
                } => open.tasks.push(OpenTask { id, task, round, bid }),
                part => open.unread.push(part),
            }
        }
        Ok(open)
    }

    /// That there is nothing is believed only of a block whose state is there.
    pub(super) async fn ensure_state(&self, at: BlockRef) -> Result<(), ChainError> {
        let runtime = self.runtime_of(at.hash).await?;
        let key = runtime.key(Entry::Number, &[])?;
        let number = self.link.value(at.hash, &key).await?;
        let reader = runtime.reader::<BlockNumber>(Entry::Number)?;
        let number = number.map(|bytes| reader.read(&bytes)).transpose()?;
        // The first block's state has no number yet.
        if at.number > 0 && number != Some(at.number) {
            let reason = format!("it answers for block {} without having its state", at.number);
            return Err(self.link.implausible(reason));
        }
        Ok(())
    }

    /// That there are no open tasks is believed only of a block whose state is there. Tasks are numbered
    /// upwards: none may be unknown in a finalised block that was known in one before.
    async fn ensure_none(&self, when: When, at: BlockRef) -> Result<(), ChainError> {
        self.ensure_state(at).await?;
        if !self.is_final_by_now(when, at).await? {
            return Ok(());
        }
        let next: Option<TaskId> = self.read_at(at, Entry::NextTaskId, &[]).await?;
        let next = next.unwrap_or_default();
        let mut memory = self.memory();
        let (block, seen) = memory.next_task;
        if at.number >= block && next < seen {
            let reason = format!("it knows {next} tasks at block {}, not {seen}", at.number);
            return Err(self.link.implausible(reason));
        }
        memory.next_task = (block.max(at.number), seen.max(next));
        Ok(())
    }

    /// Takes note of the lowest number that the next task can have.
    async fn note_known(&self, when: When, at: BlockRef, next: TaskId) -> Result<(), ChainError> {
        let is_news = next > self.memory().next_task.1;
        if is_news && self.is_final_by_now(when, at).await? {
            let mut memory = self.memory();
            let (block, seen) = memory.next_task;
            memory.next_task = (block.max(at.number), seen.max(next));
        }
        Ok(())
    }

    /// Whether a block is known to be final, whoever names it: followers of finalised blocks name each by its
    /// hash. One of a fork that was left may be as low, and what is on that alone has never been.
    async fn is_final_by_now(&self, when: When, at: BlockRef) -> Result<bool, ChainError> {
        match when {
            When::Finalized => Ok(true),
            _ if at.number > self.link.newest_final() => Ok(false),
            _ => Ok(self.link.block_hash(Some(at.number)).await? == at.hash),
        }
    }

    /// Counts down from the newest, so that it costs what is shown and not what is kept.
    pub async fn recent_tasks(
        &self,
        when: When,
        limit: u32,
    ) -> Result<Vec<(TaskId, TaskRecord)>, ChainError> {
        let question = |at: BlockRef| self.recent_tasks_at(at, limit as usize);
        self.believed(when, question).await
    }

    async fn recent_tasks_at(
        &self,
        at: BlockRef,
        limit: usize,
    ) -> Result<Vec<(TaskId, TaskRecord)>, ChainError> {
        let runtime = self.runtime_of(at.hash).await?;
        let next: Option<TaskId> = self.read_at(at, Entry::NextTaskId, &[]).await?;
        let mut next = next.unwrap_or_default();
        let mut recent = Vec::new();
        let mut is_gap = false;
        while next > 0 && recent.len() < limit && !is_gap {
            let first = next.saturating_sub(RECENT_PAGE);
            let found = self
                .tasks(&runtime, at.hash, (first..next).rev().collect())
                .await?;
            is_gap = found.is_empty();
            recent.extend(found);
            next = first;
        }
        // Finished tasks go in the order of their age: below a gap that wide there are only open ones.
        if is_gap && runtime.has(Entry::OpenTasks) {
            let mut open = self.task_ids(&runtime, at.hash, Entry::OpenTasks).await?;
            open.retain(|id| *id < next);
            open.reverse();
            open.truncate(limit.saturating_sub(recent.len()));
            recent.extend(self.tasks(&runtime, at.hash, open).await?);
        }
        recent.truncate(limit);
        Ok(recent)
    }

    /// Those of the tasks that there are, in the order asked for.
    async fn tasks(
        &self,
        runtime: &Runtime,
        hash: H256,
        ids: Vec<TaskId>,
    ) -> Result<Vec<(TaskId, TaskRecord)>, ChainError> {
        let tasks = self.by_task(runtime, hash, Entry::Tasks, &ids, None).await?;
        let tasks = ids.into_iter().zip(tasks);
        Ok(tasks.filter_map(|(id, task)| Some((id, task.value()?))).collect())
    }

    /// Everything in a map that can be read.
    pub async fn all<K: Decode, V: Decode + TypeInfo + 'static>(
        &self,
        when: When,
        entry: Entry,
    ) -> Result<Vec<(K, V)>, ChainError> {
        self.all_under(when, entry, &[]).await
    }

    /// Everything that can be read in the part of a map that has these first keys, in SCALE.
    pub async fn all_under<K: Decode, V: Decode + TypeInfo + 'static>(
        &self,
        when: When,
        entry: Entry,
        first: &[&[u8]],
    ) -> Result<Vec<(K, V)>, ChainError> {
        let question = |at: BlockRef| async move {
            let runtime = self.runtime_of(at.hash).await?;
            let prefix = runtime.key(entry, first)?;
            let keys = self.keys(at.hash, entry, &prefix).await?;
            if keys.is_empty() {
                self.ensure_state(at).await?;
            }
            let values = self.link.values(at.hash, &keys).await?;
            let reader = runtime.reader::<V>(entry)?;
            let mut all = Vec::with_capacity(keys.len());
            for (key, value) in keys.iter().zip(values) {
                let Some(value) = value else {
                    continue;
                };
                let key = last_key::<K>(&runtime, entry, (&prefix, key))?;
                match reader.read(&value) {
                    Ok(value) => all.push((key, value)),
                    Err(error) => report(&error),
                }
            }
            Ok(all)
        };
        self.believed(when, question).await
    }

    pub async fn parameters(&self, when: When) -> Result<Vec<Parameter>, ChainError> {
        let question = |at: BlockRef| self.parameters_at(at);
        self.believed(when, question).await
    }

    async fn parameters_at(&self, at: BlockRef) -> Result<Vec<Parameter>, ChainError> {
        let runtime = self.runtime_of(at.hash).await?;
        let prefix = runtime.prefix(Entry::Parameters);
        let keys = self.keys(at.hash, Entry::Parameters, &prefix).await?;
        if keys.is_empty() {
            self.ensure_state(at).await?;
        }
        let values = self.link.values(at.hash, &keys).await?;
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

    /// Numbers of all tasks in a map by task, in ascending order.
    async fn task_ids(&self, runtime: &Runtime, hash: H256, entry: Entry) -> Result<Vec<TaskId>, ChainError> {
        let (mut ids, prefix) = (Vec::new(), runtime.prefix(entry));
        for key in self.keys(hash, entry, &prefix).await? {
            ids.push(last_key(runtime, entry, (&prefix, &key))?);
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// Keys of an entry that begin with `prefix`.
    async fn keys(&self, hash: H256, entry: Entry, prefix: &[u8]) -> Result<Vec<Vec<u8>>, ChainError> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        loop {
            let start = keys.last().map(Vec::as_slice);
            let page = self.link.keys(hash, prefix, PAGE, start).await?;
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
    async fn by_task<T: Decode + TypeInfo + 'static>(
        &self,
        runtime: &Runtime,
        hash: H256,
        entry: Entry,
        ids: &[TaskId],
        second: Option<&AccountId32>,
    ) -> Result<Vec<Found<T>>, ChainError> {
        let mut keys = Vec::with_capacity(ids.len());
        for id in ids {
            let id = id.encode();
            let mut parts = vec![id.as_slice()];
            parts.extend(second.map(|account| -> &[u8] { account.as_ref() }));
            keys.push(runtime.key(entry, &parts)?);
        }
        let values = self.link.values(hash, &keys).await?;
        let reader = runtime.reader::<T>(entry)?;
        let found = |value: Option<Vec<u8>>| match value.map(|bytes| reader.read(&bytes)) {
            None => Found::Nothing,
            Some(Ok(value)) => Found::Value(value),
            Some(Err(error)) => {
                report(&error);
                Found::Unreadable
            }
        };
        Ok(values.into_iter().map(found).collect())
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is under a key.
enum Found<T> {
    Nothing,
    /// Something that this program cannot read.
    Unreadable,
    Value(T),
}

impl<T> Found<T> {
    /// What is there, if anything is; nothing when it cannot be read.
    fn read(self) -> Option<Option<T>> {
        match self {
            Self::Value(value) => Some(Some(value)),
            Self::Nothing => Some(None),
            Self::Unreadable => None,
        }
    }

    fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Nothing | Self::Unreadable => None,
        }
    }
}

/// The last key of an entry's, behind `prefix`.
fn last_key<K: Decode>(
    runtime: &Runtime,
    entry: Entry,
    (prefix, full): (&[u8], &[u8]),
) -> Result<K, ChainError> {
    let key = runtime.last_key(entry, prefix, full)?;
    K::decode_all(&mut key.as_slice()).map_err(|error| ChainError::Decode {
        what: "a key of a map".into(),
        reason: error.to_string(),
    })
}

/// One record that cannot be read does not hide the others.
fn report(error: &ChainError) {
    tracing::error!(%error, "a record is left out");
}
