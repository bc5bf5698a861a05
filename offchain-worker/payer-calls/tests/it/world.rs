//! A chain that makes blocks, a network, and those who are on both.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use surety_chain_client::{AccountId, Call, ChannelView, FakeChain, FakeOffer, Funds, Signer, StandingView};
use surety_channel_calls::Model;
use surety_channels::{ChannelId, Demanded, Purse};
use surety_gateway::{
    Embedded, EmbeddingAsk, Generating, GenerationAsk, Receipt, Step, Upstream, UpstreamError, Verdict,
};
use surety_journal::CallStore;
use surety_network::memory::MemoryNet;
use surety_payer_calls::{Config, Patience, Providers, Sold, Spending};
use surety_types::{
    ModelId,
    input::{IdBounds, Settings},
    model::Operation,
    multiaddr::Endpoint,
    provider::{DeviceKind, DeviceProfile, Provider as Registered},
    stake::{Role, StakeRecord},
};
use tempfile::TempDir;
use tokio::{task::JoinHandle, time::timeout};

use crate::provider::{Fault, Provider};

pub const BOUNDS: IdBounds = IdBounds {
    vocabulary: 256,
    positions: 512,
};
pub const ITEM_WIDTH: u32 = 4;
pub const STOP: u32 = 255;
/// Of a unit, in plancks.
pub const PRICE: u128 = 10;
/// What the payer has.
pub const MONEY: u128 = 10_000_000;

pub const SPENDING: Spending = Spending {
    budget: 1_000_000,
    deposit: 20_000,
    least_left: 5_000,
    channels_max: 8,
    unit_price_max: 1_000,
    slack_percent: 25,
    demands_max: 4,
};

pub fn model() -> ModelId {
    ModelId::repeat_byte(4)
}

pub fn facts() -> Model {
    Model {
        bounds: BOUNDS,
        item_bytes: ITEM_WIDTH * 4,
        stop_ids: vec![STOP],
    }
}

pub struct World {
    pub chain: FakeChain,
    pub payer: Signer,
    net: MemoryNet,
    dir: TempDir,
    blocks: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.blocks.abort();
    }
}

fn endpoint(name: &str) -> Endpoint {
    let text = format!("/ip4/127.0.0.1/tcp/4001/p2p/{name:1<52}");
    text.into_bytes().try_into().unwrap()
}

impl World {
    /// A block every few milliseconds: what waits for one waits no longer.
    pub fn new() -> Self {
        Self::with_blocks(Duration::from_millis(25))
    }

