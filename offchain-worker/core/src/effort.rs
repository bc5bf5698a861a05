//! How often something was tried, and when it may be tried again.

use std::collections::BTreeMap;

use crate::{BlockNumber, Config, EffectKind};

/// The attempts at all effects of one task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Efforts(BTreeMap<EffectKind, Effort>);

impl Efforts {
    pub fn of(&mut self, kind: EffectKind) -> &mut Effort {
        self.0.entry(kind).or_default()
    }

    pub fn is_ready(&self, kind: EffectKind, now: BlockNumber, config: &Config) -> bool {
        self.0
            .get(&kind)
            .is_none_or(|effort| effort.is_ready(now, config))
    }

    pub fn is_under_way(&self, kind: EffectKind) -> bool {
        self.0.get(&kind).is_some_and(Effort::is_under_way)
    }

    pub fn is_given_up(&self, kind: EffectKind) -> bool {
        self.0.get(&kind).is_some_and(Effort::is_given_up)
    }

    /// How often this was tried.
    pub fn attempts(&self, kind: EffectKind) -> u32 {
        self.0.get(&kind).map_or(0, Effort::attempts)
    }

    /// Audits under way, and what is computed for committees.
    pub fn audits_under_way(&self) -> usize {
        self.count(|kind| matches!(kind, EffectKind::Audit(_) | EffectKind::ComputeVote(_)))
    }

    /// Moves that are being looked for.
    pub fn moves_under_way(&self) -> usize {
        self.count(|kind| matches!(kind, EffectKind::ComputeMove(_)))
    }

    fn count(&self, counts: impl Fn(&EffectKind) -> bool) -> usize {
        let under_way = |(kind, effort): &(&EffectKind, &Effort)| counts(kind) && effort.is_under_way();
        self.0.iter().filter(under_way).count()
    }

    /// Effects of this kind under way.
    pub fn under_way(&self, kind: EffectKind) -> usize {
        usize::from(self.is_under_way(kind))
    }

    /// What was tried does not count for what comes.
    pub fn forget(&mut self, kind: EffectKind) {
        self.0.remove(&kind);
    }

    /// Takes in that an effect failed, if it is one that was started.
    pub fn fail(&mut self, kind: EffectKind, now: BlockNumber, retryable: bool, config: &Config) {
        if self.is_under_way(kind) {
            self.of(kind).fail(now, retryable, config);
        }
    }

    /// Takes in that an effect succeeded, if it is one that was started. Says whether it is.
    pub fn succeed(&mut self, kind: EffectKind, now: BlockNumber, config: &Config) -> bool {
        let known = self.is_under_way(kind);
        if known {
            self.of(kind).succeed(now, config);
        }
        known
    }
}

/// The attempts at one effect of one task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effort {
    attempts: u32,
    phase: Phase,
}

#[derive(Clone, Debug, Default)]
enum Phase {
    #[default]
    Ready,
    UnderWay,
    Waiting {
        until: BlockNumber,
    },
    GivenUp,
}

impl Effort {
    /// One that is known to have succeeded at `at`, before a restart.
    pub fn done_at(at: BlockNumber, config: &Config) -> Self {
        Self {
            attempts: 1,
            phase: Phase::Waiting {
                until: at.saturating_add(config.confirm_blocks),
            },
        }
    }

    /// Whether an attempt may be made now.
    pub fn is_ready(&self, now: BlockNumber, config: &Config) -> bool {
        let due = match self.phase {
            Phase::Ready => true,
            Phase::Waiting { until } => now >= until,
            Phase::UnderWay | Phase::GivenUp => false,
        };
        due && self.attempts < config.attempts_max
    }

    pub fn is_under_way(&self) -> bool {
        matches!(self.phase, Phase::UnderWay)
    }

    pub fn is_given_up(&self) -> bool {
        matches!(self.phase, Phase::GivenUp)
    }

    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    pub fn start(&mut self) {
        self.attempts = self.attempts.saturating_add(1);
        self.phase = Phase::UnderWay;
    }

    /// It worked; if its outcome does not show up in finalised state in time, it may be tried again.
    pub fn succeed(&mut self, now: BlockNumber, config: &Config) {
        self.phase = Phase::Waiting {
            until: now.saturating_add(config.confirm_blocks),
        };
    }

    pub fn fail(&mut self, now: BlockNumber, retryable: bool, config: &Config) {
        if !retryable || self.attempts >= config.attempts_max {
            self.phase = Phase::GivenUp;
            return;
        }
        let doublings = self.attempts.saturating_sub(1).min(16);
        let pause = config.backoff_blocks.saturating_mul(1 << doublings);
        self.phase = Phase::Waiting {
            until: now.saturating_add(pause.min(config.backoff_blocks_max)),
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
        config.attempts_max = 4;
        config
    }

    #[test]
    fn pauses_double_up_to_a_bound_and_attempts_end() {
        let (config, mut effort, mut now) = (config(), Effort::default(), 100);
        for pause in [2, 4, 7] {
            assert!(effort.is_ready(now, &config));
            effort.start();
            assert!(!effort.is_ready(now, &config) && effort.is_under_way());
            effort.fail(now, true, &config);
            assert!(!effort.is_ready(now + pause - 1, &config));
            now += pause;
        }
        effort.start();
        effort.fail(now, true, &config);
        assert!(effort.is_given_up());
        assert!(!effort.is_ready(BlockNumber::MAX, &config));
    }

    #[test]
    fn what_cannot_be_retried_is_given_up_at_once() {
        let (config, mut effort) = (config(), Effort::default());
        effort.start();
        effort.fail(1, false, &config);
        assert!(effort.is_given_up());
    }

    #[test]
    fn success_is_waited_for_before_it_is_tried_again() {
        let (config, mut effort) = (config(), Effort::default());
        effort.start();
        effort.succeed(10, &config);
        assert!(!effort.is_ready(10 + config.confirm_blocks - 1, &config));
        assert!(effort.is_ready(10 + config.confirm_blocks, &config));
    }
}
