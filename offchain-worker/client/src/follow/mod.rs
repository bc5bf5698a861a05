//! Following a task to its end, and getting its output on the way.
//!
//! What is shown comes from the best block, so that it is shown soon. What is reported comes from finalised
//! state.

mod report;
mod steps;
mod story;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use surety_chain_client::{AccountId, Chain, ChainError, ErrorClass, TaskInfo, When, is_open};
use surety_engine::generation::Generation;
use surety_network::{DataPlane, Ticket};
use surety_types::{TaskId, model::Operation, task::TaskState};
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinHandle},
};

use crate::{
    deliver::{self, Delivery, Undelivered, decided, wanted},
    demands::Demander,
    error::{ClientError, Result},
    inputs::Supplier,
    statement,
    stream::{Patience, Reader},
    text::{self, ToText},
    transcript::{Screen, Transcript},
    words::reason_text,
    write_atomically,
};
pub use report::{Claim, Generated, Payment, Report, Times};
use steps::Steps;
pub use steps::posted_text;
pub use story::{Told, story};

/// Half a block: every block is seen.
const POLL: Duration = Duration::from_secs(1);

/// Between two attempts to fetch the output.
const DELIVERY_PAUSE: Duration = Duration::from_secs(2);

/// After settlement, the output is tried for this long.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(60);

/// A node may be restarted meanwhile. How often it is said that it is still away; and for how long it is
/// waited for when the task is over.
const NODE_PATIENCE: Duration = Duration::from_secs(300);

/// What is followed.
pub struct Follow<S> {
    /// The chain that the task is on.
    pub chain: Arc<dyn Chain>,
    /// Where inputs are served and outputs fetched.
    pub plane: Arc<dyn DataPlane>,
    /// Where steps, and text while it is made, are shown.
    pub screen: S,
    /// Where providers' statements are kept.
    pub home: PathBuf,
    /// Task id.
    pub task: TaskId,
    /// What the task asks for.
    pub operation: Operation,
    /// How long ago the task was posted, where that is known.
    pub age: Option<Duration>,
    /// Where the output goes; none: vectors are not fetched, and text is only printed.
    pub output_path: Option<PathBuf>,
    /// Print generated text while it is made.
    pub show_tokens: bool,
    /// Leave when the result is decided and here, and not when the task is settled.
    pub leave_at_result: bool,
    /// Answers demands for the input, where it is ours.
    pub supplier: Option<Supplier>,
    /// Has the output shown on the chain that nobody serves, where the task is ours.
    pub demander: Option<Demander>,
    /// Shown to providers who do not know this peer as the client.
    pub ticket: Option<Ticket>,
    /// What a generation's ids become text by; without it, ids are shown.
    pub text: Option<Arc<dyn ToText>>,
}

/// How it ended.
#[derive(Debug)]
pub struct Followed {
    /// What came of it.
    pub report: Report,
    /// Why there is no result, where there is none.
    pub failure: Option<String>,
}

impl<S: Screen + Clone + 'static> Follow<S> {
    /// Shows each step until the task is over.
    ///
    /// # Errors
    /// When the result cannot be had, or nobody knows the task.
    pub async fn until_over(self) -> Result<Followed> {
        let mut run = Run::new(self);
        let report = run.until_over().await?;
        let failure = run.failure.take();
        Ok(Followed { report, failure })
    }
}

struct Run<S> {
    follow: Follow<S>,
    /// Of a generation: what is streamed, and who streams.
    transcript: Arc<Mutex<Transcript>>,
    members: watch::Sender<Vec<AccountId>>,
    reading: Option<AbortHandle>,
    /// When the task was posted, if that is known.
    posted: Option<Instant>,
    steps: Steps,
    block_seen: u32,
    unreachable_since: Option<Instant>,
    /// Whether the task was there, and since when it is not.
    was_seen: bool,
    missing_since: Option<Instant>,
    fetching: Option<JoinHandle<std::result::Result<Delivery, Undelivered>>>,
    next_fetch: Instant,
    last_attempts: String,
    delivery: Option<Delivery>,
    times: Times,
    over_since: Option<Instant>,
    patience: Duration,
    failure: Option<String>,
}

