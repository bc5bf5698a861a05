//! A runtime of System, Balances, staking and this pallet, with real sr25519 keys.

use frame_support::{PalletId, assert_ok, derive_impl, parameter_types, traits::Hooks};
use sp_core::{H256, Pair, sr25519};
use sp_runtime::{
    AccountId32, BuildStorage, DispatchError, DispatchResult, FixedU128, Perquintill,
    traits::{BlockNumberProvider, IdentityLookup},
};
use surety_audit_economics::{
    AuditPay, AuditPolicy, AuditRates,
    channels::{PointRates, SURE},
};
use surety_channels::{
    Batch, BatchEntry, BatchNumber, ChannelId, ReceiptLeaf, Request, SignedVoucher, Voucher, wallet_bytes,
};
use surety_types::{
    TaskId,
    stake::Role,
    task::ResultClaim,
    traits::{Jail, StakeLedger},
    trust::{FaultKind, ItemLeaves},
};

#[cfg(feature = "runtime-benchmarks")]
use surety_types::trust::AuditProof;

use crate as pallet_channels;
use crate::{
    Channels, ClaimedReceipt, Convictions, Faults, ReceiptDisputes, ReceiptReferee, SignedBytes, Standings,
};

#[cfg(feature = "runtime-benchmarks")]
mod benchmark;
mod draws;
mod models;

pub(crate) use draws::{Author, Hashed, PROOF};
pub(crate) use models::{NOT_SOLD, Registry, SPEED, UNSOLD, model};

type Block = frame_system::mocking::MockBlock<Test>;

pub(crate) const WINDOW: u32 = 10;
pub(crate) const ANNOUNCE: u32 = 4;
pub(crate) const REFUTE: u32 = 5;
pub(crate) const AGAIN: u32 = 7;
pub(crate) const SUPPLY: u32 = 20;
/// Until what was counted is paid.
pub(crate) const WAIT: u32 = surety_channels::paid_after(SUPPLY);
pub(crate) const CLOSING: u32 = 30;
pub(crate) const REDEEM_BY: u32 = 1_000;
pub(crate) const LIFE: u32 = 500;
pub(crate) const START: u128 = 1_000 * SURE;
pub(crate) const LOCK: u128 = 100 * SURE;
pub(crate) const CAP: u128 = 10 * SURE;
pub(crate) const SECOND: u128 = 80_000;
/// What a token's time is worth: a tenth of a second.
pub(crate) const FLOOR: u128 = 8_000;
pub(crate) const CEILING: u32 = 4;
pub(crate) const PERIOD: u32 = 10;
pub(crate) const PLACE_CAP: u128 = SURE / 10;
pub(crate) const GENESIS: H256 = H256::repeat_byte(7);

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
    pub type ChannelsPallet = pallet_channels;
}

parameter_types! {
    pub const ExistentialDeposit: u128 = 5;
    pub const MinBond: u128 = 100;
    pub const UnbondingPeriod: u64 = 100;
    pub const Genesis: H256 = GENESIS;
    pub const MinDeposit: u128 = 1_000;
    pub const BatchWindowLength: u32 = WINDOW;
    pub const ClosingPeriod: u32 = CLOSING;
    pub const RedeemBy: u32 = REDEEM_BY;
    pub const MaxLife: u32 = LIFE;
    pub const SweptPerBlock: u32 = 2;
    pub AtRisk: FixedU128 = FixedU128::from_u32(1);
    pub const PointCost: u128 = SURE / 100;
    pub Pay: AuditPay = AuditPay::default();
    pub Pot: AccountId32 = AccountId32::new([9; 32]);
    pub const PotId: PalletId = PalletId(*b"sur/chan");
    pub Rates: PointRates = PointRates {
        usual: PointRate::get(),
        newcomer: PointRate::get(),
        probation: 0,
    };
    pub Policy: AuditPolicy = AuditPolicy {
        rates: AuditRates::default(),
        able: Able::get(),
        corrupt: Perquintill::from_rational(1u64, 3),
        accuracy: Perquintill::from_percent(95),
        burned: Perquintill::from_percent(50),
        reward_multiple: 40,
    };
    pub static Able: Perquintill = Perquintill::one();
    pub static Time: u64 = 1;
    pub static Convicted: Vec<FaultKind> = Vec::new();
    pub static Remembered: Faults = Faults::default();
    pub static InJail: bool = false;
    pub static Drawn: Option<(H256, u64)> = None;
    pub const EpochRandomness: H256 = H256::repeat_byte(5);
    pub const VerifierSeasoning: u32 = 2;
    pub const PointBond: u128 = SURE;
    pub const AnnounceWindow: u32 = ANNOUNCE;
    pub const RefuteWindow: u32 = REFUTE;
    pub const DisputeWindow: u32 = AGAIN;
    pub const DemandPrice: u128 = 1_000;
    pub const SupplyWindow: u32 = SUPPLY;
    pub static Opened: Vec<ClaimedReceipt<AccountId32>> = Vec::new();
    pub static Challenged: Vec<(AccountId32, AccountId32, Option<u128>)> = Vec::new();
    pub static RoundsRefused: bool = false;
    pub static PointRate: FixedU128 = FixedU128::from_u32(1);
    pub static WorkPrice: u128 = SECOND;
    pub const PlaceCap: u128 = PLACE_CAP;
    pub const PoolPeriod: u32 = PERIOD;
    pub const PoolCeiling: u32 = CEILING;
}

