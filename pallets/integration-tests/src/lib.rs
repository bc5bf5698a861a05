#![doc = include_str!("../README.md")]
#![allow(clippy::unwrap_used, missing_docs)]

mod audits;
mod checks;
mod committee;
mod demands;
mod inputs;
mod items;
mod parameters;
mod play;
mod statements;
mod toy;

pub use audits::*;
pub use checks::*;
pub use committee::*;
pub use demands::*;
pub use inputs::*;
pub use items::*;
pub use parameters::*;
pub use play::*;
pub use statements::*;
pub use surety_pallet_test_kit::{AccountId, Balance, BlockNumber, send_opening, validity_of};
pub use toy::{
    CLAIMED_UNITS, IMPOSSIBLE_UNITS, ITEM_LEAF, Model, OUTPUT_BYTES, TOO_LARGE, ToyReferee, ToyTrace, claim,
    output, set_model, set_truth, trace_leaves, truth,
};

use frame_support::{
    construct_runtime, derive_impl,
    dispatch::DispatchResult,
    traits::{Hooks, UnfilteredDispatchable},
    weights::{Weight, constants::RocksDbWeight},
};
use frame_system::EnsureRoot;
use sp_core::H256;
use sp_runtime::{
    BuildStorage, FixedU128, Permill,
    traits::{BlockNumberProvider, IdentityLookup},
};
use surety_pallet_test_kit::{MockClock, MockEntropy, MockOutcome, MockStake, NoPools};
use surety_types::{
    TaskId,
    stake::Role,
    task::{Assignment, AuditTerms, PerMember, ResultClaim, Security, Verdict},
    traits::TaskTrust,
    trust::{FaultKind, SlashId},
};

pub use surety_pallet_disputes::{
    CommitteeOf, Committees, DisputeOf, Disputes as DisputeStorage, NextDisputeId, OPENED_AT_ONCE,
};
pub use surety_pallet_results::{
    AuditDrawOf, AuditOf, CONVICTED_AT_ONCE, CommitNotes, Demands, DisputeContexts, DisputeReferee,
    PhaseName, RoundOf, Rounds, describe,
};
pub use surety_pallet_trust_lock::{
    Convictions, JailedFor, NextSlashId, Offence, Records, SlashOf, Slashes, SlashesSweptTo,
};

pub type ResultsCall = surety_pallet_results::Call<Test>;
pub type DisputesCall = surety_pallet_disputes::Call<Test>;
pub type TrustLockCall = surety_pallet_trust_lock::Call<Test>;
pub type ResultsEvent = surety_pallet_results::Event<Test>;
pub type DisputesEvent = surety_pallet_disputes::Event<Test>;
pub type TrustLockEvent = surety_pallet_trust_lock::Event<Test>;
pub type ResultsError = surety_pallet_results::Error<Test>;
pub type DisputesError = surety_pallet_disputes::Error<Test>;
pub type TrustLockError = surety_pallet_trust_lock::Error<Test>;

construct_runtime!(
    pub enum Test {
        System: frame_system,
        Balances: pallet_balances,
        TrustLock: surety_pallet_trust_lock,
        Results: surety_pallet_results,
        Disputes: surety_pallet_disputes,
    }
);

#[derive_impl(frame_system::config_preludes::TestDefaultConfig)]
impl frame_system::Config for Test {
    type Block = frame_system::mocking::MockBlock<Test>;
    type AccountId = AccountId;
    type Lookup = IdentityLookup<AccountId>;
    type AccountData = pallet_balances::AccountData<Balance>;
    type DbWeight = RocksDbWeight;
}

#[derive_impl(pallet_balances::config_preludes::TestDefaultConfig)]
impl pallet_balances::Config for Test {
    type Balance = Balance;
    type AccountStore = System;
}

impl surety_pallet_trust_lock::Config for Test {
    type Balance = Balance;
    type Currency = Balances;
    type Stake = MockStake;
    type Pools = NoPools;
    type Validators = ();
    type BlockNumberProvider = MockTime;
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

impl surety_pallet_results::Config for Test {
    type Currency = Balances;
    type RuntimeHoldReason = RuntimeHoldReason;
    type Disputes = Disputes;
    type Outcome = MockOutcome;
    type Clock = MockClock;
    type CommitWindow = CommitWindow;
    type AuditWindow = AuditWindow;
    type AuditWindowMax = AuditWindowMax;
    type AuditPremium = AuditPremium;
    type GenerationAuditCost = GenerationAuditCost;
    type WorkPrice = WorkPrice;
    type VerifiersAble = VerifiersAble;
    type RevealWindow = RevealWindow;
    type OpeningWindow = OpeningWindow;
    type ChallengeWindow = ChallengeWindow;
    type LockMultiple = LockMultiple;
    type Referee = ToyReferee;
    type Draws = MockDraws;
    type EpochRandomness = EpochRandomness;
    type Entropy = MockEntropy;
    type VerifierSeasoning = VerifierSeasoning;
    type AuditorsExpected = AuditorsExpected;
    type AuditorsNewcomer = AuditorsNewcomer;
    type AuditBondMultiple = AuditBondMultiple;
    type SupplyPrice = PricePerKib;
    type SupplyWindow = SupplyWindow;
    type InputWindow = InputWindow;
    type AuditorsBasic = AuditorsBasic;
    type AuditorsHigh = AuditorsHigh;
    type VerifiersCorrupt = VerifiersCorrupt;
    type AuditAccuracy = AuditAccuracy;
    type Signatures = MockSignatures;
    type WeightInfo = ();
}

impl surety_pallet_disputes::Config for Test {
    type ChallengeBondMultiple = ChallengeBondMultiple;
    type DefenseCost = DefenseCost;
    type DisputeClock = DisputeClock;
    type DecisionWindow = DecisionWindow;
    type DecideOrigin = EnsureRoot<AccountId>;
    type SeatWindow = SeatWindow;
    type VoteWindow = VoteWindow;
    type SeatSeasoning = SeatSeasoning;
    type WeightInfo = ();
}

/// A clock that goes with the blocks, or stands still.
pub struct MockTime;

impl BlockNumberProvider for MockTime {
    type BlockNumber = BlockNumber;

