//! Days paid into the pools that there really are.
#![allow(missing_docs, reason = "the runtime of a test")]

use frame_support::{
    PalletId, assert_ok, derive_impl, parameter_types,
    traits::{fungible::Mutate, tokens::Preservation},
};
use proptest::prelude::*;
use sp_runtime::{BuildStorage, Permill, Perquintill};
use surety_emission::SURE;
use surety_pallet_emission::Minted;
use surety_types::traits::{
    PoolLedger, Reliability, Service, ServicePay, SessionIndex, Sessions, ValidatorService,
};

type AccountId = u64;
type Balance = u128;
type Block = frame_system::mocking::MockBlock<Test>;

const FEES: AccountId = 1_002;

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
    pub type Delegation = surety_pallet_delegation;
    #[runtime::pallet_index(4)]
    pub type Emission = surety_pallet_emission;
}

parameter_types! {
    pub const ExistentialDeposit: Balance = SURE / 100;
    pub const MinBond: Balance = SURE;
    pub const UnbondingPeriod: u64 = 10;
    pub const PotId: PalletId = PalletId(*b"sur/rwrd");
    pub const SessionsKept: u32 = 10;
    pub const ValidatorPot: AccountId = FEES;
    pub const ValidatorShare: Permill = Permill::from_percent(40);
    pub const RewardSessions: u32 = 1;
}

/// What operators did.
#[frame_support::storage_alias]
type Services = StorageMap<MockServices, frame_support::Twox64Concat, AccountId, Service<Balance>>;

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

pub struct Punctual;

impl Reliability<AccountId> for Punctual {
    fn missed(_: &AccountId) -> u32 {
        0
    }
}

pub struct OneSession;

