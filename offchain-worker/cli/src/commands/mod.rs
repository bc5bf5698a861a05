//! One module per command.

mod account;
mod around;
mod ask;
mod benchmark;
mod bond;
mod calls;
mod channel;
mod devices;
mod dispute;
mod doctor;
mod drain;
mod faucet;
mod gateway;
mod init;
mod manual;
mod model;
mod offers;
mod part;
mod payouts;
mod point_audits;
mod provider;
mod provider_status;
mod reach;
mod serve;
mod stake;
mod task;
mod train;
mod validator;
mod verifier;
mod worker;

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use surety_chain_client::{AccountId, Chain};
use surety_chain_rpc::{RpcChain, RpcConfig};
use surety_models::ModelStore;
use surety_network::{BlobStore, Limits, NetworkConfig, Node};
use tracing_subscriber::EnvFilter;

use crate::{
    args::{
        AccountCommand, Cli, Command, GatewayCommand, Global, ProviderCommand, TaskCommand, VerifierCommand,
        WorkArgs,
    },
    assembly::Assembly,
    chat,
    config::{self, Config, DataConfig, OneOrMore, RawConfig, RawWork},
    error::{CliError, Result},
    keys::{self, Key},
    output::Output,
};

/// What every command has at hand.
pub struct Context {
    /// The settings in force.
    pub config: Config,
    /// Where results go.
    pub out: Output,
    /// How workers are put together.
    pub assembly: Arc<dyn Assembly>,
}

impl Context {
    /// Connects to the node. Somebody waits: a node that is down is said to be so soon.
    async fn chain(&self) -> Result<Arc<dyn Chain>> {
        self.connect(Duration::from_secs(5)).await
    }

    /// Connects to the node, for a command that is to outlast its restarts.
    async fn patient_chain(&self) -> Result<Arc<dyn Chain>> {
        self.connect(Duration::from_secs(60)).await
    }

    async fn connect(&self, patience: Duration) -> Result<Arc<dyn Chain>> {
        Ok(self.connect_rpc(patience).await?)
    }

    /// The same, for a command that is about channels: one client answers about both.
    async fn rpc(&self) -> Result<Arc<RpcChain>> {
        self.connect_rpc(Duration::from_secs(5)).await
    }

    /// The same, for one that is to outlast the node's restarts.
    async fn patient_rpc(&self) -> Result<Arc<RpcChain>> {
        self.connect_rpc(Duration::from_secs(60)).await
    }

    async fn connect_rpc(&self, patience: Duration) -> Result<Arc<RpcChain>> {
        let mut config = RpcConfig::of_several(self.config.rpc.iter().cloned());
        config.patience = patience;
        Ok(Arc::new(RpcChain::connect(config).await?))
    }

    /// The key that signs.
    fn key(&self) -> Result<Key> {
        Ok(keys::load(&self.config.key_file)?)
    }

    /// Whom a command is about: who is named, or else the key's account.
    fn account(&self, named: Option<&str>) -> Result<AccountId> {
        match named {
            Some(text) => Ok(keys::parse_account(text)?),
            None => Ok(self.key()?.signer.account().clone()),
        }
    }

    /// The home folder, for a command that writes there.
    fn home(&self) -> Result<&Path> {
        let home = &self.config.home;
        keys::private_folder(home).map_err(CliError::file(home))?;
        Ok(home)
    }

    fn models(&self) -> ModelStore {
        ModelStore::new(&self.config.home)
    }

    fn network_key(&self) -> PathBuf {
        self.config.home.join("network.key")
    }

    /// Starts the data plane.
    async fn node(&self, chain: &dyn Chain, data: &DataConfig) -> Result<Node> {
        let store = BlobStore::open(self.home()?.join("blobs"), self.config.storage)?;
        let config = NetworkConfig {
            key_file: self.network_key(),
            listen: data.listen.clone(),
            external: data.external.clone(),
            genesis: chain.info().genesis,
            limits: Limits {
                blob_bytes_max: self.config.storage.blob_bytes_max,
                ..Limits::default()
            },
        };
        Ok(Node::start(config, Arc::new(store)).await?)
    }
}

/// Runs one command to its end; workers are put together as `assembly` says.
///
/// # Errors
/// Whatever ends it; see [`CliError::exit_code`].
pub fn run(cli: Cli, assembly: Arc<dyn Assembly>) -> Result<()> {
    // Before there are threads and settings: it is to have little memory, and nothing of the user's.
    if matches!(cli.command, Command::RenderChatTemplate) {
        return chat::answer();
    }
    let config = config::load(
        cli.global.config.as_deref(),
        raw_config(&cli.global, &cli.command),
    )?;
    start_logging(&config, &cli.command)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| CliError::Internal(format!("cannot start threads: {e}")))?;
    let context = Context {
        config,
        out: Output::new(cli.global.json),
        assembly,
    };
    let result = runtime.block_on(dispatch(&context, cli.command));
    // A blob that is still being written need not keep a finished command waiting for long.
    runtime.shutdown_timeout(Duration::from_secs(2));
    result
}

