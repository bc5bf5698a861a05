//! How often something was tried, and when it may be tried again.
//!
//! Pauses are counted in blocks of the best chain, which go on when finality does not. Nothing here ends a
//! call that is owed: that is for its deadline, which is on the chain's running clock. What is only offered,
//! a bid, an audit or a refutation, is given up once a block has refused it.

use std::collections::BTreeMap;

use crate::{BlockNumber, Config, EffectKind, Failure};

/// Blocks until the best state shows what was in a block, unless that block was replaced.
const SHOWN_BLOCKS: BlockNumber = 3;
/// Most blocks between two attempts that cost nothing.
const REFUSED_BLOCKS: BlockNumber = 2;
/// Refusals in a row after which a call is urgent.
const REFUSALS_MAX: u32 = 2;

/// The attempts at all effects of one task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempts {
    of: BTreeMap<EffectKind, EffectAttempts>,
    /// Under way while nobody waits for them any more; to be stopped.
    cancelled: Vec<EffectKind>,
}

impl Attempts {
    pub fn is_ready(&self, kind: EffectKind, now: BlockNumber, pace: Pace) -> bool {
        self.of.get(&kind).is_none_or(|effect| effect.is_ready(now, pace))
    }

    pub fn is_under_way(&self, kind: EffectKind) -> bool {
        self.of.get(&kind).is_some_and(EffectAttempts::is_under_way)
    }

    pub fn is_given_up(&self, kind: EffectKind) -> bool {
        let effect = self.of.get(&kind);
        effect.is_some_and(|effect| matches!(effect.phase, Phase::GivenUp))
    }

    /// Whether it was refused so often that a tip is in place.
    pub fn is_refused(&self, kind: EffectKind) -> bool {
        let effect = self.of.get(&kind);
        effect.is_some_and(|effect| effect.refusals >= REFUSALS_MAX)
    }

    /// How often this was tried.
    pub fn count(&self, kind: EffectKind) -> u32 {
        self.of.get(&kind).map_or(0, |effect| effect.count)
    }

    /// Everything under way.
    pub fn under_way(&self) -> impl Iterator<Item = EffectKind> + '_ {
        let under_way = self.of.iter().filter(|(_, effect)| effect.is_under_way());
        under_way.map(|(kind, _)| *kind)
    }

    pub fn start(&mut self, kind: EffectKind) {
        let effect = self.of.entry(kind).or_default();
        effect.count = effect.count.saturating_add(1);
        effect.phase = Phase::UnderWay;
    }

    /// What was tried does not count for what comes, and what is under way is stopped.
    pub fn forget(&mut self, kind: EffectKind) {
        if self.of.remove(&kind).is_some_and(|effect| effect.is_under_way()) {
            self.cancelled.push(kind);
        }
    }

    /// Stops heavy effects under way that are not among those wanted.
    pub fn keep_only(&mut self, is_wanted: impl Fn(EffectKind) -> bool) {
        let useless: Vec<_> = self
            .under_way()
            .filter(|kind| kind.is_heavy() && !is_wanted(*kind))
            .collect();
        for kind in useless {
            self.forget(kind);
        }
    }

    /// What is to be stopped, once.
    pub fn take_cancelled(&mut self) -> Vec<EffectKind> {
        std::mem::take(&mut self.cancelled)
    }

    /// Takes in that an effect failed, if it is one that was started. Says whether it is.
    pub fn fail(&mut self, kind: EffectKind, now: BlockNumber, failure: Failure, config: &Config) -> bool {
        let effect = self.of.get_mut(&kind).filter(|effect| effect.is_under_way());
        let is_known = effect.is_some();
        if let Some(effect) = effect {
            effect.fail(kind, now, failure, config);
        }
        is_known
    }

    /// Takes in that an effect succeeded, if it is one that was started. Says whether it is. If its outcome
    /// does not show up in time, it may be tried again.
    pub fn succeed(&mut self, kind: EffectKind, now: BlockNumber, config: &Config) -> bool {
        let is_known = self.is_under_way(kind);
        if is_known {
            self.done(kind, now, config);
        }
        is_known
    }

    /// One that is known to have succeeded at `at`, perhaps before a restart.
    pub fn done(&mut self, kind: EffectKind, at: BlockNumber, config: &Config) {
        let effect = self.of.entry(kind).or_default();
        effect.refusals = 0;
        effect.phase = Phase::Done {
            at,
            confirm_blocks: config.confirm_blocks,
        };
    }
}

