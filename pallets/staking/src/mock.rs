//! A runtime of System, Balances, Assets and this pallet, and a fluent way to set it up.

use frame_support::{
    assert_ok, derive_impl, parameter_types,
    traits::{AsEnsureOriginWithArg, fungible::InspectHold, fungibles::InspectHold as _},
};
use frame_system::{EnsureRoot, EnsureSigned};
use sp_runtime::BuildStorage;
use surety_types::{
    stake::Role,
    traits::{Admission, Jail, PoolStakes, StashClosed},
};

use crate as pallet_staking;
use crate::{AssetCollateral, CollateralTerms, HoldReason, LedgerOf, Ledgers};

pub(crate) type AccountId = u64;
pub(crate) type Balance = u128;
pub(crate) type AssetId = u32;
type Block = frame_system::mocking::MockBlock<Test>;

pub(crate) const EXISTENTIAL_DEPOSIT: Balance = 5;
pub(crate) const MINIMUM: Balance = 100;
pub(crate) const PERIOD: u64 = 10;
/// Two assets, and who administers them.
pub(crate) const GOLD: AssetId = 1;
pub(crate) const SILVER: AssetId = 2;
pub(crate) const ADMIN: AccountId = 99;
/// The least of each that an account has, or it has none.
pub(crate) const ASSET_MINIMUM: Balance = 2;

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
    #[runtime::pallet_index(3)]
    pub type Assets = pallet_assets;
    #[runtime::pallet_index(4)]
    pub type AssetsHolder = pallet_assets_holder;
}

parameter_types! {
    pub const ExistentialDeposit: Balance = EXISTENTIAL_DEPOSIT;
    pub static MinBond: Balance = MINIMUM;
    pub static UnbondingPeriod: u64 = PERIOD;
    pub static SuspendedStashes: Vec<AccountId> = Vec::new();
    pub static ClosedStashes: Vec<AccountId> = Vec::new();
    pub static Delegators: Vec<AccountId> = Vec::new();
    pub static Required: Option<(AssetId, Balance)> = None;
    pub static Refused: Vec<AccountId> = Vec::new();
}

/// What a test asks for.
pub struct Terms;

impl CollateralTerms<AccountId, AssetId, Balance> for Terms {
    fn required() -> Option<(AssetId, Balance)> {
        Required::get()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn demand_for_benchmark(who: &AccountId) {
        let asset = Required::get().map_or(SILVER, |(asset, _)| asset) + 1;
        let signed = || RuntimeOrigin::signed(ADMIN);
        assert_ok!(Assets::force_create(
            RuntimeOrigin::root(),
            asset,
            ADMIN,
            false,
            1
        ));
        assert_ok!(Assets::mint(signed(), asset, *who, MINIMUM + 1));
        Required::set(Some((asset, MINIMUM)));
    }
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

#[derive_impl(pallet_assets::config_preludes::TestDefaultConfig)]
impl pallet_assets::Config for Test {
    type Balance = Balance;
    type Currency = Balances;
    type CreateOrigin = AsEnsureOriginWithArg<EnsureSigned<AccountId>>;
    type ForceOrigin = EnsureRoot<AccountId>;
    type Holder = AssetsHolder;
}

impl pallet_assets_holder::Config for Test {
    type RuntimeEvent = RuntimeEvent;
    type RuntimeHoldReason = RuntimeHoldReason;
}

impl pallet_staking::Config for Test {
    type Admission = Admitted;
    type Collateral = AssetCollateral<AssetsHolder, Terms>;
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
    assets: Vec<(AssetId, AccountId, Balance)>,
}

impl TestExt {
    pub(crate) fn new() -> Self {
        MinBond::set(MINIMUM);
        UnbondingPeriod::set(PERIOD);
        ClosedStashes::take();
        SuspendedStashes::take();
        Delegators::take();
        Required::take();
        Refused::take();
        Self {
            balances: Vec::new(),
            bonds: Vec::new(),
            agents: Vec::new(),
            assets: Vec::new(),
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

    /// Gives `who` so much of an asset that `amount` can be put on hold.
    pub(crate) fn owns(mut self, who: AccountId, asset: AssetId, amount: Balance) -> Self {
        self.assets.push((asset, who, amount + ASSET_MINIMUM));
        self
    }

    /// Asks providers for collateral.
    pub(crate) fn requires(self, asset: AssetId, amount: Balance) -> Self {
        Required::set(Some((asset, amount)));
        self
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
            assets: pallet_assets::GenesisConfig {
                assets: [GOLD, SILVER]
                    .map(|asset| (asset, ADMIN, false, ASSET_MINIMUM))
                    .to_vec(),
                accounts: self.assets,
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

/// What somebody has on hold of an asset, and free beyond the least of it.
pub(crate) fn collateral(who: AccountId, asset: AssetId) -> (Balance, Balance) {
    let held = AssetsHolder::balance_on_hold(asset, &HoldReason::Collateral.into(), &who);
    (held, Assets::balance(asset, who) - ASSET_MINIMUM)
}

pub(crate) fn pass_blocks(blocks: u64) {
    System::set_block_number(System::block_number() + blocks);
}

pub(crate) fn signed(who: AccountId) -> RuntimeOrigin {
    RuntimeOrigin::signed(who)
}
