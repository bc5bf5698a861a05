//! A chain with nothing but this pallet and mocks of its neighbors.

#![allow(clippy::unwrap_used)]

use frame_support::{
    assert_ok, construct_runtime, derive_impl, parameter_types,
    traits::{ConstU32, Hooks},
    weights::Weight,
};
use sp_core::H256;
use sp_runtime::{
    BuildStorage, DispatchResult,
    traits::{BlakeTwo256, BlockNumberProvider, Hash, IdentityLookup},
};
use surety_pallet_test_kit::{MockEntropy, MockEscrow, MockModels, MockProviders, MockStake, MockTrust};
use surety_types::{
    ModelId, TaskId, limits,
    model::{ModelAudits, Operation},
    stake::Role,
    task::{Assignment, AuditTerms, Bid, PerMember, ResultClaim, Security, SecurityLevel, TaskSpec, Verdict},
    traits::{TaskClock, TaskOutcome, TaskTrust},
};

use crate::{self as task_auction, Call, Event, Pallet, TaskOf, TaskStateOf, Tasks};

pub use surety_pallet_test_kit::{AccountId, Balance, BlockNumber, send_opening, validity_of};

pub const CLIENT: AccountId = 1;
pub const ANYBODY: AccountId = 9;
pub const MODEL: ModelId = H256::repeat_byte(7);
pub const CAP: Balance = 10_000;
pub const STAKE: Balance = 1_000_000;
/// Backs any price within the cap, and not much more.
pub const LEAST: Balance = 2 * CAP;
pub const DEPOSIT: Balance = 50;
pub const BID_WINDOW: BlockNumber = 5;
pub const REVEAL_WINDOW: BlockNumber = 4;
pub const RETENTION: BlockNumber = 20;
/// Blocks after which the mock of `results` looks at a task.
pub const ROUND_BLOCKS: BlockNumber = 6;
pub const UNITS_MAX: u32 = 1_000;
pub const INPUT_BYTES_MAX: u32 = 4_096;

construct_runtime!(
    pub enum Test {
        System: frame_system,
        TaskAuction: task_auction,
    }
);

#[derive_impl(frame_system::config_preludes::TestDefaultConfig)]
impl frame_system::Config for Test {
    type Block = frame_system::mocking::MockBlock<Test>;
    type AccountId = AccountId;
    type Lookup = IdentityLookup<AccountId>;
}

parameter_types! {
    pub const BidWindow: BlockNumber = BID_WINDOW;
    pub const RevealWindow: BlockNumber = REVEAL_WINDOW;
    pub const FinishedRetention: BlockNumber = RETENTION;
    pub const TrustWeight: Weight = Weight::from_parts(70_000, 0);
    pub static BidDeposit: Balance = DEPOSIT;
    pub static RedundancyMax: u32 = limits::REDUNDANCY_MAX;
    /// Whether authors of blocks give any.
    pub static HasEntropy: bool = true;
    /// Bids that are sealed when the first window ends are not waited for, unless a test says so.
    pub static LateRevealWindow: BlockNumber = 0;
    /// Blocks before a task is posted from which on stake does not count.
    pub static BidderSeasoning: u32 = 0;
    /// What the clock shows, if it stands still.
    pub static ClockStoppedAt: Option<BlockNumber> = None;
}

impl task_auction::Config for Test {
    type WeightInfo = ();
    type BlockNumberProvider = MockTime;
    type Entropy = MockEntropy;
    type Stake = MockStake;
    type Providers = MockProviders;
    type Models = MockModels;
    type Escrow = MockEscrow;
    type Trust = WakingTrust;
    type TrustWeight = TrustWeight;
    type BidWindow = BidWindow;
    type RevealWindow = RevealWindow;
    type LateRevealWindow = LateRevealWindow;
    type BidDeposit = BidDeposit;
    type BidderSeasoning = BidderSeasoning;
    type UnitsMax = ConstU32<UNITS_MAX>;
    type InputBytesMax = ConstU32<INPUT_BYTES_MAX>;
    type RedundancyMax = RedundancyMax;
    type FinishedRetention = FinishedRetention;
}

/// A clock that goes with the blocks, or stands still.
pub struct MockTime;

impl BlockNumberProvider for MockTime {
    type BlockNumber = BlockNumber;

