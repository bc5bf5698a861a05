//! Deposits over which nothing is asked.

use surety_chain_client::Call;
use surety_channel_calls::Refusal;
use surety_channels::{ChannelId, Purse};

use crate::world::World;

fn purse(world: &World, channel: ChannelId) -> Purse {
    world.chain.change(|state| state.channels.open[&channel].purse)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_over_which_nothing_is_asked_is_given_back_once_deposits_are_beyond_the_cap() {
    let mut world = World::new(&[]).await;
    world.config.silent_blocks = 20;
    let process = world.start().await;
    let silent = world.client(&process).await;
    let first = world.channel;
    let call = silent.finish(silent.ask(world.text(1, 5, 20, 8)).await).await;
    let price = call.receipt.unwrap().statement.price;
    // As long as it is within the cap it stays.
    for _ in 0..5 {
        world.settled().await;
    }
    let kept = purse(&world, first);
    assert_eq!((kept.paid, kept.closing), (price, None));
    let busy = world.client(&process).await;
    let (second, mut seed) = (world.channel, 2);
    while purse(&world, first).closing.is_none() {
        assert!(seed < 50, "nothing is given back");
        busy.finish(busy.ask(world.text(seed, 5, 20, 8)).await).await;
        seed += 1;
        world.settled().await;
    }
    // All that was earned is paid, and the rest is the payer's.
    let given = purse(&world, first);
    assert_eq!((given.paid, given.deposit), (price, price));
    assert_eq!(given.returned, kept.deposit - price);
    assert_eq!(purse(&world, second).closing, None);
    let refused = silent.ask(world.text(1, 5, 20, 8)).await;
    assert_eq!(refused.refused, Some(Refusal::Closing));
    let sent = world.chain.calls().into_iter();
    let sent = sent.filter(|(_, call)| matches!(call, Call::CloseAgreed { .. }));
    assert_eq!(sent.count(), 1);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_leaves_gives_back_what_nothing_is_asked_over_however_little_it_is() {
    let mut world = World::new(&[]).await;
    world.config.silent_blocks = 20;
    let process = world.start().await;
    let client = world.client(&process).await;
    let channel = world.channel;
    let call = client.finish(client.ask(world.text(1, 5, 20, 8)).await).await;
    let price = call.receipt.unwrap().statement.price;
    world.submit(&world.stash, Call::Stand { lock: 0, cap: 0 }).await;
    let mut rounds = 0;
    while purse(&world, channel).closing.is_none() {
        assert!(rounds < 50, "nothing is given back");
        rounds += 1;
        world.settled().await;
    }
    let given = purse(&world, channel);
    assert_eq!((given.paid, given.deposit), (price, price));
    process.stop().await;
}
