#![doc = include_str!("../README.md")]

mod audit_speed;
mod audits;
mod blocks;
mod compute;
mod confirmations;
mod drain;
mod effect_error;
mod effects;
mod error;
pub mod gpus;
mod heartbeat;
mod jobs;
mod kept;
mod leaves;
pub mod machine;
mod measuring;
mod moves;
mod offers;
mod outputs;
mod pauses;
mod retry;
mod samples;
mod served;
mod slashes;
mod sources;
mod speeds;
mod stream;
mod supervisor;
mod supply;
mod upkeep;
mod vitals;
mod votes;
mod warm_up;
mod work;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use surety_access::OwnOutputs;
use surety_chain_client::{AccountId, Balance, Chain, Signer};
use surety_journal::{JournalError, RecordLog};
use surety_network::{DataPlane, PlaneError};
use surety_types::{ContentHash, TaskId};
use surety_worker_core::{Effect, EffectKind, Event, Record, Role, Step, Worker};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    task::JoinSet,
};

pub use audits::Audits;
pub use compute::Engines;
pub use drain::{Draining, Duty, Open, Still};
pub use error::{HostError, Result};
pub use heartbeat::Registration;
pub use kept::Kept;
pub use moves::Traces;
pub use pauses::{Hold, Pause, PauseError, Pauses};
pub use speeds::Speeds;
pub use vitals::{Vitals, server::bind as bind_metrics};

use gpus::Gpus;
use jobs::Jobs;
use outputs::Outputs;
use retry::Backoff;
use supervisor::Supervisor;
use vitals::Seen;

/// Everything that effects need. Shared by all jobs.
pub struct Tools {
    /// The chain.
    pub chain: Arc<dyn Chain>,
    /// The agent's key.
    pub signer: Signer,
    /// The stash it acts for.
    pub stash: AccountId,
    /// Where inputs come from and outputs are served.
    pub plane: Arc<dyn DataPlane>,
    /// Loaded models.
    pub engines: Engines,
    /// Traces of the claims that disputes are played about.
    pub traces: Traces,
    /// What is remembered of audits from step to step.
    pub audits: Audits,
    /// Outputs for which tickets are judged.
    pub outputs: Arc<OwnOutputs>,
    /// Most that is added to the fee of a call whose deadline is near, in plancks.
    pub tip_max: Balance,
    /// What of the money of stash and agent is kept for what.
    pub kept: Kept,
    /// What an operator sees of it.
    pub vitals: Arc<Vitals>,
}

/// What the loop drives.
pub trait Core: Send {
    /// Takes an event in.
    fn step(&mut self, now: u32, event: Event) -> Step;

    /// How many of its tasks are how far.
    fn progress(&self) -> BTreeMap<&'static str, usize>;

    /// For how long nothing has to be computed, as far as promised results go; nothing where none is
    /// promised.
    fn spare(&self) -> Option<Duration>;
}

impl<R: Role> Core for Worker<R> {
    fn step(&mut self, now: u32, event: Event) -> Step {
        Worker::step(self, now, event)
    }

    fn progress(&self) -> BTreeMap<&'static str, usize> {
        self.stages()
    }

    fn spare(&self) -> Option<Duration> {
        self.spare_millis().map(Duration::from_millis)
    }
}

impl Core for Box<dyn Core> {
    fn step(&mut self, now: u32, event: Event) -> Step {
        (**self).step(now, event)
    }

    fn progress(&self) -> BTreeMap<&'static str, usize> {
        (**self).progress()
    }

    fn spare(&self) -> Option<Duration> {
        (**self).spare()
    }
}

/// What the data plane is called in reports.
const DATA_PLANE: &str = "data_plane";

/// Becomes true when the worker is to stop.
type Stop = watch::Receiver<bool>;

/// What goes on beside the loop.
#[derive(Clone, Debug)]
pub enum Beside {
    /// A provider is on the chain's list as this, and gives signs of life.
    Heartbeat(Registration),
    /// A verifier carries out slashes that have waited long enough.
    Slashes,
}

