//! Batches that may cost far less than the standing lock covers: what was signed has to find places in them.

use std::sync::{Arc, atomic::Ordering};

use surety_chain_client::{Chain, DemandView, FakeDemand, FixedU128};
use surety_channel_calls::Refusal;
use surety_channels::view::{Says, Wanted};

use crate::{
    client::Client,
    world::{ITEM, Process, TOKEN, World, signer},
};

/// Most that a batch may cost with this rate of points, in plancks.
const BATCH_MAX: u128 = 400 * TOKEN;

/// A provider that has batched something, and knows by that what a batch may cost.
async fn with_small_batches() -> World {
    let mut world = World::new(&[]).await;
    world
        .chain
        .change(|state| state.channels.rate = FixedU128::from_u32(4_000_000_000));
    let process = world.start().await;
    let client = world.client(&process).await;
    client.finish(client.ask(world.text(1, 5, 20, 8)).await).await;
    let first = (world.stash.account().clone(), 0);
    world
        .until("there is a batch", |state| {
            state.channels.batches.contains_key(&first)
        })
        .await;
    world.settled().await;
    process.stop().await;
    world.config.batch_blocks = 10_000;
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_is_answered_than_the_places_for_batches_that_are_left_have_room_for() {
    let mut world = with_small_batches().await;
    let stash = world.stash.account().clone();
    // Nine places are left, one of them for something new.
    world.chain.change(|state| {
        let mut batch = state.channels.batches[&(stash.clone(), 0)].clone();
        batch.window.until = 1_000_000;
        for number in 1..=55 {
            batch.batch = number;
            state
                .channels
                .batches
                .insert((stash.clone(), number), batch.clone());
        }
        state.channels.standings.get_mut(&stash).unwrap().next = 56;
    });
    let process = world.start().await;
    let client = world.client(&process).await;
    client.pays.store(false, Ordering::Relaxed);
    let mut open = Vec::new();
    let refused = loop {
        let call = client.ask(world.text(open.len() as u64, 5, 245, 8)).await;
        match call.refused {
            None => open.push(call),
            Some(why) => break why,
        }
    };
    // The lock covers a hundred times as much.
    let at_risk = open.len() as u128 * 250 * TOKEN;
    assert_eq!(refused, Refusal::Busy);
    assert!(
        at_risk > 4 * BATCH_MAX && at_risk <= 9 * BATCH_MAX / 2,
        "{at_risk}"
    );
    // What costs less still finds room.
    let less = client.ask(world.text(20, 5, 20, 8)).await;
    assert_eq!(less.refused, None);
    process.stop().await;
}

/// Asks for an answer that is not paid for any further, and stays open for that: who lets go of its
/// connection has it ended.
async fn hold(world: &World, client: &Client, seed: u64) -> Option<Refusal> {
    client.pays.store(false, Ordering::Relaxed);
    let call = client.ask(world.text(seed, 5, 100, 8)).await;
    let refused = call.refused;
    if refused.is_none() {
        client.held.lock().unwrap().push(call);
    }
    refused
}

/// Ends the one that has been open for longest.
async fn end(client: &Client) {
    let mut call = client.held.lock().unwrap().remove(0);
    client.cancel(&mut call).await;
    assert!(client.finish(call).await.receipt.is_some());
}

/// A provider that answers so many at once.
async fn with_places(places: u32) -> World {
    let world = World::new(&[]).await;
    let offer = surety_chain_client::Call::Offer {
        model: world.writer(),
        operation: surety_types::model::Operation::Generate,
        unit_price: TOKEN,
        places,
        region: None,
    };
    world.submit(&world.stash, offer).await;
    world
}

/// Somebody else who pays.
async fn other_payer(world: &mut World, process: &Process) -> Arc<Client> {
    (world.payer, world.key) = (signer("//Other"), signer("//OtherKey"));
    world.chain.change(|state| {
        let money = state.funds[signer("//Payer").account()];
        state.funds.insert(signer("//Other").account().clone(), money);
    });
    world.client(process).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_many_places_over_several_channels_leaves_them_to_another_payer_that_waits() {
    let mut world = with_places(4).await;
    let process = world.start().await;
    let (one, two) = (world.client(&process).await, world.client(&process).await);
    let other = other_payer(&mut world, &process).await;
    let ask = async |client: &Client, seed: u64| hold(&world, client, seed).await;
    for (client, seed) in [(&one, 1), (&one, 2), (&two, 3), (&two, 4)] {
        assert_eq!(ask(client, seed).await, None);
    }
    // As long as nobody waits it takes all that there is.
    end(&one).await;
    assert_eq!(ask(&one, 5).await, None);
    assert_eq!(ask(&other, 6).await, Some(Refusal::Busy));
    end(&one).await;
    assert_eq!(ask(&two, 7).await, Some(Refusal::Busy));
    assert_eq!(ask(&other, 8).await, None);
    // Each has as much in the end.
    for _ in 0..2 {
        end(&two).await;
    }
    assert_eq!(ask(&one, 9).await, None);
    assert_eq!(ask(&one, 10).await, Some(Refusal::Busy));
    assert_eq!(ask(&other, 11).await, None);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_places_the_one_that_becomes_free_is_left_to_another_payer_that_waits() {
    let mut world = with_places(2).await;
    let process = world.start().await;
    let (one, two) = (world.client(&process).await, world.client(&process).await);
    let other = other_payer(&mut world, &process).await;
    assert_eq!(hold(&world, &one, 1).await, None);
    assert_eq!(hold(&world, &two, 2).await, None);
    assert_eq!(hold(&world, &other, 3).await, Some(Refusal::Busy));
    end(&one).await;
    assert_eq!(hold(&world, &two, 4).await, Some(Refusal::Busy));
    assert_eq!(hold(&world, &other, 5).await, None);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_places_are_left_free_than_payers_wait_for() {
    let mut world = with_places(8).await;
    let process = world.start().await;
    let one = world.client(&process).await;
    let other = other_payer(&mut world, &process).await;
    let ask = async |client: &Client, seed: u64| hold(&world, client, seed).await;
    for seed in 1..=8 {
        assert_eq!(ask(&one, seed).await, None);
    }
    assert_eq!(ask(&other, 9).await, Some(Refusal::Busy));
    for _ in 0..2 {
        end(&one).await;
    }
    // Of the two that are free the other one waits for one.
    assert_eq!(ask(&one, 10).await, None);
    assert_eq!(ask(&one, 11).await, Some(Refusal::Busy));
    assert_eq!(ask(&other, 12).await, None);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_demanded_is_in_the_next_batch_whatever_else_waits() {
    let mut world = with_small_batches().await;
    let process = world.start().await;
    let first = world.client(&process).await;
    let other = world.client(&process).await;
    // The first channel's come first otherwise, and leave no room.
    for _ in 0..2 {
        first.finish(first.ask(world.items(60)).await).await;
    }
    let call = other.finish(other.ask(world.items(50)).await).await;
    let receipt = call.receipt.unwrap().statement;
    let (stash, key) = (world.stash.account().clone(), world.key.account().clone());
    let genesis = world.chain.info().genesis;
    world.chain.change(|state| {
        let view = DemandView {
            provider: stash.clone(),
            demander: key.clone(),
            wanted: Wanted::Receipt {
                channel: receipt.channel,
                nonce: receipt.nonce,
                says: Says::of(&receipt, &genesis),
                counted: None,
            },
            until: state.clock + 1_000,
        };
        let by = key.clone();
        let of = (stash.clone(), key);
        state
            .channels
            .demands
            .insert(of, vec![FakeDemand { view, by, surplus: 0 }]);
    });
    world
        .until("it is shown", |state| state.channels.demands.is_empty())
        .await;
    let root = world
        .chain
        .change(|state| state.channels.batches[&(stash, 1)].window.root);
    assert_eq!((root.sums.receipts, root.sums.price), (1, 50 * ITEM));
    process.stop().await;
}
