//! `surety doctor`: is everything there that a provider, verifier, client or validator needs?
//!
//! Each check ends as ok, warn or fail, and says what to do. Checks do not stop at the first fault, and
//! change nothing.

mod devices;
mod reached;
mod validator;

use std::{
    net::{IpAddr, TcpListener, UdpSocket},
    time::Duration,
};

use serde::Serialize;
use surety_chain_client::{AccountId, Chain, ChainError, ChannelChain, When, address};
use surety_host::machine;
use surety_models::known;
use surety_types::{model::ModelManifest, stake::Role};
use surety_worker_core::LARGEST_DEMAND;

use super::{Context, bond::Bond};
use crate::{
    SURE,
    amount::Amount,
    args::{DoctorArgs, DoctorRole},
    error::{CliError, Result},
    keys, models,
    output::table,
};
use reached::{check_reach, check_reached};

/// Finality that lags further is no longer normal. Usual are two or three blocks.
const LAG_BLOCKS: u32 = 20;

/// Below this, an input and its output may not fit.
const FREE_BYTES_MIN: u64 = 256 << 20;

/// Enough for some thousand calls.
const BALANCE_MIN: u128 = SURE / 10;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Grade {
    Ok,
    Warn,
    Fail,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    name: &'static str,
    grade: Grade,
    /// What was found, and what to do about it.
    finding: String,
}

/// All checks, in order.
#[derive(Default)]
struct Checks(Vec<Check>);

impl Checks {
    fn add(&mut self, name: &'static str, grade: Grade, finding: impl Into<String>) {
        let finding = finding.into();
        self.0.push(Check { name, grade, finding });
    }

    fn ok(&mut self, name: &'static str, finding: impl Into<String>) {
        self.add(name, Grade::Ok, finding);
    }

    fn warn(&mut self, name: &'static str, finding: impl Into<String>) {
        self.add(name, Grade::Warn, finding);
    }

    fn fail(&mut self, name: &'static str, finding: impl Into<String>) {
        self.add(name, Grade::Fail, finding);
    }

    fn failed(&self) -> usize {
        self.0.iter().filter(|check| check.grade == Grade::Fail).count()
    }
}

pub(super) async fn run(context: &Context, args: &DoctorArgs) -> Result<()> {
    let mut checks = Checks::default();
    match args.role {
        DoctorRole::Validator => validator::check(context, args, &mut checks).await,
        role => check_worker(context, role, &mut checks).await,
    }
    context.out.result(&checks.0, || text(&checks.0))?;
    match checks.failed() {
        0 => Ok(()),
        failed => Err(CliError::Unhealthy(failed)),
    }
}

/// What whoever works for the chain or has it work needs.
async fn check_worker(context: &Context, role: DoctorRole, checks: &mut Checks) {
    let key = check_key(context, checks);
    check_machine(context, role, checks);
    let device = devices::check_devices(context, role, checks).await;
    if role == DoctorRole::Provider {
        devices::check_benchmark(context.config.provider.benchmark, device.as_deref(), checks);
    }
    if role != DoctorRole::Client {
        check_models(context, checks).await;
    }
    let chain = match context.rpc().await {
        Ok(chain) => chain,
        Err(e) => return checks.fail("node", e.to_string()),
    };
    check_node(&*chain, checks).await;
    if role != DoctorRole::Client {
        check_registered(context, &*chain, checks).await;
    }
    check_reached(context, &*chain, role, checks).await;
    if let Some(account) = &key
        && let Err(e) = check_account(&*chain, account, role, checks).await
    {
        checks.fail("account", asked(&e));
    }
    if role == DoctorRole::Verifier
        && let Some(agent) = key
    {
        check_bond(&*chain, &agent, checks).await;
    }
}

/// Whether a verifier's agent can dispute a receipt.
async fn check_bond<C: Chain + ChannelChain>(chain: &C, agent: &AccountId, checks: &mut Checks) {
    match Bond::read(chain, agent).await {
        Ok(None) => {}
        Ok(Some(bond)) if bond.is_enough() => checks.ok("disputes", bond.advice(agent)),
        Ok(Some(bond)) => checks.warn("disputes", bond.advice(agent)),
        Err(e) => checks.fail("disputes", asked(&e)),
    }
}

