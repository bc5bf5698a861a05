//! Says on the chain which models a verifier audits: tasks are taken for models that enough of the verifiers'
//! stake can audit, and auditors have as long as a reference machine says. Who is too slow for that says
//! nothing, or takes back what it said.
//!
//! What the chain refuses for one model says nothing of the others, and is tried again after pauses that
//! double: each attempt costs a fee. Where our speed cannot be measured, what was said stays.

use std::{collections::BTreeMap, sync::Arc};

use surety_chain_client::{BlockNumber, Call, ChainError, ErrorClass, Until, When};
use surety_types::{ModelId, model::audit_speeds};

use super::{Tools, audit_speed, retry::Backoff};

/// Blocks between two looks: ten minutes. A verifier whose place another with more stake has taken tries
/// again.
const EVERY: BlockNumber = 300;
/// Most blocks between two attempts that cost a fee each: nearly six hours.
const PAUSE_MAX: BlockNumber = 32 * EVERY;

/// Sees to it for as long as it is polled.
pub(super) async fn keep(tools: Arc<Tools>) {
    let (mut backoff, mut known) = (Backoff::costly(), BTreeMap::new());
    loop {
        if let Err(e) = until_error(&tools, &mut known, &mut backoff).await {
            tracing::warn!(error = %e, "cannot say which models we audit, trying again");
        }
        backoff.wait().await;
    }
}

/// What is known of one model.
#[derive(Default)]
struct Known {
    /// Tokens that this machine audits in 1,000 seconds. Measured once since the start, unless that fails.
    speed: Option<u64>,
    /// Blocks that were waited for after the chain's last refusal.
    pause: BlockNumber,
    /// Nothing is said before this block.
    waits_until: BlockNumber,
}

impl Known {
    /// Finalised state does not show it yet: it is not said a second time meanwhile, for another fee.
    fn said(&mut self, block: BlockNumber) {
        self.pause = 0;
        self.waits_until = block.saturating_add(EVERY);
    }

    fn refused(&mut self, block: BlockNumber) {
        self.pause = self.pause.saturating_mul(2).clamp(2 * EVERY, PAUSE_MAX);
        self.waits_until = block.saturating_add(self.pause);
    }
}

async fn until_error(
    tools: &Tools,
    known: &mut BTreeMap<ModelId, Known>,
    backoff: &mut Backoff,
) -> Result<(), ChainError> {
    let mut blocks = tools.chain.finalized_blocks().await?;
    let mut next = 0;
    loop {
        let block = blocks.next().await?.number;
        if block < next {
            continue;
        }
        let mut lost = None;
        for (model, offered) in changes(tools, known, block).await? {
            let call = Call::OfferAudits { model, offered };
            let said = tools.chain.submit(&tools.signer, call, Until::Included.into());
            match said.await {
                Ok(_) => {
                    known.entry(model).or_default().said(block);
                    tracing::info!(?model, offered, "said whether we audit a model");
                }
                Err(e) if e.class() == ErrorClass::Failed => {
                    let of_model = known.entry(model).or_default();
                    of_model.refused(block);
                    let pause = of_model.pause;
                    tracing::warn!(?model, offered, pause, error = %e, "the chain refuses whether we audit a model");
                }
                // It cost nothing, and may cost nothing again: soon.
                Err(e) => lost = Some(e),
            }
        }
        if let Some(e) = lost {
            return Err(e);
        }
        backoff.reset();
        next = block.saturating_add(EVERY);
    }
}

/// Models of which the chain does not know that we audit them, or that we do not.
async fn changes(
    tools: &Tools,
    known: &mut BTreeMap<ModelId, Known>,
    block: BlockNumber,
) -> Result<Vec<(ModelId, bool)>, ChainError> {
    let mut changes = Vec::new();
    let models = tools.chain.models(When::Finalized).await?;
    known.retain(|model, _| models.iter().any(|(registered, _)| registered == model));
    for (model, registered) in models {
        if known.get(&model).is_some_and(|known| block < known.waits_until) {
            continue;
        }
        let auditors = tools.chain.auditors(When::Finalized, &model).await?;
        let offered = auditors.contains(&tools.stash);
        let speed = tools.chain.audit_speed(When::Finalized, &model).await?;
        let (reference, _) = audit_speeds(registered.manifest.work_per_token());
        let Some(own) = own_speed(tools, model, known).await else {
            continue;
        };
        if audit_speed::is_in_time(own, speed.unwrap_or(reference), offered) != offered {
            changes.push((model, !offered));
        }
    }
    Ok(changes)
}

/// Nothing where it cannot be measured. A model that is not here is audited at no speed at all.
async fn own_speed(tools: &Tools, model: ModelId, known: &mut BTreeMap<ModelId, Known>) -> Option<u64> {
    if tools.engines.get(&model).is_err() {
        return Some(0);
    }
    let known = known.entry(model).or_default();
    if known.speed.is_none() {
        match audit_speed::measure(&tools.engines, &model).await {
            Ok(speed) => {
                tracing::info!(?model, speed, "tokens that we audit in 1,000 seconds");
                known.speed = Some(speed);
            }
            Err(e) => {
                tracing::warn!(?model, error = %e, "how fast we audit it cannot be measured: nothing is said of it");
            }
        }
    }
    known.speed
}
