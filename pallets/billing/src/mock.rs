//! A chain with balances and billing.

#![allow(clippy::unwrap_used)]

use frame_support::{
    PalletId, construct_runtime, derive_impl, parameter_types,
    traits::{ConstU32, ConstU128, fungible::Inspect},
};
use sp_runtime::{BuildStorage, Perbill, Permill, traits::IdentityLookup};
use surety_types::{task::Assignment, traits::WorkPay, trust::AuditToPay};

use crate::{self as billing, Event, Pallet};

pub type AccountId = u64;
pub type Balance = u128;

/// Existential deposit.
pub const ED: Balance = 100;

pub const CLIENT: AccountId = 1;
pub const OTHER_CLIENT: AccountId = 2;
pub const ALICE: AccountId = 11;
pub const BOB: AccountId = 12;
/// A provider that `TestExt` gives no account.
pub const GHOST: AccountId = 19;
pub const TREASURY: AccountId = 101;
pub const POT: AccountId = 102;

construct_runtime!(
    pub enum Test {
        System: frame_system,
        Balances: pallet_balances,
        Billing: billing,
    }
);

#[derive_impl(frame_system::config_preludes::TestDefaultConfig)]
impl frame_system::Config for Test {
    type Block = frame_system::mocking::MockBlock<Test>;
    type AccountId = AccountId;
    type Lookup = IdentityLookup<AccountId>;
    type AccountData = pallet_balances::AccountData<Balance>;
}

#[derive_impl(pallet_balances::config_preludes::TestDefaultConfig)]
impl pallet_balances::Config for Test {
    type AccountStore = System;
    type Balance = Balance;
    type ExistentialDeposit = ConstU128<ED>;
    type FreezeIdentifier = ();
    type MaxFreezes = ConstU32<1>;
}

parameter_types! {
    pub static FeeRate: Permill = Permill::from_percent(5);
    pub static FeeMin: Balance = 10;
    pub static TreasuryShare: Permill = Permill::from_percent(40);
    pub static ValidatorShare: Permill = Permill::from_percent(40);
    pub static ClientLock: Permill = Permill::zero();
    pub const TreasuryAccount: AccountId = TREASURY;
    pub const ValidatorPot: AccountId = POT;
    pub const PotId: PalletId = PalletId(*b"sur/escr");
    /// For whose work which part of a fee was taken.
    pub static NotedWork: Vec<(AccountId, Balance)> = Vec::new();
}

/// Writes down what it is told.
pub struct Notes;

impl WorkPay<AccountId, Balance> for Notes {
    fn note_settled(provider: &AccountId, fee: Balance) {
        NotedWork::mutate(|noted| noted.push((*provider, fee)));
    }
}

impl billing::Config for Test {
    type RuntimeHoldReason = RuntimeHoldReason;
    type Currency = Balances;
    type PotId = PotId;
    type FeeRate = FeeRate;
    type FeeMin = FeeMin;
    type TreasuryShare = TreasuryShare;
    type ValidatorShare = ValidatorShare;
    type TreasuryAccount = TreasuryAccount;
    type ValidatorPot = ValidatorPot;
    type ClientLock = ClientLock;
    type Work = Notes;
    type Tasks = ();
}

/// A chain with two rich clients and everybody's account but the ghost's open.
pub struct TestExt {
    balances: Vec<(AccountId, Balance)>,
}

impl TestExt {
    pub fn new() -> Self {
        let clients = [CLIENT, OTHER_CLIENT].map(|who| (who, 1_000_000));
        let others = [ALICE, BOB, TREASURY, POT, Billing::pot()].map(|who| (who, ED));
        Self {
            balances: clients.into_iter().chain(others).collect(),
        }
    }

    /// Starts without an account for `who`.
    pub fn without(mut self, who: AccountId) -> Self {
        self.balances.retain(|(account, _)| *account != who);
        self
    }

    /// Runs `test` in block 1, then checks every invariant.
    pub fn execute_with(self, test: impl FnOnce()) {
        self.run(|| {
            test();
            assert_eq!(Pallet::<Test>::do_try_state(), Ok(()));
        });
    }

    /// Runs `test` in block 1. For tests that break an invariant on purpose.
    pub fn run(self, test: impl FnOnce()) {
        // Parameters belong to the thread, which may have run another test.
        FeeRate::set(Permill::from_percent(5));
        FeeMin::set(10);
        TreasuryShare::set(Permill::from_percent(40));
        ValidatorShare::set(Permill::from_percent(40));
        ClientLock::set(Permill::zero());
        NotedWork::take();

        let mut storage = frame_system::GenesisConfig::<Test>::default()
            .build_storage()
            .unwrap();
        pallet_balances::GenesisConfig::<Test> {
            balances: self.balances,
            ..Default::default()
        }
        .assimilate_storage(&mut storage)
        .unwrap();
        sp_io::TestExternalities::new(storage).execute_with(|| {
            System::set_block_number(1);
            test();
        });
    }
}

pub fn payment(provider: AccountId, price: Balance) -> Assignment<AccountId, Balance> {
    Assignment { provider, price }
}

/// An audit of `provider` by `verifier`.
pub fn audit(provider: AccountId, verifier: AccountId) -> AuditToPay<AccountId> {
    AuditToPay {
        provider,
        verifier,
        share: Perbill::from_percent(12),
        units: 1,
    }
}

pub fn free(who: AccountId) -> Balance {
    Balances::balance(&who)
}

/// What is in the pot beside what keeps its account.
pub fn in_pot() -> Balance {
    free(Billing::pot()) - ED
}

pub fn issuance() -> Balance {
    Balances::total_issuance()
}

/// Events of this pallet since the last call.
pub fn events() -> Vec<Event<Test>> {
    let events = System::events()
        .into_iter()
        .filter_map(|record| match record.event {
            RuntimeEvent::Billing(event) => Some(event),
            _ => None,
        })
        .collect();
    System::reset_events();
    events
}
