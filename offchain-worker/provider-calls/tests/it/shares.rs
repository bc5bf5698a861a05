//! Whoever asks most does not keep others out.

use std::sync::atomic::Ordering;

use surety_channel_calls::Refusal;

use crate::world::{World, signer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payer_leaves_places_for_others_and_another_channel_brings_it_no_more() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let greedy = world.client(&process).await;
    greedy.pays.store(false, Ordering::Relaxed);
    let mut open = Vec::new();
    let refused = loop {
        let call = greedy.ask(world.text(open.len() as u64, 5, 20, 8)).await;
        match call.refused {
            None => open.push(call),
            Some(why) => break why,
        }
    };
    // Of sixteen.
    assert_eq!((open.len(), refused), (13, Refusal::Busy));
    let again = world.client(&process).await;
    let refused = again.ask(world.text(20, 5, 20, 8)).await;
    assert_eq!(refused.refused, Some(Refusal::Busy));

    world.payer = signer("//Key");
    let modest = world.client(&process).await;
    modest.pays.store(false, Ordering::Relaxed);
    for seed in 30..33 {
        let call = modest.ask(world.text(seed, 5, 20, 8)).await;
        assert_eq!(call.refused, None, "{seed}");
        open.push(call);
    }
    let refused = modest.ask(world.text(34, 5, 20, 8)).await;
    assert_eq!(refused.refused, Some(Refusal::Busy), "all are taken");
    process.stop().await;
}
