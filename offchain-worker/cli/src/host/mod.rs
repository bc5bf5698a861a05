//! The host loop of providers and verifiers: feeds a pure state machine of `surety-worker-core` with what happens, makes
//! its records durable, and carries out its effects.
//!
//! ```text
//!  finalised blocks ──┐                       ┌─> journal (durable first)
//!  jobs that ended  ──┼──> core.step(event) ──┤
//!  stop signal      ──┘                       └─> jobs: chain calls, fetches, computations
//! ```
//!
//! The loop itself never waits for the network or an engine; every effect is a job of its own, and core bounds how
//! many there are. Whatever a crash cuts off, the next start makes up for: the journal says what was promised,
//! finalised state what the chain has heard of it.

mod audits;
mod blocks;
mod cheat;
mod compute;
mod heartbeat;
mod jobs;
mod moves;
mod outputs;
mod retry;
mod slashes;
mod stream;
mod votes;

use std::sync::Arc;

use surety_chain_client::{AccountId, Chain, Signer};
use surety_journal::{Journal, JournalError};
use surety_network::DataPlane;
use surety_types::TaskId;
use surety_worker_core::{Effect, EffectKind, Event, Provider, Record, Step, Verifier};
use tokio::sync::{mpsc, watch};

pub use cheat::{disguise, swap, Cheat};
pub use compute::Engines;
pub use heartbeat::blocks_between as heartbeat_blocks;
pub use moves::Traces;

use crate::{args::CrashPoint, error::Result};
use jobs::Jobs;
use outputs::Outputs;
use retry::Backoff;

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
    /// Traces of disputes that are being played.
    pub traces: Traces,
    /// Test aid: where to abort.
    pub crash_at: Option<CrashPoint>,
    /// Test aid: what to do wrong.
    pub cheat: Option<Cheat>,
}

impl Tools {
    /// Ends the process as a power cut would, when this is where it was told to.
    fn crash_if_told_to(&self, point: CrashPoint, task: TaskId) {
        if self.crash_at == Some(point) {
            tracing::error!(task, "aborting, as --crash-at demands");
            std::process::abort();
        }
    }
}

/// What the loop drives.
pub trait Core: Send {
    /// Takes an event in.
    fn step(&mut self, now: u32, event: Event) -> Step;
}

impl Core for Provider {
    fn step(&mut self, now: u32, event: Event) -> Step {
        Provider::step(self, now, event)
    }
}

impl Core for Verifier {
    fn step(&mut self, now: u32, event: Event) -> Step {
        Verifier::step(self, now, event)
    }
}

/// What goes on beside the loop.
#[derive(Clone, Copy, Debug)]
pub enum Beside {
    /// A provider's signs of life.
    Heartbeat {
        /// Blocks between two of them.
        blocks: u32,
    },
    /// A verifier carries out slashes that have waited long enough.
    Slashes,
}

/// A provider or a verifier at work.
pub struct Host<C> {
    tools: Arc<Tools>,
    beside: Beside,
    core: C,
    journal: Arc<Journal>,
    jobs: Jobs,
    outputs: Outputs,
    block: u32,
}

impl<C: Core> Host<C> {
    /// A host for `core`, which has replayed `records`, everything that is in `journal`.
    pub fn new(tools: Tools, beside: Beside, core: C, journal: Arc<Journal>, records: &[Record]) -> Self {
        let tools = Arc::new(tools);
        Self {
            outputs: Outputs::from_records(records),
            jobs: Jobs::new(tools.clone()),
            tools,
            beside,
            core,
            journal,
            block: 0,
        }
    }

    /// Works until `stop` becomes true, then lets calls that are on their way to the chain arrive.
    ///
    /// # Errors
    /// When the journal cannot be written: nothing may be promised then.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<()> {
        self.outputs.restore(&*self.tools.plane).await;
        // One block ahead is enough: only the newest counts.
        let (sender, mut blocks) = mpsc::channel(1);
        let follower = tokio::spawn(blocks::follow(
            self.tools.chain.clone(),
            self.tools.stash.clone(),
            sender,
        ));
        let beside = match self.beside {
            Beside::Heartbeat { blocks } => tokio::spawn(heartbeat::beat(self.tools.clone(), blocks)),
            Beside::Slashes => tokio::spawn(slashes::carry_out(self.tools.clone())),
        };
        let result = loop {
            let event = tokio::select! {
                Some(event) = blocks.recv() => event,
                event = self.jobs.next(), if !self.jobs.is_empty() => match event {
                    Some(event) => event,
                    None => continue,
                },
                _ = stop.wait_for(|stop| *stop) => break Ok(()),
            };
            if let Err(e) = self.take(event).await {
                break Err(e);
            }
        };
        follower.abort();
        beside.abort();
        self.jobs.wind_down().await;
        result
    }

    /// One turn: step, records, effects.
    async fn take(&mut self, event: Event) -> Result<()> {
        if let Event::Finalised { block, tasks } = &event {
            self.block = self.block.max(*block);
            self.outputs.see(&self.tools, tasks).await;
            self.jobs.see(tasks);
        }
        if let Event::EffectDone {
            task,
            kind: EffectKind::Commit,
        } = &event
        {
            self.outputs.committed(&self.tools, *task).await;
        }
        log_event(&event);
        let step = self.core.step(self.block, event);
        if !step.records.is_empty() {
            self.make_durable(&step.records).await?;
            for record in &step.records {
                tracing::info!(task = record.task(), record = record_name(record), "recorded");
                self.outputs.record(record);
            }
            self.crash_after_records(&step.records);
        }
        for effect in step.effects {
            match effect {
                Effect::Forget { task } => {
                    self.jobs.forget(task).await;
                    self.outputs.forget(&self.tools, task).await;
                    continue;
                }
                Effect::FetchInput {
                    task, ref sources, ..
                } => self.outputs.client_is_at(task, sources),
                _ => {}
            }
            self.jobs.start(effect);
        }
        Ok(())
    }

    /// Nothing may be done before this is through. A full disk is waited for: the chain's deadlines go on, but stopping
    /// would not meet them either.
    async fn make_durable(&self, records: &[Record]) -> Result<()> {
        let mut backoff = Backoff::new();
        loop {
            // Syncing takes milliseconds.
            match tokio::task::block_in_place(|| self.journal.append(records)) {
                Err(e @ JournalError::DiskFull { .. }) => {
                    tracing::error!(error = %e, "nothing goes on until there is room");
                    backoff.wait().await;
                }
                other => return Ok(other?),
            }
        }
    }

    fn crash_after_records(&self, records: &[Record]) {
        for record in records {
            let point = match record {
                Record::ResultMade { .. } => CrashPoint::AfterJournalCommit,
                Record::AuditMade { .. } => CrashPoint::AfterAudit,
                Record::MoveMade { .. } => CrashPoint::AfterMove,
                _ => continue,
            };
            self.tools.crash_if_told_to(point, record.task());
        }
    }
}

fn log_event(event: &Event) {
    match event {
        Event::Finalised { block, tasks } => tracing::debug!(block, tasks = tasks.len(), "finalised"),
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
        Record::AuditAnnounced { .. } => "audit announced",
        Record::AuditRevealed { .. } => "audit revealed",
        Record::MoveMade { .. } => "move made",
        Record::MoveSubmitted { .. } => "move played",
        Record::VoteMade { .. } => "answer for a committee made",
        Record::InputMissed { .. } => "input missed",
        Record::InputDemandMade { .. } => "piece of an input to demand chosen",
    }
}

#[cfg(test)]
mod tests;
