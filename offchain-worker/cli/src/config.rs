//! From flags, environment and configuration file to one [`Config`] that has been checked.
//!
//! [`RawConfig`] is what was written, in any of the three places; flags win over the environment, which wins
//! over the file. [`Config`] is what is meant. Nothing else in the program looks at raw settings.

mod environment;
mod raw;

use std::{
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    str::FromStr,
};

use figment::{
    Figment,
    providers::{Format, Serialized, Toml},
};
use surety_chain_client::{AccountId, Region};
use surety_engine::Choice;
use surety_network::{StoreLimits, check_listen};
use surety_provider_calls::CallsConfig;

use crate::{amount::Amount, keys, prices::Prices};
pub use raw::{OneOrMore, RawCalls, RawConfig, RawProvider, RawStorage, RawTask, RawWork};

/// Where a node of this machine answers.
const RPC: &str = "ws://127.0.0.1:9944";

/// More nodes than this would only make finding out that none answers take longer.
const RPC_NODES_MAX: usize = 8;

/// A hundred times a small call's fee: enough to pass whatever does not tip, and a loss that nobody notices.
const TIP_MAX: Amount = Amount(crate::SURE / 100);

/// Settings as meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where everything is kept.
    pub home: PathBuf,
    /// RPC addresses of nodes of one chain, the one to ask first in front.
    pub rpc: Vec<String>,
    /// The key that signs.
    pub key_file: PathBuf,
    /// What to log; the command's own default when nothing was said.
    pub log: Option<String>,
    /// Where `init` asks for money, on a test network.
    pub faucet: Option<String>,
    /// How this machine is offered.
    pub provider: ProviderConfig,
    /// How a provider answers over payment channels; nothing where it does not.
    pub calls: Option<CallsConfig>,
    /// How results of others are audited.
    pub verifier: WorkConfig,
    /// Where inputs of own tasks are served.
    pub task: DataConfig,
    /// What the blob store may take up.
    pub storage: StoreLimits,
}

/// How a machine is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderConfig {
    /// What it has in common with a verifier.
    pub work: WorkConfig,
    /// Where the data plane is.
    pub data: DataConfig,
    /// What to ask for a unit.
    pub prices: Prices,
    /// Units that the machine is expected to do in a second, until it has measured that itself.
    pub units_per_second: u32,
    /// Most tasks at once, open bids and those that only wait for a window to end included: a bound on
    /// memory, since what does not fit into the time is not bid for.
    pub tasks_max: usize,
    /// Whether it takes part in rounds of the benchmark.
    pub benchmark: Participation,
    /// Where it is, as its registration and its offers over payment channels say, where it says so.
    pub region: Option<Region>,
}

/// When a provider takes part in rounds of the benchmark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Participation {
    /// Where it has a device.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

impl FromStr for Participation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            _ => Err(format!("{text:?}: say auto, on or off")),
        }
    }
}

/// How a worker works, whatever its role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkConfig {
    /// The stash to work for, where it was named.
    pub stash: Option<AccountId>,
    /// Models to offer or to audit; all that are here when empty.
    pub models: Vec<String>,
    /// Threads that compute.
    pub threads: usize,
    /// What exact models run on.
    pub device: Choice,
    /// Most bytes of each device's own memory to take; nothing: all that is free.
    pub device_memory_bytes_max: Option<u64>,
    /// Whether launches that come again are given to a device at once; to be switched off where a driver
    /// fails.
    pub device_graphs: bool,
    /// Where it answers for health and metrics; nothing: nowhere.
    pub metrics_listen: Option<SocketAddr>,
    /// Most that is added to a call's fee where its deadline is near, in plancks. Openings cost nothing.
    pub tip_max: Amount,
}

/// Where a data plane is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataConfig {
    /// Multiaddrs to listen on.
    pub listen: Vec<String>,
    /// Multiaddrs, without peer id, at which others reach it; none: where it listens.
    pub external: Vec<String>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The named file is not there.
    #[error("no configuration file at {}", .0.display())]
    MissingFile(PathBuf),
    /// A file or variable cannot be read as settings.
    #[error("{}", unreadable(.0))]
    Unreadable(Box<figment::Error>),
    /// Settings that make no sense, all of them.
    #[error("invalid configuration:{}", listed(.0))]
    Invalid(Vec<String>),
}

fn unreadable(error: &figment::Error) -> String {
    let lines = error.clone().into_iter().map(|e| format!("\n  {e}"));
    format!("cannot read the configuration:{}", lines.collect::<String>())
}

/// One problem on the same line, several below each other.
fn listed(problems: &[String]) -> String {
    if let [problem] = problems {
        return format!(" {problem}");
    }
    problems.iter().map(|problem| format!("\n  {problem}")).collect()
}

