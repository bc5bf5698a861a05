//! A runtime of System, Balances and this pallet, and a fluent way to set it up.

use frame_support::{BoundedVec, assert_ok, derive_impl, parameter_types, traits::fungible::InspectHold};
use sp_core::H256;
use sp_runtime::{BuildStorage, DispatchResult};
use surety_pallet_test_kit::MockStake;
use surety_types::{
    input::Work,
    model::{ExactForm, ModelFamily, ModelManifest, Name, Operation, TextForm, Tier},
    traits::WorkReferee,
};

use crate as pallet_model_registry;
use crate::HoldReason;

pub(crate) type AccountId = u64;
pub(crate) type Balance = u128;
type Block = frame_system::mocking::MockBlock<Test>;

pub(crate) const MINIMUM_BALANCE: Balance = 5;
pub(crate) const DEPOSIT: Balance = 100;

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
    pub type Balances = pallet_balances;
    #[runtime::pallet_index(2)]
    pub type ModelRegistry = pallet_model_registry;
}

parameter_types! {
    pub const ExistentialDeposit: Balance = MINIMUM_BALANCE;
    pub static ModelDeposit: Balance = DEPOSIT;
    pub static Checkable: bool = true;
}

#[derive_impl(frame_system::config_preludes::TestDefaultConfig)]
impl frame_system::Config for Test {
    type Block = Block;
    type AccountData = pallet_balances::AccountData<Balance>;
}

#[derive_impl(pallet_balances::config_preludes::TestDefaultConfig)]
impl pallet_balances::Config for Test {
    type Balance = Balance;
    type ExistentialDeposit = ExistentialDeposit;
    type AccountStore = System;
}

/// Says of all work what it was told to.
pub struct MockReferee;

impl WorkReferee for MockReferee {
    fn is_checkable(_: ModelFamily, _: &ExactForm, _: &Work) -> bool {
        Checkable::get()
    }
}

impl pallet_model_registry::Config for Test {
    type Currency = Balances;
    type RuntimeHoldReason = RuntimeHoldReason;
    type ModelDeposit = ModelDeposit;
    type Referee = MockReferee;
    type Stake = MockStake;
    type SpeedOrigin = frame_system::EnsureRoot<AccountId>;
    type WeightInfo = ();
}

/// Sets up a test; checks every invariant when it is over.
pub(crate) struct TestExt {
    balances: Vec<(AccountId, Balance)>,
    models: Vec<(AccountId, ModelManifest)>,
}

impl TestExt {
    pub(crate) fn new() -> Self {
        ModelDeposit::set(DEPOSIT);
        surety_pallet_test_kit::reset();
        Checkable::set(true);
        Self {
            balances: Vec::new(),
            models: Vec::new(),
        }
    }

    /// Gives `who` so much that `amount` can be held.
    pub(crate) fn endow(mut self, who: AccountId, amount: Balance) -> Self {
        self.balances.push((who, amount + MINIMUM_BALANCE));
        self
    }

    /// Registers `manifest` for an endowed owner.
    pub(crate) fn model(mut self, owner: AccountId, manifest: ModelManifest) -> Self {
        self.models.push((owner, manifest));
        self
    }

    pub(crate) fn build(self) -> sp_io::TestExternalities {
        let storage = RuntimeGenesisConfig {
            balances: pallet_balances::GenesisConfig {
                balances: self.balances,
                ..Default::default()
            },
            ..Default::default()
        }
        .build_storage();
        let mut ext = sp_io::TestExternalities::new(storage.expect("the genesis is valid"));
        ext.execute_with(|| {
            // No events are kept in block 0.
            System::set_block_number(1);
            for (owner, manifest) in self.models {
                assert_ok!(register(signed(owner), manifest));
            }
        });
        ext
    }

    pub(crate) fn execute_with(self, test: impl FnOnce()) {
        self.build().execute_with(|| {
            test();
            assert_ok!(ModelRegistry::do_try_state());
        });
    }
}

pub(crate) fn manifest(name: &str) -> ModelManifest {
    ModelManifest {
        name: Name::cut(name),
        family: ModelFamily::Bert,
        tier: Tier::Exact,
        operations: BoundedVec::truncate_from(vec![Operation::Embed]),
        weights: H256::repeat_byte(1),
        weights_bytes: 84_000_000,
        text: TextForm {
            tokenizer: H256::repeat_byte(2),
            ..TextForm::default()
        },
        config: H256::repeat_byte(3),
        exact: None,
    }
}

/// The least work of an encoder.
pub(crate) const ITEM: Work = Work {
    operation: Operation::Embed,
    input_bytes: 12,
    units_max: 1,
};

/// Free balance that is not needed to keep the account alive.
pub(crate) fn spendable(who: AccountId) -> Balance {
    Balances::free_balance(who) - MINIMUM_BALANCE
}

pub(crate) fn held(who: AccountId) -> Balance {
    Balances::balance_on_hold(&HoldReason::ModelDeposit.into(), &who)
}

pub(crate) fn signed(who: AccountId) -> RuntimeOrigin {
    RuntimeOrigin::signed(who)
}

/// As anybody's extrinsic does.
pub(crate) fn register(origin: RuntimeOrigin, manifest: ModelManifest) -> DispatchResult {
    ModelRegistry::register(origin, Box::new(manifest))
}
