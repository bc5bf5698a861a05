//! The one task that decides: by the best block what to compute and to commit to, by the last final one what
//! to show ([`shows`]).

mod alone;
mod calls;
mod holds;
mod shows;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use sp_core::H256;
use surety_chain_client::{BlockNumber, BlockRef, ChainError, GpuRound, When};
use surety_gpu_proofs::{Openings, Plan, RoundStage, Run, seed};
use tokio::{
    sync::{Semaphore, watch},
    task::{self, JoinError, JoinSet, spawn_blocking},
};

use alone::{alone, memory};
use calls::Which;
use shows::{Showing, Standing, standing};

use crate::{
    Hold, Parts,
    journal::{Journal, Key, Promise},
    metrics::Outcome,
    runs::{self, Trouble},
};

/// Per cent of the window that are left when a run ends: for the commitment's way into a block.
const LEFT: u64 = 13;
/// Per cent of the window that there have to be for a run to begin.
const WORTHWHILE: u64 = 20;
/// How old a block is when it is seen, in milliseconds: at most, by a clock that goes right; and where none
/// does.
const AGE_MAX_MS: u64 = 6_000;
const AGE_MS: u64 = 1_000;
/// How long a trial may take.
const TRIAL: Duration = Duration::from_secs(10);

/// What the machine is at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    Trial,
    Make(Key),
    Show(Key),
}

struct Work {
    task: Task,
    stop: Arc<AtomicBool>,
}

impl Drop for Work {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// What comes back.
enum Back {
    Tried(Result<u64, Trouble>),
    Made(Key, u64, Result<(Run, u64), Trouble>),
    Shown(Key, H256, Result<(Run, Openings), Trouble>),
    Sent(Key, Which, Result<BlockNumber, ChainError>),
}

/// What comes next.
enum Next {
    Block(Option<BlockRef>),
    Back(Result<Back, JoinError>),
    Stop,
}

pub(crate) struct Desk {
    parts: Arc<Parts>,
    journal: Journal,
    block: Option<BlockRef>,
    /// Of runs that were promised, since the start.
    runs: BTreeMap<Key, Run>,
    /// About how fast the machine is, in operations a second.
    speed: Option<u64>,
    /// No trial is begun before a block of this height.
    try_from: BlockNumber,
    /// While the machine is needed for a run, or will be.
    held: Option<Hold>,
    work: Option<Work>,
    /// Which of those that are away it is.
    work_id: Option<task::Id>,
    /// Held by the thread that computes, whatever became of whoever waits for it.
    place: Arc<Semaphore>,
    away: JoinSet<Back>,
    sending: Option<Key>,
    /// Nothing is sent before a block of this height: those before it cannot show what was sent last.
    send_from: BlockNumber,
    refusals: BTreeMap<(Key, Which), u32>,
    /// The round that is running, and when its window ends.
    window: Option<(Key, Instant)>,
    /// The last one that is not taken part in.
    skipped: Option<Key>,
    showing: BTreeMap<Key, Showing>,
    /// The round of the last final block that was looked at.
    settled: Option<Option<u32>>,
}

impl Desk {
    pub(crate) fn new(parts: Arc<Parts>, journal: Journal) -> Self {
        Self {
            parts,
            journal,
            block: None,
            runs: BTreeMap::new(),
            speed: None,
            try_from: 0,
            held: None,
            work: None,
            work_id: None,
            place: Arc::new(Semaphore::new(1)),
            away: JoinSet::new(),
            sending: None,
            send_from: 0,
            refusals: BTreeMap::new(),
            window: None,
            skipped: None,
            showing: BTreeMap::new(),
            settled: None,
        }
    }

    /// Goes on until it is to stop, or there are no more blocks.
    pub(crate) async fn run(
        mut self,
        mut newest: watch::Receiver<Option<BlockRef>>,
        mut stop: watch::Receiver<bool>,
    ) {
        loop {
            let next = tokio::select! {
                changed = newest.changed() => match changed {
                    Ok(()) => Next::Block(*newest.borrow_and_update()),
                    Err(_) => Next::Stop,
                },
                Some(back) = self.away.join_next() => Next::Back(back),
                _ = stop.wait_for(|stop| *stop) => Next::Stop,
            };
            match next {
                Next::Block(block) => self.block = block.or(self.block),
                Next::Back(Ok(back)) => self.take(back).await,
                Next::Back(Err(error)) => {
                    tracing::error!(%error, "a part of the benchmark has ended by a defect");
                    match self.work_id == Some(error.id()) {
                        true => self.work = None,
                        false => self.sending = None,
                    }
                }
                Next::Stop => break,
            }
            self.see().await;
        }
        // Threads end what they are at.
        self.work = None;
        self.away.shutdown().await;
    }

    async fn see(&mut self) {
        let Some(block) = self.block else { return };
        match self.look(block).await {
            Ok(()) => {}
            // There is a newer one already, or there is no benchmark yet.
            Err(error @ (ChainError::Pruned { .. } | ChainError::Outgrown { .. })) => {
                tracing::debug!(%error, "a block says nothing of the benchmark");
            }
            Err(error) => {
                tracing::warn!(%error, "the benchmark cannot be read, trying again with the next block");
            }
        }
    }

