//! Inference on threads of its own.
//!
//! A driver thread takes jobs, the most urgent first, and runs each inside a rayon pool of the configured
//! size. One job at a time: a job uses all threads there are, so two at once would only make both late. What
//! is more urgent than the job that runs does not wait for its end, though: at its next event it stands
//! aside, and the other runs on the same threads, on top of its stack. There is one job of each [`Priority`]
//! on the stack at most.
//!
//! Where exact models run on several devices there are as many drivers, so that a generation, which stays on
//! one of them, leaves none idle. They take jobs from the same queues, and each has its share of the threads.
//!
//! A driver may wait for a device that does not answer, and nothing stands aside there. So there is one more,
//! with threads of its own, which takes what is urgent as long as a device is silent; and all that waits,
//! once a device is used no more and its driver has not come back. What it runs chooses among devices that
//! answer, or the processor.

use std::{
    any::Any,
    collections::VecDeque,
    future::Future,
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    thread,
    time::Duration,
};

use surety_models::ModelStore;
use surety_types::{ModelId, input::NEW_TOKENS_MAX};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    engine::{Engine, Event, Job, Outcome, Sink, open_on},
    error::EngineError,
    exact::Devices,
};

/// Stack of an inference thread. A product that waits for its parts may take up another item meanwhile, on
/// top of its own stack; and a more urgent job runs on top of the one that stands aside for it.
const STACK_BYTES: usize = 16 * 1024 * 1024;

/// How often the spare driver looks whether a device answers, while something waits.
const LOOK: Duration = Duration::from_millis(100);

/// How big the pool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Threads that compute, at least 1. Leave some cores to a node on the same machine.
    pub threads: usize,
    /// Jobs of each priority that may wait. More are refused: of one priority only, whatever waits of the
    /// others.
    pub queue: usize,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            threads: thread::available_parallelism().map_or(1, usize::from),
            // A provider bids on what it can finish in time; a longer queue would only hide that it cannot.
            queue: 8,
        }
    }
}

/// How far a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Units done.
    pub done: u32,
    /// Units in all; 0 before the job has started.
    pub total: u32,
}

/// What a job is for, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Answers that a clock runs against, and whose lack costs stake: moves in disputes, votes.
    Urgent,
    /// Checking what somebody else has computed.
    Audit,
    /// Everything else: results for clients, loading of models.
    Inference,
}

impl Priority {
    const ALL: [Self; 3] = [Self::Urgent, Self::Audit, Self::Inference];
}

type Task = Box<dyn FnOnce() + Send>;

/// Jobs that wait, by priority.
struct Queues {
    waiting: Mutex<[VecDeque<Task>; Priority::ALL.len()]>,
    changed: Condvar,
    /// The same for the spare driver: who is told of one job might leave it.
    changed_for_spare: Condvar,
    closing: AtomicBool,
    /// Most jobs of one priority that may wait.
    limit: usize,
}

