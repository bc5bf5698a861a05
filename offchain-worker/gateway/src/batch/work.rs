//! What becomes of batches, whatever becomes of this program: every step is on disk before it is taken.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::http::StatusCode;
use futures::{StreamExt, stream::FuturesUnordered};
use tokio::{
    task::{Id, JoinSet},
    time::sleep,
};

use super::{
    record::{Batch, BatchTask, Status, TaskState},
    told::{answers, batch_id, not_asked, refusals},
};
use crate::{
    api::{Shared, blocking, now},
    error::ApiError,
    ledger::{Ledger, TaskEnd},
    metrics::Metrics,
    places::{Admission, Place},
    runner::{BatchRunner, Ended, Posting, RunnerError},
};

/// Between two looks at which batches are open, where nobody says that there is a new one.
const LOOK: Duration = Duration::from_secs(60);

/// Files of batches that are read at once: each is in memory, with all that becomes of it.
const READ_AT_ONCE: usize = 2;

/// Has the tasks of batches computed.
pub(crate) struct Batches {
    pub(super) shared: Arc<Shared>,
    pub(super) runner: Arc<dyn BatchRunner>,
    /// Places of tasks that were on the chain before this program was started, by their keys: they wait for
    /// nothing, since their inputs have to be served.
    kept: Mutex<BTreeMap<String, Vec<Place>>>,
    /// Of files that are read.
    readings: Admission,
}

/// What a task goes on with.
enum Turn {
    /// It may be on the chain.
    Begun,
    /// There is a place for it.
    Place(Place),
    /// It is not to be posted any more.
    Never(NotPosted),
}

/// What has come of posting a task.
enum Tried {
    /// It is on the chain, under this number.
    OnChain(u64),
    /// It is not on the chain, and waits again.
    Again,
    /// It has ended.
    Over,
}

/// What is left of a batch's tasks.
struct Left {
    /// Those that wait, by their numbers.
    waiting: VecDeque<u64>,
    /// The first fault. The others go on, money is at stake.
    fault: Option<ApiError>,
}

impl Left {
    fn note(&mut self, ended: Result<Option<u64>, ApiError>) {
        match ended {
            // Behind the others: they may be what can be posted now.
            Ok(again) => self.waiting.extend(again),
            Err(fault) => {
                self.fault.get_or_insert(fault);
            }
        }
    }
}

/// Why a task is not posted.
#[derive(Clone, Copy)]
enum NotPosted {
    Late,
    Cancelled,
}

impl Batches {
    pub fn new(shared: Arc<Shared>, runner: Arc<dyn BatchRunner>) -> Self {
        Self {
            kept: Mutex::default(),
            readings: Admission::new(READ_AT_ONCE),
            shared,
            runner,
        }
    }

    /// Goes on until it is dropped.
    pub async fn run(self: Arc<Self>) {
        while let Err(error) = self.keep_places().await {
            tracing::warn!(error = error.message, "cannot see which tasks are on the chain");
            sleep(self.shared.settings.batches.pause).await;
        }
        let (mut running, mut numbers) = (JoinSet::new(), HashMap::<Id, u64>::new());
        loop {
            match self.shared.ledger(|ledger| ledger.open_batches()).await {
                Ok(open) => {
                    let at_work: BTreeSet<u64> = numbers.values().copied().collect();
                    for (number, key) in open.into_iter().filter(|(number, _)| !at_work.contains(number)) {
                        let one = running.spawn(self.clone().drive(key, number));
                        numbers.insert(one.id(), number);
                    }
                }
                Err(error) => tracing::warn!(error = error.message, "cannot see which batches are open"),
            }
            tokio::select! {
                () = self.shared.new_batch.notified() => {}
                Some(ended) = running.join_next_with_id() => match ended {
                    Ok((id, ())) => drop(numbers.remove(&id)),
                    Err(error) => {
                        tracing::error!(%error, "a batch broke off: beginning it again");
                        numbers.remove(&error.id());
                        sleep(self.shared.settings.batches.pause).await;
                    }
                },
                () = sleep(LOOK) => {}
            }
        }
    }

