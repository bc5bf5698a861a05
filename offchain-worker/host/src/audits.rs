//! A verifier's effects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use surety_audit_economics::{AuditInput, AuditThreshold};
use surety_chain_client::{AccountId, BlockNumber, ChainError, VrfDraw, When};
use surety_engine::{EngineError, Job, JobSink, View};
use surety_network::{Bytes, Statement, Ticket};
use surety_proofs::merkle_root;
use surety_types::{
    ContentHash, TaskId,
    model::Operation,
    task::{ResultClaim, TaskSpec},
    trust::{AuditProof, ItemsFound},
};
use surety_worker_core::{Drawn, Event, Found, KeptView, Record};

use super::{
    Tools,
    compute::ComputeError,
    effect_error::{EffectError, chain_class},
    jobs::{Task, done, failed},
    leaves,
    served::{self, Source},
    sources::{input, shown},
    work::{fetch_blob, leaves_blob, leaves_of, own_blob},
};

/// Bytes of a leaf of a trace.
const HASH_BYTES: u64 = 32;

/// What is remembered of audits between their steps. Nothing of it is missed after a restart: the steps are
/// repeated, and what was kept is kept again.
#[derive(Default)]
pub struct Audits {
    /// That we have drawn ourselves.
    proofs: Mutex<BTreeMap<(TaskId, AccountId), AuditProof>>,
    /// Inputs and outputs that are kept from making room for others: whoever confirms a result may have to
    /// show what it was about.
    kept: Mutex<BTreeMap<TaskId, BTreeSet<ContentHash>>>,
}

impl Audits {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(TaskId, AccountId), AuditProof>> {
        self.proofs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a task. Returns what was kept for it.
    pub(super) fn forget(&self, task: TaskId) -> BTreeSet<ContentHash> {
        self.lock().retain(|(of, _), _| *of != task);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(&task).unwrap_or_default()
    }

    fn is_kept(&self, task: TaskId, content: ContentHash) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&task).is_some_and(|kept| kept.contains(&content))
    }

    /// Takes note that this is kept for the task. Says whether it was not before.
    fn note_kept(&self, task: TaskId, content: ContentHash) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.entry(task).or_default().insert(content)
    }
}

/// Keeps what an audit is about for as long as its task is watched. Where there is no room for it, the next
/// one to have it tries again.
pub(super) async fn keep(tools: &Tools, task: TaskId, content: ContentHash, blob: Bytes) {
    if !tools.audits.is_kept(task, content) {
        keep_anew(tools, task, blob).await;
    }
}

/// The same of what may not have been kept before. Returns its hash, if it is kept.
async fn keep_anew(tools: &Tools, task: TaskId, blob: Bytes) -> Option<ContentHash> {
    match tools.plane.publish(blob).await {
        Ok(content) => {
            // It is let go of once.
            if !tools.audits.note_kept(task, content) {
                tools.plane.release(content).await;
            }
            Some(content)
        }
        Err(e) => {
            tracing::warn!(task, error = %e, "what was audited may not be there when it has to be shown");
            None
        }
    }
}

/// Tasks of which we have said something about others' results, by what a journal holds, and the outputs that
/// that was about.
pub(super) fn audited(records: &[Record]) -> BTreeMap<TaskId, BTreeSet<ContentHash>> {
    let mut audited = BTreeMap::<_, BTreeSet<_>>::new();
    for record in records {
        match record {
            Record::AuditServed { task, statement, .. } => {
                let output = statement.statement.output;
                audited.entry(*task).or_default().insert(output);
            }
            Record::ViewKept { task, view, .. } => {
                let KeptView { leaves, output, .. } = *view;
                audited.entry(*task).or_default().extend([leaves, output]);
            }
            Record::AuditMade { task, .. } | Record::ItemsAudited { task, .. } => {
                audited.entry(*task).or_default();
            }
            Record::Finished { task, .. } => drop(audited.remove(task)),
            _ => {}
        }
    }
    audited
}

/// After a restart: keeps outputs again that were audited, where they are still here. They are shown to
/// nobody else.
pub(super) async fn restore(tools: &Tools, audited: &BTreeMap<TaskId, BTreeSet<ContentHash>>) {
    for (task, outputs) in audited {
        for hash in outputs {
            match own_blob(tools, *hash).await {
                Ok(blob) => keep(tools, *task, *hash, blob).await,
                Err(e) => tracing::warn!(task, error = %e, "an output that was audited is not here"),
            }
        }
    }
}