impl Queues {
    fn lock(&self) -> MutexGuard<'_, [VecDeque<Task>; Priority::ALL.len()]> {
        // Jobs run outside of the lock: nothing panics within it.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, priority: Priority, task: Task) -> Result<(), EngineError> {
        let mut waiting = self.lock();
        // Every priority has a queue.
        let queue = waiting.get_mut(priority as usize).ok_or(EngineError::Closed)?;
        if queue.len() >= self.limit {
            return Err(EngineError::QueueFull { limit: self.limit });
        }
        queue.push_back(task);
        drop(waiting);
        self.changed.notify_one();
        self.changed_for_spare.notify_one();
        Ok(())
    }

    /// The next job that is more urgent than `than`, if one waits.
    fn take_before(&self, than: Priority) -> Option<Task> {
        let mut waiting = self.lock();
        waiting
            .iter_mut()
            .take(than as usize)
            .find_map(VecDeque::pop_front)
    }

    /// The next job; nothing when the pool has closed and none is left.
    fn wait(&self) -> Option<Task> {
        let mut waiting = self.lock();
        loop {
            if let Some(task) = waiting.iter_mut().find_map(VecDeque::pop_front) {
                return Some(task);
            }
            if self.closing.load(Ordering::Relaxed) {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next job for the spare driver, likewise.
    fn wait_spare(&self, devices: &Devices) -> Option<Task> {
        let mut waiting = self.lock();
        loop {
            let is_closing = self.closing.load(Ordering::Relaxed);
            let taken = match is_closing {
                true => Priority::ALL.len(),
                false => spared(devices),
            };
            if let Some(task) = waiting.iter_mut().take(taken).find_map(VecDeque::pop_front) {
                return Some(task);
            }
            if is_closing {
                return None;
            }
            let changed = &self.changed_for_spare;
            waiting = if waiting.iter().all(VecDeque::is_empty) {
                changed.wait(waiting).unwrap_or_else(PoisonError::into_inner)
            } else {
                let waited = changed.wait_timeout(waiting, LOOK);
                waited.unwrap_or_else(PoisonError::into_inner).0
            };
        }
    }

    fn waiting(&self) -> [(Priority, usize); Priority::ALL.len()] {
        let waiting = self.lock();
        Priority::ALL.map(|priority| (priority, waiting.get(priority as usize).map_or(0, VecDeque::len)))
    }

    fn close(&self) {
        let waiting = self.lock();
        self.closing.store(true, Ordering::Relaxed);
        drop(waiting);
        self.changed.notify_all();
        self.changed_for_spare.notify_all();
    }
}

/// Of how many priorities the spare driver takes jobs, the most urgent first.
fn spared(devices: &Devices) -> usize {
    let silent = devices.iter().filter(|device| device.is_silent());
    let taken = silent.map(|device| match device.dropped() {
        Some(_) => Priority::ALL.len(),
        None => Priority::Urgent as usize + 1,
    });
    taken.max().unwrap_or(0)
}

/// Runs jobs, one after the other on each device. Dropping it stops those that run at their next event and
/// forgets the others.
pub struct EnginePool {
    queues: Arc<Queues>,
    devices: Devices,
}

impl EnginePool {
    /// Starts the threads. All models run on the processor.
    pub fn new(config: PoolConfig) -> Result<Self, EngineError> {
        Self::on(config, Devices::default())
    }

    /// Starts the threads, and loads exact models onto these devices.
    pub fn on(config: PoolConfig, devices: Devices) -> Result<Self, EngineError> {
        // Dropped where a driver cannot be started: those that were end then.
        let pool = Self {
            queues: Arc::new(Queues {
                waiting: Mutex::default(),
                changed: Condvar::new(),
                changed_for_spare: Condvar::new(),
                closing: AtomicBool::new(false),
                limit: config.queue.max(1),
            }),
            devices,
        };
        let drivers = pool.devices.len().max(1);
        for driver in 0..drivers {
            // What does not divide is for the first ones.
            let threads = threads((config.threads + drivers - 1 - driver) / drivers)?;
            let queues = pool.queues.clone();
            drive(format!("engine-{driver}"), threads, move || queues.wait())?;
        }
        if !pool.devices.is_empty() {
            let (queues, devices) = (pool.queues.clone(), pool.devices.clone());
            let threads = threads(config.threads)?;
            drive("engine-spare".into(), threads, move || {
                queues.wait_spare(&devices)
            })?;
        }
        Ok(pool)
    }

    /// What exact models are loaded onto.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Queues a job. Await the ticket for its outcome.
    pub fn submit(&self, engine: Arc<dyn Engine>, job: Job) -> Result<Ticket<Outcome>, EngineError> {
        self.work(Priority::Inference, move |sink| engine.run(&job, sink))
    }

    /// Queues the loading of a model: reading and hashing its files, and building its engine, take a while.
    pub fn load(&self, store: &ModelStore, model: ModelId) -> Result<Ticket<Arc<dyn Engine>>, EngineError> {
        let (store, devices) = (store.clone(), self.devices.clone());
        self.work(Priority::Inference, move |_| {
            open_on(store.load(model)?, &devices)
        })
    }

    /// Jobs that wait, of each priority.
    pub fn waiting(&self) -> [(Priority, usize); Priority::ALL.len()] {
        self.queues.waiting()
    }

    /// Queues anything else that takes an engine's time: an audit, a move in a dispute.
    pub fn work<T: Send + 'static>(
        &self,
        priority: Priority,
        work: impl FnOnce(&mut JobSink) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<Ticket<T>, EngineError> {
        let (result_sender, result) = oneshot::channel();
        let (progress_sender, progress) = watch::channel(Progress::default());
        // Room for every token there can be: the sender never waits, and drops nothing. It takes memory as it
        // fills.
        let (token_sender, tokens) = mpsc::channel(NEW_TOKENS_MAX as usize);
        let cancelled = Arc::<AtomicBool>::default();
        let mut sink = JobSink {
            leave: Leave {
                cancelled: cancelled.clone(),
                queues: self.queues.clone(),
                priority,
            },
            progress: progress_sender,
            tokens: Some(token_sender),
            next_token: 0,
        };
        let task: Task = Box::new(move || {
            let outcome = if sink.leave.is_stopped() {
                Err(EngineError::Cancelled)
            } else {
                let run = AssertUnwindSafe(|| work(&mut sink));
                catch_unwind(run).unwrap_or_else(|panic| Err(EngineError::Panicked(message(&*panic))))
            };
            // Whoever follows the tokens learns that there are no more, before the outcome.
            drop(sink);
            // Nobody may be waiting any more.
            result_sender.send(outcome).ok();
        });
        self.queues.push(priority, task)?;
        Ok(Ticket {
            result,
            progress,
            tokens: Some(tokens),
            cancelled,
        })
    }
}

impl Drop for EnginePool {
    fn drop(&mut self) {
        self.queues.close();
    }
}

/// Runs jobs on these threads, one after the other, until there is none.
fn drive(
    name: String,
    threads: rayon::ThreadPool,
    next: impl Fn() -> Option<Task> + Send + 'static,
) -> Result<(), EngineError> {
    let driver = thread::Builder::new().name(name).spawn(move || {
        while let Some(task) = next() {
            threads.install(task);
        }
    });
    driver
        .map(drop)
        .map_err(|error| EngineError::Threads(error.to_string()))
}

/// Threads that compute, at least 1.
pub(crate) fn threads(count: usize) -> Result<rayon::ThreadPool, EngineError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(count.max(1))
        .stack_size(STACK_BYTES)
        .thread_name(|index| format!("infer-{index}"))
        .build()
        .map_err(|error| EngineError::Threads(error.to_string()))
}

pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".into())
}