    async fn look(&mut self, block: BlockRef) -> Result<(), ChainError> {
        let best = When::At(block.hash);
        let parts = self.parts.clone();
        let round = parts.rounds.gpu_round(best).await?;
        self.hold(round.as_ref());
        self.compute(best, round).await?;
        let finalized = parts.chain.block(When::Finalized).await?;
        let last = When::At(finalized.hash);
        let settled = parts.rounds.gpu_round(last).await?;
        let number = settled.map(|round| round.number);
        if self.settled != Some(number) {
            let measured = parts.rounds.measured(last, &parts.stash).await?;
            parts.metrics.measured(measured.as_ref());
            self.settled = Some(number);
        }
        for promise in self.journal.promises().to_vec() {
            match standing(&promise, settled.as_ref(), round.as_ref()) {
                Standing::Waits => {}
                // A node that is behind knows nothing of it yet.
                Standing::Over if finalized.number <= promise.block => {}
                Standing::Over => self.over(&promise, last).await?,
                Standing::OnAnotherFork => self.forget(promise.key()).await,
                Standing::Opening(drawn) => {
                    let run = parts.rounds.gpu_run(last, &parts.stash).await?;
                    self.show(&promise, run, drawn, (last, best)).await?;
                }
            }
        }
        Ok(())
    }

    /// By the best block: makes a run where one is asked for, and commits to it.
    async fn compute(&mut self, best: When, round: Option<GpuRound>) -> Result<(), ChainError> {
        let running = round.and_then(|round| match round.stage {
            RoundStage::Running { entropy, since_ms } => Some(((round.number, entropy), since_ms)),
            _ => None,
        });
        if let Some(Work {
            task: Task::Make(key),
            stop,
        }) = &self.work
            && running.is_none_or(|(running, _)| running != *key)
            && !stop.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(round = key.0, "its run is stopped: no block asks for it any more");
            // On another fork it is made anew.
            if running.is_none() {
                self.parts.metrics.count(Outcome::Skipped);
            }
        }
        let Some(round) = round else { return Ok(()) };
        if matches!(round.stage, RoundStage::Seeding { .. }) {
            self.start_trial();
        }
        let Some((key, since_ms)) = running else {
            return Ok(());
        };
        let ends = self.ends(key, since_ms, &round);
        if let Some(promise) = self.journal.get(key).cloned() {
            let may = self.may_send(key, Which::Commitment) && Instant::now() < ends;
            if may
                && self
                    .parts
                    .rounds
                    .gpu_run(best, &self.parts.stash)
                    .await?
                    .is_none()
            {
                self.commit(&promise, ends);
            }
        } else if self.parts.takes_part && self.skipped != Some(key) && self.work.is_none() {
            self.start_run(key, round.window_ms, ends);
        }
        Ok(())
    }

    /// When the window of a round ends on this machine's clock, by the first block that was seen of it. How
    /// old that was is known only where the clock goes right.
    fn ends(&mut self, key: Key, since_ms: u64, round: &GpuRound) -> Instant {
        if let Some((known, ends)) = self.window
            && known == key
        {
            return ends;
        }
        let until = since_ms.saturating_add(round.window_ms);
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let age = u64::try_from(clock.as_millis())
            .ok()
            .and_then(|clock| clock.checked_sub(round.time_ms))
            .filter(|age| *age <= AGE_MAX_MS)
            .unwrap_or(AGE_MS);
        let left = Duration::from_millis(until.saturating_sub(round.time_ms).saturating_sub(age));
        let now = Instant::now();
        let ends = now.checked_add(left).unwrap_or(now);
        self.window = Some((key, ends));
        ends
    }

    fn start(&mut self, task: Task) -> (Arc<Parts>, Arc<Semaphore>, Arc<AtomicBool>) {
        let stop = Arc::<AtomicBool>::default();
        let flag = stop.clone();
        self.work = Some(Work { task, stop });
        (self.parts.clone(), self.place.clone(), flag)
    }

    fn start_trial(&mut self) {
        let is_due = self.block.is_some_and(|block| block.number >= self.try_from);
        if !self.parts.takes_part || !is_due || self.speed.is_some() || self.work.is_some() {
            return;
        }
        let (parts, place, stop) = self.start(Task::Trial);
        let work = async move {
            let tried = alone(&parts, place, TRIAL, move |parts| {
                let (mut memory, rows_max) = memory(parts, &stop)?;
                runs::trial((&mut memory, rows_max), &stop)
            });
            Back::Tried(tried.await)
        };
        self.work_id = Some(self.away.spawn(work).id());
    }