    fn current_block_number() -> BlockNumber {
        FinalityStoppedAt::get().unwrap_or_else(System::block_number)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn set_block_number(block: BlockNumber) {
        System::set_block_number(block);
    }
}

/// A chain whose providers are bonded, each with an agent of its own.
pub struct TestExt {
    reserves: Vec<AccountId>,
    round: Option<u32>,
    model: Model,
}

impl Default for TestExt {
    fn default() -> Self {
        Self::new()
    }
}

impl TestExt {
    pub fn new() -> Self {
        Self {
            reserves: Vec::new(),
            round: None,
            model: Model::Exact,
        }
    }

    /// Starts with a round of stashes 1 to `redundancy`.
    pub fn round_of(mut self, redundancy: u32) -> Self {
        self.round = Some(redundancy);
        self
    }

    /// Opens rounds of tasks with such a model.
    pub fn model(mut self, model: Model) -> Self {
        self.model = model;
        self
    }

    /// Starts with these stashes in reserve.
    pub fn reserves(mut self, reserves: impl IntoIterator<Item = AccountId>) -> Self {
        self.reserves = reserves.into_iter().collect();
        self
    }

    pub fn build(self) -> sp_io::TestExternalities {
        surety_pallet_test_kit::reset();
        set_truth(9);
        set_model(self.model);
        FinalityStoppedAt::set(None);
        HasEntropy::set(true);
        AuditorsExpected::set(FixedU128::from_u32(1));
        AuditorsNewcomer::set(FixedU128::from_u32(3));
        VerifiersCorrupt::set(Permill::zero());
        WorkPrice::set(0);
        VerifiersAble::set(Permill::one());
        for stash in 1..=STASHES {
            MockStake::bond(stash, agent_of(stash), Role::Provider, BOND);
        }
        for stash in verifiers() {
            MockStake::bond(stash, agent_of(stash), Role::Verifier, BOND);
        }
        MockOutcome::set_reserves(TASK, &assignments(self.reserves));
        let rich = (FIRST_STRANGER..=LAST_STRANGER).map(|account| (account, MONEY));
        // Stashes and the client exist, and have next to nothing.
        let poor = (1..=STASHES)
            .chain([MockOutcome::CLIENT])
            .map(|account| (account, 1));
        let mut storage = frame_system::GenesisConfig::<Test>::default()
            .build_storage()
            .unwrap();
        pallet_balances::GenesisConfig::<Test> {
            balances: rich.chain(poor).chain([(POOL, POOL_MONEY)]).collect(),
            ..Default::default()
        }
        .assimilate_storage(&mut storage)
        .unwrap();
        let mut ext = sp_io::TestExternalities::new(storage);
        ext.execute_with(|| {
            System::set_block_number(1);
            if let Some(redundancy) = self.round {
                open(TASK, 1..=redundancy.into()).unwrap();
            }
        });
        ext
    }

