//! A chain with this pallet between mocks.

#![allow(clippy::unwrap_used)]

use frame_support::{
    construct_runtime, derive_impl, dispatch::DispatchResult, parameter_types, traits::UnfilteredDispatchable,
};
use sp_core::H256;
use sp_runtime::{traits::IdentityLookup, BuildStorage};
use surety_pallet_test_kit::{MockClock, MockOutcome, MockStake};
use surety_types::{
    stake::Role,
    task::{Assignment, PerMember, ResultClaim, Verdict},
    traits::TaskTrust,
    TaskId,
};

use crate::{self as trust_lock, Call, Event, Pallet, PhaseName, RoundOf, Rounds};
pub use surety_pallet_test_kit::{AccountId, Balance, BlockNumber};

/// The task of most tests.
pub const TASK: TaskId = 7;
pub const PRICE: Balance = 100;
/// Stake locked for [`PRICE`].
pub const LOCK: Balance = 200;
pub const BOND: Balance = 1_000;
pub const UNITS_MAX: u32 = 50;
/// Stashes 1 to this one are bonded.
pub const STASHES: AccountId = 40;

pub const COMMIT_WINDOW: BlockNumber = 10;
pub const AUDIT_WINDOW: BlockNumber = 3;
pub const REVEAL_WINDOW: BlockNumber = 6;
pub const CHALLENGE_WINDOW: BlockNumber = 4;

construct_runtime!(
    pub enum Test {
        System: frame_system,
        TrustLock: trust_lock,
    }
);

#[derive_impl(frame_system::config_preludes::TestDefaultConfig)]
impl frame_system::Config for Test {
    type Block = frame_system::mocking::MockBlock<Test>;
    type AccountId = AccountId;
    type Lookup = IdentityLookup<AccountId>;
}

parameter_types! {
    pub const CommitWindow: BlockNumber = COMMIT_WINDOW;
    pub const AuditWindow: BlockNumber = AUDIT_WINDOW;
    pub const RevealWindow: BlockNumber = REVEAL_WINDOW;
    pub const ChallengeWindow: BlockNumber = CHALLENGE_WINDOW;
    pub const LockMultiple: u32 = 2;
}

impl trust_lock::Config for Test {
    type Balance = Balance;
    type Stake = MockStake;
    type Outcome = MockOutcome;
    type Clock = MockClock;
    type CommitWindow = CommitWindow;
    type AuditWindow = AuditWindow;
    type RevealWindow = RevealWindow;
    type ChallengeWindow = ChallengeWindow;
    type LockMultiple = LockMultiple;
    type WeightInfo = ();
}

/// A chain whose providers are bonded, each with an agent of its own.
pub struct TestExt {
    reserves: Vec<AccountId>,
    round: Option<u32>,
}

impl TestExt {
    pub fn new() -> Self {
        Self {
            reserves: Vec::new(),
            round: None,
        }
    }

    /// Starts with a round of stashes 1 to `redundancy`.
    pub fn round_of(mut self, redundancy: u32) -> Self {
        self.round = Some(redundancy);
        self
    }

    /// Starts with these stashes in reserve.
    pub fn reserves(mut self, reserves: impl IntoIterator<Item = AccountId>) -> Self {
        self.reserves = reserves.into_iter().collect();
        self
    }

    pub fn build(self) -> sp_io::TestExternalities {
        surety_pallet_test_kit::reset();
        for stash in 1..=STASHES {
            MockStake::bond(stash, agent_of(stash), Role::Provider, BOND);
        }
        MockOutcome::set_reserves(TASK, &assignments(self.reserves));
        let storage = frame_system::GenesisConfig::<Test>::default()
            .build_storage()
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
            assert_eq!(Pallet::<Test>::do_try_state(), Ok(()));
        });
    }
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
    let assignments = PerMember::truncate_from(assignments(members));
    TrustLock::open(task, assignments.len() as u32, UNITS_MAX, &assignments)
}

/// One of many results.
pub fn claim(result: u8) -> ResultClaim {
    ResultClaim {
        output: H256::repeat_byte(result),
        trace_root: H256::repeat_byte(result),
        units: 5,
    }
}

pub fn salt_of(stash: AccountId) -> H256 {
    H256::from_low_u64_be(stash)
}

pub fn seal(stash: AccountId, claim: &ResultClaim) -> H256 {
    surety_verification::commitment(TASK, &stash, claim, &salt_of(stash))
}

/// Has the stash's agent call as an extrinsic does: a call that fails changes nothing.
pub fn send(stash: AccountId, call: Call<Test>) -> DispatchResult {
    let origin = RuntimeOrigin::signed(agent_of(stash));
    call.dispatch_bypass_filter(origin)
        .map(|_| ())
        .map_err(|refused| refused.error)
}

/// The stash's agent commits to `result`.
pub fn commit(stash: AccountId, result: u8) -> DispatchResult {
    send(
        stash,
        Call::commit {
            task: TASK,
            commitment: seal(stash, &claim(result)),
        },
    )
}

/// The stash's agent reveals `result`.
pub fn reveal(stash: AccountId, result: u8) -> DispatchResult {
    send(
        stash,
        Call::reveal {
            task: TASK,
            claim: claim(result),
            salt: salt_of(stash),
        },
    )
}

/// Everybody listed commits to its result.
pub fn all_commit(results: &[(AccountId, u8)]) {
    for (stash, result) in results {
        assert_eq!(commit(*stash, *result), Ok(()));
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
        let now = System::block_number() + 1;
        System::set_block_number(now);
        for task in MockClock::take_due(now) {
            assert_eq!(TrustLock::advance(task), Ok(()));
        }
    }
}

/// Blocks pass without an agenda.
pub fn pass_unattended(blocks: BlockNumber) {
    System::set_block_number(System::block_number() + blocks);
}

pub fn round() -> Option<RoundOf<Test>> {
    Rounds::<Test>::get(TASK)
}

/// Phase of the task's round and its last block; `None` when there is no round.
pub fn phase() -> Option<(PhaseName, BlockNumber)> {
    round().map(|round| crate::types::describe(&round.phase))
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

/// Events of this pallet since the last call.
pub fn events() -> Vec<Event<Test>> {
    let events = System::events()
        .into_iter()
        .filter_map(|record| match record.event {
            RuntimeEvent::TrustLock(event) => Some(event),
            _ => None,
        })
        .collect();
    System::reset_events();
    events
}
