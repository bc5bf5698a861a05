//! What becomes of batches, whatever becomes of this program: every step is on disk before it is taken.

use std::{
    collections::{BTreeSet, HashMap},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::http::StatusCode;
use futures::{StreamExt, stream::FuturesUnordered};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{Id, JoinSet},
    time::sleep,
};

use super::{
    record::{Batch, BatchTask, Status, TaskState},
    told::{answers, batch_id, not_asked, refusals},
};
use crate::{
    api::{Shared, blocking, broke, now},
    error::ApiError,
    ledger::{Ledger, TaskEnd},
    metrics::Metrics,
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
    /// Of tasks that are posted, or about to be.
    places: Arc<Semaphore>,
    /// Places of those that were on the chain before this program was started: they wait for nothing, since
    /// their inputs have to be served.
    kept: Mutex<Vec<OwnedSemaphorePermit>>,
    /// Of files that are read.
    readings: Semaphore,
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
            places: Arc::new(Semaphore::new(shared.settings.batches.tasks)),
            kept: Mutex::default(),
            readings: Semaphore::new(READ_AT_ONCE),
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
        let count = self.shared.ledger(Ledger::tasks_on_chain).await?;
        let places = (0..count).map_while(|_| self.places.clone().try_acquire_owned().ok());
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(places);
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
        let of = key.to_owned();
        let batch = self
            .shared
            .ledger(move |ledger| ledger.batch(&of, number))
            .await?;
        match batch.status {
            Status::Validating => {
                let _place = self.readings.acquire().await.map_err(|_| broke())?;
                self.validate(batch).await?;
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

    async fn finish(&self, batch: Batch) -> Result<(), ApiError> {
        let ended = move |ledger: &Ledger| ledger.finish_batch(&batch.key, batch.number, now());
        self.shared.ledger(ended).await
    }

    /// All tasks that are not over, side by side.
    async fn compute(&self, batch: &Batch) -> Result<(), ApiError> {
        let of = batch.clone();
        let open = self.shared.ledger(move |ledger| ledger.open_tasks(&of)).await?;
        // Most of them wait for a place, and have nothing in memory until then.
        let mut tasks: FuturesUnordered<_> =
            open.into_iter().map(|number| self.task(batch, number)).collect();
        let mut first_fault = Ok(());
        // The others go on: money is at stake.
        while let Some(ended) = tasks.next().await {
            first_fault = first_fault.and(ended);
        }
        first_fault
    }

    async fn task(&self, batch: &Batch, number: u64) -> Result<(), ApiError> {
        let task = self
            .shared
            .ledger(move |ledger| ledger.batch_task(number))
            .await?;
        let _place = match task.state {
            TaskState::Waiting => match self.place(batch, &task).await? {
                None => return Ok(()),
                place => place,
            },
            TaskState::Posting(_) | TaskState::Posted(_) => self.kept_place(),
            TaskState::Ended => return Ok(()),
        };
        let input = self.shared.ledger(move |ledger| ledger.task_input(number));
        let mut posting = task.posting(input.await?);
        let on_chain = match task.state {
            TaskState::Waiting => self.posted(batch, &task, &mut posting, false).await?,
            TaskState::Posting(_) => self.posted(batch, &task, &mut posting, true).await?,
            TaskState::Posted(on_chain) => Some(on_chain),
            TaskState::Ended => None,
        };
        match on_chain {
            Some(on_chain) => self.follow(batch, &task, &posting, on_chain).await,
            None => Ok(()),
        }
    }

    /// The place of a task that may be on the chain. Where there is none, more are there than may be, and
    /// it goes on all the same: whoever serves no input loses money.
    fn kept_place(&self) -> Option<OwnedSemaphorePermit> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.pop()
            .or_else(|| self.places.clone().try_acquire_owned().ok())
    }

    /// A place for a task that waits; nothing where it is not to be posted any more, and has ended by that.
    async fn place(&self, batch: &Batch, task: &BatchTask) -> Result<Option<OwnedSemaphorePermit>, ApiError> {
        let mut cancelled = self.shared.cancelled.subscribe();
        loop {
            if let Some(why) = self.is_not_to_be_posted(batch).await? {
                self.leave(task, why).await?;
                return Ok(None);
            }
            tokio::select! {
                place = self.places.clone().acquire_owned() => return place.map(Some).map_err(|_| broke()),
                // Its sender lives as long as this.
                _ = cancelled.changed() => {}
            }
        }
    }

    /// Posts a task, unless it may not be any more: then it ends here. `maybe`: it may have been posted.
    async fn posted(
        &self,
        batch: &Batch,
        task: &BatchTask,
        posting: &mut Posting,
        mut maybe: bool,
    ) -> Result<Option<u64>, ApiError> {
        let number = task.number;
        loop {
            if maybe {
                match self.runner.find(posting).await {
                    Ok(Some(on_chain)) => return self.note(number, on_chain).await.map(Some),
                    Ok(None) => {}
                    Err(RunnerError::Later(why)) => {
                        tracing::warn!(task = number, why, "whether a task was posted is not certain yet");
                        sleep(self.shared.settings.batches.pause).await;
                        continue;
                    }
                    Err(RunnerError::Lost(why) | RunnerError::Refused(why)) => {
                        self.fail(task, task.cap, "task_lost", why).await?;
                        return Ok(None);
                    }
                }
            }
            if let Some(why) = self.is_not_to_be_posted(batch).await? {
                self.leave(task, why).await?;
                return Ok(None);
            }
            let since = now();
            self.shared
                .ledger(move |ledger| ledger.move_task(number, TaskState::Posting(since)))
                .await?;
            posting.tried_unix = since;
            match self.runner.post(posting).await {
                Ok(on_chain) => return self.note(number, on_chain).await.map(Some),
                Err(RunnerError::Refused(why)) => {
                    self.fail(task, 0, "task_refused", why).await?;
                    return Ok(None);
                }
                Err(RunnerError::Later(why) | RunnerError::Lost(why)) => {
                    tracing::warn!(task = number, why, "a task is not posted yet");
                    maybe = true;
                    self.pause().await;
                }
            }
        }
    }

    async fn note(&self, number: u64, on_chain: u64) -> Result<u64, ApiError> {
        Metrics::count(&self.shared.metrics.tasks);
        let noted = move |ledger: &Ledger| ledger.move_task(number, TaskState::Posted(on_chain));
        self.shared.ledger(noted).await.map(|()| on_chain)
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
        let (key, number) = (batch.key.clone(), batch.number);
        let batch = self
            .shared
            .ledger(move |ledger| ledger.batch(&key, number))
            .await?;
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
