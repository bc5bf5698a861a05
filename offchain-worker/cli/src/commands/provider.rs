//! `surety provider`.

use std::{path::Path, sync::Arc};

use surety_access::Gate;
use surety_chain_client::{AccountId, Call, Region};
use surety_engine::Devices;
use surety_host::{Beside, Registration, Speeds, Tools, machine};
use surety_network::{DataPlane, Node, StoreLimits};
use surety_provider_calls::CallsConfig;
use surety_types::{
    limits,
    model::ModelManifest,
    multiaddr::{Endpoint, Endpoints},
    provider::DeviceProfile,
    stake::Role as StakeRole,
};
use surety_worker_core::{Config as CoreConfig, PriceList, ProviderRole, Rate, SecretSalts};

use super::{
    Context,
    worker::{self, Mode, Role},
};
use crate::{
    args::ProviderCommand,
    config::{Config, DataConfig, Participation, ProviderConfig, WorkConfig},
    error::{CliError, Result},
    keys::Key,
    models,
};

/// Most units of one task: the engine's own limit.
const UNITS_MAX: u32 = surety_models::tokens::ITEMS_MAX;

pub(super) async fn run(context: &Context, command: ProviderCommand) -> Result<()> {
    match command {
        ProviderCommand::Up(_) => worker::work(context, &context.config.provider, Mode::Up).await,
        ProviderCommand::Drain(_) => worker::work(context, &context.config.provider, Mode::Drain).await,
        ProviderCommand::Leave => super::account::submit(context, Call::DeregisterProvider).await,
        ProviderCommand::Init(args) => super::init::run(context, StakeRole::Provider, &args.init).await,
        ProviderCommand::Status(args) => super::provider_status::status(context, &args).await,
        ProviderCommand::WhyIdle => super::provider_status::why_idle(context).await,
        ProviderCommand::Stand(args) => super::calls::stand(context, &args).await,
        ProviderCommand::Offer(args) => super::calls::offer(context, &args).await,
        ProviderCommand::Withdraw(args) => super::calls::withdraw(context, &args).await,
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

    fn core(
        &self,
        storage: &StoreLimits,
        key: &Key,
        stash: &AccountId,
        stored: &[ModelManifest],
    ) -> CoreConfig {
        let mut core = core_config(stash, key, self, storage, stored);
        core.tasks_max = self.tasks_max;
        // Nothing is bid before the chain has said how much time it gives.
        core.commit_seconds = 0;
        core
    }

    async fn enter(&self, tools: &Tools, node: &Node, stored: &[ModelManifest]) -> Result<Beside> {
        let of_machine = (self.work.threads, self.region);
        let registration = registration(of_machine, tools.engines.devices(), node.endpoints())?;
        worker::warn_of_unregistered(&*tools.chain, stored).await;
        let gate = Gate::of_provider(tools.chain.clone(), tools.stash.clone(), tools.outputs.clone());
        node.set_gate(Arc::new(gate));
        Ok(Beside::Heartbeat(registration))
    }

    fn speeds(&self, home: &Path) -> Option<Speeds> {
        Some(Speeds::open(home))
    }

    fn calls(&self, config: &Config) -> Option<CallsConfig> {
        config.calls.clone()
    }

    fn benchmark(&self) -> Participation {
        self.benchmark
    }
}

fn core_config(
    stash: &AccountId,
    key: &Key,
    config: &ProviderConfig,
    storage: &StoreLimits,
    stored: &[ModelManifest],
) -> CoreConfig {
    let prices = price_list(config, input_bytes_max(storage), stored);
    CoreConfig::new(stash.clone(), prices, SecretSalts::new(key.salt_secret))
}

/// What is on offer, for how much.
pub(super) fn price_list(
    config: &ProviderConfig,
    input_bytes_max: u32,
    stored: &[ModelManifest],
) -> PriceList {
    let rate = |manifest: &ModelManifest, operation| Rate {
        price_per_unit: config.prices.per_unit(&models::name(manifest), operation).0,
        units_per_second: config.units_per_second,
        seconds_ahead: 5, // connecting to the client
    };
    let mut prices = PriceList::new(input_bytes_max, UNITS_MAX);
    for manifest in stored {
        for operation in &manifest.operations {
            prices = prices.with(manifest.id(), *operation, rate(manifest, *operation));
        }
    }
    prices
}

/// Largest input that there is a use in bidding for: a larger blob is not kept, nor fetched.
pub(super) fn input_bytes_max(storage: &StoreLimits) -> u32 {
    let room = u32::try_from(storage.blob_bytes_max).unwrap_or(u32::MAX);
    room.min(limits::INPUT_BYTES_MAX)
}

/// What the chain is told of this provider.
fn registration(
    (threads, region): (usize, Option<Region>),
    devices: &Devices,
    endpoints: Vec<Endpoint>,
) -> Result<Registration> {
    let endpoints = Endpoints::try_from(endpoints)
        .map_err(|_| CliError::Internal("more endpoints than the chain takes".into()))?;
    if endpoints.is_empty() {
        return Err(CliError::Usage(
            "clients cannot reach this provider: name an address with --listen or --external".into(),
        ));
    }
    let device = DeviceProfile {
        region,
        ..machine::profile_on(threads, devices)
    };
    Ok(Registration { device, endpoints })
}

#[cfg(test)]
#[path = "provider_tests.rs"]
mod tests;
