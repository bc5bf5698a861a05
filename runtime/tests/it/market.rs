//! Providers, models and tasks for the chain in memory.

use sp_core::H256;
use sp_keyring::Sr25519Keyring::{self, AliceStash, Bob, BobStash, Charlie, Dave, Eve, Ferdie, One, Two};
use surety_runtime::{
    AccountId, Balance, BlockNumber, Runtime, RuntimeCall,
    units::{EXISTENTIAL_DEPOSIT, SURE},
};
use surety_types::{
    TaskId,
    model::{ModelFamily, ModelManifest, Operation, TextForm, Tier},
    provider::{DeviceKind, DeviceProfile},
    stake::Role,
    task::{Bid, ResultClaim, RoundPhase, TaskSpec, TaskState},
    traits::Escrow,
};

use crate::chain::{Chain, account};

/// Who posts tasks.
pub const CLIENT: Sr25519Keyring = AliceStash;

/// The most the client pays.
pub const CAP: Balance = 30 * SURE;

/// What each provider bonds.
pub const BOND: Balance = 10_000 * SURE;

const ENDPOINT: &[u8] =
    b"/ip4/127.0.0.1/udp/4001/quic-v1/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp";

/// A stash with its agent.
#[derive(Clone, Copy)]
pub struct Provider {
    pub stash: Sr25519Keyring,
    pub agent: Sr25519Keyring,
    /// What it bids.
    pub price: Balance,
}

/// Four providers with different prices.
pub const PROVIDERS: [Provider; 4] = [
    Provider {
        stash: Bob,
        agent: Eve,
        price: 2 * SURE,
    },
    Provider {
        stash: Charlie,
        agent: Ferdie,
        price: 3 * SURE,
    },
    Provider {
        stash: Dave,
        agent: One,
        price: 4 * SURE,
    },
    Provider {
        stash: BobStash,
        agent: Two,
        price: 5 * SURE,
    },
];

/// Some operations' hash of something.
pub fn hash(byte: u8) -> H256 {
    H256::repeat_byte(byte)
}

/// The model that tasks ask for.
pub fn manifest() -> ModelManifest {
    ModelManifest {
        name: b"all-MiniLM-L6-v2".to_vec().try_into().unwrap(),
        family: ModelFamily::Bert,
        tier: Tier::HardwareClass,
        operations: vec![Operation::Embed].try_into().unwrap(),
        weights: hash(1),
        // So small that all of a task is audited within the shortest window.
        weights_bytes: 1_000_000,
        text: TextForm {
            tokenizer: hash(2),
            ..TextForm::default()
        },
        config: hash(3),
        exact: None,
    }
}

/// A task for `redundancy` providers.
pub fn spec(redundancy: u32) -> TaskSpec {
    TaskSpec {
        model: manifest().id(),
        operation: Operation::Embed,
        input: hash(4),
        input_bytes: 2_000,
        units_max: 100,
        redundancy,
        sources: vec![ENDPOINT.to_vec().try_into().unwrap()].try_into().unwrap(),
        security: Default::default(),
        requirements: Default::default(),
    }
}

/// The right answer: 50 of the 100 units that the client pays for.
pub fn right() -> ResultClaim {
    ResultClaim {
        output: hash(5),
        trace_root: hash(6),
        units: 50,
    }
}

impl Provider {
    fn salt(&self) -> H256 {
        H256::from(account(self.agent).as_ref() as &[u8; 32])
    }

    fn bid(&self) -> Bid<Balance> {
        Bid {
            price: self.price,
            seconds: 30,
            salt: self.salt(),
        }
    }

    /// Its stash.
    pub fn account(&self) -> AccountId {
        account(self.stash)
    }

    /// Its bid.
    pub fn sealed(&self, task: TaskId) -> (Sr25519Keyring, RuntimeCall) {
        let seal = self.bid().seal(task, &self.account());
        (
            self.agent,
            surety_pallet_task_auction::Call::bid { task, seal }.into(),
        )
    }

    /// The opening of its bid.
    pub fn opened(&self, task: TaskId) -> (Sr25519Keyring, RuntimeCall) {
        (
            self.agent,
            surety_pallet_task_auction::Call::reveal_bid {
                task,
                provider: self.account(),
                bid: self.bid(),
            }
            .into(),
        )
    }

    /// Its commitment to `claim`.
    pub fn commits(&self, task: TaskId, claim: &ResultClaim) -> (Sr25519Keyring, RuntimeCall) {
        let commitment = surety_proofs::commitment(task, &self.account(), claim, &self.salt());
        (
            self.agent,
            surety_pallet_results::Call::commit { task, commitment }.into(),
        )
    }

    /// The opening of it.
    pub fn reveals(&self, task: TaskId, claim: &ResultClaim) -> (Sr25519Keyring, RuntimeCall) {
        let call = surety_pallet_results::Call::reveal {
            task,
            provider: self.account(),
            claim: claim.clone(),
            salt: self.salt(),
        };
        (self.agent, call.into())
    }
}

/// What a provider says of itself.
pub fn device() -> DeviceProfile {
    DeviceProfile {
        name: b"test".to_vec().try_into().unwrap(),
        kind: DeviceKind::Cpu,
        cores: 2,
        memory_mib: 4_096,
        region: None,
    }
}

