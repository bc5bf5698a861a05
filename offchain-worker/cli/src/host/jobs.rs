//! Effects under way.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use surety_chain_client::{AccountId, Call, ChainError, Until};
use surety_engine::Job;
use surety_network::{Bytes, PlaneError};
use surety_types::{model::Operation, multiaddr::Endpoints, task::ResultClaim, ContentHash, ModelId, TaskId};
use surety_worker_core::{Effect, EffectKind, Event, TaskSnapshot};
use tokio::task::{AbortHandle, Id, JoinSet};

use super::{
    audits,
    cheat::{self, Cheat},
    moves, stream, votes, Tools,
};

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
    /// Test aid: whether a right result was challenged.
    has_challenged: bool,
}

/// What a job is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub id: TaskId,
    pub kind: EffectKind,
}

struct Input {
    hash: ContentHash,
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
            has_challenged: false,
        }
    }

    /// Test aid: challenges a right result, once.
    pub(super) fn see(&mut self, tasks: &[TaskSnapshot]) {
        if self.tools.cheat != Some(Cheat::FalseChallenge) || self.has_challenged {
            return;
        }
        if let Some(call) = cheat::challengeable(tasks, &self.tools.stash) {
            self.has_challenged = true;
            let tools = self.tools.clone();
            let of = Task {
                id: tasks.first().map_or(0, |seen| seen.id),
                kind: EffectKind::Forget,
            };
            self.running.spawn(async move { submit(&tools, of, call).await });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// The event of the next job that ends; nothing when it had been forgotten.
    pub(super) async fn next(&mut self) -> Option<Event> {
        match self.running.join_next_with_id().await? {
            Ok((id, event)) => {
                self.effects.remove(&id)?;
                if let Event::InputReady { task } = event {
                    tracing::info!(task, "input is here");
                }
                Some(event)
            }
            Err(e) => {
                let (task, kind, _) = self.effects.remove(&e.id())?;
                tracing::error!(task, ?kind, error = %e, "a job failed unexpectedly");
                Some(failed(task, kind, true))
            }
        }
    }

    /// Starts an effect.
    pub(super) fn start(&mut self, effect: Effect) {
        let (task, kind) = (effect.task(), effect.kind());
        tracing::info!(task, ?kind, "starting");
        if let Effect::FetchInput { hash, sources, .. } = &effect {
            let (hash, sources) = (*hash, sources.clone());
            self.inputs.insert(task, Input { hash, sources });
        }
        // Whatever is computed was fetched before, since the last start.
        let client = self.inputs.get(&task).map(|input| input.sources.clone());
        let tools = self.tools.clone();
        let handle = self
            .running
            .spawn(carry_out(tools, effect, client.unwrap_or_default()));
        self.effects.insert(handle.id(), (task, kind, handle));
    }

    /// Stops whatever is under way for a task, and lets go of its input.
    pub(super) async fn forget(&mut self, task: TaskId) {
        self.effects.retain(|_, (of, _, handle)| {
            if *of == task {
                handle.abort();
            }
            *of != task
        });
        if let Some(input) = self.inputs.remove(&task) {
            self.tools.plane.release(input.hash).await;
        }
        // Its output is served as a blob from now on.
        self.tools.plane.close_stream(task).await;
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

pub(super) fn failed(task: TaskId, kind: EffectKind, retryable: bool) -> Event {
    match kind {
        EffectKind::Fetch => Event::InputFailed { task, retryable },
        EffectKind::Compute => Event::ComputeFailed { task, retryable },
        kind => Event::EffectFailed {
            task,
            kind,
            retryable,
        },
    }
}

async fn carry_out(tools: Arc<Tools>, effect: Effect, client: Endpoints) -> Event {
    let (id, kind) = (effect.task(), effect.kind());
    let (of, tools) = (Task { id, kind }, &*tools);
    if tools.cheat.is_some_and(|cheat| cheat.keeps_silent(kind)) {
        tracing::error!(task = id, ?kind, "left out, as --cheat demands");
        return failed(id, kind, false);
    }
    match effect {
        Effect::FetchInput {
            task,
            hash,
            bytes,
            sources,
        } => fetch(tools, task, hash, bytes, &sources).await,
        Effect::Compute {
            task,
            model,
            operation,
            input,
            units_max,
        } => {
            let job = Work {
                model,
                operation,
                input,
                units_max,
                client,
            };
            compute(tools, task, job).await
        }
        Effect::SubmitSupply { output, segment, .. } => audits::supply(tools, of, output, segment).await,
        Effect::Draw {
            input,
            verifier_stake,
        } => audits::draw(tools, of, input, verifier_stake).await,
        Effect::Audit { provider, spec, .. } => audits::audit(tools, of, provider, spec).await,
        Effect::CheckData { provider, output, .. } => audits::check_data(tools, of, provider, output).await,
        Effect::ComputeMove {
            dispute,
            record,
            side,
            spec,
        } => moves::find(tools, dispute, *record, side, spec).await,
        Effect::DrawSeat {
            input,
            verifier_stake,
            ..
        } => votes::draw(tools, of, input, verifier_stake).await,
        Effect::ComputeVote {
            dispute,
            record,
            spec,
        } => votes::compute(tools, dispute, *record, spec).await,
        Effect::SubmitCommit { task, .. } if tools.cheat == Some(Cheat::CopiedResult) => {
            match cheat::others_commitment(tools, task).await {
                Some(commitment) => submit(tools, of, Call::Commit { task, commitment }).await,
                None => failed(task, kind, true),
            }
        }
        other => match call(other, &tools.stash) {
            Some(call) => submit(tools, of, call).await,
            // The host does this itself, before any job.
            None => failed(id, kind, false),
        },
    }
}

/// Effects that are calls and nothing else.
fn call(effect: Effect, stash: &AccountId) -> Option<Call> {
    Some(match effect {
        Effect::SubmitBid { task, seal } => Call::Bid { task, seal },
        Effect::SubmitBidReveal { task, bid } => Call::RevealBid {
            task,
            provider: stash.clone(),
            bid,
        },
        Effect::SubmitCommit { task, commitment } => Call::Commit { task, commitment },
        Effect::SubmitReveal { task, claim, salt } => Call::Reveal {
            task,
            provider: stash.clone(),
            claim,
            salt,
        },
        Effect::SubmitAnnouncement {
            task,
            provider,
            proof,
            seal,
        } => Call::AnnounceAudit {
            task,
            provider,
            proof,
            seal,
        },
        Effect::SubmitAuditReveal {
            task,
            provider,
            claim,
            salt,
        } => Call::RevealAudit {
            task,
            provider,
            claim,
            salt,
        },
        Effect::SubmitDemand {
            task,
            provider,
            segment,
        } => Call::Demand {
            task,
            provider,
            segment,
        },
        Effect::SubmitMove {
            dispute,
            number,
            played,
            ..
        } => Call::Play {
            dispute,
            number,
            played,
        },
        Effect::SubmitAdvance { dispute, .. } => Call::AdvanceDispute { dispute },
        Effect::SubmitJoin {
            dispute,
            ballot,
            proof,
            seal,
            ..
        } => Call::JoinCommittee {
            dispute,
            ballot,
            proof,
            seal,
        },
        Effect::SubmitVote {
            dispute, value, salt, ..
        } => Call::RevealVote { dispute, value, salt },
        Effect::SubmitInputDemand { task, segment, .. } => Call::DemandInput { task, segment },
        _ => return None,
    })
}

pub(super) async fn submit(tools: &Tools, of: Task, call: Call) -> Event {
    let Task { id: task, kind } = of;
    // Pools refuse one while the same is under way, whoever sent it: if that gets lost, ours has to be sent again.
    let may_be_taken_later = call.proves_itself();
    match tools.chain.submit(&tools.signer, call, Until::Included).await {
        Ok(included) => {
            tracing::info!(task, ?kind, block = included.block.number, "on the chain");
            Event::EffectDone { task, kind }
        }
        Err(e) => {
            match is_settled(&e) {
                true => tracing::info!(task, ?kind, "no longer needed: the dispute was settled elsewhere"),
                false => tracing::warn!(task, ?kind, error = %e, "not on the chain"),
            }
            let refused = matches!(e, ChainError::Rejected { .. });
            failed(task, kind, may_succeed_later(&e) || refused && may_be_taken_later)
        }
    }
}

/// A heartbeat that came late makes a provider unavailable only until the next one.
fn may_succeed_later(error: &ChainError) -> bool {
    error.is_retryable() || error.is_fault("TaskAuction", "ProviderUnavailable")
}

/// A party of a dispute was convicted in another one while a call about it was on its way: nothing is wrong.
fn is_settled(error: &ChainError) -> bool {
    error.is_fault("TrustLock", "Moot")
}

async fn fetch(tools: &Tools, task: TaskId, hash: ContentHash, bytes: u32, sources: &Endpoints) -> Event {
    let fetched = match tools.plane.fetch(hash, Some(bytes.into()), sources).await {
        // Pins it: it must still be there when its turn comes.
        Ok(blob) => tools.plane.publish(blob).await.map(drop),
        Err(e) => Err(e),
    };
    match fetched {
        Ok(()) => Event::InputReady { task },
        Err(e) => {
            tracing::warn!(task, error = %e, "cannot fetch the input");
            let retryable = !matches!(e, PlaneError::TooLarge { .. });
            failed(task, EffectKind::Fetch, retryable)
        }
    }
}

struct Work {
    model: ModelId,
    operation: Operation,
    input: ContentHash,
    units_max: u32,
    /// Who may see it grow.
    client: Endpoints,
}

async fn compute(tools: &Tools, task: TaskId, work: Work) -> Event {
    match try_compute(tools, task, work).await {
        Ok(claim) => {
            tracing::info!(task, output = ?claim.output, units = claim.units, "computed");
            Event::ResultReady { task, claim }
        }
        Err((reason, retryable)) => {
            tracing::warn!(task, reason, "cannot compute");
            failed(task, EffectKind::Compute, retryable)
        }
    }
}

/// Why, and whether trying again may help.
pub(super) type Failure = (String, bool);

async fn try_compute(tools: &Tools, task: TaskId, work: Work) -> Result<ResultClaim, Failure> {
    let from_disk = |e: PlaneError| (e.to_string(), true);
    let input = tools
        .plane
        .fetch(work.input, None, &[])
        .await
        .map_err(from_disk)?;
    let job = Job {
        operation: work.operation,
        input: input.to_vec(),
        units_max: work.units_max,
    };
    let outcome = match work.operation {
        Operation::Embed => stream::quietly(tools, &work.model, job).await,
        Operation::Generate => stream::aloud(tools, task, &work.model, job, &work.client).await,
    };
    let outcome = outcome.map_err(|e| (e.to_string(), e.is_retryable()))?;
    // On disk before core hears of the result: what is committed to can be delivered.
    let output = Bytes::from(outcome.output);
    if tools.cheat != Some(Cheat::WithheldData) {
        tools.plane.publish(output).await.map_err(from_disk)?;
    }
    Ok(outcome.claim)
}