/// A provider or a verifier at work.
pub struct Host<C> {
    tools: Arc<Tools>,
    beside: Beside,
    core: C,
    journal: Arc<dyn RecordLog>,
    jobs: Jobs,
    outputs: Outputs,
    metrics: Option<Arc<TcpListener>>,
    gpus: Option<Arc<Gpus>>,
    speeds: Option<Speeds>,
    /// What its speeds are those of.
    machine: Vec<String>,
    /// What says how fast it is, where nothing else does.
    samples: JoinSet<()>,
    /// Whether it is not known how fast the machine is that computes now.
    is_unsure: bool,
    /// How often samples may still fail before it bids by what is said of it.
    samples_left: u32,
    block: u32,
    /// Tasks whose results the journal says that we have audited, with the outputs that we were shown.
    audited: BTreeMap<TaskId, BTreeSet<ContentHash>>,
    /// Whether the inputs of our tasks are kept again.
    is_restored: bool,
    /// Whether the core knows that the journal is down to its reserve.
    is_short: bool,
    /// Whether the core has seen what is promised on the chain.
    sees: bool,
}

impl<C: Core> Host<C> {
    /// A host for `core`, which has replayed `records`, everything that is in `journal`.
    pub fn new(
        tools: Tools,
        beside: Beside,
        core: C,
        journal: Arc<dyn RecordLog>,
        records: &[Record],
    ) -> Self {
        let tools = Arc::new(tools);
        Self {
            outputs: Outputs::from_records(records, tools.outputs.clone()),
            jobs: Jobs::new(tools.clone()),
            machine: speeds::machine(tools.engines.devices()),
            tools,
            beside,
            core,
            journal,
            metrics: None,
            gpus: None,
            speeds: None,
            samples: JoinSet::new(),
            is_unsure: false,
            samples_left: measuring::TRIES,
            block: 0,
            audited: audits::audited(records),
            is_restored: false,
            is_short: false,
            sees: false,
        }
    }

    /// Answers there for health and metrics.
    pub fn with_metrics(mut self, listener: Option<TcpListener>) -> Self {
        self.metrics = listener.map(Arc::new);
        self
    }

    /// Shows how its devices are, where there are any.
    pub fn with_gpus(mut self, gpus: Gpus) -> Self {
        self.gpus = Some(gpus).filter(|gpus| !gpus.is_empty()).map(Arc::new);
        self
    }

    /// Bids by what was measured before on this machine, and keeps what is measured, if there is something to
    /// bid by. Where it was measured on another, a device more for example, nothing is bid for before it is
    /// measured here.
    pub fn with_speeds(mut self, speeds: Option<Speeds>) -> Self {
        self.is_unsure = speeds
            .as_ref()
            .is_some_and(|speeds| speeds.knows_another(&self.machine));
        self.speeds = speeds.map(|speeds| speeds.measured_on(&self.machine));
        self
    }

    /// Works until `stop` becomes true, then lets calls that are on their way to the chain arrive.
    ///
    /// # Errors
    /// When the journal cannot be written, since nothing may be promised then (a full disk is waited for, but
    /// not beyond `stop`); when a part of the worker cannot be kept running.
    pub async fn run(mut self, mut stop: Stop) -> Result<()> {
        self.outputs.restore(&*self.tools.plane).await;
        audits::restore(&self.tools, &self.audited).await;
        // One state ahead is enough: only the newest counts.
        let (sender, mut blocks) = mpsc::channel(1);
        let mut parts = self.start_parts(sender);
        self.begin_measuring(&mut stop).await?;
        let plane = self.tools.plane.clone();
        self.tools.vitals.part_started(DATA_PLANE);
        let result = loop {
            let event = tokio::select! {
                Some(event) = blocks.recv() => event,
                event = self.jobs.next(), if !self.jobs.is_empty() => match event {
                    Some(event) => event,
                    None => continue,
                },
                failure = parts.failure() => break Err(failure),
                () = plane.stopped() => {
                    // It cannot be started again beneath those who use it.
                    self.tools.vitals.part_died(DATA_PLANE, "it stopped");
                    break Err(PlaneError::Closed.into());
                }
                _ = stop.wait_for(|stop| *stop) => break Ok(()),
            };
            if let Err(e) = self.take(event, &mut stop).await {
                break Err(e);
            }
        };
        drop(parts);
        self.samples.abort_all();
        self.jobs.wind_down().await;
        result
    }

