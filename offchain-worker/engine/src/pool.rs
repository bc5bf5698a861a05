//! Inference on threads of its own.
//!
//! One driver thread takes jobs in order and runs each inside a rayon pool of the configured size. One job at a
//! time: a job uses all threads there are, so two at once would only make both late.

use std::{
    any::Any,
    future::Future,
    ops::ControlFlow,
    panic::{catch_unwind, AssertUnwindSafe},
    pin::Pin,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{sync_channel, Receiver, SyncSender, TrySendError},
        Arc,
    },
    task::{Context, Poll},
    thread,
};

use surety_types::ModelId;
use tokio::sync::{oneshot, watch};

use crate::{
    engine::{open, Engine, Event, Job, Outcome, Sink},
    error::EngineError,
    store::ModelStore,
};

/// Stack of an inference thread. A product that waits for its parts may take up another item meanwhile, on top of
/// its own stack.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// How big the pool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Threads that compute, at least 1. Leave some cores to a node on the same machine.
    pub threads: usize,
    /// Jobs that may wait behind the one that runs. More are refused.
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

type Task = Box<dyn FnOnce(&rayon::ThreadPool) + Send>;

/// Runs jobs, one after the other. Dropping it stops the one that runs at its next event and forgets the others.
pub struct EnginePool {
    tasks: SyncSender<Task>,
    queue: usize,
    closing: Arc<AtomicBool>,
}

impl EnginePool {
    /// Starts the threads.
    pub fn new(config: PoolConfig) -> Result<Self, EngineError> {
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(config.threads.max(1))
            .stack_size(STACK_BYTES)
            .thread_name(|index| format!("infer-{index}"))
            .build()
            .map_err(|error| EngineError::Threads(error.to_string()))?;
        let (tasks, queue) = sync_channel::<Task>(config.queue.max(1));
        thread::Builder::new()
            .name("engine".into())
            .spawn(move || drive(&queue, &threads))
            .map_err(|error| EngineError::Threads(error.to_string()))?;
        Ok(Self {
            tasks,
            queue: config.queue.max(1),
            closing: Arc::default(),
        })
    }

    /// Queues a job. Await the ticket for its outcome.
    pub fn submit(&self, engine: Arc<dyn Engine>, job: Job) -> Result<Ticket<Outcome>, EngineError> {
        self.queue(move |sink| engine.run(&job, sink))
    }

    /// Queues the loading of a model: reading and hashing its files, and building its engine, take a while.
    pub fn load(&self, store: &ModelStore, model: ModelId) -> Result<Ticket<Arc<dyn Engine>>, EngineError> {
        let store = store.clone();
        self.queue(move |_| open(store.load(model)?))
    }

    fn queue<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut PoolSink) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<Ticket<T>, EngineError> {
        let (result_sender, result) = oneshot::channel();
        let (progress_sender, progress) = watch::channel(Progress::default());
        let cancelled = Arc::<AtomicBool>::default();
        let mut sink = PoolSink {
            cancelled: cancelled.clone(),
            closing: self.closing.clone(),
            progress: progress_sender,
        };
        let task: Task = Box::new(move |threads| {
            let outcome = if sink.stopped() {
                Err(EngineError::Cancelled)
            } else {
                let run = AssertUnwindSafe(|| threads.install(|| work(&mut sink)));
                catch_unwind(run).unwrap_or_else(|panic| Err(EngineError::Panicked(message(&*panic))))
            };
            // Nobody may be waiting any more.
            result_sender.send(outcome).ok();
        });
        match self.tasks.try_send(task) {
            Ok(()) => Ok(Ticket {
                result,
                progress,
                cancelled,
            }),
            Err(TrySendError::Full(_)) => Err(EngineError::QueueFull { limit: self.queue }),
            Err(TrySendError::Disconnected(_)) => Err(EngineError::Closed),
        }
    }
}

impl Drop for EnginePool {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
    }
}

fn drive(queue: &Receiver<Task>, threads: &rayon::ThreadPool) {
    while let Ok(task) = queue.recv() {
        task(threads);
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".into())
}

struct PoolSink {
    cancelled: Arc<AtomicBool>,
    closing: Arc<AtomicBool>,
    progress: watch::Sender<Progress>,
}

impl PoolSink {
    fn stopped(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || self.closing.load(Ordering::Relaxed)
    }
}

impl Sink for PoolSink {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        if let Event::Progress { done, total } = event {
            self.progress.send_replace(Progress { done, total });
        }
        match self.stopped() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// A queued job. Awaiting it gives the outcome; dropping it cancels the job.
pub struct Ticket<T> {
    result: oneshot::Receiver<Result<T, EngineError>>,
    progress: watch::Receiver<Progress>,
    cancelled: Arc<AtomicBool>,
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