/// Remembers what is disputed. Rounds are numbered in that order.
pub struct Noted;

impl ReceiptDisputes<AccountId32> for Noted {
    fn open(receipt: ClaimedReceipt<AccountId32>) -> Result<TaskId, DispatchError> {
        if RoundsRefused::get() {
            return Err(DispatchError::Unavailable);
        }
        let mut all = Opened::get();
        all.push(receipt);
        let round = all.len() as TaskId - 1;
        Opened::set(all);
        Ok(round)
    }

    fn challenge(round: TaskId, provider: &AccountId32, challenger: &AccountId32) -> DispatchResult {
        let at_stake = ChannelsPallet::receipt_at_stake(round);
        Challenged::mutate(|all| all.push((provider.clone(), challenger.clone(), at_stake)));
        Ok(())
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn request_for_benchmark() -> Request {
        benchmark::request()
    }
}

/// The leaves of an item are all there is to it.
pub struct OneLeaf;

impl ReceiptReferee for OneLeaf {
    fn item_root(_: &Request, _: &ResultClaim, _: u32, shown: &ItemLeaves) -> Option<H256> {
        shown.leaves.first().copied()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn item_for_benchmark() -> (Request, ResultClaim, ItemLeaves) {
        benchmark::item()
    }
}

/// Takes the lock at once, and gives a fifth of it to who has shown the fault.
pub struct AtOnce;

impl Convictions<AccountId32> for AtOnce {
    fn convict(offender: &AccountId32, kind: FaultKind, lock: u128, finder: Option<&AccountId32>) {
        Convicted::mutate(|all| all.push(kind));
        let shares: Vec<_> = finder
            .map(|finder| (finder.clone(), lock / 5))
            .into_iter()
            .collect();
        let taken = Staking::seize(offender, lock, 0, &shares);
        assert_eq!(taken, lock, "a standing lock is there to be taken");
    }

    fn remembered(_: &AccountId32) -> Faults {
        Remembered::get()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn fill_for_benchmark() {}
}

/// Whoever a test puts there.
pub struct Prison;

impl Jail<AccountId32> for Prison {
    fn is_jailed(_: &AccountId32) -> bool {
        InJail::get()
    }

    fn is_suspended(_: &AccountId32) -> bool {
        false
    }
}

/// A clock that moves when a test says so.
pub struct Clock;

impl BlockNumberProvider for Clock {
    type BlockNumber = u64;

