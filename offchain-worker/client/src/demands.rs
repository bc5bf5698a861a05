//! Having a provider show the output of an own task on the chain that it does not serve.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use surety_chain_client::{
    AccountId, BlockNumber, Call, Chain, ChainError, Signer, TaskInfo, Until, When, short,
};
use surety_types::{
    TaskId,
    task::RoundPhase,
    trust::{Content, ContentPart, DemandedParts},
};
use tokio::task::JoinHandle;

use crate::deliver::Wanted;

/// After a call: the best block shows by then what has come of it.
const PAUSE: Duration = Duration::from_secs(6);
/// Times that fetching has to fail first: a provider may be starting again.
const FAILURES_MIN: u32 = 3;

/// Parts that are demanded at once: 1 MiB, whose price of 1 SURE is on hold meanwhile.
const PARTS_AT_ONCE: u32 = 128;

/// Demands an output that cannot be had, some parts at a time, from the first on.
pub struct Demander {
    signer: Signer,
    /// When it was decided what the output is, on the chain's clock.
    decided_at: Option<BlockNumber>,
    failures: u32,
    /// Whom it is demanded of, and the first part that has not been.
    asked: Option<(AccountId, u32)>,
    sending: Option<JoinHandle<Result<(), String>>>,
    next: Instant,
}

impl Demander {
    /// Signs with `signer`, the task's client, who pays for what is shown.
    pub fn new(signer: Signer) -> Self {
        Self {
            signer,
            decided_at: None,
            failures: 0,
            asked: None,
            sending: None,
            next: Instant::now(),
        }
    }

    /// The output could not be had.
    pub fn note_failure(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// Whether a demand is under way.
    #[cfg(test)]
    pub(crate) fn is_sending(&self) -> bool {
        self.sending.as_ref().is_some_and(|job| !job.is_finished())
    }

    /// Demands what is next, once half of the time for that is over and nobody has served the output, and
    /// says how the demand before went. Waits for the chain's state alone.
    ///
    /// # Errors
    /// When that cannot be read.
    pub async fn see(
        &mut self,
        chain: &Arc<dyn Chain>,
        task: TaskId,
        info: &TaskInfo,
        wanted: &Wanted,
    ) -> Result<Option<String>, ChainError> {
        let said = match self.sending.take_if(|job| job.is_finished()) {
            Some(job) => Some(self.take(job.await.unwrap_or_else(|e| Err(e.to_string())))),
            None => None,
        };
        let phase = info.round.as_ref().map(|round| &round.phase);
        let (Some(RoundPhase::Challengeable { until, .. }), Some(_)) = (phase, wanted.hash) else {
            return Ok(said);
        };
        let is_ours = info.task.client == *self.signer.account();
        if !is_ours || self.sending.is_some() || Instant::now() < self.next {
            return Ok(said);
        }
        let clock = chain.clock(When::Best).await?;
        let decided_at = *self.decided_at.get_or_insert(clock);
        let left = until.saturating_sub(clock);
        let is_due = left <= until.saturating_sub(decided_at) / 2 && self.failures >= FAILURES_MIN;
        if left == 0 || !(is_due || self.asked.is_some()) {
            return Ok(said);
        }
        let Some(provider) = wanted.providers.first() else {
            return Ok(said);
        };
        let open = chain.demands(When::Best, task, provider).await?;
        if !open.iter().any(|demand| demand.demander == info.task.client) {
            self.start(chain.clone(), task, provider.clone());
        }
        Ok(said)
    }

    fn start(&mut self, chain: Arc<dyn Chain>, task: TaskId, provider: AccountId) {
        let known = self.asked.take().filter(|(of, _)| *of == provider);
        let first = known.map_or(0, |(_, first)| first);
        let next = first.saturating_add(PARTS_AT_ONCE);
        self.asked = Some((provider.clone(), next));
        let content = Content::Output;
        let parts = (first..next).map(|part| ContentPart { content, part });
        let call = Call::Demand {
            task,
            provider,
            parts: DemandedParts::truncate_from(parts.collect()),
            proof: None,
        };
        let signer = self.signer.clone();
        self.sending = Some(tokio::spawn(async move {
            // Final: a demand whose block was replaced looks like one that was met, and the parts after it
            // would be all that is ever shown.
            let included = chain.submit(&signer, call, Until::Finalized.into()).await;
            included.map(drop).map_err(|e| e.to_string())
        }));
    }

    /// What to say of a demand.
    fn take(&mut self, outcome: Result<(), String>) -> String {
        self.next = Instant::now() + PAUSE;
        let of = self.asked.as_ref().map_or_else(String::new, |(of, _)| short(of));
        match outcome {
            Ok(()) => format!("{of} does not serve the output, and has to show it on the chain"),
            Err(reason) => {
                // The same parts again. Demanding what has been shown costs nothing but the fee.
                self.asked = self
                    .asked
                    .take()
                    .map(|(of, next)| (of, next.saturating_sub(PARTS_AT_ONCE)));
                format!("the output could not be demanded of {of} on the chain: {reason}")
            }
        }
    }
}
