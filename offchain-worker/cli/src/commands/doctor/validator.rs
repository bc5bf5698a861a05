//! `surety doctor --for validator`: whether the node at hand validates, and is looked after.
//!
//! Most of it the node is asked itself, at its own machine: what only its operator may know it tells nobody
//! else.

use std::{
    env, fs,
    net::{IpAddr, Ipv4Addr, TcpStream, UdpSocket},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use codec::Decode;
use serde_json::json;
use sp_crypto_hashing::twox_128;
use surety_chain_client::{AccountId, address};
use surety_chain_rpc::{NodeFault, NodeRpc};
use surety_host::machine;

use super::{Checks, Context};
use crate::{
    args::DoctorArgs,
    commands::ask::{Ask, host_and_port, is_loopback},
};

/// The database of a chain grows: with less free it is soon full.
const FREE_BYTES_MIN: u64 = 1 << 30;
const FREE_BYTES_GOOD: u64 = 10 << 30;
/// Between two looks at what is final, and how many there are: BABE may leave slots empty.
const PAUSE: Duration = Duration::from_secs(1);
const LOOKS: u32 = 30;
/// The newest block's time may be off from this machine's by so much: a block is some seconds on its way.
const CLOCK_MILLIS_MAX: u64 = 10_000;
/// How long connecting to this machine may take.
const CONNECT: Duration = Duration::from_secs(1);

pub(super) async fn check(context: &Context, args: &DoctorArgs, checks: &mut Checks) {
    let url = context.config.rpc.first().cloned().unwrap_or_default();
    let node = match NodeRpc::connect(&url).await {
        Ok(node) => node,
        Err(e) => {
            let finding = format!("{url}: {e}; start surety-node, or name its RPC with --rpc");
            checks.fail("node", finding);
            return check_folder(args.node_base.as_deref(), checks);
        }
    };
    check_role(&node, checks).await;
    check_session_keys(&node, checks).await;
    check_sync(&node, checks).await;
    check_finality(&node, PAUSE, checks).await;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
    check_clock(&node, now, checks).await;
    check_folder(args.node_base.as_deref(), checks);
    check_exposed(&url, checks).await;
}

/// What could not be asked, and what to do about it.
fn unasked(name: &'static str, fault: &NodeFault, checks: &mut Checks) {
    checks.warn(
        name,
        format!("{fault}; run this on the node's own machine, with --rpc at its loopback address"),
    );
}

/// Whether it was started to validate, and by which name peers know it.
async fn check_role(node: &dyn Ask, checks: &mut Checks) {
    match node.ask("system_nodeRoles", vec![]).await {
        Ok(roles)
            if roles
                .as_array()
                .is_some_and(|all| all.contains(&json!("Authority"))) =>
        {
            checks.ok("node", "it was started with --validator");
        }
        Ok(_) => checks.fail(
            "node",
            "it follows the chain and makes no blocks: start it with --validator",
        ),
        Err(e) => unasked("node", &e, checks),
    }
    match node.ask("system_localPeerId", vec![]).await {
        Ok(peer) => checks.ok(
            "node key",
            format!("peers know it as {}", peer.as_str().unwrap_or_default()),
        ),
        Err(e) => unasked("node key", &e, checks),
    }
}

/// A value of the chain's storage; nothing where there is none.
async fn stored(node: &dyn Ask, pallet: &str, item: &str) -> Result<Option<Vec<u8>>, NodeFault> {
    let key = [twox_128(pallet.as_bytes()), twox_128(item.as_bytes())].concat();
    let key = json!(format!("0x{}", hex::encode(key)));
    let value = node.ask("state_getStorage", vec![key]).await?;
    let bytes = value
        .as_str()
        .and_then(|text| hex::decode(text.strip_prefix("0x")?).ok());
    Ok(bytes)
}

/// Keys of a session as validators registered them: BABE's, GRANDPA's, authority discovery's.
type SessionKeys = [[u8; 32]; 3];

/// Whether the node holds the keys of somebody who is in the session.
async fn check_session_keys(node: &dyn Ask, checks: &mut Checks) {
    match session_of(node).await {
        Ok(Some((account, true))) => checks.ok(
            "session keys",
            format!("it has those of {}, who validates", address(&account)),
        ),
        Ok(Some((account, false))) => checks.warn(
            "session keys",
            format!(
                "it has those of {}, who validates from the next session on: wait for it",
                address(&account)
            ),
        ),
        Ok(None) => checks.fail(
            "session keys",
            "it has those of no validator: surety validator init has it make some, and surety validator join sets them; those of \
             the chain spec are put into its keystore with surety-node key insert",
        ),
        Err(e) => unasked("session keys", &e, checks),
    }
}

/// The validator whose keys the node holds, and whether it is one already.
async fn session_of(node: &dyn Ask) -> Result<Option<(AccountId, bool)>, NodeFault> {
    let unreadable =
        |item: &str| NodeFault::Refused(format!("Session.{item} cannot be read by this program"));
    let queued = stored(node, "Session", "QueuedKeys").await?.unwrap_or_default();
    let queued =
        Vec::<(AccountId, SessionKeys)>::decode(&mut &queued[..]).map_err(|_| unreadable("QueuedKeys"))?;
    let present = stored(node, "Session", "Validators").await?.unwrap_or_default();
    let present = Vec::<AccountId>::decode(&mut &present[..]).map_err(|_| unreadable("Validators"))?;
    for (account, keys) in queued {
        let keys = json!(format!("0x{}", hex::encode(keys.concat())));
        if node.ask("author_hasSessionKeys", vec![keys]).await? == json!(true) {
            let is_present = present.contains(&account);
            return Ok(Some((account, is_present)));
        }
    }
    Ok(None)
}

async fn check_sync(node: &dyn Ask, checks: &mut Checks) {
    let health = match node.ask("system_health", vec![]).await {
        Ok(health) => health,
        Err(e) => return unasked("peers", &e, checks),
    };
    match (health["peers"].as_u64().unwrap_or(0), health["shouldHavePeers"] == json!(true)) {
        (0, true) => checks.fail(
            "peers",
            "none: open its port (30333) in the firewall, forward it to this machine, and start the node with --bootnodes",
        ),
        (peers, _) => checks.ok("peers", format!("{peers} peers")),
    }
    match health["isSyncing"] == json!(true) {
        true => checks.warn("synced", "it is still catching up with the chain: wait"),
        false => checks.ok("synced", "it has caught up with the chain"),
    }
}

/// Height of the newest block that is final.
async fn finalized(node: &dyn Ask) -> Result<u64, NodeFault> {
    let hash = node.ask("chain_getFinalizedHead", vec![]).await?;
    let header = node.ask("chain_getHeader", vec![hash]).await?;
    let number = header["number"].as_str().and_then(|text| text.strip_prefix("0x"));
    let number = number.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| NodeFault::Refused("which block is final".into()))
}

