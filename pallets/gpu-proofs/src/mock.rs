//! A runtime of System and this pallet over mocks of the ledger of stake and of entropy, and providers that
//! make real runs.

use frame_support::{
    assert_ok, derive_impl, parameter_types,
    traits::{Hooks, Time},
};
use sp_core::H256;
use sp_runtime::{BuildStorage, traits::BlockNumberProvider};
use std::num::NonZero;
use surety_gpu_proofs::{Openings, Processor, Run, draw, open, run, seed};
use surety_pallet_test_kit::{AccountId, Balance, MockEntropy, MockStake};
use surety_types::stake::Role;

use crate as pallet_gpu_proofs;
use crate::{CurrentRound, Stage};

type Block = frame_system::mocking::MockBlock<Test>;

/// Time of a block, in milliseconds.
pub(crate) const SLOT_MS: u64 = 2_000;
pub(crate) const WINDOW_MS: u64 = 30_000;
pub(crate) const OPEN_WINDOW: u64 = 20;
pub(crate) const BLOCKS_MIN: u32 = 10;
pub(crate) const LONGER_MAX: u32 = 50;

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
    pub type GpuProofs = pallet_gpu_proofs;
}

parameter_types! {
    pub static RoundEvery: u32 = 1;
    pub static NowMs: u64 = 0;
    pub static Finality: u64 = 0;
    pub const RunWindow: u64 = WINDOW_MS;
    pub static IsFull: bool = false;
    pub const BlocksMin: u32 = BLOCKS_MIN;
    pub const OpenWindow: u64 = OPEN_WINDOW;
    pub static IsFullForShowing: bool = false;
    pub const LongerMax: u32 = LONGER_MAX;
}

/// As a test says.
pub struct MockMoment;

impl Time for MockMoment {
    type Moment = u64;

    fn now() -> u64 {
        NowMs::get()
    }
}

/// As a test says.
pub struct MockFinality;

impl BlockNumberProvider for MockFinality {
    type BlockNumber = u64;

    fn current_block_number() -> u64 {
        Finality::get()
    }
}

#[derive_impl(frame_system::config_preludes::TestDefaultConfig)]
impl frame_system::Config for Test {
    type Block = Block;
}

impl pallet_gpu_proofs::Config for Test {
    type Balance = Balance;
    type Stake = MockStake;
    type Entropy = MockEntropy;
    type Time = MockMoment;
    type Clock = MockFinality;
    type RoundEvery = RoundEvery;
    type RunWindow = RunWindow;
    type BlocksMin = BlocksMin;
    type IsFull = IsFull;
    type OpenWindow = OpenWindow;
    type IsFullForShowing = IsFullForShowing;
    type LongerMax = LongerMax;
    type WeightInfo = ();
}

/// Sets up a test; checks every invariant when it is over.
pub(crate) struct TestExt;

impl TestExt {
    /// No round begins until a test says so.
    pub(crate) fn new() -> Self {
        surety_pallet_test_kit::reset();
        RoundEvery::set(0);
        NowMs::set(0);
        Finality::set(0);
        IsFull::set(false);
        IsFullForShowing::set(false);
        Self
    }

    /// Bonds `stash` as a provider whose agent is `stash + 10`.
    pub(crate) fn provider(self, stash: AccountId) -> Self {
        MockStake::bond(stash, agent_of(stash), Role::Provider, 100);
        self
    }

    pub(crate) fn build(self) -> sp_io::TestExternalities {
        let storage = RuntimeGenesisConfig::default().build_storage();
        let mut ext = sp_io::TestExternalities::new(storage.expect("the genesis is valid"));
        // No events are kept in block 0.
        ext.execute_with(pass_block);
        ext
    }

    pub(crate) fn execute_with(self, test: impl FnOnce()) {
        self.build().execute_with(|| {
            test();
            assert_ok!(GpuProofs::do_try_state());
        });
    }
}

