//! Follows the best block.

use std::{sync::Arc, time::Duration};

use surety_chain_client::{BlockRef, ChainError};
use tokio::{sync::watch, time::sleep};

use crate::Parts;

/// Between two attempts when the chain is out of sight, at first and at most.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(16);

/// Tells of each best block, until nobody listens.
pub(crate) async fn follow(parts: Arc<Parts>, newest: watch::Sender<Option<BlockRef>>) {
    let mut pause = PAUSE;
    loop {
        match follow_once(&parts, &newest, &mut pause).await {
            Ok(()) => return,
            Err(error) => tracing::warn!(%error, "the benchmark has lost the chain, trying again"),
        }
        sleep(pause).await;
        pause = pause.saturating_mul(2).min(PAUSE_MAX);
    }
}

async fn follow_once(
    parts: &Parts,
    newest: &watch::Sender<Option<BlockRef>>,
    pause: &mut Duration,
) -> Result<(), ChainError> {
    let mut blocks = parts.chain.best_blocks().await?;
    loop {
        let block = blocks.next().await?;
        *pause = PAUSE;
        if newest.send(Some(block)).is_err() {
            return Ok(());
        }
    }
}
