//! The pool: order, urgency, limits, cancelling, and jobs that panic.

#![allow(clippy::unwrap_used)]

mod common;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use common::{Tiny, embed_job, files, store_files};
use surety_engine::{
    Engine, EngineError, EnginePool, Event, Job, JobSink, Outcome, PoolConfig, Priority, Progress, Sink,
    Ticket, open,
};
use surety_models::{ModelStore, StoreError};
use surety_types::{
    ContentHash, ModelId,
    input::NEW_TOKENS_MAX,
    model::{ModelManifest, Operation},
    task::ResultClaim,
};

/// Does what its input says.
struct Puppet {
    manifest: ModelManifest,
    ran: AtomicUsize,
    started: Sender<()>,
    /// One message lets one `wait` go on.
    go: Mutex<Receiver<()>>,
}

impl Engine for Puppet {
    fn manifest(&self) -> &ModelManifest {
        &self.manifest
    }

    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        self.ran.fetch_add(1, Ordering::SeqCst);
        self.started.send(()).ok();
        match &job.input[..] {
            b"panic" => panic!("as asked for"),
            b"wait" => self.go.lock().unwrap().recv().unwrap(),
            b"until cancelled" => {
                while sink.event(Event::Progress { done: 1, total: 2 }).is_continue() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                return Err(EngineError::Cancelled);
            }
            b"tell" => {
                for index in 0..3 {
                    let token = index + 10;
                    assert!(sink.event(Event::Token { index, token }).is_continue());
                }
            }
            b"tell too much" => {
                for index in 0..10_000 {
                    assert!(sink.event(Event::Token { index, token: 0 }).is_continue());
                }
            }
            _ => {}
        }
        let claim = ResultClaim {
            output: ContentHash::zero(),
            trace_root: ContentHash::zero(),
            units: u32::try_from(rayon::current_num_threads()).unwrap(),
        };
        let output = std::thread::current().name().unwrap_or_default().into();
        Ok(Outcome {
            output,
            claim,
            leaves: Vec::new(),
        })
    }
}

struct Stage {
    puppet: Arc<Puppet>,
    pool: EnginePool,
    started: Receiver<()>,
    go: Sender<()>,
}

fn stage(queue: usize) -> Stage {
    let (started_sender, started) = channel();
    let (go, go_receiver) = channel();
    Stage {
        puppet: Arc::new(Puppet {
            manifest: files(vec![], vec![], vec![]).manifest,
            ran: AtomicUsize::default(),
            started: started_sender,
            go: Mutex::new(go_receiver),
        }),
        pool: EnginePool::new(PoolConfig { threads: 3, queue }).unwrap(),
        started,
        go,
    }
}

impl Stage {
    fn submit(&self, what: &str) -> Result<Ticket<Outcome>, EngineError> {
        let job = Job {
            operation: Operation::Embed,
            input: what.into(),
            units_max: 1,
        };
        self.pool.submit(self.puppet.clone(), job)
    }
}

#[tokio::test]
async fn jobs_run_in_threads_of_the_pool() {
    let stage = stage(1);
    let outcome = stage.submit("").unwrap().await.unwrap();
    assert!(outcome.output.starts_with(b"infer-"));
    assert_eq!(outcome.claim.units, 3);
}

#[tokio::test]
async fn a_job_never_blocks_the_async_thread() {
    let stage = stage(1);
    let mut job = stage.submit("wait").unwrap();
    // On this one thread, time goes on while the job waits for what comes after it.
    let pending = tokio::time::timeout(Duration::from_millis(20), &mut job).await;
    assert!(pending.is_err());
    stage.go.send(()).unwrap();
    job.await.unwrap();
}

#[tokio::test]
async fn the_queue_is_bounded() {
    let stage = stage(2);
    let running = stage.submit("wait").unwrap();
    stage.started.recv().unwrap();
    let waiting = [stage.submit("").unwrap(), stage.submit("").unwrap()];
    assert!(matches!(
        stage.submit(""),
        Err(EngineError::QueueFull { limit: 2 })
    ));
    stage.go.send(()).unwrap();
    running.await.unwrap();
    for job in waiting {
        job.await.unwrap();
    }
    stage.submit("").unwrap().await.unwrap();
}

