//! Says on the chain which models a verifier audits: tasks are taken for models that enough of the verifiers'
//! stake can audit, and auditors have as long as a reference machine says. Who is too slow for that says
//! nothing, or takes back what it said.

use std::{collections::BTreeMap, sync::Arc};

use surety_chain_client::{BlockNumber, Call, ChainError, Until, When};
use surety_types::{ModelId, model::audit_speeds};

use super::{Tools, audit_speed, retry::Backoff};

/// Blocks between two looks: ten minutes. A verifier whose place another with more stake has taken tries
/// again.
const EVERY: BlockNumber = 300;

/// Tokens that this machine audits in 1,000 seconds, by model.
type Speeds = BTreeMap<ModelId, u64>;

/// Sees to it for as long as it is polled. Said in vain it is said again after pauses that grow.
pub(super) async fn keep(tools: Arc<Tools>) {
    let (mut backoff, mut speeds) = (Backoff::costly(), Speeds::new());
    loop {
        if let Err(e) = until_error(&tools, &mut speeds).await {
            tracing::warn!(error = %e, "cannot say which models we audit, trying again");
        }
        backoff.wait().await;
    }
}

async fn until_error(tools: &Tools, speeds: &mut Speeds) -> Result<(), ChainError> {
    let mut blocks = tools.chain.finalized_blocks().await?;
    let mut next = 0;
    loop {
        let block = blocks.next().await?.number;
        if block < next {
            continue;
        }
        for (model, offered) in changes(tools, speeds).await? {
            let call = Call::OfferAudits { model, offered };
            tools
                .chain
                .submit(&tools.signer, call, Until::Included.into())
                .await?;
            tracing::info!(?model, offered, "said whether we audit a model");
        }
        next = block.saturating_add(EVERY);
    }
}

/// Models of which the chain does not know that we audit them, or that we do not.
async fn changes(tools: &Tools, speeds: &mut Speeds) -> Result<Vec<(ModelId, bool)>, ChainError> {
    let mut changes = Vec::new();
    for (model, registered) in tools.chain.models(When::Finalized).await? {
        let auditors = tools.chain.auditors(When::Finalized, &model).await?;
        let offered = auditors.contains(&tools.stash);
        let speed = tools.chain.audit_speed(When::Finalized, &model).await?;
        let (reference, _) = audit_speeds(registered.manifest.work_per_token());
        let own = own_speed(tools, model, speeds).await;
        if audit_speed::is_in_time(own, speed.unwrap_or(reference), offered) != offered {
            changes.push((model, !offered));
        }
    }
    Ok(changes)
}

/// Measured once since the start, unless that fails. A model that is not here is audited at no speed at all.
async fn own_speed(tools: &Tools, model: ModelId, speeds: &mut Speeds) -> u64 {
    if tools.engines.get(&model).is_err() {
        return 0;
    }
    if let Some(known) = speeds.get(&model) {
        return *known;
    }
    match audit_speed::measure(&tools.engines, &model).await {
        Ok(speed) => {
            tracing::info!(?model, speed, "tokens that we audit in 1,000 seconds");
            speeds.insert(model, speed);
            speed
        }
        Err(e) => {
            tracing::warn!(?model, error = %e, "how fast we audit it cannot be measured: we do not offer to");
            0
        }
    }
}
