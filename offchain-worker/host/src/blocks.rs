//! Turns blocks into what core wants to know of them.
//!
//! Finalised blocks are what promises are made by. Best blocks, each of which may still be replaced, only ask
//! for what was promised before: they come first, and while finality stalls they are all that comes.

mod memory;

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use surety_chain_client::{
    AccountId, BidTerms, BlockRef, ChainError, CommitteeRecord, DemandRecord, DisputeRecord, OpenTask, When,
};
use surety_types::{TaskId, task::TaskState, trust::DisputeId};
use surety_worker_core::{BidSeen, Event, TaskSnapshot};
use tokio::sync::mpsc;

use super::{Tools, retry::Backoff, vitals::Seen};
use memory::Memory;

/// Tasks about which a node is asked at once.
const TASKS_AT_ONCE: usize = 16;
/// Questions about one of them at once.
const QUESTIONS_AT_ONCE: usize = 4;

/// What is fought over in a task: it lies beside the task and its round in the chain's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Contest {
    disputes: Vec<(DisputeId, DisputeRecord)>,
    demands: Vec<(AccountId, DemandRecord)>,
    committees: Vec<(DisputeId, CommitteeRecord)>,
}

/// A task, and what was read anew for it.
struct Look {
    snapshot: TaskSnapshot,
    contest: Option<Contest>,
    terms: Option<BidTerms>,
}

/// Reads blocks' states.
struct Reader<'a> {
    tools: &'a Tools,
    seen: Seen,
    /// A provider, which bids; it neither audits nor sits on committees.
    bids: bool,
    memory: Memory,
}

