//! `surety provider`.

use std::sync::Arc;

use serde::Serialize;
use surety_access::{Gate, OwnOutputs};
use surety_chain_client::{address, AccountId, Call, Chain, ChainError, Until, When};
use surety_host::{heartbeat_blocks, machine, Audits, Beside, Host, Speeds, Tools, Traces, Vitals};
use surety_network::{DataPlane, Node};
use surety_types::{
    model::ModelManifest,
    multiaddr::{Endpoint, Endpoints},
    stake::Role,
};
use surety_worker_core::{Config as CoreConfig, PriceList, Provider, Rate, SecretSalts};

use super::{worker, Context};
use crate::{
    args::ProviderCommand,
    assembly::WorkerParts,
    config::ProviderConfig,
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
        ProviderCommand::Up(_) => up(context).await,
        ProviderCommand::Leave => super::account::submit(context, Call::DeregisterProvider).await,
    }
}

/// Printed once the provider is at work.
#[derive(Serialize)]
struct Up {
    state: &'static str,
    stash: String,
    agent: String,
    peer: String,
    endpoints: Vec<String>,
    models: Vec<String>,
}

async fn up(context: &Context) -> Result<()> {
    let config = &context.config.provider;
    let key = context.key()?;
    // What is wrong here is found before anything is said to the chain.
    let (journal, records) = worker::open_journal(&context.config.home)?;
    let stored = worker::chosen_models(&context.models(), &config.models)?;
    let chain = context.patient_chain().await?;
    let stash = worker::find_stash(&*chain, &key, config.stash.as_ref()).await?;
    worker::check_stake(&*chain, &stash, Role::Provider).await?;
    let mut core = core_config(&stash, &key, config, &stored);
    core.tasks_max = config.tasks_max;
    core.commit_seconds = worker::commit_seconds(&*chain).await?;
    let core = Provider::new(core, records.clone())?;
    let metrics = worker::metrics_listener(config.run).await?;
    let node = Arc::new(context.node(&*chain, &config.data).await?);
    let vitals = Arc::new(Vitals::new()?);
    let engines = worker::load(context, config.threads, &stored, &vitals).await?;
    worker::warn_of_unregistered(&*chain, &stored).await?;
    register(&*chain, &key, &stash, config.threads, node.endpoints()).await?;
    let heartbeat_blocks = heartbeat_blocks(&*chain).await?;

    let up = Up {
        state: "up",
        stash: address(&stash),
        agent: address(key.signer.account()),
        peer: node.peer_id(),
        endpoints: texts(&node),
        models: stored.iter().map(models::name).collect(),
    };
    context.out.result(&up, || up.text())?;
    let outputs = Arc::<OwnOutputs>::default();
    let gate = Gate::of_provider(chain.clone(), stash.clone(), outputs.clone());
    node.set_gate(Arc::new(gate));
    let tools = Tools {
        chain,
        signer: key.signer,
        stash,
        plane: node.clone(),
        engines,
        traces: Traces::default(),
        audits: Audits::default(),
        outputs,
        tip_max: config.run.tip_max.0,
        vitals,
    };
    let beside = Beside::Heartbeat {
        blocks: heartbeat_blocks,
    };
    let worker = context.assembly.worker(WorkerParts {
        tools,
        core: Box::new(core),
        journal: Arc::new(journal),
    });
    let result = Host::new(worker.tools, beside, worker.core, worker.journal, &records)
        .with_metrics(metrics)
        .with_speeds(Speeds::open(&context.config.home))
        .run(worker::stop_signal()?)
        .await;
    if let Some(node) = Arc::into_inner(node) {
        node.stop().await;
    }
    tracing::info!("stopped");
    Ok(result?)
}

impl Up {
    fn text(&self) -> String {
        format!(
            "provider is up\n  stash      {}\n  agent      {}\n  models     {}\n  endpoints  {}",
            self.stash,
            self.agent,
            self.models.join(", "),
            self.endpoints.join("\n             ")
        )
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
    key: &Key,
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
    match chain.submit(&key.signer, call, until.into()).await {
        // Lost from sight is not lost: the heartbeat that follows shows.
        Err(e @ ChainError::Unknown { .. }) => tracing::warn!(error = %e, "registration"),
        other => drop(other?),
    }
    Ok(())
}

fn texts(node: &Node) -> Vec<String> {
    let endpoints = node.endpoints();
    let text = |endpoint: &Endpoint| String::from_utf8_lossy(endpoint).into_owned();
    endpoints.iter().map(text).collect()
}

#[cfg(test)]
#[path = "provider_tests.rs"]
mod tests;
