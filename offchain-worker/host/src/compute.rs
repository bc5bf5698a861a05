//! Loaded models, and running jobs on them.

use std::{
    cell::Cell,
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use surety_engine::{Devices, Engine, EngineError, EnginePool, Job, JobSink, Outcome, Priority, Ticket};
use surety_types::{ModelId, model::Operation, task::ResultClaim, trust::ItemsFound};
use surety_worker_core::{Event, Failure};

use super::{pauses::Pauses, vitals::Vitals};

/// The pool and the models that are loaded into it.
pub struct Engines {
    pool: Arc<EnginePool>,
    pauses: Pauses,
    loaded: BTreeMap<ModelId, Arc<dyn Engine>>,
    vitals: Arc<Vitals>,
    measured: Arc<Mutex<VecDeque<Event>>>,
}

/// Measurements that wait to be taken. The newest say most.
const MEASURED_MAX: usize = 32;

impl Engines {
    /// What exact models run on.
    pub fn devices(&self) -> &Devices {
        self.pool.devices()
    }

    /// What has engines stand aside.
    pub const fn pauses(&self) -> &Pauses {
        &self.pauses
    }

    /// Models that are ready to run.
    pub fn new(
        pool: EnginePool,
        loaded: impl IntoIterator<Item = Arc<dyn Engine>>,
        vitals: Arc<Vitals>,
    ) -> Self {
        let loaded = loaded.into_iter().map(|engine| (engine.manifest().id(), engine));
        let pool = Arc::new(pool);
        Self {
            pauses: Pauses::new(&pool),
            pool,
            loaded: loaded.collect(),
            vitals,
            measured: Arc::default(),
        }
    }

    /// How fast work was done since the last time that was asked, or was not.
    pub(super) fn take_measured(&self) -> VecDeque<Event> {
        std::mem::take(&mut *self.measured.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How much waits, by priority.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let waiting = self.pool.waiting().into_iter();
        waiting.map(|(priority, jobs)| match priority {
            Priority::Urgent => ("urgent", jobs),
            Priority::Audit => ("audit", jobs),
            Priority::Inference => ("inference", jobs),
        })
    }

    /// Everything on offer.
    pub(super) fn offered(&self) -> impl Iterator<Item = (ModelId, Operation)> + '_ {
        let of = |engine: &Arc<dyn Engine>| (engine.manifest().id(), engine.manifest().operations.to_vec());
        let offered = self.loaded.values().map(of);
        offered
            .flat_map(|(model, operations)| operations.into_iter().map(move |operation| (model, operation)))
    }

    /// A loaded model.
    pub(super) fn get(&self, model: &ModelId) -> Result<Arc<dyn Engine>, ComputeError> {
        self.loaded
            .get(model)
            .cloned()
            .ok_or(ComputeError::NotLoaded(*model))
    }

    /// Queues an answer that a clock runs against: a move, a vote.
    pub(super) fn answer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut JobSink) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<Ticket<T>, ComputeError> {
        let vitals = self.vitals.clone();
        let finish = move |made, took| {
            vitals.metrics.computed("answer", took, 0);
            made
        };
        self.work(Priority::Urgent, work, finish)
    }

    /// Queues an audit.
    pub(super) fn audit(
        &self,
        model: &ModelId,
        job: Job,
        output: Vec<u8>,
    ) -> Result<Ticket<ResultClaim>, ComputeError> {
        let (engine, vitals) = (self.get(model)?, self.vitals.clone());
        let noted = self.noted(model, job.operation);
        let audit = move |sink: &mut JobSink| engine.audit(&job, &output, sink);
        let finish = move |claim: ResultClaim, took| {
            vitals.metrics.computed("audit", took, claim.units);
            noted(claim.units, took);
            claim
        };
        self.work(Priority::Audit, audit, finish)
    }

    /// Queues an audit of some items.
    pub(super) fn audit_items(
        &self,
        model: &ModelId,
        job: Job,
        items: Vec<u32>,
    ) -> Result<Ticket<ItemsFound>, ComputeError> {
        let (engine, vitals) = (self.get(model)?, self.vitals.clone());
        let noted = self.noted(model, job.operation);
        let audit = move |sink: &mut JobSink| engine.audit_items(&job, &items, sink);
        let finish = move |found: ItemsFound, took| {
            let units = u32::try_from(found.len()).unwrap_or(u32::MAX);
            vitals.metrics.computed("audit", took, units);
            noted(units, took);
            found
        };
        self.work(Priority::Audit, audit, finish)
    }

    /// Takes note of how fast an audit was. Auditing a generation is other work than making it.
    fn noted(&self, model: &ModelId, operation: Operation) -> impl Fn(u32, Duration) + Send + use<> {
        let (model, measured) = (*model, self.measured.clone());
        move |units, took| {
            if operation == Operation::Embed {
                note(&measured, measurement(model, operation, units, took));
            }
        }
    }

    /// Queues one job. One that is stopped, as it comes too late, tells how fast it is not.
    pub(super) fn submit(&self, model: &ModelId, job: Job) -> Result<Ticket<Outcome>, ComputeError> {
        let (engine, vitals) = (self.get(model)?, self.vitals.clone());
        let (model, operation, units_max) = (*model, job.operation, job.units_max);
        let (measured, bounded) = (self.measured.clone(), self.measured.clone());
        let run = move |sink: &mut JobSink| engine.run(&job, sink);
        let finish = move |outcome: Outcome, took| {
            let units = outcome.claim.units;
            vitals.metrics.computed(operation.name(), took, units);
            note(&measured, measurement(model, operation, units, took));
            outcome
        };
        let stopped = move |took| note(&bounded, bound(model, operation, units_max, took));
        self.work_or(Priority::Inference, run, finish, stopped)
    }

    /// Queues one job only to see how long it takes: units, and the time of its own work.
    pub(super) fn sample(&self, model: &ModelId, job: Job) -> Result<Ticket<(u32, Duration)>, ComputeError> {
        let engine = self.get(model)?;
        let run = move |sink: &mut JobSink| engine.run(&job, sink);
        let finish = |outcome: Outcome, took| (outcome.claim.units, took);
        self.work(Priority::Inference, run, finish)
    }

    /// Queues one audit only to see how long it takes.
    pub(super) fn sample_audit(
        &self,
        model: &ModelId,
        job: Job,
        output: Vec<u8>,
    ) -> Result<Ticket<Duration>, ComputeError> {
        let engine = self.get(model)?;
        let audit = move |sink: &mut JobSink| engine.audit(&job, &output, sink);
        self.work(Priority::Inference, audit, |_, took| took)
    }

    /// Takes note of how fast a sample was.
    pub(super) fn note(&self, model: ModelId, operation: Operation, units: u32, took: Duration) {
        note(&self.measured, measurement(model, operation, units, took));
    }

    fn work<T, U: Send + 'static>(
        &self,
        priority: Priority,
        work: impl FnOnce(&mut JobSink) -> Result<T, EngineError> + Send + 'static,
        finish: impl FnOnce(T, Duration) -> U + Send + 'static,
    ) -> Result<Ticket<U>, ComputeError> {
        self.work_or(priority, work, finish, |_| ())
    }

    /// The same, where what was begun and is stopped says how long it has worked for nothing.
    fn work_or<T, U: Send + 'static>(
        &self,
        priority: Priority,
        work: impl FnOnce(&mut JobSink) -> Result<T, EngineError> + Send + 'static,
        finish: impl FnOnce(T, Duration) -> U + Send + 'static,
        stopped: impl FnOnce(Duration) + Send + 'static,
    ) -> Result<Ticket<U>, ComputeError> {
        let timed = move |sink: &mut JobSink| {
            let timer = OwnTime::start();
            let made = work(sink);
            let took = timer.end();
            if matches!(made, Err(EngineError::Cancelled)) {
                stopped(took);
            }
            Ok(finish(made?, took))
        };
        Ok(self.pool.work(priority, timed)?)
    }
}

