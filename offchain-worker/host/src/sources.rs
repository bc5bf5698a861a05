//! Where contents of tasks are looked for: here first, then on the chain, then with peers.

use surety_chain_client::{AccountId, ChainError, When};
use surety_engine::content_hash;
use surety_network::{Bytes, PlaneError, Ticket};
use surety_types::{ContentHash, TaskId, multiaddr::Endpoint, task::TaskSpec};

use super::{
    Tools,
    effect_error::EffectError,
    jobs::Task,
    work::{fetch_blob, own_blob},
};

/// Content that is here, or that was shown on chain, or that comes from peers.
pub(super) async fn found<E>(
    tools: &Tools,
    task: TaskId,
    content: ContentHash,
    from_peers: impl Future<Output = Result<Bytes, E>>,
) -> Result<Bytes, EffectError>
where
    EffectError: From<E>,
{
    match own_blob(tools, content).await {
        Ok(blob) => return Ok(blob),
        Err(PlaneError::NoSources(_)) => {}
        Err(error) => tracing::warn!(task, %error, "what is kept here cannot be read"),
    }
    match shown(tools, task, content).await {
        Ok(Some(shown)) => Ok(shown),
        Ok(None) => Ok(from_peers.await?),
        // What the chain may have is not taken for withheld. It is not waited for where a peer has it.
        Err(error) => from_peers.await.map_err(|_| error.into()),
    }
}

/// Content that has been shown on chain, whole.
pub(super) async fn shown(
    tools: &Tools,
    task: TaskId,
    content: ContentHash,
) -> Result<Option<Bytes>, ChainError> {
    let shown = tools.chain.shown(When::Finalized, task, content).await?;
    Ok((!shown.is_empty() && content_hash(&shown) == content).then(|| shown.into()))
}

/// A task's input. Of peers its client has it, and who has computed on it.
pub(super) async fn input(
    tools: &Tools,
    of: Task,
    spec: &TaskSpec,
    others: &[Endpoint],
    ticket: Option<Ticket>,
) -> Result<Bytes, EffectError> {
    let sources: Vec<Endpoint> = spec.sources.iter().chain(others).cloned().collect();
    let wanted = (spec.input, spec.input_bytes.into());
    let from_peers = fetch_blob(tools, of, wanted, &sources, ticket);
    found(tools, of.id, spec.input, from_peers).await
}

/// Where a provider's data plane answers.
pub(super) async fn endpoints(tools: &Tools, provider: &AccountId) -> Result<Vec<Endpoint>, ChainError> {
    let record = tools.chain.provider(When::Finalized, provider).await?;
    Ok(record.map_or_else(Vec::new, |record| record.endpoints.to_vec()))
}
