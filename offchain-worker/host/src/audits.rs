//! A verifier's effects, and a provider's answer to demands.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use surety_audit_economics::{AuditInput, AuditThreshold};
use surety_chain_client::{AccountId, BlockNumber, Call, ChainError, VrfDraw, When, is_signed};
use surety_engine::{EngineError, Job, content_hash};
use surety_network::{Bytes, OutputLocation, PlaneError, Statement, Ticket};
use surety_proofs::{SEGMENT_BYTES, SegmentOpening, merkle_root};
use surety_types::{
    ContentHash, TaskId,
    model::Operation,
    multiaddr::Endpoint,
    task::{MemberProgress, ResultClaim, TaskSpec},
    trust::{AuditProof, ItemsFound},
};
use surety_worker_core::{Drawn, Event, Failure, Found};

use super::{
    Tools,
    compute::ComputeError,
    effect_error::{EffectError, chain_class},
    effects::submit,
    jobs::{Task, failed},
    work::{fetch_blob, leaves_of, own_blob},
};

/// What is remembered of audits between their steps. Nothing of it is missed after a restart: the steps are
/// repeated.
#[derive(Default)]
pub struct Audits {
    known: Mutex<BTreeMap<(TaskId, AccountId), Known>>,
    /// Inputs and outputs that are kept from making room for others: whoever confirms a result may have to
    /// show what it was about.
    kept: Mutex<BTreeMap<TaskId, BTreeSet<ContentHash>>>,
}

#[derive(Clone, Copy, Default)]
struct Known {
    /// That we have drawn ourselves.
    proof: Option<AuditProof>,
    /// What the provider says that its output is.
    output: Option<ContentHash>,
}

impl Audits {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(TaskId, AccountId), Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, task: TaskId, provider: &AccountId, note: impl FnOnce(&mut Known)) {
        note(self.lock().entry((task, provider.clone())).or_default());
    }

    fn known(&self, task: TaskId, provider: &AccountId) -> Known {
        let known = self.lock().get(&(task, provider.clone())).copied();
        known.unwrap_or_default()
    }

    /// Forgets a task. Returns what was kept for it.
    pub(super) fn forget(&self, task: TaskId) -> BTreeSet<ContentHash> {
        self.lock().retain(|(of, _), _| *of != task);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(&task).unwrap_or_default()
    }

    /// Whether this has not been kept for the task so far.
    fn is_new(&self, task: TaskId, content: ContentHash) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.entry(task).or_default().insert(content)
    }
}

