//! The chain that the tests run on: four operators validate from genesis, with pools of their own.

use std::collections::BTreeSet;

use frame_support::{
    ConsensusEngineId, PalletId, assert_ok, derive_impl, parameter_types,
    traits::{ConstU64, FindAuthor, OnFinalize, OnIdle, OnInitialize},
    weights::{Weight, constants::RocksDbWeight},
};
use frame_system::EnsureRoot;
use pallet_session::{PeriodicSessions, disabling::UpToLimitDisablingStrategy, historical};
use sp_runtime::{
    BuildStorage, Perbill, Permill,
    testing::UintAuthorityId,
    traits::{Convert, ConvertInto},
};
use sp_staking::offence::{Kind, Offence, OffenceError, ReportOffence};
use surety_types::{
    traits::{PoolLedger, SessionIndex, Sessions},
    trust::{Slash, SlashId},
};

pub type AccountId = u64;
pub type Balance = u128;
type Block = frame_system::mocking::MockBlock<Test>;

pub use surety_emission::SURE;
pub const ED: Balance = SURE / 100;
pub const SELF_BOND: Balance = 10_000 * SURE;
/// What each operator of genesis has in its pool.
pub const OWN: Balance = 12_000 * SURE;
/// What every account begins with.
pub const MONEY: Balance = 100_000 * SURE;
pub const TREASURY: AccountId = 901;
pub const FEES: AccountId = 902;
pub const INSURANCE: AccountId = 903;
pub const OPERATORS: u64 = 4;
pub const ACCOUNTS: u64 = 30;

/// Blocks of a session.
pub const SESSION: u64 = 10;
/// Sessions of a day.
pub const DAY: SessionIndex = 6;
pub const DEFERRAL: u64 = 70;
pub const JAIL: u64 = 100;
pub const SUSPENSION: u64 = 20;
/// Longer than a day and the deferral together.
pub const UNBONDING: u64 = 150;

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
    pub type Session = pallet_session;
    #[runtime::pallet_index(3)]
    pub type Historical = historical;
    #[runtime::pallet_index(4)]
    pub type Authorship = pallet_authorship;
    #[runtime::pallet_index(5)]
    pub type Offences = pallet_offences;
    #[runtime::pallet_index(6)]
    pub type Staking = surety_pallet_staking;
    #[runtime::pallet_index(7)]
    pub type TrustLock = surety_pallet_trust_lock;
    #[runtime::pallet_index(8)]
    pub type Billing = surety_pallet_billing;
    #[runtime::pallet_index(9)]
    pub type Delegation = surety_pallet_delegation;
    #[runtime::pallet_index(10)]
    pub type Validators = surety_pallet_validators;
    #[runtime::pallet_index(11)]
    pub type Emission = surety_pallet_emission;
}

pub type DelegationError = surety_pallet_delegation::Error<Test>;
pub type StakingError = surety_pallet_staking::Error<Test>;
pub type ValidatorsError = surety_pallet_validators::Error<Test>;
pub type TrustLockEvent = surety_pallet_trust_lock::Event<Test>;