    /// Keeps places for the tasks that are on the chain already.
    async fn keep_places(&self) -> Result<(), ApiError> {
        let keys = self.shared.ledger(Ledger::keys_on_chain).await?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            let Some(place) = self.shared.tasks.try_place(&key) else {
                break;
            };
            kept.entry(key).or_default().push(place);
        }
        drop(kept);
        Ok(())
    }

    /// One batch, to its end or the next fault, after which it is begun again.
    async fn drive(self: Arc<Self>, key: String, number: u64) {
        loop {
            match self.step(&key, number).await {
                Ok(false) => {}
                Ok(true) => return,
                Err(error) => {
                    let (batch, error) = (batch_id(number), error.message);
                    tracing::warn!(batch, error, "a batch does not go on: trying again");
                    sleep(self.shared.settings.batches.pause).await;
                }
            }
        }
    }

    /// Whether it is over.
    async fn step(&self, key: &str, number: u64) -> Result<bool, ApiError> {
        let batch = self.batch(key, number).await?;
        match batch.status {
            Status::Validating => {
                let _place = self.readings.place(key, Duration::MAX).await?;
                // It may have been cancelled while it waited.
                if self.batch(key, number).await?.status == Status::Validating {
                    self.validate(batch).await?;
                }
            }
            Status::InProgress | Status::Cancelling => {
                self.compute(&batch).await?;
                self.finish(batch).await?;
            }
            Status::Finalizing => self.finish(batch).await?,
            Status::Failed | Status::Completed | Status::Expired | Status::Cancelled => return Ok(true),
        }
        Ok(false)
    }

    async fn batch(&self, key: &str, number: u64) -> Result<Batch, ApiError> {
        let key = key.to_owned();
        self.shared.ledger(move |ledger| ledger.batch(&key, number)).await
    }

    async fn finish(&self, batch: Batch) -> Result<(), ApiError> {
        let ended = move |ledger: &Ledger| ledger.finish_batch(&batch.key, batch.number, now());
        self.shared.ledger(ended).await
    }

    /// All tasks that are not over, side by side: those that may be on the chain at once, and the others in
    /// their order, each as soon as there is a place for it.
    async fn compute(&self, batch: &Batch) -> Result<(), ApiError> {
        let of = batch.clone();
        let open = self.shared.ledger(move |ledger| ledger.open_tasks(&of)).await?;
        let is_waiting = |(_, state): &(u64, TaskState)| *state == TaskState::Waiting;
        let (waiting, begun): (Vec<_>, Vec<_>) = open.into_iter().partition(is_waiting);
        let mut tasks = FuturesUnordered::new();
        for (number, _) in begun {
            tasks.push(self.task(batch, number, Turn::Begun));
        }
        let mut left = Left {
            waiting: waiting.into_iter().map(|(number, _)| number).collect(),
            fault: None,
        };
        loop {
            let Some(number) = left.waiting.pop_front() else {
                match tasks.next().await {
                    Some(ended) => left.note(ended),
                    None => return left.fault.map_or(Ok(()), Err),
                }
                continue;
            };
            // One of them asks at a time, so that a key's batches take turns; the rest has nothing in memory.
            let mut turn = pin!(self.turn(batch));
            let turn = loop {
                tokio::select! {
                    turn = &mut turn => break turn,
                    Some(ended) = tasks.next() => left.note(ended),
                }
            };
            match turn {
                Ok(turn) => tasks.push(self.task(batch, number, turn)),
                Err(fault) => left.note(Err(fault)),
            }
        }
    }

    /// A task, to its end. Its number where it waits for a place again.
    async fn task(&self, batch: &Batch, number: u64, turn: Turn) -> Result<Option<u64>, ApiError> {
        let task = self
            .shared
            .ledger(move |ledger| ledger.batch_task(number))
            .await?;
        let _place = match turn {
            Turn::Begun => self.kept_place(&batch.key),
            Turn::Place(place) => Some(place),
            Turn::Never(why) => return self.leave(&task, why).await.map(|()| None),
        };
        let input = self.shared.ledger(move |ledger| ledger.task_input(number));
        let mut posting = task.posting(input.await?);
        let tried = match task.state {
            TaskState::Waiting => self.posted(batch, &task, &mut posting).await?,
            TaskState::Posting(_) => self.found(&task, &posting).await?,
            TaskState::Posted(on_chain) => Tried::OnChain(on_chain),
            TaskState::Ended => Tried::Over,
        };
        match tried {
            Tried::OnChain(on_chain) => self.follow(batch, &task, &posting, on_chain).await.map(|()| None),
            Tried::Again => Ok(Some(number)),
            Tried::Over => Ok(None),
        }
    }

    /// The place of a task that may be on the chain. Where there is none, more are there than may be, and
    /// it goes on all the same: whoever serves no input loses money.
    fn kept_place(&self, key: &str) -> Option<Place> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.get_mut(key).and_then(Vec::pop);
        drop(kept);
        place.or_else(|| self.shared.tasks.try_place(key))
    }

    /// What the next task of a batch goes on with that waits.
    async fn turn(&self, batch: &Batch) -> Result<Turn, ApiError> {
        let mut cancelled = self.shared.cancelled.subscribe();
        let left = Duration::from_secs(batch.times.expires.saturating_sub(now()));
        // Asked for once: it stays where it is in the queue whatever else is cancelled.
        let mut place = pin!(self.shared.tasks.place(&batch.key, left));
        loop {
            if let Some(why) = self.is_not_to_be_posted(batch).await? {
                return Ok(Turn::Never(why));
            }
            tokio::select! {
                place = &mut place => return match self.is_not_to_be_posted(batch).await? {
                    Some(why) => Ok(Turn::Never(why)),
                    None => place.map(Turn::Place),
                },
                // Its sender lives as long as this.
                _ = cancelled.changed() => {}
            }
        }
    }

    /// Posts a task, unless it may not be any more: then it ends here.
    async fn posted(
        &self,
        batch: &Batch,
        task: &BatchTask,
        posting: &mut Posting,
    ) -> Result<Tried, ApiError> {
        if let Some(why) = self.is_not_to_be_posted(batch).await? {
            return self.leave(task, why).await.map(|()| Tried::Over);
        }
        let (number, since) = (task.number, now());
        self.move_task(number, TaskState::Posting(since)).await?;
        posting.tried_unix = since;
        match self.runner.post(posting).await {
            Ok(on_chain) => self.note(number, on_chain).await,
            Err(RunnerError::Refused(why)) => {
                let ended = self.fail(task, 0, "task_refused", why).await;
                ended.map(|()| Tried::Over)
            }
            Err(RunnerError::Later(why) | RunnerError::Lost(why)) => {
                tracing::warn!(task = number, why, "a task is not posted yet");
                self.pause().await;
                self.found(task, posting).await
            }
        }
    }

    /// Looks for a task that may have been posted. One that was not gives its place to others, which may be
    /// what there is money for.
    async fn found(&self, task: &BatchTask, posting: &Posting) -> Result<Tried, ApiError> {
        let number = task.number;
        loop {
            match self.runner.find(posting).await {
                Ok(Some(on_chain)) => return self.note(number, on_chain).await,
                Ok(None) => {
                    let moved = self.move_task(number, TaskState::Waiting).await;
                    return moved.map(|()| Tried::Again);
                }
                Err(RunnerError::Later(why)) => {
                    tracing::warn!(task = number, why, "whether a task was posted is not certain yet");
                    sleep(self.shared.settings.batches.pause).await;
                }
                Err(RunnerError::Lost(why) | RunnerError::Refused(why)) => {
                    let ended = self.fail(task, task.cap, "task_lost", why).await;
                    return ended.map(|()| Tried::Over);
                }
            }
        }
    }

    async fn note(&self, number: u64, on_chain: u64) -> Result<Tried, ApiError> {
        Metrics::count(&self.shared.metrics.tasks);
        let noted = self.move_task(number, TaskState::Posted(on_chain)).await;
        noted.map(|()| Tried::OnChain(on_chain))
    }

    async fn move_task(&self, number: u64, state: TaskState) -> Result<(), ApiError> {
        let moved = move |ledger: &Ledger| ledger.move_task(number, state);
        self.shared.ledger(moved).await
    }

    /// Waits a while, or until some batch is cancelled.
    async fn pause(&self) {
        let mut cancelled = self.shared.cancelled.subscribe();
        tokio::select! {
            () = sleep(self.shared.settings.batches.pause) => {}
            // Its sender lives as long as this.
            _ = cancelled.changed() => {}
        }
    }

    async fn is_not_to_be_posted(&self, batch: &Batch) -> Result<Option<NotPosted>, ApiError> {
        Ok(match self.is_cancelled(batch).await? {
            true => Some(NotPosted::Cancelled),
            false if now() >= batch.times.expires => Some(NotPosted::Late),
            false => None,
        })
    }

    async fn is_cancelled(&self, batch: &Batch) -> Result<bool, ApiError> {
        let batch = self.batch(&batch.key, batch.number).await?;
        Ok(batch.status == Status::Cancelling)
    }

    /// Follows a posted task to its end, also where its batch is cancelled: its money is on its way.
    async fn follow(
        &self,
        batch: &Batch,
        task: &BatchTask,
        posting: &Posting,
        on_chain: u64,
    ) -> Result<(), ApiError> {
        let mut cancelled = self.shared.cancelled.subscribe();
        let mut is_told = false;
        loop {
            let mut ending = pin!(self.runner.ended(posting, on_chain));
            let ended = loop {
                let mut is_again = false;
                if !is_told && self.is_cancelled(batch).await? {
                    let withdrawn = self.runner.cancel(on_chain).await;
                    if let Err(error) = &withdrawn {
                        tracing::info!(on_chain, %error, "a task of a cancelled batch goes on");
                    }
                    is_again = matches!(withdrawn, Err(RunnerError::Later(_)));
                    is_told = !is_again;
                }
                tokio::select! {
                    ended = &mut ending => break ended,
                    _ = cancelled.changed(), if !is_told => {}
                    () = sleep(self.shared.settings.batches.pause), if is_again => {}
                }
            };
            match ended {
                Ok(ended) => return self.settle(task, &posting.input, ended).await,
                Err(RunnerError::Later(why)) => {
                    tracing::warn!(on_chain, why, "a task cannot be followed: trying again");
                    sleep(self.shared.settings.batches.pause).await;
                }
                Err(RunnerError::Lost(why) | RunnerError::Refused(why)) => {
                    return self.fail(task, task.cap, "task_lost", why).await;
                }
            }
        }
    }

    async fn settle(&self, task: &BatchTask, input: &[u8], ended: Ended) -> Result<(), ApiError> {
        let Ended { receipt, output } = ended;
        let end = TaskEnd {
            spent: receipt.spent(),
            receipt: Some(receipt),
            ..TaskEnd::default()
        };
        let text = self.shared.texts.get(&task.model).cloned();
        let (of, input) = (task.clone(), input.to_vec());
        let made = move || -> Result<Vec<u8>, String> {
            let text = text.ok_or("the model's tokenizer is not here any more")?;
            answers(&of, &input, &*text, &output?, now())
        };
        match blocking(made).await? {
            Ok(answers) => {
                let end = TaskEnd {
                    answers,
                    completed: task.lines.len() as u64,
                    ..end
                };
                self.end(task, end).await
            }
            Err(why) => {
                let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "task_failed", why);
                self.refuse(task, end, &error).await
            }
        }
    }

    /// Ends a task that has cost so much, and has no receipt.
    async fn fail(
        &self,
        task: &BatchTask,
        spent: u128,
        code: &'static str,
        why: String,
    ) -> Result<(), ApiError> {
        tracing::warn!(task = task.number, code, why, "a task has no output");
        let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code, why);
        let end = TaskEnd {
            spent,
            ..TaskEnd::default()
        };
        self.refuse(task, end, &error).await
    }

    async fn refuse(&self, task: &BatchTask, end: TaskEnd, error: &ApiError) -> Result<(), ApiError> {
        Metrics::count(&self.shared.metrics.failed);
        let end = TaskEnd {
            refusals: refusals(task, error),
            failed: task.lines.len() as u64,
            ..end
        };
        self.end(task, end).await
    }

    async fn leave(&self, task: &BatchTask, why: NotPosted) -> Result<(), ApiError> {
        let (code, told) = match why {
            NotPosted::Late => (
                "batch_expired",
                "This request could not be executed before the completion window expired.",
            ),
            NotPosted::Cancelled => (
                "batch_cancelled",
                "This request was not executed: its batch was cancelled.",
            ),
        };
        let end = TaskEnd {
            refusals: not_asked(task, code, told),
            failed: task.lines.len() as u64,
            is_late: matches!(why, NotPosted::Late),
            ..TaskEnd::default()
        };
        self.end(task, end).await
    }

    async fn end(&self, task: &BatchTask, end: TaskEnd) -> Result<(), ApiError> {
        let number = task.number;
        self.shared
            .ledger(move |ledger| ledger.end_task(number, end))
            .await
    }
}
