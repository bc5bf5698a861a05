//! Rounds about receipts of this provider, as the chain has them: somebody disputes a receipt in them, or
//! demands its input and output alone.

use std::collections::BTreeMap;

use surety_chain_client::{BlockRef, ChainError, DemandRecord, DisputeRecord, When};
use surety_types::{
    TaskId,
    trust::{DisputeId, Party},
};

use crate::{Parts, front::CallId};

/// A round about a receipt.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// Whose answer it is about.
    pub(crate) call: CallId,
    /// Games in which the provider stands by it.
    pub(crate) disputes: Vec<(DisputeId, DisputeRecord)>,
    /// What the provider has to show.
    pub(crate) demands: Vec<DemandRecord>,
}

/// Those that are open by a finalised block, in which so many receipts are disputed.
pub(crate) async fn read(
    parts: &Parts,
    block: BlockRef,
    disputed: u32,
) -> Result<BTreeMap<TaskId, Round>, ChainError> {
    let mut rounds = BTreeMap::new();
    if disputed == 0 {
        return Ok(rounds);
    }
    let (when, stash) = (When::At(block.hash), &parts.stash);
    let (all, disputes) = tokio::try_join!(parts.channels.disputed(when, stash), parts.chain.disputes(when))?;
    for view in all {
        let round = Round {
            call: (view.channel, view.nonce),
            disputes: Vec::new(),
            demands: parts.chain.demands(when, view.round, stash).await?,
        };
        rounds.insert(view.round, round);
    }
    for (id, record) in disputes {
        let is_ours = matches!(&record.defender, Party::Provider(of) if of == stash);
        if let Some(round) = rounds.get_mut(&record.task).filter(|_| is_ours) {
            round.disputes.push((id, record));
        }
    }
    Ok(rounds)
}