impl Sessions for OneSession {
    fn current() -> SessionIndex {
        10
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn set_for_benchmark(_: SessionIndex) {}
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
    type Pools = Delegation;
    type OnClosed = Emission;
    type WeightInfo = ();
}

impl surety_pallet_delegation::Config for Test {
    type Currency = Balances;
    type RuntimeHoldReason = RuntimeHoldReason;
    type Ledgers = Staking;
    type Sessions = OneSession;
    type SessionsKept = SessionsKept;
    type BlockNumberProvider = System;
    type UnbondingPeriod = UnbondingPeriod;
    type MinSelfBond = MinBond;
    type MinDelegation = MinBond;
    type PotId = PotId;
    type Pay = Emission;
    type OnClosed = ();
    type WeightInfo = ();
}

impl surety_pallet_emission::Config for Test {
    type Balance = Balance;
    type Currency = Balances;
    type Pools = Delegation;
    type Services = MockServices;
    type Stake = Staking;
    type Reliability = Punctual;
    type ValidatorPot = ValidatorPot;
    type ValidatorShare = ValidatorShare;
    type RewardSessions = RewardSessions;
    type WeightInfo = ();
}

/// Operators 1 and 2 have 100 SURE of their own, and 3 has 300 behind the first.
fn execute_with(test: impl FnOnce()) {
    let pot = <Delegation as PoolLedger<AccountId, Balance>>::pot();
    let rich = [1, 2, 3].map(|who| (who, 1_000 * SURE));
    let pots = [pot, FEES].map(|pot| (pot, SURE / 100));
    let storage = RuntimeGenesisConfig {
        balances: pallet_balances::GenesisConfig {
            balances: rich.into_iter().chain(pots).collect(),
            ..Default::default()
        },
        ..Default::default()
    }
    .build_storage()
    .expect("the genesis is valid");
    sp_io::TestExternalities::new(storage).execute_with(|| {
        System::set_block_number(1);
        let tenth = Permill::from_percent(10);
        for operator in [1, 2] {
            assert_ok!(Delegation::open(signed(operator), 100 * SURE, tenth));
        }
        assert_ok!(Delegation::delegate(signed(3), 1, 300 * SURE));
        test();
        sound();
    });
}

fn signed(who: AccountId) -> RuntimeOrigin {
    RuntimeOrigin::signed(who)
}

fn sound() {
    assert_ok!(Emission::do_try_state());
    assert_ok!(Delegation::do_try_state());
    assert_ok!(Staking::do_try_state());
}

fn serve(operator: AccountId, made: u32, owed: Balance) {
    let service = Service {
        made,
        expected_millionths: 10_000_000,
        owed,
        paid: (0, 0),
    };
    Services::insert(operator, service);
}

/// What a claim brings.
fn claim(who: AccountId, operator: AccountId) -> Balance {
    let had = Balances::free_balance(who);
    assert_ok!(Delegation::claim(signed(who), operator));
    Balances::free_balance(who) - had
}

#[test]
fn what_is_minted_for_an_operator_reaches_who_backs_it() {
    execute_with(|| {
        let (amount, keep) = (20 * SURE, Preservation::Preserve);
        assert_ok!(<Balances as Mutate<_>>::transfer(&2, &FEES, amount, keep));
        let minted = Minted::<Test>::get();
        serve(1, 10, 30 * SURE);
        serve(2, 10, 8 * SURE);
        // Who has no pool is not paid, and leaves its part of the fees.
        serve(4, 5, 90 * SURE);
        Emission::session_ended(0);
        assert_eq!(Minted::<Test>::get() - minted, 38 * SURE);

        // 38 SURE for the first pool, of which its operator asks a tenth and has a quarter of the rest, but
        // for what does not divide.
        let operator = 38 * SURE / 10 + 38 * SURE * 9 / 40;
        assert!(operator - claim(1, 1) <= 1);
        assert!(38 * SURE - operator - claim(3, 1) <= 1);
        assert!(16 * SURE - claim(2, 2) <= 1);
        assert_eq!(Balances::free_balance(FEES), 4 * SURE + SURE / 100);
    });
}

#[derive(Clone, Debug)]
enum Step {
    Serve(AccountId, u32, Balance),
    EndDay,
    Delegate(AccountId, Balance),
    Undelegate(AccountId, AccountId, Balance),
    Slash(AccountId, u64),
    Claim(AccountId, AccountId),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (who, operator) = (|| 1..=3u64, || 1..=2u64);
    let amount = || prop_oneof![0..100u128, SURE..200 * SURE];
    let step = prop_oneof![
        4 => (1..=4u64, 0..12u32, amount()).prop_map(|(who, made, owed)| Step::Serve(who, made, owed)),
        4 => Just(Step::EndDay),
        2 => (operator(), amount()).prop_map(|(operator, amount)| Step::Delegate(operator, amount)),
        2 => (who(), operator(), amount()).prop_map(|(who, of, amount)| Step::Undelegate(who, of, amount)),
        1 => (operator(), 0..=100u64).prop_map(|(operator, percent)| Step::Slash(operator, percent)),
        3 => (who(), operator()).prop_map(|(who, operator)| Step::Claim(who, operator)),
    ];
    prop::collection::vec(step, 1..40)
}

fn take(step: Step) {
    // Refused calls are part of the game.
    match step {
        Step::Serve(operator, made, owed) => serve(operator, made, owed),
        Step::EndDay => {
            let minted = Minted::<Test>::get();
            let owed: Balance = Services::iter_values().map(|service| service.owed).sum();
            Emission::session_ended(0);
            assert!(Minted::<Test>::get() - minted <= owed);
            assert!(Services::iter().next().is_none());
        }
        Step::Delegate(operator, amount) => {
            let _refused = Delegation::delegate(signed(3), operator, amount);
        }
        Step::Undelegate(who, operator, amount) => {
            let _refused = Delegation::undelegate(signed(who), operator, amount);
        }
        Step::Slash(operator, percent) => {
            Delegation::note_pending(&operator, 10);
            Delegation::slash(&operator, Perquintill::from_percent(percent), 10);
        }
        Step::Claim(who, operator) => {
            let _refused = Delegation::claim(signed(who), operator);
        }
    }
}

/// As it leaves, the operator gets what it is owed of the day so far, and those who stay get theirs. Fees are
/// shared when the day is over, among the pools that are there.
#[test]
fn an_operator_that_leaves_before_a_day_is_over_is_paid_for_what_it_served() {
    execute_with(|| {
        let (amount, keep) = (20 * SURE, Preservation::Preserve);
        assert_ok!(<Balances as Mutate<_>>::transfer(&3, &FEES, amount, keep));
        serve(1, 10, 30 * SURE);
        serve(2, 10, 8 * SURE);
        let (minted, had) = (Minted::<Test>::get(), Balances::free_balance(1));
        assert_ok!(Delegation::undelegate(signed(1), 1, 100 * SURE));
        assert_eq!(Minted::<Test>::get() - minted, 30 * SURE);
        // It asks a tenth and has a quarter of the rest.
        let operator = 30 * SURE / 10 + 30 * SURE * 9 / 40;
        assert!(operator - (Balances::free_balance(1) - had) <= 1);
        assert!(30 * SURE - operator - claim(3, 1) <= 1);

        // Alone in its pool, which is gone then. What others served is not touched.
        let had = Balances::free_balance(2);
        assert_ok!(Delegation::undelegate(signed(2), 2, 100 * SURE));
        assert!(8 * SURE - (Balances::free_balance(2) - had) <= 1);
        Emission::session_ended(287);
        // Half of them, of which the operator asks a tenth as before. The mock forgets no service of a pool
        // that is gone: nobody has its part.
        let claimed = claim(3, 1);
        assert!(9 * SURE - claimed <= 1, "{claimed}");
        assert!(Services::iter().next().is_none());
    });
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) }))]

    #[test]
    fn both_pallets_stay_sound_whatever_happens(steps in steps()) {
        execute_with(|| {
            for step in steps {
                take(step);
                sound();
            }
        });
    }
}
