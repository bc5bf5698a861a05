//! A node made up for tests: it answers over a real WebSocket what the test tells it to, true or not.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use codec::{Compact, Encode};
use jsonrpsee::{
    PendingSubscriptionSink, SubscriptionSink,
    core::server::{RpcModule, SubscriptionMessage},
    server::{Server, ServerHandle},
    types::ErrorObjectOwned,
};
use serde_json::{Value, json};
use sp_core::H256;
use sp_crypto_hashing::{blake2_256, twox_128};
use tokio::sync::watch;

use super::{fixture, pool::Answer};
use crate::{entries::Entry, runtime::Runtime};

/// What a node knows and does.
pub struct State {
    pub genesis: H256,
    pub best: u32,
    pub finalized: u32,
    /// Which fork blocks from 101 on are of.
    pub fork: u8,
    pub is_syncing: bool,
    /// Those of the chain's specification.
    pub properties: Value,
    /// Knows no block's header.
    pub is_headless: bool,
    /// Answers every question about state with nothing.
    pub is_empty: bool,
    /// Says that the state of these blocks is gone.
    pub pruned: Range<u32>,
    /// Has no block's extrinsics.
    pub is_bodiless: bool,
    /// Answers this method or this function of the runtime with an error in these words.
    pub failing: Option<(&'static str, &'static str)>,
    pub spec_name: &'static str,
    pub spec_version: u32,
    pub runtime: Vec<u8>,
    /// The runtime that made the first blocks.
    pub older: Option<Older>,
    /// What functions of the runtime answer.
    pub functions: BTreeMap<&'static str, Vec<u8>>,
    /// Which of them were called, in the state of which block, and with what.
    pub called: Vec<(&'static str, u32, Vec<u8>)>,
    pub storage: BTreeMap<Vec<u8>, Vec<u8>>,
    /// What is under a key in one block's state alone.
    pub changed: BTreeMap<(u32, Vec<u8>), Vec<u8>>,
    /// Extrinsics by block.
    pub blocks: BTreeMap<u32, Vec<Vec<u8>>>,
    /// What happens to the extrinsics to come; afterwards they are taken.
    pub answers: VecDeque<Answer>,
    /// How many questions to come are met with the rate limit.
    pub limited: u32,
    /// Extrinsics whose signatures are not good any more.
    pub dead: Vec<Vec<u8>>,
    /// Extrinsics that the pool took and that are in no block.
    pub held: Vec<Vec<u8>>,
    /// Every extrinsic that was handed over.
    pub handed_over: Vec<Vec<u8>>,
    /// The signer's nonce by the chain.
    pub nonce: u32,
    /// What the pool says it is, if not the same.
    pub pool_nonce: Option<u64>,
    /// A question that it takes so long to answer.
    pub slow: Option<(&'static str, Duration)>,
    /// Questions answered, by method.
    pub asked: BTreeMap<String, u32>,
}

/// A runtime before the present one.
pub struct Older {
    /// The last block that it made: the present one is in that block's state.
    pub last: u32,
    pub spec_version: u32,
    pub runtime: Vec<u8>,
}

/// A node that runs.
#[derive(Clone)]
pub struct Node {
    pub url: String,
    state: Arc<Mutex<State>>,
    heads: watch::Sender<(u32, u32)>,
    handle: ServerHandle,
}

type Answered = Result<Value, ErrorObjectOwned>;

impl Node {
    pub async fn start(genesis: u8) -> Self {
        let state = State {
            genesis: H256([genesis; 32]),
            best: 100,
            finalized: 98,
            fork: 0,
            is_syncing: false,
            properties: json!({ "isTestnet": true, "tokenSymbol": "SURE" }),
            is_headless: false,
            is_empty: false,
            pruned: 0..0,
            is_bodiless: false,
            failing: None,
            spec_name: "surety",
            spec_version: fixture::SPEC_VERSION,
            runtime: fixture::metadata(fixture::pallets(scale_info::meta_type::<fixture::AuctionCall>())),
            older: None,
            functions: BTreeMap::new(),
            called: Vec::new(),
            storage: BTreeMap::new(),
            changed: BTreeMap::new(),
            blocks: BTreeMap::new(),
            answers: VecDeque::new(),
            limited: 0,
            dead: Vec::new(),
            held: Vec::new(),
            handed_over: Vec::new(),
            nonce: 0,
            pool_nonce: None,
            slow: None,
            asked: BTreeMap::new(),
        };
        let (heads, _) = watch::channel((100, 98));
        let server = Server::builder().build("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", server.local_addr().unwrap());
        let state = Arc::new(Mutex::new(state));
        let handle = server.start(module(Context {
            state: state.clone(),
            heads: heads.clone(),
        }));
        Self {
            url,
            state,
            heads,
            handle,
        }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        let heads = (state.best, state.finalized);
        drop(state);
        self.heads.send_replace(heads);
    }

    /// Tells whoever follows final blocks of one that is none; questions are answered as before.
    pub fn announce(&self, finalized: u32) {
        let best = self.state().best;
        self.heads.send_replace((best, finalized));
    }

    pub fn script(&self, answers: impl IntoIterator<Item = Answer>) {
        self.state().answers.extend(answers);
    }

    pub fn stop(&self) {
        let _ = self.handle.stop();
    }

    pub fn asked(&self, method: &str) -> u32 {
        self.state().asked.get(method).copied().unwrap_or_default()
    }

    /// Puts a value into the state of all blocks.
    pub fn put(&self, runtime: &Runtime, entry: Entry, keys: &[&[u8]], value: Vec<u8>) {
        let key = runtime.key(entry, keys).unwrap();
        self.state().storage.insert(key, value);
    }
}

impl State {
    pub fn hash(&self, number: u32) -> H256 {
        match number {
            0 => self.genesis,
            _ => H256(blake2_256(&self.header_bytes(number))),
        }
    }

    fn header_bytes(&self, number: u32) -> Vec<u8> {
        let root = self.root(number);
        (self.genesis, Compact(number), root, H256::zero(), Compact(0u32)).encode()
    }

    fn root(&self, number: u32) -> H256 {
        H256([if number > 100 { self.fork } else { 0 }; 32])
    }

    fn header(&self, number: u32) -> Value {
        json!({
            "parentHash": self.genesis,
            "number": format!("{number:#x}"),
            "stateRoot": self.root(number),
            "extrinsicsRoot": H256::zero(),
            "digest": { "logs": [] },
        })
    }

    fn number(&self, hash: Option<H256>) -> Option<u32> {
        let Some(hash) = hash else {
            return Some(self.best);
        };
        (0..=self.best).rev().find(|number| self.hash(*number) == hash)
    }

    fn value(&self, key: &[u8], number: u32) -> Option<Vec<u8>> {
        if self.is_empty {
            return None;
        }
        /// Made once: keys are asked for often.
        static RUNTIME: OnceLock<Runtime> = OnceLock::new();
        let runtime = RUNTIME.get_or_init(fixture::runtime);
        if key == runtime.key(Entry::Number, &[]).unwrap() {
            return Some(number.encode());
        }
        if key == [twox_128(b"System"), twox_128(b"LastRuntimeUpgrade")].concat() {
            let wrote = self.runtime_of(number).0;
            return Some((Compact(wrote), "surety").encode());
        }
        if key.starts_with(&runtime.prefix(Entry::Account)) && !self.storage.contains_key(key) {
            return Some((self.nonce, [0u32; 3], [0u128; 4]).encode());
        }
        let changed = self.changed.get(&(number, key.to_vec()));
        changed.or_else(|| self.storage.get(key)).cloned()
    }

    /// Version and metadata of the runtime that made a block.
    fn runtime_of(&self, number: u32) -> (u32, &[u8]) {
        let older = self.older.as_ref().filter(|older| number <= older.last);
        let older = older.map(|older| (older.spec_version, older.runtime.as_slice()));
        older.unwrap_or((self.spec_version, &self.runtime))
    }

    /// The same of the runtime in a block's state, which makes the block after it.
    fn runtime_after(&self, number: u32) -> (u32, &[u8]) {
        self.runtime_of(number + 1)
    }

    fn check_state(&self, hash: Option<H256>) -> Result<u32, ErrorObjectOwned> {
        let number = self
            .number(hash)
            .ok_or_else(|| client_error("UnknownBlock: Header was not found in the database"))?;
        match self.pruned.contains(&number) {
            true => Err(client_error("UnknownBlock: State already discarded")),
            false => Ok(number),
        }
    }

    /// As nodes do: whatever goes wrong, under the same code.
    fn check_working(&self, what: &str) -> Result<(), ErrorObjectOwned> {
        match self.failing {
            Some((failing, words)) if failing == what => Err(client_error(words)),
            _ => Ok(()),
        }
    }

    fn answer(&mut self, method: &str, params: &Value) -> Answered {
        *self.asked.entry(method.into()).or_default() += 1;
        if self.limited > 0 {
            self.limited -= 1;
            return Err(ErrorObjectOwned::owned(
                -32999,
                "RPC rate limit exceeded",
                None::<()>,
            ));
        }
        self.check_working(method)?;
        match method.starts_with("state_") {
            true => self.answer_of_state(method, params),
            false => Ok(self.answer_of_blocks(method, params)),
        }
    }

    fn answer_of_blocks(&self, method: &str, params: &Value) -> Value {
        match method {
            "chain_getBlockHash" => match params[0].as_u64() {
                Some(number) if number > self.best.into() => Value::Null,
                Some(number) => json!(self.hash(number as u32)),
                None => json!(self.hash(self.best)),
            },
            "chain_getFinalizedHead" => json!(self.hash(self.finalized)),
            "chain_getHeader" => match self.number(hash_at(params, 0)) {
                Some(number) if !self.is_headless => self.header(number),
                _ => Value::Null,
            },
            "chain_getBlock" => match self.number(hash_at(params, 0)) {
                Some(number) if !self.is_bodiless => {
                    let extrinsics = self.blocks.get(&number).cloned().unwrap_or_default();
                    let extrinsics: Vec<_> = extrinsics.iter().map(|bytes| to_hex(bytes)).collect();
                    let block = json!({ "header": self.header(number), "extrinsics": extrinsics });
                    json!({ "block": block, "justifications": null })
                }
                _ => Value::Null,
            },
            "system_health" => {
                json!({ "isSyncing": self.is_syncing, "peers": 1, "shouldHavePeers": true })
            }
            "system_properties" => self.properties.clone(),
            "system_accountNextIndex" => json!(self.pool_nonce.unwrap_or(self.nonce.into())),
            other => panic!("{other} is not expected"),
        }
    }

    fn answer_of_state(&mut self, method: &str, params: &Value) -> Answered {
        Ok(match method {
            "state_getRuntimeVersion" => {
                let number = self.check_state(hash_at(params, 0))?;
                json!({
                    "specName": self.spec_name,
                    "specVersion": self.runtime_after(number).0,
                    "transactionVersion": fixture::TRANSACTION_VERSION,
                })
            }
            "state_call" => {
                let number = self.check_state(hash_at(params, 2))?;
                to_hex(&self.call(params, number)?)
            }
            "state_getStorage" => {
                let number = self.check_state(hash_at(params, 1))?;
                let value = self.value(&from_hex(&params[0]), number);
                value.map_or(Value::Null, |value| to_hex(&value))
            }
            "state_queryStorageAt" => {
                let number = self.check_state(hash_at(params, 1))?;
                let keys = params[0].as_array().cloned().unwrap_or_default();
                let value = |key: &Value| self.value(&from_hex(key), number).map(|value| to_hex(&value));
                let changes: Vec<_> = keys.iter().map(|key| json!([key, value(key)])).collect();
                json!([{ "block": self.hash(number), "changes": changes }])
            }
            "state_getKeysPaged" => {
                self.check_state(hash_at(params, 3))?;
                let (prefix, start) = (from_hex(&params[0]), from_hex(&params[2]));
                let count = params[1].as_u64().unwrap_or_default() as usize;
                let keys = self.storage.keys().filter(|_| !self.is_empty);
                let keys = keys.filter(|key| key.starts_with(&prefix) && **key > start);
                json!(keys.take(count).map(|key| to_hex(key)).collect::<Vec<_>>())
            }
            other => panic!("{other} is not expected"),
        })
    }

    /// What a function of the runtime answers.
    fn call(&mut self, params: &Value, number: u32) -> Result<Vec<u8>, ErrorObjectOwned> {
        let function = params[0].as_str().unwrap_or_default();
        self.check_working(function)?;
        if function == "Metadata_metadata_at_version" {
            return Ok(Some(self.runtime_after(number).1).encode());
        }
        let found = self.functions.get_key_value(function);
        let answer = found.map(|(name, answer)| {
            self.called.push((*name, number, from_hex(&params[1])));
            answer.clone()
        });
        answer.ok_or_else(|| {
            client_error(&format!(
                "Execution failed: Exported method {function} is not found"
            ))
        })
    }
}

fn client_error(words: &str) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(4003, format!("Client error: {words}"), None::<()>)
}

fn hash_at(params: &Value, at: usize) -> Option<H256> {
    serde_json::from_value(params[at].clone()).ok()
}

fn from_hex(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap_or_default().trim_start_matches("0x")).unwrap_or_default()
}

