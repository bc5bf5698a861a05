//! Rounds about receipts of this provider, by what the chain says of them.
//!
//! Somebody disputes a receipt in them, or demands its input and output alone: who plays in none is found by
//! the event that opened it.

use std::collections::{BTreeMap, BTreeSet};

use surety_chain_client::{AccountId, BlockNumber, BlockRef, ChainError, ChainEvent, DemandRecord};
use surety_chain_client::{DisputeRecord, When};
use surety_types::{
    TaskId,
    trust::{DisputeId, Party},
};

use crate::{Parts, front::CallId};

/// Blocks whose events are looked through after a start: a node keeps the state of so many.
const LOOKED_BACK: BlockNumber = 256;

/// A round about a receipt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    /// Whose answer it is about, as far as events have told.
    pub(crate) call: Option<CallId>,
    /// Games in which the provider stands by it.
    pub(crate) disputes: Vec<(DisputeId, DisputeRecord)>,
    /// What the provider has to show.
    pub(crate) demands: Vec<DemandRecord>,
}

/// What is remembered from block to block.
#[derive(Default)]
pub(crate) struct Rounds {
    /// Open rounds of which events have told.
    told: BTreeMap<TaskId, CallId>,
    /// Disputed tasks of the auction: the rest of the worker plays there.
    tasks: BTreeSet<TaskId>,
    /// All events up to this block were looked at.
    looked_to: Option<BlockNumber>,
}

impl Rounds {
    /// Those that are open by a finalised block, in which so many receipts are disputed.
    pub(crate) async fn read(
        &mut self,
        parts: &Parts,
        block: BlockRef,
        disputed: u32,
    ) -> Result<BTreeMap<TaskId, Round>, ChainError> {
        if disputed == 0 {
            *self = Self {
                looked_to: Some(block.number),
                ..Self::default()
            };
            return Ok(BTreeMap::new());
        }
        self.look(parts, block.number).await?;
        let mut rounds: BTreeMap<TaskId, Round> = BTreeMap::new();
        for (round, call) in &self.told {
            rounds.entry(*round).or_default().call = Some(*call);
        }
        let when = When::At(block.hash);
        let disputes = parts.chain.disputes(when).await?;
        self.tasks
            .retain(|task| disputes.iter().any(|(_, record)| record.task == *task));
        for (id, record) in disputes {
            let is_ours = matches!(&record.defender, Party::Provider(stash) if *stash == parts.stash);
            if is_ours && !self.is_task(parts, when, record.task).await? {
                rounds.entry(record.task).or_default().disputes.push((id, record));
            }
        }
        for (round, of) in &mut rounds {
            of.demands = parts.chain.demands(when, *round, &parts.stash).await?;
        }
        if rounds.len() < disputed as usize {
            tracing::error!(
                disputed,
                known = rounds.len(),
                "a receipt is disputed in a round that is not found: connect to a node that keeps older states"
            );
        }
        Ok(rounds)
    }

    /// Whether a round is one of the auction's.
    async fn is_task(&mut self, parts: &Parts, when: When, round: TaskId) -> Result<bool, ChainError> {
        if self.told.contains_key(&round) {
            return Ok(false);
        }
        if !self.tasks.contains(&round) {
            if parts.chain.task(when, round).await?.is_none() {
                return Ok(false);
            }
            self.tasks.insert(round);
        }
        Ok(true)
    }

    /// Looks at the events of all blocks up to this one that were not looked at.
    async fn look(&mut self, parts: &Parts, to: BlockNumber) -> Result<(), ChainError> {
        let oldest = to.saturating_sub(LOOKED_BACK);
        let next = self.looked_to.map_or(0, |last| last.saturating_add(1));
        for number in next.max(oldest)..=to {
            let block = parts.chain.block_at(number).await?;
            match parts.chain.events(block.hash).await {
                Ok(events) => events.iter().for_each(|event| self.note(event, &parts.stash)),
                Err(ChainError::Pruned { .. }) => {}
                Err(error) => return Err(error),
            }
            self.looked_to = Some(number);
        }
        Ok(())
    }

    fn note(&mut self, event: &ChainEvent, stash: &AccountId) {
        let Some(round) = event.field::<TaskId>("round") else {
            return;
        };
        if event.is("Channels", "DisputeOver") {
            self.told.remove(&round);
        }
        if event.is("Channels", "Disputed")
            && event.field::<AccountId>("provider").as_ref() == Some(stash)
            && let Some(call) = event.channel().zip(event.field("nonce"))
        {
            self.told.insert(round, call);
        }
    }
}
