//! Batches and their tasks. What is reserved for a task and what it has cost change in the same transaction
//! as the task itself, and as the files that its answers are written to.

use redb::{ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition, WriteTransaction};

use super::{Ledger, LedgerError, files};
use crate::{
    batch::record::{Batch, BatchTask, Fault, Status, TaskState},
    ledger::files::Page,
    runner::TaskReceipt,
};

/// By key and number.
const BATCHES: TableDefinition<(&str, u64), &[u8]> = TableDefinition::new("batches");
/// Those that are not over, with their keys.
const OPEN: TableDefinition<u64, &str> = TableDefinition::new("open_batches");
const TASKS: TableDefinition<u64, &[u8]> = TableDefinition::new("batch_tasks");
/// Of tasks that are not over.
const INPUTS: TableDefinition<u64, &[u8]> = TableDefinition::new("task_inputs");
/// Most batches that are not over, of all keys.
pub(super) const OPEN_MAX: u64 = 256;
/// Of these, of one key.
pub(super) const OPEN_OF_KEY_MAX: usize = 16;
/// Most batches that are remembered of one key.
const BATCHES_MAX: usize = 10_000;

/// What a batch's file has come to.
pub(crate) struct Begun {
    /// Its tasks, with their inputs. Their numbers follow one another.
    pub tasks: Vec<(BatchTask, Vec<u8>)>,
    /// Lines for the file of refusals.
    pub refused: Vec<u8>,
    /// How many lines these are.
    pub refusals: u64,
}

/// Makes the tables, so that readers find them.
pub(super) fn make(write: &WriteTransaction) -> Result<(), LedgerError> {
    write.open_table(BATCHES)?;
    write.open_table(OPEN)?;
    write.open_table(TASKS)?;
    write.open_table(INPUTS)?;
    Ok(())
}

fn batch(write: &WriteTransaction, key: &str, number: u64) -> Result<Batch, LedgerError> {
    let batches = write.open_table(BATCHES)?;
    let row = batches.get((key, number))?.ok_or(LedgerError::NoBatch)?;
    Ok(serde_json::from_slice(row.value())?)
}

fn set_batch(write: &WriteTransaction, batch: &Batch) -> Result<(), LedgerError> {
    let mut batches = write.open_table(BATCHES)?;
    let row = serde_json::to_vec(batch)?;
    batches.insert((batch.key.as_str(), batch.number), row.as_slice())?;
    let mut open = write.open_table(OPEN)?;
    match batch.status.is_over() {
        true => drop(open.remove(batch.number)?),
        false => drop(open.insert(batch.number, batch.key.as_str())?),
    }
    Ok(())
}

fn task(write: &WriteTransaction, number: u64) -> Result<BatchTask, LedgerError> {
    let tasks = write.open_table(TASKS)?;
    let row = tasks.get(number)?.ok_or(LedgerError::NoCall)?;
    Ok(serde_json::from_slice(row.value())?)
}

fn set_task(write: &WriteTransaction, task: &BatchTask) -> Result<(), LedgerError> {
    let mut tasks = write.open_table(TASKS)?;
    tasks.insert(task.number, serde_json::to_vec(task)?.as_slice())?;
    Ok(())
}

/// Forgets the oldest batch of a key beyond the bound, unless it goes on.
fn prune(write: &WriteTransaction, key: &str) -> Result<(), LedgerError> {
    let mut batches = write.open_table(BATCHES)?;
    let of_key = || (key, 0)..=(key, u64::MAX);
    if batches.range(of_key())?.count() <= BATCHES_MAX {
        return Ok(());
    }
    let oldest: Option<Batch> = match batches.range(of_key())?.next() {
        Some(row) => Some(serde_json::from_slice(row?.1.value())?),
        None => None,
    };
    if let Some(oldest) = oldest.filter(|batch| batch.status.is_over()) {
        batches.remove((key, oldest.number))?;
        let mut tasks = write.open_table(TASKS)?;
        let (first, count) = oldest.tasks;
        for number in first..first.saturating_add(count) {
            tasks.remove(number)?;
        }
    }
    Ok(())
}

/// Refuses one more open batch of a key, where it or all together have as many as they may have.
fn check_open(write: &WriteTransaction, key: &str) -> Result<(), LedgerError> {
    let open = write.open_table(OPEN)?;
    let mut of_key = 0usize;
    for row in open.iter()? {
        of_key = of_key.saturating_add(usize::from(row?.1.value() == key));
    }
    if of_key >= OPEN_OF_KEY_MAX {
        return Err(LedgerError::OpenOfKey);
    }
    if open.len()? >= OPEN_MAX {
        return Err(LedgerError::Open);
    }
    Ok(())
}

impl Ledger {
    /// So many new numbers; the first.
    pub(crate) fn new_numbers(&self, count: u64) -> Result<u64, LedgerError> {
        self.write(|all| all.numbers(count))
    }