pub(crate) fn agent_of(stash: AccountId) -> AccountId {
    stash + 10
}

pub(crate) fn signed(stash: AccountId) -> RuntimeOrigin {
    RuntimeOrigin::signed(agent_of(stash))
}

/// A block begins, and is two seconds later than the one before. The author of that has given its output.
pub(crate) fn pass_block() {
    let before = System::block_number();
    if before > 0 {
        MockEntropy::give(before);
    }
    pass_block_without_entropy();
}

pub(crate) fn pass_block_without_entropy() {
    let before = System::block_number();
    GpuProofs::on_finalize(before);
    let now = before + 1;
    System::set_block_number(now);
    GpuProofs::on_initialize(now);
    NowMs::set(NowMs::get() + SLOT_MS);
    Finality::set(Finality::get() + 1);
    assert_ok!(GpuProofs::do_try_state());
}

pub(crate) fn pass_blocks(blocks: u64) {
    (0..blocks).for_each(|_| pass_block());
}

/// Goes on until a round is in the wanted stage.
pub(crate) fn pass_until(is_wanted: impl Fn(Option<Stage<u64>>) -> bool) {
    let stage = || CurrentRound::<Test>::get().map(|round| round.stage);
    for _ in 0..200 {
        if is_wanted(stage()) {
            return;
        }
        pass_block();
    }
    panic!("it never came to that: {:?}", stage());
}

/// Begins a round. Returns what runs are seeded with.
pub(crate) fn begin_round() -> H256 {
    RoundEvery::set(1);
    pass_until(|stage| stage.is_some());
    RoundEvery::set(0);
    pass_until(|stage| matches!(stage, Some(Stage::Running { .. })));
    match CurrentRound::<Test>::get().map(|round| round.stage) {
        Some(Stage::Running { entropy, .. }) => entropy,
        other => panic!("{other:?}"),
    }
}

/// Goes on until samples are drawn. Returns what they are drawn with.
pub(crate) fn pass_until_drawn() -> H256 {
    pass_until(|stage| matches!(stage, Some(Stage::Opening { .. })));
    match CurrentRound::<Test>::get().map(|round| round.stage) {
        Some(Stage::Opening { samples, .. }) => samples,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn pass_until_over() {
    pass_until(|stage| stage.is_none());
}

pub(crate) fn processor() -> Processor {
    Processor::new(NonZero::<usize>::MIN)
}

/// Makes the smallest run there is, with so many layers.
pub(crate) fn make(stash: AccountId, entropy: H256, layers: u32) -> Run {
    let round = CurrentRound::<Test>::get().map_or(0, |round| round.number);
    let seed = seed(&entropy, round, &stash);
    run(&mut processor(), 32, &seed, |done| done < layers).expect("a small run")
}

pub(crate) fn commit(stash: AccountId, entropy: H256, made: &Run) {
    let (plan, root) = (made.job().plan(), *made.root());
    assert_ok!(GpuProofs::commit_run(signed(stash), entropy, plan, root));
}

/// What there is to show of a run.
pub(crate) fn shown(stash: AccountId, made: &Run, samples: H256) -> Box<Openings> {
    let round = CurrentRound::<Test>::get().map_or(0, |round| round.number);
    let drawn = draw(made.job().plan(), &samples, round, &stash);
    Box::new(open(&mut processor(), made, &drawn).expect("the run is the same again"))
}

/// A whole round, which these pass.
pub(crate) fn pass_round(stashes: &[AccountId]) {
    let entropy = begin_round();
    let runs: Vec<_> = stashes
        .iter()
        .map(|stash| (*stash, make(*stash, entropy, 8)))
        .collect();
    for (stash, made) in &runs {
        commit(*stash, entropy, made);
    }
    let samples = pass_until_drawn();
    for (stash, made) in &runs {
        assert_ok!(GpuProofs::open_run(signed(*stash), shown(*stash, made, samples)));
    }
    pass_until_over();
}
