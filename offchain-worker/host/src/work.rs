//! A provider's own work: fetching inputs, and computing on them.

use std::time::{Duration, Instant};

use surety_chain_client::{ChainError, When};
use surety_engine::Job;
use surety_network::{Bytes, FetchOptions, PlaneError, Ticket};
use surety_types::{
    ContentHash, ModelId, TaskId,
    model::Operation,
    multiaddr::{Endpoint, Endpoints},
    task::ResultClaim,
};
use surety_worker_core::{EffectKind, Event, FETCH_BYTES_PER_SECOND};

use super::{
    Tools,
    effect_error::EffectError,
    jobs::{Task, failed},
    sources::endpoints,
    stream,
};

/// For connections, and for sources that do not answer.
const FETCH_SECONDS: u64 = 30;

/// The largest blob that the chain lets anybody ask for.
pub(super) const BYTES_MAX: u64 = 64 << 20;

/// How long a fetch may take in all: as much as so many bytes need, and no more than there is.
fn time_for(bytes: u64, time: Duration) -> Duration {
    let needed = bytes / u64::from(FETCH_BYTES_PER_SECOND);
    Duration::from_secs(needed.saturating_add(FETCH_SECONDS)).min(time)
}

/// A blob of ours.
pub(super) async fn own_blob(tools: &Tools, hash: ContentHash) -> Result<Bytes, PlaneError> {
    tools.plane.fetch(hash, &[], &FetchOptions::default()).await
}

/// A blob of this hash and this size, from us or others, who are shown the ticket. It may take all the time
/// until its deadline.
pub(super) async fn fetch_blob(
    tools: &Tools,
    of: Task,
    (hash, bytes): (ContentHash, u64),
    sources: &[Endpoint],
    ticket: Option<Ticket>,
) -> Result<Bytes, PlaneError> {
    fetch_timed(tools, hash, sources, &exactly(bytes, of, ticket)).await
}

/// A blob of this size, within the time until its deadline.
fn exactly(bytes: u64, of: Task, ticket: Option<Ticket>) -> FetchOptions {
    FetchOptions {
        timeout: Some(time_for(bytes, of.time_left())),
        ticket,
        ..FetchOptions::sized(bytes)
    }
}

/// A blob that has no more than so many bytes. Who offers it may hold it back: half of the time is left for
/// what is done then, or with the blob.
pub(super) async fn fetch_at_most(
    tools: &Tools,
    of: Task,
    (hash, bytes_max): (ContentHash, u64),
    sources: &[Endpoint],
    ticket: Option<Ticket>,
) -> Result<Bytes, PlaneError> {
    let options = FetchOptions {
        timeout: Some(time_for(bytes_max, of.time_left() / 2)),
        ticket,
        ..FetchOptions::at_most(bytes_max)
    };
    fetch_timed(tools, hash, sources, &options).await
}

async fn fetch_timed(
    tools: &Tools,
    hash: ContentHash,
    sources: &[Endpoint],
    options: &FetchOptions,
) -> Result<Bytes, PlaneError> {
    let started = Instant::now();
    let blob = tools.plane.fetch(hash, sources, options).await?;
    let metrics = &tools.vitals.metrics;
    metrics.fetch_seconds.observe(started.elapsed().as_secs_f64());
    Ok(blob)
}

/// A blob of no more than so many bytes, a few kilobytes, that may be demanded on chain where nobody serves
/// it: looked for in a part of the time that is left.
pub(super) async fn fetch_brief(
    tools: &Tools,
    of: Task,
    (hash, bytes_max): (ContentHash, u64),
    sources: &[Endpoint],
    ticket: Option<Ticket>,
) -> Result<Bytes, PlaneError> {
    let options = FetchOptions {
        timeout: Some(Duration::from_secs(FETCH_SECONDS).min(of.time_left() / 8)),
        ticket,
        ..FetchOptions::at_most(bytes_max)
    };
    fetch_timed(tools, hash, sources, &options).await
}

/// Where a task's input is: at its client, and at the others who have committed to a result. Once they are
/// most of the round the client owes it to nobody.
async fn holders(tools: &Tools, task: TaskId, client: &Endpoints) -> Result<Vec<Endpoint>, ChainError> {
    let mut holders = client.to_vec();
    let round = tools
        .chain
        .task(When::Best, task)
        .await?
        .and_then(|info| info.round);
    for member in round.iter().flat_map(|round| &round.members) {
        if member.owes_opening() && member.provider != tools.stash {
            holders.extend(endpoints(tools, &member.provider).await?);
        }
    }
    Ok(holders)
}

