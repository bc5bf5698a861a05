//! The connection: made when it is needed, dropped when it breaks, with questions asked again for a while.

use std::{collections::HashMap, future::Future, sync::Arc, time::Duration};

use backon::{ExponentialBuilder, Retryable};
use codec::Decode;
use sp_core::H256;
use subxt::{
    config::RpcConfigFor,
    ext::jsonrpsee::{core::client::Error as ClientError, ws_client::PingConfig, ws_client::WsClientBuilder},
    metadata::Metadata,
    rpcs::{client::RpcClient, Error as RpcError, LegacyRpcMethods},
    SubstrateConfig,
};
use tokio::sync::Mutex;

use super::{runtime::Runtime, SPEC_NAME};
use crate::{BlockNumber, ChainError};

pub(super) type Rpc = LegacyRpcMethods<RpcConfigFor<SubstrateConfig>>;

/// How long connecting may take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// How long one request may take.
const REQUEST_PATIENCE: Duration = Duration::from_secs(30);
/// Pings find out that a silent connection is dead.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// Requests under way at once.
const REQUESTS_MAX: usize = 256;
/// Finalised blocks waiting to be read; on more, the subscription ends and is made anew.
const SUBSCRIPTION_BUFFER: usize = 256;
/// Longest answer, in bytes: metadata and lists of keys are the longest.
const ANSWER_BYTES_MAX: u32 = 32 * 1024 * 1024;
/// First pause between two attempts, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(4));
/// Keys asked for in one request.
pub(super) const KEYS_PER_REQUEST: usize = 500;

/// A connection to one node.
pub(super) struct Link {
    url: String,
    patience: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rpc: Option<Connected>,
    /// How many connections there were: tells a broken one from its successor.
    made: u64,
    genesis: Option<H256>,
}

#[derive(Clone)]
pub(super) struct Connected {
    pub rpc: Rpc,
    number: u64,
}

/// What came of one attempt.
enum Trouble {
    /// The connection is at fault; another attempt may help.
    Link(String),
    /// The answer is final.
    Final(ChainError),
}