impl<S> Drop for Run<S> {
    fn drop(&mut self) {
        if let Some(reading) = &self.reading {
            reading.abort();
        }
    }
}

impl<S: Screen + Clone + 'static> Run<S> {
    fn new(follow: Follow<S>) -> Self {
        Self {
            posted: follow.age.and_then(|age| Instant::now().checked_sub(age)),
            transcript: Arc::new(Mutex::new(Transcript::new(
                follow.screen.clone(),
                follow.show_tokens,
                follow.text.clone(),
            ))),
            members: watch::Sender::default(),
            reading: None,
            follow,
            steps: Steps::default(),
            block_seen: 0,
            unreachable_since: None,
            was_seen: false,
            missing_since: None,
            fetching: None,
            next_fetch: Instant::now(),
            last_attempts: String::new(),
            delivery: None,
            times: Times::default(),
            over_since: None,
            patience: DELIVERY_PATIENCE,
            failure: None,
        }
    }

    async fn until_over(&mut self) -> Result<Report> {
        loop {
            match self.look().await {
                Ok(Some(report)) => return Ok(report),
                Ok(None) => self.unreachable_since = None,
                Err(ClientError::Chain(e)) => self.bear(e)?,
                Err(e) => return Err(e),
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Puts up with an unreachable node: for as long as the task is open, as providers may need its input.
    fn bear(&mut self, error: ChainError) -> Result<()> {
        // The task goes on: only what never gets better is a reason to leave it.
        if error.class() != ErrorClass::Refused {
            return Err(error.into());
        }
        let since = *self.unreachable_since.get_or_insert_with(|| {
            self.follow.screen.step(&format!("{error}; trying again"));
            Instant::now()
        });
        if since.elapsed() <= NODE_PATIENCE {
            return Ok(());
        }
        if self.over_since.is_some() {
            return Err(error.into());
        }
        let still = format!("still no node: {error}; going on, as the task does");
        self.follow.screen.step(&still);
        self.unreachable_since = Some(Instant::now());
        Ok(())
    }

    async fn look(&mut self) -> Result<Option<Report>> {
        let (chain, task) = (self.follow.chain.clone(), self.follow.task);
        let best = chain.block(When::Best).await?;
        let clock = chain.clock(When::Best).await?;
        if best.number > self.block_seen {
            self.block_seen = best.number;
            // Only said on the way: a block that is gone already is no loss.
            if let Ok(events) = chain.events(best.hash).await {
                let texts = self.steps.events(task, &events, clock);
                self.say(&texts);
            }
        }
        let Some(info) = chain.task(When::Best, task).await? else {
            return self.miss();
        };
        (self.was_seen, self.missing_since) = (true, None);
        let texts = self.steps.state(&info, clock);
        self.say(&texts);
        self.see_to_input(&info).await?;
        self.see_to_stream(&info);
        if self.fetches() {
            self.see_to_delivery(&info).await?;
        }

        let block = chain.block(When::Finalized).await?;
        let Some(info) = chain.task(When::At(block.hash), task).await? else {
            return Ok(None);
        };
        match &info.task.state {
            TaskState::Settled { claim, .. } => {
                let delivered = self.delivery.as_ref().is_some_and(|d| d.hash == claim.output);
                self.times.settled = self.times.settled.or_else(|| self.seconds());
                if self.fetches() && !delivered {
                    return self.wait_for_delivery();
                }
            }
            TaskState::Failed { reason, .. } => self.failure = Some(self.failure_text(reason_text(*reason))),
            TaskState::Cancelled { .. } => self.failure = Some("it was cancelled".into()),
            // Whoever agreed has the input: from then on its client owes nobody anything.
            _ if self.follow.leave_at_result && self.has_decided(&info) => {}
            _ => return Ok(None),
        }
        if !is_open(&info.task) {
            self.times.settled = self.times.settled.or_else(|| self.seconds());
        }
        let delivery = self.delivery.as_ref().filter(|_| self.failure.is_none());
        let path = self.follow.output_path.as_deref();
        let report = Report::new(task, &info, block.number, delivery, path, self.times);
        let prompt_tokens = info.task.spec.work().prompt_tokens();
        report
            .map(|report| self.with_generation(report, prompt_tokens))
            .transpose()
    }

    /// Whether the chain has decided, on what is here.
    fn has_decided(&self, info: &TaskInfo) -> bool {
        let delivered = self.delivery.as_ref().map(|delivery| delivery.hash);
        decided(info).is_some_and(|(claim, _)| !self.fetches() || delivered == Some(claim.output))
    }

    /// Whether the output is fetched at all.
    fn fetches(&self) -> bool {
        self.follow.operation == Operation::Generate || self.follow.output_path.is_some()
    }

    /// The best block does not have the task. It was there: the block that had it was replaced, and another
    /// will have it.
    fn miss(&mut self) -> Result<Option<Report>> {
        let since = *self.missing_since.get_or_insert_with(Instant::now);
        if self.was_seen && since.elapsed() <= NODE_PATIENCE {
            return Ok(None);
        }
        Err(ClientError::UnknownTask(self.follow.task))
    }

    /// Shows what is demanded of the input.
    async fn see_to_input(&mut self, info: &TaskInfo) -> Result<()> {
        let follow = &mut self.follow;
        if let Some(supplier) = &mut follow.supplier {
            let said = supplier
                .see(&follow.chain, &follow.plane, follow.task, info)
                .await;
            // What fails every few seconds is said once.
            let texts = self.steps.new_ones(said.into_iter().collect());
            self.say(&texts);
        }
        Ok(())
    }

    /// Starts reading what providers stream, and tells the reader who they are.
    fn see_to_stream(&mut self, info: &TaskInfo) {
        let Some(round) = info
            .round
            .as_ref()
            .filter(|_| self.follow.operation == Operation::Generate)
        else {
            return;
        };
        let members: Vec<AccountId> = round.members.iter().map(|m| m.provider.clone()).collect();
        self.members.send_if_modified(|known| {
            let changed = *known != members;
            *known = members;
            changed
        });
        if self.reading.is_none() {
            let reader = Reader {
                chain: self.follow.chain.clone(),
                plane: self.follow.plane.clone(),
                task: self.follow.task,
                tokens_max: usize::try_from(info.task.spec.units_max).unwrap_or(usize::MAX),
                posted: self.posted,
                members: self.members.subscribe(),
                transcript: self.transcript.clone(),
                patience: Patience::default(),
            };
            self.reading = Some(tokio::spawn(reader.read()).abort_handle());
        }
    }

    /// Compares what was settled with what was streamed, and shows it.
    fn with_generation(&mut self, mut report: Report, prompt_tokens: u32) -> Result<Report> {
        self.stop_reading();
        let delivery = self.delivery.as_ref().filter(|_| self.failure.is_none());
        if let Some(delivery) = delivery.filter(|_| self.follow.operation == Operation::Generate) {
            let made = Generation::decode(&delivery.bytes)?;
            let made = text::Generated::new(made, prompt_tokens, self.follow.text.as_deref());
            let mut transcript = self.transcript.lock().unwrap_or_else(PoisonError::into_inner);
            let streamed = transcript.settle(&made);
            report.generation = Some(Generated { made, streamed });
        }
        Ok(report)
    }

    fn stop_reading(&self) {
        if let Some(reading) = &self.reading {
            reading.abort();
        }
    }

    /// Why there is no result, with what providers say of it.
    fn failure_text(&self, reason: &str) -> String {
        let transcript = self.transcript.lock().unwrap_or_else(PoisonError::into_inner);
        match transcript.reasons() {
            Some(said) => format!("{reason} ({said})"),
            None => reason.into(),
        }
    }

    fn wait_for_delivery(&mut self) -> Result<Option<Report>> {
        let since = *self.over_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.patience {
            return Err(ClientError::Undelivered {
                task: self.follow.task,
                attempts: std::mem::take(&mut self.last_attempts),
            });
        }
        Ok(None)
    }

    /// Starts, finishes, or repeats the fetching of the output. Never waits for a peer.
    async fn see_to_delivery(&mut self, info: &TaskInfo) -> Result<()> {
        let wanted = wanted(info);
        if let Some(round) = &info.round {
            let (home, genesis) = (&self.follow.home, self.follow.chain.info().genesis);
            let texts = statement::contradictions(home, &genesis, self.follow.task, round);
            let texts = self.steps.new_ones(texts);
            self.say(&texts);
        }
        if let Some(job) = self.fetching.take_if(|job| job.is_finished()) {
            match job.await.map_err(|e| ClientError::Internal(e.to_string()))? {
                Ok(delivery) => self.take_delivery(delivery)?,
                Err(undelivered) => {
                    self.last_attempts = undelivered.attempts;
                    let texts = self.steps.new_ones(undelivered.warning.into_iter().collect());
                    self.say(&texts);
                    if let Some(demander) = &mut self.follow.demander {
                        demander.note_failure();
                    }
                }
            }
            self.next_fetch = Instant::now() + DELIVERY_PAUSE;
        }
        if let (Some(delivery), Some(decided)) = (&self.delivery, wanted.hash)
            && delivery.hash != decided
        {
            let text = format!(
                "the output from {} is not what the majority revealed: fetching it again",
                delivery.from
            );
            self.follow.screen.step(&text);
            self.delivery = None;
            self.times.result = None;
            if let Some(path) = &self.follow.output_path {
                // Gone already is as good: it must not be taken for the result.
                std::fs::remove_file(path).ok();
            }
        }
        if let Some(demander) = self.follow.demander.as_mut().filter(|_| self.delivery.is_none()) {
            let said = demander
                .see(&self.follow.chain, self.follow.task, info, &wanted)
                .await?;
            let texts = self.steps.new_ones(said.into_iter().collect());
            self.say(&texts);
        }
        let idle = self.delivery.is_none() && self.fetching.is_none();
        if idle && !wanted.providers.is_empty() && Instant::now() >= self.next_fetch {
            let (chain, plane) = (self.follow.chain.clone(), self.follow.plane.clone());
            let (task, home) = (self.follow.task, self.follow.home.clone());
            let ticket = self.follow.ticket.clone();
            self.fetching = Some(tokio::spawn(async move {
                deliver::fetch(&*chain, &*plane, &home, task, &wanted, ticket.as_ref()).await
            }));
        }
        Ok(())
    }

    fn take_delivery(&mut self, delivery: Delivery) -> Result<()> {
        let path = self.follow.output_path.as_deref();
        if let Some(path) = path {
            write_atomically(path, &delivery.bytes)?;
        }
        self.times.result = self.seconds();
        let after = self.times.result.map(|s| format!(" after {s:.1} s"));
        let text = format!(
            "output received from {}{}: {:?}{}",
            delivery.from,
            after.unwrap_or_default(),
            delivery.hash,
            path.map_or_else(String::new, |path| format!(", in {}", path.display()))
        );
        self.follow.screen.step(&text);
        self.delivery = Some(delivery);
        Ok(())
    }

    fn seconds(&self) -> Option<f64> {
        let seconds = self.posted?.elapsed().as_secs_f64();
        Some((seconds * 1000.0).round() / 1000.0)
    }

    fn say(&self, texts: &[String]) {
        for text in texts {
            self.follow.screen.step(text);
        }
    }
}

#[cfg(test)]
mod tests;