/// The attempts at one effect of one task.
#[derive(Clone, Debug, Default)]
struct EffectAttempts {
    /// Times that it was started.
    count: u32,
    /// Failures that cost something.
    failures: u32,
    /// In a row, those that cost nothing.
    refusals: u32,
    phase: Phase,
}

/// How fast attempts follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    /// The deadline is near.
    pub is_near: bool,
    /// The best block's state is known: what it does not show by now was replaced, whether finality goes on
    /// or not.
    pub sees_best: bool,
}

#[derive(Clone, Debug, Default)]
enum Phase {
    #[default]
    Ready,
    UnderWay,
    /// It worked, and is not shown yet.
    Done {
        at: BlockNumber,
        confirm_blocks: BlockNumber,
    },
    /// It did not.
    Waiting {
        since: BlockNumber,
        pause: BlockNumber,
        /// When the deadline is near.
        pause_near: BlockNumber,
    },
    GivenUp,
}

impl EffectAttempts {
    fn is_ready(&self, now: BlockNumber, pace: Pace) -> bool {
        let (since, pause) = match self.phase {
            Phase::Ready => return true,
            Phase::UnderWay | Phase::GivenUp => return false,
            Phase::Done { at, confirm_blocks } if pace.is_near || pace.sees_best => {
                (at, confirm_blocks.min(SHOWN_BLOCKS))
            }
            Phase::Done { at, confirm_blocks } => (at, confirm_blocks),
            Phase::Waiting {
                since,
                pause,
                pause_near,
            } => (
                since,
                if pace.is_near {
                    pause_near.min(pause)
                } else {
                    pause
                },
            ),
        };
        now >= since.saturating_add(pause)
    }

    fn is_under_way(&self) -> bool {
        matches!(self.phase, Phase::UnderWay)
    }

