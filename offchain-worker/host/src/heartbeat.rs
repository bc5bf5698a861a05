//! Signs of life, so that the provider keeps being given work.

use std::sync::Arc;

use surety_chain_client::{Call, Chain, ChainError, Until, When};

use super::{Tools, parameter, retry::Backoff};

/// The runtime's default, where neither genesis nor governance has set another.
const WINDOW: u32 = 300;

/// How many blocks may pass between two signs of life: two may be lost then.
///
/// # Errors
/// When the chain cannot be asked.
pub async fn blocks_between(chain: &dyn Chain) -> Result<u32, ChainError> {
    let window = parameter(chain, "ProviderRegistry", "HeartbeatWindow", WINDOW).await?;
    Ok((window / 3).max(1))
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

/// By the best block: the window counts blocks, final or not.
async fn beat_until_error(tools: &Tools, every: u32, backoff: &mut Backoff) -> Result<(), ChainError> {
    let mut blocks = tools.chain.best_blocks().await?;
    loop {
        let block = blocks.next().await?;
        let provider = tools.chain.provider(When::Best, &tools.stash).await?;
        let last = provider.map(|provider| provider.last_heartbeat);
        let age = last.map(|last| block.number.saturating_sub(last));
        if age.is_none_or(|age| age >= every) {
            let until = Until::Included.into();
            tools.chain.submit(&tools.signer, Call::Heartbeat, until).await?;
            tracing::debug!(block = block.number, "heartbeat");
        }
        backoff.reset();
    }
}
