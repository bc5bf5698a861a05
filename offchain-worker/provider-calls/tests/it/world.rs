//! A provider that stands on a chain in memory, with engines that are real and small.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use prometheus::TextEncoder;
use surety_chain_client::{
    AccountId, Call, Chain, DemandView, FakeChain, FakeDemand, FakeState, Funds, Signer, Until,
};
use surety_channel_calls::payer::Wanted;
use surety_channels::{ChannelId, End, Ending, Request, SignedChunkStatement, view};
use surety_engine::{
    Devices, Engine, Job, Outcome,
    exact::{ExactBert, ExactLlama},
};
use surety_journal::CallStore;
use surety_models::Form;
use surety_proofs::SegmentOpening;
use surety_provider_calls::{
    CallsConfig, CallsError, Fees, Line, Metrics, Models, Owed, Parts, Registry, facts, run,
};
use surety_types::{
    ModelId,
    input::{IdBounds, Settings, encode_items, encode_prompt},
    model::Operation,
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::sleep,
};

use crate::{
    client::{Calls, Client, hash},
    generating::{engine_stopped_by, quiet},
    synthetic::{self, Dice, END},
};

pub const TOKEN: u128 = 10;
pub const ITEM: u128 = 50;
/// Calls cost nothing here.
const NO_FEES: Fees = Fees {
    show: 0,
    demand: 0,
    show_point: 0,
    batch: 0,
    part: 0,
};
const DEPOSIT: u128 = 1_000_000;
const EXPIRY: u32 = 5_000;

pub fn signer(uri: &str) -> Signer {
    Signer::from_uri(uri).unwrap()
}

pub struct World {
    pub chain: FakeChain,
    pub stash: Signer,
    pub agent: Signer,
    pub payer: Signer,
    pub key: Signer,
    pub channel: ChannelId,
    pub decoder: Arc<ExactLlama>,
    /// The same model, where the provider has it on something else.
    pub elsewhere: Option<Arc<dyn Engine>>,
    /// What it runs on.
    pub devices: Devices,
    pub encoder: Arc<ExactBert>,
    pub config: CallsConfig,
    pub takes_new: bool,
    /// What stands aside for something else.
    pub aside: Arc<Mutex<Vec<Operation>>>,
    /// What is kept for something else, and for what is sold here.
    pub kept_for_others: watch::Sender<Option<u128>>,
    pub kept: watch::Sender<Option<u128>>,
    pub owed: watch::Sender<Option<Owed>>,
    home: tempfile::TempDir,
}

/// A process.
pub struct Running<E> {
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), E>>,
}

impl<E: std::fmt::Debug + Send + 'static> Running<E> {
    pub fn start<F>(run: impl FnOnce(watch::Receiver<bool>) -> F) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(run(stopped));
        Self { stop, task }
    }

    /// Ends it as an operator does.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        self.task.await.unwrap().unwrap();
    }

    /// Ends it without a word.
    pub async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}

