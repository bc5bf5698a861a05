//! A runtime of System, Balances, Staking and this pallet. Pools and services are kept as simply as can be,
//! in storage, so that what is rolled back is.

use frame_support::{assert_ok, derive_impl, parameter_types, traits::fungible::Mutate, weights::Weight};
use sp_runtime::{BuildStorage, Permill, Perquintill};
use surety_emission::SURE;
use surety_types::{
    stake::Role,
    traits::{PoolLedger, Reliability, Service, SessionIndex, ValidatorService},
};

use crate as pallet_emission;
use crate::Event;

pub(crate) type AccountId = u64;
pub(crate) type Balance = u128;
type Block = frame_system::mocking::MockBlock<Test>;

pub(crate) const EXISTENTIAL_DEPOSIT: Balance = SURE / 100;
/// Where pools' rewards wait.
pub(crate) const POOLS: AccountId = 1_001;
/// Validators' part of fees.
pub(crate) const FEES: AccountId = 1_002;

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
    pub type Staking = surety_pallet_staking;
    #[runtime::pallet_index(3)]
    pub type Emission = pallet_emission;
}

parameter_types! {
    pub const ExistentialDeposit: Balance = EXISTENTIAL_DEPOSIT;
    pub const MinBond: Balance = SURE;
    pub const UnbondingPeriod: u64 = 7 * DAY;
    pub const ValidatorPot: AccountId = FEES;
    pub static ValidatorShare: Permill = Permill::from_percent(40);
    pub static RewardSessions: u32 = 288;
    pub static MissedDeadlines: u32 = 0;
    pub static DayWeight: u64 = 0;
}

/// Blocks in a day.
pub(crate) const DAY: u64 = 43_200;

/// What was noted of each pool, by its operator. Who is not here has no pool.
#[frame_support::storage_alias]
pub(crate) type Pools = StorageMap<MockPools, frame_support::Twox64Concat, AccountId, (Balance, Balance)>;

/// What operators did.
#[frame_support::storage_alias]
pub(crate) type Services = StorageMap<MockServices, frame_support::Twox64Concat, AccountId, Service<Balance>>;

/// Backing and rewards of pools.
pub struct MockPools;

impl PoolLedger<AccountId, Balance> for MockPools {
    fn backing(operator: &AccountId) -> Balance {
        Pools::get(operator).map_or(0, |(backing, _)| backing)
    }

    fn own(operator: &AccountId) -> Balance {
        Self::backing(operator)
    }

    fn is_pending(_: &AccountId) -> bool {
        false
    }

    fn pot() -> AccountId {
        POOLS
    }

    fn reward(operator: &AccountId, amount: Balance) -> Balance {
        let promised: Balance = Pools::iter_values().map(|(_, rewards)| rewards).sum();
        let there = Balances::free_balance(POOLS) - EXISTENTIAL_DEPOSIT;
        Pools::mutate(operator, |pool| {
            let (_, rewards) = pool.as_mut()?;
            let shared = amount.min(there - promised);
            *rewards += shared;
            Some(shared)
        })
        .unwrap_or(0)
    }

    fn note_pending(_: &AccountId, _: SessionIndex) {}

    fn spare(_: &AccountId) {}

    fn slash(_: &AccountId, _: Perquintill, _: SessionIndex) -> Balance {
        0
    }

    fn slash_weight() -> Weight {
        Weight::zero()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn open_for_benchmark(operator: &AccountId, own: Balance) {
        Pools::insert(operator, (own, 0));
    }
}

/// Services that a test has noted.
pub struct MockServices;

impl ValidatorService<AccountId, Balance> for MockServices {
    fn take_services() -> Vec<(AccountId, Service<Balance>)> {
        Services::drain().collect()
    }