parameter_types! {
    pub const ExistentialDeposit: Balance = ED;
    pub const MinBond: Balance = 100 * SURE;
    pub const MinSelfBond: Balance = SELF_BOND;
    pub const MinDelegation: Balance = 10 * SURE;
    pub const UnbondingPeriod: u64 = UNBONDING;
    pub const SuspensionPeriod: u64 = SUSPENSION;
    pub const SlashDeferral: u64 = DEFERRAL;
    pub const JailPeriod: u64 = JAIL;
    pub const CorrelationWindow: u64 = 50;
    pub const StakePart: Permill = Permill::from_percent(5);
    pub const FinderShare: Permill = Permill::from_percent(30);
    pub const ClientShare: Permill = Permill::from_percent(20);
    pub const ProbationTasks: u32 = 10;
    pub const InsurancePool: AccountId = INSURANCE;
    pub const TreasuryAccount: AccountId = TREASURY;
    pub const ValidatorPot: AccountId = FEES;
    pub const FeeRate: Permill = Permill::from_percent(5);
    pub const FeeMin: Balance = SURE / 1_000;
    pub const TreasuryShare: Permill = Permill::from_percent(40);
    pub const ValidatorShare: Permill = Permill::from_percent(40);
    pub const ClientLock: Permill = Permill::zero();
    pub const PotId: PalletId = PalletId(*b"sur/pool");
    // Another account than that, of the four letters that fit beside what all pots have.
    pub const EscrowPot: PalletId = PalletId(*b"escr/sur");
    pub const SessionsKept: SessionIndex = DAY;
    pub const RewardSessions: u32 = DAY;
    pub const ValidatorsMin: u32 = 1;
    pub const ValidatorsMax: u32 = 6;
    pub const FirstSessionEnds: u64 = SESSION + 1;
    pub static CandidatesMax: u32 = 1_000;
    /// Validators whose nodes are off.
    pub static Absent: BTreeSet<AccountId> = BTreeSet::new();
}

#[derive_impl(frame_system::config_preludes::TestDefaultConfig)]
impl frame_system::Config for Test {
    type Block = Block;
    type AccountData = pallet_balances::AccountData<Balance>;
    type DbWeight = RocksDbWeight;
}

#[derive_impl(pallet_balances::config_preludes::TestDefaultConfig)]
impl pallet_balances::Config for Test {
    type Balance = Balance;
    type ExistentialDeposit = ExistentialDeposit;
    type AccountStore = System;
}

impl pallet_session::Config for Test {
    type RuntimeEvent = RuntimeEvent;
    type ValidatorId = AccountId;
    type ValidatorIdOf = ConvertInto;
    type ShouldEndSession = PeriodicSessions<ConstU64<SESSION>, FirstSessionEnds>;
    type NextSessionRotation = PeriodicSessions<ConstU64<SESSION>, FirstSessionEnds>;
    type SessionManager = historical::NoteHistoricalRoot<Test, Validators>;
    type SessionHandler = pallet_session::TestSessionHandler;
    type Keys = UintAuthorityId;
    type DisablingStrategy = UpToLimitDisablingStrategy<3>;
    type WeightInfo = ();
    type Currency = Balances;
    type KeyDeposit = KeyDeposit;
}

parameter_types! {
    pub const KeyDeposit: Balance = 0;
}

impl historical::Config for Test {
    type RuntimeEvent = RuntimeEvent;
    type FullIdentification = ();
    type FullIdentificationOf = NothingBehind;
}

pub struct NothingBehind;

impl Convert<AccountId, Option<()>> for NothingBehind {
    fn convert(_: AccountId) -> Option<()> {
        Some(())
    }
}

impl pallet_authorship::Config for Test {
    type FindAuthor = InTurn;
    type EventHandler = Validators;
}

/// The next in turn of the validators whose nodes are on and that are not disabled.
pub struct InTurn;

impl FindAuthor<AccountId> for InTurn {
    fn find_author<'a, I>(_: I) -> Option<AccountId>
    where
        I: 'a + IntoIterator<Item = (ConsensusEngineId, &'a [u8])>,
    {
        let (disabled, absent) = (Session::disabled_validators(), Absent::get());
        let present: Vec<_> = (0u32..)
            .zip(Session::validators())
            .filter(|(index, validator)| !disabled.contains(index) && !absent.contains(validator))
            .map(|(_, validator)| validator)
            .collect();
        let place = System::block_number().checked_rem(present.len() as u64)?;
        present.get(place as usize).copied()
    }
}

impl pallet_offences::Config for Test {
    type RuntimeEvent = RuntimeEvent;
    type IdentificationTuple = historical::IdentificationTuple<Self>;
    type OnOffenceHandler = Validators;
}

