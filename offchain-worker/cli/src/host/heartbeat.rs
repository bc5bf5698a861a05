//! Signs of life, so that the provider keeps being given work.

use std::sync::Arc;

use surety_chain_client::{Call, Chain, ChainError, Until, When};

use super::{retry::Backoff, Tools};

/// A third of the shortest window of any preset: two beats may be lost.
const BLOCKS: u32 = 20;

/// How many blocks may pass between two signs of life.
///
/// # Errors
/// When the chain cannot be asked.
pub async fn blocks_between(chain: &dyn Chain) -> Result<u32, ChainError> {
    let parameters = chain.parameters(When::Finalised).await?;
    let window = parameters
        .iter()
        .find(|parameter| parameter.name == "HeartbeatWindow")
        .and_then(|parameter| parameter.value.parse::<u32>().ok());
    // Governance may have made it shorter or longer than the presets.
    Ok(window.map_or(BLOCKS, |window| window / 3).max(1))
}

/// Beats for as long as it is polled. A beat that fails is tried again soon.
pub(super) async fn beat(tools: Arc<Tools>, every: u32) {
    let mut backoff = Backoff::new();
    loop {
        match beat_until_error(&tools, every, &mut backoff).await {
            Ok(()) => return,
            Err(e) if e.is_retryable() => tracing::warn!(error = %e, "no heartbeat, trying again"),
            Err(e) => tracing::error!(error = %e, "the chain refuses the heartbeat: no new tasks will come"),
        }
        backoff.wait().await;
    }
}

async fn beat_until_error(tools: &Tools, every: u32, backoff: &mut Backoff) -> Result<(), ChainError> {
    let mut blocks = tools.chain.finalised_blocks().await?;
    loop {
        let block = blocks.next().await?;
        let provider = tools.chain.provider(When::At(block.hash), &tools.stash).await?;
        let last = provider.map(|provider| provider.last_heartbeat);
        let age = last.map(|last| block.number.saturating_sub(last));
        if age.is_none_or(|age| age >= every) {
            let call = Call::Heartbeat;
            // Final, so that the next look sees it.
            tools.chain.submit(&tools.signer, call, Until::Finalised).await?;
            tracing::debug!(block = block.number, "heartbeat");
        }
        backoff.reset();
    }
}
