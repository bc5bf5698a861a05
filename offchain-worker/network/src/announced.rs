//! What this peer says of tasks, and to whom.

use std::collections::{HashMap, VecDeque};

use libp2p::PeerId;
use surety_types::TaskId;

use crate::access::Audience;

/// A bounded table by task. What was put in first is forgotten first.
pub(crate) struct Announced<T> {
    entries: HashMap<TaskId, (T, Audience<PeerId>)>,
    /// The tasks in `entries`, oldest first.
    order: VecDeque<TaskId>,
    max: usize,
}

impl<T> Announced<T> {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            entries: HashMap::new(),
            order: VecDeque::new(),
            max,
        }
    }

    /// Replaces what was said before.
    pub(crate) fn insert(&mut self, task: TaskId, what: T, audience: Audience<PeerId>) {
        if self.entries.insert(task, (what, audience)).is_none() {
            self.order.push_back(task);
        }
        while self.order.len() > self.max {
            if let Some(oldest) = self.order.pop_front() {
                self.entries.remove(&oldest);
            }
        }
    }

    pub(crate) fn remove(&mut self, task: TaskId) {
        if self.entries.remove(&task).is_some() {
            self.order.retain(|other| *other != task);
        }
    }

    /// What `peer` may know.
    pub(crate) fn get(&self, task: TaskId, peer: &PeerId) -> Option<&T> {
        self.entry(task)
            .and_then(|(what, audience)| audience.has(peer).then_some(what))
    }

    /// What is said, and to whom.
    pub(crate) fn entry(&self, task: TaskId) -> Option<&(T, Audience<PeerId>)> {
        self.entries.get(&task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_and_the_others_are_told_to_their_readers_alone() {
        let (friend, stranger) = (PeerId::random(), PeerId::random());
        let mut table = Announced::new(2);
        table.insert(1, "one", Audience::Everyone);
        table.insert(2, "two", Audience::Only(vec![friend]));
        table.insert(2, "zwei", Audience::Only(vec![friend]));
        table.insert(3, "three", Audience::Everyone);
        assert_eq!(table.get(1, &friend), None);
        assert_eq!(table.get(2, &friend), Some(&"zwei"));
        assert_eq!(table.get(2, &stranger), None);
        assert_eq!(table.get(3, &stranger), Some(&"three"));
        table.remove(2);
        table.insert(4, "four", Audience::Everyone);
        assert_eq!(table.get(3, &friend), Some(&"three"));
    }
}