    fn current_block_number() -> BlockNumber {
        ClockStoppedAt::get().unwrap_or_else(System::block_number)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn set_block_number(block: BlockNumber) {
        System::set_block_number(block);
    }
}

/// The kit's mock of `results`, which also asks to be woken as the real one does.
pub struct WakingTrust;

impl TaskTrust<AccountId, Balance, BlockNumber> for WakingTrust {
    fn secure(
        price: Balance,
        spec: &TaskSpec,
        audits: ModelAudits,
    ) -> Result<(SecurityLevel, AuditTerms), sp_runtime::DispatchError> {
        MockTrust::secure(price, spec, audits)
    }

    fn lock_for(price: Balance, security: &Security, audits: &AuditTerms) -> Balance {
        MockTrust::lock_for(price, security, audits)
    }

    fn least_price(units_max: u32, audits: &AuditTerms) -> Balance {
        MockTrust::least_price(units_max, audits)
    }

    fn open(
        task: TaskId,
        units_max: u32,
        security: Security,
        audits: AuditTerms,
        assignments: &PerMember<Assignment<AccountId, Balance>>,
    ) -> DispatchResult {
        MockTrust::open(task, units_max, security, audits, assignments)?;
        TaskAuction::wake_after(task, System::block_number() + ROUND_BLOCKS);
        Ok(())
    }

    fn audit_bond(price: Balance) -> Balance {
        MockTrust::audit_bond(price)
    }

    fn is_open(task: TaskId) -> bool {
        MockTrust::is_open(task)
    }

    fn advance(task: TaskId) -> Result<Weight, sp_runtime::DispatchError> {
        let weight = MockTrust::advance(task)?;
        if matches!(state(task), TaskStateOf::<Test>::Running { .. }) {
            TaskAuction::wake_after(task, System::block_number() + ROUND_BLOCKS);
        }
        Ok(weight)
    }
}

/// A chain with one model, a client, and no providers.
pub struct TestExt {
    providers: Vec<(AccountId, Balance)>,
}

impl TestExt {
    pub fn new() -> Self {
        Self {
            providers: Vec::new(),
        }
    }

    /// Adds available providers with the stashes `100..100 + count`.
    pub fn providers(mut self, count: u64) -> Self {
        self.providers
            .extend((0..count).map(|index| (stash(index), STAKE)));
        self
    }

    /// Adds a provider with little or much stake.
    pub fn provider_with(mut self, index: u64, stake: Balance) -> Self {
        self.providers.push((stash(index), stake));
        self
    }

    /// Runs `test` in block 1, then checks every invariant.
    pub fn execute_with(self, test: impl FnOnce()) {
        self.run(|| {
            test();
            assert_sound();
        });
    }

