//! A runtime of System, Balances and this pallet, and a fluent way to set it up.

use frame_support::{
    PalletId, assert_ok, derive_impl, parameter_types,
    traits::fungible::{InspectHold, Mutate},
};
use sp_runtime::{BuildStorage, Permill};
use surety_pallet_test_kit::MockStake;
use surety_types::traits::{LeavingPay, PoolLedger, SessionIndex, Sessions, StashClosed};

use crate as pallet_delegation;
use crate::{HoldReason, StakeViewOf};

pub(crate) type AccountId = u64;
pub(crate) type Balance = u128;
type Block = frame_system::mocking::MockBlock<Test>;

pub(crate) const EXISTENTIAL_DEPOSIT: Balance = 5;
pub(crate) const SELF_BOND: Balance = 1_000;
pub(crate) const MINIMUM: Balance = 100;
pub(crate) const PERIOD: u64 = 50;
pub(crate) const DAY: SessionIndex = 10;

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
    pub type Delegation = pallet_delegation;
}

parameter_types! {
    pub const ExistentialDeposit: Balance = EXISTENTIAL_DEPOSIT;
    pub const PotId: PalletId = PalletId(*b"sur/rwrd");
    pub const SessionsKept: u32 = DAY;
    pub static MinSelfBond: Balance = SELF_BOND;
    pub static MinDelegation: Balance = MINIMUM;
    pub static UnbondingPeriod: u64 = PERIOD;
    pub static Session: SessionIndex = 0;
    pub static ClosedPools: Vec<AccountId> = Vec::new();
}

/// The session that a test says.
pub struct SessionNow;

