//! Rounds of the benchmark in real blocks, and what the speed that was measured is good for.

use std::num::NonZero;

use frame_support::{
    assert_ok,
    dispatch::{DispatchClass, GetDispatchInfo},
    traits::Get,
};
use frame_system::RawOrigin;
use sp_core::H256;
use sp_keyring::Sr25519Keyring::Alice;
use surety_gpu_proofs::{
    LAYERS_MIN, MeasuredView, Openings, Plan, Processor, RoundStage, Run, Standing, Tier, draw, open as show,
    run, seed,
};
use surety_pallet_gpu_proofs::{
    Call as GpuCall, Commitments, Error as GpuError, Measurement, Measurements, WeightInfo,
};
use surety_pallet_staking::{Call as StakingCall, Ledgers};
use surety_runtime::{
    BlockNumber, Parameters, ProviderRegistry, Results, Runtime, RuntimeCall, RuntimeParameters,
    configs::{stake::UNBONDING_MIN, system::RuntimeBlockWeights},
    params::dynamic::{gpu_proofs, staking},
    weights,
};
use surety_runtime_api::runtime_decl_for_gpu_proofs_api::GpuProofsApi;
use surety_types::{task::TaskState, traits::ProviderDirectory};

use crate::{
    chain::{Chain, account},
    market::*,
    presets::preset,
};

fn set(chain: &mut Chain, parameter: RuntimeParameters) {
    chain.query(|| {
        assert_ok!(Parameters::set_parameter(RawOrigin::Root.into(), parameter));
    });
}

fn round_every(chain: &mut Chain, blocks: u32) {
    let every = gpu_proofs::Parameters::RoundEvery(gpu_proofs::RoundEvery, Some(blocks));
    set(chain, RuntimeParameters::GpuProofs(every));
}

fn stage() -> Option<RoundStage<BlockNumber>> {
    Runtime::round().map(|round| round.stage)
}

/// Has a round begin, and waits for what runs are made from.
fn begin(chain: &mut Chain) -> H256 {
    round_every(chain, 1);
    chain.run_until(3, || stage().is_some());
    round_every(chain, 0);
    chain.run_until(20, || matches!(stage(), Some(RoundStage::Running { .. })));
    match chain.query(stage) {
        Some(RoundStage::Running { entropy, .. }) => entropy,
        other => panic!("{other:?}"),
    }
}

/// Waits for what samples are drawn with.
fn drawn(chain: &mut Chain) -> H256 {
    chain.run_until(60, || matches!(stage(), Some(RoundStage::Opening { .. })));
    match chain.query(stage) {
        Some(RoundStage::Opening { samples, .. }) => samples,
        other => panic!("{other:?}"),
    }
}

fn processor() -> Processor {
    Processor::new(NonZero::<usize>::MIN)
}

/// Makes the smallest run there is.
fn make(chain: &mut Chain, provider: &Provider, entropy: &H256) -> Run {
    let number = chain.query(Runtime::round).unwrap().number;
    let seed = seed(entropy, number, &provider.account());
    run(&mut processor(), 32, &seed, |layers| layers < LAYERS_MIN).unwrap()
}

fn commit(made: &Run, entropy: H256) -> GpuCall<Runtime> {
    GpuCall::commit_run {
        entropy,
        plan: made.job().plan(),
        root: *made.root(),
    }
}

/// Some commitment.
pub fn commit_run() -> RuntimeCall {
    let plan = Plan {
        rows: 32,
        layers: LAYERS_MIN,
    };
    let (entropy, root) = (hash(1), hash(2));
    GpuCall::commit_run { entropy, plan, root }.into()
}

fn openings(chain: &mut Chain, provider: &Provider, made: &Run, samples: &H256) -> Openings {
    let number = chain.query(Runtime::round).unwrap().number;
    let drawn = draw(made.job().plan(), samples, number, &provider.account());
    show(&mut processor(), made, &drawn).unwrap()
}

fn opened(openings: &Openings) -> GpuCall<Runtime> {
    GpuCall::open_run {
        openings: Box::new(openings.clone()),
    }
}

/// A round that a provider passes.
fn pass(chain: &mut Chain, provider: &Provider) {
    let entropy = begin(chain);
    let made = make(chain, provider, &entropy);
    chain.call(provider.agent, commit(&made, entropy));
    let samples = drawn(chain);
    let openings = openings(chain, provider, &made, &samples);
    chain.call(provider.agent, opened(&openings));
}

fn measured(chain: &mut Chain, provider: &Provider) -> Option<MeasuredView> {
    chain.query(|| Runtime::measured(provider.account()))
}

/// As if it had passed the last round with so many 10^9 operations a second: no test has a day for it.
pub fn pretend(chain: &mut Chain, provider: &Provider, giga_operations: u32) {
    let measurement = Measurement {
        giga_operations,
        memory_mib: 1_024,
        standing: Standing::passed(None, 0, false),
    };
    chain.query(|| Measurements::<Runtime>::insert(provider.account(), measurement));
}