async fn check_finality(node: &dyn Ask, pause: Duration, checks: &mut Checks) {
    let first = match finalized(node).await {
        Ok(number) => number,
        Err(e) => return unasked("finality", &e, checks),
    };
    for _ in 0..LOOKS {
        tokio::time::sleep(pause).await;
        match finalized(node).await {
            Ok(number) if number > first => {
                return checks.ok("finality", format!("block {number} is final, and it goes on"));
            }
            Ok(_) => {}
            Err(e) => return unasked("finality", &e, checks),
        }
    }
    checks.fail(
        "finality",
        format!(
            "block {first} for {LOOKS} s: a third or more of the validators are away, or this node hears nothing of them. See \
             its peers and its log"
        ),
    );
}

/// Whether this machine's clock, which says in which slot a block is made, is that of the other validators.
async fn check_clock(node: &dyn Ask, now: u64, checks: &mut Checks) {
    let newest = match stored(node, "Timestamp", "Now").await {
        Ok(bytes) => bytes.and_then(|bytes| u64::decode(&mut &bytes[..]).ok()),
        Err(e) => return unasked("clock", &e, checks),
    };
    let Some(newest) = newest else {
        return checks.warn(
            "clock",
            "the chain has no time to compare it with: run this again",
        );
    };
    let off = now.abs_diff(newest);
    let words = if now > newest { "ahead of" } else { "behind" };
    match off > CLOCK_MILLIS_MAX {
        false => checks.ok("clock", "it is that of the newest block"),
        true => checks.warn(
            "clock",
            format!(
                "{} s {words} the newest block: where blocks are made this machine's clock is wrong, have it set by NTP \
                 (timedatectl set-ntp true)",
                off / 1_000
            ),
        ),
    }
}

/// Where a node keeps everything when it is not told.
fn default_base() -> Option<PathBuf> {
    let data = env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".local/share")))?;
    Some(data.join("surety-node"))
}

