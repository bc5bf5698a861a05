//! Openings carry no signature: a pool may refuse one that somebody else has passed on, and that may yet get
//! lost.

use surety_chain_client::{Call, Chain, Refusal, Until};
use surety_types::TaskId;
use surety_worker_core::Record;

use super::{
    commits,
    world::{Running, World},
};

fn reveals(world: &World) -> usize {
    let calls = world.chain.calls();
    let is_reveal = |call: &Call| matches!(call, Call::Reveal { .. });
    calls.iter().filter(|(_, call)| is_reveal(call)).count()
}

/// A provider that has committed to its result.
async fn committed(world: &World) -> (Running, TaskId) {
    let host = world.start();
    let task = world.post(b"one\n").await;
    world.bid_and_assign(task).await;
    world.until(|| !commits(world).is_empty()).await;
    world.chain.finalize();
    (host, task)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opening_that_a_pool_turns_away_is_sent_again() {
    let world = World::new().await;
    let (host, task) = committed(&world).await;
    let is_reveal = |call: &Call| matches!(call, Call::Reveal { .. });
    world.chain.refuse_next(is_reveal, Refusal::AlreadyImported, 1);
    world.chain.open_reveals(task, 99);
    world.until_final(|| reveals(&world) == 1).await;
    world.until_revealed(task).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opening_that_is_on_the_chain_counts_as_done_for_a_worker_that_was_killed() {
    let world = World::new().await;
    let (host, task) = committed(&world).await;
    host.kill().await;

    world.chain.open_reveals(task, 99);
    let made = world.records().into_iter().find_map(|record| match record {
        Record::ResultMade { claim, salt, .. } => Some((claim, salt)),
        _ => None,
    });
    let (claim, salt) = made.unwrap();
    let passed_on = Call::Reveal {
        task,
        provider: world.stash().clone(),
        claim,
        salt,
    };
    let stranger = world.client();
    world
        .chain
        .submit(stranger, passed_on, Until::Included.into())
        .await
        .unwrap();

    let host = world.start();
    world.chain.finalize();
    world.chain.settle(task);
    world.until_final(|| world.is_finished(task)).await;
    host.stop().await;
    assert_eq!(reveals(&world), 1);
    assert_eq!(commits(&world).len(), 1);
}
