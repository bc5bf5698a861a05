//! What was read of earlier blocks: it stands in for what cannot be read any more. Each stream has its own,
//! so that none stands in for what another asks.

use std::collections::{HashMap, HashSet};

use surety_chain_client::{BidTerms, BlockNumber, DisputeRecord, OpenTask, OpenTasks, PartlyRead};
use surety_types::{TaskId, trust::DisputeId};

use super::{Contest, Tools};

/// Blocks after which the terms of a task are asked for again: a minute. Governance may change them with any
/// block.
const TERMS_EVERY: BlockNumber = 30;

/// Of the tasks that are open.
#[derive(Default)]
pub(super) struct Memory {
    open: HashMap<TaskId, OpenTask>,
    contests: HashMap<TaskId, Contest>,
    /// And the block at which they were read.
    terms: HashMap<TaskId, (BlockNumber, BidTerms)>,
    /// Disputes of which neither party is ours. That does not change.
    strange: HashSet<DisputeId>,
}

impl Memory {
    /// Adds to what was read now what was read before; names the tasks of which that is not enough. What is
    /// over is forgotten.
    pub(super) fn complete(&mut self, found: OpenTasks) -> (Vec<OpenTask>, Vec<TaskId>) {
        let OpenTasks { mut tasks, unread } = found;
        let mut missing = Vec::new();
        for part in unread {
            let id = part.id;
            match self.open.get(&id).and_then(|before| completed(part, before)) {
                Some(task) => tasks.push(task),
                None => missing.push(id),
            }
        }
        tasks.sort_unstable_by_key(|task| task.id);
        let mut open: HashMap<_, _> = tasks.iter().map(|task| (task.id, task.clone())).collect();
        for id in &missing {
            open.extend(self.open.remove_entry(id));
        }
        self.open = open;
        let is_open = |id: &TaskId| self.open.contains_key(id) || missing.contains(id);
        self.contests.retain(|id, _| is_open(id));
        self.terms.retain(|id, _| is_open(id));
        if !self.strange.is_empty() {
            let rounds = self.open.values().filter_map(|task| task.round.as_ref());
            let disputes: HashSet<_> = rounds
                .flat_map(|round| &round.disputes)
                .map(|open| open.id)
                .collect();
            self.strange.retain(|id| disputes.contains(id));
        }
        (tasks, missing)
    }

    /// Remembers what is fought over in a task.
    pub(super) fn keep(&mut self, task: TaskId, contest: Contest, tools: &Tools) {
        let ours = [&tools.stash, tools.signer.account()];
        let is_strange = |record: &DisputeRecord| {
            let parties = [record.defender.account(), record.challenger.account()];
            !parties.iter().any(|party| ours.contains(party))
        };
        let strange = contest.disputes.iter().filter(|(_, record)| is_strange(record));
        self.strange.extend(strange.map(|(id, _)| *id));
        self.contests.insert(task, contest);
    }

    /// Remembers what a bid for a task comes to.
    pub(super) fn keep_terms(&mut self, task: TaskId, block: BlockNumber, terms: BidTerms) {
        if self.terms(task, block).is_none() {
            self.terms.insert(task, (block, terms));
        }
    }

    /// What a bid for a task comes to, if that was asked not long before this block.
    pub(super) fn terms(&self, task: TaskId, block: BlockNumber) -> Option<BidTerms> {
        let (read, terms) = self.terms.get(&task)?;
        (block.saturating_sub(*read) < TERMS_EVERY).then_some(*terms)
    }

    /// What was fought over in a task.
    pub(super) fn contest(&self, task: TaskId) -> Option<&Contest> {
        self.contests.get(&task)
    }

    /// Whether a dispute is known to be between others.
    pub(super) fn is_strange(&self, dispute: DisputeId) -> bool {
        self.strange.contains(&dispute)
    }
}

/// What cannot be read is there: that there was nothing before says nothing of it.
fn completed(part: PartlyRead, before: &OpenTask) -> Option<OpenTask> {
    Some(OpenTask {
        id: part.id,
        task: part.task.unwrap_or_else(|| before.task.clone()),
        round: match part.round {
            Some(round) => round,
            None => Some(before.round.clone()?),
        },
        bid: match part.bid {
            Some(bid) => bid,
            None => Some(before.bid.clone()?),
        },
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use surety_chain_client::{BidRecord, Hash, sample};

    use super::*;

    fn open(id: TaskId, bid: Option<BidRecord>) -> OpenTask {
        OpenTask {
            id,
            task: sample::records::tasks().remove(0),
            round: None,
            bid,
        }
    }

    fn garbled(id: TaskId) -> PartlyRead {
        PartlyRead {
            id,
            task: Some(sample::records::tasks().remove(0)),
            round: Some(None),
            bid: None,
        }
    }

    #[test]
    fn what_was_read_before_stands_in_and_that_there_was_nothing_does_not() {
        let bid = BidRecord {
            seal: Hash::repeat_byte(1),
            opened: None,
            deposit: 5,
        };
        let mut memory = Memory::default();
        memory.complete(OpenTasks {
            tasks: vec![open(1, Some(bid.clone())), open(2, None)],
            unread: Vec::new(),
        });
        // However often, and whatever was read in between.
        for _ in 0..3 {
            let (tasks, missing) = memory.complete(OpenTasks {
                tasks: vec![open(4, None)],
                unread: vec![garbled(1), garbled(2), garbled(3)],
            });
            let bids: Vec<_> = tasks.into_iter().map(|task| (task.id, task.bid)).collect();
            assert_eq!(bids, [(1, Some(bid.clone())), (4, None)]);
            assert_eq!(missing, [2, 3]);
        }
        assert_eq!(memory.open.len(), 3);
        memory.complete(OpenTasks::default());
        assert!(memory.open.is_empty());
    }
}
