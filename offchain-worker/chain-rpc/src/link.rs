//! Questions to the node at hand, asked again for a while. Which node that is, [`super::connections`]
//! decides.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use backon::{ExponentialBuilder, Retryable};
use codec::{Compact, Decode};
use sp_core::H256;
use sp_crypto_hashing::twox_128;
use subxt::{
    SubstrateConfig,
    config::RpcConfigFor,
    metadata::Metadata,
    rpcs::{Error as RpcError, LegacyRpcMethods},
};

use super::{
    SPEC_NAME,
    connections::{Connected, Nodes},
    node,
    runtime::Runtime,
};
use surety_chain_client::{BlockNumber, BlockRef, ChainError};

pub(super) type Rpc = LegacyRpcMethods<RpcConfigFor<SubstrateConfig>>;

/// First pause between two attempts, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(4));
/// Keys asked for in one request.
pub(super) const KEYS_PER_REQUEST: usize = 500;
/// Headers whose heights are remembered.
const HEIGHTS_MAX: usize = 64;

/// A connection to one of several nodes.
pub(super) struct Link {
    nodes: Arc<Nodes>,
    patience: Duration,
    heights: Mutex<HashMap<H256, BlockNumber>>,
}

/// What came of one attempt.
#[derive(Clone)]
pub(super) enum Trouble {
    /// The connection is at fault; another attempt may help.
    Link(String),
    /// The answer is final.
    Final(ChainError),
}

impl Link {
    pub fn new(urls: Vec<String>, patience: Duration, return_after: Duration) -> Self {
        Self {
            nodes: Arc::new(Nodes::new(urls, return_after)),
            patience,
            heights: Mutex::default(),
        }
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes.count()
    }

    /// The node that is asked now, by its address.
    pub fn url(&self) -> String {
        self.nodes.url()
    }

    /// Whether questions go over this connection now.
    pub fn is_current(&self, connected: &Connected) -> bool {
        self.nodes.is_current(connected)
    }

    /// Turns to the next node, unless that was done already: this connection broke.
    pub fn drop_connection(&self, broken: &Connected) {
        self.nodes.drop_connection(broken);
    }

    /// Asks, and asks again for as long as no node answers.
    pub async fn ask<T, F>(&self, what: &str, question: impl Fn(Rpc) -> F) -> Result<T, ChainError>
    where
        F: Future<Output = Result<T, RpcError>>,
    {
        Ok(self.ask_of_one(what, question).await?.0)
    }

    /// As [`Self::ask`], with the connection that the answer came over.
    pub async fn ask_of_one<T, F>(
        &self,
        what: &str,
        question: impl Fn(Rpc) -> F,
    ) -> Result<(T, Connected), ChainError>
    where
        F: Future<Output = Result<T, RpcError>>,
    {
        let attempt = || async {
            let connected = self.nodes.connected().await?;
            match question(connected.rpc.clone()).await {
                Ok(answer) => Ok((answer, connected)),
                Err(error) => Err(self.trouble(what, error, &connected)),
            }
        };
        self.retried(attempt).await
    }

    /// A connection, made within the patience. For what must not be asked twice.
    pub async fn connect(&self) -> Result<Connected, ChainError> {
        self.retried(|| self.nodes.connected()).await
    }