/// A job's leave to go on.
#[derive(Clone)]
pub struct Leave {
    cancelled: Arc<AtomicBool>,
    queues: Arc<Queues>,
    priority: Priority,
}

impl Leave {
    fn is_stopped(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || self.queues.closing.load(Ordering::Relaxed)
    }

    /// Lets what is more urgent go first, on this thread; then says whether the job is to go on. Only for the
    /// thread that runs the job.
    pub fn ask(&self) -> ControlFlow<()> {
        while let Some(urgent) = self.queues.take_before(self.priority) {
            urgent();
        }
        if self.is_stopped() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Where the events of a job in a pool go.
pub struct JobSink {
    leave: Leave,
    progress: watch::Sender<Progress>,
    /// Nothing once somebody has stopped listening, or there is more than is passed on.
    tokens: Option<mpsc::Sender<u32>>,
    next_token: u32,
}

impl JobSink {
    /// The job's leave by itself, for what has a sink of its own and outlives the job: a trace that is kept
    /// from move to move.
    pub fn leave(&self) -> Leave {
        self.leave.clone()
    }

    /// Never waits. A stream with a gap would be worse than one that ends: the first token that cannot be
    /// passed on is the end of it.
    fn pass_on(&mut self, index: u32, id: u32) {
        let fits = index == self.next_token;
        let sent = |tokens: &mpsc::Sender<u32>| tokens.try_send(id).is_ok();
        if fits && self.tokens.as_ref().is_some_and(sent) {
            self.next_token += 1;
        } else {
            self.tokens = None;
        }
    }
}

impl Sink for JobSink {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        match event {
            Event::Progress { done, total } => {
                self.progress.send_replace(Progress { done, total });
            }
            Event::Token { index, token } => self.pass_on(index, token),
        }
        self.leave.ask()
    }
}

/// A queued job. Awaiting it gives the outcome; dropping it cancels the job.
pub struct Ticket<T> {
    result: oneshot::Receiver<Result<T, EngineError>>,
    progress: watch::Receiver<Progress>,
    tokens: Option<mpsc::Receiver<u32>>,
    cancelled: Arc<AtomicBool>,
}

impl Ticket<Outcome> {
    /// The tokens of a generation, as they come; nothing when they were taken already. They end with the job,
    /// however that ends: only the outcome says whether they are all there are. Not listening costs the job
    /// nothing.
    pub fn tokens(&mut self) -> Option<mpsc::Receiver<u32>> {
        self.tokens.take()
    }
}

impl<T> Ticket<T> {
    /// Stops the job at its next event; the ticket then gives [`EngineError::Cancelled`].
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Follows the job's progress. Only the newest state is kept.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }
}

impl<T> Future for Ticket<T> {
    type Output = Result<T, EngineError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let result = Pin::new(&mut self.result).poll(context);
        result.map(|received| received.unwrap_or(Err(EngineError::Closed)))
    }
}

impl<T> Drop for Ticket<T> {
    fn drop(&mut self) {
        self.cancel();
    }
}