    /// Keeps a new batch, under a new number.
    pub(crate) fn add_batch(&self, new: Batch) -> Result<Batch, LedgerError> {
        self.transact(|write, all| {
            files::check_room(write, &new.key, 2)?;
            check_open(write, &new.key)?;
            let number = all.numbers(3)?;
            let batch = Batch {
                number,
                output: number.saturating_add(1),
                ..new
            };
            for (file, what) in [(batch.output, "output"), (batch.errors(), "errors")] {
                let name = format!("batch_{number:016x}_{what}.jsonl");
                files::add_hidden(write, &batch.key, (file, name), batch.times.created)?;
            }
            set_batch(write, &batch)?;
            prune(write, &batch.key)?;
            Ok(batch)
        })
    }

    /// Those that are not over, with their keys.
    pub(crate) fn open_batches(&self) -> Result<Vec<(u64, String)>, LedgerError> {
        let read = self.database.begin_read()?;
        let open = read.open_table(OPEN)?;
        let mut all = Vec::new();
        for row in open.iter()? {
            let (number, key) = row?;
            all.push((number.value(), key.value().to_owned()));
        }
        Ok(all)
    }

    /// A batch.
    pub(crate) fn batch(&self, key: &str, number: u64) -> Result<Batch, LedgerError> {
        let read = self.database.begin_read()?;
        let batches = read.open_table(BATCHES)?;
        let row = batches.get((key, number))?.ok_or(LedgerError::NoBatch)?;
        Ok(serde_json::from_slice(row.value())?)
    }

    /// Batches of a key, and whether there are more.
    pub(crate) fn batches(&self, key: &str, page: Page) -> Result<(Vec<Batch>, bool), LedgerError> {
        let read = self.database.begin_read()?;
        let batches = read.open_table(BATCHES)?;
        let mut all = Vec::new();
        for row in batches.range((key, 0)..=(key, u64::MAX))? {
            let batch: Batch = serde_json::from_slice(row?.1.value())?;
            all.push((batch.number, batch));
        }
        Ok(page.cut(all))
    }

    /// Has a batch whose file was read go on, and reserves the most that its tasks cost.
    pub(crate) fn begin_batch(
        &self,
        (key, number): (&str, u64),
        begun: &Begun,
        now: u64,
    ) -> Result<(), LedgerError> {
        self.transact(|write, all| {
            let mut batch = batch(write, key, number)?;
            // It may have been cancelled meanwhile.
            if batch.status != Status::Validating {
                return Ok(());
            }
            let mut caps = begun.tasks.iter().map(|(task, _)| task.cap);
            let most = caps.try_fold(0u128, |sum, cap| sum.checked_add(cap));
            all.reserve(key, most.ok_or(LedgerError::Overflow)?)?;
            let (mut inputs, mut lines) = (write.open_table(INPUTS)?, begun.refusals);
            for (task, input) in &begun.tasks {
                set_task(write, task)?;
                inputs.insert(task.number, input.as_slice())?;
                lines = lines.saturating_add(task.lines.len() as u64);
            }
            files::append(write, key, batch.errors(), &begun.refused)?;
            let first = begun.tasks.first().map_or(0, |(task, _)| task.number);
            batch.tasks = (first, begun.tasks.len() as u64);
            batch.counts.total = lines;
            batch.counts.failed = begun.refusals;
            batch.status = Status::InProgress;
            batch.times.in_progress = Some(now);
            set_batch(write, &batch)
        })
    }

    /// Ends a batch whose file was refused.
    pub(crate) fn fail_batch(
        &self,
        (key, number): (&str, u64),
        faults: Vec<Fault>,
        now: u64,
    ) -> Result<(), LedgerError> {
        self.transact(|write, _| {
            let mut batch = batch(write, key, number)?;
            if batch.status != Status::Validating {
                return Ok(());
            }
            for file in [batch.output, batch.errors()] {
                files::show(write, key, file)?;
            }
            batch.status = Status::Failed;
            batch.times.failed = Some(now);
            batch.faults = faults;
            set_batch(write, &batch)
        })
    }

    /// Tells a batch to end.
    pub(crate) fn cancel_batch(&self, key: &str, number: u64, now: u64) -> Result<Batch, LedgerError> {
        self.transact(|write, _| {
            let mut batch = batch(write, key, number)?;
            match batch.status {
                Status::Validating | Status::InProgress => {
                    batch.status = Status::Cancelling;
                    batch.times.cancelling = Some(now);
                    set_batch(write, &batch)?;
                    Ok(batch)
                }
                Status::Cancelling => Ok(batch),
                over => Err(LedgerError::Over(over.name())),
            }
        })
    }

