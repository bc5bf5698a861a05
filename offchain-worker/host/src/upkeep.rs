//! What a worker looks after every now and then: its money, its free stake, whether it may bid, and whom it
//! keeps places for.

use std::sync::Arc;

use surety_chain_client::{AccountId, ChainError, When};
use surety_types::multiaddr::Endpoint;
use surety_worker_core::Event;
use tokio::sync::mpsc;

use super::{Tools, parameter, retry::Backoff};

/// Blocks between two looks: a minute.
const EVERY: u32 = 30;

/// The runtime's default, where neither genesis nor governance has set another.
const LOCK_MULTIPLE: u32 = 40;

/// Looks again and again, for as long as it is polled.
pub(super) async fn see_to(tools: Arc<Tools>, events: mpsc::Sender<Event>) {
    let mut backoff = Backoff::new();
    loop {
        match until_error(&tools, &events, &mut backoff).await {
            Ok(()) => return,
            Err(e) => tracing::warn!(error = %e, "cannot look after money and peers, trying again"),
        }
        backoff.wait().await;
    }
}

async fn until_error(
    tools: &Tools,
    events: &mpsc::Sender<Event>,
    backoff: &mut Backoff,
) -> Result<(), ChainError> {
    let mut blocks = tools.chain.finalized_blocks().await?;
    let mut last = None;
    loop {
        let block = blocks.next().await?.number;
        if last.is_some_and(|last| block.saturating_sub(last) < EVERY) {
            continue;
        }
        show_funds(tools).await?;
        for event in [stake(tools).await?, barred(tools).await?] {
            if events.send(event).await.is_err() {
                return Ok(());
            }
        }
        name_peers(tools).await?;
        last = Some(block);
        backoff.reset();
    }
}

async fn show_funds(tools: &Tools) -> Result<(), ChainError> {
    for (name, account) in [("stash", &tools.stash), ("agent", tools.signer.account())] {
        let funds = tools.chain.funds(When::Finalized, account).await?;
        tools.vitals.metrics.funds(name, funds.free, funds.held);
    }
    Ok(())
}

async fn stake(tools: &Tools) -> Result<Event, ChainError> {
    let chain = &*tools.chain;
    let stake = chain.stake(When::Finalized, &tools.stash).await?;
    Ok(Event::Stake {
        free: stake.map_or(0, |stake| stake.bonded.saturating_sub(stake.locked)),
        lock_per_price: parameter(chain, "Results", "LockMultiple", LOCK_MULTIPLE).await?,
    })
}

async fn barred(tools: &Tools) -> Result<Event, ChainError> {
    let record = tools.chain.trust(When::Finalized, &tools.stash).await?;
    let until = record.suspended_until.max(record.jailed_until);
    Ok(Event::Barred { until })
}

/// Providers, and clients of open tasks: strangers cannot take their places at our door.
async fn name_peers(tools: &Tools) -> Result<(), ChainError> {
    let providers = tools.chain.providers(When::Finalized).await?;
    let others = providers
        .into_iter()
        .filter(|(stash, _): &(AccountId, _)| *stash != tools.stash);
    let tasks = tools.chain.open_tasks(When::Finalized, None).await?;
    let clients = tasks
        .iter()
        .flat_map(|open| open.task.spec.sources.iter().cloned());
    let mut named: Vec<Endpoint> = others
        .flat_map(|(_, record)| record.endpoints)
        .chain(clients)
        .collect();
    named.sort_unstable();
    named.dedup();
    if let Err(e) = tools.plane.set_named_peers(&named).await {
        tracing::warn!(error = %e, "no places are kept for peers that the chain names");
    }
    Ok(())
}