fn text(checks: &[Check]) -> String {
    let mut table = table(["", "check", "finding"]);
    for check in checks {
        let mark = match check.grade {
            Grade::Ok => "ok",
            Grade::Warn => "warn",
            Grade::Fail => "FAIL",
        };
        table.add_row([mark, check.name, &check.finding]);
    }
    table.to_string()
}

/// Key files: there, private, and readable as keys.
fn check_key(context: &Context, checks: &mut Checks) -> Option<AccountId> {
    let network = context.network_key();
    if network.exists() {
        match surety_network::identity::peer_id(&network) {
            Ok(peer) => checks.ok("network key", format!("peer {peer}")),
            Err(e) => checks.fail("network key", e.to_string()),
        }
    } else {
        checks.ok("network key", "none yet; it is made when it is needed");
    }
    match keys::load(&context.config.key_file) {
        Ok(key) => {
            let account = key.signer.account().clone();
            checks.ok("key file", address(&account));
            Some(account)
        }
        Err(e) => {
            checks.fail("key file", e.to_string());
            None
        }
    }
}

fn check_machine(context: &Context, role: DoctorRole, checks: &mut Checks) {
    let config = &context.config;
    match machine::free_bytes(&config.home) {
        Some(free) if free < FREE_BYTES_MIN => checks.fail(
            "disk",
            format!("{} MiB free at {}; make room", free >> 20, config.home.display()),
        ),
        Some(free) if free < config.storage.total_bytes_max => checks.warn(
            "disk",
            format!(
                "{} MiB free, but blobs may take {} MiB: lower storage.total_mib_max, or make room",
                free >> 20,
                config.storage.total_bytes_max >> 20
            ),
        ),
        Some(free) => checks.ok("disk", format!("{} MiB free", free >> 20)),
        None => checks.warn("disk", "the system does not tell how much is free"),
    }
    // A verifier listens nowhere.
    let (listen, threads): (&[String], _) = match role {
        DoctorRole::Provider => (&config.provider.data.listen, config.provider.work.threads),
        DoctorRole::Verifier => (&[], config.verifier.threads),
        DoctorRole::Client => (&config.task.listen, 1),
        DoctorRole::Validator => (&[], 1),
    };
    for listen in listen {
        check_port(listen, checks);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let profile = machine::profile(threads);
    let found = format!(
        "{}, {cores} cores, {threads} of them to compute, {} MiB memory",
        profile.name, profile.memory_mib
    );
    if threads > cores {
        checks.warn(
            "processor",
            format!("{found}: more threads than cores; lower --threads"),
        );
    } else {
        checks.ok("processor", found);
    }
}

/// What the chain could not be asked, and what to do about it.
fn asked(error: &ChainError) -> String {
    format!("{error}; run this again, and if that does not help name another node with --rpc")
}

fn not_an_address(listen: &str) -> String {
    format!("{listen} is no address of this machine: write --listen IP:PORT, such as 0.0.0.0:4001")
}

/// Whether the port of a multiaddr can be listened on now.
fn check_port(listen: &str, checks: &mut Checks) {
    let parts: Vec<&str> = listen.split('/').collect();
    let [_, _, ip, transport, port, ..] = parts.as_slice() else {
        return checks.fail("port", not_an_address(listen));
    };
    let Ok(ip) = ip.parse::<IpAddr>() else {
        return checks.fail("port", not_an_address(listen));
    };
    let port = port.parse().unwrap_or_default();
    let bound = match *transport {
        "udp" => UdpSocket::bind((ip, port)).map(drop),
        _ => TcpListener::bind((ip, port)).map(drop),
    };
    match bound {
        Ok(()) => checks.ok("port", format!("{listen} is free")),
        Err(e) if e.kind() == std::io::ErrorKind::AddrInUse => checks.warn(
            "port",
            format!(
                "{listen} is in use: that is as it should be where this worker is up already; else choose another port \
                 with --listen"
            ),
        ),
        Err(e) => checks.fail(
            "port",
            format!("{listen}: {e}; choose an address of this machine with --listen, 0.0.0.0:PORT for all of them"),
        ),
    }
}

/// Hashes every file of every model.
async fn check_models(context: &Context, checks: &mut Checks) {
    let stored = match context.models().list() {
        Ok(stored) => stored,
        Err(e) => {
            let finding = format!("{e}; see to it that this user can read that folder");
            return checks.fail("models", finding);
        }
    };
    if stored.is_empty() {
        let finding = format!(
            "none; run: surety model fetch {}",
            known::all_minilm_l6_v2_exact().name()
        );
        checks.fail("models", finding);
    }
    for model in stored {
        let verified = match model {
            Ok(model) => {
                let name = models::name(&model.manifest);
                let job = tokio::task::spawn_blocking(move || model.verify());
                match job.await {
                    Ok(result) => result.map(|()| name),
                    Err(e) => return checks.fail("models", format!("{e}; run this again")),
                }
            }
            Err(e) => Err(e),
        };
        match verified {
            Ok(name) => checks.ok("models", format!("{name}: all hashes match")),
            Err(e) => checks.fail(
                "models",
                format!("{e}; get it again with: surety model fetch NAME, or surety model convert"),
            ),
        }
    }
}

/// Work comes for models that the chain knows.
async fn check_registered(context: &Context, chain: &dyn Chain, checks: &mut Checks) {
    let here = context.models().list().unwrap_or_default().into_iter().flatten();
    let here: Vec<_> = here.map(|stored| stored.manifest).collect();
    if here.is_empty() {
        return;
    }
    let registered = match chain.models(When::Finalized).await {
        Ok(models) => models,
        Err(e) => return checks.fail("registered models", asked(&e)),
    };
    let is_known = |id| registered.iter().any(|(known, _)| *known == id);
    let (known, mut unknown): (Vec<_>, Vec<_>) = here.iter().partition(|manifest| is_known(manifest.id()));
    let names = |list: Vec<&ModelManifest>| list.into_iter().map(models::name).collect::<Vec<_>>().join(", ");
    if known.is_empty() {
        let finding = format!(
            "the chain knows none of {}: no work comes for them; surety model list shows what it knows",
            names(unknown)
        );
        return checks.fail("registered models", finding);
    }
    checks.ok("registered models", names(known));
    // The others are what an exact one was converted from.
    unknown.retain(|manifest| manifest.exact.is_some());
    if !unknown.is_empty() {
        checks.warn(
            "registered models",
            format!(
                "no work comes for {}, which the chain does not know: surety model register publishes a model",
                names(unknown)
            ),
        );
    }
}

/// Reachable, of the right chain, and following it.
async fn check_node(chain: &dyn Chain, checks: &mut Checks) {
    let info = chain.info();
    checks.ok(
        "node",
        format!(
            "{} version {}, genesis {:?}",
            info.spec_name, info.spec_version, info.genesis
        ),
    );
    let look = || async {
        let best = chain.block(When::Best).await?;
        let finalized = chain.block(When::Finalized).await?;
        Ok::<_, ChainError>((best.number, finalized.number))
    };
    let (before, after) = match look().await {
        Ok(before) => {
            // Two slots and a bit: one may be empty.
            tokio::time::sleep(Duration::from_secs(5)).await;
            (before, look().await)
        }
        Err(e) => return checks.fail("blocks", asked(&e)),
    };
    match after {
        Err(e) => checks.fail("blocks", asked(&e)),
        Ok((best, _)) if best == before.0 => checks.fail(
            "blocks",
            format!(
                "block {best} for 5 s: the node has no peers, or the chain stands still. See the node's log, or name \
                 another node with --rpc"
            ),
        ),
        Ok((best, finalized)) if best.saturating_sub(finalized) > LAG_BLOCKS => checks.warn(
            "blocks",
            format!(
                "best {best}, but only {finalized} is final: the node is still syncing, or finality stands still. Wait, \
                 or name another node with --rpc"
            ),
        ),
        Ok((best, finalized)) => checks.ok("blocks", format!("best {best}, finalised {finalized}")),
    }
}

/// Money, and for providers stake, agent and registration.
async fn check_account(
    chain: &dyn Chain,
    account: &AccountId,
    role: DoctorRole,
    checks: &mut Checks,
) -> std::result::Result<(), ChainError> {
    if role == DoctorRole::Client {
        return check_balance(chain, &[account], 0, checks).await;
    }
    let Some(stash) = chain.agent_stash(When::Finalized, account).await? else {
        checks.fail(
            "agent",
            format!(
                "{0} is nobody's agent; with the stash's key, run: surety account agent set --agent {0}",
                address(account)
            ),
        );
        return Ok(());
    };
    checks.ok("agent", format!("acts for {}", address(&stash)));
    let (wanted, shows) = match role {
        DoctorRole::Verifier => (Role::Verifier, 0),
        _ => (Role::Provider, LARGEST_DEMAND),
    };
    check_balance(chain, &[&stash, account], shows, checks).await?;
    check_stake(chain, &stash, wanted, checks).await?;
    match wanted {
        Role::Provider => check_registration(chain, &stash, checks).await,
        Role::Verifier => Ok(()),
    }
}

/// Whether one of those who pay has enough for fees, and all of them together for those of showing on the
/// chain what may be demanded there.
async fn check_balance(
    chain: &dyn Chain,
    payers: &[&AccountId],
    shows: u128,
    checks: &mut Checks,
) -> std::result::Result<(), ChainError> {
    let (mut most, mut all) = (0, 0u128);
    for payer in payers {
        let free = chain.funds(When::Finalized, payer).await?.free;
        (most, all) = (most.max(free), all.saturating_add(free));
    }
    let first = payers.first().map(|payer| address(payer)).unwrap_or_default();
    if most < BALANCE_MIN {
        let finding = format!("{} are not enough for fees; send some to {first}", Amount(most));
        checks.fail("balance", finding);
    } else if all < shows {
        let finding = format!(
            "{} are not enough to show on the chain what one demand may ask for, up to {}: it bids for small tasks \
             alone, and for few at once, and answers few or none over payment channels; send more to {first}",
            Amount(all),
            Amount(shows)
        );
        checks.warn("balance", finding);
    } else {
        checks.ok("balance", Amount(most).to_string());
    }
    Ok(())
}

async fn check_stake(
    chain: &dyn Chain,
    stash: &AccountId,
    wanted: Role,
    checks: &mut Checks,
) -> std::result::Result<(), ChainError> {
    let name = match wanted {
        Role::Provider => "provider",
        Role::Verifier => "verifier",
    };
    match chain.stake(When::Finalized, stash).await? {
        Some(stake) if stake.role == wanted && stake.bonded > 0 => checks.ok(
            "stake",
            format!("{} bonded, {} locked", Amount(stake.bonded), Amount(stake.locked)),
        ),
        Some(stake) if stake.role != wanted => checks.fail(
            "stake",
            format!(
                "bonded in the other role, not as a {name}: use another stash, surety {name} init --stash-key FILE makes \
                 one"
            ),
        ),
        _ => checks.fail(
            "stake",
            format!("none; run surety {name} init, or surety account bond with the stash's key"),
        ),
    }
    Ok(())
}

async fn check_registration(
    chain: &dyn Chain,
    stash: &AccountId,
    checks: &mut Checks,
) -> std::result::Result<(), ChainError> {
    let now = chain.block(When::Finalized).await?.number;
    match chain.provider(When::Finalized, stash).await? {
        Some(provider) => {
            checks.ok(
                "registration",
                format!(
                    "{} endpoints, last sign of life {} blocks ago",
                    provider.endpoints.len(),
                    now.saturating_sub(provider.last_heartbeat)
                ),
            );
            check_reach(&provider.endpoints, checks);
        }
        None => checks.warn(
            "registration",
            "none yet: start surety provider up, which sees to it",
        ),
    }
    Ok(())
}

#[cfg(test)]
#[path = "doctor_tests.rs"]
mod tests;