#[tokio::test]
async fn a_panic_is_an_error_and_the_pool_goes_on() {
    let stage = stage(1);
    let panicked = stage.submit("panic").unwrap().await;
    assert!(matches!(panicked, Err(EngineError::Panicked(why)) if why == "as asked for"));
    stage.submit("").unwrap().await.unwrap();
}

#[tokio::test]
async fn a_running_job_is_cancelled_at_its_next_event() {
    let stage = stage(1);
    let job = stage.submit("until cancelled").unwrap();
    let mut progress = job.progress();
    progress.changed().await.unwrap();
    assert_eq!(*progress.borrow(), Progress { done: 1, total: 2 });
    job.cancel();
    assert!(matches!(job.await, Err(EngineError::Cancelled)));
}

async fn tokens(ticket: &mut Ticket<Outcome>) -> Vec<u32> {
    let mut receiver = ticket.tokens().unwrap();
    let mut all = Vec::new();
    while let Some(token) = receiver.recv().await {
        all.push(token);
    }
    all
}

#[tokio::test]
async fn tokens_arrive_in_order_and_end_before_the_outcome() {
    let stage = stage(1);
    let mut job = stage.submit("tell").unwrap();
    assert_eq!(tokens(&mut job).await, [10, 11, 12]);
    job.await.unwrap();
}

#[tokio::test]
async fn tokens_that_nobody_reads_never_hold_up_a_job() {
    let stage = stage(3);
    // More than a generation can have, read by nobody, by nobody any more, and late.
    stage.submit("tell too much").unwrap().await.unwrap();
    let mut deaf = stage.submit("tell too much").unwrap();
    drop(deaf.tokens());
    deaf.await.unwrap();
    let mut late = stage.submit("tell too much").unwrap();
    stage.submit("").unwrap().await.unwrap();
    assert_eq!(tokens(&mut late).await.len(), NEW_TOKENS_MAX as usize);
    late.await.unwrap();
}

