//! Whether auditors that confirmed our result by some of its items have sealed what our trace has of them.

use surety_audit_economics::{answer_hashes, items_seal};
use surety_chain_client::ItemsOpening;
use surety_engine::JobSink;
use surety_proofs::merkle_root;
use surety_types::trust::Refutation;
use surety_worker_core::{Confirmation, Event};

use super::{
    Tools,
    audits::{cannot, job},
    compute::ComputeError,
    effect_error::EffectError,
    jobs::Task,
    work::{leaves_of, own_blob},
};

/// Holds a confirmation against the leaves that we have kept.
pub(super) async fn check(tools: &Tools, of: Task, confirmation: Confirmation) -> Event {
    let (task, verifier) = (of.id, confirmation.verifier.clone());
    match refutation(tools, of, confirmation).await {
        Ok(refutation) => {
            match &refutation {
                None => tracing::info!(task, %verifier, "an auditor has what it confirmed"),
                Some(_) => tracing::warn!(task, %verifier, "an auditor confirmed what it has not computed"),
            }
            Event::ConfirmationChecked {
                task,
                verifier,
                refutation: refutation.map(Box::new),
            }
        }
        Err(error) => cannot(of, "cannot check who has confirmed our result", &error),
    }
}

async fn refutation(
    tools: &Tools,
    of: Task,
    confirmation: Confirmation,
) -> Result<Option<Refutation>, EffectError> {
    let (found, answer) = opening(tools, of, &confirmation).await?;
    let Confirmation {
        spec, claim, items, ..
    } = confirmation;
    let leaves = own_blob(tools, confirmation.leaves).await?;
    let leaves = leaves_of(&leaves).ok_or(EffectError::NoLeaves)?;
    let input = own_blob(tools, spec.input).await?;
    let (engine, job) = (tools.engines.get(&spec.model)?, job(&spec, &input));
    let sealed = found.clone();
    // A million leaves take long enough to keep others waiting.
    let look = move |_: &mut JobSink| {
        let is_ours = merkle_root(leaves.iter().copied()) == claim.trace_root;
        Ok(is_ours.then(|| engine.refuted_item(&job, (&items, &sealed), &leaves)))
    };
    let refuted = tools.engines.answer(look)?.await.map_err(ComputeError::from)?;
    Ok(refuted
        .ok_or(EffectError::NoLeaves)?
        .map(|(place, shown)| Refutation {
            found,
            answer,
            place,
            shown,
        }))
}

/// What the auditor has opened its seal with. The author of the block may have put any number of other calls
/// that name it in front.
async fn opening(tools: &Tools, of: Task, confirmation: &Confirmation) -> Result<ItemsOpening, EffectError> {
    let Confirmation { verifier, opened, .. } = confirmation;
    let (task, stash) = (of.id, &tools.stash);
    let read = tools.chain.items_opened(opened.block, task, stash, verifier);
    let fits = |(found, answer): &ItemsOpening| {
        items_seal(task, stash, verifier, found, &answer_hashes(answer)) == opened.seal
    };
    read.await?.into_iter().find(fits).ok_or(EffectError::NoOpening)
}
