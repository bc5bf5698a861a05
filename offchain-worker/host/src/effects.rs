//! Carrying effects out.

use std::{sync::Arc, time::Duration};

use surety_chain_client::{AccountId, Call, ChainError, SubmitOptions, Until};
use surety_types::{BLOCK_SECONDS, multiaddr::Endpoints};
use surety_worker_core::{BlockNumber, Effect, Event, Failure};

use super::{
    Tools, audits, confirmations,
    effect_error::chain_class,
    jobs::{Task, failed},
    leaves, moves, supply, votes,
    work::{self, Work},
};

pub(super) async fn carry_out(tools: Arc<Tools>, of: Task, effect: Effect, client: Endpoints) -> Event {
    let tools = &*tools;
    match effect {
        Effect::FetchInput {
            hash,
            bytes,
            sources,
            may_be_here,
            ..
        } => work::fetch(tools, of, (hash, bytes), &sources, may_be_here).await,
        Effect::Compute {
            model,
            operation,
            input,
            units_max,
            ..
        } => {
            let work = Work {
                model,
                operation,
                input,
                units_max,
                client,
            };
            work::compute(tools, of.id, work).await
        }
        Effect::SubmitSupply { part, hash, .. } => supply::supply(tools, of, part, hash).await,
        effect @ (Effect::Draw { .. }
        | Effect::FetchAudit { .. }
        | Effect::Audit { .. }
        | Effect::CompareAudit { .. }
        | Effect::CompareAll { .. }
        | Effect::CheckData { .. }) => audit(tools, of, effect).await,
        Effect::SubmitLeavesDemand {
            provider,
            spec,
            items,
            ..
        } => leaves::demand(tools, of, provider, (spec, items)).await,
        Effect::CheckConfirmation { confirmation, .. } => confirmations::check(tools, of, confirmation).await,
        Effect::ComputeMove {
            dispute,
            record,
            side,
            spec,
            view,
        } => moves::find(tools, of, dispute, *record, (side, spec, view)).await,
        Effect::DrawSeat {
            input,
            verifier_stake,
            ..
        } => votes::draw(tools, of, input, verifier_stake).await,
        Effect::ComputeVote {
            dispute,
            record,
            spec,
        } => votes::compute(tools, of, dispute, *record, spec).await,
        other => match call(other, &tools.stash) {
            Some(call) => submit(tools, of, call).await,
            // The host does this itself, before any job.
            None => failed(of.id, of.kind, Failure::Permanent),
        },
    }
}

/// Those of a verifier about a provider's result.
async fn audit(tools: &Tools, of: Task, effect: Effect) -> Event {
    match effect {
        Effect::Draw {
            input,
            verifier_stake,
            settled_by,
        } => audits::draw(tools, of, input, (verifier_stake, settled_by)).await,
        Effect::FetchAudit {
            provider,
            spec,
            output,
            ..
        } => audits::fetch(tools, of, provider, (spec, output)).await,
        Effect::Audit {
            provider,
            spec,
            output,
            items,
            ..
        } => audits::audit(tools, of, provider, (spec, output), items).await,
        Effect::CompareAudit {
            provider,
            spec,
            claim,
            own,
            ..
        } => audits::compare(tools, of, provider, spec, (claim, own)).await,
        Effect::CompareAll {
            provider,
            spec,
            claim,
            ..
        } => audits::compare_all(tools, of, provider, spec, claim).await,
        Effect::CheckData {
            provider,
            spec,
            output,
            ..
        } => audits::check_data(tools, of, provider, (spec, output)).await,
        // There are no others.
        _ => failed(of.id, of.kind, Failure::Permanent),
    }
}

/// Effects that are calls and nothing else.
fn call(effect: Effect, stash: &AccountId) -> Option<Call> {
    Some(match effect {
        Effect::SubmitBid { task, seal } => Call::Bid { task, seal },
        Effect::SubmitBidReveal { task, bid } => Call::RevealBid {
            task,
            provider: stash.clone(),
            bid,
        },
        Effect::SubmitCommit { task, commitment } => Call::Commit { task, commitment },
        Effect::SubmitReveal { task, claim, salt } => Call::Reveal {
            task,
            provider: stash.clone(),
            claim,
            salt,
        },
        Effect::SubmitInputDemand { task, segment, .. } => Call::DemandInput { task, segment },
        other => return call_of_audit(other, stash),
    })
}

