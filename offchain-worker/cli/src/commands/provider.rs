//! `surety provider`.

use std::{path::Path, sync::Arc};

use surety_access::Gate;
use surety_chain_client::{AccountId, Call, Chain, ChainError, Signer, Until, When};
use surety_host::{Beside, Speeds, Tools, heartbeat_blocks, machine};
use surety_network::{DataPlane, Node};
use surety_types::{
    model::ModelManifest,
    multiaddr::{Endpoint, Endpoints},
    stake::Role as StakeRole,
};
use surety_worker_core::{Config as CoreConfig, PriceList, ProviderRole, Rate, SecretSalts};

use super::{
    Context,
    worker::{self, Role},
};
use crate::{
    args::ProviderCommand,
    config::{DataConfig, ProviderConfig, WorkConfig},
    error::{CliError, Result},
    keys::Key,
    models,
};

/// Largest input that is fetched: what the chain takes at most by default.
const INPUT_BYTES_MAX: u32 = 64 << 20;

/// Most units of one task: the engine's own limit.
const UNITS_MAX: u32 = surety_engine::input::ITEMS_MAX;

pub(super) async fn run(context: &Context, command: ProviderCommand) -> Result<()> {
    match command {
        ProviderCommand::Up(_) => worker::up(context, &context.config.provider).await,
        ProviderCommand::Leave => super::account::submit(context, Call::DeregisterProvider).await,
    }
}

impl Role for ProviderConfig {
    const NAME: &'static str = "provider";
    const STAKE: StakeRole = StakeRole::Provider;
    type Core = ProviderRole;

    fn work(&self) -> &WorkConfig {
        &self.work
    }

    fn data(&self) -> DataConfig {
        self.data.clone()
    }

    async fn core(
        &self,
        chain: &dyn Chain,
        key: &Key,
        stash: &AccountId,
        stored: &[ModelManifest],
    ) -> Result<CoreConfig> {
        let mut core = core_config(stash, key, self, stored);
        core.tasks_max = self.tasks_max;
        core.commit_seconds = worker::commit_seconds(chain).await?;
        Ok(core)
    }

    async fn enter(&self, tools: &Tools, node: &Node, stored: &[ModelManifest]) -> Result<Beside> {
        let chain = &*tools.chain;
        worker::warn_of_unregistered(chain, stored).await?;
        let (stash, threads) = (&tools.stash, self.work.threads);
        register(chain, &tools.signer, stash, threads, node.endpoints()).await?;
        let gate = Gate::of_provider(tools.chain.clone(), stash.clone(), tools.outputs.clone());
        node.set_gate(Arc::new(gate));
        Ok(Beside::Heartbeat {
            blocks: heartbeat_blocks(chain).await?,
        })
    }

    fn speeds(&self, home: &Path) -> Option<Speeds> {
        Some(Speeds::open(home))
    }
}

fn core_config(
    stash: &AccountId,
    key: &Key,
    config: &ProviderConfig,
    stored: &[ModelManifest],
) -> CoreConfig {
    let rate = |manifest: &ModelManifest, operation| Rate {
        price_per_unit: config.prices.per_unit(&models::name(manifest), operation).0,
        units_per_second: config.units_per_second,
        seconds_ahead: 5, // connecting to the client
    };
    let mut prices = PriceList::new(INPUT_BYTES_MAX, UNITS_MAX);
    for manifest in stored {
        for operation in &manifest.operations {
            prices = prices.with(manifest.id(), *operation, rate(manifest, *operation));
        }
    }
    CoreConfig::new(stash.clone(), prices, SecretSalts::new(key.salt_secret))
}

/// Registers, or updates what is registered; counts as a sign of life either way.
async fn register(
    chain: &dyn Chain,
    signer: &Signer,
    stash: &AccountId,
    threads: usize,
    endpoints: Vec<Endpoint>,
) -> Result<()> {
    let endpoints = Endpoints::try_from(endpoints)
        .map_err(|_| CliError::Internal("more endpoints than the chain takes".into()))?;
    if endpoints.is_empty() {
        return Err(CliError::Usage(
            "clients cannot reach this provider: name an address with --listen or --external".into(),
        ));
    }
    let device = machine::profile(threads);
    let registered = chain.provider(When::Finalized, stash).await?;
    let same = registered.is_some_and(|r| r.device == device && r.endpoints == endpoints);
    // What is final already need not become so again: a provider that comes back is at work at once.
    let (call, until) = if same {
        (Call::Heartbeat, Until::Included)
    } else {
        (Call::RegisterProvider { device, endpoints }, Until::Finalized)
    };
    match chain.submit(signer, call, until.into()).await {
        // Lost from sight is not lost: the heartbeat that follows shows.
        Err(e @ ChainError::Unknown { .. }) => tracing::warn!(error = %e, "registration"),
        other => drop(other?),
    }
    Ok(())
}

#[cfg(test)]
#[path = "provider_tests.rs"]
mod tests;