async fn dispatch(context: &Context, command: Command) -> Result<()> {
    match command {
        Command::Provider(command) => provider::run(context, command).await,
        Command::Verifier(command) => verifier::run(context, command).await,
        Command::Validator(command) => validator::run(context, command).await,
        Command::Stake(command) => stake::run(context, command).await,
        Command::Dispute(command) => dispute::run(context, command).await,
        Command::Task(command) => task::run(context, command).await,
        Command::Quote(args) => task::quote::run(context, &args).await,
        Command::Account(command) => account::run(context, command).await,
        Command::Completions(args) => manual::completions(args.shell),
        Command::Man(args) => manual::pages(&args.folder),
        Command::Model(command) => model::run(context, command).await,
        Command::Doctor(args) => doctor::run(context, &args).await,
        Command::Serve(args) => serve::run(context, &args).await,
        Command::Gateway(command) => gateway::run(context, command).await,
        Command::Channel(command) => channel::run(context, command).await,
        Command::Faucet(command) => faucet::run(context, command).await,
        Command::RenderChatTemplate => chat::answer(),
    }
}

fn given(texts: &[String]) -> Option<Vec<String>> {
    (!texts.is_empty()).then(|| texts.to_vec())
}

fn raw_work(args: &WorkArgs) -> RawWork {
    RawWork {
        stash: args.stash.clone(),
        models: given(&args.model),
        threads: args.threads,
        device: args.device.clone(),
        device_memory_mib_max: args.device_memory_mib,
        device_graphs: None,
        metrics_listen: args.metrics_listen.clone(),
        tip_max: args.tip_max,
    }
}

/// Flags as settings.
fn raw_config(global: &Global, command: &Command) -> RawConfig {
    let rpc = given(&global.rpc).map(OneOrMore::More);
    let mut raw = RawConfig {
        home: global.home.clone(),
        rpc,
        key_file: global.key_file.clone(),
        log: global.log.clone(),
        ..RawConfig::default()
    };
    match command {
        Command::Provider(ProviderCommand::Up(up) | ProviderCommand::Drain(up)) => {
            let work = raw_work(&up.work);
            raw.provider.stash = work.stash;
            raw.provider.models = work.models;
            raw.provider.threads = work.threads;
            raw.provider.device = work.device;
            raw.provider.device_memory_mib_max = work.device_memory_mib_max;
            raw.provider.metrics_listen = work.metrics_listen;
            raw.provider.tip_max = work.tip_max;
            raw.provider.listen = given(&up.listen);
            raw.provider.external = given(&up.external);
            raw.provider.benchmark = up.benchmark.clone();
            // Without the flag it is what file and environment say.
            raw.provider.device_serves = up.device_serves.then_some(true);
            for price in &up.price {
                match &price.name {
                    Some(name) => drop(raw.provider.prices.insert(name.clone(), price.price)),
                    None => raw.provider.price_per_unit = Some(price.price),
                }
            }
        }
        Command::Provider(ProviderCommand::Init(init)) => {
            raw.faucet = init.init.faucet.clone();
            raw.provider.listen = given(&init.listen);
            raw.provider.external = given(&init.external);
        }
        Command::Verifier(VerifierCommand::Init(init)) => raw.faucet = init.faucet.clone(),
        Command::Account(AccountCommand::New { faucet }) => raw.faucet = faucet.clone(),
        Command::Verifier(VerifierCommand::Up(work)) => raw.verifier = raw_work(work),
        Command::Serve(serve) => {
            raw.task.listen = given(&serve.listen);
            raw.task.external = given(&serve.external);
        }
        Command::Gateway(GatewayCommand::Up(gateway)) => {
            raw.task.listen = given(&gateway.listen);
            raw.task.external = given(&gateway.external);
        }
        Command::Task(TaskCommand::Submit(submit)) => {
            raw.task.listen = given(&submit.listen);
            raw.task.external = given(&submit.external);
        }
        _ => {}
    }
    raw
}

/// Logs go to standard error. Providers and verifiers tell what they do; other commands print that
/// themselves.
fn start_logging(config: &Config, command: &Command) -> Result<()> {
    let default = match command {
        Command::Provider(ProviderCommand::Up(_) | ProviderCommand::Drain(_))
        | Command::Verifier(VerifierCommand::Up(_))
        | Command::Gateway(GatewayCommand::Up(_))
        | Command::Faucet(_) => "info,libp2p_swarm=warn",
        _ => "error",
    };
    let filter = config.log.as_deref().unwrap_or(default);
    let filter = EnvFilter::try_new(filter).map_err(|e| CliError::Usage(format!("log: {e}")))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init()
        .map_err(|e| CliError::Internal(format!("cannot start logging: {e}")))
}