    /// What goes on beside the loop.
    fn start_parts(&self, blocks: mpsc::Sender<Event>) -> Supervisor {
        let tools = &self.tools;
        let bids = matches!(self.beside, Beside::Heartbeat(_));
        let mut parts = Supervisor::new(tools.vitals.clone());
        for (part, seen) in [("finalized_blocks", Seen::Finalized), ("best_blocks", Seen::Best)] {
            let (of, blocks) = (tools.clone(), blocks.clone());
            parts.keep(part, move || {
                blocks::follow(of.clone(), seen, bids, blocks.clone())
            });
        }
        let of = tools.clone();
        parts.keep("upkeep", move || upkeep::see_to(of.clone(), bids, blocks.clone()));
        let of = tools.clone();
        match self.beside.clone() {
            Beside::Heartbeat(registration) => parts.keep("heartbeat", move || {
                heartbeat::keep(of.clone(), registration.clone())
            }),
            Beside::Slashes => {
                parts.keep("slashes", move || slashes::carry_out(of.clone()));
                let of = tools.clone();
                parts.keep("offers", move || offers::keep(of.clone()));
            }
        }
        if let Some(gpus) = self.gpus.clone() {
            parts.keep("gpus", move || gpus.clone().watch());
        }
        if let Some(listener) = self.metrics.clone() {
            let vitals = tools.vitals.clone();
            parts.keep("metrics", move || {
                vitals::server::serve(listener.clone(), vitals.clone())
            });
        }
        parts
    }

    fn show(&self) {
        let metrics = &self.tools.vitals.metrics;
        metrics.tasks(self.core.progress());
        metrics.queues(self.tools.engines.waiting());
        metrics.effects_running(self.jobs.running());
        metrics.network(&self.tools.plane.counters());
    }

    /// One turn: step, records, effects.
    async fn take(&mut self, event: Event, stop: &mut Stop) -> Result<()> {
        self.see_speeds(stop).await?;
        self.see_room(&event, stop).await?;
        match &event {
            Event::Finalized {
                block,
                clock,
                tasks,
                unread,
            } => {
                self.block = self.block.max(*block);
                self.tools.vitals.block(Seen::Finalized, *block);
                self.tools.vitals.metrics.clock(*clock);
                self.outputs.see(&self.tools, tasks).await;
                if !self.is_restored {
                    let (outputs, stash) = (&self.outputs, &self.tools.stash);
                    let ours = tasks.iter().filter(|task| {
                        let is_audited = self.audited.contains_key(&task.id);
                        is_audited || outputs.has(task.id) || outputs::is_member(task, stash)
                    });
                    self.jobs.restore(ours).await;
                    self.is_restored = unread.is_empty();
                }
            }
            Event::Best { block, .. } => {
                // Pauses are counted in blocks, final or not.
                self.block = self.block.max(*block);
                self.tools.vitals.block(Seen::Best, *block);
            }
            Event::EffectDone {
                task,
                kind: EffectKind::Commit,
                ..
            } => self.outputs.committed(&self.tools, *task).await,
            _ => {}
        }
        log_event(&event);
        let is_final = matches!(event, Event::Finalized { .. });
        self.step(event, stop).await?;
        self.sees |= is_final;
        self.take_measured(stop).await?;
        if self.sees {
            self.tools.engines.pauses().note(self.core.spare());
        }
        self.show();
        Ok(())
    }