    fn current_block_number() -> u64 {
        Time::get()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn set_block_number(block: u64) {
        Time::set(block);
    }
}

/// Real signatures.
pub struct Sr25519;

impl SignedBytes<AccountId32> for Sr25519 {
    fn is_signed(key: &AccountId32, bytes: &[u8], signature: &[u8; 64]) -> bool {
        let key = sr25519::Public::from_raw(*key.as_ref());
        sr25519::Pair::verify(&sr25519::Signature::from_raw(*signature), bytes, &key)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark(signed: &[&[u8]]) -> (AccountId32, Vec<[u8; 64]>) {
        let signatures = signed.iter().map(|bytes| pair().sign(bytes).0);
        (payer(), signatures.collect())
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn draw_for_benchmark() -> (AccountId32, AuditProof) {
        (verifier_agent(), PROOF)
    }
}

#[derive_impl(frame_system::config_preludes::TestDefaultConfig)]
impl frame_system::Config for Test {
    type Block = Block;
    type AccountId = AccountId32;
    type Lookup = IdentityLookup<AccountId32>;
    type AccountData = pallet_balances::AccountData<u128>;
}

#[derive_impl(pallet_balances::config_preludes::TestDefaultConfig)]
impl pallet_balances::Config for Test {
    type Balance = u128;
    type ExistentialDeposit = ExistentialDeposit;
    type AccountStore = System;
}

impl surety_pallet_staking::Config for Test {
    type Admission = ();
    type Collateral = ();
    type Currency = Balances;
    type RuntimeHoldReason = RuntimeHoldReason;
    type MinBond = MinBond;
    type BlockNumberProvider = Clock;
    type Jail = ();
    type UnbondingPeriod = UnbondingPeriod;
    type Pools = ();
    type OnClosed = ();
    type WeightInfo = ();
}

impl pallet_channels::Config for Test {
    type Currency = Balances;
    type Stake = Staking;
    type Convictions = AtOnce;
    type Jail = Prison;
    type Clock = Clock;
    type Signatures = Sr25519;
    type Genesis = Genesis;
    type Rates = Rates;
    type Policy = Policy;
    type Draws = Hashed;
    type EpochRandomness = EpochRandomness;
    type Entropy = Author;
    type VerifierSeasoning = VerifierSeasoning;
    type Models = Registry;
    type Verifiers = Registry;
    type WorkPrice = WorkPrice;
    type PlaceCap = PlaceCap;
    type PoolPeriod = PoolPeriod;
    type PoolCeiling = PoolCeiling;
    type Disputes = Noted;
    type DemandPrice = DemandPrice;
    type SupplyWindow = SupplyWindow;
    type DisputeWindow = DisputeWindow;
    type Referee = OneLeaf;
    type PointBond = PointBond;
    type AnnounceWindow = AnnounceWindow;
    type RefuteWindow = RefuteWindow;
    type AtRisk = AtRisk;
    type Pay = Pay;
    type PointCost = PointCost;
    type PotId = PotId;
    type LevyPot = Pot;
    type MinDeposit = MinDeposit;
    type BatchWindowLength = BatchWindowLength;
    type ClosingPeriod = ClosingPeriod;
    type RedeemBy = RedeemBy;
    type MaxLife = MaxLife;
    type SweptPerBlock = SweptPerBlock;
    type WeightInfo = ();
}

pub(crate) fn pair() -> sr25519::Pair {
    sr25519::Pair::from_seed(&[1; 32])
}

pub(crate) fn payer() -> AccountId32 {
    AccountId32::new(pair().public().0)
}

pub(crate) fn stash() -> AccountId32 {
    AccountId32::new([2; 32])
}

pub(crate) fn agent_pair() -> sr25519::Pair {
    sr25519::Pair::from_seed(&[3; 32])
}

pub(crate) fn agent() -> AccountId32 {
    AccountId32::new(agent_pair().public().0)
}

/// A verifier with all stake that verifiers have.
pub(crate) fn verifier() -> AccountId32 {
    AccountId32::new([20; 32])
}

pub(crate) fn verifier_agent() -> AccountId32 {
    AccountId32::new([21; 32])
}

/// Whoever has seen something.
pub(crate) fn reporter() -> AccountId32 {
    AccountId32::new([4; 32])
}

pub(crate) fn signed(who: AccountId32) -> RuntimeOrigin {
    RuntimeOrigin::signed(who)
}

/// A provider with [`LOCK`] for [`CAP`], and a payer with money; checks every invariant at the end.
pub(crate) fn run(test: impl FnOnce()) {
    run_unchecked(|| {
        test();
        check();
    });
}

/// The same for a test that does damage.
pub(crate) fn run_unchecked(test: impl FnOnce()) {
    Time::set(1);
    Able::set(Perquintill::one());
    Convicted::set(Vec::new());
    Remembered::set(Faults::default());
    InJail::set(false);
    Drawn::set(None);
    Opened::set(Vec::new());
    Challenged::set(Vec::new());
    RoundsRefused::set(false);
    PointRate::set(FixedU128::from_u32(1));
    WorkPrice::set(SECOND);
    Registry::reset();
    let config = RuntimeGenesisConfig {
        balances: pallet_balances::GenesisConfig {
            balances: vec![
                (payer(), START),
                (stash(), START),
                (agent(), START),
                (reporter(), START),
                (verifier(), START),
                (verifier_agent(), START),
                (Pot::get(), SURE),
                (ChannelsPallet::pot(), ExistentialDeposit::get()),
            ],
            ..Default::default()
        },
        ..Default::default()
    };
    let mut ext = sp_io::TestExternalities::new(config.build_storage().expect("the genesis is valid"));
    ext.execute_with(|| {
        System::set_block_number(1);
        assert_ok!(Staking::bond(signed(stash()), Role::Provider, 200 * SURE));
        assert_ok!(Staking::set_agent(signed(stash()), agent()));
        assert_ok!(Staking::confirm_agent(signed(agent()), stash()));
        assert_ok!(ChannelsPallet::stand(signed(stash()), LOCK, CAP));
        assert_ok!(ChannelsPallet::add_signer(signed(agent())));
        assert_ok!(Staking::bond(signed(verifier()), Role::Verifier, 200 * SURE));
        assert_ok!(Staking::set_agent(signed(verifier()), verifier_agent()));
        assert_ok!(Staking::confirm_agent(signed(verifier_agent()), verifier()));
        System::set_block_number(10);
        test();
    });
}

pub(crate) fn check() {
    assert_ok!(ChannelsPallet::do_try_state());
}

/// Blocks in which the clock runs.
pub(crate) fn pass(blocks: u32) {
    for _ in 0..blocks {
        Time::mutate(|time| *time += 1);
        block();
    }
}

/// A block in which it stands still.
pub(crate) fn block() {
    let next = System::block_number() + 1;
    System::set_block_number(next);
    <ChannelsPallet as Hooks<u64>>::on_initialize(next);
}

pub(crate) fn open(deposit: u128) -> ChannelId {
    let expiry = u32::try_from(Time::get()).expect("short") + 200;
    let id = crate::NextChannel::<Test>::get();
    assert_ok!(ChannelsPallet::open(
        signed(payer()),
        stash(),
        payer(),
        deposit,
        expiry
    ));
    id
}

/// A batch of receipts of these prices, from request `first` of a channel on.
pub(crate) fn batch(channel: ChannelId, first: u32, prices: &[u128]) -> Batch {
    let leaf = ReceiptLeaf {
        receipt: H256::zero(),
        salt: H256::zero(),
    };
    let entries = (first..).zip(prices).map(|(nonce, price)| BatchEntry {
        channel,
        nonce,
        price: *price,
        leaf,
    });
    Batch::new(&entries.collect::<Vec<_>>()).expect("well-formed")
}

/// Commits it in a block of its own, the clock standing still.
pub(crate) fn commit(batch: &Batch) -> BatchNumber {
    block();
    let number = Standings::<Test>::get(stash()).expect("stands").next;
    assert_ok!(ChannelsPallet::commit_batch(signed(agent()), batch.root()));
    number
}

pub(crate) fn voucher(channel: ChannelId, sum: u128, in_wallet: bool) -> SignedVoucher<AccountId32> {
    let expiry = Channels::<Test>::get(channel).map_or(0, |channel| channel.expiry);
    let voucher = Voucher {
        channel,
        payee: stash(),
        expiry,
        nonce: 0,
        request: H256::zero(),
        sum,
    };
    let message = voucher.message(&GENESIS);
    let signature = if in_wallet {
        pair().sign(&wallet_bytes(&message))
    } else {
        pair().sign(&message)
    };
    SignedVoucher {
        voucher,
        signature: signature.0,
    }
}
