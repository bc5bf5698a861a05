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
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    engine::{open, Engine, Event, Job, Outcome, Sink},
    error::EngineError,
    generation::NEW_TOKENS_MAX,
    store::ModelStore,
};

/// Stack of an inference thread. A product that waits for its parts may take up another item meanwhile, on top of
/// its own stack.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Longest text of one token that is passed on, in bytes. No vocabulary needs as much; together with
/// [`NEW_TOKENS_MAX`] it bounds what a job that nobody listens to keeps in memory.
const TOKEN_BYTES_MAX: usize = 4096;

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

/// A token of a generation that is going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The token.
    pub id: u32,
    /// What it adds to the text; empty while a character is not complete.
    pub text: String,
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

    /// Queues anything else that takes an engine's time: an audit, a move in a dispute.
    pub fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Sink) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<Ticket<T>, EngineError> {
        self.queue(|sink| work(sink))
    }

    fn queue<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut PoolSink) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<Ticket<T>, EngineError> {
        let (result_sender, result) = oneshot::channel();
        let (progress_sender, progress) = watch::channel(Progress::default());
        // Room for every token there can be: the sender never waits, and drops nothing. It takes memory as it fills.
        let (token_sender, tokens) = mpsc::channel(NEW_TOKENS_MAX as usize);
        let cancelled = Arc::<AtomicBool>::default();
        let mut sink = PoolSink {
            cancelled: cancelled.clone(),
            closing: self.closing.clone(),
            progress: progress_sender,
            tokens: Some(token_sender),
            next_token: 0,
        };
        let task: Task = Box::new(move |threads| {
            let outcome = if sink.stopped() {
                Err(EngineError::Cancelled)
            } else {
                let run = AssertUnwindSafe(|| threads.install(|| work(&mut sink)));
                catch_unwind(run).unwrap_or_else(|panic| Err(EngineError::Panicked(message(&*panic))))
            };
            // Whoever follows the tokens learns that there are no more, before the outcome.
            drop(sink);
            // Nobody may be waiting any more.
            result_sender.send(outcome).ok();
        });
        match self.tasks.try_send(task) {
            Ok(()) => Ok(Ticket {
                result,
                progress,
                tokens: Some(tokens),
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
    /// Nothing once somebody has stopped listening, or there is more than is passed on.
    tokens: Option<mpsc::Sender<Token>>,
    next_token: u32,
}

impl PoolSink {
    /// Never waits. A stream with a gap would be worse than one that ends: the first token that cannot be passed on is
    /// the end of it.
    fn pass_on(&mut self, index: u32, id: u32, text: String) {
        let fits = index == self.next_token && text.len() <= TOKEN_BYTES_MAX;
        let sent = |tokens: &mpsc::Sender<Token>| tokens.try_send(Token { id, text }).is_ok();
        if fits && self.tokens.as_ref().is_some_and(sent) {
            self.next_token += 1;
        } else {
            self.tokens = None;
        }
    }

    fn stopped(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || self.closing.load(Ordering::Relaxed)
    }
}

impl Sink for PoolSink {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        match event {
            Event::Progress { done, total } => {
                self.progress.send_replace(Progress { done, total });
            }
            Event::Token { index, token, text } => self.pass_on(index, token, text),
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
    tokens: Option<mpsc::Receiver<Token>>,
    cancelled: Arc<AtomicBool>,
}

impl Ticket<Outcome> {
    /// The tokens of a generation, as they come; nothing when they were taken already. They end with the job, however
    /// that ends: only the outcome says whether they are all there are. Not listening costs the job nothing.
    pub fn tokens(&mut self) -> Option<mpsc::Receiver<Token>> {
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
