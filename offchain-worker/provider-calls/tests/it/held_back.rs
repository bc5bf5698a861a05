//! What is paid later, and what a demand holds back.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use surety_chain_client::{AccountId, Call, FakeState, Refusal};
use surety_channels::SignedChunkStatement;

use crate::{client::Client, world::World};

/// A provider with an answer in a batch that is counted, and not paid yet: its receipt, and what it costs.
async fn counted(world: &World, client: &Client) -> (SignedChunkStatement<AccountId>, u128) {
    let call = client.finish(client.ask(world.text(1, 5, 20, 8)).await).await;
    let receipt = call.receipt.unwrap();
    let price = receipt.statement.price;
    let channel = world.channel;
    world
        .until("it is counted", |state| {
            state.channels.open[&channel].purse.counted == price
        })
        .await;
    assert_eq!(world.paid(), 0);
    (receipt, price)
}

fn demands(receipt: SignedChunkStatement<AccountId>) -> Call {
    let held = Box::new(receipt);
    Call::DemandReceipt { held }
}

/// Calls about money and demands, in their order.
fn about(world: &World) -> Vec<&'static str> {
    let is_about = |call: &&str| ["redeem", "show_receipt"].contains(call);
    world.calls().into_iter().filter(is_about).collect()
}

/// That a channel has been paid so much.
fn is_paid(world: &World, price: u128) -> impl Fn(&FakeState) -> bool {
    let channel = world.channel;
    move |state| state.channels.open[&channel].purse.paid == price
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_counted_is_redeemed_again_when_it_is_due() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let (_, price) = counted(&world, &client).await;
    world.until("it is paid", is_paid(&world, price)).await;
    assert_eq!(about(&world), ["redeem", "redeem"]);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_demand_holds_back_is_paid_through_a_restart_and_a_full_pool() {
    let mut world = World::new(&[]).await;
    // It is due long before anybody who demands something has to be shown it.
    world.chain.change(|state| {
        let rules = &mut state.channels.rules;
        (rules.supply_window, rules.redeem_by) = (400, 5_000);
    });
    let process = world.start().await;
    let client = world.client(&process).await;
    let (receipt, price) = counted(&world, &client).await;
    process.stop().await;
    world.submit(&world.key, demands(receipt)).await;
    // What is counted is due, and nobody is there.
    for _ in 0..120 {
        world.chain.finalize();
    }
    assert_eq!(world.paid(), 0);
    let is_show = |call: &Call| matches!(call, Call::ShowReceipt { .. });
    world.chain.refuse_next(is_show, Refusal::PoolFull, 3);
    let process = world.start().await;
    world.until("it is paid", is_paid(&world, price)).await;
    // Showing has paid it.
    assert_eq!(about(&world), ["redeem", "show_receipt"]);
    let stash = world.stash.account().clone();
    let lock = world.chain.change(|state| state.channels.standings[&stash].lock);
    assert!(lock > 0);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_demanded_is_shown_in_time_once_the_node_is_back() {
    let mut world = World::new(&[]).await;
    // Blocks go on while the provider waits to look again.
    world.chain.change(|state| {
        let rules = &mut state.channels.rules;
        (rules.supply_window, rules.redeem_by) = (800, 5_000);
    });
    let process = world.start().await;
    let client = world.client(&process).await;
    let (receipt, _) = counted(&world, &client).await;
    let tried = Arc::new(AtomicBool::new(false));
    let seen = tried.clone();
    let is_show = move |call: &Call| {
        let is_one = matches!(call, Call::ShowReceipt { .. });
        seen.fetch_or(is_one, Ordering::Relaxed);
        is_one
    };
    world.chain.refuse_next(is_show, Refusal::PoolFull, 6);
    world.submit(&world.key, demands(receipt)).await;
    world
        .until("it is tried", |_| tried.load(Ordering::Relaxed))
        .await;
    world.chain.set_unreachable(true);
    world.settled().await;
    let last = world.chain.change(|state| {
        let mut demanded = state.channels.demands.values().flatten();
        demanded.next().unwrap().view.until
    });
    world.chain.set_unreachable(false);
    world
        .until("it is shown", |state| state.channels.demands.is_empty())
        .await;
    assert!(world.chain.change(|state| state.clock) <= last);
    process.stop().await;
}
