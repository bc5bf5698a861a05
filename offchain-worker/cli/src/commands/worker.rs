//! `surety provider up` and `drain`, and `surety verifier up`: one shell for both roles, and what each does
//! differently.

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use serde::Serialize;
use surety_chain_client::{AccountId, Call, Chain, ChainError, Until, When, address};
use surety_engine::{Engine, EnginePool, PoolConfig, Priority};
use surety_host::{
    Audits, Beside, Core, Draining, Engines, Host, Kept, Speeds, Still, Tools, Traces, Vitals, bind_metrics,
};
use surety_journal::Journal;
use surety_models::{ModelStore, StoreError, known};
use surety_network::{DataPlane, Node, StoreLimits};
use surety_provider_calls::{CallsConfig, Owed};
use surety_types::{ModelId, model::ModelManifest, stake::Role as StakeRole};
use surety_worker_core::{Config as CoreConfig, Record, Role as CoreRole, Worker};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::timeout,
};

use super::{Context, around::Around, devices, drain};
use crate::{
    assembly::WorkerParts,
    config::{Config, DataConfig, Participation, WorkConfig},
    error::{CliError, Result},
    keys::{Key, private_folder},
    models,
};

/// Until when a worker works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// It takes what comes, until it is told to stop.
    Up,
    /// It takes nothing new, until nothing is open.
    Drain,
}

impl Mode {
    /// What decides, and what is still open of that where it ends once nothing is.
    fn core(self, core: Box<dyn Core>, stash: &AccountId) -> (Box<dyn Core>, Option<watch::Receiver<Still>>) {
        match self {
            Self::Up => (core, None),
            Self::Drain => {
                let (core, still) = Draining::new(core, stash.clone());
                (Box::new(core), Some(still))
            }
        }
    }
}

/// What a provider and a verifier do differently when they start.
pub(super) trait Role {
    /// What it is called.
    const NAME: &'static str;
    /// The role that its stash is to be bonded in.
    const STAKE: StakeRole;
    /// Its part of the state machine.
    type Core: CoreRole + 'static;

    /// What it is told in its section of the configuration.
    fn work(&self) -> &WorkConfig;

    /// Where its data plane is.
    fn data(&self) -> DataConfig;

    /// How it decides.
    fn core(
        &self,
        storage: &StoreLimits,
        key: &Key,
        stash: &AccountId,
        stored: &[ModelManifest],
    ) -> CoreConfig;

    /// Lets others in, now that everything else works. Says what goes on beside its loop. What the chain
    /// may refuse has its place there: nothing keeps a worker from opening what it has promised.
    async fn enter(&self, tools: &Tools, node: &Node, stored: &[ModelManifest]) -> Result<Beside>;

    /// Where its speeds are kept, if it bids by them.
    fn speeds(&self, _home: &Path) -> Option<Speeds> {
        None
    }

    /// Whether it audits what is sold over payment channels.
    fn audits_points(&self) -> bool {
        false
    }

    /// When it takes part in rounds of the benchmark.
    fn benchmark(&self) -> Participation {
        Participation::Off
    }

    /// How it answers over payment channels, if it does.
    fn calls(&self, _config: &Config) -> Option<CallsConfig> {
        None
    }
}

/// Printed once the worker is at work. Who can be reached says where.
#[derive(Serialize)]
struct Up {
    state: &'static str,
    stash: String,
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    endpoints: Vec<String>,
    models: Vec<String>,
}

impl Up {
    fn new(tools: &Tools, node: &Node, stored: &[ModelManifest]) -> Self {
        let endpoints = node.endpoints();
        Self {
            state: "up",
            stash: address(&tools.stash),
            agent: address(tools.signer.account()),
            peer: (!endpoints.is_empty()).then(|| node.peer_id()),
            endpoints: endpoints.iter().map(ToString::to_string).collect(),
            models: stored.iter().map(models::name).collect(),
        }
    }

    fn say(&self, context: &Context, name: &str) -> Result<()> {
        context.out.result(self, || self.text(name))
    }

    fn text(&self, name: &str) -> String {
        let mut rows = vec![
            ("stash", self.stash.clone()),
            ("agent", self.agent.clone()),
            ("models", self.models.join(", ")),
        ];
        let labels = if self.endpoints.is_empty() {
            "models"
        } else {
            "endpoints"
        };
        let width = labels.len().saturating_add(2);
        if !self.endpoints.is_empty() {
            let indent = format!("\n  {:width$}", "");
            rows.push(("endpoints", self.endpoints.join(&indent)));
        }
        let rows = rows
            .iter()
            .map(|(label, value)| format!("\n  {label:width$}{value}"));
        format!("{name} is up{}", rows.collect::<String>())
    }
}

