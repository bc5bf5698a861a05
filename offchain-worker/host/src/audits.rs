//! A verifier's effects, and a provider's answer to demands.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use surety_audit_economics::{AuditInput, AuditThreshold};
use surety_chain_client::{AccountId, BlockNumber, Call, ChainError, When};
use surety_engine::Job;
use surety_network::{Bytes, OutputLocation, PlaneError, Ticket};
use surety_proofs::{SEGMENT_BYTES, SegmentOpening};
use surety_types::{
    ContentHash, TaskId,
    model::Operation,
    multiaddr::Endpoint,
    task::{ResultClaim, TaskSpec},
    trust::AuditProof,
};
use surety_worker_core::{Event, Failure};

use super::{
    Tools,
    compute::ComputeError,
    effect_error::{EffectError, chain_class},
    effects::submit,
    jobs::{Task, failed},
    work::{fetch_blob, own_blob},
};

/// What is remembered of audits between their steps. Nothing of it is missed after a restart: the steps are
/// repeated.
#[derive(Default)]
pub struct Audits(Mutex<BTreeMap<(TaskId, AccountId), Known>>);

#[derive(Clone, Copy, Default)]
struct Known {
    /// That we have drawn ourselves.
    proof: Option<AuditProof>,
    /// What the provider says that its output is.
    output: Option<ContentHash>,
}

impl Audits {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(TaskId, AccountId), Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, task: TaskId, provider: &AccountId, note: impl FnOnce(&mut Known)) {
        note(self.lock().entry((task, provider.clone())).or_default());
    }

    fn known(&self, task: TaskId, provider: &AccountId) -> Known {
        let known = self.lock().get(&(task, provider.clone())).copied();
        known.unwrap_or_default()
    }

    pub(super) fn forget(&self, task: TaskId) {
        self.lock().retain(|(of, _), _| *of != task);
    }
}

/// What we show to those who have what we audit, or play about.
pub(super) fn ticket(tools: &Tools, task: TaskId, provider: &AccountId) -> Option<Ticket> {
    let proof = tools.audits.known(task, provider).proof;
    let draw = proof.map(|proof| (provider.clone(), proof));
    let genesis = tools.chain.info().genesis;
    surety_access::ticket(&tools.signer, &genesis, &tools.plane.peer_id(), task, draw)
}

/// Sees whether we are to audit, by our own key.
pub(super) async fn draw(
    tools: &Tools,
    of: Task,
    input: AuditInput<AccountId>,
    (verifier_stake, settled_by): (u128, BlockNumber),
) -> Event {
    match try_draw(tools, &input, verifier_stake, settled_by).await {
        Ok(proof) => {
            tracing::info!(task = of.id, ours = proof.is_some(), "drawn");
            let (task, provider) = (input.task, input.provider);
            if proof.is_some() {
                tools.audits.note(task, &provider, |known| known.proof = proof);
            }
            Event::Drawn {
                task,
                provider,
                proof,
            }
        }
        Err(e) => {
            tracing::warn!(task = of.id, error = %e, "cannot draw");
            failed(of.id, of.kind, chain_class(&e))
        }
    }
}

async fn try_draw(
    tools: &Tools,
    input: &AuditInput<AccountId>,
    verifier_stake: u128,
    settled_by: BlockNumber,
) -> Result<Option<AuditProof>, ChainError> {
    let chain = &*tools.chain;
    let expected = chain
        .auditors_expected(When::Finalized, input.task, &input.provider)
        .await?;
    let stake = chain.stake(When::Finalized, &tools.stash).await?;
    let settled = stake.filter(|stake| stake.settled_at <= settled_by);
    let bonded = settled.map_or(0, |stake| stake.bonded);
    let drawn = tools.signer.draw_audit(input)?;
    let threshold = AuditThreshold::weighted(expected, bonded, verifier_stake);
    Ok(threshold.draws(&drawn.output).then_some(drawn.proof))
}

/// Fetches what an audit needs.
pub(super) async fn fetch(tools: &Tools, of: Task, provider: AccountId, spec: TaskSpec) -> Event {
    let (task, kind) = (of.id, of.kind);
    match needed(tools, of, &provider, &spec).await {
        Ok(_) => Event::EffectDone { task, kind },
        Err(error) => {
            let reason = error.to_string();
            tracing::warn!(task, reason, "cannot fetch what is to be audited");
            failed(task, kind, error.class())
        }
    }
}

/// Computes a task again, and says what comes of it.
pub(super) async fn audit(tools: &Tools, of: Task, provider: AccountId, spec: TaskSpec) -> Event {
    let task = of.id;
    match try_audit(tools, of, &provider, &spec).await {
        Ok(claim) => {
            tracing::info!(task, output = ?claim.output, "audited");
            Event::AuditReady {
                task,
                provider,
                claim,
            }
        }
        Err(error) => {
            let reason = error.to_string();
            tracing::warn!(task, reason, "cannot audit");
            failed(task, of.kind, error.class())
        }
    }
}

async fn try_audit(
    tools: &Tools,
    of: Task,
    provider: &AccountId,
    spec: &TaskSpec,
) -> Result<ResultClaim, EffectError> {
    // Mostly here already: it was fetched before.
    let (input, output) = needed(tools, of, provider, spec).await?;
    let ticket = tools
        .engines
        .audit(&spec.model, job(spec, &input), output.to_vec());
    Ok(ticket?.await.map_err(ComputeError::from)?)
}