/// The node's own folder: its key, and room on the disk.
fn check_folder(named: Option<&Path>, checks: &mut Checks) {
    let base = named
        .map(Path::to_owned)
        .or_else(default_base)
        .filter(|base| base.is_dir());
    let Some(base) = base else {
        return checks.warn(
            "disk",
            "where the node keeps its database is not known: name its --base-path with --node-base",
        );
    };
    match machine::free_bytes(&base) {
        Some(free) if free < FREE_BYTES_MIN => checks.fail(
            "disk",
            format!(
                "{} MiB free at {}: make room, before the database has none",
                free >> 20,
                base.display()
            ),
        ),
        Some(free) if free < FREE_BYTES_GOOD => checks.warn(
            "disk",
            format!(
                "{} MiB free at {}, and the database grows: plan for more",
                free >> 20,
                base.display()
            ),
        ),
        Some(free) => checks.ok("disk", format!("{} MiB free at {}", free >> 20, base.display())),
        None => checks.warn("disk", "the system does not tell how much is free: see df"),
    }
    check_key_files(&base, checks);
}

/// Who reads the node's key can pose as it: its file is for its user alone.
fn check_key_files(base: &Path, checks: &mut Checks) {
    let chains = fs::read_dir(base.join("chains")).into_iter().flatten().flatten();
    let files = chains.map(|chain| chain.path().join("network/secret_ed25519"));
    for file in files {
        let Ok(meta) = fs::metadata(&file) else { continue };
        match meta.permissions().mode() & 0o077 {
            0 => checks.ok("node key file", file.display().to_string()),
            _ => checks.fail(
                "node key file",
                format!("others can read it; run: chmod 600 {}", file.display()),
            ),
        }
    }
}

/// An address of this machine that others may reach. Nothing is sent for it.
fn outward() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // Of the documentation's network: it only has to be one that no loopback leads to.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}

/// What whoever reaches the RPC from elsewhere may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exposure {
    /// Nobody does.
    Closed,
    /// What everybody may.
    Open,
    /// What the node's operator may.
    Unsafe,
}

/// Whether the RPC is open to others, and for what.
async fn check_exposed(url: &str, checks: &mut Checks) {
    let Some((host, port)) = host_and_port(url) else {
        return checks.warn(
            "RPC",
            format!("{url} is no address: name one as ws://HOST:PORT with --rpc"),
        );
    };
    let from_elsewhere = match (is_loopback(host), outward()) {
        (false, _) => Some(url.to_owned()),
        (true, Some(ip)) if TcpStream::connect_timeout(&(ip, port).into(), CONNECT).is_ok() => {
            Some(format!("ws://{ip}:{port}"))
        }
        (true, _) => None,
    };
    let exposure = match &from_elsewhere {
        None => Exposure::Closed,
        Some(url) => exposure(url).await,
    };
    exposed(exposure, from_elsewhere.as_deref().unwrap_or(url), checks);
}

/// What can be asked at an address that is not the machine's own alone.
async fn exposure(url: &str) -> Exposure {
    let Ok(node) = NodeRpc::connect(url).await else {
        return Exposure::Open;
    };
    // Of a key that nobody has: whoever is told so could as well change keys.
    let asked = node.ask(
        "author_hasKey",
        vec![json!(format!("0x{}", "00".repeat(32))), json!("babe")],
    );
    match asked.await {
        Ok(_) => Exposure::Unsafe,
        Err(_) => Exposure::Open,
    }
}

fn exposed(exposure: Exposure, url: &str, checks: &mut Checks) {
    match exposure {
        Exposure::Closed => {
            checks.ok("RPC", "only this machine reaches it");
            checks.ok("rate limit", "none is needed while only this machine reaches the RPC");
        }
        Exposure::Open => {
            checks.warn(
                "RPC",
                format!("others may reach it at {url}: a validator's needs nobody else, start the node without --rpc-external"),
            );
            checks.warn(
                "rate limit",
                "whether there is one cannot be asked: start the node with --rpc-rate-limit 3000, or put a proxy before it",
            );
        }
        Exposure::Unsafe => checks.fail(
            "RPC",
            format!(
                "whoever reaches {url} can change the node's keys: start it without --unsafe-rpc-external and --rpc-methods \
                 unsafe"
            ),
        ),
    }
}

#[cfg(test)]
#[path = "validator_tests.rs"]
mod tests;
