//! Rounds as they go, on nodes and machines that fail as they do.

use std::{collections::BTreeMap, sync::atomic::Ordering};

use surety_chain_client::{AccountId, Call, Hash, Refusal};
use surety_gpu_proofs::{MeasuredView, Plan, Tier};

use crate::setup::{WINDOW_MS, World};

fn is_commitment(call: &Call) -> bool {
    matches!(call, Call::CommitRun { .. })
}

fn is_opening(call: &Call) -> bool {
    matches!(call, Call::OpenRun { .. })
}

fn plan_of(call: &Call) -> Plan {
    match call {
        Call::CommitRun { plan, .. } => *plan,
        call => panic!("{call:?}"),
    }
}

/// Takes part in a round until there is a commitment.
async fn commit(world: &World, entropy: u8) -> Call {
    let before = world.commitments().len();
    world.run_from(entropy);
    world
        .until("a commitment", |world| world.commitments().len() > before)
        .await;
    let committed = world.commitments().pop().unwrap();
    let Call::CommitRun { entropy: of, .. } = &committed else {
        panic!("{committed:?}");
    };
    assert_eq!(*of, Hash::repeat_byte(entropy));
    committed
}

async fn show(world: &World, entropy: u8) {
    world.close(entropy);
    world.draw(entropy);
    world.chain.finalize();
    world
        .until("a measurement", |world| world.measured().is_some())
        .await;
}

#[tokio::test]
async fn a_round_is_committed_to_in_its_window_and_shown_once_what_is_drawn_is_final() {
    let world = World::new().await;
    let provider = world.start();
    let plan = plan_of(&commit(&world, 1).await);
    let (_, _, options) = world.chain.attempts().pop().unwrap();
    assert_eq!(options.tip, 7);
    world.close(1);
    world.draw(1);
    let pauses = || world.bench.pauses.load(Ordering::Relaxed);
    let before = pauses();
    for _ in 0..20 {
        world.chain.extend();
        tokio::task::yield_now().await;
    }
    assert_eq!(
        (world.attempts(), pauses()),
        (1, before),
        "a draw that is not final"
    );
    world.chain.finalize();
    world
        .until("a measurement", |world| world.measured().is_some())
        .await;
    let measured = world.measured().unwrap();
    assert_eq!(measured.giga_operations, plan.giga_operations(WINDOW_MS));
    assert_eq!(world.attempts(), 2, "each call is sent once");
    let (_, opening, options) = world.chain.attempts().pop().unwrap();
    assert!(is_opening(&opening));
    assert_eq!(options.tip, 7, "later calls of the agent wait for it");
    world.chain.finalize();
    world
        .until("a round passed", |world| world.counts("passed", 1))
        .await;
    let speed = format!("surety_benchmark_giga_operations {}", measured.giga_operations);
    world.until("its speed", |world| world.shows(&speed)).await;
    provider.stop().await;
}

#[tokio::test]
async fn a_provider_that_dies_after_its_commitment_shows_it_when_it_is_back() {
    let world = World::new().await;
    let provider = world.start();
    commit(&world, 1).await;
    provider.kill().await;
    let provider = world.start();
    show(&world, 1).await;
    assert_eq!(world.commitments().len(), 1);
    provider.kill().await;
    // It dies again before it knows how that went.
    let provider = world.start();
    world.chain.finalize();
    world
        .until("a round passed", |world| world.counts("passed", 1))
        .await;
    assert_eq!(world.attempts(), 2);
    provider.stop().await;
}

#[tokio::test]
async fn a_commitment_whose_fate_is_unknown_is_sent_again_only_where_it_is_in_no_block() {
    let world = World::new().await;
    let provider = world.start();
    world.chain.lose_next();
    commit(&world, 1).await;
    assert_eq!(world.attempts(), 2, "the first was lost on its way");
    world.chain.lose_answer_of_next();
    show(&world, 1).await;
    world.chain.finalize();
    world
        .until("a round passed", |world| world.counts("passed", 1))
        .await;
    assert_eq!(world.attempts(), 3, "of the opening only the answer was lost");
    provider.stop().await;
}

