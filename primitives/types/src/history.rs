//! What is found by looking through tasks that were posted before: view functions do. Calls do not, because
//! nobody would pay for it.

use alloc::vec::Vec;

use codec::{Decode, Encode};
use scale_info::TypeInfo;

use crate::{
    ModelId, TaskId,
    provider::Provider,
    speed::MeasuredView,
    task::{Assignment, PerMember},
};

/// How many numbers of tasks one page looks at.
pub const TASKS_PER_PAGE: u64 = 256;

/// Who worked on what, for as long as that is kept.
pub trait TaskHistory<AccountId, Balance> {
    /// The number that the next task gets.
    fn next_id() -> TaskId;

    /// The work of a task, or nothing when the task is unknown, not given to anybody yet, failed or long
    /// finished.
    fn work(task: TaskId) -> Option<TaskWork<AccountId, Balance>>;

    /// The work of one page of tasks, newest first: of those before `before`, or the newest ones.
    fn page(before: Option<TaskId>) -> Page<(TaskId, TaskWork<AccountId, Balance>)> {
        let next_id = Self::next_id();
        let end = before.map_or(next_id, |before| before.min(next_id));
        let start = end.saturating_sub(TASKS_PER_PAGE);
        let found = (start..end).rev().map(|task| Some((task, Self::work(task)?)));
        Page {
            items: found.flatten().collect(),
            next: (start > 0).then_some(start),
        }
    }
}

/// Nobody has ever worked.
impl<AccountId, Balance> TaskHistory<AccountId, Balance> for () {
    fn next_id() -> TaskId {
        0
    }

    fn work(_: TaskId) -> Option<TaskWork<AccountId, Balance>> {
        None
    }
}

/// Who works on a task, or was paid for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskWork<AccountId, Balance> {
    /// The model that it asks for.
    pub model: ModelId,
    /// Its providers, and for how much each: what it asked for, or what it was paid.
    pub assignments: PerMember<Assignment<AccountId, Balance>>,
    /// Whether they were paid.
    pub is_settled: bool,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct Page<Item> {
    /// What was found.
    pub items: Vec<Item>,
    /// Where to go on, or nothing when there is no more.
    pub next: Option<TaskId>,
}

/// A provider, as those see it who want work done.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct ProviderView<AccountId, BlockNumber> {
    /// Its stash.
    pub stash: AccountId,
    /// Its entry.
    pub entry: Provider<BlockNumber>,
    /// Whether it would be given work now: it was heard of lately, and was not at fault.
    pub is_available: bool,
    /// How fast it was measured to be, whatever its entry declares; nothing where that counts no more, or it
    /// never was.
    pub measured: Option<MeasuredView>,
}

/// What a provider has of one task.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct Earning<Balance> {
    /// Task id.
    pub task: TaskId,
    /// What it was paid, its auditors' part included, or what it is paid at most once its result is accepted:
    /// in plancks.
    pub amount: Balance,
    /// Whether it was paid.
    pub is_settled: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every third of 600 tasks was given to somebody.
    struct Thirds;

    impl TaskHistory<u64, u128> for Thirds {
        fn next_id() -> TaskId {
            600
        }

        fn work(task: TaskId) -> Option<TaskWork<u64, u128>> {
            task.is_multiple_of(3).then(|| TaskWork {
                model: ModelId::zero(),
                assignments: PerMember::default(),
                is_settled: false,
            })
        }
    }

    #[test]
    fn pages_together_show_every_task_once_and_newest_first() {
        let (mut seen, mut before, mut pages) = (Vec::new(), None, 0);
        loop {
            let page = Thirds::page(before);
            seen.extend(page.items.into_iter().map(|(task, _)| task));
            pages += 1;
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(pages, 3);
        assert!(seen.into_iter().eq((0..600).rev().filter(|task| task % 3 == 0)));
    }

    #[test]
    fn a_page_beyond_the_last_task_begins_with_the_last_one() {
        assert_eq!(Thirds::page(Some(TaskId::MAX)), Thirds::page(None));
    }
}