/// Keeps what an audit is about for as long as its task is watched.
pub(super) async fn keep(tools: &Tools, task: TaskId, content: ContentHash, blob: Bytes) {
    if tools.audits.is_new(task, content)
        && let Err(e) = tools.plane.publish(blob).await
    {
        tracing::warn!(task, error = %e, "what was audited may not be there when it has to be shown");
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
        Ok(drawn) => {
            tracing::info!(task = of.id, ours = drawn.is_some(), "drawn");
            let (task, provider) = (input.task, input.provider);
            if let Some(Drawn { proof, .. }) = drawn {
                tools
                    .audits
                    .note(task, &provider, |known| known.proof = Some(proof));
            }
            Event::Drawn {
                task,
                provider,
                drawn,
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
) -> Result<Option<Drawn>, ChainError> {
    let chain = &*tools.chain;
    let expected = chain
        .auditors_expected(When::Finalized, input.task, &input.provider)
        .await?;
    let stake = chain.stake(When::Finalized, &tools.stash).await?;
    let settled = stake.filter(|stake| stake.settled_at <= settled_by);
    let bonded = settled.map_or(0, |stake| stake.bonded);
    let drawn = tools.signer.draw_audit(input)?;
    let threshold = AuditThreshold::weighted(expected, bonded, verifier_stake);
    let VrfDraw { proof, output } = drawn;
    Ok(threshold.draws(&output).then_some(Drawn { proof, output }))
}

/// Fetches what an audit needs.
pub(super) async fn fetch(tools: &Tools, of: Task, provider: AccountId, spec: TaskSpec) -> Event {
    let (task, kind) = (of.id, of.kind);
    match needed(tools, of, &provider, &spec).await {
        Ok((_, _, Some(statement))) => Event::AuditFetched {
            task,
            provider,
            statement,
        },
        Ok(_) => Event::EffectDone { task, kind },
        Err(error) => {
            let reason = error.to_string();
            tracing::warn!(task, reason, "cannot fetch what is to be audited");
            failed(task, kind, error.class())
        }
    }
}

/// Computes a task again, or these items of it, and says what comes of it.
pub(super) async fn audit(
    tools: &Tools,
    of: Task,
    provider: AccountId,
    spec: TaskSpec,
    items: Option<Vec<u32>>,
) -> Event {
    let task = of.id;
    let audited = async {
        if let Some(items) = items
            && let Some(found) = some_items(tools, of, &provider, &spec, items).await?
        {
            return Ok(Found::Items(found));
        }
        whole(tools, of, &provider, &spec).await.map(Found::Whole)
    };
    match audited.await {
        Ok(found) => {
            match &found {
                Found::Whole(claim) => tracing::info!(task, output = ?claim.output, "audited"),
                Found::Items(found) => tracing::info!(task, items = found.len(), "audited"),
            }
            Event::AuditReady {
                task,
                provider,
                found,
            }
        }
        Err(error) => cannot(of, "cannot audit", &error),
    }
}

fn cannot(of: Task, what: &str, error: &EffectError) -> Event {
    let reason = error.to_string();
    tracing::warn!(task = of.id, reason, "{what}");
    failed(of.id, of.kind, error.class())
}

/// What comes of these items; nothing where the model computes none alone.
async fn some_items(
    tools: &Tools,
    of: Task,
    provider: &AccountId,
    spec: &TaskSpec,
    items: Vec<u32>,
) -> Result<Option<ItemsFound>, EffectError> {
    let (input, ..) = needed(tools, of, provider, spec).await?;
    let ticket = tools.engines.audit_items(&spec.model, job(spec, &input), items)?;
    match ticket.await {
        Ok(found) => Ok(Some(found)),
        Err(EngineError::NoItems) => Ok(None),
        Err(error) => Err(ComputeError::from(error).into()),
    }
}

/// Sees whether a provider's result shows what we have found of our items: by what it serves, or by computing
/// all of it.
pub(super) async fn compare(
    tools: &Tools,
    of: Task,
    provider: AccountId,
    spec: TaskSpec,
    (claim, own): (ResultClaim, (Vec<u32>, ItemsFound)),
    is_whole: bool,
) -> Event {
    let task = of.id;
    let compared = async {
        if is_whole {
            let computed = whole(tools, of, &provider, &spec).await?;
            return Ok(computed == claim);
        }
        is_shown(tools, of, &provider, &spec, (claim, own)).await
    };
    match compared.await {
        Ok(agrees) => {
            tracing::info!(task, agrees, "compared with what the provider says");
            Event::AuditCompared {
                task,
                provider,
                agrees,
            }
        }
        Err(error) => cannot(of, "cannot compare what was audited", &error),
    }
}

async fn is_shown(
    tools: &Tools,
    of: Task,
    provider: &AccountId,
    spec: &TaskSpec,
    (claim, (items, found)): (ResultClaim, (Vec<u32>, ItemsFound)),
) -> Result<bool, EffectError> {
    let endpoints = endpoints(tools, provider).await?;
    let ticket = ticket(tools, of.id, provider);
    let mut said = Err(EffectError::NoEndpoints);
    for endpoint in &endpoints {
        said = match locate_output(tools, of, endpoint, ticket.as_ref()).await {
            Ok(found) => found.leaves.ok_or(EffectError::NoLeaves),
            Err(error) => Err(error.into()),
        };
        if said.is_ok() {
            break;
        }
    }
    let leaves = fetch_blob(tools, of, (said?, None), &endpoints, ticket.clone()).await?;
    let leaves = leaves_of(&leaves).ok_or(EffectError::NoLeaves)?;
    // Whoever shows the leaves of another trace shows none.
    if merkle_root(leaves.iter().copied()) != claim.trace_root {
        return Err(EffectError::NoLeaves);
    }
    let input = input(tools, of, spec, &endpoints, ticket.clone()).await?;
    let output = fetch_blob(tools, of, (claim.output, None), &endpoints, ticket).await?;
    let (engine, job) = (tools.engines.get(&spec.model)?, job(spec, &input));
    let ticket = tools
        .engines
        .answer(move |_| Ok(engine.shows_items(&job, (&items, &found), &claim, (&leaves, &output))))?;
    Ok(ticket.await.map_err(ComputeError::from)?)
}

async fn whole(
    tools: &Tools,
    of: Task,
    provider: &AccountId,
    spec: &TaskSpec,
) -> Result<ResultClaim, EffectError> {
    // Mostly here already: it was fetched before.
    let (input, output, _) = needed(tools, of, provider, spec).await?;
    let ticket = tools
        .engines
        .audit(&spec.model, job(spec, &input), output.to_vec());
    Ok(ticket?.await.map_err(ComputeError::from)?)
}

/// The input, and where it matters the output, with the provider's word on it.
async fn needed(
    tools: &Tools,
    of: Task,
    provider: &AccountId,
    spec: &TaskSpec,
) -> Result<(Bytes, Bytes, Option<Statement>), EffectError> {
    let endpoints = endpoints(tools, provider).await?;
    let ticket = ticket(tools, of.id, provider);
    let input = input(tools, of, spec, &endpoints, ticket.clone()).await?;
    let (output, statement) = match spec.operation {
        // It follows from the input alone.
        Operation::Embed => (Bytes::new(), None),
        Operation::Generate => claimed_output(tools, of, provider, &endpoints, ticket).await?,
    };
    keep(tools, of.id, spec.input, input.clone()).await;
    if spec.operation == Operation::Generate {
        keep(tools, of.id, content_hash(&output), output.clone()).await;
    }
    Ok((input, output, statement))
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
) -> Result<(Bytes, Option<Statement>), EffectError> {
    if let Some(hash) = tools.audits.known(of.id, provider).output
        && let Ok(blob) = own_blob(tools, hash).await
    {
        // Its word was taken down with it.
        return Ok((blob, None));
    }
    let mut last = EffectError::NoEndpoints;
    for endpoint in endpoints {
        match locate_output(tools, of, endpoint, ticket.as_ref()).await {
            // What nobody answers for is not served: it could be revealed as anything.
            Ok(found) => match vouched(tools, of.id, provider, &found).await? {
                None => last = EffectError::Unsigned,
                Some(statement) => {
                    let wanted = (found.hash, Some(found.bytes));
                    let blob = fetch_blob(tools, of, wanted, endpoints, ticket).await?;
                    tools
                        .audits
                        .note(of.id, provider, |known| known.output = Some(found.hash));
                    return Ok((blob, Some(statement)));
                }
            },
            Err(e) => last = e.into(),
        }
    }
    Err(last)
}

/// The provider's word that this is what its commitment opens to, if that is a word that it can be convicted
/// by.
async fn vouched(
    tools: &Tools,
    task: TaskId,
    provider: &AccountId,
    found: &OutputLocation,
) -> Result<Option<Statement>, ChainError> {
    let Some(signed) = &found.statement else {
        return Ok(None);
    };
    let info = tools.chain.task(When::Best, task).await?;
    let members = info.and_then(|info| info.round).map(|round| round.members);
    let mut members = members.into_iter().flatten();
    let is_committed = members.any(|member| {
        let committed = match member.progress {
            MemberProgress::Committed(commitment) => commitment == signed.statement.commitment,
            MemberProgress::Revealed(_) => true,
            MemberProgress::Working => false,
        };
        member.provider == *provider && committed
    });
    let said = &signed.statement;
    let is_this = said.task == task && said.provider == *provider && said.output == found.hash;
    let is_signed = is_this && is_committed && is_signed(signed, &tools.chain.info().genesis);
    let acts_for = tools.chain.agent_stash(When::Best, &signed.agent).await?;
    Ok((is_signed && acts_for.as_ref() == Some(provider)).then(|| signed.clone()))
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
