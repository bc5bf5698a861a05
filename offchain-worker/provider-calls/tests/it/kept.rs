//! What is kept in memory, and what is known of what was forgotten.

use surety_channel_calls::Refusal;

use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_final_batch_has_takes_no_place() {
    let mut world = World::new(&[]).await;
    world.config.batch_blocks = 10_000;
    world.config.calls_max = 4;
    let process = world.start().await;
    let mut open = Vec::new();
    for _ in 0..3 {
        let client = world.client(&process).await;
        let call = client.ask(world.items(256)).await;
        assert_eq!(call.refused, None);
        open.push((client, call));
    }
    // What was being answered ends as it was.
    process.kill().await;
    let process = world.start().await;
    let first = (world.stash.account().clone(), 0);
    world
        .until("some are in a batch", |state| {
            state.channels.batches.contains_key(&first)
        })
        .await;
    world.settled().await;
    let kept: u32 = world.chain.change(|state| {
        let batches = state.channels.batches.values();
        batches.map(|batch| batch.window.root.sums.receipts).sum()
    });
    for figure in [
        format!("surety_calls_whole {}", 3 - kept),
        format!("surety_calls_kept {kept}"),
    ] {
        assert!(process.shows(&figure), "{figure}");
    }
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_over_one_channel_is_batched_before_it_has_a_quarter_of_the_places() {
    let mut world = World::new(&[]).await;
    world.config.batch_blocks = 10_000;
    world.config.calls_max = 16;
    let process = world.start().await;
    let client = world.client(&process).await;
    for seed in 0..8 {
        let call = client.ask(world.text(seed, 5, 20, 8)).await;
        assert_eq!(call.refused, None);
        assert!(client.finish(call).await.receipt.is_some());
        world.settled().await;
    }
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_blocks_had_no_more_for_long_is_not_begun_anew_when_one_has_it_again() {
    let mut world = World::new(&[]).await;
    world.config.batch_blocks = 10_000;
    let process = world.start().await;
    let client = world.client(&process).await;
    let call = client.finish(client.ask(world.text(1, 5, 20, 8)).await).await;
    assert!(call.receipt.is_some());
    let channel = world.channel;
    let gone = world.chain.change(|state| state.channels.open.remove(&channel));
    for _ in 0..4 {
        world.settled().await;
    }
    world
        .chain
        .change(|state| state.channels.open.insert(channel, gone.unwrap()));
    world.settled().await;
    let call = client.ask(world.text(2, 5, 20, 8)).await;
    assert_eq!(call.refused, Some(Refusal::Forgotten));
    process.stop().await;
}