/// A journal, once the last process has let go of it.
pub async fn journal(path: &Path) -> CallStore {
    for _ in 0..500 {
        match CallStore::open(path) {
            Ok(store) => return store,
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
    panic!("the journal is locked");
}

/// A provider's process.
pub struct Process {
    pub lines: mpsc::Sender<Line>,
    figures: Registry,
    running: Running<CallsError>,
}

impl Process {
    /// Whether its figures have this line.
    pub fn shows(&self, line: &str) -> bool {
        let figures = TextEncoder::new().encode_to_string(&self.figures.gather());
        figures.unwrap().lines().any(|shown| shown == line)
    }

    pub async fn stop(self) {
        self.running.stop().await;
    }

    pub async fn kill(self) {
        self.running.kill().await;
    }
}

impl World {
    /// A provider that stands and offers, and a payer with a channel to it.
    pub async fn new(stop_ids: &[u32]) -> Self {
        let [stash, agent, payer, key] = ["//Stash", "//Agent", "//Payer", "//Key"].map(signer);
        let chain = FakeChain::new();
        chain.change(|state| {
            let of = stash.account().clone();
            state.agents.insert(agent.account().clone(), of);
            for account in [&stash, &payer, &key] {
                let free = 10 * DEPOSIT;
                state
                    .funds
                    .insert(account.account().clone(), Funds { free, held: 0 });
            }
            state.channels.rules.batch_window = 10;
            state.channels.rules.closing_period = 60;
        });
        let mut stop = stop_ids.to_vec();
        stop.push(END);
        let encoder = synthetic::bert(3);
        let manifest = synthetic::manifest(encoder.family(), &encoder);
        let mut world = Self {
            chain,
            stash,
            agent,
            payer,
            key,
            channel: 0,
            decoder: Arc::new(engine_stopped_by(synthetic::llama(30, true), &stop)),
            elsewhere: None,
            devices: Devices::default(),
            encoder: Arc::new(ExactBert::new(manifest, encoder).unwrap()),
            config: CallsConfig {
                batch_blocks: 2,
                redeem_min: 1,
                margin: 5,
                chunk_tokens_max: 16,
                threads: 1,
                memory_bytes_max: 1 << 28,
                fees: NO_FEES,
                ..CallsConfig::default()
            },
            takes_new: true,
            aside: Arc::default(),
            kept_for_others: watch::Sender::new(Some(0)),
            kept: watch::Sender::new(None),
            owed: watch::Sender::new(None),
            home: tempfile::tempdir().unwrap(),
        };
        let cap = DEPOSIT;
        world.submit(&world.stash, Call::Stand { lock: cap, cap }).await;
        for (model, operation, unit_price) in [
            (world.writer(), Operation::Generate, TOKEN),
            (world.embedder(), Operation::Embed, ITEM),
        ] {
            let offer = Call::Offer {
                model,
                operation,
                unit_price,
                places: 16,
                region: None,
            };
            world.submit(&world.stash, offer).await;
        }
        world.chain.finalize();
        world.channel = 0;
        world
    }

    pub fn writer(&self) -> ModelId {
        self.decoder.manifest().id()
    }

    pub fn embedder(&self) -> ModelId {
        self.encoder.manifest().id()
    }

    pub async fn submit(&self, signer: &Signer, call: Call) {
        let submitted = self.chain.submit(signer, call, Until::Included.into()).await;
        submitted.unwrap();
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Starts the provider.
    pub async fn start(&self) -> Process {
        let decoder: Arc<dyn Engine> = match &self.elsewhere {
            Some(elsewhere) => elsewhere.clone(),
            None => self.decoder.clone(),
        };
        let engines = [decoder, self.encoder.clone()];
        let figures = Registry::new();
        let aside = self.aside.clone();
        let parts = Parts {
            chain: Arc::new(self.chain.clone()),
            channels: Arc::new(self.chain.clone()),
            signer: self.agent.clone(),
            stash: self.stash.account().clone(),
            store: Arc::new(self.store().await),
            models: Models::start(engines, self.devices.clone(), &self.config).unwrap(),
            config: self.config.clone(),
            metrics: Metrics::new(&figures).unwrap(),
            takes_new: self.takes_new,
            stands_aside: Arc::new(move |operation| aside.lock().unwrap().contains(&operation)),
            kept_for_others: self.kept_for_others.subscribe(),
            kept: self.kept.clone(),
            owed: self.owed.clone(),
        };
        let (lines, taken) = mpsc::channel(4);
        let running = Running::start(|stopped| run(parts, Calls(taken), stopped));
        Process {
            lines,
            figures,
            running,
        }
    }

    pub async fn store(&self) -> CallStore {
        journal(&self.home().join("calls.redb")).await
    }

    /// Blocks go on until something holds of the newest.
    pub async fn until(&self, what: &str, holds: impl Fn(&FakeState) -> bool) {
        for _ in 0..2_000 {
            if self.chain.change(|state| holds(state)) {
                self.chain.finalize();
                return;
            }
            self.chain.finalize();
            sleep(Duration::from_millis(5)).await;
        }
        panic!("it does not come: {what}; calls: {:?}", self.calls());
    }

    /// A verifier demands a point of the first batch, once that is there, and is shown it in time.
    pub async fn demand_point(&self, point: u128) {
        let (stash, verifier) = (self.stash.account().clone(), self.payer.account().clone());
        let batched = |state: &FakeState| state.channels.batches.contains_key(&(stash.clone(), 0));
        self.until("there is a batch", batched).await;
        self.chain.change(|state| {
            let view = DemandView {
                provider: stash.clone(),
                demander: verifier.clone(),
                wanted: view::Wanted::Point { batch: 0, point },
                until: state.clock + 50,
            };
            let by = verifier.clone();
            let of = (stash.clone(), verifier.clone());
            state
                .channels
                .demands
                .insert(of, vec![FakeDemand { view, by, surplus: 0 }]);
        });
        self.until("it is shown", |state| state.channels.demands.is_empty())
            .await;
    }

    /// What the agent has called.
    pub fn calls(&self) -> Vec<&'static str> {
        let calls = self.chain.calls().into_iter();
        let own = calls.filter(|(who, _)| who == self.agent.account());
        own.map(|(_, call)| call.name().call).collect()
    }

    /// Batches that the agent has sent.
    pub fn commits(&self) -> usize {
        let calls = self.calls();
        calls.iter().filter(|call| **call == "commit_batch").count()
    }

    /// A payer whose channel is final, once the provider's statements count.
    pub async fn client(&mut self, process: &Process) -> Arc<Client> {
        let (stash, agent) = (self.stash.account().clone(), self.agent.account().clone());
        self.until("the agent signs", |state| {
            let standing = state.channels.standings.get(&stash);
            standing.is_some_and(|standing| standing.signers.contains(&agent))
        })
        .await;
        let open = Call::Open {
            payee: stash,
            key: self.key.account().clone(),
            deposit: DEPOSIT,
            expiry: EXPIRY,
        };
        self.submit(&self.payer, open).await;
        let view = self
            .chain
            .change(|state| state.channels.open.values().next_back().cloned());
        let view = view.unwrap();
        self.channel = view.channel;
        let genesis = self.chain.info().genesis;
        let client = Client::new(&view, vec![agent], &self.key, genesis, process.lines.clone());
        self.settled().await;
        client
    }

    /// The provider has seen a block that is final by now: it takes what pays it by that.
    pub async fn settled(&self) {
        for _ in 0..20 {
            self.chain.finalize();
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// The same once blocks are followed anew, a second after that was asked for.
    pub async fn followed_anew(&self) {
        sleep(Duration::from_millis(1_100)).await;
        self.settled().await;
    }

    pub fn paid(&self) -> u128 {
        let channel = self.channel;
        self.chain.change(|state| {
            state
                .channels
                .open
                .get(&channel)
                .map_or(0, |view| view.purse.paid)
        })
    }

    /// A prompt that goes on for so many tokens.
    pub fn text(&self, seed: u64, prompt: usize, tokens: u32, chunk_units: u32) -> Wanted {
        let dice = &mut Dice::new(seed);
        let ids: Vec<u32> = (0..prompt).map(|_| dice.below(256) as u32).collect();
        let settings = Settings {
            max_tokens: tokens,
            temperature_milli: 800,
            top_k: 40,
            top_p_milli: 950,
            seed,
        };
        let bounds = IdBounds {
            vocabulary: 260,
            positions: 256,
        };
        let input = encode_prompt(&ids, &settings, &bounds).unwrap();
        let request = Request {
            model: self.writer(),
            operation: Operation::Generate,
            input: hash(&input),
            input_bytes: input.len() as u32,
            units_max: prompt as u32 + tokens,
            unit_price: TOKEN,
        };
        Wanted {
            request,
            input,
            chunk_units,
            facts: facts(self.decoder.manifest()).unwrap(),
            call: None,
        }
    }

    pub fn items(&self, count: u32) -> Wanted {
        let items: Vec<Vec<u32>> = (0..count).map(|item| vec![1 + item % 20; 5]).collect();
        let bounds = IdBounds {
            vocabulary: 30,
            positions: 80,
        };
        let input = encode_items(&items, &bounds).unwrap();
        let request = Request {
            model: self.embedder(),
            operation: Operation::Embed,
            input: hash(&input),
            input_bytes: input.len() as u32,
            units_max: count,
            unit_price: ITEM,
        };
        Wanted {
            request,
            input,
            chunk_units: count,
            facts: facts(self.encoder.manifest()).unwrap(),
            call: None,
        }
    }

    /// What an engine by itself makes of it, of so many units.
    pub fn alone(&self, wanted: &Wanted, units_max: u32) -> Outcome {
        let job = Job {
            operation: wanted.request.operation,
            input: wanted.input.clone(),
            units_max,
        };
        match wanted.request.operation {
            Operation::Generate => self.decoder.run(&job, &mut quiet).unwrap(),
            Operation::Embed => self.encoder.run(&job, &mut quiet).unwrap(),
        }
    }

    /// A receipt, and what came with it, claim what an engine by itself does.
    pub fn assert_is_alone(&self, wanted: &Wanted, said: &[u8], receipt: &SignedChunkStatement<AccountId>) {
        let statement = &receipt.statement;
        let Some(Ending { how, trace_root }) = statement.end else {
            panic!("no receipt");
        };
        let units_max = match how {
            End::Stop | End::Length => wanted.request.units_max,
            End::Cut | End::Cancelled => statement.units,
        };
        let alone = self.alone(wanted, units_max);
        let head = alone.output.len() - said.len();
        assert_eq!(alone.output[head..], *said);
        assert_eq!(
            (alone.claim.units, alone.claim.trace_root),
            (statement.units, trace_root)
        );
        let mut unended = alone.output[..head].to_vec();
        if wanted.request.operation == Operation::Generate {
            unended.fill(0);
        }
        unended.extend(said);
        let shown = SegmentOpening::new(&unended, 0);
        assert_eq!(statement.claimed_output(shown.as_ref()), Some(alone.claim.output));
    }
}
