//! Session keys: the node makes them and keeps them, the operator sets them.
//!
//! Whoever has them can sign in the operator's place, and its stake answers for that: they are made by a node
//! on this machine alone.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use codec::{Decode, DecodeAll, Encode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use surety_chain_client::{AccountId, Call, SessionKeys, StakeCall, StakeChain, address};
use surety_chain_rpc::{NodeFault, NodeRpc};

use crate::{
    commands::{
        Context,
        account::{self, Submitted},
        ask::{Ask, host_and_port, is_loopback},
    },
    error::{CliError, Result},
};

/// Where they are kept, in the home folder. Nothing of it is a secret.
const FILE: &str = "session-keys.json";

/// Session keys that a node has made for an operator, and the proof that who has them means it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Made {
    pub operator: AccountId,
    pub keys: SessionKeys,
    pub proof: Vec<u8>,
}

/// As they are kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    operator: String,
    keys: String,
    proof: String,
}

pub(super) fn file(home: &Path) -> PathBuf {
    home.join(FILE)
}

/// The bytes as RPC has them.
fn hexadecimal(bytes: &[u8]) -> String {
    format!("0x{}", hex::encode(bytes))
}

/// The same as text, for people and files.
pub(super) fn text(keys: &SessionKeys) -> String {
    hexadecimal(&keys.encode())
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    hex::decode(text.strip_prefix("0x")?).ok()
}

fn decoded<T: Decode>(text: &str) -> Option<T> {
    T::decode_all(&mut &bytes(text)?[..]).ok()
}

/// The RPC of this machine's node.
pub(super) fn own_url(context: &Context) -> Result<String> {
    let url = context.config.rpc.first().cloned().unwrap_or_default();
    match host_and_port(&url).is_some_and(|(host, _)| is_loopback(host)) {
        true => Ok(url),
        false => Err(CliError::Usage(format!(
            "{url} is not of this machine alone: whoever runs that node could sign in the operator's place, and its stake \
             would answer for it. Run this on the validator's own machine, with --rpc ws://127.0.0.1:9944"
        ))),
    }
}

/// This machine's node.
pub(super) async fn node(context: &Context) -> Result<(String, NodeRpc)> {
    let url = own_url(context)?;
    match NodeRpc::connect(&url).await {
        Ok(node) => Ok((url, node)),
        Err(source) => Err(CliError::Node { url, source }),
    }
}

/// Has the node make new keys. It keeps those that it has.
pub(super) async fn made_by(node: &dyn Ask, operator: &AccountId) -> std::result::Result<Made, NodeFault> {
    let owner = json!(hexadecimal(operator.as_ref()));
    let answer = node.ask("author_rotateKeysWithOwner", vec![owner]).await?;
    let field = |name: &str| answer.get(name).and_then(Value::as_str);
    let (keys, proof) = (field("keys").and_then(decoded), field("proof").and_then(bytes));
    match (keys, proof) {
        (Some(keys), Some(proof)) => Ok(Made {
            operator: operator.clone(),
            keys,
            proof,
        }),
        _ => Err(NodeFault::Refused(
            "the session keys that it makes are not those that this program knows".into(),
        )),
    }
}

/// Whether a node has the secrets of these keys.
pub(super) async fn has(node: &dyn Ask, keys: &SessionKeys) -> std::result::Result<bool, NodeFault> {
    let answer = node.ask("author_hasSessionKeys", vec![json!(text(keys))]).await?;
    Ok(answer == json!(true))
}

/// The keys in the home folder, if there are any.
pub(super) fn read(home: &Path) -> Result<Option<Made>> {
    let path = file(home);
    let text = match fs::read_to_string(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(CliError::file(&path))?,
    };
    let kept: Option<Kept> = serde_json::from_str(&text).ok();
    let made = kept.and_then(|kept| {
        Some(Made {
            operator: surety_chain_client::parse_address(&kept.operator)?,
            keys: decoded(&kept.keys)?,
            proof: bytes(&kept.proof)?,
        })
    });
    let unreadable = || {
        CliError::Usage(format!(
            "{} holds no session keys as this program writes them: remove it, and run surety validator init",
            path.display()
        ))
    };
    made.map(Some).ok_or_else(unreadable)
}

/// Keeps keys in the home folder, in place of those that are there: whole, or not at all.
pub(super) fn write(home: &Path, made: &Made) -> Result<()> {
    let path = file(home);
    let kept = Kept {
        operator: address(&made.operator),
        keys: text(&made.keys),
        proof: hexadecimal(&made.proof),
    };
    let json = serde_json::to_string_pretty(&kept).map_err(|e| CliError::Internal(e.to_string()))?;
    let written = || {
        let mut file = tempfile::NamedTempFile::new_in(home)?;
        writeln!(file, "{json}")?;
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|e| e.error)
    };
    written().map(drop).map_err(CliError::file(&path))
}

/// What rotating came to.
#[derive(Serialize)]
struct Rotated {
    #[serde(flatten)]
    submitted: Submitted,
    session_keys: String,
    /// First session that they sign in.
    works_from: u32,
}

pub(super) async fn rotate(context: &Context) -> Result<()> {
    let key = context.key()?;
    let (url, node) = node(context).await?;
    let home = context.home()?;
    let chain = context.rpc().await?;
    let made = made_by(&node, key.signer.account()).await;
    let made = made.map_err(|source| CliError::Node { url, source })?;
    // Before they are set: where that fails, join sets them.
    write(home, &made)?;
    let call = Call::Stake(StakeCall::SetKeys {
        keys: made.keys,
        proof: made.proof.clone(),
    });
    let submitted = account::send(context.out, &*chain, &key.signer, call).await?;
    let session = chain.validator_sets(submitted.at).await?.session;
    let rotated = Rotated {
        session_keys: text(&made.keys),
        works_from: session.saturating_add(2),
        submitted,
    };
    context.out.result(&rotated, || {
        format!(
            "{}\nthe new keys sign from session {} on, in 5 to 10 min. Until then the old ones do: leave the node's keystore as it \
             is",
            rotated.submitted.text(),
            rotated.works_from
        )
    })
}

#[cfg(test)]
#[path = "keys_tests.rs"]
pub(super) mod tests;