impl Link {
    pub fn new(url: String, patience: Duration) -> Self {
        Self {
            url,
            patience,
            state: Mutex::default(),
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Asks, and asks again for as long as the node does not answer.
    pub async fn ask<T, F>(&self, what: &str, question: impl Fn(Rpc) -> F) -> Result<T, ChainError>
    where
        F: Future<Output = Result<T, RpcError>>,
    {
        let attempt = || async {
            let connected = self.connected().await?;
            match question(connected.rpc.clone()).await {
                Ok(answer) => Ok(answer),
                Err(error) => Err(self.trouble(what, error, &connected).await),
            }
        };
        self.retried(attempt).await
    }

    /// A connection, made within the patience. For what must not be asked twice.
    pub async fn connect(&self) -> Result<Connected, ChainError> {
        self.retried(|| self.connected()).await
    }

    async fn retried<T, F>(&self, attempt: impl FnMut() -> F) -> Result<T, ChainError>
    where
        F: Future<Output = Result<T, Trouble>>,
    {
        let pauses = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(PAUSES.0)
            .with_max_delay(PAUSES.1)
            .without_max_times()
            .with_total_delay(Some(self.patience));
        let outcome = attempt
            .retry(pauses)
            .when(|trouble| matches!(trouble, Trouble::Link(_)))
            .notify(|trouble, pause| {
                if let Trouble::Link(reason) = trouble {
                    tracing::debug!(url = self.url, ?pause, reason, "node does not answer");
                }
            })
            .await;
        outcome.map_err(|trouble| match trouble {
            Trouble::Final(error) => error,
            Trouble::Link(reason) => self.unreachable(&reason),
        })
    }

    pub fn unreachable(&self, reason: &str) -> ChainError {
        ChainError::Unreachable {
            url: self.url.clone(),
            hint: format!("{reason}. Is the node running, and is this its RPC address?"),
        }
    }

    /// Drops a connection that broke, unless it has been replaced already.
    pub async fn drop_connection(&self, broken: &Connected) {
        let mut state = self.state.lock().await;
        if state.rpc.as_ref().is_some_and(|rpc| rpc.number == broken.number) {
            state.rpc = None;
        }
    }

    async fn trouble(&self, what: &str, error: RpcError, connected: &Connected) -> Trouble {
        match error {
            RpcError::User(error) if is_pruned(error.code, &error.message) => {
                Trouble::Final(ChainError::Pruned {
                    block: what.to_string(),
                })
            }
            RpcError::Client(error) => {
                self.drop_connection(connected).await;
                Trouble::Link(error.to_string())
            }
            other => Trouble::Final(ChainError::Rpc {
                what: what.into(),
                reason: other.to_string(),
            }),
        }
    }

    async fn connected(&self) -> Result<Connected, Trouble> {
        let mut state = self.state.lock().await;
        if let Some(connected) = &state.rpc {
            return Ok(connected.clone());
        }
        let client = WsClientBuilder::new()
            .connection_timeout(CONNECT_PATIENCE)
            .request_timeout(REQUEST_PATIENCE)
            .max_concurrent_requests(REQUESTS_MAX)
            .max_buffer_capacity_per_subscription(SUBSCRIPTION_BUFFER)
            .max_response_size(ANSWER_BYTES_MAX)
            .enable_ws_ping(PingConfig::new().ping_interval(PING_INTERVAL))
            .build(&self.url)
            .await
            .map_err(|error| Trouble::Link(connect_hint(&error)))?;
        let rpc = Rpc::new(RpcClient::new(client));
        let genesis = rpc
            .genesis_hash()
            .await
            .map_err(|error| Trouble::Link(error.to_string()))?;
        if let Some(expected) = state.genesis.filter(|known| *known != genesis) {
            return Err(Trouble::Final(ChainError::WrongChain {
                url: self.url.clone(),
                expected: format!("{expected:?}"),
                found: format!("{genesis:?}"),
            }));
        }
        state.genesis = Some(genesis);
        state.made = state.made.saturating_add(1);
        let connected = Connected {
            rpc,
            number: state.made,
        };
        state.rpc = Some(connected.clone());
        Ok(connected)
    }

    pub async fn genesis(&self) -> Result<H256, ChainError> {
        self.ask("reading the first block", |rpc| async move {
            rpc.genesis_hash().await
        })
        .await
    }

    pub async fn finalised_head(&self) -> Result<H256, ChainError> {
        self.ask("reading the finalised block", |rpc| async move {
            rpc.chain_get_finalized_head().await
        })
        .await
    }

    /// Hash of the block at a height; of the best block without one.
    pub async fn block_hash(&self, number: Option<BlockNumber>) -> Result<H256, ChainError> {
        let ask = |rpc: Rpc| async move { rpc.chain_get_block_hash(number.map(Into::into)).await };
        let hash = self.ask("reading a block's hash", ask).await?;
        hash.ok_or_else(|| missing("the block"))
    }

    pub async fn number(&self, hash: H256) -> Result<BlockNumber, ChainError> {
        let ask = |rpc: Rpc| async move { rpc.chain_get_header(Some(hash)).await };
        let header = self.ask("reading a header", ask).await?;
        let header = header.ok_or_else(|| missing(&format!("block {hash:?}")))?;
        narrow(header.number)
    }

    /// The extrinsics of a block.
    pub async fn extrinsics(&self, hash: H256) -> Result<Vec<Vec<u8>>, ChainError> {
        let ask = |rpc: Rpc| async move { rpc.chain_get_block(Some(hash)).await };
        let block = self.ask("reading a block", ask).await?;
        let block = block.ok_or_else(|| missing(&format!("block {hash:?}")))?;
        Ok(block
            .block
            .extrinsics
            .into_iter()
            .map(|extrinsic| extrinsic.0)
            .collect())
    }

    pub async fn value(&self, hash: H256, key: &[u8]) -> Result<Option<Vec<u8>>, ChainError> {
        let ask = |rpc: Rpc| async move { rpc.state_get_storage(key, Some(hash)).await };
        self.ask("reading storage", ask).await
    }

    /// Many values at once, in the order of their keys.
    pub async fn values(&self, hash: H256, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, ChainError> {
        let mut values = Vec::with_capacity(keys.len());
        for keys in keys.chunks(KEYS_PER_REQUEST) {
            let ask = |rpc: Rpc| async move {
                let keys = keys.iter().map(Vec::as_slice);
                rpc.state_query_storage_at(keys, Some(hash)).await
            };
            let sets = self.ask("reading storage", ask).await?;
            let mut found: HashMap<Vec<u8>, Vec<u8>> = sets
                .into_iter()
                .flat_map(|set| set.changes)
                .filter_map(|(key, value)| Some((key.0, value?.0)))
                .collect();
            values.extend(keys.iter().map(|key| found.remove(key)));
        }
        Ok(values)
    }

    /// Keys that begin with `prefix`, in order, `count` at most, after `start`.
    pub async fn keys(
        &self,
        hash: H256,
        prefix: &[u8],
        count: u32,
        start: Option<&[u8]>,
    ) -> Result<Vec<Vec<u8>>, ChainError> {
        let ask = |rpc: Rpc| async move { rpc.state_get_keys_paged(prefix, count, start, Some(hash)).await };
        self.ask("listing storage", ask).await
    }

    pub async fn state_call(
        &self,
        hash: H256,
        function: &str,
        arguments: &[u8],
    ) -> Result<Vec<u8>, ChainError> {
        let ask = |rpc: Rpc| async move { rpc.state_call(function, Some(arguments), Some(hash)).await };
        self.ask(function, ask).await
    }

    /// Specification and transaction version of the runtime at a block.
    pub async fn version(&self, hash: H256) -> Result<(u32, u32), ChainError> {
        let ask = |rpc: Rpc| async move { rpc.state_get_runtime_version(Some(hash)).await };
        let version = self.ask("reading the runtime's version", ask).await?;
        let name = version.other.get("specName").and_then(|name| name.as_str());
        if name != Some(SPEC_NAME) {
            return Err(ChainError::WrongChain {
                url: self.url.clone(),
                expected: SPEC_NAME.into(),
                found: name.unwrap_or("an unnamed runtime").into(),
            });
        }
        Ok((version.spec_version, version.transaction_version))
    }

    /// The runtime at a block, checked.
    pub async fn runtime(&self, hash: H256) -> Result<Runtime, ChainError> {
        /// Newest metadata version in which we know our way around.
        const METADATA_VERSION: u32 = 15;
        let (spec_version, transaction_version) = self.version(hash).await?;
        let function = "Metadata_metadata_at_version";
        let answer = self
            .state_call(hash, function, &METADATA_VERSION.to_le_bytes())
            .await?;
        let unfit = |what: String| ChainError::Incompatible { spec_version, what };
        let bytes = Option::<Vec<u8>>::decode(&mut answer.as_slice())
            .ok()
            .flatten()
            .ok_or_else(|| unfit(format!("it has no metadata of version {METADATA_VERSION}")))?;
        let metadata = Metadata::decode_from(&bytes)
            .map_err(|error| unfit(format!("its metadata cannot be read: {error}")))?;
        Runtime::new(spec_version, transaction_version, Arc::new(metadata))
    }
}

/// Block heights of this chain fit into 32 bits; an RPC gives them as 64.
pub(super) fn narrow(number: u64) -> Result<BlockNumber, ChainError> {
    BlockNumber::try_from(number).map_err(|_| ChainError::Decode {
        what: "a block's height".into(),
        reason: format!("{number} is out of range"),
    })
}

fn missing(what: &str) -> ChainError {
    ChainError::Rpc {
        what: format!("reading {what}"),
        reason: "the node does not have it".into(),
    }
}

fn is_pruned(code: i32, message: &str) -> bool {
    const STATE_GONE: i32 = 4003;
    code == STATE_GONE || message.contains("State already discarded") || message.contains("UnknownBlock")
}

fn connect_hint(error: &ClientError) -> String {
    match error {
        ClientError::Transport(error) => error.to_string(),
        ClientError::RequestTimeout => format!("no answer within {} seconds", CONNECT_PATIENCE.as_secs()),
        other => other.to_string(),
    }
}