#[test]
fn a_provider_that_commits_in_time_and_shows_what_is_drawn_is_measured_for_nothing() {
    let mut chain = open();
    let [honest, liar, silent, _] = PROVIDERS;
    assert_eq!(chain.query(Runtime::round), None);
    let before = chain.free(&account(honest.agent));
    let entropy = begin(&mut chain);
    let round = chain.query(Runtime::round).unwrap();
    assert_eq!((round.number, round.window_ms), (1, 60_000));
    let (made, others) = (
        make(&mut chain, &honest, &entropy),
        make(&mut chain, &liar, &entropy),
    );
    assert_eq!(chain.query(|| Runtime::run(honest.account())), None);
    all_ok(chain.block(vec![
        (honest.agent, commit(&made, entropy).into()),
        (liar.agent, commit(&others, entropy).into()),
        (silent.agent, commit(&others, entropy).into()),
    ]));
    let run = chain.query(|| Runtime::run(honest.account())).unwrap();
    assert_eq!(
        (run.round, run.plan, run.root),
        (1, made.job().plan(), *made.root())
    );
    // Once in a round, and by agents alone.
    let again = chain.try_call(honest.agent, commit(&others, entropy));
    assert_eq!(again, Err(GpuError::<Runtime>::AlreadyCommitted.into()));
    let stash = chain.try_call(honest.stash, commit(&made, entropy));
    assert_eq!(stash, Err(GpuError::<Runtime>::NotAgent.into()));
    let paid_for_that = before - chain.free(&account(honest.agent));

    let samples = drawn(&mut chain);
    let late = chain.try_call(PROVIDERS[3].agent, commit(&made, entropy));
    assert_eq!(late, Err(GpuError::<Runtime>::NotRunning.into()));
    let right = openings(&mut chain, &honest, &made, &samples);
    let wrong = chain.try_call(liar.agent, opened(&right));
    assert!(wrong.is_err(), "what another one has computed");
    assert_eq!(measured(&mut chain, &honest), None);
    chain.call(honest.agent, opened(&right));
    let view = measured(&mut chain, &honest).unwrap();
    assert_eq!((view.tier, view.rounds_missed), (Tier::C, 0));
    assert_eq!(chain.query(|| Runtime::run(honest.account())), None);
    // Only what was refused has cost something.
    let paid = before - chain.free(&account(honest.agent));
    assert!(paid_for_that > 0);
    assert_eq!(paid, paid_for_that);

    chain.run_until(200, || stage().is_none());
    assert_eq!(measured(&mut chain, &honest), Some(view));
    for other in [liar, silent] {
        assert_eq!(measured(&mut chain, &other), None);
        assert_eq!(chain.query(|| Runtime::run(other.account())), None);
    }
    // Nobody has lost stake.
    for provider in PROVIDERS {
        let ledger = chain.query(|| Ledgers::<Runtime>::get(provider.account()));
        assert_eq!(ledger.unwrap().bonded, BOND);
    }
}

/// Calls of others that pay their fees fill what there is for such calls, but for what is kept for calls with
/// a deadline.
#[test]
fn a_block_without_room_for_a_showing_takes_nobodys_time_to_show() {
    let mut chain = open();
    begin(&mut chain);
    drawn(&mut chain);
    let until = |chain: &mut Chain| match chain.query(stage) {
        Some(RoundStage::Opening { until, .. }) => until,
        other => panic!("{other:?}"),
    };
    let before = until(&mut chain);
    let limits = RuntimeBlockWeights::get();
    let most = limits.get(DispatchClass::Normal).max_total.unwrap();
    let one = <Runtime as surety_pallet_gpu_proofs::Config>::WeightInfo::open_run();
    let remark = || frame_system::Call::remark { remark: Vec::new() };
    for (left, full) in [(one / 2, 1), (one.saturating_mul(2), 0)] {
        let used = most.saturating_sub(left);
        let begun = until(&mut chain);
        // Whether there is room for this one does not matter.
        let _done = chain.busy_block((used, DispatchClass::Normal), Alice, remark());
        assert_eq!(until(&mut chain) - begun, full);
    }
    assert_eq!(until(&mut chain), before + 1);
}

