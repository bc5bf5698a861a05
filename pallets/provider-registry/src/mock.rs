//! A runtime of System and this pallet over a mocked ledger of stake, and a fluent way to set it up.

use frame_support::{BoundedVec, assert_ok, derive_impl, parameter_types};
use sp_runtime::BuildStorage;
use std::collections::BTreeMap;
use surety_pallet_test_kit::{AccountId, Balance, MockStake};
use surety_types::{
    model::Name,
    multiaddr::{Endpoint, Endpoints},
    provider::{DeviceKind, DeviceProfile},
    speed::{MeasuredView, Tier},
    stake::Role,
    traits::{Admission, Jail, MeasuredSpeed},
};

use crate as pallet_provider_registry;

type Block = frame_system::mocking::MockBlock<Test>;

pub(crate) const WINDOW: u64 = 20;
pub(crate) const ENDPOINT: &str =
    "/ip4/127.0.0.1/udp/4001/quic-v1/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp";

#[frame_support::runtime]
mod runtime {
    #[runtime::runtime]
    #[runtime::derive(
        RuntimeCall,
        RuntimeEvent,
        RuntimeError,
        RuntimeOrigin,
        RuntimeFreezeReason,
        RuntimeHoldReason,
        RuntimeSlashReason,
        RuntimeLockId,
        RuntimeTask
    )]
    pub struct Test;

    #[runtime::pallet_index(0)]
    pub type System = frame_system;
    #[runtime::pallet_index(1)]
    pub type ProviderRegistry = pallet_provider_registry;
}

parameter_types! {
    pub const HeartbeatWindow: u64 = WINDOW;
}

#[derive_impl(frame_system::config_preludes::TestDefaultConfig)]
impl frame_system::Config for Test {
    type Block = Block;
}

parameter_types! {
    pub static JailedStashes: Vec<AccountId> = Vec::new();
    pub static Refused: Vec<AccountId> = Vec::new();
    pub static Speeds: BTreeMap<AccountId, u32> = BTreeMap::new();
}

/// Refuses whom a test names.
pub struct Admitted;

impl Admission<AccountId> for Admitted {
    fn is_admitted(stash: &AccountId) -> bool {
        !Refused::get().contains(stash)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn admit_for_benchmark(_: &AccountId) {}
}

/// Jails whom a test says.
pub struct Jailed;

impl Jail<AccountId> for Jailed {
    fn is_jailed(stash: &AccountId) -> bool {
        JailedStashes::get().contains(stash)
    }

    fn is_suspended(_: &AccountId) -> bool {
        false
    }
}

/// Measured as a test says, in 10^9 operations a second.
pub struct Measured;

impl MeasuredSpeed<AccountId> for Measured {
    fn measured(stash: &AccountId) -> Option<MeasuredView> {
        let speed = Speeds::get().get(stash).copied();
        speed.map(|giga_operations| MeasuredView {
            tier: Tier::of(giga_operations),
            giga_operations,
            memory_mib: 1_024,
            rounds_missed: 0,
        })
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn measure_for_benchmark(_: &AccountId) {}
}

impl pallet_provider_registry::Config for Test {
    type Balance = Balance;
    type Stake = MockStake;
    type HeartbeatWindow = HeartbeatWindow;
    type Admission = Admitted;
    type Jail = Jailed;
    type Speed = Measured;
    type Tasks = ();
    type WeightInfo = ();
}

/// Sets up a test; checks every invariant when it is over.
pub(crate) struct TestExt {
    registered: Vec<AccountId>,
}

impl TestExt {
    pub(crate) fn new() -> Self {
        surety_pallet_test_kit::reset();
        Refused::take();
        Speeds::take();
        let registered = Vec::new();
        Self { registered }
    }

    /// Bonds `stash` as a provider that `agent` acts for.
    pub(crate) fn bond(self, stash: AccountId, agent: AccountId) -> Self {
        MockStake::bond(stash, agent, Role::Provider, 100);
        self
    }

    /// Registers the provider of a bonded agent in block 1.
    pub(crate) fn register(mut self, agent: AccountId) -> Self {
        self.registered.push(agent);
        self
    }

    pub(crate) fn build(self) -> sp_io::TestExternalities {
        let storage = RuntimeGenesisConfig::default().build_storage();
        let mut ext = sp_io::TestExternalities::new(storage.expect("the genesis is valid"));
        ext.execute_with(|| {
            // No events are kept in block 0.
            System::set_block_number(1);
            for agent in self.registered {
                let endpoints = endpoints(&[ENDPOINT]);
                assert_ok!(ProviderRegistry::register(
                    signed(agent),
                    device("cpu"),
                    endpoints
                ));
            }
        });
        ext
    }

    pub(crate) fn execute_with(self, test: impl FnOnce()) {
        self.build().execute_with(|| {
            test();
            assert_ok!(ProviderRegistry::do_try_state());
        });
    }
}

pub(crate) fn device(name: &str) -> DeviceProfile {
    DeviceProfile {
        name: Name::cut(name),
        kind: DeviceKind::Cpu,
        cores: 8,
        memory_mib: 16_384,
        region: None,
    }
}

pub(crate) fn endpoints(texts: &[&str]) -> Endpoints {
    let texts = texts.iter().map(|text| Endpoint::cut(text));
    BoundedVec::truncate_from(texts.collect())
}

pub(crate) fn signed(who: AccountId) -> RuntimeOrigin {
    RuntimeOrigin::signed(who)
}