/// Works until it is told to stop, or has nothing open any more.
pub(super) async fn work<R: Role>(context: &Context, role: &R, mode: Mode) -> Result<()> {
    let (config, home) = (role.work(), &context.config.home);
    let key = context.key()?;
    // What is wrong here is found before anything is said to the chain.
    let (journal, records) = open_journal(home)?;
    let stored = chosen_models(&context.models(), &config.models)?;
    let channels = context.patient_rpc().await?;
    let chain: Arc<dyn Chain> = channels.clone();
    let stash = find_stash(&*chain, &key, config.stash.as_ref()).await?;
    check_stake(&*chain, &stash, R::STAKE).await?;
    let mut core = role.core(&context.config.storage, &key, &stash, &stored);
    core.is_draining = mode == Mode::Drain;
    let core = Worker::<R::Core>::new(core, records.clone())?;
    let metrics = metrics_listener(config).await?;
    let node = Arc::new(context.node(&*chain, &role.data()).await?);
    let vitals = Arc::new(Vitals::new()?);
    let (engines, loaded) = load(context, config, &stored, &vitals).await?;
    let tools = Tools {
        engines,
        chain,
        signer: key.signer,
        stash,
        plane: node.clone(),
        traces: Traces::default(),
        audits: Audits::default(),
        outputs: Arc::default(),
        tip_max: config.tip_max.0,
        kept: Kept::default(),
        vitals,
    };
    let beside = role.enter(&tools, &node, &stored).await?;
    match mode {
        Mode::Up => Up::new(&tools, &node, &stored).say(context, R::NAME)?,
        Mode::Drain => context
            .out
            .step("no new work is taken; this ends when nothing is open"),
    }
    let parts = context.assembly.worker(WorkerParts {
        tools,
        core: Box::new(core),
        journal: Arc::new(journal),
    });
    let gpus = devices::shown(&parts.tools)?;
    let (stop, stopped) = stop_signal()?;
    let around = (&parts.tools, channels, &node);
    let around = Around::start((context, role, mode), around, loaded, &stop)?;
    // Who bids for nothing need not know how fast it is.
    let speeds = role.speeds(home).filter(|_| mode == Mode::Up);
    let owed = around.owed();
    let (core, still) = mode.core(parts.core, &parts.tools.stash);
    if let Some(still) = &still {
        tokio::spawn(drain::watch(context.out, (still.clone(), owed.clone()), stop));
    }
    let result = Host::new(parts.tools, beside, core, parts.journal, &records)
        .with_gpus(gpus)
        .with_metrics(metrics)
        .with_speeds(speeds)
        .run(stopped)
        .await;
    let around = around.stop(node).await;
    tracing::info!("stopped");
    result?;
    around?;
    still.map_or(Ok(()), |still| {
        let owed = owed.map_or_else(|| Some(Owed::default()), |owed| owed.borrow().clone());
        drain::ended(context.out, &still.borrow(), owed.as_ref())
    })
}

pub(super) fn open_journal(home: &Path) -> Result<(Journal, Vec<Record>)> {
    private_folder(home).map_err(CliError::file(home))?;
    let journal = Journal::open(&home.join("journal.redb"))?;
    let records = journal.load()?;
    Ok((journal, records))
}

/// Where health and metrics are asked for, if anywhere.
async fn metrics_listener(config: &WorkConfig) -> Result<Option<TcpListener>> {
    match config.metrics_listen {
        Some(address) => Ok(Some(bind_metrics(address).await?)),
        None => Ok(None),
    }
}

/// Becomes true with the first SIGINT or SIGTERM, or when somebody else says so.
pub(super) fn stop_signal() -> Result<(watch::Sender<bool>, watch::Receiver<bool>)> {
    let listen = |kind| signal(kind).map_err(CliError::file("signals"));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let (sender, receiver) = watch::channel(false);
    let stop = sender.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("stopping; calls on their way to the chain are waited for");
        // Nobody listens only when the host has ended by itself.
        sender.send(true).ok();
    });
    Ok((stop, receiver))
}

/// The manifests of the models to offer.
pub(super) fn chosen_models(store: &ModelStore, names: &[String]) -> Result<Vec<ModelManifest>> {
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
            let found = store.find(manifest.id()).map_err(|error| match error {
                StoreError::NotInstalled { .. } => CliError::ModelNotHere {
                    name: models::name(&manifest),
                    folder: store.path().to_owned(),
                },
                error => error.into(),
            });
            Ok(found?.manifest)
        });
        chosen.collect::<Result<_>>()?
    };
    if manifests.is_empty() {
        return Err(CliError::Usage(format!(
            "there is no model in {}; get one with: surety model fetch {}",
            store.path().display(),
            known::all_minilm_l6_v2_exact().name()
        )));
    }
    Ok(manifests)
}

