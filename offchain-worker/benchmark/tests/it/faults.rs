//! When nothing is committed to, or shown.

use std::sync::atomic::Ordering;

use surety_chain_client::{Call, ChainError, DispatchFault};
use surety_gpu_proofs::RunView;

use crate::setup::{Running, World};

#[tokio::test]
async fn a_round_is_passed_over_where_promised_work_comes_first() {
    let world = World::new().await;
    world.bench.is_busy.store(true, Ordering::Relaxed);
    let provider = world.start();
    world.run_from(1);
    world
        .until("a round passed over", |world| world.counts("skipped", 1))
        .await;
    assert_eq!(world.attempts(), 0);
    provider.stop().await;
}

#[tokio::test]
async fn a_device_that_errs_commits_to_nothing() {
    let world = World::new().await;
    world.bench.errs.store(true, Ordering::Relaxed);
    let provider = world.start();
    world.run_from(1);
    world.until("a fault", |world| world.counts("fault", 1)).await;
    assert_eq!(world.attempts(), 0);
    provider.stop().await;
}

#[tokio::test]
async fn a_device_that_errs_later_shows_nothing_wrong() {
    let world = World::new().await;
    let provider = world.start();
    world.run_from(1);
    world
        .until("a commitment", |world| !world.commitments().is_empty())
        .await;
    world.bench.errs.store(true, Ordering::Relaxed);
    let before = world.bench.pauses.load(Ordering::Relaxed);
    world.close(1);
    world.draw(1);
    world.chain.finalize();
    world
        .until("a second run", |world| {
            world.bench.pauses.load(Ordering::Relaxed) > before
        })
        .await;
    world.end();
    world
        .until("a round missed", |world| world.counts("not_shown", 1))
        .await;
    assert_eq!(world.attempts(), 1);
    provider.stop().await;
}

/// A provider whose commitment was refused for good.
async fn refused(world: &World) -> Running {
    let refused = ChainError::Dispatch(DispatchFault {
        pallet: Some("GpuProofs".into()),
        name: "NotAgent".into(),
        docs: String::new(),
    });
    let is_commitment = |call: &Call| matches!(call, Call::CommitRun { .. });
    world.chain.refuse_next(is_commitment, refused, 1);
    let provider = world.start();
    world.run_from(1);
    world.until("a refusal", |world| world.attempts() == 1).await;
    provider
}

#[tokio::test]
async fn a_commitment_that_was_refused_and_is_on_the_chain_after_all_is_shown() {
    let world = World::new().await;
    let provider = refused(&world).await;
    let (_, call, _) = world.chain.attempts().pop().unwrap();
    let Call::CommitRun { plan, root, .. } = call else {
        panic!("{call:?}");
    };
    // One that was sent before, as another node knows.
    let (stash, round) = (world.stash().clone(), 1);
    let run = RunView { round, plan, root };
    world
        .chain
        .change(|state| state.gpu_proofs.runs.insert(stash, run));
    world.close(1);
    world.draw(1);
    world.chain.finalize();
    world
        .until("a measurement", |world| world.measured().is_some())
        .await;
    assert_eq!(world.attempts(), 2);
    provider.stop().await;
}

#[tokio::test]
async fn a_commitment_that_the_chain_does_not_take_is_not_paid_for_again() {
    let world = World::new().await;
    let provider = refused(&world).await;
    world.close(1);
    world.draw(1);
    world.chain.finalize();
    world
        .until("a round missed", |world| world.counts("not_committed", 1))
        .await;
    assert_eq!(world.attempts(), 1);
    provider.stop().await;
}

#[tokio::test]
async fn a_device_that_has_become_slow_is_left_alone_once_there_is_nothing_to_show() {
    let world = World::new().await;
    let provider = world.start();
    world.run_from(1);
    world
        .until("a commitment", |world| !world.commitments().is_empty())
        .await;
    world.bench.is_slow.store(true, Ordering::Relaxed);
    let before = world.bench.pauses.load(Ordering::Relaxed);
    world.close(1);
    world.draw(1);
    world.chain.finalize();
    world
        .until("a second run", |world| {
            world.bench.pauses.load(Ordering::Relaxed) > before
        })
        .await;
    world.end();
    world
        .until("a run stopped", |world| {
            world.counts("not_shown", 1) && world.shows("surety_benchmark_stopped_total 1")
        })
        .await;
    world
        .until("a machine at rest", |world| world.bench.is_idle())
        .await;
    provider.stop().await;
}

#[tokio::test]
async fn a_defect_of_one_run_is_not_the_end_of_others() {
    let world = World::new().await;
    world.bench.fails.store(true, Ordering::Relaxed);
    let provider = world.start();
    world.run_from(1);
    world
        .until("a commitment", |world| !world.commitments().is_empty())
        .await;
    assert!(!world.bench.fails.load(Ordering::Relaxed));
    provider.stop().await;
}