/// Reads file and environment, and puts `flags` on top.
///
/// # Errors
/// When a source cannot be read, or a setting makes no sense.
pub fn load(file: Option<&Path>, flags: RawConfig) -> Result<Config, ConfigError> {
    if let Some(file) = file.filter(|file| !file.is_file()) {
        return Err(ConfigError::MissingFile(file.to_owned()));
    }
    let environment = Figment::from(environment::settings());
    // The default file is in the home folder, which only flags and environment can name.
    let home = flags
        .home
        .clone()
        .or_else(|| environment.extract_inner("home").ok())
        .or_else(environment::default_home);
    let default_file = home.as_ref().map(|home| home.join("config.toml"));
    let file = file
        .map(Path::to_owned)
        .or_else(|| default_file.filter(|file| file.is_file()));
    let mut figment = Figment::new();
    if let Some(file) = file {
        figment = figment.merge(Toml::file_exact(file));
    }
    let raw: RawConfig = figment
        .merge(environment)
        .merge(Serialized::defaults(&flags))
        .extract()
        .map_err(|e| ConfigError::Unreadable(Box::new(e)))?;
    validate(raw, home)
}

/// Collects everything that is wrong, so that it can be mended in one go.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn check<T, E: std::fmt::Display>(&mut self, name: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|e| self.0.push(format!("{name}: {e}"))).ok()
    }

    fn require(&mut self, holds: bool, text: &str) {
        if !holds {
            self.0.push(text.into());
        }
    }

    fn addresses(&mut self, name: &str, texts: Option<Vec<String>>, default: &[&str]) -> Vec<String> {
        let texts = texts
            .filter(|texts| !texts.is_empty())
            .unwrap_or_else(|| default.iter().map(|text| text.to_string()).collect());
        texts
            .iter()
            .filter_map(|text| self.check(name, expand_address(text).map_err(with_short_form)))
            .flatten()
            .collect()
    }
}

/// Turns what was written into what is meant.
fn validate(raw: RawConfig, home: Option<PathBuf>) -> Result<Config, ConfigError> {
    let mut problems = Problems::default();
    problems.require(
        home.is_some(),
        "home: neither --home nor $HOME says where to keep things",
    );
    let home = home.unwrap_or_default();
    let rpc = validate_rpc(raw.rpc, &mut problems);
    if let Some(log) = &raw.log {
        problems.check("log", tracing_subscriber::EnvFilter::try_new(log));
    }
    if let Some(url) = &raw.faucet {
        problems.require(
            url.starts_with("http://") || url.starts_with("https://"),
            &format!("faucet: {url:?} must start with http:// or https://"),
        );
    }
    // Off unless somebody says so: docs/cuda.md has what is proven of devices.
    let device_serves = raw.provider.device_serves.unwrap_or(false);
    let provider = validate_provider(raw.provider, &mut problems);
    let calls = validate_calls(&raw.calls, &provider.work, device_serves, &mut problems);
    let verifier = validate_work(raw.verifier, "verifier", &mut problems);
    let task = DataConfig {
        listen: problems.addresses("task.listen", raw.task.listen, &["0.0.0.0:4101"]),
        external: problems.addresses("task.external", raw.task.external, &[]),
    };
    let storage = validate_storage(&raw.storage, &mut problems);
    if !problems.0.is_empty() {
        return Err(ConfigError::Invalid(problems.0));
    }
    Ok(Config {
        key_file: raw.key_file.unwrap_or_else(|| home.join("account.key")),
        home,
        rpc,
        log: raw.log,
        faucet: raw.faucet,
        provider,
        calls,
        verifier,
        task,
        storage,
    })
}

fn validate_rpc(raw: Option<OneOrMore>, problems: &mut Problems) -> Vec<String> {
    let urls = raw.map_or_else(|| vec![RPC.to_owned()], OneOrMore::texts);
    for url in &urls {
        problems.require(
            url.starts_with("ws://") || url.starts_with("wss://"),
            &format!("rpc: {url:?} must start with ws:// or wss://, such as {RPC}"),
        );
    }
    problems.require(
        (1..=RPC_NODES_MAX).contains(&urls.len()),
        &format!("rpc: must name between 1 and {RPC_NODES_MAX} nodes"),
    );
    urls
}

fn validate_work(raw: RawWork, section: &str, problems: &mut Problems) -> WorkConfig {
    let metrics_listen = raw.metrics_listen.and_then(|text| {
        let fault = |_| format!("{text:?} is no IP:PORT, such as 127.0.0.1:9616");
        problems.check(&format!("{section}.metrics_listen"), text.parse().map_err(fault))
    });
    WorkConfig {
        threads: validate_threads(raw.threads, section, problems),
        device: validate_device(raw.device.as_deref(), section, problems),
        device_memory_bytes_max: raw.device_memory_mib_max.map(|mib| mib.saturating_mul(1 << 20)),
        device_graphs: raw.device_graphs.unwrap_or(true),
        stash: raw
            .stash
            .and_then(|text| problems.check(&format!("{section}.stash"), keys::parse_account(&text))),
        models: raw.models.unwrap_or_default(),
        metrics_listen,
        tip_max: raw.tip_max.unwrap_or(TIP_MAX),
    }
}

/// The processor, unless something else was said: `docs/cuda.md` has what is proven of devices.
fn validate_device(text: Option<&str>, section: &str, problems: &mut Problems) -> Choice {
    let chosen = text.and_then(|text| problems.check(&format!("{section}.device"), text.parse()));
    chosen.unwrap_or_default()
}