impl surety_pallet_staking::Config for Test {
    type Admission = ();
    type Collateral = ();
    type Currency = Balances;
    type RuntimeHoldReason = RuntimeHoldReason;
    type MinBond = MinBond;
    type BlockNumberProvider = System;
    type Jail = TrustLock;
    type UnbondingPeriod = UnbondingPeriod;
    type Pools = Delegation;
    type OnClosed = (TrustLock, Emission);
    type WeightInfo = ();
}

impl surety_pallet_trust_lock::Config for Test {
    type Balance = Balance;
    type Currency = Balances;
    type Stake = Staking;
    type Pools = Delegation;
    type Validators = Validators;
    type BlockNumberProvider = System;
    type SlashDeferral = SlashDeferral;
    type StakePart = StakePart;
    type FinderShare = FinderShare;
    type ClientShare = ClientShare;
    type CorrelationWindow = CorrelationWindow;
    type JailPeriod = JailPeriod;
    type SuspensionPeriod = SuspensionPeriod;
    type ProbationTasks = ProbationTasks;
    type InsurancePool = InsurancePool;
    type VetoOrigin = EnsureRoot<AccountId>;
    type WeightInfo = ();
    #[cfg(feature = "runtime-benchmarks")]
    type Providers = surety_pallet_test_kit::MockProviders;
}

impl surety_pallet_billing::Config for Test {
    type RuntimeHoldReason = RuntimeHoldReason;
    type Currency = Balances;
    type PotId = EscrowPot;
    type FeeRate = FeeRate;
    type FeeMin = FeeMin;
    type TreasuryShare = TreasuryShare;
    type ValidatorShare = ValidatorShare;
    type TreasuryAccount = TreasuryAccount;
    type ValidatorPot = ValidatorPot;
    type ClientLock = ClientLock;
    type Work = Emission;
    type Tasks = ();
}

pub struct RunningSession;

impl Sessions for RunningSession {
    fn current() -> SessionIndex {
        Session::current_index()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn set_for_benchmark(session: SessionIndex) {
        pallet_session::CurrentIndex::<Test>::put(session);
    }
}

impl surety_pallet_delegation::Config for Test {
    type Currency = Balances;
    type RuntimeHoldReason = RuntimeHoldReason;
    type Ledgers = Staking;
    type Sessions = RunningSession;
    type SessionsKept = SessionsKept;
    type BlockNumberProvider = System;
    type UnbondingPeriod = UnbondingPeriod;
    type MinSelfBond = MinSelfBond;
    type MinDelegation = MinDelegation;
    type PotId = PotId;
    type Pay = Emission;
    type OnClosed = (Validators, TrustLock);
    type WeightInfo = ();
}

impl surety_pallet_validators::Config for Test {
    type Balance = Balance;
    type Pools = Delegation;
    type Penalties = TrustLock;
    type Jail = TrustLock;
    type Pay = Emission;
    type BlockNumberProvider = System;
    type MinSelfBond = MinSelfBond;
    type ValidatorsMin = ValidatorsMin;
    type ValidatorsMax = ValidatorsMax;
    type CandidatesMax = CandidatesMax;
    type SessionsKept = SessionsKept;
    type WeightInfo = ();
}

impl surety_pallet_emission::Config for Test {
    type Balance = Balance;
    type Currency = Balances;
    type Pools = Delegation;
    type Services = Validators;
    type Stake = Staking;
    type Reliability = TrustLock;
    type ValidatorPot = ValidatorPot;
    type ValidatorShare = ValidatorShare;
    type RewardSessions = RewardSessions;
    type WeightInfo = ();
}

/// Runs `test` in block 1 of a chain with everybody's money, then checks every invariant.
pub fn on_chain(test: impl FnOnce()) {
    CandidatesMax::set(1_000);
    Absent::take();
    let operators = 1..=OPERATORS;
    let pots = [Delegation::pot(), Billing::pot(), TREASURY, FEES, INSURANCE].map(|pot| (pot, ED));
    let storage = RuntimeGenesisConfig {
        balances: pallet_balances::GenesisConfig {
            balances: (1..=ACCOUNTS).map(|who| (who, MONEY)).chain(pots).collect(),
            ..Default::default()
        },
        session: pallet_session::GenesisConfig {
            keys: operators.clone().map(|who| (who, who, key(who))).collect(),
            ..Default::default()
        },
        delegation: surety_pallet_delegation::GenesisConfig {
            pools: operators
                .clone()
                .map(|who| (who, OWN, Permill::from_percent(10)))
                .collect(),
        },
        validators: surety_pallet_validators::GenesisConfig {
            candidates: operators.collect(),
        },
        ..Default::default()
    }
    .build_storage()
    .unwrap();
    sp_io::TestExternalities::new(storage).execute_with(|| {
        pass(1);
        test();
        sound();
    });
}

/// Every invariant of all pallets.
pub fn sound() {
    assert_ok!(Staking::do_try_state());
    assert_ok!(TrustLock::do_try_state());
    assert_ok!(Billing::do_try_state());
    assert_ok!(Delegation::do_try_state());
    assert_ok!(Validators::do_try_state());
    assert_ok!(Emission::do_try_state());
}

pub fn key(operator: AccountId) -> UintAuthorityId {
    UintAuthorityId(operator + 1_000)
}

pub fn signed(who: AccountId) -> RuntimeOrigin {
    RuntimeOrigin::signed(who)
}

/// So many blocks, none of them full.
pub fn pass(blocks: u64) {
    for _ in 0..blocks {
        let now = System::block_number() + 1;
        System::set_block_number(now);
        AllPalletsWithSystem::on_initialize(now);
        AllPalletsWithSystem::on_idle(now, Weight::MAX);
        AllPalletsWithSystem::on_finalize(now);
    }
}

/// Blocks until so many sessions more have begun.
pub fn pass_sessions(sessions: SessionIndex) {
    let target = Session::current_index() + sessions;
    while Session::current_index() < target {
        pass(1);
    }
}

/// Two of a kind, as BABE's and GRANDPA's pallets report it.
struct Equivocation {
    offender: AccountId,
    session: SessionIndex,
    slot: u64,
    validators: u32,
}

impl Offence<(AccountId, ())> for Equivocation {
    const ID: Kind = *b"test:equivocatio";
    type Slot = u64;

