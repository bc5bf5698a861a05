//! Plain questions to one node about itself: what a doctor asks, and no chain knows.

use std::time::Duration;

use serde_json::Value;
use subxt::{
    ext::jsonrpsee::ws_client::WsClientBuilder,
    rpcs::{
        Error as RpcError,
        client::{RpcClient, RpcParams},
    },
};

/// How long connecting may take, and each answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a node did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeFault {
    /// It does not say that, or not to whoever asks from there.
    #[error("the node does not say: {0}")]
    Refused(String),
    /// It could not be asked.
    #[error("no answer: {0}")]
    Silent(String),
}

/// A connection to one node.
pub struct NodeRpc(RpcClient);

impl NodeRpc {
    /// Connects to a WebSocket address, for example `ws://127.0.0.1:9944`.
    ///
    /// # Errors
    /// [`NodeFault::Silent`].
    pub async fn connect(url: &str) -> Result<Self, NodeFault> {
        let client = WsClientBuilder::new()
            .connection_timeout(PATIENCE)
            .request_timeout(PATIENCE)
            .build(url)
            .await
            .map_err(|error| NodeFault::Silent(error.to_string()))?;
        Ok(Self(RpcClient::new(client)))
    }

    /// The answer to a method of its RPC.
    ///
    /// # Errors
    /// [`NodeFault`].
    pub async fn ask(&self, method: &str, params: Vec<Value>) -> Result<Value, NodeFault> {
        let silent = |error: RpcError| NodeFault::Silent(error.to_string());
        let mut all = RpcParams::new();
        for param in params {
            all.push(param).map_err(silent)?;
        }
        self.0.request(method, all).await.map_err(|error| match error {
            RpcError::User(refused) => NodeFault::Refused(refused.message),
            other => silent(other),
        })
    }
}
