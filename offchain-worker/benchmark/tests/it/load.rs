//! A provider that promises as much as it has room for, whenever it may.

use std::{cell::Cell, sync::atomic::Ordering};

use crate::setup::{LOAD, World};

#[tokio::test]
async fn what_is_promised_keeps_no_provider_out_of_a_round_however_much_there_is_to_bid_for() {
    let world = World::new().await;
    world.bench.load.store(LOAD, Ordering::Relaxed);
    let provider = world.start();
    world.begin();
    world
        .until("time for a run", |world| world.bench.pass() == 0)
        .await;
    world.run_from(1);
    world
        .until("a commitment", |world| {
            world.bench.pass();
            !world.commitments().is_empty()
        })
        .await;
    // Until the run is made again.
    world
        .until("new promises", |world| world.bench.pass() == LOAD)
        .await;
    world.bench.load.store(0, Ordering::Relaxed);
    world.close(1);
    world.draw(1);
    world.chain.finalize();
    world
        .until("a measurement", |world| world.measured().is_some())
        .await;
    provider.stop().await;
}

#[tokio::test]
async fn a_round_that_is_passed_over_holds_nothing_up() {
    let world = World::new().await;
    world.bench.is_busy.store(true, Ordering::Relaxed);
    let provider = world.start();
    world.begin();
    world
        .until("nothing new to be promised", |world| {
            world.bench.pass();
            world.bench.pass() < LOAD
        })
        .await;
    world.run_from(1);
    world
        .until("a round passed over", |world| world.counts("skipped", 1))
        .await;
    world
        .until("new promises", |world| world.bench.pass() == LOAD)
        .await;
    provider.stop().await;
}

#[tokio::test]
async fn whoever_takes_no_part_goes_on_promising() {
    let world = World::new().await;
    let provider = world.start_as(false);
    world.begin();
    world.run_from(1);
    let blocks = Cell::new(0);
    world
        .until("some blocks", |world| {
            assert_eq!(world.bench.pass(), LOAD);
            blocks.set(blocks.get() + 1);
            blocks.get() > 20
        })
        .await;
    provider.stop().await;
}
