//! A runtime of System, Balances and this pallet, and a fluent way to set it up.

use frame_support::{assert_ok, derive_impl, parameter_types, traits::fungible::InspectHold};
use sp_runtime::BuildStorage;
use surety_types::{
    stake::Role,
    traits::{Jail, PoolStakes, StashClosed},
};

use crate as pallet_staking;
use crate::{HoldReason, LedgerOf, Ledgers};

pub(crate) type AccountId = u64;
pub(crate) type Balance = u128;
type Block = frame_system::mocking::MockBlock<Test>;

pub(crate) const EXISTENTIAL_DEPOSIT: Balance = 5;
pub(crate) const MINIMUM: Balance = 100;
pub(crate) const PERIOD: u64 = 10;

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
    pub type Staking = pallet_staking;
}

parameter_types! {
    pub const ExistentialDeposit: Balance = EXISTENTIAL_DEPOSIT;
    pub static MinBond: Balance = MINIMUM;
    pub static UnbondingPeriod: u64 = PERIOD;
    pub static SuspendedStashes: Vec<AccountId> = Vec::new();
    pub static ClosedStashes: Vec<AccountId> = Vec::new();
    pub static Delegators: Vec<AccountId> = Vec::new();
}

/// Those whom a test names have stake behind validators.
pub struct Delegating;

impl PoolStakes<AccountId> for Delegating {
    fn is_staked(who: &AccountId) -> bool {
        Delegators::get().contains(who)
    }
}

/// Suspends whom a test says.
pub struct Suspended;

impl Jail<AccountId> for Suspended {
    fn is_jailed(stash: &AccountId) -> bool {
        Self::is_suspended(stash)
    }

    fn is_suspended(stash: &AccountId) -> bool {
        SuspendedStashes::get().contains(stash)
    }
}

/// Writes down which stashes it was told of.
pub struct Closed;

impl StashClosed<AccountId> for Closed {
    fn closed(stash: &AccountId) {
        ClosedStashes::mutate(|stashes| stashes.push(*stash));
    }
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

impl pallet_staking::Config for Test {
    type Currency = Balances;
    type RuntimeHoldReason = RuntimeHoldReason;
    type MinBond = MinBond;
    type BlockNumberProvider = System;
    type Jail = Suspended;
    type UnbondingPeriod = UnbondingPeriod;
    type Pools = Delegating;
    type OnClosed = Closed;
    type WeightInfo = ();
}

/// Sets up a test; checks every invariant when it is over.
pub(crate) struct TestExt {
    balances: Vec<(AccountId, Balance)>,
    bonds: Vec<(AccountId, Role, Balance)>,
    agents: Vec<(AccountId, AccountId)>,
}

impl TestExt {
    pub(crate) fn new() -> Self {
        MinBond::set(MINIMUM);
        UnbondingPeriod::set(PERIOD);
        ClosedStashes::take();
        SuspendedStashes::take();
        Delegators::take();
        Self {
            balances: Vec::new(),
            bonds: Vec::new(),
            agents: Vec::new(),
        }
    }

    /// Gives `who` so much that `amount` can be bonded.
    pub(crate) fn endow(mut self, who: AccountId, amount: Balance) -> Self {
        self.balances.push((who, amount + EXISTENTIAL_DEPOSIT));
        self
    }

    /// Gives `stash` exactly what it needs, and bonds it as a provider.
    pub(crate) fn provider(self, stash: AccountId, amount: Balance) -> Self {
        let mut this = self.endow(stash, amount);
        this.bonds.push((stash, Role::Provider, amount));
        this
    }

    /// Lets `agent` act for `stash`.
    pub(crate) fn agent(mut self, stash: AccountId, agent: AccountId) -> Self {
        self.agents.push((stash, agent));
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
            for (stash, role, amount) in self.bonds {
                assert_ok!(Staking::bond(RuntimeOrigin::signed(stash), role, amount));
            }
            for (stash, agent) in self.agents {
                assert_ok!(Staking::set_agent(RuntimeOrigin::signed(stash), agent));
                assert_ok!(Staking::confirm_agent(RuntimeOrigin::signed(agent), stash));
            }
        });
        ext
    }

    pub(crate) fn execute_with(self, test: impl FnOnce()) {
        self.build().execute_with(|| {
            test();
            assert_ok!(Staking::do_try_state());
        });
    }
}

/// The stash's ledger, which has to exist.
pub(crate) fn ledger(stash: AccountId) -> LedgerOf<Test> {
    Ledgers::<Test>::get(stash).expect("the stash is bonded")
}

/// Free balance that is not needed to keep the account alive.
pub(crate) fn spendable(who: AccountId) -> Balance {
    Balances::free_balance(who) - EXISTENTIAL_DEPOSIT
}

pub(crate) fn held(who: AccountId) -> Balance {
    Balances::balance_on_hold(&HoldReason::Stake.into(), &who)
}

pub(crate) fn pass_blocks(blocks: u64) {
    System::set_block_number(System::block_number() + blocks);
}

pub(crate) fn signed(who: AccountId) -> RuntimeOrigin {
    RuntimeOrigin::signed(who)
}
