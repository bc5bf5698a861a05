//! When a task that finalised state no longer lists is over.
//!
//! Whoever forgets a promise cannot keep it. So one state without a task ends nothing, whatever a node says
//! once; and states that come before the task's time is over have to be many.

use surety_types::task::{RoundPhase, TaskState};

use crate::{BlockNumber, TaskSnapshot};

/// States in a row without a task after which it is over, when its last deadline known to us has passed.
const STATES_LATE: u32 = 2;
/// The same when it has not, when something of ours is sealed and not opened, or when we have not seen the
/// task since the start. Until then it costs nothing but its place.
const STATES_EARLY: u32 = 32;

/// States in a row after which no more is worked for it: less is lost by a few blocks of work than by work
/// begun anew.
const STATES_STOPPED: u32 = 4;

/// For how long a task has not been listed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Absence {
    states: u32,
    /// Newest finalised block that we know anything of it from.
    heard_at: BlockNumber,
}

impl Absence {
    /// The task is there, or was when something about it was journalled.
    pub fn end(&mut self, block: BlockNumber) {
        self.states = 0;
        self.heard_at = self.heard_at.max(block);
    }

    /// The task is not in a finalised state. The same one again, or one that is no newer than our record,
    /// says nothing.
    pub fn note(&mut self, block: BlockNumber) {
        if block > self.heard_at {
            self.heard_at = block;
            self.states = self.states.saturating_add(1);
        }
    }

    /// Whether the last state listed it.
    pub fn is_listed(&self) -> bool {
        self.states == 0
    }

    /// Whether it probably is over: nothing more is worked for it.
    pub fn is_likely_over(&self) -> bool {
        self.states >= STATES_STOPPED
    }

    /// Whether it is over, as we saw it last. `owes`: something of ours is sealed and not opened.
    pub fn is_over(&self, last: Option<&TaskSnapshot>, clock: BlockNumber, owes: bool) -> bool {
        let is_late = !owes && last.is_some_and(|last| is_overdue(last, clock));
        self.states >= if is_late { STATES_LATE } else { STATES_EARLY }
    }
}

/// Whether a task's time was over, so that nobody wonders at its end.
fn is_overdue(task: &TaskSnapshot, clock: BlockNumber) -> bool {
    let until = match (&task.task.state, &task.round) {
        (TaskState::Bidding { until } | TaskState::Revealing { until }, _) => *until,
        (TaskState::Running { .. }, Some(round)) if task.disputes.is_empty() && task.demands.is_empty() => {
            match &round.phase {
                RoundPhase::Auditing { .. } if round.awaits_seed() => return false,
                RoundPhase::Committing { until }
                | RoundPhase::Auditing { until }
                | RoundPhase::Revealing { until } => *until,
                RoundPhase::Challengeable { until, .. } => round.openings_until.unwrap_or(0).max(*until),
            }
        }
        _ => return false,
    };
    clock > until
}