    /// Runs `test` in block 1. For tests that break an invariant on purpose.
    pub fn run(self, test: impl FnOnce()) {
        surety_pallet_test_kit::reset();
        BidDeposit::set(DEPOSIT);
        RedundancyMax::set(limits::REDUNDANCY_MAX);
        HasEntropy::set(true);
        BidderSeasoning::set(0);
        ClockStoppedAt::set(None);
        let storage = frame_system::GenesisConfig::<Test>::default()
            .build_storage()
            .unwrap();
        sp_io::TestExternalities::new(storage).execute_with(|| {
            System::set_block_number(1);
            MockModels::add(MODEL, &[Operation::Embed]);
            for (stash, stake) in self.providers {
                MockStake::bond(stash, agent_of(stash), Role::Provider, stake);
                MockProviders::add(stash);
            }
            test();
        });
    }
}

pub fn assert_sound() {
    assert_eq!(Pallet::<Test>::do_try_state(), Ok(()));
    assert!(MockEscrow::is_conserved());
}

pub fn stash(index: u64) -> AccountId {
    100 + index
}

pub fn agent_of(stash: AccountId) -> AccountId {
    stash + 1_000
}

pub fn signed(who: AccountId) -> RuntimeOrigin {
    RuntimeOrigin::signed(who)
}

pub fn spec(redundancy: u32) -> TaskSpec {
    let source = b"/ip4/127.0.0.1/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp".to_vec();
    TaskSpec {
        model: MODEL,
        operation: Operation::Embed,
        input: H256::repeat_byte(1),
        input_bytes: 100,
        units_max: 100,
        redundancy,
        sources: vec![source.try_into().unwrap()].try_into().unwrap(),
        security: Security::default(),
        requirements: Default::default(),
    }
}

/// Posts a task of this redundancy.
pub fn post(redundancy: u32) -> TaskId {
    let id = crate::NextTaskId::<Test>::get();
    assert_ok!(TaskAuction::post(signed(CLIENT), spec(redundancy), CAP));
    id
}

/// A bid whose salt follows from the provider.
pub fn bid(index: u64, price: Balance) -> Bid<Balance> {
    Bid {
        price,
        seconds: 10,
        salt: BlakeTwo256::hash(&index.to_le_bytes()),
    }
}

pub fn place(task: TaskId, index: u64, price: Balance) -> DispatchResult {
    let stash = stash(index);
    let seal = bid(index, price).seal(task, &stash);
    TaskAuction::bid(signed(agent_of(stash)), task, seal)
        .map(|_| ())
        .map_err(|error| error.error)
}

/// Somebody opens a bid, without a signature.
pub fn open(task: TaskId, index: u64, price: Balance) -> DispatchResult {
    send_opening(opening(task, stash(index), bid(index, price)))
}

/// The opening of a provider's bid.
pub fn opening(task: TaskId, provider: AccountId, bid: Bid<Balance>) -> Call<Test> {
    Call::reveal_bid { task, provider, bid }
}

/// Calls `advance`. Its error comes without the weight that it gives back.
pub fn advance(task: TaskId) -> DispatchResult {
    TaskAuction::advance(signed(ANYBODY), task)
        .map(|_| ())
        .map_err(|error| error.error)
}

/// Starts the next block and sweeps it with `weight`, as if all of its extrinsics were in already.
pub fn next_block_with(weight: Weight) -> Weight {
    begin_block();
    TaskAuction::on_idle(System::block_number(), weight)
}

/// Goes on to a block, with full sweeps.
pub fn run_to(block: BlockNumber) {
    while System::block_number() < block {
        next_block_with(Weight::MAX);
        assert_sound();
    }
}

/// Goes on to a block as if all blocks were full.
pub fn skip_to(block: BlockNumber) {
    while System::block_number() < block {
        begin_block();
    }
}

/// Begins the next block: what the author of the present one has given is known from then on.
fn begin_block() {
    let parent = System::block_number();
    if HasEntropy::get() {
        MockEntropy::give(parent);
    }
    System::set_block_number(parent + 1);
}

/// Posts a task in the present block and goes on until it is drawn: provider i bids `prices[i]`.
pub fn assign(redundancy: u32, prices: &[Balance]) -> TaskId {
    let task = post(redundancy);
    let posted = System::block_number();
    for (index, price) in (0..).zip(prices) {
        assert_ok!(place(task, index, *price));
    }
    run_to(posted + BID_WINDOW + 1);
    for (index, price) in (0..).zip(prices) {
        assert_ok!(open(task, index, *price));
    }
    run_to(posted + BID_WINDOW + REVEAL_WINDOW + 3);
    task
}

pub fn task(id: TaskId) -> TaskOf<Test> {
    Tasks::<Test>::get(id).unwrap()
}

pub fn state(id: TaskId) -> TaskStateOf<Test> {
    task(id).state
}

pub fn claim(units: u32) -> ResultClaim {
    ResultClaim {
        output: H256::repeat_byte(2),
        trace_root: H256::repeat_byte(3),
        units,
    }
}

/// The verdict that these providers agreed.
pub fn agreed(indices: &[u64], units: u32) -> Verdict<AccountId> {
    let majority: Vec<_> = indices.iter().map(|index| stash(*index)).collect();
    Verdict::Agreed {
        claim: claim(units),
        majority: majority.try_into().unwrap(),
        minority: Default::default(),
        absent: Default::default(),
    }
}

pub fn decide(task: TaskId, verdict: Verdict<AccountId>) -> DispatchResult {
    <TaskAuction as TaskOutcome<_, _>>::decided(task, verdict, &[]).map(|_| ())
}

/// Events of this pallet since the last call.
pub fn events() -> Vec<Event<Test>> {
    let events = System::events()
        .into_iter()
        .filter_map(|record| match record.event {
            RuntimeEvent::TaskAuction(event) => Some(event),
            _ => None,
        })
        .collect();
    System::reset_events();
    events
}