    fn fail(&mut self, kind: EffectKind, now: BlockNumber, failure: Failure, config: &Config) {
        let may_end = kind.is_heavy() && !kind.is_owed();
        // A fee was paid for nothing, and nothing of ours is lost with an offer that was never taken.
        if failure == Failure::Permanent && may_end || failure == Failure::Failed && kind.is_offer() {
            self.phase = Phase::GivenUp;
            return;
        }
        let (pause, pause_near) = if failure == Failure::Refused && kind.is_call() {
            self.refusals = self.refusals.saturating_add(1);
            (self.refusals.min(REFUSED_BLOCKS), 1)
        } else {
            let doublings = self.failures.min(16);
            self.failures = self.failures.saturating_add(1);
            let pause = config.backoff_blocks.saturating_mul(1 << doublings);
            (pause.min(config.backoff_blocks_max), REFUSED_BLOCKS)
        };
        self.phase = Phase::Waiting {
            since: now,
            pause,
            pause_near,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AccountId, PriceList, SecretSalts};

    fn config() -> Config {
        let mut config = Config::new(
            AccountId::new([0; 32]),
            PriceList::default(),
            SecretSalts::new([0; 32]),
        );
        (config.backoff_blocks, config.backoff_blocks_max) = (2, 7);
        config
    }

    /// Blocks until it is ready again.
    fn pause(attempts: &Attempts, kind: EffectKind, now: BlockNumber, is_near: bool) -> BlockNumber {
        let pace = Pace {
            is_near,
            sees_best: false,
        };
        (0..100)
            .find(|blocks| attempts.is_ready(kind, now + blocks, pace))
            .unwrap_or(100)
    }

    fn fail(attempts: &mut Attempts, kind: EffectKind, failure: Failure) -> BlockNumber {
        attempts.start(kind);
        assert!(attempts.is_under_way(kind) && !attempts.is_ready(kind, 200, Pace::default()));
        assert!(attempts.fail(kind, 100, failure, &config()));
        pause(attempts, kind, 100, false)
    }

    #[test]
    fn pauses_after_what_cost_something_double_up_to_a_bound_and_never_end() {
        let mut attempts = Attempts::default();
        let mut pauses = (0..1000).map(|_| fail(&mut attempts, EffectKind::Commit, Failure::Failed));
        assert_eq!(pauses.by_ref().take(4).collect::<Vec<_>>(), [2, 4, 7, 7]);
        assert!(pauses.all(|pause| pause == 7));
        assert_eq!(pause(&attempts, EffectKind::Commit, 100, true), 2);
    }

    #[test]
    fn a_refused_call_is_tried_again_within_two_blocks_and_in_every_block_near_its_deadline() {
        let mut attempts = Attempts::default();
        for attempt in 1..1000 {
            let blocks = fail(&mut attempts, EffectKind::Commit, Failure::Refused);
            assert_eq!(blocks, attempt.min(2));
            assert_eq!(pause(&attempts, EffectKind::Commit, 100, true), 1);
            assert_eq!(attempts.is_refused(EffectKind::Commit), attempt >= 2);
        }
    }

    #[test]
    fn only_work_of_this_machine_can_fail_for_good() {
        let mut attempts = Attempts::default();
        for kind in [EffectKind::Fetch, EffectKind::Compute] {
            assert_eq!(fail(&mut attempts, kind, Failure::Permanent), 100);
            assert!(attempts.is_given_up(kind));
        }
        for kind in [EffectKind::Commit, EffectKind::ComputeMove(1)] {
            assert_eq!(fail(&mut attempts, kind, Failure::Permanent), 2);
            assert!(!attempts.is_given_up(kind));
        }
    }

    #[test]
    fn what_was_only_offered_is_given_up_once_a_block_has_refused_it() {
        let mut attempts = Attempts::default();
        let offers = [
            EffectKind::Bid,
            EffectKind::Announce(Default::default()),
            EffectKind::Refute(Default::default()),
        ];
        for kind in offers {
            assert_eq!(fail(&mut attempts, kind, Failure::Refused), 1);
            assert!(!attempts.is_given_up(kind));
            assert_eq!(fail(&mut attempts, kind, Failure::Failed), 100);
            assert!(attempts.is_given_up(kind));
        }
    }

    #[test]
    fn a_bid_that_stake_was_wanting_for_is_not_given_up_and_its_pauses_grow() {
        let mut attempts = Attempts::default();
        let mut pauses = (0..100).map(|_| fail(&mut attempts, EffectKind::Bid, Failure::Unbacked));
        assert_eq!(pauses.by_ref().take(3).collect::<Vec<_>>(), [2, 4, 7]);
        assert!(pauses.all(|pause| pause == 7));
        assert!(!attempts.is_given_up(EffectKind::Bid) && !attempts.is_refused(EffectKind::Bid));
    }

    #[test]
    fn success_is_waited_for_before_it_is_tried_again() {
        let (config, mut attempts) = (config(), Attempts::default());
        attempts.start(EffectKind::Commit);
        assert!(attempts.succeed(EffectKind::Commit, 10, &config));
        assert_eq!(
            pause(&attempts, EffectKind::Commit, 10, false),
            config.confirm_blocks
        );
        assert_eq!(pause(&attempts, EffectKind::Commit, 10, true), SHOWN_BLOCKS);
        let sees_best = Pace {
            sees_best: true,
            ..Pace::default()
        };
        assert!(attempts.is_ready(EffectKind::Commit, 10 + SHOWN_BLOCKS, sees_best));
        assert!(!attempts.succeed(EffectKind::Commit, 11, &config));
    }

    #[test]
    fn what_is_forgotten_while_under_way_is_stopped_once() {
        let mut attempts = Attempts::default();
        attempts.start(EffectKind::Compute);
        attempts.start(EffectKind::Commit);
        attempts.keep_only(|_| false);
        assert_eq!(attempts.take_cancelled(), [EffectKind::Compute]);
        assert_eq!(attempts.take_cancelled(), []);
        assert!(attempts.is_under_way(EffectKind::Commit));
    }
}
