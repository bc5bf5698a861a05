//! A verifier's effects, and a provider's answer to demands.

use surety_chain_client::{AccountId, Call, ChainError, When};
use surety_engine::Job;
use surety_network::{Bytes, PlaneError};
use surety_types::{
    model::Operation,
    multiaddr::Endpoint,
    task::{ResultClaim, TaskSpec},
    trust::AuditProof,
    ContentHash, TaskId,
};
use surety_verification::{
    audit::{AuditInput, AuditThreshold},
    SegmentOpening, SEGMENT_BYTES,
};
use surety_worker_core::{Event, Hash};

use super::{
    cheat::Cheat,
    jobs::{failed, submit, Failure, Task},
    Tools,
};

/// Sees whether we are to audit, by our own key.
pub(super) async fn draw(
    tools: &Tools,
    of: Task,
    input: AuditInput<AccountId>,
    verifier_stake: u128,
) -> Event {
    match try_draw(tools, &input, verifier_stake).await {
        Ok(proof) => {
            tracing::info!(task = of.id, ours = proof.is_some(), "drawn");
            let (task, provider) = (input.task, input.provider);
            Event::Drawn {
                task,
                provider,
                proof,
            }
        }
        Err(e) => {
            tracing::warn!(task = of.id, error = %e, "cannot draw");
            failed(of.id, of.kind, e.is_retryable())
        }
    }
}

async fn try_draw(
    tools: &Tools,
    input: &AuditInput<AccountId>,
    verifier_stake: u128,
) -> Result<Option<AuditProof>, ChainError> {
    let chain = &*tools.chain;
    let expected = chain
        .auditors_expected(When::Finalised, input.task, &input.provider)
        .await?;
    let stake = chain.stake(When::Finalised, &tools.stash).await?;
    let bonded = stake.map_or(0, |stake| stake.bonded);
    let drawn = tools.signer.draw_audit(input)?;
    let threshold = AuditThreshold::weighted(expected, bonded, verifier_stake);
    Ok(threshold.draws(&drawn.output).then_some(drawn.proof))
}

/// Computes a task again, and says what comes of it.
pub(super) async fn audit(tools: &Tools, of: Task, provider: AccountId, spec: TaskSpec) -> Event {
    if tools.cheat == Some(Cheat::Lazy) {
        let claim = made_up(&provider);
        let task = of.id;
        return Event::AuditReady {
            task,
            provider,
            claim,
        };
    }
    match try_audit(tools, of.id, &provider, &spec).await {
        Ok(claim) => {
            tracing::info!(task = of.id, output = ?claim.output, "audited");
            let task = of.id;
            Event::AuditReady {
                task,
                provider,
                claim,
            }
        }
        Err((reason, retryable)) => {
            tracing::warn!(task = of.id, reason, "cannot audit");
            failed(of.id, of.kind, retryable)
        }
    }
}

/// What a lazy auditor says.
fn made_up(provider: &AccountId) -> ResultClaim {
    let hash = |what: u8| {
        Hash(sp_crypto_hashing::blake2_256(
            &[AsRef::<[u8]>::as_ref(provider), &[what]].concat(),
        ))
    };
    ResultClaim {
        output: hash(0),
        trace_root: hash(1),
        units: 1,
    }
}

async fn try_audit(
    tools: &Tools,
    task: TaskId,
    provider: &AccountId,
    spec: &TaskSpec,
) -> Result<ResultClaim, Failure> {
    let endpoints = endpoints(tools, provider)
        .await
        .map_err(|e| (e.to_string(), true))?;
    let input = input(tools, spec, &endpoints).await?;
    let output = match spec.operation {
        // It follows from the input alone.
        Operation::Embed => Vec::new(),
        Operation::Generate => claimed_output(tools, task, &endpoints).await?.to_vec(),
    };
    let job = job(spec, &input);
    let engine = tools
        .engines
        .get(&spec.model)
        .map_err(|e| (e.to_string(), false))?;
    let ticket = tools.engines.work(move |sink| engine.audit(&job, &output, sink));
    let ticket = ticket.map_err(|e| (e.to_string(), e.is_retryable()))?;
    ticket.await.map_err(|e| (e.to_string(), false))
}

/// Where a provider's data plane answers.
pub(super) async fn endpoints(tools: &Tools, provider: &AccountId) -> Result<Vec<Endpoint>, ChainError> {
    let record = tools.chain.provider(When::Finalised, provider).await?;
    Ok(record.map_or_else(Vec::new, |record| record.endpoints.to_vec()))
}

/// A task's input, from its client or somebody who has computed on it.
pub(super) async fn input(tools: &Tools, spec: &TaskSpec, others: &[Endpoint]) -> Result<Bytes, Failure> {
    let sources: Vec<Endpoint> = spec.sources.iter().chain(others).cloned().collect();
    let bytes = Some(spec.input_bytes.into());
    let fetched = tools.plane.fetch(spec.input, bytes, &sources).await;
    fetched.map_err(|e| (e.to_string(), !matches!(e, PlaneError::TooLarge { .. })))
}

/// What a provider says that its output is. From the audit window on it tells whoever asks.
async fn claimed_output(tools: &Tools, task: TaskId, endpoints: &[Endpoint]) -> Result<Bytes, Failure> {
    let mut last = (String::from("the provider has no endpoints"), true);
    for endpoint in endpoints {
        match tools.plane.locate_output(task, endpoint).await {
            Ok(found) => {
                let fetched = tools.plane.fetch(found.hash, Some(found.bytes), endpoints).await;
                return fetched.map_err(|e| (e.to_string(), true));
            }
            Err(e) => last = (e.to_string(), true),
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
    match try_check_data(tools, task, &provider, output).await {
        Ok(()) => Event::EffectDone { task, kind },
        Err((reason, retryable)) => {
            tracing::warn!(task, reason, "an output cannot be had");
            failed(task, kind, retryable)
        }
    }
}

async fn try_check_data(
    tools: &Tools,
    task: TaskId,
    provider: &AccountId,
    output: ContentHash,
) -> Result<(), Failure> {
    let endpoints = endpoints(tools, provider)
        .await
        .map_err(|e| (e.to_string(), true))?;
    let mut said = Err((String::from("the provider has no endpoints"), true));
    for endpoint in &endpoints {
        said = match tools.plane.locate_output(task, endpoint).await {
            Ok(found) if found.hash == output => Ok(()),
            Ok(found) => Err((format!("it serves {:?} instead", found.hash), true)),
            Err(e) => Err((e.to_string(), true)),
        };
        if said.is_ok() {
            break;
        }
    }
    said?;
    let fetched = tools.plane.fetch(output, None, &endpoints).await;
    fetched.map(drop).map_err(|e| (e.to_string(), true))
}

/// Shows a piece of our output on the chain: the last one, when there are not as many.
pub(super) async fn supply(tools: &Tools, of: Task, output: ContentHash, segment: u32) -> Event {
    let fetched = tools.plane.fetch(output, None, &[]).await;
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
            failed(of.id, of.kind, true)
        }
    }
}
