//! A verifier beside a provider, on one chain and one network.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use sp_runtime::FixedU128;
use surety_audit_economics::channels::{POINTS_MEAN_MAX, SURE};
use surety_chain_client::{AccountId, Chain, FakeChain, FakeState, Funds, Signer, sample};
use surety_engine::{Engine, EnginePool, PoolConfig};
use surety_network::memory::{MemoryNet, MemoryPlane};
use surety_point_audits::{AuditsError, Parts, book::Limits, run};
use surety_types::{multiaddr::Endpoint, stake::Role};
use tokio::time::sleep;

use crate::{
    unhurried::{Computing, Unhurried},
    world::{Running, journal, signer},
};

pub const BONDED: u128 = 1_000;
pub const MONEY: u128 = 1_000_000;

pub fn endpoint(name: &str) -> Endpoint {
    Endpoint::try_from(name.as_bytes().to_vec()).unwrap()
}

/// The verifier, the provider's place in the network, and the chain.
pub struct Setup {
    pub chain: FakeChain,
    pub net: MemoryNet,
    pub stash: Signer,
    pub agent: Signer,
    computing: Computing,
    home: tempfile::TempDir,
}

/// A verifier's process.
pub type Process = Running<AuditsError>;

impl Setup {
    /// A verifier that has all stake there is, on a chain where a batch of `price` has as many points as may
    /// be.
    pub fn new(chain: &FakeChain, provider: &AccountId, price: u128) -> Self {
        let [stash, agent] = ["//Verifier", "//Verifier//agent"].map(signer);
        chain.change(|state| {
            let mut stake = sample::records::stake();
            (stake.role, stake.bonded, stake.settled_at) = (Role::Verifier, BONDED, 0);
            stake.agent = Some(agent.account().clone());
            state.stakes.insert(stash.account().clone(), stake);
            state
                .agents
                .insert(agent.account().clone(), stash.account().clone());
            for account in [&stash, &agent] {
                let funds = Funds { free: MONEY, held: 0 };
                state.funds.insert(account.account().clone(), funds);
            }
            let mut record = sample::records::provider();
            record.endpoints = vec![endpoint("provider")].try_into().unwrap();
            state.providers.insert(provider.clone(), record);
            // A tenth below what the chain refuses.
            let points = u128::from(POINTS_MEAN_MAX) * SURE * 9 / 10;
            state.channels.rate = FixedU128::from_rational(points, price);
        });
        Self {
            chain: chain.clone(),
            net: MemoryNet::default(),
            stash,
            agent,
            computing: Computing::default(),
            home: tempfile::tempdir().unwrap(),
        }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn provider(&self) -> MemoryPlane {
        self.net.join(endpoint("provider"))
    }

    /// Starts the verifier.
    pub async fn start(&self, engines: Vec<Arc<dyn Engine>>) -> Process {
        let engines: BTreeMap<_, _> = engines
            .into_iter()
            .map(|engine| {
                let computing = self.computing.clone();
                let engine: Arc<dyn Engine> = Arc::new(Unhurried { engine, computing });
                (engine.manifest().id(), engine)
            })
            .collect();
        let parts = Parts {
            chain: Arc::new(self.chain.clone()),
            channels: Arc::new(self.chain.clone()),
            signer: self.agent.clone(),
            stash: self.stash.account().clone(),
            plane: Arc::new(self.net.join(endpoint("verifier"))),
            store: Arc::new(journal(&self.home().join("points.redb")).await),
            engines,
            pool: EnginePool::new(PoolConfig { threads: 1, queue: 8 }).unwrap(),
            limits: Limits::default(),
        };
        Process::start(|stopped| run(parts, stopped))
    }

    /// Blocks go on until something holds of the newest. None comes while the verifier computes.
    pub async fn until(&self, what: &str, holds: impl Fn(&FakeState) -> bool) {
        for _ in 0..2_000 {
            // Who looks may ask the chain for more.
            let state = self.chain.change(|state| state.clone());
            if holds(&state) {
                return;
            }
            self.rest().await;
            self.chain.finalize();
        }
        panic!("it does not come: {what}; calls: {:?}", self.calls());
    }

    /// The time that a block takes.
    pub async fn rest(&self) {
        sleep(Duration::from_millis(5)).await;
        while self.computing.is_any() {
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// What the verifier has called.
    pub fn calls(&self) -> Vec<&'static str> {
        let calls = self.chain.calls().into_iter();
        // Openings are nobody's.
        let own = calls.filter(|(who, call)| who == self.agent.account() || call.proves_itself());
        own.map(|(_, call)| call.name().call).collect()
    }

    pub fn count(&self, name: &str) -> usize {
        self.calls().iter().filter(|call| **call == name).count()
    }

    pub fn genesis(&self) -> sp_core::H256 {
        self.chain.info().genesis
    }
}