/// One less than there are cores, unless something else was said.
fn validate_threads(threads: Option<usize>, section: &str, problems: &mut Problems) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or_else(|| cores.saturating_sub(1).max(1));
    problems.require(
        (1..=1024).contains(&threads),
        &format!("{section}.threads: must be between 1 and 1024"),
    );
    threads
}

fn validate_provider(raw: RawProvider, problems: &mut Problems) -> ProviderConfig {
    let work = validate_work(raw.work(), "provider", problems);
    let prices = Prices::new(raw.price_per_unit, raw.prices).unwrap_or_else(|faults| {
        let texts = faults
            .into_iter()
            .map(|(name, reason)| format!("provider.{name}: {reason}"));
        problems.0.extend(texts);
        Prices::default()
    });
    let units_per_second = raw.units_per_second.unwrap_or(20);
    problems.require(
        units_per_second > 0,
        "provider.units_per_second: must be at least 1",
    );
    let tasks_max = raw.tasks_max.unwrap_or(4096);
    problems.require(
        (1..=65_536).contains(&tasks_max),
        "provider.tasks_max: must be between 1 and 65536",
    );
    let benchmark = raw
        .benchmark
        .and_then(|text| problems.check("provider.benchmark", text.parse()));
    let region = raw.region.and_then(|text| {
        let region = text.parse().map_err(|error| format!("{text:?}: {error}"));
        problems.check("provider.region", region)
    });
    ProviderConfig {
        work,
        data: DataConfig {
            listen: problems.addresses("provider.listen", raw.listen, &["0.0.0.0:4001"]),
            external: problems.addresses("provider.external", raw.external, &[]),
        },
        prices,
        units_per_second,
        tasks_max,
        benchmark: benchmark.unwrap_or_default(),
        region,
    }
}

fn validate_calls(
    raw: &RawCalls,
    work: &WorkConfig,
    device_serves: bool,
    problems: &mut Problems,
) -> Option<CallsConfig> {
    let defaults = CallsConfig::default();
    let mib = |mib: u64| mib.saturating_mul(1 << 20);
    let config = CallsConfig {
        open_max: raw.open_max.unwrap_or(defaults.open_max),
        chunk_tokens_max: raw.chunk_tokens_max.unwrap_or(defaults.chunk_tokens_max),
        memory_bytes_max: raw.memory_mib_max.map_or(defaults.memory_bytes_max, mib),
        device_serves,
        batch_blocks: raw.batch_blocks.unwrap_or(defaults.batch_blocks),
        redeem_min: raw.redeem_min.map_or(defaults.redeem_min, |amount| amount.0),
        threads: work.threads,
        tip_max: work.tip_max.0,
        ..defaults
    };
    problems.require(
        (1..=4096).contains(&config.open_max),
        "calls.open_max: must be between 1 and 4096",
    );
    problems.require(
        (1..=4096).contains(&config.chunk_tokens_max),
        "calls.chunk_tokens_max: must be between 1 and 4096",
    );
    problems.require(
        (64 << 20..=1 << 44).contains(&config.memory_bytes_max),
        "calls.memory_mib_max: must be between 64 and 16777216",
    );
    raw.enabled.unwrap_or(true).then_some(config)
}

fn validate_storage(raw: &RawStorage, problems: &mut Problems) -> StoreLimits {
    let defaults = StoreLimits::default();
    let mib = |value: Option<u64>, default: u64| value.map_or(default, |mib| mib.saturating_mul(1 << 20));
    let limits = StoreLimits {
        blob_bytes_max: mib(raw.blob_mib_max, defaults.blob_bytes_max),
        total_bytes_max: mib(raw.total_mib_max, defaults.total_bytes_max),
    };
    problems.require(
        (1 << 20..=1 << 30).contains(&limits.blob_bytes_max),
        "storage.blob_mib_max: must be between 1 and 1024",
    );
    problems.require(
        limits.total_bytes_max >= limits.blob_bytes_max.saturating_mul(2),
        "storage.total_mib_max: must be at least twice storage.blob_mib_max, for one input and one output",
    );
    limits
}

/// What is wrong with an address, and the form that is easiest to write.
fn with_short_form(error: surety_network::AddressError) -> String {
    format!("{error}; or IP:PORT for both, such as 127.0.0.1:4001")
}

/// `IP:PORT` stands for QUIC and TCP there; anything else must be a multiaddr.
fn expand_address(text: &str) -> Result<Vec<String>, surety_network::AddressError> {
    let texts = match text.parse::<SocketAddr>() {
        Ok(socket) => {
            let ip = match socket.ip() {
                IpAddr::V4(ip) => format!("/ip4/{ip}"),
                IpAddr::V6(ip) => format!("/ip6/{ip}"),
            };
            let port = socket.port();
            vec![format!("{ip}/udp/{port}/quic-v1"), format!("{ip}/tcp/{port}")]
        }
        Err(_) => vec![text.to_owned()],
    };
    texts.iter().try_for_each(|text| check_listen(text))?;
    Ok(texts)
}

#[cfg(test)]
mod tests;