impl Sessions for SessionNow {
    fn current() -> SessionIndex {
        Session::get()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn set_for_benchmark(session: SessionIndex) {
        Session::set(session);
    }
}

/// Writes down which pools it was told of.
pub struct Closed;

impl StashClosed<AccountId> for Closed {
    fn closed(stash: &AccountId) {
        ClosedPools::mutate(|pools| pools.push(*stash));
    }
}

/// What operators have served for of a day that is not over. In storage, so that what is rolled back is.
#[frame_support::storage_alias]
pub(crate) type Served = StorageMap<ServedSoFar, frame_support::Twox64Concat, AccountId, Balance>;

/// Pays what a test says.
pub struct ServedSoFar;

impl LeavingPay<AccountId> for ServedSoFar {
    fn pay_leaving(operator: &AccountId) {
        if let Some(amount) = Served::take(operator) {
            reward(*operator, amount);
        }
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn serve_for_benchmark(operator: &AccountId) {
        Served::insert(operator, 1);
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

impl pallet_delegation::Config for Test {
    type Currency = Balances;
    type RuntimeHoldReason = RuntimeHoldReason;
    type Ledgers = MockStake;
    type Sessions = SessionNow;
    type SessionsKept = SessionsKept;
    type BlockNumberProvider = System;
    type UnbondingPeriod = UnbondingPeriod;
    type MinSelfBond = MinSelfBond;
    type MinDelegation = MinDelegation;
    type PotId = PotId;
    type Pay = ServedSoFar;
    type OnClosed = Closed;
    type WeightInfo = ();
}

/// Sets up a test; checks every invariant when it is over.
#[derive(Default)]
pub(crate) struct TestExt {
    balances: Vec<(AccountId, Balance)>,
    pools: Vec<(AccountId, Balance, Permill)>,
    delegations: Vec<(AccountId, AccountId, Balance)>,
}

impl TestExt {
    pub(crate) fn new() -> Self {
        surety_pallet_test_kit::reset();
        MinSelfBond::set(SELF_BOND);
        MinDelegation::set(MINIMUM);
        UnbondingPeriod::set(PERIOD);
        // A day has passed already: what is of today is not of the first.
        Session::set(DAY);
        ClosedPools::take();
        Self::default()
    }

    /// Gives `who` so much that `amount` can be delegated.
    pub(crate) fn endow(mut self, who: AccountId, amount: Balance) -> Self {
        self.balances.push((who, amount));
        self
    }

    /// Gives `operator` exactly what it needs, and opens its pool.
    pub(crate) fn pool(self, operator: AccountId, bond: Balance) -> Self {
        self.pool_with(operator, bond, Permill::zero())
    }

    /// The same with a commission.
    pub(crate) fn pool_with(self, operator: AccountId, bond: Balance, commission: Permill) -> Self {
        let mut this = self.endow(operator, bond);
        this.pools.push((operator, bond, commission));
        this
    }

    /// Gives `who` exactly what it needs, and puts it behind `operator`.
    pub(crate) fn delegation(self, who: AccountId, operator: AccountId, amount: Balance) -> Self {
        let mut this = self.endow(who, amount);
        this.delegations.push((who, operator, amount));
        this
    }

    pub(crate) fn build(self) -> sp_io::TestExternalities {
        let storage = frame_system::GenesisConfig::<Test>::default().build_storage();
        let mut ext = sp_io::TestExternalities::new(storage.expect("the genesis is valid"));
        ext.execute_with(|| {
            // No events are kept in block 0.
            System::set_block_number(1);
            assert_ok!(Balances::mint_into(&Delegation::pot(), EXISTENTIAL_DEPOSIT));
            for (who, amount) in self.balances {
                let alive = if System::account_exists(&who) {
                    0
                } else {
                    EXISTENTIAL_DEPOSIT
                };
                assert_ok!(Balances::mint_into(&who, amount + alive));
            }
            for (operator, bond, commission) in self.pools {
                assert_ok!(Delegation::open(signed(operator), bond, commission));
            }
            for (who, operator, amount) in self.delegations {
                assert_ok!(Delegation::delegate(signed(who), operator, amount));
            }
        });
        ext
    }

    pub(crate) fn execute_with(self, test: impl FnOnce()) {
        self.build().execute_with(|| {
            test();
            assert_ok!(Delegation::do_try_state());
        });
    }
}

/// Mints `amount` into the pot and shares it among who backs `operator`.
pub(crate) fn reward(operator: AccountId, amount: Balance) {
    assert_ok!(Balances::mint_into(&Delegation::pot(), amount));
    assert_eq!(Delegation::reward(&operator, amount), amount);
}

/// What somebody has in pools.
pub(crate) fn stake(who: AccountId) -> StakeViewOf<Test> {
    Delegation::stake(who).expect("the account has stake")
}

/// What of it works, by operator.
pub(crate) fn working(who: AccountId) -> Vec<(AccountId, Balance)> {
    let delegations = Delegation::stake(who)
        .map(|stake| stake.delegations)
        .unwrap_or_default();
    delegations.iter().map(|one| (one.operator, one.worth)).collect()
}

/// What of it is on its way out, by operator and day.
pub(crate) fn leaving(who: AccountId) -> Vec<(AccountId, u32, Balance)> {
    let chunks = Delegation::stake(who)
        .map(|stake| stake.leaving)
        .unwrap_or_default();
    chunks
        .iter()
        .map(|one| (one.operator, one.day, one.worth))
        .collect()
}

/// Free balance that is not needed to keep the account alive.
pub(crate) fn spendable(who: AccountId) -> Balance {
    Balances::free_balance(who) - EXISTENTIAL_DEPOSIT
}

pub(crate) fn held(who: AccountId) -> Balance {
    Balances::balance_on_hold(&HoldReason::Delegated.into(), &who)
}

pub(crate) fn pass_blocks(blocks: u64) {
    System::set_block_number(System::block_number() + blocks);
}

pub(crate) fn pass_days(days: u32) {
    Session::set(Session::get() + days * DAY);
}

pub(crate) fn today() -> u32 {
    Session::get() / DAY
}

pub(crate) fn signed(who: AccountId) -> RuntimeOrigin {
    RuntimeOrigin::signed(who)
}
