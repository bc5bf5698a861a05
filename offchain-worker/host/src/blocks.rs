//! Turns blocks into what core wants to know of them.
//!
//! Finalised blocks are what promises are made by. Best blocks, each of which may still be replaced, only ask
//! for what was promised before: they come first, and while finality stalls they are all that comes.

use std::{collections::HashMap, sync::Arc};

use surety_chain_client::{
    Balance, BlockRef, Chain, ChainError, CommitteeRecord, DemandRecord, DisputeRecord, OpenTask, When,
};
use surety_types::{TaskId, task::TaskState, trust::DisputeId};
use surety_worker_core::{AccountId, BidSeen, Event, TaskSnapshot};
use tokio::sync::mpsc;

use super::{Tools, retry::Backoff, vitals::Seen};

/// What clients can pay, by cap and redundancy. Forgotten when it has grown too large.
type Limits = HashMap<(Balance, u32), Option<Balance>>;

/// Limits that are remembered: more than there are open tasks on a busy day.
const LIMITS_MAX: usize = 1024;

/// What lies beside a task and its round in the chain's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Beside {
    disputes: Vec<(DisputeId, DisputeRecord)>,
    demands: Vec<(AccountId, DemandRecord)>,
    committees: Vec<(DisputeId, CommitteeRecord)>,
}

/// Reads blocks' states.
struct Reader<'a> {
    tools: &'a Tools,
    seen: Seen,
    limits: Limits,
    /// What was read last beside tasks: it stands in for what cannot be read any more.
    beside: HashMap<TaskId, Beside>,
}

/// Sends one event for each block, until nobody listens. A node that is down is waited for.
pub(super) async fn follow(tools: Arc<Tools>, seen: Seen, events: mpsc::Sender<Event>) {
    let mut backoff = Backoff::short();
    let mut reader = Reader {
        tools: &tools,
        seen,
        limits: Limits::new(),
        beside: HashMap::new(),
    };
    loop {
        match reader.follow(&events, &mut backoff).await {
            Ok(()) => return,
            Err(e) => tracing::warn!(?seen, error = %e, "lost the chain, trying again"),
        }
        backoff.wait().await;
    }
}

