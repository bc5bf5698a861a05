//! A runtime of Session with its history, Authorship, Offences and this pallet. Pools, trust-lock and
//! emission are as a test says.

use std::collections::{BTreeMap, BTreeSet};

use frame_support::{
    ConsensusEngineId, assert_ok, derive_impl, parameter_types,
    traits::{ConstU64, FindAuthor, OnFinalize, OnInitialize},
    weights::Weight,
};
use pallet_session::{PeriodicSessions, disabling::UpToLimitDisablingStrategy, historical};
use sp_runtime::{
    BuildStorage, Perbill, Perquintill,
    testing::UintAuthorityId,
    traits::{BlockNumberProvider, Convert, ConvertInto},
};
use sp_staking::{
    SessionIndex,
    offence::{Kind, Offence, OffenceError, ReportOffence},
};
use surety_types::{
    traits::{Jail, PoolLedger, ServicePay, ValidatorPenalties},
    trust::SlashId,
};

use crate as pallet_validators;
use crate::{ServiceOf, Services};

pub(crate) type AccountId = u64;
type Block = frame_system::mocking::MockBlock<Test>;

pub(crate) const SELF_BOND: u128 = 100;
/// What a pool earns in a session is a thousandth of it.
pub(crate) const BACKING: u128 = 50_000;

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
    pub type Validators = pallet_validators;
}

/// A slash that was written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convicted {
    pub operator: AccountId,
    pub session: SessionIndex,
    pub part: Perbill,
    pub carried_out: bool,
}

parameter_types! {
    pub static SessionBlocks: u64 = 4;
    pub static ValidatorsMin: u32 = 1;
    pub static ValidatorsMax: u32 = 10;
    pub static CandidatesMost: u32 = 1_000;
    pub const SessionsKept: SessionIndex = 6;
    pub const MinSelfBond: u128 = SELF_BOND;
    /// Own stake and all stake of each pool.
    pub static Stakes: BTreeMap<AccountId, (u128, u128)> = BTreeMap::new();
    pub static Jailed: BTreeSet<AccountId> = BTreeSet::new();
    pub static Suspended: BTreeSet<AccountId> = BTreeSet::new();
    pub static Present: Vec<AccountId> = Vec::new();
    /// By their id.
    pub static Slashes: Vec<Convicted> = Vec::new();
    pub static Progress: u64 = 0;
    pub static Finalizes: bool = true;
    pub static Draw: u64 = 0;
    /// Validators whose nodes are off.
    pub static Absent: BTreeSet<AccountId> = BTreeSet::new();
    pub static EndedSessions: Vec<SessionIndex> = Vec::new();
    pub static DayWeight: Weight = Weight::zero();
}

#[derive_impl(frame_system::config_preludes::TestDefaultConfig)]
impl frame_system::Config for Test {
    type Block = Block;
    type AccountData = pallet_balances::AccountData<u64>;
}

#[derive_impl(pallet_balances::config_preludes::TestDefaultConfig)]
impl pallet_balances::Config for Test {
    type AccountStore = System;
}

parameter_types! {
    pub FirstSessionEnds: u64 = SessionBlocks::get() + 1;
}

impl pallet_session::Config for Test {
    type RuntimeEvent = RuntimeEvent;
    type ValidatorId = AccountId;
    type ValidatorIdOf = ConvertInto;
    type ShouldEndSession = PeriodicSessions<SessionBlocks, FirstSessionEnds>;
    type NextSessionRotation = PeriodicSessions<SessionBlocks, FirstSessionEnds>;
    type SessionManager = historical::NoteHistoricalRoot<Test, Validators>;
    type SessionHandler = pallet_session::TestSessionHandler;
    type Keys = UintAuthorityId;
    type DisablingStrategy = UpToLimitDisablingStrategy<3>;
    type WeightInfo = ();
    type Currency = Balances;
    type KeyDeposit = ConstU64<0>;
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
    type FindAuthor = DrawnAuthor;
    type EventHandler = Validators;
}

/// The validator that `Draw` says, of those whose nodes are on.
pub struct DrawnAuthor;

impl FindAuthor<AccountId> for DrawnAuthor {
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
        let place = Draw::get().checked_rem(present.len() as u64)?;
        present.get(place as usize).copied()
    }
}

