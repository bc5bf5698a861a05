//! Carrying out slashes that have waited long enough.

use std::sync::Arc;

use surety_chain_client::{BlockNumber, Call, ChainError, SlashRecord, Until, When};

use super::{Tools, retry::Backoff};

/// Time on the chain's clock that is left to whoever gets a share: several verifiers need not pay for the
/// same call.
const OTHERS_BLOCKS: BlockNumber = 6;

/// Looks after every finalised block, for as long as it is polled.
pub(super) async fn carry_out(tools: Arc<Tools>) {
    let mut backoff = Backoff::new();
    loop {
        match carry_out_until_error(&tools, &mut backoff).await {
            Ok(()) => return,
            Err(e) => tracing::warn!(error = %e, "cannot see to slashes, trying again"),
        }
        backoff.wait().await;
    }
}

async fn carry_out_until_error(tools: &Tools, backoff: &mut Backoff) -> Result<(), ChainError> {
    let mut blocks = tools.chain.finalized_blocks().await?;
    loop {
        let block = blocks.next().await?;
        let when = When::At(block.hash);
        let clock = tools.chain.clock(when).await?;
        for (slash, record) in tools.chain.slashes(when).await? {
            if !is_ours_now(tools, &record, clock) {
                continue;
            }
            let call = Call::CarryOutSlash { slash };
            // Final, so that the next look does not find it again.
            let until = Until::Finalized.into();
            match tools.chain.submit(&tools.signer, call, until).await {
                Ok(_) => {
                    tracing::info!(slash, cause = ?record.cause, kind = ?record.kind, "slash carried out")
                }
                Err(e) => tracing::warn!(slash, error = %e, "slash not carried out"),
            }
        }
        backoff.reset();
    }
}

fn is_ours_now(tools: &Tools, slash: &SlashRecord, clock: BlockNumber) -> bool {
    let ours = match slash.finders.is_empty() {
        true => slash.finder.as_ref() == Some(&tools.stash),
        false => slash.finders.contains(&tools.stash),
    };
    let due = match ours {
        true => slash.until,
        false => slash.until.saturating_add(OTHERS_BLOCKS),
    };
    clock > due
}
