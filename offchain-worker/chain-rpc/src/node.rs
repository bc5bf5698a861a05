//! One node: connecting to it, and whether it can be believed.

use std::{error::Error, fmt, time::Duration};

use sp_core::H256;
use subxt::{
    ext::jsonrpsee::{core::client::Error as ClientError, ws_client::PingConfig, ws_client::WsClientBuilder},
    rpcs::{Error as RpcError, UserError, client::RpcClient},
};

use super::link::{Rpc, narrow};
use surety_chain_client::{BlockNumber, ChainError, Refusal};

/// How long connecting may take where there is no other node to connect to.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// The same where there is.
const CONNECT_PATIENCE_OF_SEVERAL: Duration = Duration::from_secs(3);
/// How long connecting may take while another node answers.
pub(super) const RETURN_PATIENCE: Duration = Duration::from_secs(2);
/// How long one request may take where there is no other node to ask.
const REQUEST_PATIENCE: Duration = Duration::from_secs(30);
/// The same where there is: near a deadline calls are sent anew every eight seconds, and another node has to
/// be asked before that.
const REQUEST_PATIENCE_OF_SEVERAL: Duration = Duration::from_secs(4);
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

/// What a node's JSON-RPC error means.
pub(super) fn refusal(error: &UserError) -> Refusal {
    let data = error.data.as_ref().map(|data| data.get());
    Refusal::from_rpc(error.code, &error.message, data)
}

/// Whether a JSON-RPC error says that the node has too much to do, and nothing of what it was asked.
pub(super) fn is_overloaded(error: &UserError) -> bool {
    matches!(refusal(error), Refusal::RateLimited | Refusal::NodeBusy)
}

/// How long connecting may take.
pub(super) fn connect_patience(is_one_of_several: bool) -> Duration {
    match is_one_of_several {
        true => CONNECT_PATIENCE_OF_SEVERAL,
        false => CONNECT_PATIENCE,
    }
}

/// How long one request may take.
pub(super) fn request_patience(is_one_of_several: bool) -> Duration {
    match is_one_of_several {
        true => REQUEST_PATIENCE_OF_SEVERAL,
        false => REQUEST_PATIENCE,
    }
}

/// Connects to a node of the chain with that genesis that knows as much as we have seen finalised elsewhere.
pub(super) async fn connect(
    url: &str,
    patience: Duration,
    is_one_of_several: bool,
    genesis: Option<H256>,
    finalized: BlockNumber,
) -> Result<(Rpc, H256), Distrust> {
    let request_patience = request_patience(is_one_of_several);
    let connecting = async {
        let client = WsClientBuilder::new()
            .connection_timeout(patience)
            .request_timeout(request_patience)
            .max_concurrent_requests(REQUESTS_MAX)
            .max_buffer_capacity_per_subscription(SUBSCRIPTION_BUFFER)
            .max_response_size(ANSWER_BYTES_MAX)
            .enable_ws_ping(PingConfig::new().ping_interval(PING_INTERVAL))
            .build(url)
            .await
            .map_err(|error| Distrust::For(error.to_string()))?;
        let rpc = Rpc::new(RpcClient::new(client));
        let found = believe(&rpc, url, request_patience, genesis, finalized).await?;
        Ok((rpc, found))
    };
    tokio::time::timeout(patience, connecting)
        .await
        .map_err(|_| Distrust::For(silence(patience)))?
}

/// Looks at a node's chain before anything it says is taken for true.
async fn believe(
    rpc: &Rpc,
    url: &str,
    request_patience: Duration,
    genesis: Option<H256>,
    finalized: BlockNumber,
) -> Result<H256, Distrust> {
    let silent = |error: RpcError| match error {
        RpcError::Client(error) => Distrust::For(hint(&*error, request_patience)),
        other => Distrust::For(other.to_string()),
    };
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
    let header = header.ok_or_else(|| Distrust::For("it has no header of its best block".into()))?;
    let best = narrow(header.number).map_err(|error| Distrust::For(error.to_string()))?;
    if best < finalized {
        let behind = format!("it is at block {best}, behind block {finalized} that is final");
        return Err(Distrust::For(behind));
    }
    Ok(found)
}

/// What is wrong with a connection over which a request may take so long.
pub(super) fn hint(error: &(dyn Error + Send + Sync + 'static), request_patience: Duration) -> String {
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::RequestTimeout) => silence(request_patience),
        _ => error.to_string(),
    }
}

fn silence(patience: Duration) -> String {
    format!("no answer within {} seconds", patience.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_node_is_told_by_how_long_it_was_waited_for() {
        for (is_one_of_several, told) in [
            (false, "no answer within 30 seconds"),
            (true, "no answer within 4 seconds"),
        ] {
            let patience = request_patience(is_one_of_several);
            assert_eq!(hint(&ClientError::RequestTimeout, patience), told);
        }
        let other = ClientError::Custom("cut off".into());
        assert_eq!(hint(&other, RETURN_PATIENCE), "Custom error: cut off");
    }

    #[test]
    fn a_nodes_limits_say_nothing_of_the_question() {
        let error = |code| UserError {
            code,
            message: String::new(),
            data: None,
        };
        assert!(
            [-32999, -32009, -32006]
                .into_iter()
                .all(|code| is_overloaded(&error(code)))
        );
        assert!(
            ![-32601, 1010, 4003]
                .into_iter()
                .any(|code| is_overloaded(&error(code)))
        );
    }
}
