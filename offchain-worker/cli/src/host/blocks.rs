//! Turns finalised blocks into what core wants to know of them.

use std::{collections::HashMap, sync::Arc};

use surety_chain_client::{AccountId, Balance, Chain, ChainError, OpenTask, When};
use surety_types::task::TaskState;
use surety_worker_core::{BidSeen, Event, TaskSnapshot};
use tokio::sync::mpsc;

use super::retry::Backoff;

/// What clients can pay, by cap and redundancy. Forgotten when it has grown too large.
type Limits = HashMap<(Balance, u32), Option<Balance>>;

/// Limits that are remembered: more than there are open tasks on a busy day.
const LIMITS_MAX: usize = 1024;

/// Sends one event for each finalised block, until nobody listens. A node that is down is waited for.
pub(super) async fn follow(chain: Arc<dyn Chain>, stash: AccountId, events: mpsc::Sender<Event>) {
    let mut backoff = Backoff::new();
    let mut limits = Limits::new();
    loop {
        match follow_until_error(&*chain, &stash, &events, &mut backoff, &mut limits).await {
            Ok(()) => return,
            Err(e) => tracing::warn!(error = %e, "lost the chain, trying again"),
        }
        backoff.wait().await;
    }
}

async fn follow_until_error(
    chain: &dyn Chain,
    stash: &AccountId,
    events: &mpsc::Sender<Event>,
    backoff: &mut Backoff,
    limits: &mut Limits,
) -> Result<(), ChainError> {
    let mut blocks = chain.finalised_blocks().await?;
    loop {
        let block = blocks.next().await?;
        let when = When::At(block.hash);
        let open = chain.open_tasks(when, Some(stash)).await?;
        let mut tasks = Vec::with_capacity(open.len());
        for task in open {
            tasks.push(snapshot(chain, when, task, limits).await?);
        }
        backoff.reset();
        let event = Event::Finalised {
            block: block.number,
            tasks,
        };
        if events.send(event).await.is_err() {
            return Ok(());
        }
    }
}

async fn snapshot(
    chain: &dyn Chain,
    when: When,
    open: OpenTask,
    limits: &mut Limits,
) -> Result<TaskSnapshot, ChainError> {
    let undecided = matches!(open.task.state, TaskState::Bidding { .. }) && open.bid.is_none();
    let price_limit = match undecided {
        true => price_limit(chain, when, &open, limits).await?,
        false => None,
    };
    let (mut disputes, mut committees, mut demands) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(round) = &open.round {
        for dispute in &round.disputes {
            let found = chain.dispute(when, dispute.id).await?;
            if found.as_ref().is_some_and(|found| found.beyond_since.is_some()) {
                let committee = chain.committee(when, dispute.id).await?;
                committees.extend(committee.map(|committee| (dispute.id, committee)));
            }
            disputes.extend(found.map(|found| (dispute.id, found)));
        }
        let members = round.members.iter().filter(|_| round.demands > 0);
        for member in members {
            let found = chain.demand(when, open.id, &member.provider).await?;
            demands.extend(found.map(|found| (member.provider.clone(), found)));
        }
    }
    Ok(TaskSnapshot {
        id: open.id,
        task: open.task,
        round: open.round,
        bid: open.bid.map(|bid| BidSeen {
            seal: bid.seal,
            opened: bid.opened.is_some(),
        }),
        price_limit,
        disputes,
        demands,
        committees,
    })
}

async fn price_limit(
    chain: &dyn Chain,
    when: When,
    open: &OpenTask,
    limits: &mut Limits,
) -> Result<Option<Balance>, ChainError> {
    let key = (open.task.cap, open.task.spec.redundancy);
    if let Some(limit) = limits.get(&key) {
        return Ok(*limit);
    }
    let limit = chain.price_limit(when, key.0, key.1).await?;
    if limits.len() >= LIMITS_MAX {
        limits.clear();
    }
    limits.insert(key, limit);
    Ok(limit)
}