    fn start_run(&mut self, key: Key, window_ms: u64, ends: Instant) {
        let part = |percent: u64| Duration::from_millis(window_ms.saturating_mul(percent) / 100);
        let now = Instant::now();
        let until = ends.checked_sub(part(LEFT)).unwrap_or(now);
        let time = until.saturating_duration_since(now);
        if time < part(WORTHWHILE) {
            let why = Trouble::NoPause("too little of its time was left when it was seen".into());
            return self.skip(key, &why);
        }
        tracing::info!(
            round = key.0,
            seconds = time.as_secs(),
            "making a run for the benchmark"
        );
        let ((parts, place, stop), known) = (self.start(Task::Make(key)), self.speed);
        let seed = seed(&key.1, key.0, &parts.stash);
        let work = async move {
            let made = alone(&parts, place, time, move |parts| {
                let (mut memory, rows_max) = memory(parts, &stop)?;
                let speed = known.map_or_else(|| runs::trial((&mut memory, rows_max), &stop), Ok)?;
                runs::make((memory, rows_max), (&seed, speed), until, &stop)
            });
            Back::Made(key, window_ms, made.await)
        };
        self.work_id = Some(self.away.spawn(work).id());
    }

    async fn take(&mut self, back: Back) {
        match back {
            Back::Tried(tried) => {
                self.work = None;
                match tried {
                    Ok(speed) => self.note_speed(speed),
                    Err(error) => {
                        self.try_from = self.next_block();
                        tracing::warn!(%error, "this machine's speed is not known yet");
                    }
                }
            }
            Back::Made(key, window_ms, made) => {
                self.work = None;
                match made {
                    Ok((run, speed)) => {
                        self.note_speed(speed);
                        self.promise(key, window_ms, run).await;
                    }
                    // Where a block asks for it again, it is made again.
                    Err(Trouble::Stopped) => {}
                    Err(trouble) => self.skip(key, &trouble),
                }
            }
            Back::Shown(key, samples, shown) => self.take_shown(key, samples, shown),
            Back::Sent(key, which, sent) => {
                self.sending = None;
                let next = self.next_block();
                self.send_from = sent.as_ref().map_or(next, |included| *included);
                match sent {
                    Ok(block) => tracing::info!(round = key.0, block, "the {which} is in a block"),
                    Err(error) => self.refused(key, which, &error),
                }
            }
        }
    }

    /// The height of the first block that has not been seen.
    fn next_block(&self) -> BlockNumber {
        self.block.map_or(0, |block| block.number.saturating_add(1))
    }

    fn note_speed(&mut self, speed: u64) {
        let giga_operations = speed / 1_000_000_000;
        tracing::info!(giga_operations, "operations a second, while it was computing");
        self.speed = Some(speed);
    }

    fn skip(&mut self, key: Key, why: &Trouble) {
        self.skipped = Some(key);
        let outcome = match why.is_fault() {
            true => {
                tracing::error!(round = key.0, error = %why, "nothing is committed to in this round of the benchmark");
                Outcome::Fault
            }
            false => {
                tracing::warn!(round = key.0, reason = %why, "this round of the benchmark is passed over");
                Outcome::Skipped
            }
        };
        self.parts.metrics.count(outcome);
    }

    /// Nothing is sent before it is on disk.
    async fn promise(&mut self, key: Key, window_ms: u64, run: Run) {
        let (round, entropy) = key;
        let promise = Promise {
            genesis: self.parts.chain.info().genesis,
            provider: self.parts.stash.clone(),
            round,
            entropy,
            plan: run.job().plan(),
            root: *run.root(),
            window_ms,
            block: self.block.map_or(0, |block| block.number),
        };
        let Plan { rows, layers } = promise.plan;
        match self.write(self.journal.with(promise)).await {
            Ok(()) => {
                tracing::info!(round, rows, layers, "made a run for the benchmark");
                self.runs.insert(key, run);
                self.runs.retain(|key, _| self.journal.get(*key).is_some());
            }
            Err(error) => self.skip(
                key,
                &Trouble::NoPause(format!("it cannot be written down: {error}")),
            ),
        }
    }

    async fn write(&mut self, journal: Journal) -> std::io::Result<()> {
        let written = journal.clone();
        spawn_blocking(move || written.write())
            .await
            .map_err(std::io::Error::other)??;
        self.journal = journal;
        Ok(())
    }

    async fn forget(&mut self, key: Key) {
        self.stop_show(key);
        if let Err(error) = self.write(self.journal.without(key)).await {
            // What is over is found to be that again.
            tracing::warn!(%error, "the journal of the benchmark cannot be written");
            self.journal = self.journal.without(key);
        }
        self.runs.remove(&key);
        self.showing.remove(&key);
        self.refusals.retain(|(of, _), _| *of != key);
    }

    async fn end(&mut self, key: Key, outcome: Outcome) {
        match outcome {
            Outcome::Passed => tracing::info!(round = key.0, "this round of the benchmark is passed"),
            _ => tracing::warn!(round = key.0, ?outcome, "this round of the benchmark is missed"),
        }
        self.parts.metrics.count(outcome);
        self.forget(key).await;
    }
}
