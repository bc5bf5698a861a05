//! What batches of providers say of receipts: when the newest may have some, and which are final.

use std::{collections::BTreeMap, sync::Arc};

use surety_chain_client::{BatchView, ChainError, When};
use surety_channels::{BatchNumber, Time};

use crate::{
    AccountId,
    channel::Message,
    market::{Market, Shared},
};

/// What is known of a provider's batches.
struct Known {
    /// Since after when they are.
    are_final: Arc<BTreeMap<BatchNumber, Time>>,
    committed: Option<Time>,
}

/// Tells channels when the newest batch of their provider was committed, where something of them was not
/// shown, and which are final, where receipts were shown to be in some: nothing can be said against those
/// any more, and they take nothing of what their provider's lock covers, whenever it counts them.
pub(super) async fn look(shared: &Shared, when: When, market: &Market) -> Result<(), ChainError> {
    let mut known = BTreeMap::<AccountId, Known>::new();
    for handle in market.channels.values() {
        let (covered, has_unshown) = {
            let status = handle.status();
            (status.covered.clone(), !status.unshown.is_empty())
        };
        if covered.is_empty() && !has_unshown {
            continue;
        }
        if !known.contains_key(&handle.payee) {
            let batches = shared.config.channels.batches(when, &handle.payee).await?;
            let are_final = batches.iter().filter(|batch| batch.window.is_final(market.now));
            let of = Known {
                are_final: Arc::new(are_final.map(|batch| (batch.batch, batch.window.until)).collect()),
                committed: batches
                    .iter()
                    .max_by_key(|batch| batch.batch)
                    .map(|newest| committed(newest, market)),
            };
            known.insert(handle.payee.clone(), of);
        }
        let Some(known) = known.get(&handle.payee) else {
            continue;
        };
        handle.status().committed = known.committed;
        // Also where none of them is: what is counted was in one that is.
        if !covered.is_empty() {
            handle.tell(Message::Final(known.are_final.clone())).await;
        }
    }
    Ok(())
}

/// When a batch was committed, unless its window was made longer since: it is not later than this, then.
fn committed(batch: &BatchView, market: &Market) -> Time {
    let begun = batch.window.until.saturating_sub(market.rules.batch_window);
    begun.min(market.now)
}