/// The input, and the output where it matters.
async fn needed(
    tools: &Tools,
    of: Task,
    provider: &AccountId,
    spec: &TaskSpec,
) -> Result<(Bytes, Bytes), EffectError> {
    let endpoints = endpoints(tools, provider).await?;
    let ticket = ticket(tools, of.id, provider);
    let input = input(tools, of, spec, &endpoints, ticket.clone()).await?;
    let output = match spec.operation {
        // It follows from the input alone.
        Operation::Embed => Bytes::new(),
        Operation::Generate => claimed_output(tools, of, provider, &endpoints, ticket).await?,
    };
    Ok((input, output))
}

/// Where a provider's data plane answers.
pub(super) async fn endpoints(tools: &Tools, provider: &AccountId) -> Result<Vec<Endpoint>, ChainError> {
    let record = tools.chain.provider(When::Finalized, provider).await?;
    Ok(record.map_or_else(Vec::new, |record| record.endpoints.to_vec()))
}

/// A task's input, from its client or somebody who has computed on it.
pub(super) async fn input(
    tools: &Tools,
    of: Task,
    spec: &TaskSpec,
    others: &[Endpoint],
    ticket: Option<Ticket>,
) -> Result<Bytes, EffectError> {
    let sources: Vec<Endpoint> = spec.sources.iter().chain(others).cloned().collect();
    let bytes = Some(spec.input_bytes.into());
    Ok(fetch_blob(tools, of, (spec.input, bytes), &sources, ticket).await?)
}

/// Asks a provider for its output, at one of its addresses, for half of the time that is left: there may be
/// other addresses, and the output has to be fetched.
async fn locate_output(
    tools: &Tools,
    of: Task,
    endpoint: &Endpoint,
    ticket: Option<&Ticket>,
) -> Result<OutputLocation, PlaneError> {
    let time = of.time_left() / 2;
    let answer = tools.plane.locate_output(of.id, endpoint, ticket);
    match tokio::time::timeout(time, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(PlaneError::OutOfTime {
            what: format!("where the output of task {} is", of.id),
            seconds: time.as_secs(),
            attempts: Vec::new(),
        }),
    }
}

/// What a provider says that its output is: from the audit window on it tells whoever shows a draw.
async fn claimed_output(
    tools: &Tools,
    of: Task,
    provider: &AccountId,
    endpoints: &[Endpoint],
    ticket: Option<Ticket>,
) -> Result<Bytes, EffectError> {
    if let Some(hash) = tools.audits.known(of.id, provider).output
        && let Ok(blob) = own_blob(tools, hash).await
    {
        return Ok(blob);
    }
    let mut last = EffectError::NoEndpoints;
    for endpoint in endpoints {
        match locate_output(tools, of, endpoint, ticket.as_ref()).await {
            Ok(found) => {
                let wanted = (found.hash, Some(found.bytes));
                let blob = fetch_blob(tools, of, wanted, endpoints, ticket).await?;
                tools
                    .audits
                    .note(of.id, provider, |known| known.output = Some(found.hash));
                return Ok(blob);
            }
            Err(e) => last = e.into(),
        }
    }
    Err(last)
}

pub(super) fn job(spec: &TaskSpec, input: &Bytes) -> Job {
    Job {
        operation: spec.operation,
        input: input.to_vec(),
        units_max: spec.units_max,
    }
}

/// Whether a provider serves what it has revealed: it says so itself, and delivers.
pub(super) async fn check_data(tools: &Tools, of: Task, provider: AccountId, output: ContentHash) -> Event {
    let (task, kind) = (of.id, of.kind);
    match try_check_data(tools, of, &provider, output).await {
        Ok(()) => Event::EffectDone { task, kind },
        Err(error) => {
            let reason = error.to_string();
            tracing::warn!(task, reason, "an output cannot be had");
            failed(task, kind, error.class())
        }
    }
}

async fn try_check_data(
    tools: &Tools,
    of: Task,
    provider: &AccountId,
    output: ContentHash,
) -> Result<(), EffectError> {
    let endpoints = endpoints(tools, provider).await?;
    let ticket = ticket(tools, of.id, provider);
    let mut said = Err(EffectError::NoEndpoints);
    for endpoint in &endpoints {
        said = match locate_output(tools, of, endpoint, ticket.as_ref()).await {
            Ok(found) if found.hash == output => Ok(()),
            Ok(found) => Err(EffectError::OtherOutput(found.hash)),
            Err(e) => Err(e.into()),
        };
        if said.is_ok() {
            break;
        }
    }
    said?;
    fetch_blob(tools, of, (output, None), &endpoints, ticket).await?;
    Ok(())
}

/// Shows a piece of our output on the chain: the last one, when there are not as many.
pub(super) async fn supply(tools: &Tools, of: Task, output: ContentHash, segment: u32) -> Event {
    let fetched = own_blob(tools, output).await;
    let opening = fetched.map_err(|e| e.to_string()).and_then(|blob| {
        let last = blob.len().div_ceil(SEGMENT_BYTES as usize).saturating_sub(1);
        let segment = segment.min(u32::try_from(last).unwrap_or(u32::MAX));
        let bytes = u32::try_from(blob.len()).map_err(|e| e.to_string())?;
        let opening = SegmentOpening::new(&blob, segment).ok_or("the output is empty")?;
        Ok((bytes, opening))
    });
    match opening {
        Ok((output_bytes, opening)) => {
            let task = of.id;
            let call = Call::Supply {
                task,
                output_bytes,
                opening,
            };
            submit(tools, of, call).await
        }
        Err(reason) => {
            tracing::error!(task = of.id, reason, "cannot show a piece of the output");
            failed(of.id, of.kind, Failure::Failed)
        }
    }
}
