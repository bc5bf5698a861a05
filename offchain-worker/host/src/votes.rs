//! A verifier's part in committees.

use surety_audit_economics::{AuditThreshold, SeatInput};
use surety_chain_client::{ChainError, DisputeRecord, FixedU128, When};
use surety_dispute_game::committee::{CANDIDATES_EXPECTED, value_hash};
use surety_types::{
    task::TaskSpec,
    trust::{AuditProof, DisputeId},
};
use surety_worker_core::Event;

use super::{
    Tools,
    effect_error::chain_class,
    jobs::{Task, failed},
    moves,
};

/// Sees whether a seat is ours, by our own key.
pub(super) async fn draw(tools: &Tools, of: Task, input: SeatInput, verifier_stake: u128) -> Event {
    let (task, dispute, ballot) = (of.id, input.dispute, input.ballot);
    match try_draw(tools, &input, verifier_stake).await {
        Ok(proof) => {
            tracing::info!(
                task,
                dispute,
                ballot,
                ours = proof.is_some(),
                "drawn for a committee"
            );
            Event::SeatDrawn {
                task,
                dispute,
                ballot,
                proof,
            }
        }
        Err(e) => {
            tracing::warn!(task, dispute, error = %e, "cannot draw for a committee");
            failed(task, of.kind, chain_class(&e))
        }
    }
}

async fn try_draw(
    tools: &Tools,
    input: &SeatInput,
    verifier_stake: u128,
) -> Result<Option<AuditProof>, ChainError> {
    let stake = tools.chain.stake(When::Finalized, &tools.stash).await?;
    let bonded = stake.map_or(0, |stake| stake.bonded);
    let drawn = tools.signer.draw_seat(input)?;
    let expected = FixedU128::from_u32(CANDIDATES_EXPECTED);
    let threshold = AuditThreshold::weighted(expected, bonded, verifier_stake);
    Ok(threshold.draws(&drawn.output).then_some(drawn.proof))
}

/// Computes the number that a committee is asked for.
pub(super) async fn compute(
    tools: &Tools,
    of: Task,
    dispute: DisputeId,
    record: DisputeRecord,
    spec: TaskSpec,
) -> Event {
    let task = record.task;
    match moves::value(tools, of, &record, &spec).await {
        Ok(value) => {
            tracing::info!(task, dispute, ?value, "computed for a committee");
            Event::VoteReady {
                task,
                dispute,
                value: value_hash(value),
            }
        }
        Err(error) => {
            let reason = error.to_string();
            tracing::error!(task, dispute, reason, "cannot compute for a committee");
            failed(task, of.kind, error.class())
        }
    }
}