    /// Goes on with a batch all of whose tasks are over: first that is noted, then its files are shown.
    pub(crate) fn finish_batch(&self, key: &str, number: u64, now: u64) -> Result<(), LedgerError> {
        self.transact(|write, _| {
            let mut batch = batch(write, key, number)?;
            if batch.status == Status::InProgress {
                batch.status = Status::Finalizing;
                batch.times.finalizing = Some(now);
                return set_batch(write, &batch);
            }
            batch.has_output = files::show(write, key, batch.output)?;
            batch.has_errors = files::show(write, key, batch.errors())?;
            batch.status = match batch.status {
                Status::Cancelling => {
                    batch.times.cancelled = Some(now);
                    Status::Cancelled
                }
                Status::Finalizing if batch.is_late => {
                    batch.times.expired = Some(now);
                    Status::Expired
                }
                Status::Finalizing => {
                    batch.times.completed = Some(now);
                    Status::Completed
                }
                other => other,
            };
            set_batch(write, &batch)
        })
    }

    /// Numbers of a batch's tasks that are not over, and how far they are.
    pub(crate) fn open_tasks(&self, batch: &Batch) -> Result<Vec<(u64, TaskState)>, LedgerError> {
        let read = self.database.begin_read()?;
        let (inputs, tasks) = (read.open_table(INPUTS)?, read.open_table(TASKS)?);
        let (first, count) = batch.tasks;
        let mut open = Vec::new();
        for row in inputs.range(first..first.saturating_add(count))? {
            let number = row?.0.value();
            let row = tasks.get(number)?.ok_or(LedgerError::NoCall)?;
            let task: BatchTask = serde_json::from_slice(row.value())?;
            open.push((number, task.state));
        }
        Ok(open)
    }

    /// Whose tasks are on the chain, or may be: a key for each.
    pub(crate) fn keys_on_chain(&self) -> Result<Vec<String>, LedgerError> {
        let read = self.database.begin_read()?;
        let (inputs, tasks) = (read.open_table(INPUTS)?, read.open_table(TASKS)?);
        let mut keys = Vec::new();
        for row in inputs.iter()? {
            let row = tasks.get(row?.0.value())?.ok_or(LedgerError::NoCall)?;
            let task: BatchTask = serde_json::from_slice(row.value())?;
            if task.state != TaskState::Waiting {
                keys.push(task.key);
            }
        }
        Ok(keys)
    }

    /// A task.
    pub(crate) fn batch_task(&self, number: u64) -> Result<BatchTask, LedgerError> {
        let read = self.database.begin_read()?;
        let tasks = read.open_table(TASKS)?;
        let row = tasks.get(number)?.ok_or(LedgerError::NoCall)?;
        Ok(serde_json::from_slice(row.value())?)
    }

    /// The input of a task that is not over.
    pub(crate) fn task_input(&self, number: u64) -> Result<Vec<u8>, LedgerError> {
        let read = self.database.begin_read()?;
        let inputs = read.open_table(INPUTS)?;
        let row = inputs.get(number)?.ok_or(LedgerError::NoCall)?;
        Ok(row.value().to_vec())
    }

    /// Notes how far a task is.
    pub(crate) fn move_task(&self, number: u64, state: TaskState) -> Result<(), LedgerError> {
        self.transact(|write, _| {
            let task = task(write, number)?;
            set_task(write, &BatchTask { state, ..task })
        })
    }

    /// Ends a task: settles it with its key, and writes its answers.
    pub(crate) fn end_task(&self, number: u64, end: TaskEnd) -> Result<(), LedgerError> {
        self.transact(|write, all| {
            let mut task = task(write, number)?;
            if task.state == TaskState::Ended {
                return Ok(());
            }
            task.spent = all.settle(&task.key, task.cap, end.spent)?;
            task.state = TaskState::Ended;
            task.receipt = end.receipt;
            set_task(write, &task)?;
            write.open_table(INPUTS)?.remove(number)?;
            let mut batch = batch(write, &task.key, task.batch)?;
            files::append(write, &task.key, batch.output, &end.answers)?;
            files::append(write, &task.key, batch.errors(), &end.refusals)?;
            batch.counts.completed = batch.counts.completed.saturating_add(end.completed);
            batch.counts.failed = batch.counts.failed.saturating_add(end.failed);
            batch.is_late |= end.is_late;
            set_batch(write, &batch)
        })
    }
}

/// How a task ended.
#[derive(Default)]
pub(crate) struct TaskEnd {
    pub spent: u128,
    pub receipt: Option<TaskReceipt>,
    /// Lines of answers, and how many they are.
    pub answers: Vec<u8>,
    pub completed: u64,
    /// Lines of refusals, and how many they are.
    pub refusals: Vec<u8>,
    pub failed: u64,
    /// It was not posted because the batch's time was over.
    pub is_late: bool,
}
