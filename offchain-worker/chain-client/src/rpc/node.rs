//! One node: connecting to it, and whether it can be believed.

use std::{fmt, time::Duration};

use sp_core::H256;
use subxt::{
    ext::jsonrpsee::{core::client::Error as ClientError, ws_client::PingConfig, ws_client::WsClientBuilder},
    rpcs::client::RpcClient,
};

use super::link::{narrow, Rpc};
use crate::{BlockNumber, ChainError};

/// How long connecting may take.
pub(super) const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// How long connecting may take while another node answers.
pub(super) const RETURN_PATIENCE: Duration = Duration::from_secs(2);
/// How long one request may take, and how long where there are other nodes to ask: near a deadline calls are sent anew
/// every eight seconds, and another node has to be asked before that.
const REQUEST_PATIENCE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(4));
/// Pings find out that a silent connection is dead.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// Requests under way at once.
const REQUESTS_MAX: usize = 256;
/// Blocks waiting to be read; on more, the subscription ends and is made anew.
const SUBSCRIPTION_BUFFER: usize = 256;
/// Longest answer, in bytes: metadata and lists of keys are the longest.
const ANSWER_BYTES_MAX: u32 = 32 * 1024 * 1024;

/// Why a node is not used.
pub(super) enum Distrust {
    /// It belongs to another chain.
    OtherChain(ChainError),
    /// It does not answer, or cannot answer truly yet.
    For(String),
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherChain(error) => error.fmt(f),
            Self::For(reason) => f.write_str(reason),
        }
    }
}

/// Whether a JSON-RPC error says that the node has too much to do: its rate limit, and jsonrpsee's own limits.
pub(super) fn is_overloaded(code: i32) -> bool {
    matches!(code, -32999 | -32009 | -32006)
}

/// Connects to a node of the chain with that genesis that knows as much as we have seen finalised elsewhere.
pub(super) async fn connect(
    url: &str,
    patience: Duration,
    is_one_of_several: bool,
    genesis: Option<H256>,
    finalised: BlockNumber,
) -> Result<(Rpc, H256), Distrust> {
    let late = || Distrust::For(format!("no answer within {} seconds", patience.as_secs()));
    let connecting = async {
        let client = WsClientBuilder::new()
            .connection_timeout(patience)
            .request_timeout(match is_one_of_several {
                true => REQUEST_PATIENCE.1,
                false => REQUEST_PATIENCE.0,
            })
            .max_concurrent_requests(REQUESTS_MAX)
            .max_buffer_capacity_per_subscription(SUBSCRIPTION_BUFFER)
            .max_response_size(ANSWER_BYTES_MAX)
            .enable_ws_ping(PingConfig::new().ping_interval(PING_INTERVAL))
            .build(url)
            .await
            .map_err(|error| Distrust::For(hint(&error)))?;
        let rpc = Rpc::new(RpcClient::new(client));
        let found = believe(&rpc, url, genesis, finalised).await?;
        Ok((rpc, found))
    };
    tokio::time::timeout(patience, connecting)
        .await
        .map_err(|_| late())?
}

/// Looks at a node's chain before anything it says is taken for true.
async fn believe(
    rpc: &Rpc,
    url: &str,
    genesis: Option<H256>,
    finalised: BlockNumber,
) -> Result<H256, Distrust> {
    let silent = |error: subxt::rpcs::Error| Distrust::For(error.to_string());
    let found = rpc.genesis_hash().await.map_err(silent)?;
    if let Some(expected) = genesis.filter(|known| *known != found) {
        return Err(Distrust::OtherChain(ChainError::WrongChain {
            url: url.into(),
            expected: format!("{expected:?}"),
            found: format!("{found:?}"),
        }));
    }
    // A node that does not say how it is may still be well.
    if rpc.system_health().await.is_ok_and(|health| health.is_syncing) {
        return Err(Distrust::For("it is still catching up with the chain".into()));
    }
    let header = rpc.chain_get_header(None).await.map_err(silent)?;
    let best = header.map(|header| narrow(header.number));
    let best = best.transpose().ok().flatten().unwrap_or_default();
    if best < finalised {
        let behind = format!("it is at block {best}, behind block {finalised} that is final");
        return Err(Distrust::For(behind));
    }
    Ok(found)
}

fn hint(error: &ClientError) -> String {
    match error {
        ClientError::Transport(error) => error.to_string(),
        ClientError::RequestTimeout => format!("no answer within {} seconds", CONNECT_PATIENCE.as_secs()),
        other => other.to_string(),
    }
}