#[tokio::test]
async fn what_no_journal_remembers_is_not_shown() {
    let world = World::new().await;
    let provider = world.start();
    commit(&world, 1).await;
    provider.kill().await;
    std::fs::remove_file(world.journal()).unwrap();
    let provider = world.start();
    world.close(1);
    world.draw(1);
    // Another value shows that the process has seen this state.
    world
        .chain
        .change(|state| state.gpu_proofs.measured = seen(&world));
    world.chain.finalize();
    world
        .until("a look", |world| {
            world.shows("surety_benchmark_giga_operations 123")
        })
        .await;
    assert_eq!(world.attempts(), 1);
    provider.stop().await;
}

/// A measurement that none of these providers comes to.
fn seen(world: &World) -> BTreeMap<AccountId, MeasuredView> {
    let measured = MeasuredView {
        tier: Tier::C,
        giga_operations: 123,
        memory_mib: 0,
        rounds_missed: 0,
    };
    [(world.stash().clone(), measured)].into()
}

#[tokio::test]
async fn a_run_is_made_anew_when_another_fork_asks_for_another() {
    let world = World::new().await;
    let provider = world.start();
    world.run_from(1);
    let is_at_it = |world: &World| world.bench.pauses.load(Ordering::Relaxed) > 0;
    world.until("a run", is_at_it).await;
    commit(&world, 2).await;
    assert_eq!(
        world.attempts(),
        1,
        "nothing is committed to on the fork that is gone"
    );
    show(&world, 2).await;
    provider.stop().await;
}

#[tokio::test]
async fn a_commitment_on_a_fork_that_comes_back_is_shown() {
    let world = World::new().await;
    let provider = world.start();
    commit(&world, 1).await;
    let first = world
        .chain
        .change(|state| std::mem::take(&mut state.gpu_proofs.runs));
    commit(&world, 2).await;
    world.chain.change(|state| state.gpu_proofs.runs = first);
    show(&world, 1).await;
    provider.stop().await;
}

#[tokio::test]
async fn a_full_pool_and_a_node_that_is_away_delay_calls_and_lose_none() {
    let world = World::new().await;
    let provider = world.start();
    world.chain.refuse_next(is_commitment, Refusal::PoolFull, 2);
    commit(&world, 1).await;
    world.chain.refuse_next(is_opening, Refusal::PoolFull, 2);
    world.chain.set_unreachable(true);
    world.close(1);
    world.draw(1);
    world.chain.finalize();
    world.chain.set_unreachable(false);
    world
        .until("a measurement", |world| world.measured().is_some())
        .await;
    assert_eq!(world.attempts(), 6);
    provider.stop().await;
}

#[tokio::test]
async fn whoever_takes_no_part_sends_nothing_but_what_it_has_committed_to() {
    let world = World::new().await;
    let provider = world.start();
    commit(&world, 1).await;
    provider.stop().await;
    let provider = world.start_as(false);
    show(&world, 1).await;
    world.end();
    world
        .until("a round passed", |world| world.counts("passed", 1))
        .await;
    let (attempts, pauses) = (world.attempts(), world.bench.pauses.load(Ordering::Relaxed));
    world
        .chain
        .change(|state| state.gpu_proofs.measured = seen(&world));
    world.run_from(9);
    world.chain.finalize();
    world
        .until("a look", |world| {
            world.shows("surety_benchmark_giga_operations 123")
        })
        .await;
    assert_eq!(world.attempts(), attempts);
    assert_eq!(world.bench.pauses.load(Ordering::Relaxed), pauses);
    provider.stop().await;
}

#[tokio::test]
async fn a_run_that_was_not_shown_in_time_is_told() {
    let world = World::new().await;
    let provider = world.start();
    commit(&world, 1).await;
    world.close(1);
    world.end();
    world
        .until("a round missed", |world| world.counts("not_shown", 1))
        .await;
    provider.stop().await;
}
