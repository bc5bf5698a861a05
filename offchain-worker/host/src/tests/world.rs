//! A chain, a client, a rival and a provider, all in memory; only the journal is on disk.

mod neighbour;
mod served;
mod verifier;
mod waits;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, Weak},
};

use async_trait::async_trait;
use surety_access::Gate;
use surety_chain_client::{Call, Chain, FakeChain, Hash, ProviderTerms, Signer, Until};
use surety_engine::{Devices, Engine, EnginePool, PoolConfig};
use surety_journal::{Journal, RecordLog};
use surety_network::{
    AccessGate, Announcement, Asked, Bytes, DataPlane, Decision, Readers,
    memory::{MemoryNet, MemoryPlane},
};
use surety_proofs::CommitStatement;
use surety_types::{
    ContentHash, TaskId,
    model::Operation,
    multiaddr::Endpoint,
    provider::{DeviceProfile, Provider as ProviderRecord},
    region::Region,
    speed::Requirements,
    stake::Role,
    task::TaskSpec,
};
use surety_worker_core::{Config, LARGEST_DEMAND, PriceList, Provider, Rate, Record, SecretSalts};
use tokio::{sync::watch, task::JoinHandle};

use super::engine::Puppet;
use crate::{
    Audits, Beside, Core, Engines, Host, Kept, Pauses, Registration, Speeds, Tools, Traces, Vitals, machine,
};

/// The most that calls are tipped with.
pub const TIP_MAX: u128 = 800;

/// The gate of somebody who serves whoever asks.
pub struct LetsIn;

#[async_trait]
impl AccessGate for LetsIn {
    async fn may_read(&self, _: Asked<'_>) -> Option<Decision> {
        Some(Decision::Allow)
    }
}

pub struct World {
    pub chain: FakeChain,
    pub net: MemoryNet,
    /// Where the provider is.
    endpoint: Endpoint,
    provider_plane: Arc<MemoryPlane>,
    client_plane: Arc<MemoryPlane>,
    rival_plane: Arc<MemoryPlane>,
    auditor_plane: Arc<MemoryPlane>,
    stash: Signer,
    agent: Signer,
    auditor: Signer,
    client: Signer,
    engine: Arc<Puppet>,
    served: OnceLock<Arc<dyn Engine>>,
    devices: OnceLock<Devices>,
    /// Where the provider says that it is, from its next start on.
    region: Mutex<Option<Region>>,
    /// The running provider's.
    journal: Mutex<Weak<Journal>>,
    vitals: Mutex<Option<Arc<Vitals>>>,
    /// What the provider's parts keep of its money.
    pub kept: Kept,
    dir: tempfile::TempDir,
}

pub fn endpoint(name: &str) -> Endpoint {
    Endpoint::try_from(name.as_bytes().to_vec()).unwrap()
}

impl World {
    pub async fn new() -> Self {
        let net = MemoryNet::default();
        let world = Self {
            chain: FakeChain::new(),
            endpoint: endpoint("provider"),
            provider_plane: Arc::new(net.join(endpoint("provider"))),
            client_plane: Arc::new(net.join(endpoint("client"))),
            rival_plane: Arc::new(net.join(endpoint("rival"))),
            auditor_plane: Arc::new(net.join(endpoint("auditor"))),
            net,
            stash: Signer::from_uri("//Stash").unwrap(),
            agent: Signer::from_uri("//Agent").unwrap(),
            auditor: Signer::from_uri("//Auditor//agent").unwrap(),
            client: Signer::from_uri("//Client").unwrap(),
            engine: Arc::default(),
            served: OnceLock::new(),
            devices: OnceLock::new(),
            region: Mutex::default(),
            journal: Mutex::default(),
            vitals: Mutex::default(),
            kept: Kept::default(),
            dir: tempfile::tempdir().unwrap(),
        };
        let client = Arc::new(world.client.account().clone());
        let gate = Gate::of_inputs(Arc::new(world.chain.clone()), client);
        world.client_plane.set_gate(Arc::new(gate));
        world.prepare_provider().await;
        world.prepare_verifier().await;
        world
    }

    /// The agent acts for a stash that is bonded.
    async fn bond(&self, stash: &Signer, agent: &Signer, role: Role) {
        let bond = Call::Bond { role, amount: 1000 };
        let name = Call::SetAgent {
            agent: agent.account().clone(),
        };
        let confirm = Call::ConfirmAgent {
            stash: stash.account().clone(),
        };
        for (signer, call) in [(stash, bond), (stash, name), (agent, confirm)] {
            let sent = self.chain.submit(signer, call, Until::Included.into());
            sent.await.unwrap();
        }
    }

