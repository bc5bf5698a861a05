//! Says on the chain which models a verifier audits: tasks are taken for models that enough of the verifiers'
//! stake can audit.

use std::sync::Arc;

use surety_chain_client::{BlockNumber, Call, ChainError, Until, When};
use surety_types::ModelId;

use super::{Tools, retry::Backoff};

/// Blocks between two looks: ten minutes. A verifier whose place another with more stake has taken tries
/// again.
const EVERY: BlockNumber = 300;

/// Sees to it for as long as it is polled. Said in vain it is said again after pauses that grow.
pub(super) async fn keep(tools: Arc<Tools>) {
    let mut backoff = Backoff::costly();
    loop {
        if let Err(e) = until_error(&tools).await {
            tracing::warn!(error = %e, "cannot say which models we audit, trying again");
        }
        backoff.wait().await;
    }
}

async fn until_error(tools: &Tools) -> Result<(), ChainError> {
    let mut blocks = tools.chain.finalized_blocks().await?;
    let mut next = 0;
    loop {
        let block = blocks.next().await?.number;
        if block < next {
            continue;
        }
        for model in missing(tools).await? {
            let call = Call::OfferAudits { model, offered: true };
            tools
                .chain
                .submit(&tools.signer, call, Until::Included.into())
                .await?;
            tracing::info!(?model, "said that we audit a model");
        }
        next = block.saturating_add(EVERY);
    }
}

/// Models that we can run, that the chain knows, and of which it does not know that we audit them.
async fn missing(tools: &Tools) -> Result<Vec<ModelId>, ChainError> {
    let mut models: Vec<ModelId> = tools.engines.offered().map(|(model, _)| model).collect();
    models.sort_unstable();
    models.dedup();
    let mut missing = Vec::new();
    for model in models {
        let is_known = tools.chain.model(When::Finalized, &model).await?.is_some();
        let auditors = tools.chain.auditors(When::Finalized, &model).await?;
        if is_known && !auditors.contains(&tools.stash) {
            missing.push(model);
        }
    }
    Ok(missing)
}