thread_local! {
    /// Microseconds that were computed in this thread. What a job's own work took is the time it ran, less
    /// what was added here meanwhile by jobs that it stood aside for: they run in the same thread.
    static COMPUTED: Cell<u64> = const { Cell::new(0) };
}

/// Measures what a job's own work takes, and adds it to what was computed in its thread when it ends, even by
/// a panic: it is no time of the job beneath it.
pub(super) struct OwnTime {
    before: u64,
    started: Instant,
}

impl OwnTime {
    pub(super) fn start() -> Self {
        Self {
            before: COMPUTED.get(),
            started: Instant::now(),
        }
    }

    /// The job is done.
    fn end(self) -> Duration {
        self.so_far()
    }

    /// One slow move while a speed is measured for the first time would keep this machine from bidding for
    /// good.
    fn so_far(&self) -> Duration {
        let aside = COMPUTED.get().saturating_sub(self.before);
        self.started
            .elapsed()
            .saturating_sub(Duration::from_micros(aside))
    }
}

impl Drop for OwnTime {
    fn drop(&mut self) {
        let micros = u64::try_from(self.so_far().as_micros()).unwrap_or(u64::MAX);
        COMPUTED.set(COMPUTED.get().saturating_add(micros));
    }
}

fn measurement(model: ModelId, operation: Operation, units: u32, took: Duration) -> Event {
    Event::Measured {
        model,
        operation,
        units,
        millis: millis(took),
    }
}