impl pallet_offences::Config for Test {
    type RuntimeEvent = RuntimeEvent;
    type IdentificationTuple = historical::IdentificationTuple<Self>;
    type OnOffenceHandler = Validators;
}

impl pallet_validators::Config for Test {
    type Balance = u128;
    type Pools = Pools;
    type Penalties = Penalties;
    type Jail = Penalties;
    type Pay = Pay;
    type BlockNumberProvider = Clock;
    type MinSelfBond = MinSelfBond;
    type ValidatorsMin = ValidatorsMin;
    type ValidatorsMax = ValidatorsMax;
    type CandidatesMax = CandidatesMost;
    type SessionsKept = SessionsKept;
    type WeightInfo = ();
}

/// Pools with as much as a test says.
pub struct Pools;

impl PoolLedger<AccountId, u128> for Pools {
    fn backing(operator: &AccountId) -> u128 {
        Stakes::get().get(operator).map_or(0, |(_, backing)| *backing)
    }

    fn own(operator: &AccountId) -> u128 {
        Stakes::get().get(operator).map_or(0, |(own, _)| *own)
    }

    fn is_pending(operator: &AccountId) -> bool {
        Slashes::get()
            .iter()
            .any(|slash| slash.operator == *operator && !slash.carried_out)
    }

    fn pot() -> AccountId {
        0
    }

    fn reward(_: &AccountId, _: u128) -> u128 {
        0
    }

    fn note_pending(_: &AccountId, _: SessionIndex) {}

    fn spare(_: &AccountId) {}

    fn slash(_: &AccountId, _: Perquintill, _: SessionIndex) -> u128 {
        0
    }

    fn slash_weight() -> Weight {
        Weight::zero()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn open_for_benchmark(operator: &AccountId, own: u128) {
        set_stake(*operator, own, own);
    }
}

/// Writes down who is convicted, and jails it.
pub struct Penalties;

impl ValidatorPenalties<AccountId> for Penalties {
    fn convict(operator: &AccountId, session: u32, part: Perbill) -> SlashId {
        Jailed::mutate(|jailed| jailed.insert(*operator));
        Slashes::mutate(|slashes| {
            slashes.push(Convicted {
                operator: *operator,
                session,
                part,
                carried_out: false,
            });
            slashes.len() as SlashId - 1
        })
    }

    fn raise(slash: SlashId, part: Perbill) -> bool {
        Slashes::mutate(|slashes| {
            let slash = &mut slashes[slash as usize];
            if !slash.carried_out {
                slash.part = slash.part.max(part);
            }
            !slash.carried_out
        })
    }

    fn is_in_jail(operator: &AccountId) -> bool {
        Jailed::get().contains(operator)
    }

    fn note_missed(operator: &AccountId) {
        Suspended::mutate(|suspended| suspended.insert(*operator));
    }

    fn note_present(operator: &AccountId) {
        Present::mutate(|present| present.push(*operator));
    }
}

impl Jail<AccountId> for Penalties {
    fn is_jailed(stash: &AccountId) -> bool {
        Jailed::get().contains(stash) || Self::is_suspended(stash)
    }

    fn is_suspended(stash: &AccountId) -> bool {
        Suspended::get().contains(stash)
    }
}

/// A thousandth of a pool for each session.
pub struct Pay;

impl ServicePay<u128> for Pay {
    fn session_pay(backing: u128) -> u128 {
        backing / 1_000
    }

    fn session_ended(session: u32) {
        EndedSessions::mutate(|ended| ended.push(session));
    }

    fn session_ended_weight() -> Weight {
        DayWeight::get()
    }
}

/// Moves with each block, unless finality stands still.
pub struct Clock;

impl BlockNumberProvider for Clock {
    type BlockNumber = u64;

    fn current_block_number() -> u64 {
        Progress::get()
    }

    fn set_block_number(block: u64) {
        Progress::set(block);
    }
}

/// A test on a chain of its own: the validators of genesis have pools of `BACKING` and are candidates.
pub(crate) struct TestExt(u64);

impl TestExt {
    /// Validators 1, 2, ... `validators`.
    pub(crate) fn new(validators: u64) -> Self {
        SessionBlocks::set(4);
        ValidatorsMin::set(1);
        ValidatorsMax::set(10);
        CandidatesMost::set(1_000);
        Stakes::take();
        Jailed::take();
        Suspended::take();
        Present::take();
        Slashes::take();
        Progress::take();
        Finalizes::set(true);
        Draw::take();
        Absent::take();
        EndedSessions::take();
        DayWeight::take();
        Self(validators)
    }

