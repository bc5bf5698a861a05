//! The shell of a provider and a verifier: what both do with blocks, whatever they do about tasks.

use std::collections::BTreeMap;

use surety_types::TaskId;

use crate::{
    AccountId, BlockNumber, Config, Event, Record, ReplayError, Step, TaskSnapshot,
    places::Clocks,
    schedule::{Moment, Subject, schedule},
};

/// What a [`Worker`] is: a provider or a verifier. Only this crate has roles.
#[expect(private_bounds, reason = "it keeps others from having one")]
pub trait Role: Duties {}

impl<R: Duties> Role for R {}

/// What a provider and a verifier do differently.
pub(crate) trait Duties: Default + Send + Sized {
    /// What it keeps of a task.
    type Task: Subject + Default + Send;

    /// Takes a record of the journal in, about a task that is not finished.
    ///
    /// # Errors
    /// When it contradicts those before it, or is not this worker's.
    fn replay(worker: &mut Worker<Self>, record: Record) -> Result<(), ReplayError>;

    /// Takes finalised state in, and which tasks of it could not be read.
    fn see(worker: &mut Worker<Self>, tasks: Vec<TaskSnapshot>, unread: &[TaskId], step: &mut Step);

    /// Takes in what the best block says of a task.
    fn see_best(task: &mut Self::Task, snapshot: TaskSnapshot, block: BlockNumber);

    /// Takes in how an effect went.
    fn hear(worker: &mut Worker<Self>, event: Event, step: &mut Step);

    /// Promises what follows from what it knows by now, before anything is started.
    fn promise(_: &mut Worker<Self>, _: &mut Step) {}

    /// How far each of its tasks is, in one word.
    fn stages(worker: &Worker<Self>) -> impl Iterator<Item = &'static str>;

    /// See [`Worker::spare_millis`].
    fn spare_millis(_: &Worker<Self>) -> Option<u64> {
        None
    }
}

/// The state machine of a provider or a verifier. See the crate's documentation for what it promises.
pub struct Worker<R: Role> {
    pub(crate) config: Config,
    /// Newest finalised block taken in. An older state changes nothing.
    pub(crate) block: BlockNumber,
    /// Newest block heard of: what pauses go by.
    pub(crate) now: BlockNumber,
    /// What deadlines go by.
    pub(crate) clocks: Clocks,
    pub(crate) tasks: BTreeMap<TaskId, <R as Duties>::Task>,
    /// Tasks that we had a part in and are done with while the chain still lists them, and since when.
    pub(crate) finished: BTreeMap<TaskId, BlockNumber>,
    /// What only this role keeps.
    pub(crate) role: R,
}

impl<R: Role> Worker<R> {
    /// Takes up where the journal ends.
    ///
    /// # Errors
    /// When the journal contradicts itself, or is another stash's or another role's.
    pub fn new(config: Config, records: impl IntoIterator<Item = Record>) -> Result<Self, ReplayError> {
        let mut worker = Self {
            config,
            block: 0,
            now: 0,
            clocks: Clocks::default(),
            tasks: BTreeMap::new(),
            finished: BTreeMap::new(),
            role: R::default(),
        };
        for record in records {
            let task = record.task();
            worker.block = worker.block.max(record.at());
            if worker.finished.contains_key(&task) {
                continue;
            }
            match record {
                Record::Finished { at, .. } => worker.bury(task, at),
                record => R::replay(&mut worker, record)?,
            }
        }
        Ok(worker)
    }

    /// Takes an event in. `now` is the newest block that the host knows of, finalised or not.
    pub fn step(&mut self, now: BlockNumber, event: Event) -> Step {
        self.now = self.now.max(now);
        let mut step = Step::default();
        match event {
            Event::Finalized {
                block,
                clock,
                tasks,
                unread,
            } => {
                if block < self.block {
                    return step;
                }
                self.block = block;
                self.now = self.now.max(block);
                self.clocks.finalized = clock;
                R::see(self, tasks, &unread, &mut step);
            }
            Event::Best { block, clock, tasks } => {
                if block < self.block {
                    return step;
                }
                self.now = self.now.max(block);
                self.clocks.best = clock;
                for snapshot in tasks {
                    if let Some(task) = self.tasks.get_mut(&snapshot.id) {
                        R::see_best(task, snapshot, block);
                    }
                }
            }
            Event::Room { is_short } => self.config.is_short_of_room = is_short,
            other => {
                if let Event::EffectDone {
                    block: Some(block), ..
                } = &other
                {
                    // A state before that block cannot show the effect, however late it is heard of.
                    self.now = self.now.max(*block);
                }
                R::hear(self, other, &mut step);
            }
        }
        R::promise(self, &mut step);
        let moment = Moment {
            block: self.block,
            now: self.now,
            clocks: self.clocks,
        };
        schedule(&mut self.tasks, &self.config, moment, &mut step);
        step
    }

    /// The stash it works for.
    pub fn stash(&self) -> &AccountId {
        &self.config.stash
    }

    /// Milliseconds for which nothing has to be computed, as far as promised results go; nothing where none
    /// is promised.
    pub fn spare_millis(&self) -> Option<u64> {
        R::spare_millis(self)
    }

    /// How many tasks, or results of others, are how far.
    pub fn stages(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::<_, usize>::new();
        for stage in R::stages(self) {
            let count = counts.entry(stage).or_default();
            *count = count.saturating_add(1);
        }
        counts
    }

    /// Forgets a task for good.
    pub(crate) fn bury(&mut self, task: TaskId, at: BlockNumber) {
        self.tasks.remove(&task);
        self.finished.insert(task, at);
    }
}