    /// The provider, or whoever has its key, serves this as its output of a task, with a word on it by that
    /// key.
    pub async fn serve(&self, task: TaskId, output: &[u8], key: &Signer) -> ContentHash {
        let hash = self.provider_plane.publish(Bytes::copy_from_slice(output)).await;
        let hash = hash.unwrap();
        let note = (task, self.stash().clone());
        let commitment = self.chain.change(|state| state.commit_notes[&note].commitment);
        let statement = CommitStatement {
            task,
            provider: self.stash().clone(),
            commitment,
            output: hash,
        };
        let signed = key.sign_statement(statement, &self.chain.info().genesis);
        self.provider_plane.set_gate(Arc::new(LetsIn));
        let told = Announcement::new(hash).signed(signed);
        let served = self.provider_plane.announce_output(task, told, Readers::Everyone);
        served.await.unwrap();
        hash
    }

    async fn prepare_provider(&self) {
        self.bond(&self.stash, &self.agent, Role::Provider).await;
        let stash = self.stash().clone();
        self.chain.change(|state| {
            let provider = ProviderRecord {
                device: machine::profile(1),
                endpoints: vec![self.provider_endpoint()].try_into().unwrap(),
                last_heartbeat: 0,
            };
            state.funds.entry(stash.clone()).or_default().free = 100 * LARGEST_DEMAND;
            state.providers.insert(stash, provider);
        });
        self.chain.finalize();
    }

    /// Starts a provider on the journal that is there. It hardly ever beats, so that scripted faults hit
    /// other calls.
    pub fn start(&self) -> Running {
        self.start_beating(1_000_000)
    }

    pub fn start_beating(&self, heartbeat_blocks: u32) -> Running {
        self.start_with(heartbeat_blocks, |host| host)
    }

    /// Starts a provider that keeps its speeds, and measures what it does not know.
    pub fn start_measuring(&self) -> Running {
        let speeds = Speeds::open(self.dir.path());
        self.start_with(1_000_000, |host| host.with_speeds(Some(speeds)))
    }

    pub fn speeds(&self) -> Speeds {
        Speeds::open(self.dir.path())
    }