#[test]
fn who_leaves_staking_leaves_nothing_of_what_was_measured() {
    let mut chain = open();
    let unbonding = staking::Parameters::UnbondingPeriod(staking::UnbondingPeriod, Some(UNBONDING_MIN));
    set(&mut chain, RuntimeParameters::Staking(unbonding));
    let [leaver, ..] = PROVIDERS;
    pass(&mut chain, &leaver);
    chain.run_until(200, || stage().is_none());
    assert!(measured(&mut chain, &leaver).is_some());
    // A run of the next round, too.
    let entropy = begin(&mut chain);
    let made = make(&mut chain, &leaver, &entropy);
    chain.call(leaver.agent, commit(&made, entropy));
    chain.call(leaver.stash, StakingCall::unbond { amount: BOND });
    let until = chain.number() + UNBONDING_MIN + 5;
    chain.run_to(until);
    let is_kept = || {
        let stash = leaver.account();
        (
            Commitments::<Runtime>::contains_key(&stash),
            Measurements::<Runtime>::contains_key(&stash),
        )
    };
    assert_eq!(chain.query(is_kept), (true, true));
    chain.call(leaver.stash, StakingCall::withdraw_unbonded {});
    assert!(!chain.query(|| Ledgers::<Runtime>::contains_key(leaver.account())));
    assert_eq!(chain.query(is_kept), (false, false));
}

#[test]
fn who_was_measured_to_be_faster_gets_the_task_for_up_to_a_quarter_more() {
    let [cheap, other, ..] = PROVIDERS;
    // Against 2 SURE of a provider that was not measured.
    let cases = [
        (None, 201, false),
        (Some(4_999), 201, false),
        (Some(5_000), 219, true),
        (Some(5_000), 221, false),
        (Some(20_000), 249, true),
        (Some(u32::MAX), 251, false),
    ];
    for (speed, cents, wins) in cases {
        let mut chain = open();
        if let Some(speed) = speed {
            pretend(&mut chain, &other, speed);
        }
        let fast = Provider {
            price: cheap.price / 200 * cents,
            ..other
        };
        let task = post(&mut chain, 1);
        auction(&mut chain, task, &[cheap, fast]);
        let TaskState::Running { assignments, .. } = chain.query(|| state(task)) else {
            panic!("not drawn")
        };
        let winner = if wins { fast } else { cheap };
        assert_eq!(assignments[0].provider, winner.account(), "{speed:?} for {cents}");
    }
}

#[test]
fn what_was_measured_is_shown_beside_what_is_declared() {
    let mut chain = open();
    let [provider, other, ..] = PROVIDERS;
    pretend(&mut chain, &provider, 20_000);
    let view = |stash| ProviderRegistry::provider(stash).unwrap();
    let shown = chain.query(|| view(provider.account()));
    let measured = shown.measured.unwrap();
    assert_eq!(shown.entry.device, device());
    assert_eq!(
        (measured.tier, measured.giga_operations, measured.memory_mib),
        (Tier::A, 20_000, 1_024)
    );
    assert_eq!(
        chain.query(|| ProviderRegistry::weight(&provider.account())),
        1_250
    );
    assert_eq!(chain.query(|| view(other.account())).measured, None);
}

#[test]
fn commitments_get_into_blocks_that_others_have_filled() {
    let mut chain = open();
    let [provider, ..] = PROVIDERS;
    let entropy = begin(&mut chain);
    let made = make(&mut chain, &provider, &entropy);
    let limits = RuntimeBlockWeights::get();
    let all = limits.get(DispatchClass::Normal).max_total.unwrap();
    let taken = chain.busy_block(
        (all, DispatchClass::Normal),
        provider.agent,
        commit(&made, entropy),
    );
    assert_eq!(taken, Ok(Ok(())));
}

#[test]
fn rounds_take_little_of_a_block_and_begin_in_production_alone() {
    use surety_pallet_gpu_proofs::WeightInfo;

    type Weights = weights::surety_pallet_gpu_proofs::WeightInfo<Runtime>;
    let limits = RuntimeBlockWeights::get();
    let hooks = Weights::on_initialize().saturating_add(Weights::on_finalize());
    assert!(hooks.saturating_mul(100).all_lte(limits.max_block));
    let call = opened(&Openings::default());
    let weight = call.get_dispatch_info().call_weight;
    let normal = limits.get(DispatchClass::Normal).max_total.unwrap();
    // There is room for a commitment wherever there is for an answer.
    assert!(Weights::commit_run().all_lte(Results::answer_weight()));
    // A round's providers are through long before its time is over.
    assert!(weight.saturating_mul(10).all_lte(normal));

    // On a machine of its own nobody works for a benchmark unless it says so; in production four times a day.
    preset("development", || assert_eq!(gpu_proofs::RoundEvery::get(), 0));
    preset("local_testnet", || assert_eq!(gpu_proofs::RoundEvery::get(), 0));
    preset("testnet", || {
        assert_eq!(gpu_proofs::RoundEvery::get(), 10_800);
        assert_eq!(gpu_proofs::OpenWindow::get(), 600);
    });
    let mut chain = Chain::new(sp_genesis_builder::DEV_RUNTIME_PRESET);
    chain.run_to(100);
    assert_eq!(chain.query(Runtime::round), None);
}
