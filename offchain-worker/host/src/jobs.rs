//! Effects under way.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use surety_chain_client::Balance;
use surety_network::PlaneError;
use surety_types::{BLOCK_SECONDS, ContentHash, TaskId, multiaddr::Endpoints};
use surety_worker_core::{BlockNumber, Due, Effect, EffectKind, Event, Failure, TaskSnapshot};
use tokio::task::{AbortHandle, Id, JoinSet};

use super::{Tools, effects, work::own_blob};

/// How long calls to the chain may take to arrive after the provider was told to stop.
const WIND_DOWN: Duration = Duration::from_secs(15);

/// Runs effects, and turns how they went into events.
pub(super) struct Jobs {
    tools: Arc<Tools>,
    running: JoinSet<Event>,
    /// Which effect a job carries out; needed when it panics, and then says nothing itself.
    effects: HashMap<Id, (TaskId, EffectKind, AbortHandle)>,
    /// Tasks whose inputs are pinned.
    inputs: BTreeMap<TaskId, Input>,
}

/// What a job is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub id: TaskId,
    pub kind: EffectKind,
    /// What is left until its deadline on the chain's clock, as it was when the job began.
    pub left: BlockNumber,
    /// When the job began.
    pub began: Instant,
    /// What is added to the fee of a call, in plancks.
    pub tip: Balance,
}

impl Task {
    /// What is left until its deadline now, and never less than a block: enough for a last attempt.
    pub(super) fn time_left(&self) -> Duration {
        let a_block = u64::from(BLOCK_SECONDS);
        let there_was = Duration::from_secs(u64::from(self.left).saturating_mul(a_block));
        let left = there_was.saturating_sub(self.began.elapsed());
        left.max(Duration::from_secs(a_block))
    }
}

struct Input {
    hash: ContentHash,
    is_pinned: bool,
    /// Where it came from: the client.
    sources: Endpoints,
}

impl Jobs {
    pub(super) fn new(tools: Arc<Tools>) -> Self {
        Self {
            tools,
            running: JoinSet::new(),
            effects: HashMap::new(),
            inputs: BTreeMap::new(),
        }
    }