/// Sends one event for each block, until nobody listens. A node that is down is waited for.
pub(super) async fn follow(tools: Arc<Tools>, seen: Seen, bids: bool, events: mpsc::Sender<Event>) {
    let mut backoff = Backoff::short();
    let mut reader = Reader {
        tools: &tools,
        seen,
        bids,
        memory: Memory::default(),
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
        let chain = &self.tools.chain;
        let open = chain.open_tasks(when, Some(&self.tools.stash));
        let (clock, open) = tokio::try_join!(chain.clock(when), open)?;
        let (open, mut unread) = self.memory.complete(open);
        // Over a slow line each question takes seconds.
        let takes_bids = self.takes_bids(when).await?;
        let looks: Vec<_> = open
            .into_iter()
            .map(|open| self.look(block, takes_bids, open))
            .collect();
        let looks: Vec<_> = stream::iter(looks).buffered(TASKS_AT_ONCE).collect().await;
        let mut tasks = Vec::with_capacity(looks.len());
        for (id, look) in looks {
            match look {
                Ok(look) => {
                    if let Some(contest) = look.contest {
                        self.memory.keep(id, contest, self.tools);
                    }
                    if let Some(terms) = look.terms {
                        self.memory.keep_terms(id, block.number, terms);
                    }
                    tasks.push(look.snapshot);
                }
                Err(e) if spoils_block(&e) => return Err(e),
                Err(e) => {
                    tracing::warn!(task = id, error = %e, "a task is left out of this block");
                    unread.push(id);
                }
            }
        }
        let block = block.number;
        Ok(match self.seen {
            Seen::Finalized => Event::Finalized {
                block,
                clock,
                tasks,
                unread,
            },
            Seen::Best => Event::Best { block, clock, tasks },
        })
    }

    /// Whether new bids of ours are taken: not of who is off the list. Best blocks are no reason to bid.
    async fn takes_bids(&self, when: When) -> Result<bool, ChainError> {
        if !self.bids || self.seen == Seen::Best {
            return Ok(false);
        }
        match self.tools.chain.provider(when, &self.tools.stash).await {
            Err(e) if spoils_block(&e) => Err(e),
            Err(e) => {
                tracing::warn!(error = %e, "whether this provider is on the chain's list cannot be read");
                Ok(true)
            }
            Ok(record) => Ok(record.is_some()),
        }
    }

    /// A task as the block shows it.
    async fn look(
        &self,
        block: BlockRef,
        takes_bids: bool,
        open: OpenTask,
    ) -> (TaskId, Result<Look, ChainError>) {
        let (id, when) = (open.id, When::At(block.hash));
        let answers = tokio::try_join!(self.terms(block, takes_bids, &open), self.contest(when, &open));
        let look = answers.map(|(terms, (contest, is_new))| Look {
            contest: is_new.then(|| contest.clone()),
            terms,
            snapshot: TaskSnapshot {
                id,
                task: open.task,
                round: open.round,
                bid: open.bid.map(|bid| BidSeen {
                    seal: bid.seal,
                    opened: bid.opened.is_some(),
                }),
                terms,
                disputes: contest.disputes,
                demands: contest.demands,
                committees: contest.committees,
            },
        });
        (id, look)
    }

    /// What a bid for a task comes to, while that is undecided.
    async fn terms(
        &self,
        block: BlockRef,
        takes_bids: bool,
        open: &OpenTask,
    ) -> Result<Option<BidTerms>, ChainError> {
        if !self.bids || self.seen == Seen::Best {
            return Ok(None);
        }
        let spec = &open.task.spec;
        let asks = match open.task.state {
            TaskState::Bidding { .. } if open.bid.is_none() => {
                let mut offered = self.tools.engines.offered();
                takes_bids && offered.any(|offered| offered == (spec.model, spec.operation))
            }
            TaskState::Bidding { .. } | TaskState::Revealing { .. } | TaskState::Drawing { .. } => {
                open.bid.is_some()
            }
            _ => false,
        };
        if !asks {
            return Ok(None);
        }
        if let Some(terms) = self.memory.terms(open.id, block.number) {
            return Ok(Some(terms));
        }
        match self.tools.chain.bid_terms(When::At(block.hash), open.id).await {
            Err(e @ ChainError::Unreachable { .. }) => Err(e),
            Err(e) => {
                tracing::warn!(task = open.id, error = %e, "nothing is bid for a task in this block");
                Ok(None)
            }
            terms => terms,
        }
    }

    /// What is fought over in a task, and whether that was read now. A record that cannot be read, for
    /// example since the runtime has gone on without us, is taken as it was: it must not look as if it were
    /// not there. Where it is none of ours, it does not matter.
    async fn contest(&self, when: When, open: &OpenTask) -> Result<(Contest, bool), ChainError> {
        match self.read_contest(when, open).await {
            Ok(contest) => Ok((contest, true)),
            Err(e) if spoils_block(&e) => Err(e),
            Err(e) => {
                let before = self.memory.contest(open.id);
                // A seat on a committee is in none of the records that tell whom a task concerns.
                if before.is_none() && (!self.bids || concerns(open, &self.tools.stash)) {
                    return Err(e);
                }
                tracing::error!(task = open.id, error = %e, "a dispute, a demand or a committee cannot be read");
                Ok((before.cloned().unwrap_or_default(), false))
            }
        }
    }

    async fn read_contest(&self, when: When, open: &OpenTask) -> Result<Contest, ChainError> {
        let mut contest = Contest::default();
        let Some(round) = &open.round else {
            return Ok(contest);
        };
        let concerns = concerns(open, &self.tools.stash);
        // Who neither audits nor votes has to do with disputes only as a party.
        let is_asked = |id: &DisputeId| !self.bids || concerns || !self.memory.is_strange(*id);
        let disputes = round.disputes.iter().map(|open| open.id).filter(is_asked);
        let disputes: Vec<_> = disputes.map(|id| self.read_dispute(when, id)).collect();
        let mut disputes = stream::iter(disputes).buffered(QUESTIONS_AT_ONCE);
        while let Some(found) = disputes.try_next().await? {
            contest.disputes.extend(found.disputes);
            contest.committees.extend(found.committees);
        }
        // A provider shows what it has; an auditor has demanded of anybody, also before the round knows it.
        let members = round.members.iter().filter(|member| {
            let is_ours = !self.bids || member.provider == self.tools.stash;
            round.demands > 0 && is_ours
        });
        let demands: Vec<_> = members
            .map(|member| self.read_demands(when, open.id, &member.provider))
            .collect();
        let mut demands = stream::iter(demands).buffered(QUESTIONS_AT_ONCE);
        while let Some(found) = demands.try_next().await? {
            contest.demands.extend(found);
        }
        Ok(contest)
    }

    /// A dispute, and the committee that decides it. Nobody asks a provider for its vote.
    async fn read_dispute(&self, when: When, id: DisputeId) -> Result<Contest, ChainError> {
        let chain = &self.tools.chain;
        let mut contest = Contest::default();
        let Some(dispute) = chain.dispute(when, id).await? else {
            return Ok(contest);
        };
        if dispute.referred_at.is_some() && !self.bids {
            let committee = chain.committee(when, id).await?;
            contest.committees.extend(committee.map(|found| (id, found)));
        }
        contest.disputes.push((id, dispute));
        Ok(contest)
    }

    async fn read_demands(
        &self,
        when: When,
        task: TaskId,
        provider: &AccountId,
    ) -> Result<Vec<(AccountId, DemandRecord)>, ChainError> {
        let found = self.tools.chain.demands(when, task, provider).await?;
        let of_provider = found.into_iter().map(|demand| (provider.clone(), demand));
        Ok(of_provider.collect())
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