#[tokio::test]
async fn a_job_that_nobody_waits_for_does_not_run() {
    let stage = stage(2);
    let running = stage.submit("wait").unwrap();
    stage.started.recv().unwrap();
    drop(stage.submit("").unwrap());
    let last = stage.submit("").unwrap();
    stage.go.send(()).unwrap();
    running.await.unwrap();
    last.await.unwrap();
    assert_eq!(stage.puppet.ran.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn dropping_the_pool_ends_its_jobs() {
    let stage = stage(2);
    let running = stage.submit("until cancelled").unwrap();
    stage.started.recv().unwrap();
    let waiting = stage.submit("").unwrap();
    drop(stage.pool);
    assert!(matches!(running.await, Err(EngineError::Cancelled)));
    assert!(matches!(waiting.await, Err(EngineError::Cancelled)));
    assert_eq!(stage.puppet.ran.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_move_is_answered_while_a_long_job_is_running() {
    let stage = stage(1);
    let long = stage.submit("until cancelled").unwrap();
    stage.started.recv().unwrap();
    let threads = |_: &mut JobSink| Ok(rayon::current_num_threads());
    let urgent = stage.pool.work(Priority::Urgent, threads).unwrap();
    assert_eq!(urgent.await.unwrap(), 3, "on the threads of the pool");
    let mut progress = long.progress();
    progress.mark_unchanged();
    progress.changed().await.unwrap();
    long.cancel();
    assert!(matches!(long.await, Err(EngineError::Cancelled)));
}

#[tokio::test]
async fn a_flood_of_jobs_does_not_delay_a_move() {
    let stage = stage(2);
    let long = stage.submit("until cancelled").unwrap();
    stage.started.recv().unwrap();
    let _flood = [stage.submit("").unwrap(), stage.submit("").unwrap()];
    assert!(matches!(stage.submit(""), Err(EngineError::QueueFull { .. })));
    let waiting = stage.pool.waiting();
    assert_eq!(waiting.map(|(_, jobs)| jobs), [0, 0, 2]);
    let urgent = stage.pool.work(Priority::Urgent, |_| Ok(())).unwrap();
    urgent.await.unwrap();
    assert_eq!(
        stage.puppet.ran.load(Ordering::SeqCst),
        1,
        "the flood still waits"
    );
    drop(long);
}

#[tokio::test]
async fn what_waits_runs_by_its_urgency() {
    let stage = stage(2);
    let first = stage.submit("wait").unwrap();
    stage.started.recv().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let asked = [Priority::Inference, Priority::Audit, Priority::Urgent];
    let tickets = asked.map(|priority| {
        let order = order.clone();
        let note = move |_: &mut JobSink| {
            order.lock().unwrap().push(priority);
            Ok(())
        };
        stage.pool.work(priority, note).unwrap()
    });
    stage.go.send(()).unwrap();
    first.await.unwrap();
    for ticket in tickets {
        ticket.await.unwrap();
    }
    let expected = [Priority::Urgent, Priority::Audit, Priority::Inference];
    assert_eq!(*order.lock().unwrap(), expected);
}

#[tokio::test]
async fn an_audit_stands_aside_for_a_move_and_for_no_inference() {
    let stage = stage(1);
    let (began, has_begun) = channel();
    let audit = stage.pool.work(Priority::Audit, move |sink| {
        began.send(()).unwrap();
        while sink.event(Event::Progress { done: 1, total: 2 }).is_continue() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Err::<(), _>(EngineError::Cancelled)
    });
    let audit = audit.unwrap();
    has_begun.recv().unwrap();
    let inference = stage.submit("").unwrap();
    for _ in 0..2 {
        let urgent = stage.pool.work(Priority::Urgent, |_| Ok(())).unwrap();
        urgent.await.unwrap();
    }
    assert_eq!(stage.puppet.ran.load(Ordering::SeqCst), 0);
    audit.cancel();
    inference.await.unwrap();
    assert!(matches!(audit.await, Err(EngineError::Cancelled)));
}

#[tokio::test]
async fn a_move_that_panics_does_not_harm_the_job_beneath() {
    let stage = stage(1);
    let long = stage.submit("until cancelled").unwrap();
    stage.started.recv().unwrap();
    let panics = |_: &mut JobSink| -> Result<(), EngineError> { panic!("as asked for") };
    let urgent = stage.pool.work(Priority::Urgent, panics).unwrap();
    assert!(matches!(urgent.await, Err(EngineError::Panicked(_))));
    long.cancel();
    assert!(matches!(long.await, Err(EngineError::Cancelled)));
}

#[tokio::test]
async fn what_outlives_a_job_learns_by_its_leave_that_it_was_cancelled() {
    let stage = stage(1);
    let leave = stage.pool.work(Priority::Urgent, |sink| Ok(sink.leave()));
    let mut ticket = leave.unwrap();
    let leave = (&mut ticket).await.unwrap();
    assert!(leave.ask().is_continue());
    drop(ticket);
    assert!(leave.ask().is_break());
}

#[tokio::test]
async fn models_are_loaded_on_the_pool_too() {
    let home = tempfile::tempdir().unwrap();
    let store = ModelStore::new(home.path());
    store_files(home.path(), "tiny", &Tiny::new().files());
    let id = store.by_name("tiny").unwrap().manifest.id();
    let stage = stage(1);
    let engine = stage.pool.load(&store, id).unwrap().await.unwrap();
    assert_eq!(engine.manifest().id(), id);
    let outcome = stage
        .pool
        .submit(engine, embed_job("a\nb"))
        .unwrap()
        .await
        .unwrap();
    assert_eq!(outcome.claim.units, 2);
    let unknown = stage.pool.load(&store, ModelId::zero()).unwrap().await;
    assert!(matches!(
        unknown,
        Err(EngineError::Store(StoreError::NotInstalled { .. }))
    ));
}

#[test]
fn an_engine_stops_between_two_waves() {
    let engine = open(Tiny::new().files()).unwrap();
    let input = "a b c\n".repeat(500);
    let mut events = Vec::new();
    let mut sink = |event| {
        events.push(event);
        match events.len() {
            3 => std::ops::ControlFlow::Break(()),
            _ => std::ops::ControlFlow::Continue(()),
        }
    };
    let run = engine.run(&embed_job(input), &mut sink);
    assert!(matches!(run, Err(EngineError::Cancelled)));
    assert_eq!(events[0], Event::Progress { done: 0, total: 500 });
    let Event::Progress { done, .. } = events[2].clone() else {
        panic!("{events:?}")
    };
    assert!(done < 500);
}
