//! What view functions look through.

use surety_pallet_results::Rounds;
use surety_pallet_task_auction::{NextTaskId, Tasks};
use surety_types::{
    TaskId,
    history::{TaskHistory, TaskWork},
    task::{Assignment, PerMember, TaskState},
};

use crate::{AccountId, Balance, Runtime};

/// Tasks that the auction keeps, with their rounds: those say who works on one now.
pub struct PostedTasks;

impl TaskHistory<AccountId, Balance> for PostedTasks {
    fn next_id() -> TaskId {
        NextTaskId::<Runtime>::get()
    }

    fn work(id: TaskId) -> Option<TaskWork<AccountId, Balance>> {
        let task = Tasks::<Runtime>::get(id)?;
        let (assignments, is_settled) = match task.state {
            TaskState::Running { .. } => (members(id)?, false),
            TaskState::Settled { payments, .. } => (payments, true),
            TaskState::Bidding { .. }
            | TaskState::Revealing { .. }
            | TaskState::Drawing { .. }
            | TaskState::Failed { .. }
            | TaskState::Cancelled { .. } => return None,
        };
        Some(TaskWork {
            model: task.spec.model,
            assignments,
            is_settled,
        })
    }
}

fn members(id: TaskId) -> Option<PerMember<Assignment<AccountId, Balance>>> {
    let members = Rounds::<Runtime>::get(id)?.members.into_iter();
    let assignments = members.map(|member| Assignment {
        provider: member.provider,
        price: member.price,
    });
    Some(PerMember::truncate_from(assignments.collect()))
}