    /// The file that they are kept in, as far as there is one.
    pub fn speeds_text(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("speeds.json")).unwrap_or_default()
    }

    /// Starts a provider, and gives what has its engines stand aside.
    pub fn start_with_pauses(&self) -> (Running, Pauses) {
        let mut pauses = None;
        let running = self.start_with(1_000_000, |host| {
            pauses = Some(host.tools.engines.pauses().clone());
            host
        });
        (running, pauses.unwrap())
    }

    fn start_with(
        &self,
        heartbeat_blocks: u32,
        with: impl FnOnce(Host<Provider>) -> Host<Provider>,
    ) -> Running {
        self.chain.change(|state| {
            state.provider_terms = Some(ProviderTerms {
                heartbeat_window: heartbeat_blocks * 3,
                commit_window: 300,
                opening_window: 10_800,
            });
        });
        let (journal, records) = self.open_journal();
        let (stop, stopped) = watch::channel(false);
        let host = with(self.host(journal, &records));
        Running {
            stop,
            host: tokio::spawn(async move { host.run(stopped).await.unwrap() }),
        }
    }

    /// The provider's journal.
    pub fn open_journal(&self) -> (Arc<Journal>, Vec<Record>) {
        let journal = Journal::open(&self.journal_path()).unwrap();
        let records = journal.load().unwrap();
        let journal = Arc::new(journal);
        *self.journal.lock().unwrap() = Arc::downgrade(&journal);
        (journal, records)
    }

    /// A provider that writes its records there.
    pub fn host(&self, log: Arc<dyn RecordLog>, records: &[Record]) -> Host<Provider> {
        let core = Provider::new(self.config(), records.to_vec()).unwrap();
        self.host_of(core, log, records)
    }

    /// How the provider works.
    pub fn config(&self) -> Config {
        let rate = Rate {
            price_per_unit: 1,
            units_per_second: 1,
            seconds_ahead: 0,
        };
        let prices = PriceList::new(100_000, 1000)
            .with(self.served().manifest().id(), Operation::Embed, rate)
            .with(self.served().manifest().id(), Operation::Generate, rate);
        Config::new(self.stash().clone(), prices, SecretSalts::new([7; 32]))
    }

    /// The provider with that core.
    pub fn host_of<C: Core>(&self, core: C, log: Arc<dyn RecordLog>, records: &[Record]) -> Host<C> {
        let tools = self.tools();
        let gate = Gate::of_provider(tools.chain.clone(), tools.stash.clone(), tools.outputs.clone());
        self.provider_plane.set_gate(Arc::new(gate));
        *self.vitals.lock().unwrap() = Some(tools.vitals.clone());
        let device = DeviceProfile {
            region: *self.region.lock().unwrap(),
            ..machine::profile(1)
        };
        let beside = Beside::Heartbeat(Registration {
            device,
            endpoints: vec![self.provider_endpoint()].try_into().unwrap(),
        });
        Host::new(tools, beside, core, log, records)
    }

    /// Says where the provider is, from its next start on.
    pub fn say_region(&self, letters: &str) {
        *self.region.lock().unwrap() = letters.parse().ok();
    }

    /// What a provider works with.
    pub fn tools(&self) -> Tools {
        let pool = EnginePool::on(PoolConfig { threads: 1, queue: 4 }, self.devices());
        let vitals = Arc::new(Vitals::new().unwrap());
        Tools {
            chain: Arc::new(self.chain.clone()),
            signer: self.agent.clone(),
            stash: self.stash().clone(),
            plane: self.provider_plane.clone(),
            engines: Engines::new(pool.unwrap(), [self.served()], vitals.clone()),
            traces: Traces::default(),
            audits: Audits::default(),
            outputs: Arc::default(),
            tip_max: TIP_MAX,
            kept: self.kept.clone(),
            vitals,
        }
    }

    /// Posts a task whose input the client serves.
    pub async fn post(&self, input: &[u8]) -> TaskId {
        self.post_for(Operation::Embed, input).await
    }

    pub async fn post_for(&self, operation: Operation, input: &[u8]) -> TaskId {
        self.post_requiring((operation, input), Requirements::default())
            .await
    }

    /// Posts a task for providers that are what is asked for.
    pub async fn post_requiring(
        &self,
        (operation, input): (Operation, &[u8]),
        requirements: Requirements,
    ) -> TaskId {
        let hash = self
            .client_plane
            .publish(Bytes::copy_from_slice(input))
            .await
            .unwrap();
        let spec = TaskSpec {
            model: self.served().manifest().id(),
            operation,
            input: hash,
            input_bytes: input.len() as u32,
            units_max: 10,
            redundancy: 1,
            sources: vec![endpoint("client")].try_into().unwrap(),
            security: Default::default(),
            requirements,
        };
        let call = Call::PostTask { spec, cap: 1000 };
        let posted = self
            .chain
            .submit(&self.client, call, Until::Included.into())
            .await;
        let task = posted.unwrap();
        let task = task.event("TaskAuction", "TaskPosted").unwrap().task().unwrap();
        self.chain.finalize();
        task
    }

    /// What an operator sees of the running provider.
    pub fn vitals(&self) -> Arc<Vitals> {
        self.vitals.lock().unwrap().clone().unwrap()
    }

    /// The provider's stash.
    pub fn stash(&self) -> &surety_chain_client::AccountId {
        self.stash.account()
    }

    pub fn client(&self) -> &Signer {
        &self.client
    }

    pub fn client_plane(&self) -> Arc<MemoryPlane> {
        self.client_plane.clone()
    }

    /// The stash of the verifier.
    pub fn auditor(&self) -> surety_chain_client::AccountId {
        Signer::from_uri("//Auditor").unwrap().account().clone()
    }

    /// Its agent.
    pub fn auditor_agent(&self) -> &Signer {
        &self.auditor
    }

    pub fn auditor_plane(&self) -> Arc<MemoryPlane> {
        self.auditor_plane.clone()
    }

    pub fn provider_plane(&self) -> Arc<MemoryPlane> {
        self.provider_plane.clone()
    }

    /// The key that acts for the provider.
    pub fn agent(&self) -> &Signer {
        &self.agent
    }

    /// The outputs that auditors were to compute again.
    pub fn audited(&self) -> Vec<ContentHash> {
        self.engine.audited()
    }

    pub fn rival_plane(&self) -> Arc<MemoryPlane> {
        self.rival_plane.clone()
    }

    pub fn client_endpoint(&self) -> Endpoint {
        endpoint("client")
    }

    pub fn provider_endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    pub fn engine_runs(&self) -> usize {
        self.engine.runs()
    }

    pub fn is_engine_idle(&self) -> bool {
        self.engine.is_idle()
    }

    /// Lets a generation make so many more tokens.
    pub fn let_tokens(&self, count: usize) {
        self.engine.let_tokens(count);
    }

    /// Lets no generation go on.
    pub fn let_no_tokens(&self) {
        self.engine.let_no_tokens();
    }

    /// What is on disk, while a provider runs or not.
    pub fn records(&self) -> Vec<Record> {
        let running = self.journal.lock().unwrap().upgrade();
        match running {
            Some(journal) => journal.load().unwrap(),
            None => Journal::open(&self.journal_path()).unwrap().load().unwrap(),
        }
    }

    pub fn commitment(&self, task: TaskId) -> Option<Hash> {
        self.records().into_iter().find_map(|record| match record {
            Record::ResultMade {
                task: of, commitment, ..
            } if of == task => Some(commitment),
            _ => None,
        })
    }

    pub fn is_finished(&self, task: TaskId) -> bool {
        let finished = |record: &Record| matches!(record, Record::Finished { task: of, .. } if *of == task);
        self.records().iter().any(finished)
    }

    pub fn journal_path(&self) -> PathBuf {
        self.dir.path().join("journal.redb")
    }
}

/// A provider at work.
pub struct Running {
    stop: watch::Sender<bool>,
    host: JoinHandle<()>,
}

impl Running {
    pub async fn stop(self) {
        self.stop.send(true).unwrap();
        self.host.await.unwrap();
    }

    /// Ends it as kill -9 would: nothing is wound down.
    pub async fn kill(self) {
        self.host.abort();
        assert!(self.host.await.unwrap_err().is_cancelled());
    }
}
