//! Whether a worker can keep its promises.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Serialize;
use tokio::time::Instant;

/// A block that is older than this says that we no longer see the chain: thirty of them are due in the
/// meantime.
const BLOCK_AGE_MAX: Duration = Duration::from_secs(60);

/// What is known of the parts of a worker.
#[derive(Default)]
pub struct Health(Mutex<State>);

#[derive(Default)]
struct State {
    best: Option<Block>,
    finalized: Option<Block>,
    /// Why a part does not work; nothing while it does.
    parts: BTreeMap<&'static str, Option<String>>,
    /// Why the journal took nothing the last time.
    journal: Option<String>,
}

#[derive(Clone, Copy)]
struct Block {
    number: u32,
    /// When a block of this height was seen first.
    seen: Instant,
}

/// What a health check answers with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether all is well.
    pub healthy: bool,
    /// What is not.
    pub reasons: Vec<String>,
    /// How we see the chain.
    pub chain: Chain,
    /// Height of the best block that was seen.
    pub best: Option<u32>,
    /// Height of the last finalised block that was seen.
    pub finalized: Option<u32>,
    /// Whether each part of the process is at work.
    pub parts: BTreeMap<&'static str, bool>,
}

/// How we see the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Chain {
    /// Blocks come and become final.
    Live,
    /// Blocks come, and none has become final lately. Not this worker's fault: deadlines wait for finality.
    FinalityStalls,
    /// No block comes.
    Lost,
}

impl Health {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is a single assignment: a poisoned lock holds good data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A best block was seen.
    pub fn best(&self, number: u32, now: Instant) {
        advance(&mut self.lock().best, number, now);
    }

    /// A finalised block was seen.
    pub fn finalized(&self, number: u32, now: Instant) {
        advance(&mut self.lock().finalized, number, now);
    }

    pub(super) fn part_started(&self, part: &'static str) {
        self.lock().parts.insert(part, None);
    }

    pub(super) fn part_died(&self, part: &'static str, reason: &str) {
        self.lock().parts.insert(part, Some(reason.into()));
    }

    pub(super) fn journal(&self, failure: Option<String>) {
        self.lock().journal = failure;
    }

    /// How things are.
    pub fn report(&self, now: Instant) -> Report {
        let state = self.lock();
        let is_recent = |block: &Option<Block>| {
            block.is_some_and(|block| now.saturating_duration_since(block.seen) <= BLOCK_AGE_MAX)
        };
        let chain = match (is_recent(&state.finalized), is_recent(&state.best)) {
            (true, _) => Chain::Live,
            (false, true) => Chain::FinalityStalls,
            (false, false) => Chain::Lost,
        };
        let mut reasons = Vec::new();
        if chain == Chain::Lost {
            let newest = [state.best, state.finalized].into_iter().flatten();
            let seen = newest.map(|block| block.seen).max();
            reasons.push(match seen {
                Some(seen) => format!(
                    "no new block for {} s: is the node running, synced and reachable?",
                    now.saturating_duration_since(seen).as_secs()
                ),
                None => "no block was seen yet: is the node running, synced and reachable?".into(),
            });
        }
        let dead = state
            .parts
            .iter()
            .filter_map(|(part, dead)| Some((part, dead.as_ref()?)));
        reasons.extend(dead.map(|(part, reason)| format!("{part} does not run: {reason}")));
        let journal = state.journal.iter();
        reasons.extend(journal.map(|reason| format!("the journal cannot be written: {reason}")));
        Report {
            healthy: reasons.is_empty(),
            reasons,
            chain,
            best: state.best.map(|block| block.number),
            finalized: state.finalized.map(|block| block.number),
            parts: state
                .parts
                .iter()
                .map(|(part, dead)| (*part, dead.is_none()))
                .collect(),
        }
    }
}

/// A block that is no higher than one seen before says nothing of a chain that goes on.
fn advance(newest: &mut Option<Block>, number: u32, seen: Instant) {
    if newest.is_none_or(|newest| newest.number < number) {
        *newest = Some(Block { number, seen });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const MINUTES: Duration = Duration::from_secs(120);

    #[test]
    fn a_worker_that_sees_finalized_blocks_is_well() {
        let (health, now) = (Health::default(), Instant::now());
        health.part_started("follower");
        assert!(!health.report(now).healthy, "nothing was seen yet");
        health.finalized(7, now);
        let report = health.report(now);
        assert_eq!((report.healthy, report.chain), (true, Chain::Live));
        assert_eq!(report.parts, BTreeMap::from([("follower", true)]));
    }

    #[test]
    fn a_stall_of_finality_is_said_and_is_no_illness() {
        let (health, now) = (Health::default(), Instant::now());
        health.finalized(7, now);
        health.best(90, now + MINUTES);
        let report = health.report(now + MINUTES);
        assert_eq!((report.healthy, report.chain), (true, Chain::FinalityStalls));
    }

    #[test]
    fn the_same_block_again_and_again_is_no_sign_of_life() {
        let (health, now) = (Health::default(), Instant::now());
        for later in [Duration::ZERO, MINUTES] {
            health.finalized(7, now + later);
            health.best(9, now + later);
        }
        let report = health.report(now + MINUTES);
        assert_eq!((report.healthy, report.chain), (false, Chain::Lost));
        assert!(report.reasons[0].contains("no new block for 120 s"), "{report:?}");
    }

    #[test]
    fn a_dead_part_and_a_full_disk_are_reasons_until_they_are_mended() {
        let (health, now) = (Health::default(), Instant::now());
        health.finalized(7, now);
        health.part_died("heartbeat", "it panicked");
        health.journal(Some("no room".into()));
        let report = health.report(now);
        let expected = [
            "heartbeat does not run: it panicked",
            "the journal cannot be written: no room",
        ];
        assert_eq!(report.reasons, expected);
        health.part_started("heartbeat");
        health.journal(None);
        assert!(health.report(now).healthy);
    }
}