    async fn retried<T, F>(&self, attempt: impl FnMut() -> F) -> Result<T, ChainError>
    where
        F: Future<Output = Result<T, Trouble>>,
    {
        let pauses = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(PAUSES.0)
            .with_max_delay(PAUSES.1)
            .without_max_times();
        let began = Instant::now();
        let outcome = attempt
            .retry(pauses)
            .when(|trouble| matches!(trouble, Trouble::Link(_)) && began.elapsed() < self.patience)
            .notify(|trouble, pause| {
                if let Trouble::Link(reason) = trouble {
                    tracing::debug!(urls = self.nodes.urls(), ?pause, reason, "no node answers");
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
            url: self.nodes.urls(),
            hint: format!("{reason}. Start the node, or name the RPC address of another with --rpc"),
        }
    }

    /// Turns to the next node, because what this one says cannot be true. It is tried again when it is time
    /// to look whether earlier nodes are back.
    pub fn distrust(&self, liar: &Connected, error: &ChainError) {
        tracing::warn!(url = self.nodes.url_of(liar.node), %error, "another node is asked for now");
        self.drop_connection(liar);
    }

    fn trouble(&self, what: &str, error: RpcError, connected: &Connected) -> Trouble {
        match error {
            RpcError::User(error) if is_pruned(&error.message) => Trouble::Final(ChainError::Pruned {
                block: what.to_string(),
            }),
            RpcError::User(error) if node::is_overloaded(&error) => {
                if self.nodes() > 1 {
                    self.drop_connection(connected);
                }
                Trouble::Link(error.message)
            }
            RpcError::Client(error) => {
                self.drop_connection(connected);
                let patience = node::request_patience(self.nodes() > 1);
                Trouble::Link(node::hint(&*error, patience))
            }
            other => {
                let error = ChainError::Rpc {
                    what: what.into(),
                    reason: other.to_string(),
                };
                // Its database may be broken, and another node's is not.
                if self.nodes() > 1 {
                    self.distrust(connected, &error);
                }
                Trouble::Final(error)
            }
        }
    }

    /// The last finalised block. Never one before those that are known already: a node that is a little
    /// behind in finality knows them as part of its best chain.
    pub async fn finalized(&self) -> Result<BlockRef, ChainError> {
        let head = self.named(self.finalized_head().await?).await?;
        let newest = self.note_finalized(head.number)?;
        if head.number >= newest {
            return Ok(head);
        }
        let ask = |rpc: Rpc| async move { rpc.chain_get_block_hash(Some(newest.into())).await };
        let hash = self.ask("reading a block's hash", ask).await?;
        let behind = || format!("it does not know block {newest}, which is final");
        let hash = hash.ok_or_else(|| self.implausible(behind()))?;
        Ok(BlockRef { number: newest, hash })
    }

    /// Takes note of a block that the node calls final; the newest one known before. A number that the chain
    /// cannot have come to yet is not believed.
    pub fn note_finalized(&self, number: BlockNumber) -> Result<BlockNumber, ChainError> {
        let noted = self.nodes.note_finalized(number);
        noted.ok_or_else(|| {
            let newest = self.newest_final();
            self.implausible(format!(
                "it calls block {number} final, so soon after block {newest} by this machine's clock"
            ))
        })
    }

    /// Height of the newest block that is known to be final.
    pub fn newest_final(&self) -> BlockNumber {
        self.nodes.finalized()
    }

    pub fn implausible(&self, reason: String) -> ChainError {
        ChainError::Implausible {
            url: self.url(),
            reason,
        }
    }

    pub async fn genesis(&self) -> Result<H256, ChainError> {
        self.ask("reading the first block", |rpc| async move {
            rpc.genesis_hash().await
        })
        .await
    }

    /// Whether the chain's specification has the property `isTestnet`.
    pub async fn is_test_network(&self) -> Result<bool, ChainError> {
        let ask = |rpc: Rpc| async move { rpc.system_properties().await };
        let properties = self.ask("reading the chain's properties", ask).await?;
        let says = properties.get("isTestnet").and_then(|value| value.as_bool());
        Ok(says.unwrap_or(false))
    }

    pub async fn finalized_head(&self) -> Result<H256, ChainError> {
        self.ask("reading the finalised block", |rpc| async move {
            rpc.chain_get_finalized_head().await
        })
        .await
    }

    /// Hash of the block at a height; of the best block, which every node has, without one.
    pub async fn block_hash(&self, number: Option<BlockNumber>) -> Result<H256, ChainError> {
        let ask = |rpc: Rpc| async move { rpc.chain_get_block_hash(number.map(Into::into)).await };
        let hash = self.ask("reading a block's hash", ask).await?;
        hash.ok_or_else(|| match number {
            Some(number) => missing(&format!("block {number}")),
            None => self.implausible("it has no best block".into()),
        })
    }

    /// A block that the node has just named: one that has no header of it is not believed.
    pub async fn named(&self, hash: H256) -> Result<BlockRef, ChainError> {
        let number = self.height(hash).await?;
        let number = number.ok_or_else(|| self.implausible(format!("it has no header of block {hash:?}")))?;
        Ok(BlockRef { number, hash })
    }

    /// A block that is known from elsewhere.
    pub async fn block(&self, hash: H256) -> Result<BlockRef, ChainError> {
        let number = self.height(hash).await?;
        let number = number.ok_or_else(|| missing(&format!("block {hash:?}")))?;
        Ok(BlockRef { number, hash })
    }

    async fn height(&self, hash: H256) -> Result<Option<BlockNumber>, ChainError> {
        if let Some(known) = self.heights().get(&hash) {
            return Ok(Some(*known));
        }
        let ask = |rpc: Rpc| async move { rpc.chain_get_header(Some(hash)).await };
        let Some(header) = self.ask("reading a header", ask).await? else {
            return Ok(None);
        };
        let number = narrow(header.number)?;
        let mut heights = self.heights();
        if heights.len() >= HEIGHTS_MAX {
            heights.clear();
        }
        heights.insert(hash, number);
        Ok(Some(number))
    }

    /// The block before a block.
    pub async fn parent(&self, hash: H256) -> Result<H256, ChainError> {
        let ask = |rpc: Rpc| async move { rpc.chain_get_header(Some(hash)).await };
        let header = self.ask("reading a header", ask).await?;
        let header = header.ok_or_else(|| missing(&format!("block {hash:?}")))?;
        Ok(header.parent_hash)
    }

    fn heights(&self) -> MutexGuard<'_, HashMap<H256, BlockNumber>> {
        self.heights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The extrinsics of a block that the node has named.
    pub async fn extrinsics(&self, hash: H256) -> Result<Vec<Vec<u8>>, ChainError> {
        let ask = |rpc: Rpc| async move { rpc.chain_get_block(Some(hash)).await };
        let block = self.ask("reading a block", ask).await?;
        let block = block.ok_or_else(|| self.implausible(format!("it has no body of block {hash:?}")))?;
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
        let ask = |rpc: Rpc| async move {
            match rpc.state_call(function, Some(arguments), Some(hash)).await {
                // The function's own, most likely: another node would say the same, and is not turned to.
                Err(RpcError::User(error)) if !is_pruned(&error.message) && !node::is_overloaded(&error) => {
                    Ok(Err(error))
                }
                answer => answer.map(Ok),
            }
        };
        self.ask(function, ask).await?.map_err(|error| ChainError::Rpc {
            what: function.into(),
            reason: error.message,
        })
    }

    /// Specification and transaction version of the runtime in a block's state. Of a chain whose first block
    /// is known, no runtime has another name: a node that says so is not believed.
    pub async fn version(&self, hash: H256) -> Result<(u32, u32), ChainError> {
        let (name, spec_version, transaction_version) = self.named_version(hash).await?;
        if name != SPEC_NAME {
            return Err(self.implausible(format!("its runtime is \"{name}\", not \"{SPEC_NAME}\"")));
        }
        Ok((spec_version, transaction_version))
    }

    async fn named_version(&self, hash: H256) -> Result<(String, u32, u32), ChainError> {
        let ask = |rpc: Rpc| async move { rpc.state_get_runtime_version(Some(hash)).await };
        let version = self.ask("reading the runtime's version", ask).await?;
        let name = version.other.get("specName").and_then(|name| name.as_str());
        let name = name.unwrap_or("an unnamed runtime").to_owned();
        Ok((name, version.spec_version, version.transaction_version))
    }

    /// Says where this is another chain than the one wanted. For who connects, and knows nothing of it.
    pub async fn ensure_chain(&self) -> Result<(), ChainError> {
        let (found, ..) = self.named_version(self.block_hash(None).await?).await?;
        if found == SPEC_NAME {
            return Ok(());
        }
        Err(ChainError::WrongChain {
            url: self.url(),
            expected: SPEC_NAME.into(),
            found,
        })
    }

    /// Specification version of the runtime that the chain was last seen to run in a block's state: the one
    /// that made the block. Not every chain keeps it from its first block on.
    pub async fn last_upgrade(&self, hash: H256) -> Result<Option<u32>, ChainError> {
        let key = [twox_128(b"System"), twox_128(b"LastRuntimeUpgrade")].concat();
        let Some(bytes) = self.value(hash, &key).await? else {
            return Ok(None);
        };
        // The specification's name comes behind it.
        let version = Compact::<u32>::decode(&mut bytes.as_slice());
        let version = version.map_err(|error| ChainError::Decode {
            what: "System.LastRuntimeUpgrade".into(),
            reason: error.to_string(),
        })?;
        Ok(Some(version.0))
    }

    /// The runtime in a block's state, checked.
    pub async fn runtime(&self, hash: H256) -> Result<Runtime, ChainError> {
        /// Newest metadata version in which we know our way around.
        const METADATA_VERSION: u32 = 15;
        let (spec_version, transaction_version) = self.version(hash).await?;
        let function = "Metadata_metadata_at_version";
        let answer = self
            .state_call(hash, function, &METADATA_VERSION.to_le_bytes())
            .await?;
        let unfit = |what: String| ChainError::Outgrown { spec_version, what };
        let bytes = Option::<Vec<u8>>::decode(&mut answer.as_slice())
            .ok()
            .flatten()
            .ok_or_else(|| unfit(format!("it has no metadata of version {METADATA_VERSION}")))?;
        let metadata = Metadata::decode_from(&bytes)
            .map_err(|error| unfit(format!("its metadata cannot be read: {error}")))?;
        Ok(Runtime::new(
            spec_version,
            transaction_version,
            Arc::new(metadata),
        ))
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

/// Whether a node says that it does not have a block's state. Its words count, not the code: that is the
/// same for whatever goes wrong in its database or in a runtime. The words are those of `sc-client-db`, in an
/// error of `sp-blockchain` or, where a runtime is asked, of `sp-api`.
fn is_pruned(message: &str) -> bool {
    const WORDS: [&str; 3] = [
        "State already discarded",
        "UnknownBlock: ",
        "Api called for an unknown Block: ",
    ];
    WORDS.into_iter().any(|words| message.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nodes_words_say_that_a_state_is_gone() {
        let gone = [
            "Client error: UnknownBlock: State already discarded for 0x01",
            "Client error: UnknownBlock: Header was not found in the database: 0x01",
            "Client error: Api called for an unknown Block: State already discarded for 0x01",
            "Cannot resolve a block range ['0x01' ... 'None]. UnknownBlock: Header was not found in the database",
        ];
        assert!(gone.into_iter().all(is_pruned));
        let others = [
            "Client error: Execution failed: Execution aborted due to trap",
            "Client error: Execution failed: Exported method TaskApi_task is not found",
            "Client error: Database error: I/O error",
            "Client error: Runtime :code missing in storage",
        ];
        assert!(!others.into_iter().any(is_pruned));
    }
}