impl Reader<'_> {
    async fn follow(
        &mut self,
        events: &mpsc::Sender<Event>,
        backoff: &mut Backoff,
    ) -> Result<(), ChainError> {
        let mut blocks = match self.seen {
            Seen::Finalized => self.tools.chain.finalized_blocks().await?,
            Seen::Best => self.tools.chain.best_blocks().await?,
        };
        loop {
            let block = blocks.next().await?;
            let event = match self.event(block).await {
                Ok(event) => event,
                // There is a newer block already, and its state is there.
                Err(e @ ChainError::Pruned { .. }) => {
                    tracing::debug!(seen = ?self.seen, block = block.number, error = %e, "a block is skipped");
                    continue;
                }
                Err(e) => return Err(e),
            };
            backoff.reset();
            if events.send(event).await.is_err() {
                return Ok(());
            }
        }
    }

    async fn event(&mut self, block: BlockRef) -> Result<Event, ChainError> {
        let when = When::At(block.hash);
        let chain = self.tools.chain.clone();
        let (clock, open) =
            tokio::try_join!(chain.clock(when), chain.open_tasks(when, Some(&self.tools.stash)),)?;
        self.beside.retain(|id, _| open.iter().any(|task| task.id == *id));
        let mut tasks = Vec::with_capacity(open.len());
        for task in open {
            let id = task.id;
            match self.snapshot(&*chain, when, task).await {
                Ok(snapshot) => tasks.push(snapshot),
                Err(e) if spoils_block(&e) => return Err(e),
                // The next block shows it again: no promise ends because one state lacks a task.
                Err(e) => tracing::warn!(task = id, error = %e, "a task is left out of this block"),
            }
        }
        let block = block.number;
        Ok(match self.seen {
            Seen::Finalized => Event::Finalized { block, clock, tasks },
            Seen::Best => Event::Best { block, clock, tasks },
        })
    }

    async fn snapshot(
        &mut self,
        chain: &dyn Chain,
        when: When,
        open: OpenTask,
    ) -> Result<TaskSnapshot, ChainError> {
        // Nothing is bid because of a best block.
        let undecided = self.seen == Seen::Finalized
            && matches!(open.task.state, TaskState::Bidding { .. })
            && open.bid.is_none();
        let price_limit = match undecided {
            true => match self.price_limit(chain, when, &open).await {
                Err(e) if !spoils_block(&e) => {
                    tracing::warn!(task = open.id, error = %e, "nothing is bid for a task in this block");
                    None
                }
                limit => limit?,
            },
            false => None,
        };
        let beside = self.beside(chain, when, &open).await?;
        Ok(TaskSnapshot {
            id: open.id,
            task: open.task,
            round: open.round,
            bid: open.bid.map(|bid| BidSeen {
                seal: bid.seal,
                opened: bid.opened.is_some(),
            }),
            price_limit,
            disputes: beside.disputes,
            demands: beside.demands,
            committees: beside.committees,
        })
    }

    /// What lies beside a task. A record that cannot be read, for example since the runtime has gone on
    /// without us, is taken as it was: it must not look as if it were not there. Where it is none of ours, it
    /// does not matter.
    async fn beside(&mut self, chain: &dyn Chain, when: When, open: &OpenTask) -> Result<Beside, ChainError> {
        match read_beside(chain, when, open).await {
            Ok(beside) => {
                self.beside.insert(open.id, beside.clone());
                Ok(beside)
            }
            Err(e) if spoils_block(&e) => Err(e),
            Err(e) => {
                let before = self.beside.get(&open.id).cloned();
                if before.is_none() && concerns(open, &self.tools.stash) {
                    return Err(e);
                }
                tracing::error!(task = open.id, error = %e, "a dispute, a demand or a committee cannot be read");
                Ok(before.unwrap_or_default())
            }
        }
    }

    async fn price_limit(
        &mut self,
        chain: &dyn Chain,
        when: When,
        open: &OpenTask,
    ) -> Result<Option<Balance>, ChainError> {
        let key = (open.task.cap, open.task.spec.redundancy);
        if let Some(limit) = self.limits.get(&key) {
            return Ok(*limit);
        }
        let limit = chain.price_limit(when, key.0, key.1).await?;
        if self.limits.len() >= LIMITS_MAX {
            self.limits.clear();
        }
        self.limits.insert(key, limit);
        Ok(limit)
    }
}

/// Whether an error says that nothing can be read of a block, and not only that one record of it cannot.
fn spoils_block(error: &ChainError) -> bool {
    matches!(error, ChainError::Unreachable { .. } | ChainError::Pruned { .. })
}

/// Whether a task is one that a stash has a part in.
fn concerns(open: &OpenTask, stash: &AccountId) -> bool {
    let in_round = open.round.as_ref().is_some_and(|round| {
        let computes = round.members.iter().any(|member| member.provider == *stash);
        computes || round.audits.iter().any(|audit| audit.verifier == *stash)
    });
    in_round || open.bid.is_some()
}

async fn read_beside(chain: &dyn Chain, when: When, open: &OpenTask) -> Result<Beside, ChainError> {
    let mut beside = Beside::default();
    let Some(round) = &open.round else {
        return Ok(beside);
    };
    for dispute in &round.disputes {
        let found = chain.dispute(when, dispute.id).await?;
        if found.as_ref().is_some_and(|found| found.referred_at.is_some()) {
            let committee = chain.committee(when, dispute.id).await?;
            let committee = committee.map(|committee| (dispute.id, committee));
            beside.committees.extend(committee);
        }
        beside.disputes.extend(found.map(|found| (dispute.id, found)));
    }
    let members = round.members.iter().filter(|_| round.demands > 0);
    for member in members {
        let found = chain.demand(when, open.id, &member.provider).await?;
        let found = found.map(|found| (member.provider.clone(), found));
        beside.demands.extend(found);
    }
    Ok(beside)
}