/// A dev chain with a model, and `PROVIDERS` registered.
pub fn open() -> Chain {
    let mut chain = Chain::new(sp_genesis_builder::DEV_RUNTIME_PRESET);
    chain.call(
        CLIENT,
        surety_pallet_model_registry::Call::register {
            manifest: Box::new(manifest()),
        },
    );
    let mut bonds = Vec::new();
    let mut agents = Vec::new();
    let mut confirmations = Vec::new();
    let mut registrations = Vec::new();
    for provider in PROVIDERS {
        use surety_pallet_staking::Call as Stake;
        bonds.push((
            provider.stash,
            Stake::bond {
                role: Role::Provider,
                amount: BOND,
            }
            .into(),
        ));
        agents.push((
            provider.stash,
            Stake::set_agent {
                agent: account(provider.agent),
            }
            .into(),
        ));
        confirmations.push((
            provider.agent,
            Stake::confirm_agent {
                stash: provider.account(),
            }
            .into(),
        ));
        let register = surety_pallet_provider_registry::Call::register {
            device: device(),
            endpoints: spec(1).sources,
        };
        registrations.push((provider.agent, register.into()));
    }
    for calls in [bonds, agents, confirmations, registrations] {
        all_ok(chain.block(calls));
    }
    chain
}

/// Every call of a block went well.
pub fn all_ok(results: Vec<Result<(), sp_runtime::DispatchError>>) {
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

/// Posts a task and returns its id.
pub fn post(chain: &mut Chain, redundancy: u32) -> TaskId {
    let task = chain.query(surety_pallet_task_auction::NextTaskId::<Runtime>::get);
    chain.call(
        CLIENT,
        surety_pallet_task_auction::Call::post {
            spec: spec(redundancy),
            cap: CAP,
        },
    );
    task
}

/// Has `bidders` bid and open their bids, and waits for the draw.
pub fn auction(chain: &mut Chain, task: TaskId, bidders: &[Provider]) {
    // Who was not heard of lately is not drawn.
    heartbeats(chain);
    all_ok(chain.block(bidders.iter().map(|bidder| bidder.sealed(task)).collect()));
    chain.run_until(60, || matches!(state(task), TaskState::Revealing { .. }));
    all_ok(chain.block(bidders.iter().map(|bidder| bidder.opened(task)).collect()));
    chain.run_until(60, || {
        !matches!(
            state(task),
            TaskState::Revealing { .. } | TaskState::Drawing { .. }
        )
    });
}

/// A sign of life of every provider.
pub fn heartbeats(chain: &mut Chain) {
    let heartbeat = || surety_pallet_provider_registry::Call::heartbeat {}.into();
    all_ok(
        chain.block(
            PROVIDERS
                .iter()
                .map(|provider| (provider.agent, heartbeat()))
                .collect(),
        ),
    );
}

/// Has an account give all its money away.
pub fn impoverish(chain: &mut Chain, owner: Sr25519Keyring) {
    let call = pallet_balances::Call::transfer_all {
        dest: account(CLIENT).into(),
        keep_alive: false,
    };
    chain.call(owner, call);
    assert!(chain.free(&account(owner)) <= EXISTENTIAL_DEPOSIT);
}

/// Who works on the task now.
pub fn members(chain: &mut Chain, task: TaskId) -> Vec<Provider> {
    let round = chain
        .query(|| surety_pallet_results::Rounds::<Runtime>::get(task))
        .unwrap();
    round
        .members
        .iter()
        .map(|member| {
            *PROVIDERS
                .iter()
                .find(|provider| provider.account() == member.provider)
                .unwrap()
        })
        .collect()
}

/// Waits until commitments can be opened.
pub fn wait_for_reveals(chain: &mut Chain, task: TaskId) {
    chain.run_until(65, || {
        surety_pallet_results::Rounds::<Runtime>::get(task)
            .is_some_and(|round| matches!(round.phase, RoundPhase::Revealing { .. }))
    });
}

/// Waits until the task has ended.
pub fn wait_for_end(chain: &mut Chain, task: TaskId) {
    chain.run_until(1_000, || {
        matches!(
            state(task),
            TaskState::Settled { .. } | TaskState::Failed { .. } | TaskState::Cancelled { .. }
        )
    });
}

/// Where a task is. Has to run with a state.
pub fn state(task: TaskId) -> TaskState<AccountId, Balance, BlockNumber> {
    surety_pallet_task_auction::Tasks::<Runtime>::get(task)
        .unwrap()
        .state
}

/// Nothing is left of the task's round, locks and escrow.
pub fn assert_cleared(chain: &mut Chain, task: TaskId) {
    chain.query(|| {
        assert_eq!(surety_runtime::Billing::held(task), 0);
        assert!(surety_pallet_results::Rounds::<Runtime>::get(task).is_none());
        for provider in PROVIDERS {
            let ledger = surety_pallet_staking::Ledgers::<Runtime>::get(provider.account()).unwrap();
            assert_eq!(ledger.locked, 0, "{:?}", provider.stash);
        }
    });
}