    async fn step(&mut self, event: Event, stop: &mut Stop) -> Result<()> {
        let step = self.core.step(self.block, event);
        if !step.records.is_empty() {
            self.make_durable(&step.records, stop).await?;
            for record in &step.records {
                tracing::info!(task = record.task(), record = record_name(record), "recorded");
                self.outputs.record(record);
            }
        }
        for due in step.effects {
            match due.effect {
                Effect::Forget { task } => {
                    self.jobs.forget(task).await;
                    self.outputs.forget(&self.tools, task).await;
                    continue;
                }
                Effect::Cancel { task, kind } => {
                    tracing::info!(task, ?kind, "too late: stopping it");
                    self.jobs.cancel(task, kind);
                    continue;
                }
                _ => {}
            }
            self.jobs.start(due);
        }
        Ok(())
    }

    /// Tells the core before each event whether there is room for new promises: on disk, and in time, which a
    /// pause takes, and which nobody knows before speeds are measured. Whether there is again is looked at in
    /// each block: that takes the reserve up anew.
    async fn see_room(&mut self, event: &Event, stop: &mut Stop) -> Result<()> {
        if self.is_short && !matches!(event, Event::Finalized { .. }) {
            return Ok(());
        }
        let is_barred = self.is_unsure || self.tools.engines.pauses().bars_bids();
        let is_short = self.is_short_of_room() || is_barred;
        if is_short != self.is_short {
            self.is_short = is_short;
            self.step(Event::Room { is_short }, stop).await?;
        }
        Ok(())
    }

    /// Whether the journal is down to its reserve. Says so.
    fn is_short_of_room(&self) -> bool {
        let is_short = self.journal.is_short_of_room();
        let why = "no space left: it is down to its reserve, and nothing new is promised";
        self.tools.vitals.journal_works(is_short.then_some(why));
        is_short
    }

    /// Nothing may be done before this is through. A full disk is waited for, until we are told to stop: the
    /// chain's deadlines go on, but ending would not meet them either.
    async fn make_durable(&self, records: &[Record], stop: &mut Stop) -> Result<()> {
        let mut backoff = Backoff::new();
        loop {
            // Syncing takes milliseconds.
            match tokio::task::block_in_place(|| self.journal.append(records)) {
                Err(e @ JournalError::DiskFull { .. }) => {
                    tracing::error!(error = %e, "nothing goes on until there is room");
                    self.tools.vitals.journal_failed(&e);
                    tokio::select! {
                        () = backoff.wait() => {}
                        _ = stop.wait_for(|stop| *stop) => return Err(e.into()),
                    }
                }
                Err(e) => {
                    self.tools.vitals.journal_failed(&e);
                    return Err(e.into());
                }
                Ok(()) => {
                    self.is_short_of_room();
                    return Ok(());
                }
            }
        }
    }
}

fn log_event(event: &Event) {
    match event {
        Event::Finalized {
            block,
            clock,
            tasks,
            unread,
        } => tracing::debug!(block, clock, tasks = tasks.len(), ?unread, "finalised"),
        Event::Best { block, clock, tasks } => tracing::debug!(block, clock, tasks = tasks.len(), "best"),
        other => tracing::debug!(event = ?other, "event"),
    }
}

fn record_name(record: &Record) -> &'static str {
    match record {
        Record::BidMade { .. } => "bid made",
        Record::ResultMade { .. } => "result made",
        Record::CommitSubmitted { .. } => "result committed",
        Record::RevealSubmitted { .. } => "result revealed",
        Record::Finished { .. } => "finished",
        Record::AuditMade { .. } => "audit made",
        Record::AuditServed { .. } => "audit served",
        Record::AuditAnnounced { .. } => "audit announced",
        Record::AuditRevealed { .. } => "audit revealed",
        Record::MoveMade { .. } => "move made",
        Record::MoveSubmitted { .. } => "move played",
        Record::VoteMade { .. } => "answer for a committee made",
        Record::InputFetched { .. } => "input fetched",
        Record::InputMissed { .. } => "input missed",
        Record::InputDemandMade { .. } => "piece of an input to demand chosen",
        Record::LeavesKept { .. } | Record::ViewKept { .. } => "leaves of a trace kept",
        Record::ItemsAudited { .. } => "items audited",
        Record::AuditCompared { .. } => "audit compared",
        Record::ConfirmationChecked { .. } => "confirmation checked",
    }
}

#[cfg(test)]
mod tests;