    fn take_owed(operator: &AccountId) -> Option<Service<Balance>> {
        Services::mutate(operator, |kept| kept.as_mut()?.take_owed())
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn serve_for_benchmark(operator: &AccountId, service: Service<Balance>) {
        Services::insert(operator, service);
    }
}

/// Deadlines that everybody has missed.
pub struct MockReliability;

impl Reliability<AccountId> for MockReliability {
    fn missed(_: &AccountId) -> u32 {
        MissedDeadlines::get()
    }
}

/// As heavy as a test says.
pub struct MockWeight;

impl crate::WeightInfo for MockWeight {
    fn pay_day(_: u32) -> Weight {
        Weight::from_parts(DayWeight::get(), 0)
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

impl surety_pallet_staking::Config for Test {
    type Admission = ();
    type Collateral = ();
    type Currency = Balances;
    type RuntimeHoldReason = RuntimeHoldReason;
    type MinBond = MinBond;
    type BlockNumberProvider = System;
    type Jail = ();
    type UnbondingPeriod = UnbondingPeriod;
    type Pools = ();
    type OnClosed = Emission;
    type WeightInfo = ();
}

impl pallet_emission::Config for Test {
    type Balance = Balance;
    type Currency = Balances;
    type Pools = MockPools;
    type Services = MockServices;
    type Stake = Staking;
    type Reliability = MockReliability;
    type ValidatorPot = ValidatorPot;
    type ValidatorShare = ValidatorShare;
    type RewardSessions = RewardSessions;
    type WeightInfo = MockWeight;
}

/// Sets up a test; checks every invariant when it is over.
pub(crate) struct TestExt {
    balances: Vec<(AccountId, Balance)>,
    providers: Vec<(AccountId, Balance)>,
    pools: Vec<(AccountId, Balance)>,
}

impl TestExt {
    /// Both pots exist.
    pub(crate) fn new() -> Self {
        ValidatorShare::set(Permill::from_percent(40));
        RewardSessions::set(288);
        MissedDeadlines::set(0);
        DayWeight::set(0);
        Self {
            balances: vec![(POOLS, EXISTENTIAL_DEPOSIT), (FEES, EXISTENTIAL_DEPOSIT)],
            providers: Vec::new(),
            pools: Vec::new(),
        }
    }

    pub(crate) fn endow(mut self, who: AccountId, amount: Balance) -> Self {
        self.balances.push((who, amount));
        self
    }

    /// Gives `stash` twice what it bonds as a provider.
    pub(crate) fn provider(mut self, stash: AccountId, bonded: Balance) -> Self {
        self.providers.push((stash, bonded));
        self.endow(stash, 2 * bonded)
    }

    /// Puts so much behind an operator.
    pub(crate) fn pool(mut self, operator: AccountId, backing: Balance) -> Self {
        self.pools.push((operator, backing));
        self
    }

    /// Endows somebody with all that is not endowed, but for so much.
    pub(crate) fn all_but(self, left: Balance) -> Self {
        let endowed: Balance = self.balances.iter().map(|(_, amount)| amount).sum();
        self.endow(1_003, surety_emission::CAP - endowed - left)
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
            for (stash, amount) in self.providers {
                bond(stash, amount);
            }
            for (operator, backing) in self.pools {
                Pools::insert(operator, (backing, 0));
            }
        });
        ext
    }

    pub(crate) fn execute_with(self, test: impl FnOnce()) {
        self.build().execute_with(|| {
            test();
            assert_ok!(Emission::do_try_state());
        });
    }
}

pub(crate) fn bond(stash: AccountId, amount: Balance) {
    let origin = RuntimeOrigin::signed(stash);
    assert_ok!(Staking::bond(origin, Role::Provider, amount));
}

/// Starts to unbond, and withdraws when that is over.
pub(crate) fn leave_with(stash: AccountId, amount: Balance) {
    assert_ok!(Staking::unbond(RuntimeOrigin::signed(stash), amount));
    pass_days(7);
    assert_ok!(Staking::withdraw_unbonded(RuntimeOrigin::signed(stash)));
}

pub(crate) fn pass_days(days: u64) {
    pass_blocks(days * DAY);
}

pub(crate) fn pass_blocks(blocks: u64) {
    System::set_block_number(System::block_number() + blocks);
}

/// Notes a service of somebody who made so many of the blocks that were expected.
pub(crate) fn serve(operator: AccountId, made: u32, expected: u64, owed: Balance) {
    let service = Service {
        made,
        expected_millionths: expected * 1_000_000,
        owed,
        paid: (0, 0),
    };
    Services::insert(operator, service);
}

/// Fees that validators are to share.
pub(crate) fn collect_fees(amount: Balance) {
    // From elsewhere: nothing is minted by fees.
    let from = 1_003;
    let keep = frame_support::traits::tokens::Preservation::Preserve;
    assert_ok!(<Balances as Mutate<_>>::transfer(&from, &FEES, amount, keep));
}

/// What was noted for an operator's pool.
pub(crate) fn rewards(operator: AccountId) -> Balance {
    Pools::get(operator).map_or(0, |(_, rewards)| rewards)
}

/// What is in a pot beyond what keeps it.
pub(crate) fn in_pot(pot: AccountId) -> Balance {
    Balances::free_balance(pot) - EXISTENTIAL_DEPOSIT
}

/// Events of this pallet since the last call.
pub(crate) fn events() -> Vec<Event<Test>> {
    let ours = |record: frame_system::EventRecord<RuntimeEvent, _>| match record.event {
        RuntimeEvent::Emission(event) => Some(event),
        _ => None,
    };
    let events = System::events().into_iter().filter_map(ours).collect();
    System::reset_events();
    events
}