    /// How many are under way.
    pub(super) fn running(&self) -> usize {
        self.effects.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// The event of the next job that ends; nothing when it had been forgotten.
    pub(super) async fn next(&mut self) -> Option<Event> {
        let event = match self.running.join_next_with_id().await? {
            Ok((id, event)) => {
                self.effects.remove(&id)?;
                event
            }
            Err(e) => {
                let (task, kind, _) = self.effects.remove(&e.id())?;
                tracing::error!(task, ?kind, error = %e, "a job failed unexpectedly");
                // Nobody else refused an offer: it may be made again.
                let failure = match kind.is_offer() {
                    true => Failure::Refused,
                    false => Failure::Failed,
                };
                failed(task, kind, failure)
            }
        };
        self.count(&event);
        if let Event::InputReady { task } = &event
            && let Some(input) = self.inputs.get_mut(task)
        {
            // Each fetch pins it, and it is let go of once.
            if input.is_pinned {
                self.tools.plane.release(input.hash).await;
            }
            input.is_pinned = true;
        }
        Some(event)
    }

    /// After a restart: keeps the inputs of tasks that are ours, where they are still here. Disputes are
    /// about them.
    pub(super) async fn restore(&mut self, ours: impl Iterator<Item = &TaskSnapshot>) {
        for snapshot in ours {
            let (hash, sources) = (snapshot.task.spec.input, snapshot.task.spec.sources.clone());
            if self.inputs.contains_key(&snapshot.id) {
                continue;
            }
            let blob = match own_blob(&self.tools, hash).await {
                Ok(blob) => blob,
                // It is fetched when it is needed.
                Err(PlaneError::NoSources(_)) => continue,
                Err(e) => {
                    tracing::warn!(task = snapshot.id, error = %e, "cannot read the input that was kept");
                    continue;
                }
            };
            match self.tools.plane.publish(blob).await {
                Ok(_) => {
                    let input = Input {
                        hash,
                        is_pinned: true,
                        sources,
                    };
                    self.inputs.insert(snapshot.id, input);
                }
                Err(e) => tracing::warn!(task = snapshot.id, error = %e, "cannot keep the input"),
            }
        }
    }

    fn count(&self, event: &Event) {
        let metrics = &self.tools.vitals.metrics;
        match event.ends() {
            Some((_, kind, Err(failure))) => metrics.effect_failed(kind, failure),
            Some((_, kind, Ok(()))) => metrics.effect_done(kind),
            None => {}
        }
    }

    /// Starts an effect.
    pub(super) fn start(&mut self, due: Due) {
        let Due { effect, left, urgent } = due;
        let (task, kind) = (effect.task(), effect.kind());
        let tip = match urgent && kind.is_call() {
            true => tip(self.tools.tip_max, left),
            false => 0,
        };
        tracing::info!(task, ?kind, tip, "starting");
        self.tools.vitals.metrics.effect_started(kind);
        if let Effect::FetchInput { hash, sources, .. } = &effect {
            let (hash, sources) = (*hash, sources.clone());
            let known = self.inputs.get(&task);
            let is_pinned = known.is_some_and(|known| known.is_pinned && known.hash == hash);
            let input = Input {
                hash,
                is_pinned,
                sources,
            };
            self.inputs.insert(task, input);
        }
        // Whatever is computed was fetched before, since the last start.
        let client = self.inputs.get(&task).map(|input| input.sources.clone());
        let (tools, client) = (self.tools.clone(), client.unwrap_or_default());
        let of = Task {
            id: task,
            kind,
            left,
            began: Instant::now(),
            tip,
        };
        let handle = self.running.spawn(effects::carry_out(tools, of, effect, client));
        self.effects.insert(handle.id(), (task, kind, handle));
    }

    /// Stops an effect that is under way, and says nothing of how it went.
    pub(super) fn cancel(&mut self, task: TaskId, kind: EffectKind) {
        self.stop(|of, other| of == task && other == kind);
    }

    /// Stops whatever is under way for a task, and lets go of its input.
    pub(super) async fn forget(&mut self, task: TaskId) {
        self.stop(|of, _| of == task);
        // Other tasks may have pinned the same input.
        if let Some(input) = self.inputs.remove(&task).filter(|input| input.is_pinned) {
            self.tools.plane.release(input.hash).await;
        }
        self.tools.traces.forget(task);
        for kept in self.tools.audits.forget(task) {
            self.tools.plane.release(kept).await;
        }
        // Its output is served as a blob from now on.
        self.tools.plane.close_stream(task).await;
    }

    /// An aborted job drops what it waits for: an engine stops at its next event, a peer is asked no further.
    fn stop(&mut self, which: impl Fn(TaskId, EffectKind) -> bool) {
        self.effects.retain(|_, (task, kind, handle)| {
            let stops = which(*task, *kind);
            if stops {
                handle.abort();
            }
            !stops
        });
    }

    /// Stops fetching and computing, and waits a while for calls that are on their way to the chain.
    pub(super) async fn wind_down(&mut self) {
        for (_, kind, handle) in self.effects.values() {
            if kind.is_heavy() {
                handle.abort();
            }
        }
        let all = async { while self.running.join_next().await.is_some() {} };
        if tokio::time::timeout(WIND_DOWN, all).await.is_err() {
            tracing::warn!("calls are still on their way to the chain; the next start sees to them");
        }
        self.running.abort_all();
    }
}

/// The nearer the deadline, the more: each attempt outbids the one before, whose fate may still be unknown.
fn tip(max: Balance, left: BlockNumber) -> Balance {
    max / Balance::from(left.clamp(1, 8))
}

/// A check found what it looked for.
pub(super) fn done(task: TaskId, kind: EffectKind) -> Event {
    Event::EffectDone {
        task,
        kind,
        block: None,
    }
}

pub(super) fn failed(task: TaskId, kind: EffectKind, failure: Failure) -> Event {
    Event::EffectFailed { task, kind, failure }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn began(seconds_ago: u64, left: BlockNumber) -> Task {
        Task {
            id: 1,
            kind: EffectKind::Fetch,
            left,
            began: Instant::now() - Duration::from_secs(seconds_ago),
            tip: 0,
        }
    }

    #[test]
    fn what_a_job_has_done_before_leaves_less_time_for_the_rest() {
        let seconds = |ago, left| began(ago, left).time_left().as_secs_f64().round() as u64;
        assert_eq!(seconds(0, 20), 40);
        assert_eq!(seconds(30, 20), 10);
        assert_eq!(seconds(90, 20), 2, "a last attempt");
    }

    #[test]
    fn tips_grow_as_the_deadline_comes_near_and_never_beyond_what_is_allowed() {
        let tips = [u32::MAX, 8, 4, 2, 1, 0].map(|left| tip(80, left));
        assert_eq!(tips, [10, 10, 20, 40, 80, 80]);
        assert_eq!(tip(0, 0), 0);
    }
}