/// Fetches an input, and pins it: it must still be there when its turn comes.
pub(super) async fn fetch(
    tools: &Tools,
    of: Task,
    (hash, bytes): (ContentHash, u32),
    client: &Endpoints,
    may_be_here: bool,
) -> Event {
    let task = of.id;
    // Whoever has the input lets us in as a member of this task's round.
    let pass = surety_access::ticket(
        &tools.signer,
        &tools.chain.info().genesis,
        &tools.plane.peer_id(),
        task,
        None,
    );
    let fetched = async {
        if may_be_here && let Ok(blob) = own_blob(tools, hash).await {
            return tools.plane.publish(blob).await.map_err(EffectError::from);
        }
        let holders = holders(tools, task, client).await?;
        // Whoever posts a task with another's input has none to deliver: one that is here for another task is
        // not for this one's client.
        let options = FetchOptions {
            anew: true,
            ..exactly(bytes.into(), of, pass)
        };
        let blob = fetch_timed(tools, hash, &holders, &options).await?;
        tools.plane.publish(blob).await.map_err(EffectError::from)
    };
    match fetched.await.map(drop) {
        Ok(()) => {
            tracing::info!(task, "input is here");
            Event::InputReady { task }
        }
        Err(error) => {
            let reason = error.to_string();
            tracing::warn!(task, reason, "cannot fetch the input");
            failed(task, EffectKind::Fetch, error.class())
        }
    }
}

/// What is to be computed.
pub(super) struct Work {
    pub(super) model: ModelId,
    pub(super) operation: Operation,
    pub(super) input: ContentHash,
    pub(super) units_max: u32,
    /// Who may see it grow.
    pub(super) client: Endpoints,
}

pub(super) async fn compute(tools: &Tools, task: TaskId, work: Work) -> Event {
    match try_compute(tools, task, work).await {
        Ok((claim, leaves)) => {
            tracing::info!(task, output = ?claim.output, units = claim.units, "computed");
            Event::ResultReady { task, claim, leaves }
        }
        Err(error) => {
            let reason = error.to_string();
            tracing::warn!(task, reason, "cannot compute");
            failed(task, EffectKind::Compute, error.class())
        }
    }
}

async fn try_compute(
    tools: &Tools,
    task: TaskId,
    work: Work,
) -> Result<(ResultClaim, Option<ContentHash>), EffectError> {
    let input = own_blob(tools, work.input).await?;
    let job = Job {
        operation: work.operation,
        input: input.to_vec(),
        units_max: work.units_max,
    };
    let outcome = match work.operation {
        Operation::Embed => stream::run(tools, &work.model, job).await,
        Operation::Generate => stream::run_streaming(tools, task, &work.model, job, &work.client).await,
    };
    let outcome = outcome?;
    // On disk before core hears of the result: what is committed to can be delivered.
    let output = Bytes::from(outcome.output);
    tools.plane.publish(output).await?;
    // Auditors of items are shown them, and we play with them.
    let leaves = match outcome.leaves.is_empty() {
        false => Some(tools.plane.publish(leaves_blob(&outcome.leaves)).await?),
        true => None,
    };
    Ok((outcome.claim, leaves))
}

/// The blob of a trace's leaves.
pub(super) fn leaves_blob(leaves: &[ContentHash]) -> Bytes {
    leaves.iter().flat_map(|leaf| leaf.0).collect()
}

/// What is in the blob of a trace's leaves; nothing where it is none.
pub(super) fn leaves_of(blob: &[u8]) -> Option<Vec<ContentHash>> {
    let (leaves, rest) = blob.as_chunks::<32>();
    rest.is_empty()
        .then(|| leaves.iter().copied().map(ContentHash::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fetch_has_the_time_that_its_size_needs_and_ends_before_its_deadline() {
        let seconds = |bytes, left| time_for(bytes, Duration::from_secs(left)).as_secs();
        assert_eq!(seconds(0, 9_999), 30);
        assert_eq!(seconds(16 << 20, 9_999), 94);
        assert_eq!(seconds(16 << 20, 40), 40);
        assert_eq!(seconds(BYTES_MAX, 9_999), 286);
    }
}