fn bound(model: ModelId, operation: Operation, units: u32, took: Duration) -> Event {
    Event::TookLonger {
        model,
        operation,
        units,
        millis: millis(took),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn note(measured: &Mutex<VecDeque<Event>>, measurement: Event) {
    let mut measured = measured.lock().unwrap_or_else(PoisonError::into_inner);
    if measured.len() >= MEASURED_MAX {
        measured.pop_front();
    }
    measured.push_back(measurement);
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum ComputeError {
    /// Only possible after a restart with fewer models.
    #[error("model {0:?} is not loaded; start with its --model again to finish the task")]
    NotLoaded(ModelId),
    /// The engine's own reason.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl ComputeError {
    /// What its client is told: what is wrong with the input, and nothing of this machine.
    pub(super) fn for_client(&self) -> String {
        match self {
            Self::Engine(
                e @ (EngineError::Input(_)
                | EngineError::Untraceable(_)
                | EngineError::OperationNotOffered(_)),
            ) => e.to_string(),
            _ => "the provider cannot compute it".into(),
        }
    }

    /// What it means for the next attempt: none helps when the input is at fault, or the engine would be the
    /// same as before.
    pub(super) fn failure(&self) -> Failure {
        match self {
            Self::NotLoaded(_) => Failure::Permanent,
            Self::Engine(e) => match e {
                EngineError::QueueFull { .. } | EngineError::Cancelled | EngineError::Closed => {
                    Failure::Refused
                }
                // A machine short of memory, most likely: later there may be more.
                EngineError::Panicked(_) | EngineError::Compute(_) | EngineError::Threads(_) => {
                    Failure::Failed
                }
                // Others have the device's memory; or it is used no more, and what is left is.
                EngineError::Device { .. } | EngineError::DeviceDiffers { .. } => Failure::Failed,
                _ => Failure::Permanent,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    const SLOW: Duration = Duration::from_millis(200);

    #[test]
    fn what_a_job_stands_aside_for_is_no_time_of_its_own() {
        let beneath = OwnTime::start();
        let urgent = OwnTime::start();
        std::thread::sleep(SLOW);
        assert!(urgent.end() >= SLOW);
        assert!(beneath.end() < SLOW / 2);
    }

    #[test]
    fn a_job_that_panics_leaves_its_time_to_nobody_else() {
        let beneath = OwnTime::start();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _urgent = OwnTime::start();
            std::thread::sleep(SLOW);
            panic!("as asked for");
        }));
        assert!(panicked.is_err() && beneath.end() < SLOW / 2);
    }
}