    fn offenders(&self) -> Vec<(AccountId, ())> {
        vec![(self.offender, ())]
    }

    fn session_index(&self) -> SessionIndex {
        self.session
    }

    fn validator_set_count(&self) -> u32 {
        self.validators
    }

    fn slot(&self) -> u64 {
        self.slot
    }

    fn slash_fraction(&self, offenders: u32) -> Perbill {
        Perbill::from_rational(3 * offenders, self.validators).square()
    }
}

/// Reports that a validator signed twice in a slot of a session, when `validators` worked.
pub fn report(
    offender: AccountId,
    session: SessionIndex,
    slot: u64,
    validators: u32,
) -> Result<(), OffenceError> {
    let offence = Equivocation {
        offender,
        session,
        slot,
        validators,
    };
    Offences::report_offence(Vec::new(), offence)
}

/// The same of now. Returns the session.
pub fn equivocate(offender: AccountId) -> SessionIndex {
    let session = Session::current_index();
    let validators = Session::validators().len() as u32;
    assert_ok!(report(offender, session, System::block_number(), validators));
    session
}

pub fn slash_of(id: SlashId) -> Slash<AccountId, Balance, u64> {
    surety_pallet_trust_lock::Slashes::<Test>::get(id).unwrap()
}

pub fn veto(slash: SlashId) {
    assert_ok!(TrustLock::cancel_slash(RuntimeOrigin::root(), slash));
}

pub fn backing(operator: AccountId) -> Balance {
    Delegation::backing(&operator)
}

pub fn can_be_elected(operator: AccountId) -> bool {
    surety_pallet_validators::Candidates::<Test>::get(operator).is_some_and(|candidate| candidate.wants_to)
}

pub fn happened(event: impl Into<RuntimeEvent>) -> bool {
    let event = event.into();
    System::events().iter().any(|record| record.event == event)
}
