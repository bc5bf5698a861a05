//! A provider that takes no new work, until it has nothing open any more.
//!
//! What it does about each task is core's, as always; this only tells what is still open, and when nothing
//! is.

use std::{collections::BTreeMap, time::Duration};

use surety_chain_client::{AccountId, Balance, BlockNumber, RoundRecord};
use surety_types::{
    TaskId,
    task::{Assignment, MemberProgress, RoundMember, RoundPhase, TaskState},
    trust::DisputeId,
};
use surety_worker_core::{Event, Step, TaskSnapshot};
use tokio::sync::watch;

use super::Core;

/// A core that tells what is still open, after each finalised block.
pub struct Draining<C> {
    core: C,
    stash: AccountId,
    still: watch::Sender<Still>,
}

/// What is still open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Still {
    /// What the chain's clock shows; nothing before the first finalised block.
    pub clock: Option<BlockNumber>,
    /// Tasks in the chain's state that may ask something of this provider yet.
    pub open: Vec<Open>,
    /// Tasks that core keeps: those, and what is not in the chain's state any more until that is certain.
    pub kept: usize,
    /// Tasks in the chain's state that cannot be read: they may be ours.
    pub unread: usize,
}

/// A task that may ask something of this provider yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Its number.
    pub task: TaskId,
    /// What for.
    pub duty: Duty,
    /// Until when that part of the task's life lasts, on the chain's clock, where that is known.
    pub until: Option<BlockNumber>,
}

/// What is open about a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Duty {
    /// A bid that the chain has; it may win.
    Bid,
    /// In reserve for whoever delivers nothing.
    Reserve,
    /// A result to compute and to commit to.
    Compute,
    /// A commitment to open.
    Reveal,
    /// Data to show on the chain.
    Supply,
    /// Disputes to play.
    Disputes(Vec<DisputeId>),
    /// Nothing, unless somebody challenges or demands something before it is over.
    Wait,
}

impl Still {
    /// Whether the worker may end.
    pub fn is_done(&self) -> bool {
        self.clock.is_some() && self.open.is_empty() && self.kept == 0 && self.unread == 0
    }
}

impl<C: Core> Draining<C> {
    /// A core that takes no new work, of the worker of a stash, and what is still open for it.
    pub fn new(core: C, stash: AccountId) -> (Self, watch::Receiver<Still>) {
        let (still, seen) = watch::channel(Still::default());
        (Self { core, stash, still }, seen)
    }
}

impl<C: Core> Core for Draining<C> {
    fn step(&mut self, now: u32, event: Event) -> Step {
        let seen = match &event {
            Event::Finalized {
                clock, tasks, unread, ..
            } => {
                let open = tasks.iter().filter_map(|task| open(task, &self.stash));
                Some((*clock, open.collect(), unread.len()))
            }
            _ => None,
        };
        let step = self.core.step(now, event);
        if let Some((clock, open, unread)) = seen {
            let kept = self.core.progress().into_values();
            self.still.send_replace(Still {
                clock: Some(clock),
                open,
                kept: kept.fold(0, usize::saturating_add),
                unread,
            });
        }
        step
    }

    fn progress(&self) -> BTreeMap<&'static str, usize> {
        self.core.progress()
    }

    fn spare(&self) -> Option<Duration> {
        self.core.spare()
    }
}

/// What a task may ask of a provider yet, whether or not its journal knows of it.
fn open(seen: &TaskSnapshot, stash: &AccountId) -> Option<Open> {
    let (duty, until) = match &seen.task.state {
        TaskState::Bidding { until } | TaskState::Revealing { until } => {
            (seen.bid.map(|_| Duty::Bid), Some(*until))
        }
        TaskState::Drawing { .. } => (seen.bid.filter(|bid| bid.opened).map(|_| Duty::Bid), None),
        TaskState::Running {
            assignments,
            reserves,
        } => {
            let disputes = disputes(seen, stash);
            let member = seen.round.as_ref().and_then(|round| {
                let mut members = round.members.iter();
                let ours = members.find(|member| member.provider == *stash)?;
                Some((round, ours))
            });
            let has_us =
                |list: &[Assignment<AccountId, Balance>]| list.iter().any(|entry| entry.provider == *stash);
            match member {
                _ if !disputes.is_empty() => (Some(Duty::Disputes(disputes)), None),
                Some((round, ours)) => of_member(seen, round, ours),
                None if seen.round.is_none() && has_us(assignments) => (Some(Duty::Compute), None),
                None => (has_us(reserves).then_some(Duty::Reserve), None),
            }
        }
        TaskState::Settled { .. } | TaskState::Failed { .. } | TaskState::Cancelled { .. } => (None, None),
    };
    Some(Open {
        task: seen.id,
        duty: duty?,
        until,
    })
}

fn disputes(seen: &TaskSnapshot, stash: &AccountId) -> Vec<DisputeId> {
    let ours = seen
        .disputes
        .iter()
        .filter(|(_, dispute)| [dispute.defender.account(), dispute.challenger.account()].contains(&stash));
    ours.map(|(id, _)| *id).collect()
}

fn of_member(
    seen: &TaskSnapshot,
    round: &RoundRecord,
    ours: &RoundMember<AccountId, Balance>,
) -> (Option<Duty>, Option<BlockNumber>) {
    let demanded = seen
        .demands
        .iter()
        .filter(|(provider, _)| *provider == ours.provider);
    if let Some(until) = demanded.map(|(_, demand)| demand.until).min() {
        return (Some(Duty::Supply), Some(until));
    }
    let until = match &round.phase {
        RoundPhase::Auditing { .. } if round.awaits_seed() => None,
        RoundPhase::Committing { until }
        | RoundPhase::Auditing { until }
        | RoundPhase::Revealing { until } => Some(*until),
        RoundPhase::Challengeable { until, .. } => Some(round.openings_until.unwrap_or(0).max(*until)),
    };
    let duty = match (&ours.progress, &round.phase) {
        _ if ours.fault.is_some() => Duty::Wait,
        (MemberProgress::Working, RoundPhase::Committing { .. }) => Duty::Compute,
        (MemberProgress::Committed(_), _) => Duty::Reveal,
        _ => Duty::Wait,
    };
    (Some(duty), until)
}