/// The stash that the key acts for; agrees to act for it when that is all that is missing.
pub(super) async fn find_stash(chain: &dyn Chain, key: &Key, named: Option<&AccountId>) -> Result<AccountId> {
    let agent = key.signer.account();
    let found = chain.agent_stash(When::Finalized, agent).await?;
    match (found, named) {
        (Some(found), Some(named)) if found != *named => Err(CliError::Usage(format!(
            "{} is the agent of {}, not of {}",
            address(agent),
            address(&found),
            address(named)
        ))),
        (Some(found), _) => Ok(found),
        (None, None) => Err(CliError::Usage(format!(
            "{0} is nobody's agent yet on the chain of genesis {1:?} (a node of another is named with --rpc). With the \
             stash's key, run: surety account agent set --agent {0}; then start this with --stash ADDRESS, which confirms \
             it",
            address(agent),
            chain.info().genesis
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
    let mut blocks = chain.finalized_blocks().await?;
    let mut refusals_left = REFUSALS_MAX;
    loop {
        if chain.agent_stash(When::Finalized, agent).await?.as_ref() == Some(stash) {
            return Ok(());
        }
        // A block may have been replaced by one without it.
        if chain.agent_stash(When::Best, agent).await?.as_ref() != Some(stash) {
            let sent = chain.submit(&key.signer, call.clone(), Until::Included.into());
            match sent.await {
                Err(e @ ChainError::Unknown { .. }) => tracing::warn!(error = %e, "confirmation"),
                // Perhaps because the one of the replaced block came first: it is in the pool again.
                Err(e @ (ChainError::Dispatch(_) | ChainError::Rejected(_))) if refusals_left > 0 => {
                    refusals_left = refusals_left.saturating_sub(1);
                    tracing::warn!(error = %e, "confirmation, looking again at the next final block");
                }
                other => drop(other?),
            }
        }
        // However long finality stands still: ending would only lose the place in line.
        match timeout(FINALITY_WORD, blocks.next()).await {
            Ok(block) => drop(block?),
            Err(_) => tracing::warn!("the chain finalises nothing; waiting until our confirmation is final"),
        }
    }
}

/// How often a confirmation that is refused is made again.
const REFUSALS_MAX: u32 = 3;

/// How often it is said that finality is waited for.
const FINALITY_WORD: Duration = Duration::from_secs(30);

/// Whether a stash can work in a role.
pub(super) async fn check_stake(chain: &dyn Chain, stash: &AccountId, role: StakeRole) -> Result<()> {
    let (name, other) = match role {
        StakeRole::Provider => ("provider", "verifier"),
        StakeRole::Verifier => ("verifier", "provider"),
    };
    let stake = chain.stake(When::Finalized, stash).await?;
    match stake {
        Some(stake) if stake.role == role && stake.bonded > 0 => Ok(()),
        Some(stake) if stake.role != role => Err(CliError::Usage(format!(
            "{} is bonded as a {other}; a {name} needs a stash of its own",
            address(stash)
        ))),
        _ => Err(CliError::Usage(format!(
            "{} has nothing bonded. With its key, run: \
             surety account bond --role {name} --amount \"100 SURE\"",
            address(stash)
        ))),
    }
}

/// Reads, checks and loads every model that is offered.
async fn load(
    context: &Context,
    config: &WorkConfig,
    stored: &[ModelManifest],
    vitals: &Arc<Vitals>,
) -> Result<(Engines, Vec<Arc<dyn Engine>>)> {
    let sizes = PoolConfig {
        threads: config.threads,
        ..PoolConfig::default()
    };
    let pool = EnginePool::on(sizes, devices::open(config)?)?;
    let mut loaded = Vec::new();
    for manifest in stored {
        tracing::info!(model = models::name(manifest), "loading");
        let (store, model, assembly) = (context.models(), manifest.id(), context.assembly.clone());
        let devices = pool.devices().clone();
        let engine = pool.work(Priority::Inference, move |_| {
            assembly.engine(store.load(model)?, &devices)
        });
        loaded.push(engine?.await?);
    }
    Ok((Engines::new(pool, loaded.clone(), vitals.clone()), loaded))
}

/// Files of a model that the chain does not know earn nothing. The model may be registered later, though.
pub(super) async fn warn_of_unregistered(chain: &dyn Chain, stored: &[ModelManifest]) {
    let known: BTreeSet<ModelId> = match chain.models(When::Finalized).await {
        Ok(models) => models.into_iter().map(|(id, _)| id).collect(),
        Err(e) => return tracing::warn!(error = %e, "cannot see whether models are registered"),
    };
    for manifest in stored {
        if !known.contains(&manifest.id()) {
            let name = models::name(manifest);
            tracing::warn!("{name} is not registered on the chain: no task can ask for it yet");
        }
    }
}
