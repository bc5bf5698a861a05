//! `surety provider`.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use serde::Serialize;
use surety_chain_client::{AccountId, Call, Chain, ChainError, Until, When};
use surety_engine::{EnginePool, ModelStore, PoolConfig};
use surety_journal::Journal;
use surety_network::{DataPlane, Node};
use surety_types::{
    model::ModelManifest,
    multiaddr::{Endpoint, Endpoints},
    stake::Role,
    ModelId,
};
use surety_worker_core::{Config as CoreConfig, PriceList, Provider, Rate, Record, SecretSalts};
use tokio::{
    signal::unix::{signal, SignalKind},
    sync::watch,
};

use super::Context;
use crate::{
    args::{ProviderCommand, UpArgs},
    config::ProviderConfig,
    error::{CliError, Result},
    host::{heartbeat_blocks, Engines, Host, Settings, Tools},
    keys::{address, Key},
    machine, models,
};

/// Largest input that is fetched: what the chain takes at most by default.
const INPUT_BYTES_MAX: u32 = 64 << 20;

/// Most units of one task: the engine's own limit.
const UNITS_MAX: u32 = surety_engine::input::ITEMS_MAX;

pub(super) async fn run(context: &Context, command: ProviderCommand) -> Result<()> {
    match command {
        ProviderCommand::Up(args) => up(context, &args).await,
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

async fn up(context: &Context, args: &UpArgs) -> Result<()> {
    let config = &context.config.provider;
    let key = context.key()?;
    // What is wrong here is found before anything is said to the chain.
    let (journal, records) = open_journal(&context.config.home)?;
    let stored = chosen_models(&context.models(), &config.models)?;
    let chain = context.patient_chain().await?;
    let stash = find_stash(&*chain, &key, config.stash.as_ref()).await?;
    check_stake(&*chain, &stash).await?;
    let core = Provider::new(core_config(&stash, &key, config, &stored), records.clone())?;
    let node = context.node(&*chain, &config.data).await?;
    let engines = load(&context.models(), config.threads, &stored).await?;
    warn_of_unregistered(&*chain, &stored).await?;
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
    let node = Arc::new(node);
    let tools = Tools {
        chain,
        signer: key.signer,
        stash,
        plane: node.clone(),
        engines,
        crash_at: args.crash_at,
    };
    let settings = Settings { heartbeat_blocks };
    let result = Host::new(tools, settings, core, Arc::new(journal), &records)
        .run(stop_signal()?)
        .await;
    if let Some(node) = Arc::into_inner(node) {
        node.stop().await;
    }
    tracing::info!("stopped");
    result
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

fn open_journal(home: &Path) -> Result<(Journal, Vec<Record>)> {
    fs::create_dir_all(home).map_err(CliError::file(home))?;
    let journal = Journal::open(&home.join("journal.redb"))?;
    let records = journal.load()?;
    Ok((journal, records))
}

/// Becomes true with the first SIGINT or SIGTERM.
fn stop_signal() -> Result<watch::Receiver<bool>> {
    let listen = |kind| signal(kind).map_err(CliError::file("signals"));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("stopping; calls on their way to the chain are waited for");
        // Nobody listens only when the host has ended by itself.
        sender.send(true).ok();
    });
    Ok(receiver)
}

/// The manifests of the models to offer.
fn chosen_models(store: &ModelStore, names: &[String]) -> Result<Vec<ModelManifest>> {
    let manifests: Vec<ModelManifest> = if names.is_empty() {
        let all = store.list()?;
        all.into_iter()
            .filter_map(|stored| {
                let stored = stored.inspect_err(|e| tracing::error!(error = %e, "skipping a model"));
                Some(stored.ok()?.manifest)
            })
            .collect()
    } else {
        let chosen = names.iter().map(|name| {
            let manifest = models::local(store, name)?;
            // Known is not enough: its files must be here.
            Ok(store.find(manifest.id())?.manifest)
        });
        chosen.collect::<Result<_>>()?
    };
    if manifests.is_empty() {
        return Err(CliError::Usage(format!(
            "there is no model in {}; get one with: surety model fetch",
            store.path().display()
        )));
    }
    Ok(manifests)
}

/// The stash that the key acts for; agrees to act for it when that is all that is missing.
async fn find_stash(chain: &dyn Chain, key: &Key, named: Option<&AccountId>) -> Result<AccountId> {
    let agent = key.signer.account();
    let found = chain.agent_stash(When::Finalised, agent).await?;
    match (found, named) {
        (Some(found), Some(named)) if found != *named => Err(CliError::Usage(format!(
            "{} is the agent of {}, not of {}",
            address(agent),
            address(&found),
            address(named)
        ))),
        (Some(found), _) => Ok(found),
        (None, None) => Err(CliError::Usage(format!(
            "{0} is nobody's agent yet. With the stash's key, run: surety account agent set --agent {0}; \
             then start this with --stash ADDRESS, which confirms it",
            address(agent)
        ))),
        (None, Some(named)) => {
            confirm(chain, key, named).await?;
            Ok(named.clone())
        }
    }
}

async fn confirm(chain: &dyn Chain, key: &Key, stash: &AccountId) -> Result<()> {
    let agent = key.signer.account();
    // The nomination may be so new that it is not final yet.
    let pending = chain.pending_agent(When::Best, stash).await?;
    if pending.as_ref() != Some(agent) {
        return Err(CliError::Usage(format!(
            "{} has not named {} as its agent. With its key, run: surety account agent set --agent {}",
            address(stash),
            address(agent),
            address(agent)
        )));
    }
    tracing::info!(stash = %address(stash), "confirming to be its agent");
    let call = Call::ConfirmAgent { stash: stash.clone() };
    chain.submit(&key.signer, call, Until::Finalised).await?;
    Ok(())
}

async fn check_stake(chain: &dyn Chain, stash: &AccountId) -> Result<()> {
    let stake = chain.stake(When::Finalised, stash).await?;
    match stake {
        Some(stake) if stake.role == Role::Provider && stake.bonded > 0 => Ok(()),
        Some(stake) if stake.role != Role::Provider => Err(CliError::Usage(format!(
            "{} is bonded as a verifier; a provider needs a stash of its own",
            address(stash)
        ))),
        _ => Err(CliError::Usage(format!(
            "{} has nothing bonded. With its key, run: \
             surety account bond --role provider --amount \"100 SURE\"",
            address(stash)
        ))),
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
        seconds_ahead: 5, // fetching an input of the usual size
    };
    let mut prices = PriceList::new(INPUT_BYTES_MAX, UNITS_MAX);
    for manifest in stored {
        for operation in &manifest.operations {
            prices = prices.with(manifest.id(), *operation, rate(manifest, *operation));
        }
    }
    let mut core = CoreConfig::new(stash.clone(), prices, SecretSalts::new(key.salt_secret));
    core.tasks_max = config.tasks_max;
    core
}

/// Reads, checks and loads every model that is offered.
async fn load(store: &ModelStore, threads: usize, stored: &[ModelManifest]) -> Result<Engines> {
    let pool = EnginePool::new(PoolConfig {
        threads,
        ..PoolConfig::default()
    })?;
    let mut loaded = Vec::new();
    for manifest in stored {
        tracing::info!(model = models::name(manifest), "loading");
        loaded.push(pool.load(store, manifest.id())?.await?);
    }
    Ok(Engines::new(pool, loaded))
}

/// Files of a model that the chain does not know earn nothing. The model may be registered later, though.
async fn warn_of_unregistered(chain: &dyn Chain, stored: &[ModelManifest]) -> Result<()> {
    let known: BTreeSet<ModelId> = chain
        .models(When::Finalised)
        .await?
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    for manifest in stored {
        if !known.contains(&manifest.id()) {
            let name = models::name(manifest);
            tracing::warn!("{name} is not registered on the chain: no task can ask for it yet");
        }
    }
    Ok(())
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
    let registered = chain.provider(When::Finalised, stash).await?;
    let same = registered.is_some_and(|r| r.device == device && r.endpoints == endpoints);
    let call = match same {
        true => Call::Heartbeat,
        false => Call::RegisterProvider { device, endpoints },
    };
    match chain.submit(&key.signer, call, Until::Finalised).await {
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
