//! What has happened in a task, from the chain's blocks.

use serde::Serialize;
use surety_chain_client::{
    BlockNumber, BlockRef, Chain, ChainError, ChainEvent, TaskInfo, TaskRecord, When, is_open, short,
};
use surety_types::{TaskId, task::TaskState};

use super::steps::Steps;
use crate::{
    amount::Amount,
    error::{ClientError, Result},
};

/// Something that happened.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    /// In which block.
    pub block: BlockNumber,
    /// What.
    pub text: String,
}

/// What has happened in a task within the last so many blocks of its life, as far as the node keeps them, and
/// who got what in the end.
///
/// # Errors
/// When the chain cannot be asked, or does not know the task.
pub async fn story(chain: &dyn Chain, task: TaskId, blocks: u32) -> Result<Vec<Told>> {
    let now = chain.block(When::Finalized).await?;
    let known = chain.task(When::At(now.hash), task).await?;
    let known = known.ok_or(ClientError::UnknownTask(task))?;
    let (mut steps, mut told) = (Steps::default(), Vec::new());
    let end = ended_at(&known.task).map_or(now.number, |at| at.min(now.number));
    let first = known.task.posted_at.max(end.saturating_sub(blocks)).min(end);
    let mut is_part_missing = false;
    for number in first..=end {
        let block = chain.block_at(number).await?;
        let (events, info, clock) = match look(chain, task, block).await {
            Ok((events, Some(info), clock)) => (events, info, clock),
            Ok((_, None, _)) | Err(ChainError::Pruned { .. }) => {
                is_part_missing = true;
                continue;
            }
            Err(e) => return Err(e.into()),
        };
        let mut texts = steps.events(task, &events, clock);
        texts.extend(steps.state(&info, clock));
        told.extend(texts.into_iter().map(|text| Told { block: number, text }));
        if !is_open(&info.task) {
            break;
        }
    }
    if is_part_missing {
        let text =
            "the node does not keep all blocks from here on: an archive node tells more (--rpc)".into();
        told.insert(0, Told { block: first, text });
    }
    if ended_at(&known.task).is_some() {
        // The same again is not told again.
        let mut texts = steps.state(&known, 0);
        texts.extend(money(&known.task));
        told.extend(texts.into_iter().map(|text| Told { block: end, text }));
    }
    Ok(told)
}

/// Block in which a task ended, if it did.
fn ended_at(task: &TaskRecord) -> Option<BlockNumber> {
    match &task.state {
        TaskState::Settled { at, .. } | TaskState::Failed { at, .. } | TaskState::Cancelled { at, .. } => {
            Some(*at)
        }
        _ => None,
    }
}

/// Who got what of a task that is over.
fn money(task: &TaskRecord) -> Vec<String> {
    let TaskState::Settled {
        payments,
        refund,
        fee,
        ..
    } = &task.state
    else {
        return vec![format!(
            "nobody is paid; {} go back to the client",
            Amount(task.cap)
        )];
    };
    let paid = payments.iter().map(|payment| {
        let (who, price) = (short(&payment.provider), Amount(payment.price));
        format!("{who} is paid {price}, of which its auditors get a part")
    });
    let rest = format!(
        "the fee is {}; {} go back to the client",
        Amount(*fee),
        Amount(*refund)
    );
    paid.chain([rest]).collect()
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