/// Those about an audit, or what it found.
fn call_of_audit(effect: Effect, stash: &AccountId) -> Option<Call> {
    Some(match effect {
        Effect::SubmitAnnouncement {
            task,
            provider,
            proof,
            seal,
        } => Call::AnnounceAudit {
            task,
            provider,
            proof,
            seal,
        },
        Effect::SubmitAuditReveal {
            task,
            provider,
            claim,
            salt,
        } => Call::RevealAudit {
            task,
            provider,
            verifier: stash.clone(),
            claim,
            salt,
        },
        Effect::SubmitItemsReveal {
            task,
            provider,
            found,
            answer,
        } => Call::RevealItems {
            task,
            provider,
            verifier: stash.clone(),
            found,
            answer,
        },
        Effect::SubmitDemand {
            task,
            provider,
            parts,
            proof,
        } => Call::Demand {
            task,
            provider,
            parts,
            proof,
        },
        Effect::SubmitReport { statement, other, .. } => Call::ReportEquivocation {
            statement: Box::new(statement),
            other: other.map(Box::new),
        },
        Effect::SubmitRefutation {
            task,
            verifier,
            refutation,
        } => Call::RefuteAudit {
            task,
            provider: stash.clone(),
            verifier,
            refutation,
        },
        other => return call_in_dispute(other, stash),
    })
}

/// Those about a dispute.
fn call_in_dispute(effect: Effect, stash: &AccountId) -> Option<Call> {
    Some(match effect {
        Effect::SubmitMove {
            dispute,
            number,
            played,
            ..
        } => Call::Play {
            dispute,
            number,
            played,
        },
        Effect::SubmitAdvance { dispute, .. } => Call::AdvanceDispute { dispute },
        Effect::SubmitJoin {
            dispute,
            ballot,
            proof,
            seal,
            ..
        } => Call::JoinCommittee {
            dispute,
            ballot,
            proof,
            seal,
        },
        Effect::SubmitVote {
            dispute, value, salt, ..
        } => Call::RevealVote {
            dispute,
            verifier: stash.clone(),
            value,
            salt,
        },
        _ => return None,
    })
}

/// When a deadline is near, in blocks: core then has a call sent again and again, each time with a higher
/// tip.
const NEAR: BlockNumber = 10;

/// How long a call may be on its way before it is sent anew: so long that it ends when the deadline gets
/// near, and then no longer than a few blocks, since each attempt tips more. Openings tip nothing: nothing is
/// gained by beginning them again.
fn patience(left: BlockNumber, is_opening: bool) -> Duration {
    let blocks = match left.saturating_sub(NEAR) {
        _ if is_opening => left.clamp(4, 150),
        0..NEAR => 4,
        blocks => blocks.min(150),
    };
    Duration::from_secs(u64::from(blocks).saturating_mul(BLOCK_SECONDS.into()))
}

pub(super) async fn submit(tools: &Tools, of: Task, call: Call) -> Event {
    let Task { id: task, kind, .. } = of;
    let options = SubmitOptions {
        until: Until::Included,
        // Nobody signs an opening: nobody could pay for one.
        tip: if call.proves_itself() { 0 } else { of.tip },
    };
    let time = patience(of.left, call.proves_itself());
    let submission = tools.chain.submit(&tools.signer, call, options);
    let outcome = match tokio::time::timeout(time, submission).await {
        Ok(outcome) => outcome,
        Err(_) => Err(ChainError::Unknown {
            reason: "its time is short, and it is in no block yet".into(),
        }),
    };
    match outcome {
        Ok(included) => {
            let block = included.block.number;
            tracing::info!(task, ?kind, block, "on the chain");
            Event::EffectDone {
                task,
                kind,
                block: Some(block),
            }
        }
        Err(e) => {
            match is_settled(&e) {
                true => tracing::info!(task, ?kind, "no longer needed: the dispute was settled elsewhere"),
                false => tracing::warn!(task, ?kind, error = %e, "not on the chain"),
            }
            failed(task, kind, chain_class(&e))
        }
    }
}

/// A party of a dispute was convicted in another one while a call about it was on its way: nothing is wrong.
fn is_settled(error: &ChainError) -> bool {
    error.is_fault("Disputes", "Moot")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_sent_anew_when_its_deadline_gets_near_and_every_few_blocks_from_then_on() {
        let seconds = |left| patience(left, false).as_secs();
        assert_eq!([0, 1, 10, 19].map(seconds), [8; 4]);
        assert_eq!(seconds(60), 100);
        assert_eq!(seconds(BlockNumber::MAX), 300);
    }
}