    pub(crate) fn session_blocks(self, blocks: u64) -> Self {
        SessionBlocks::set(blocks);
        self
    }

    pub(crate) fn set_size(self, min: u32, max: u32) -> Self {
        ValidatorsMin::set(min);
        ValidatorsMax::set(max);
        self
    }

    pub(crate) fn build(self) -> sp_io::TestExternalities {
        let candidates: Vec<_> = (1..=self.0).collect();
        let with_pool = |&operator: &u64| {
            set_stake(operator, SELF_BOND, BACKING);
            (operator, operator, key(operator))
        };
        let keys = candidates.iter().map(with_pool).collect();
        let storage = RuntimeGenesisConfig {
            session: pallet_session::GenesisConfig {
                keys,
                ..Default::default()
            },
            validators: pallet_validators::GenesisConfig { candidates },
            ..Default::default()
        }
        .build_storage();
        let mut ext = sp_io::TestExternalities::new(storage.expect("the genesis is valid"));
        ext.execute_with(pass_block);
        ext
    }

    pub(crate) fn execute_with(self, test: impl FnOnce()) {
        self.build().execute_with(|| {
            test();
            assert_ok!(Validators::do_try_state());
        });
    }
}

/// The keys that a validator has at genesis.
pub(crate) fn key(validator: AccountId) -> UintAuthorityId {
    UintAuthorityId(validator + 1_000)
}

pub(crate) fn set_stake(operator: AccountId, own: u128, backing: u128) {
    Stakes::mutate(|stakes| stakes.insert(operator, (own, backing)));
}

pub(crate) fn set_keys(operator: AccountId, keys: UintAuthorityId) {
    // An account that exists.
    if System::providers(&operator) == 0 {
        System::inc_providers(&operator);
    }
    let origin = RuntimeOrigin::signed(operator);
    assert_ok!(Session::set_keys(origin, keys, Vec::new()));
}

/// A candidate with keys, `MinSelfBond` of its own, and so much behind it.
pub(crate) fn join(operator: AccountId, backing: u128) {
    set_stake(operator, SELF_BOND, backing);
    set_keys(operator, key(operator));
    assert_ok!(Validators::validate(RuntimeOrigin::signed(operator)));
}

/// A block by the next author in turn, or by whom `Draw` says.
pub(crate) fn pass_block() {
    let now = System::block_number() + 1;
    System::set_block_number(now);
    Draw::mutate(|draw| *draw = draw.wrapping_add(1));
    AllPalletsWithSystem::on_initialize(now);
    AllPalletsWithSystem::on_finalize(now);
    if Finalizes::get() {
        Progress::mutate(|clock| *clock += 1);
    }
}

/// Blocks until `sessions` more have begun.
pub(crate) fn pass_sessions(sessions: SessionIndex) {
    let target = Session::current_index() + sessions;
    while Session::current_index() < target {
        pass_block();
    }
}

/// Numbers that nobody foresees (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Sessions whose authors are drawn, as BABE draws them.
pub(crate) fn pass_drawn_sessions(sessions: SessionIndex, random: &mut Random) {
    let target = Session::current_index() + sessions;
    while Session::current_index() < target {
        Draw::set(random.draw());
        pass_block();
    }
}

/// What is owed to an operator.
pub(crate) fn service(operator: AccountId) -> ServiceOf<Test> {
    Services::<Test>::get(operator).unwrap_or_default()
}

/// Two of a kind, as BABE's and GRANDPA's pallets report it.
pub(crate) struct Equivocation {
    pub(crate) offender: AccountId,
    pub(crate) session: SessionIndex,
    pub(crate) slot: u64,
    pub(crate) validators: u32,
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

/// Reports that `offender` signed twice in `slot` of the running session.
pub(crate) fn report(offender: AccountId, slot: u64) -> Result<(), OffenceError> {
    report_in(Session::current_index(), offender, slot)
}

/// The same of another session.
pub(crate) fn report_in(session: SessionIndex, offender: AccountId, slot: u64) -> Result<(), OffenceError> {
    Offences::report_offence(
        Vec::new(),
        Equivocation {
            offender,
            session,
            slot,
            validators: Session::validators().len() as u32,
        },
    )
}