/// What we show to those who have what we audit, or play about.
pub(super) fn ticket(tools: &Tools, task: TaskId, provider: &AccountId) -> Option<Ticket> {
    let proof = tools.audits.lock().get(&(task, provider.clone())).copied();
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
                tools.audits.lock().insert((task, provider.clone()), proof);
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

/// Fetches what an audit needs: of an output the one that the provider has signed before, if it has.
pub(super) async fn fetch(
    tools: &Tools,
    of: Task,
    provider: AccountId,
    (spec, output): (TaskSpec, Option<ContentHash>),
) -> Event {
    let (task, kind) = (of.id, of.kind);
    match try_fetch(tools, of, &provider, (&spec, output)).await {
        Ok(Fetched::Counted(tokens)) => Event::AuditInput {
            task,
            provider,
            tokens,
        },
        Ok(Fetched::Signed(statement)) => Event::AuditFetched {
            task,
            provider,
            statement: *statement,
        },
        Ok(Fetched::Shown(output)) => Event::AuditShown {
            task,
            provider,
            output,
        },
        Ok(Fetched::Known) => done(task, kind),
        Err(error) => cannot(of, "cannot fetch what is to be audited", &error),
    }
}

/// What an audit takes is here.
enum Fetched {
    /// And nothing else is new.
    Known,
    /// And the items of its input have so many tokens.
    Counted(u64),
    /// And the provider has given its word, which was not known.
    Signed(Box<Statement>),
    /// And the provider has shown this output on chain.
    Shown(ContentHash),
}

async fn try_fetch(
    tools: &Tools,
    of: Task,
    provider: &AccountId,
    (spec, output): (&TaskSpec, Option<ContentHash>),
) -> Result<Fetched, EffectError> {
    let from = Source::of(tools, of, provider).await?;
    let input = input(tools, of, spec, &from.endpoints, from.ticket.clone()).await?;
    let tokens = leaves::tokens(tools, spec, &input);
    keep(tools, of.id, spec.input, input).await;
    // Embeddings follow from the input alone.
    if spec.operation == Operation::Embed {
        return Ok(tokens.map_or(Fetched::Known, Fetched::Counted));
    }
    if let Some((output, blob)) = shown_output(tools, of.id, provider).await? {
        keep(tools, of.id, output, blob).await;
        return Ok(Fetched::Shown(output));
    }
    let (blob, statement) = served::signed_output(tools, of, (spec, output), &from).await?;
    if let Some((output, blob)) = blob {
        keep(tools, of.id, output, blob).await;
    }
    Ok(statement.map_or(Fetched::Known, |statement| Fetched::Signed(Box::new(statement))))
}

/// The output that a provider has shown on chain before the reveal, once all of it can be read there.
async fn shown_output(
    tools: &Tools,
    task: TaskId,
    provider: &AccountId,
) -> Result<Option<(ContentHash, Bytes)>, EffectError> {
    let note = tools.chain.commit_note(When::Finalized, task, provider).await?;
    let Some(named) = note.and_then(|note| note.shown) else {
        return Ok(None);
    };
    let blob = shown(tools, task, named.content).await?;
    Ok(blob.map(|blob| (named.content, blob)))
}

/// Computes a task again, or these items of it, and says what comes of it.
pub(super) async fn audit(
    tools: &Tools,
    of: Task,
    provider: AccountId,
    (spec, output): (TaskSpec, Option<ContentHash>),
    items: Option<Vec<u32>>,
) -> Event {
    let task = of.id;
    let audited = async {
        if let Some(items) = items
            && let Some(found) = some_items(tools, of, &provider, &spec, items).await?
        {
            return Ok(Found::Items(found));
        }
        let found = whole(tools, of, &provider, (&spec, output)).await;
        found.map(Found::Whole)
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

pub(super) fn cannot(of: Task, what: &str, error: &EffectError) -> Event {
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
    let input = own_input(tools, of, provider, spec).await?;
    let ticket = tools.engines.audit_items(&spec.model, job(spec, &input), items)?;
    match ticket.await {
        Ok(found) => Ok(Some(found)),
        Err(EngineError::NoItems) => Ok(None),
        Err(error) => Err(ComputeError::from(error).into()),
    }
}

/// Sees whether a provider's result shows what we have found of our items, by what it serves.
pub(super) async fn compare(
    tools: &Tools,
    of: Task,
    provider: AccountId,
    spec: TaskSpec,
    shown: (ResultClaim, (Vec<u32>, ItemsFound)),
) -> Event {
    let compared = is_shown(tools, of, &provider, &spec, shown).await;
    told(of, provider, compared)
}

/// Whether it shows it, and what we play with where it does not.
pub(super) type Compared = (bool, Option<KeptView>);

/// The same by computing all of it.
pub(super) async fn compare_all(
    tools: &Tools,
    of: Task,
    provider: AccountId,
    spec: TaskSpec,
    claim: ResultClaim,
) -> Event {
    let computed = whole(tools, of, &provider, (&spec, None)).await;
    told(of, provider, computed.map(|computed| (computed == claim, None)))
}

fn told(of: Task, provider: AccountId, compared: Result<Compared, EffectError>) -> Event {
    let task = of.id;
    match compared {
        Ok((agrees, view)) => {
            tracing::info!(task, agrees, "compared with what the provider says");
            Event::AuditCompared {
                task,
                kind: of.kind,
                provider,
                agrees,
                view,
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
    shown: (ResultClaim, (Vec<u32>, ItemsFound)),
) -> Result<Compared, EffectError> {
    // What was shown on chain is there whatever it serves.
    match leaves::by_parts(tools, of, provider, spec, &shown).await {
        Ok(Some(compared)) => return Ok(compared),
        Ok(None) => {}
        Err(error) => tracing::warn!(task = of.id, %error, "what was shown on chain cannot be read"),
    }
    let (claim, (items, found)) = shown;
    let from = Source::of(tools, of, provider).await?;
    let said = served::leaves(tools, of, &from).await?;
    let input = input(tools, of, spec, &from.endpoints, from.ticket.clone()).await?;
    let (engine, job) = (tools.engines.get(&spec.model)?, job(spec, &input));
    // Of so many hashes, and of nothing longer: what it serves besides is not taken.
    let bytes = engine
        .leaf_count(&job)
        .map(|leaves| u64::from(leaves) * HASH_BYTES);
    let wanted = (said, bytes.ok_or(EffectError::NoLeaves)?);
    let leaves = fetch_blob(tools, of, wanted, &from.endpoints, from.ticket.clone()).await?;
    let root = claim.trace_root;
    // A million leaves take long enough to keep others waiting. Whoever shows those of another trace shows
    // none, and of it no output is fetched.
    let look = move |_: &mut JobSink| {
        let leaves = leaves_of(&leaves);
        Ok(leaves.filter(|leaves| merkle_root(leaves.iter().copied()) == root))
    };
    let leaves = tools.engines.answer(look)?.await.map_err(ComputeError::from)?;
    let leaves = leaves.ok_or(EffectError::NoLeaves)?;
    let output = served::output(tools, of, (spec, claim.output), &from).await?;
    let ticket = tools.engines.answer(move |sink| {
        let shown = (&leaves[..], &output[..]);
        if engine.shows_items(&job, (&items, &found), &claim, shown) {
            return Ok((true, None));
        }
        // Of another number of units there is another trace.
        match claim.units == job.units_max {
            true => Ok((false, engine.view_by_items(&job, &items, shown, sink)?)),
            false => Ok((false, None)),
        }
    })?;
    let (agrees, view) = ticket.await.map_err(ComputeError::from)?;
    let view = match view {
        Some(view) => keep_view(tools, of.id, view).await,
        None => None,
    };
    Ok((agrees, view))
}

/// Keeps what we play with, for as long as the task is watched. What is not kept is computed again.
pub(super) async fn keep_view(tools: &Tools, task: TaskId, view: View) -> Option<KeptView> {
    let leaves = keep_anew(tools, task, leaves_blob(&view.leaves)).await?;
    let output = keep_anew(tools, task, Bytes::from(view.output)).await?;
    let differs = view.differs.map(|differs| (differs.leaf, differs.segment));
    Some(KeptView {
        leaves,
        output,
        differs,
    })
}

async fn whole(
    tools: &Tools,
    of: Task,
    provider: &AccountId,
    (spec, output): (&TaskSpec, Option<ContentHash>),
) -> Result<ResultClaim, EffectError> {
    // Both are mostly here already: they were fetched before.
    let input = own_input(tools, of, provider, spec).await?;
    let output = match spec.operation {
        Operation::Embed => Bytes::new(),
        Operation::Generate => {
            let signed = output.ok_or(EffectError::Unsigned)?;
            let from = Source::of(tools, of, provider).await?;
            served::output(tools, of, (spec, signed), &from).await?
        }
    };
    let ticket = tools
        .engines
        .audit(&spec.model, job(spec, &input), output.to_vec());
    Ok(ticket?.await.map_err(ComputeError::from)?)
}

pub(super) async fn own_input(
    tools: &Tools,
    of: Task,
    provider: &AccountId,
    spec: &TaskSpec,
) -> Result<Bytes, EffectError> {
    let from = Source::of(tools, of, provider).await?;
    input(tools, of, spec, &from.endpoints, from.ticket).await
}

pub(super) fn job(spec: &TaskSpec, input: &Bytes) -> Job {
    Job {
        operation: spec.operation,
        input: input.to_vec(),
        units_max: spec.units_max,
    }
}

/// Whether a provider serves what it has revealed.
pub(super) async fn check_data(
    tools: &Tools,
    of: Task,
    provider: AccountId,
    revealed: (TaskSpec, ContentHash),
) -> Event {
    let (task, kind) = (of.id, of.kind);
    let (spec, output) = &revealed;
    match served::check(tools, of, &provider, (spec, *output)).await {
        Ok(()) => done(task, kind),
        Err(error) => cannot(of, "an output cannot be had", &error),
    }
}