    /// A block each time after so long: what follows from one is done before the next.
    pub fn with_blocks(every: Duration) -> Self {
        let chain = FakeChain::new();
        let payer = Signer::from_uri("//Payer").unwrap();
        let money = Funds { free: MONEY, held: 0 };
        chain.change(|state| state.funds.insert(payer.account().clone(), money));
        chain.finalize();
        let making = chain.clone();
        let blocks = tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                making.finalize();
            }
        });
        Self {
            chain,
            payer,
            net: MemoryNet::default(),
            dir: tempfile::tempdir().unwrap(),
            blocks,
        }
    }

    /// No block is made any more but by hand.
    pub async fn stop_blocks(&mut self) {
        self.blocks.abort();
        (&mut self.blocks).await.ok();
    }

    /// A provider that stands behind an offer, and is registered.
    pub fn provider(&self, name: &str, price: u128, fault: Fault) -> Provider {
        let stash = Signer::from_uri(&format!("//{name}")).unwrap().account().clone();
        let agent = Signer::from_uri(&format!("//{name}//agent")).unwrap();
        let (endpoint, key) = (endpoint(name), agent.account().clone());
        let device = DeviceProfile {
            name: b"cpu".to_vec().try_into().unwrap(),
            kind: DeviceKind::Cpu,
            cores: 1,
            memory_mib: 1,
            region: None,
        };
        let registered = Registered {
            device,
            endpoints: vec![endpoint.clone()].try_into().unwrap(),
            last_heartbeat: 0,
        };
        self.chain.change(|state| {
            state.providers.insert(stash.clone(), registered);
            state.agents.insert(key.clone(), stash.clone());
            state.funds.insert(stash.clone(), Funds::default());
            state.stakes.insert(stash.clone(), stake(&key));
            state
                .channels
                .standings
                .insert(stash.clone(), standing(&stash, &key));
            for operation in [Operation::Generate, Operation::Embed] {
                let offer = FakeOffer {
                    unit_price: price,
                    places: 64,
                    busy: 0,
                    reported: None,
                    region: None,
                };
                state
                    .channels
                    .offers
                    .insert((stash.clone(), model(), operation), offer);
            }
        });
        self.chain.finalize();
        let plane = Arc::new(self.net.join(endpoint));
        Provider::start((stash, agent), price, fault, &self.chain, plane)
    }

    /// A provider that cannot be reached.
    pub fn dead(&self, name: &str, price: u128) -> Provider {
        let provider = self.provider(name, price, Fault::None);
        self.net.set_down(&endpoint(name), true);
        provider
    }

    /// A provider's lock is for so much, of which its batches take nothing for long.
    pub fn stands_behind(&self, provider: &Provider, cap: u128) {
        self.chain.change(|state| {
            state.channels.standings.get_mut(&provider.stash).unwrap().cap = cap;
            state.channels.rules.batch_window = 1;
        });
        self.chain.finalize();
    }

    /// Final batches are counted up to a receipt, of answers that cost so much each.
    pub fn counted(&self, receipt: &Receipt, answer: u128) {
        self.chain.change(|state| {
            let purse = &mut state.channels.open.get_mut(&receipt.channel).unwrap().purse;
            purse.next = receipt.nonce + 1;
            purse.counted = u128::from(purse.next) * answer;
        });
        self.chain.finalize();
    }

    /// Somebody else has deposited so much with a provider.
    pub fn others_deposit(&self, provider: &Provider, deposit: u128) -> ChannelId {
        const CHANNEL: ChannelId = 1_000;
        let other = Signer::from_uri("//Other").unwrap().account().clone();
        let of_other = ChannelView {
            channel: CHANNEL,
            payer: other.clone(),
            payee: provider.stash.clone(),
            key: other,
            expiry: 1_000_000,
            purse: Purse::new(CHANNEL, deposit, 0),
            demanded_until: u32::MAX,
            demanded: Demanded::default(),
        };
        self.chain
            .change(|state| state.channels.open.insert(CHANNEL, of_other));
        self.chain.finalize();
        CHANNEL
    }

    pub fn store(&self) -> Arc<CallStore> {
        Arc::new(CallStore::open(&self.dir.path().join("channels.redb")).unwrap())
    }

    /// The journal, unless somebody still has it open.
    pub fn try_store(&self) -> Option<Arc<CallStore>> {
        CallStore::open(&self.dir.path().join("channels.redb"))
            .ok()
            .map(Arc::new)
    }

    pub fn config(&self, store: Arc<CallStore>, spending: Spending) -> Config {
        let sold = Sold {
            model: model(),
            operations: vec![Operation::Generate, Operation::Embed],
            facts: facts(),
        };
        Config {
            chain: Arc::new(self.chain.clone()),
            channels: Arc::new(self.chain.clone()),
            signer: self.payer.clone(),
            plane: Arc::new(self.net.join(endpoint("payer"))),
            store,
            models: BTreeMap::from([("talker".to_owned(), sold)]),
            spending,
            patience: Patience {
                place: Duration::from_secs(10),
                again: Duration::from_millis(50),
                ..Patience::default()
            },
            race: 1,
            tries: None,
            region: None,
        }
    }

    pub async fn payer_with(&self, spending: Spending) -> Providers {
        Providers::start(self.config(self.store(), spending))
            .await
            .unwrap()
    }

    pub async fn payer(&self) -> Providers {
        self.payer_with(SPENDING).await
    }

    /// What the payer has sent, in order.
    pub fn sent(&self) -> Vec<Call> {
        let calls = self.chain.calls().into_iter();
        let own = calls.filter(|(who, _)| who == self.payer.account());
        own.map(|(_, call)| call).collect()
    }

    /// Once the payer has sent what is looked for.
    pub async fn sends<T>(&self, look: impl Fn(&Call) -> Option<T>) -> T {
        self.until(|| self.sent().iter().find_map(&look)).await
    }

    /// Once something is there, by some block.
    pub async fn until<T>(&self, look: impl Fn() -> Option<T>) -> T {
        let looking = async {
            loop {
                if let Some(found) = look() {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let found = timeout(Duration::from_secs(20), looking).await;
        found.unwrap_or_else(|_| panic!("nothing of it in time: {:?}", self.sent()))
    }

    /// How many channels the payer has opened.
    pub fn opened(&self) -> usize {
        let sent = self.sent().into_iter();
        sent.filter(|call| matches!(call, Call::Open { .. })).count()
    }

    /// Once so many more blocks are final.
    pub async fn blocks(&self, count: u32) {
        let now = || self.chain.change(|state| state.clock);
        let until = now() + count;
        self.until(|| (now() >= until).then_some(())).await;
    }

    /// What is deposited in all channels that were ever opened, as far as they were not paid back.
    pub fn deposited(&self) -> u128 {
        let deposits = self.sent().into_iter().map(|call| match call {
            Call::Open { deposit, .. } => deposit,
            Call::TopUp { amount, .. } => amount,
            _ => 0,
        });
        deposits.sum()
    }
}

fn stake(agent: &AccountId) -> StakeRecord<AccountId, u128, u32> {
    StakeRecord {
        role: Role::Provider,
        bonded: 1_000_000_000,
        locked: 0,
        unlocking: Default::default(),
        agent: Some(agent.clone()),
        settled_at: 0,
    }
}

fn standing(stash: &AccountId, agent: &AccountId) -> StandingView {
    StandingView {
        provider: stash.clone(),
        lock: 1_000_000,
        cap: 1_000_000,
        open: 0,
        signers: vec![agent.clone()],
        oldest: 0,
        unfinished: 0,
        next: 0,
        batched_at: 0,
        channels: 0,
        disputes: 0,
        demands: 0,
        since_channel: 0,
        since_batch: 0,
        needed_lock: Some(0),
        is_leaving: false,
    }
}

/// A prompt of so many tokens goes on for so many, for as much as that costs at [`PRICE`] and a quarter more.
pub fn text(prompt: u32, tokens: u32, seed: u64) -> GenerationAsk {
    GenerationAsk {
        call: 1,
        model: "talker".into(),
        prompt: (1..=prompt).map(|id| id % 250).collect(),
        settings: Settings {
            max_tokens: tokens,
            temperature_milli: 0,
            top_k: 0,
            top_p_milli: 1_000,
            seed,
        },
        price_max: u128::from(prompt + tokens) * PRICE * 5 / 4,
    }
}

/// Once a receipt has come to this.
pub async fn becomes(payer: &Providers, receipt: &Receipt, verdict: Verdict) {
    let told = async {
        while payer.verdict(receipt).await != verdict {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), told).await.unwrap();
}

/// Who has failed, and what it may have been paid.
pub fn failed(error: UpstreamError) -> (String, u128) {
    match error {
        UpstreamError::Failed {
            provider,
            spent,
            receipts,
            ..
        } => {
            let signed: u128 = receipts.iter().map(|receipt| receipt.price).sum();
            (provider, signed + spent)
        }
        other => panic!("{other}"),
    }
}

/// All of an answer.
pub async fn read(run: &mut dyn Generating) -> Result<(Vec<u32>, Receipt), (Vec<u32>, UpstreamError)> {
    let mut ids = Vec::new();
    loop {
        match run.next().await {
            Ok(Step::Tokens(more)) => ids.extend(more),
            Ok(Step::Done(receipt)) => return Ok((ids, receipt)),
            Err(error) => return Err((ids, error)),
        }
    }
}

pub async fn ask(
    payer: &Providers,
    ask: &GenerationAsk,
) -> Result<(Vec<u32>, Receipt), (Vec<u32>, UpstreamError)> {
    let begun = payer.generate(ask, &[]).await;
    read(&mut *begun.map_err(|error| (Vec::new(), error))?).await
}

/// Vectors of as many of the items as one request has.
pub async fn embed(
    payer: &Providers,
    items: &[Vec<u32>],
    price_max: u128,
) -> Result<Embedded, UpstreamError> {
    let ask = EmbeddingAsk {
        call: 1,
        model: "talker",
        items,
        price_max,
    };
    payer.embed(&ask, &[]).await
}

/// The receipt of an answer of so many tokens to ten, for twice as much as [`text`] pays at
/// most.
pub async fn answered(payer: &Providers, tokens: u32) -> Receipt {
    ask(payer, &dear(tokens)).await.unwrap().1
}

/// The same once somebody stands behind more, and nobody did.
pub async fn answered_once_covered(payer: &Providers, tokens: u32) -> Receipt {
    let asking = async {
        loop {
            match ask(payer, &dear(tokens)).await {
                // Or while its batches are open.
                Err((_, UpstreamError::Uncovered | UpstreamError::NoProvider)) => {
                    tokio::time::sleep(Duration::from_millis(5)).await
                }
                asked => return asked.unwrap().1,
            }
        }
    };
    timeout(Duration::from_secs(20), asking).await.unwrap()
}

fn dear(tokens: u32) -> GenerationAsk {
    let mut asked = text(10, tokens, 1);
    asked.price_max *= 2;
    asked
}
