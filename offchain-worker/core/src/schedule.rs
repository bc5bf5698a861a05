//! What is started now, and what is stopped, over all tasks.

use std::collections::BTreeMap;

use surety_types::TaskId;

use crate::{
    AccountId, BlockNumber, Config, Due, Effect, EffectKind, Record, Step,
    attempts::{Attempts, Pace},
    places::{Clocks, Places, Shares, TraceKey, Wanted},
};

/// What is left of the running clock when even a first attempt is urgent.
const LATE_BLOCKS: BlockNumber = 3;

/// A task, with what it asks of us.
pub(crate) trait Subject {
    /// Everything that is to be done now.
    fn wants(&self, config: &Config, clocks: Clocks) -> Vec<Wanted>;
    fn attempts(&self) -> &Attempts;
    fn attempts_mut(&mut self) -> &mut Attempts;
    /// Whether the best block's state is known.
    fn sees_best(&self) -> bool;
    /// Who posted it.
    fn client(&self) -> Option<&AccountId>;
    /// The trace that an effect of that kind is an answer from.
    fn trace(&self, kind: EffectKind) -> Option<TraceKey>;
    /// Makes up its mind about an effect that is to start, once and for all. What is new has to be
    /// journalled.
    fn prepare(&mut self, _: EffectKind, _: &Config, _at: BlockNumber) -> Option<Record> {
        None
    }
    /// The effect of that kind, where everything for it is at hand.
    fn effect(&self, kind: EffectKind, config: &Config) -> Option<Effect>;
}

/// When things are started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Newest finalised block taken in.
    pub block: BlockNumber,
    /// Newest block heard of.
    pub now: BlockNumber,
    pub clocks: Clocks,
}

/// Starts whatever is wanted and may start now, and stops what no longer matters.
pub(crate) fn schedule<S: Subject>(
    subjects: &mut BTreeMap<TaskId, S>,
    config: &Config,
    moment: Moment,
    step: &mut Step,
) {
    let mut places = Places::default();
    let mut wanted: Vec<(Wanted, TaskId)> = Vec::new();
    for (task, subject) in subjects.iter_mut() {
        let wants = subject.wants(config, moment.clocks);
        let attempts = subject.attempts_mut();
        attempts.keep_only(|kind| wants.iter().any(|wanted| wanted.kind == kind));
        let stopped = attempts.take_cancelled().into_iter();
        step.effects
            .extend(stopped.map(|kind| undated(Effect::Cancel { task: *task, kind })));
        for kind in subject.attempts().under_way() {
            places.count(kind, shares(subject, kind));
        }
        let ready = wants.into_iter().filter(|wanted| {
            let pace = Pace {
                is_near: wanted.is_near(moment.clocks, config),
                sees_best: subject.sees_best(),
            };
            subject.attempts().is_ready(wanted.kind, moment.now, pace)
        });
        wanted.extend(ready.map(|wanted| (wanted, *task)));
    }
    // What is owed comes first, and what is due first of that: fetching and computing have few places.
    wanted.sort_unstable_by_key(|(wanted, task)| {
        let is_owed = wanted.kind.is_owed();
        (wanted.class(), !is_owed, wanted.by, *task, wanted.kind)
    });
    for (wanted, task) in wanted {
        let Some(subject) = subjects.get_mut(&task) else {
            continue;
        };
        if !places.take(wanted.kind, shares(subject, wanted.kind), config) {
            continue;
        }
        step.records
            .extend(subject.prepare(wanted.kind, config, moment.block));
        if let Some(effect) = subject.effect(wanted.kind, config) {
            step.effects
                .push(due(effect, wanted, subject.attempts(), moment.clocks, config));
            subject.attempts_mut().start(wanted.kind);
        }
    }
}

fn shares<S: Subject>(subject: &S, kind: EffectKind) -> Shares<'_> {
    Shares {
        client: subject.client(),
        trace: subject.trace(kind),
    }
}

/// An effect with its deadline.
fn due(effect: Effect, wanted: Wanted, attempts: &Attempts, clocks: Clocks, config: &Config) -> Due {
    let left = wanted.left(clocks);
    // Where windows are short, a first attempt is always near the end: that alone is worth no tip.
    let is_late = left <= LATE_BLOCKS || attempts.count(wanted.kind) > 0;
    let is_pressing = is_late && wanted.is_near(clocks, config) || attempts.is_refused(wanted.kind);
    Due {
        effect,
        left,
        urgent: wanted.kind.is_call() && !wanted.kind.is_offer() && is_pressing,
    }
}

/// An effect that has no deadline.
pub(crate) fn undated(effect: Effect) -> Due {
    Due {
        effect,
        left: BlockNumber::MAX,
        urgent: false,
    }
}
