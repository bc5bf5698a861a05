//! Posting a task.

use std::time::Duration;

use surety_chain_client::{
    Balance, BlockNumber, BlockRef, Call, Chain, ChainError, ErrorClass, Signer, TaskRecord, Until, When,
};
use surety_types::{TaskId, task::TaskSpec};

use crate::error::{ClientError, Result};

/// Posts a task for at most `cap` plancks. Returns its number in the best block that it is in; see
/// [`until_final`].
///
/// # Errors
/// When the chain refuses it.
pub async fn submit(
    chain: &dyn Chain,
    signer: &Signer,
    spec: TaskSpec,
    cap: Balance,
) -> Result<(TaskId, BlockRef)> {
    let call = Call::PostTask { spec, cap };
    let included = chain.submit(signer, call, Until::Included.into()).await?;
    let task = included
        .event("TaskAuction", "TaskPosted")
        .and_then(|event| event.task())
        .ok_or_else(|| ClientError::Internal("the task was posted, but the block does not say so".into()))?;
    Ok((task, included.block))
}

/// Between two looks at what is final.
const POLL: Duration = Duration::from_secs(1);

/// The number of a task that is in a best block, once it is final, and the block that it was posted in: they
/// could change with the block that it is in, and `is_it` says which it is by then. However long that takes:
/// the money is on its way already, and the chain's clock waits, too.
///
/// # Errors
/// [`ChainError::Unknown`] when its block was replaced and no other has it for so long that none will; what
/// the chain says that no patience helps against.
pub async fn until_final(
    chain: &dyn Chain,
    (task, block): (TaskId, BlockRef),
    is_it: impl Fn(&TaskRecord) -> bool + Sync,
) -> Result<(TaskId, BlockNumber)> {
    loop {
        match look(chain, (task, block), &is_it).await {
            Ok((_, Some(found))) => return Ok(found),
            Ok((last, None)) if last > block.number.saturating_add(REPLACED_MAX) => {
                let reason = "the block that it was in was replaced, and no other has it; look with: surety task list --mine";
                return Err(ChainError::Unknown {
                    reason: reason.into(),
                }
                .into());
            }
            Ok((_, None)) => {}
            Err(e) if e.class() == ErrorClass::Refused => {
                tracing::warn!(error = %e, "cannot see what is final")
            }
            Err(e) => return Err(e.into()),
        }
        tokio::time::sleep(POLL).await;
    }
}

/// The last finalised block, and a task in its state: under its number, or, where its block was replaced,
/// under another.
async fn look(
    chain: &dyn Chain,
    (task, block): (TaskId, BlockRef),
    is_it: impl Fn(&TaskRecord) -> bool,
) -> std::result::Result<(BlockNumber, Option<(TaskId, BlockNumber)>), ChainError> {
    let last = chain.block(When::Finalized).await?.number;
    if last < block.number {
        return Ok((last, None));
    }
    let earliest = block.number.saturating_sub(REPLACED_MAX);
    let is_it = |found: &TaskRecord| found.posted_at >= earliest && is_it(found);
    if let Some(info) = chain.task(When::Finalized, task).await?
        && is_it(&info.task)
    {
        return Ok((last, Some((task, info.task.posted_at))));
    }
    let recent = chain.recent_tasks(When::Finalized, RECENT).await?;
    let found = recent.into_iter().find(|(_, found)| is_it(found));
    Ok((last, found.map(|(task, found)| (task, found.posted_at))))
}

/// Blocks that a call may be good for, and so find itself earlier on another fork.
const REPLACED_MAX: BlockNumber = 64;

/// Tasks among which one is looked for whose block was replaced.
const RECENT: u32 = 200;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use surety_chain_client::FakeChain;
    use surety_types::{ContentHash, ModelId, model::Operation};

    use super::*;

    #[tokio::test]
    async fn a_posted_task_is_waited_for_until_it_is_final_and_found_under_whatever_number() {
        let chain = FakeChain::new();
        let client = Signer::from_uri("//Client").unwrap();
        let input = ContentHash::repeat_byte(7);
        let spec = TaskSpec {
            model: ModelId::zero(),
            operation: Operation::Embed,
            input,
            input_bytes: 1,
            units_max: 1,
            redundancy: 1,
            sources: Default::default(),
            security: Default::default(),
            requirements: Default::default(),
        };
        let call = Call::PostTask { spec, cap: 9 };
        let included = chain.submit(&client, call, Until::Included.into()).await.unwrap();
        let task = included
            .event("TaskAuction", "TaskPosted")
            .unwrap()
            .task()
            .unwrap();
        let posted = (task, included.block);
        chain.extend();
        let of = |client: &Signer| {
            let client = client.account().clone();
            move |found: &TaskRecord| found.client == client && found.spec.input == input
        };
        let seen = look(&chain, posted, of(&client)).await.unwrap();
        assert_eq!(seen.1, None, "in a best block, and no finality");
        // Its block is replaced by one in which others came first.
        chain.change(|state| {
            let ours = state.tasks.remove(&task).unwrap();
            state.tasks.insert(task + 5, ours);
        });
        chain.finalize();
        let found = until_final(&chain, posted, of(&client)).await.unwrap();
        assert_eq!(found.0, task + 5);
        let other = Signer::from_uri("//Other").unwrap();
        for _ in 0..=REPLACED_MAX + 2 {
            chain.finalize();
        }
        let lost = until_final(&chain, posted, of(&other)).await;
        assert!(matches!(
            lost,
            Err(ClientError::Chain(ChainError::Unknown { .. }))
        ));
    }
}