fn to_hex(bytes: &[u8]) -> Value {
    json!(format!("0x{}", hex::encode(bytes)))
}

#[derive(Clone)]
pub(super) struct Context {
    state: Arc<Mutex<State>>,
    pub heads: watch::Sender<(u32, u32)>,
}

impl Context {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const METHODS: [&str; 12] = [
    "chain_getBlockHash",
    "chain_getFinalizedHead",
    "chain_getHeader",
    "chain_getBlock",
    "system_health",
    "system_properties",
    "system_accountNextIndex",
    "state_getRuntimeVersion",
    "state_call",
    "state_getStorage",
    "state_queryStorageAt",
    "state_getKeysPaged",
];

fn module(context: Context) -> RpcModule<Context> {
    let mut module = RpcModule::new(context);
    for method in METHODS {
        module
            .register_async_method(method, move |params, context, _| async move {
                let params: Value = params.parse().unwrap_or_default();
                let slow = context.state().slow;
                let answer = context.state().answer(method, &params);
                if let Some((_, pause)) = slow.filter(|(slow, _)| *slow == method) {
                    tokio::time::sleep(pause).await;
                }
                answer
            })
            .unwrap();
    }
    register_pool(&mut module);
    let finalized = [
        "chain_subscribeFinalizedHeads",
        "chain_finalizedHead",
        "chain_unsubscribeFinalizedHeads",
    ];
    let best = [
        "chain_subscribeNewHeads",
        "chain_newHead",
        "chain_unsubscribeNewHeads",
    ];
    register_heads(&mut module, finalized, |(_, finalized)| finalized);
    register_heads(&mut module, best, |(best, _)| best);
    module
}

fn register_pool(module: &mut RpcModule<Context>) {
    module
        .register_subscription(
            "author_submitAndWatchExtrinsic",
            "author_extrinsicUpdate",
            "author_unwatchExtrinsic",
            |params, pending: PendingSubscriptionSink, context, _| async move {
                let params: Value = params.parse().unwrap_or_default();
                match context.take(from_hex(&params[0])) {
                    Err(error) => pending.reject(error).await,
                    // As long as it is pending, nobody is answered.
                    Ok(None) => std::future::pending().await,
                    Ok(Some(told)) => {
                        let sink = pending.accept().await.unwrap();
                        for status in told {
                            tell(&sink, &status).await;
                        }
                        sink.closed().await;
                    }
                }
            },
        )
        .unwrap();
}

/// One of the two subscriptions to blocks: `height` picks its own out of the best and the finalised one's.
fn register_heads(
    module: &mut RpcModule<Context>,
    [subscribe, name, unsubscribe]: [&'static str; 3],
    height: fn((u32, u32)) -> u32,
) {
    module
        .register_subscription(
            subscribe,
            name,
            unsubscribe,
            move |_, pending: PendingSubscriptionSink, context, _| async move {
                *context.state().asked.entry(subscribe.into()).or_default() += 1;
                let sink = pending.accept().await.unwrap();
                let mut heads = context.heads.subscribe();
                loop {
                    let number = height(*heads.borrow_and_update());
                    let header = context.state().header(number);
                    tell(&sink, &header).await;
                    tokio::select! {
                        changed = heads.changed() => if changed.is_err() { return },
                        () = sink.closed() => return,
                    }
                }
            },
        )
        .unwrap();
}

async fn tell(sink: &SubscriptionSink, value: &Value) {
    // Whoever listened may have left.
    let _ = sink.send(SubscriptionMessage::from_json(value).unwrap()).await;
}