    /// Runs `test`, then checks every invariant.
    pub fn execute_with(self, test: impl FnOnce()) {
        self.build().execute_with(|| {
            test();
            check();
        });
    }
}

pub fn verifiers() -> impl Iterator<Item = AccountId> {
    FIRST_VERIFIER..FIRST_VERIFIER + VERIFIERS
}

/// The slashes that wait, in order.
pub fn slashes() -> Vec<SlashOf<Test>> {
    let mut slashes: Vec<(SlashId, _)> = Slashes::<Test>::iter().collect();
    slashes.sort_by_key(|(id, _)| *id);
    slashes.into_iter().map(|(_, slash)| slash).collect()
}

/// Who is to be slashed for what, in the order in which it was proven.
pub fn faults() -> Vec<(AccountId, FaultKind)> {
    slashes()
        .into_iter()
        .map(|slash| (slash.offender, slash.kind))
        .collect()
}

pub fn agent_of(stash: AccountId) -> AccountId {
    stash + 1_000
}

pub fn assignments(stashes: impl IntoIterator<Item = AccountId>) -> Vec<Assignment<AccountId, Balance>> {
    stashes
        .into_iter()
        .map(|provider| Assignment {
            provider,
            price: PRICE,
        })
        .collect()
}

/// Opens a round of `members`.
pub fn open(task: TaskId, members: impl IntoIterator<Item = AccountId>) -> DispatchResult {
    open_secured(task, Security::default(), members)
}

/// Opens a round of `members` of a task of this security.
pub fn open_secured(
    task: TaskId,
    security: Security,
    members: impl IntoIterator<Item = AccountId>,
) -> DispatchResult {
    let assignments = PerMember::truncate_from(assignments(members));
    Results::open(task, UNITS_MAX, security, AuditTerms::default(), &assignments)
}

pub fn salt_of(stash: AccountId) -> H256 {
    H256::from_low_u64_be(stash)
}

pub fn seal(stash: AccountId, claim: &ResultClaim) -> H256 {
    surety_proofs::commitment(TASK, &stash, claim, &salt_of(stash))
}

/// Has the stash's agent call as an extrinsic does: a call that fails changes nothing.
pub fn send(stash: AccountId, call: impl Into<RuntimeCall>) -> DispatchResult {
    send_as(agent_of(stash), call)
}

/// Has an account call.
pub fn send_as(account: AccountId, call: impl Into<RuntimeCall>) -> DispatchResult {
    let origin = RuntimeOrigin::signed(account);
    call.into()
        .dispatch_bypass_filter(origin)
        .map(|_| ())
        .map_err(|refused| refused.error)
}

/// The stash's agent commits to `result`.
pub fn commit(stash: AccountId, result: u8) -> DispatchResult {
    send(
        stash,
        ResultsCall::commit {
            task: TASK,
            commitment: seal(stash, &claim(result)),
        },
    )
}

/// Somebody reveals the stash's `result`, without a signature.
pub fn reveal(stash: AccountId, result: u8) -> DispatchResult {
    send_opening(opening(stash, claim(result)))
}

/// The opening of the stash's commitment to `claim`.
pub fn opening(stash: AccountId, claim: ResultClaim) -> ResultsCall {
    ResultsCall::reveal {
        task: TASK,
        provider: stash,
        claim,
        salt: salt_of(stash),
    }
}

/// Everybody listed commits to its result. When nobody else is waited for, the audit window begins.
pub fn all_commit(results: &[(AccountId, u8)]) {
    for (stash, result) in results {
        assert_eq!(commit(*stash, *result), Ok(()));
    }
    if round().is_some_and(|round| round.awaits_seed()) {
        pass(SEED_BLOCKS);
    }
}

/// Everybody listed reveals its result.
pub fn all_reveal(results: &[(AccountId, u8)]) {
    for (stash, result) in results {
        assert_eq!(reveal(*stash, *result), Ok(()));
    }
}

/// Blocks pass, and the agenda advances what it was asked to.
pub fn pass(blocks: BlockNumber) {
    for _ in 0..blocks {
        let now = begin_block();
        let seeded = MockClock::take_with_entropy(now);
        for task in seeded.into_iter().chain(MockClock::take_due(TrustLock::now())) {
            frame_support::assert_ok!(Results::advance(task));
        }
        TrustLock::on_idle(now, Weight::MAX);
    }
}

/// Blocks pass without an agenda.
pub fn pass_unattended(blocks: BlockNumber) {
    for _ in 0..blocks {
        begin_block();
    }
}

/// Begins the next block: what the author of the present one has given is known from then on.
fn begin_block() -> BlockNumber {
    let parent = System::block_number();
    if HasEntropy::get() {
        MockEntropy::give(parent);
    }
    System::set_block_number(parent + 1);
    parent + 1
}

pub fn round() -> Option<RoundOf<Test>> {
    Rounds::<Test>::get(TASK)
}

/// Phase of the task's round and its last block; `None` when there is no round.
pub fn phase() -> Option<(PhaseName, BlockNumber)> {
    round().map(|round| describe(&round.phase))
}

pub fn members() -> Vec<AccountId> {
    round()
        .map(|round| round.members.iter().map(|member| member.provider).collect())
        .unwrap_or_default()
}

/// The verdict that was handed over.
pub fn decision() -> Option<Verdict<AccountId>> {
    MockOutcome::decision(TASK)
}

pub fn agreed(
    result: u8,
    majority: &[AccountId],
    minority: &[AccountId],
    absent: &[AccountId],
) -> Verdict<AccountId> {
    let list = |stashes: &[AccountId]| PerMember::truncate_from(stashes.to_vec());
    Verdict::Agreed {
        claim: claim(result),
        majority: list(majority),
        minority: list(minority),
        absent: list(absent),
    }
}

/// What the pallets under test have told since the last call.
pub fn events() -> Vec<RuntimeEvent> {
    let events = System::events().into_iter().map(|record| record.event);
    let events = events
        .filter(|event| !matches!(event, RuntimeEvent::System(_) | RuntimeEvent::Balances(_)))
        .collect();
    System::reset_events();
    events
}
