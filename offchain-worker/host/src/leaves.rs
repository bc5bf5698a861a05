//! Audits of some items: how many tokens a task has, and what auditors hold their own items against, demanded
//! and read on chain: parts of the leaves of a provider's trace and of its output.

use std::collections::{BTreeMap, BTreeSet};

use surety_chain_client::{AccountId, Call, ChainError, When};
use surety_engine::ItemParts;
use surety_network::Bytes;
use surety_proofs::{PART_BYTES, leaves_name};
use surety_types::{
    ContentHash, TaskId,
    input::{IdBounds, InputReader},
    task::{ResultClaim, TaskSpec},
    trust::{Content, ContentPart, DemandedParts, ItemsFound},
};
use surety_worker_core::{Event, Failure};

use super::{
    Tools,
    audits::{Compared, cannot, job, keep_view, own_input},
    compute::ComputeError,
    effect_error::EffectError,
    effects::submit,
    jobs::{Task, failed},
    work::leaves_of,
};

/// Tokens of all items of a task; nothing where the model's positions are not known.
pub(super) fn tokens(tools: &Tools, spec: &TaskSpec, input: &[u8]) -> Option<u64> {
    let engine = tools.engines.get(&spec.model).ok()?;
    let architecture = &engine.manifest().exact.as_ref()?.architecture;
    let bounds = IdBounds {
        vocabulary: architecture.vocabulary,
        positions: architecture.positions,
    };
    Some(InputReader::new(input, bounds).tokens(spec.units_max))
}

/// All that these items are held against; nothing where the model is not here, or one demand cannot name
/// it, which it can of as many items as the chain gives an auditor.
fn needed(tools: &Tools, spec: &TaskSpec, input: &Bytes, items: &[u32]) -> Option<DemandedParts> {
    let parts = parts(tools, spec, input, items)?;
    let of = |content| move |part: &u32| ContentPart { content, part: *part };
    let leaves = parts.leaves.iter().map(of(Content::Leaves));
    let all: Vec<_> = leaves
        .chain(parts.output.iter().map(of(Content::Output)))
        .collect();
    DemandedParts::try_from(all).ok()
}

fn parts(tools: &Tools, spec: &TaskSpec, input: &Bytes, items: &[u32]) -> Option<ItemParts> {
    let engine = tools.engines.get(&spec.model).ok()?;
    engine.item_parts(&job(spec, input), items)
}

/// Demands on the chain what our items are held against.
pub(super) async fn demand(
    tools: &Tools,
    of: Task,
    provider: AccountId,
    (spec, items): (TaskSpec, Vec<u32>),
) -> Event {
    let input = match own_input(tools, of, &provider, &spec).await {
        Ok(input) => input,
        Err(error) => return cannot(of, "cannot tell what to demand", &error),
    };
    let Some(parts) = needed(tools, &spec, &input, &items) else {
        tracing::warn!(task = of.id, "one demand cannot name all that is to be compared");
        return failed(of.id, of.kind, Failure::Permanent);
    };
    let call = Call::Demand {
        task: of.id,
        provider,
        parts,
        proof: None,
    };
    submit(tools, of, call).await
}

/// Holds what we have found of our items against what the chain has been shown of a result; nothing where
/// that is not all it takes.
pub(super) async fn by_parts(
    tools: &Tools,
    of: Task,
    provider: &AccountId,
    spec: &TaskSpec,
    (claim, (items, found)): &(ResultClaim, (Vec<u32>, ItemsFound)),
) -> Result<Option<Compared>, EffectError> {
    let input = own_input(tools, of, provider, spec).await?;
    let Some(parts) = parts(tools, spec, &input, items) else {
        return Ok(None);
    };
    let trace = (leaves_name(&claim.trace_root), parts.leaves_bytes);
    let Some(leaves) = read(tools, of.id, trace, &parts.leaves).await? else {
        return Ok(None);
    };
    let output = (claim.output, parts.output_bytes);
    let Some(output) = read(tools, of.id, output, &parts.output).await? else {
        return Ok(None);
    };
    let (engine, job) = (tools.engines.get(&spec.model)?, job(spec, &input));
    let (claim, items, found) = (claim.clone(), items.clone(), found.clone());
    let ticket = tools.engines.answer(move |sink| {
        let Some(leaves) = leaves_of(&leaves) else {
            return Ok(None);
        };
        let shown = (&leaves[..], &output[..]);
        if engine.shows_items_in_parts(&job, (&items, &found), &claim, shown) {
            return Ok(Some((true, None)));
        }
        let view = engine.view_by_items(&job, &items, shown, sink)?;
        Ok(Some((
            false,
            view.map(|view| view.by_parts(shown, &parts.output)),
        )))
    })?;
    let Some((agrees, view)) = ticket.await.map_err(ComputeError::from)? else {
        return Ok(None);
    };
    let view = match view {
        Some(view) => keep_view(tools, of.id, view).await,
        None => None,
    };
    Ok(Some((agrees, view)))
}

/// Content of so many bytes of which these parts were shown, and nothing else is known; nothing where one of
/// them was not.
async fn read(
    tools: &Tools,
    task: TaskId,
    (content, bytes): (ContentHash, u32),
    parts: &BTreeSet<u32>,
) -> Result<Option<Vec<u8>>, ChainError> {
    let mut shown = BTreeMap::new();
    for part in parts {
        let found = tools
            .chain
            .shown_part(When::Finalized, task, (content, bytes, *part));
        let Some(found) = found.await? else {
            return Ok(None);
        };
        shown.insert(*part, found);
    }
    let mut all = vec![0; bytes as usize];
    for (part, found) in shown {
        let start = part as usize * PART_BYTES as usize;
        let place = start..start.saturating_add(found.len());
        let Some(place) = all.get_mut(place) else {
            return Ok(None);
        };
        place.copy_from_slice(&found);
    }
    Ok(Some(all))
}
