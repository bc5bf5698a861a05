//! What has happened in a task, from the chain's blocks.

use serde::Serialize;
use surety_chain_client::{BlockNumber, BlockRef, Chain, ChainError, ChainEvent, TaskInfo, When, is_open};
use surety_types::TaskId;

use super::steps::Steps;
use crate::error::{ClientError, Result};

/// Something that happened.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    /// In which block.
    pub block: BlockNumber,
    /// What.
    pub text: String,
}

/// What has happened in a task within the last so many blocks of its life, as far as the node keeps them.
///
/// # Errors
/// When the chain cannot be asked, or does not know the task.
pub async fn story(chain: &dyn Chain, task: TaskId, blocks: u32) -> Result<Vec<Told>> {
    let now = chain.block(When::Finalized).await?;
    let known = chain.task(When::At(now.hash), task).await?;
    let known = known.ok_or(ClientError::UnknownTask(task))?;
    let (mut steps, mut told) = (Steps::default(), Vec::new());
    // The clock that `posted_at` is on is never ahead of the blocks.
    let first = known.task.posted_at.max(now.number.saturating_sub(blocks));
    for number in first..=now.number {
        let block = chain.block_at(number).await?;
        let (events, info, clock) = match look(chain, task, block).await {
            Ok((events, Some(info), clock)) => (events, info, clock),
            // Older blocks are not kept.
            Ok((_, None, _)) | Err(ChainError::Pruned { .. }) => continue,
            Err(e) => return Err(e.into()),
        };
        let mut texts = steps.events(task, &events, clock);
        texts.extend(steps.state(&info, clock));
        told.extend(texts.into_iter().map(|text| Told { block: number, text }));
        if !is_open(&info.task) {
            break;
        }
    }
    Ok(told)
}

async fn look(
    chain: &dyn Chain,
    task: TaskId,
    block: BlockRef,
) -> std::result::Result<(Vec<ChainEvent>, Option<TaskInfo>, BlockNumber), ChainError> {
    let when = When::At(block.hash);
    let events = chain.events(block.hash).await?;
    Ok((events, chain.task(when, task).await?, chain.clock(when).await?))
}
