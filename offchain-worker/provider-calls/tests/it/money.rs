//! Money for whatever may be demanded: what could not be paid for is not taken, and what was taken is shown
//! whoever drains it.

use std::sync::Arc;

use surety_chain_client::{AccountId, Call, Chain, FakeState, FixedU128, Funds};
use surety_channel_calls::Refusal;
use surety_channels::SignedChunkStatement;
use surety_provider_calls::Fees;

use crate::{
    client::{Call as Asked, Client},
    shown::beginning,
    world::{Process, World},
};

/// What it costs to show a receipt here.
const SHOW: u128 = 1_000;

/// What is kept for each request of a channel: its payer and the channel's key can demand its receipt at
/// once.
const BOTH: u128 = 2 * SHOW;

/// A provider whose showings cost something, and that counts on that.
async fn world() -> World {
    let mut world = World::new(&[]).await;
    world.config.fees = Fees {
        show: SHOW,
        demand: BOTH,
        show_point: 0,
        batch: 0,
        part: 0,
    };
    world.chain.change(|state| {
        state.fees.insert("show_receipt", SHOW);
        // Verifiers are paid nothing here: so is no levy.
        state.channels.rules.point_cost = 0;
    });
    world
}

/// So much can be paid by each.
fn has(world: &World, stash: u128, agent: u128) {
    let deposit = world.chain.info().existential_deposit;
    world.chain.change(|state| {
        for (account, pays) in [(&world.stash, stash), (&world.agent, agent)] {
            let free = pays + deposit;
            let funds = Funds { free, held: 0 };
            state.funds.insert(account.account().clone(), funds);
        }
    });
}

async fn answer(world: &World, client: &Client, seed: u64) -> Asked {
    client.finish(client.ask(world.text(seed, 5, 20, 8)).await).await
}

async fn refused(world: &World, client: &Client) -> Option<Refusal> {
    world.settled().await;
    client.ask(world.text(1, 5, 20, 8)).await.refused
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_could_not_pay_for_what_may_be_demanded_takes_nothing_new_until_it_has_money() {
    let mut world = world().await;
    let process = world.start().await;
    let client = world.client(&process).await;
    has(&world, BOTH - 1, 0);
    assert_eq!(refused(&world, &client).await, Some(Refusal::Busy));
    // Nothing was signed that could be demanded.
    assert_eq!(world.commits(), 0);
    assert_eq!(*world.kept.borrow(), Some(0));
    // What the agent has counts, too, and what something else keeps does not.
    has(&world, SHOW, SHOW);
    for others in [None, Some(1)] {
        world.kept_for_others.send_replace(others);
        assert_eq!(refused(&world, &client).await, Some(Refusal::Busy));
    }
    world.kept_for_others.send_replace(Some(0));
    assert!(answer(&world, &client, 1).await.receipt.is_some());
    // It is kept from everything else, and another request takes as much again.
    assert_eq!(*world.kept.borrow(), Some(BOTH));
    assert_eq!(refused(&world, &client).await, Some(Refusal::Busy));
    has(&world, BOTH, BOTH);
    world.settled().await;
    assert!(answer(&world, &client, 1).await.receipt.is_some());
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_costs_no_more_than_32_requests_and_another_one_as_much_again() {
    let mut world = world().await;
    has(&world, 33 * BOTH - 1, 0);
    let process = world.start().await;
    let client = world.client(&process).await;
    let mut price = 0;
    for seed in 0..35 {
        let receipt = answer(&world, &client, seed).await.receipt.unwrap();
        price += receipt.statement.price;
    }
    assert_eq!(*world.kept.borrow(), Some(32 * BOTH));
    // What it has earned comes beside that: nothing more does from here on.
    let channel = world.channel;
    world
        .until("all is redeemed", |state| {
            state.channels.open[&channel].purse.paid == price
        })
        .await;
    has(&world, 33 * BOTH - 1, 0);
    // The same payer has more demanded over another one.
    let other = world.client(&process).await;
    assert_eq!(refused(&world, &other).await, Some(Refusal::Busy));
    has(&world, 33 * BOTH, 0);
    world.settled().await;
    assert!(answer(&world, &other, 1).await.receipt.is_some());
    assert_eq!(*world.kept.borrow(), Some(33 * BOTH));
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn levies_are_paid_by_the_stash_alone() {
    let mut world = world().await;
    world.chain.change(|state| {
        // A planck for each ten of a price, and half of it for the premium.
        state.channels.rules.point_cost = surety_audit_economics::channels::SURE / 10;
    });
    let process = world.start().await;
    let client = world.client(&process).await;
    // 25 tokens of 10 plancks.
    has(&world, 37, 100 * BOTH);
    assert_eq!(refused(&world, &client).await, Some(Refusal::Busy));
    has(&world, 38, 100 * BOTH);
    world.settled().await;
    assert!(answer(&world, &client, 1).await.receipt.is_some());
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_full_blocks_make_dearer_is_kept_at_what_it_costs_then() {
    let mut world = world().await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let multiplied = |by| world.chain.change(|state| state.fee_multiplier = by);
    multiplied(FixedU128::from_rational(5, 2));
    has(&world, 5 * SHOW - 1, 0);
    assert_eq!(refused(&world, &client).await, Some(Refusal::Busy));
    // Blocks that are empty make it no cheaper than they were expected to.
    multiplied(FixedU128::from_rational(1, 2));
    has(&world, BOTH - 1, 0);
    assert_eq!(refused(&world, &client).await, Some(Refusal::Busy));
    multiplied(FixedU128::from_rational(5, 2));
    has(&world, 5 * SHOW, 0);
    world.settled().await;
    assert!(answer(&world, &client, 1).await.receipt.is_some());
    assert_eq!(*world.kept.borrow(), Some(5 * SHOW));
    process.stop().await;
}

fn lock(world: &World) -> u128 {
    let stash = world.stash.account().clone();
    world.chain.change(|state| state.channels.standings[&stash].lock)
}

fn shows(world: &World) -> usize {
    world
        .calls()
        .iter()
        .filter(|call| **call == "show_receipt")
        .count()
}

async fn demand(world: &World, held: &SignedChunkStatement<AccountId>) {
    let held = Box::new(held.clone());
    world.submit(&world.key, Call::DemandReceipt { held }).await;
}

fn is_nothing_demanded(state: &FakeState) -> bool {
    state.channels.demands.is_empty()
}

/// A channel of a provider that has this much, with what was heard of an answer that broke off, in a batch.
async fn broken_off(free: u128) -> (World, Process, SignedChunkStatement<AccountId>) {
    let (world, process, _, held) = broken_off_of(free).await;
    (world, process, held)
}

/// The same with its client.
async fn broken_off_of(free: u128) -> (World, Process, Arc<Client>, SignedChunkStatement<AccountId>) {
    let mut world = world().await;
    world.chain.change(|state| {
        let rules = &mut state.channels.rules;
        (rules.supply_window, rules.redeem_by) = (400, 100_000);
        rules.demand_price = SHOW / 20;
    });
    has(&world, free, 0);
    let process = world.start().await;
    let client = world.client(&process).await;
    let held = beginning(&world, &client).await;
    let batched = |state: &FakeState| !state.channels.batches.is_empty();
    world.until("it is in a batch", batched).await;
    (world, process, client, held)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_demanded_again_is_shown_at_once_while_there_is_money_and_late_without() {
    let (world, process, held) = broken_off(5 * SHOW).await;
    // What two demands of it may cost is kept.
    for shown in 1..=3 {
        let before = world.chain.change(|state| state.clock);
        demand(&world, &held).await;
        world.until("it is shown", is_nothing_demanded).await;
        let took = world.chain.change(|state| state.clock) - before;
        assert!(took < 200, "{took} of 400, the {shown}th time");
    }
    has(&world, SHOW, 0);
    world.settled().await;
    demand(&world, &held).await;
    let until = world.chain.change(|state| state.clock) + 400;
    world.until("it is shown", is_nothing_demanded).await;
    let at = world.chain.change(|state| state.clock);
    assert!((until - 100..=until).contains(&at), "{at} of {until}");
    assert!(lock(&world) > 0, "it was convicted");
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn for_what_was_demanded_and_shown_no_money_is_kept_again() {
    let (world, process, held) = broken_off(5 * SHOW).await;
    let price = SHOW / 2;
    world
        .chain
        .change(|state| state.channels.rules.demand_price = price);
    world.settled().await;
    assert_eq!(*world.kept.borrow(), Some(BOTH));
    // Again it pays half of what showing costs, and then all.
    for _ in 0..2 {
        demand(&world, &held).await;
        world.settled().await;
        world.until("it is shown", is_nothing_demanded).await;
        world.settled().await;
        // One showing comes before what it pays.
        assert_eq!(*world.kept.borrow(), Some(SHOW));
    }
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_demanded_is_seen_and_shown_while_channels_cannot_be_read() {
    let (world, process, client, held) = broken_off_of(5 * SHOW).await;
    world.settled().await;
    world.chain.change(|state| state.channels.is_unreadable = true);
    world.settled().await;
    // It takes nothing over channels that may have changed.
    let refused = client.ask(world.text(1, 5, 20, 8)).await.refused;
    assert_eq!(refused, Some(Refusal::Busy));
    demand(&world, &held).await;
    world.until("it is shown", is_nothing_demanded).await;
    assert_eq!(shows(&world), 1);
    assert!(lock(&world) > 0, "it was convicted");
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_too_little_shows_as_late_as_it_can() {
    let (world, process, held) = broken_off(5 * SHOW).await;
    has(&world, SHOW, 0);
    world.settled().await;
    demand(&world, &held).await;
    let until = world.chain.change(|state| state.clock) + 400;
    world.until("it is shown", is_nothing_demanded).await;
    let at = world.chain.change(|state| state.clock);
    assert!((until - 100..=until).contains(&at), "{at} of {until}");
    assert!(lock(&world) > 0);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_can_pay_for_one_shows_that_first_which_has_the_least_time_and_the_others_once_it_has_money() {
    let mut world = world().await;
    world.chain.change(|state| {
        let rules = &mut state.channels.rules;
        (rules.supply_window, rules.redeem_by) = (400, 100_000);
    });
    let process = world.start().await;
    let client = world.client(&process).await;
    let mut held = Vec::new();
    for seed in 0..3 {
        held.push(answer(&world, &client, seed).await.receipt.unwrap());
    }
    let unbatched = |state: &FakeState| state.channels.batches.is_empty();
    world
        .until("they are in a batch", |state| !unbatched(state))
        .await;
    world.settled().await;
    let price = world.chain.change(|state| state.channels.rules.demand_price);
    has(&world, SHOW + SHOW / 2 - price, 0);
    world.settled().await;
    // In another order than they were asked for.
    for place in [1, 0, 2] {
        demand(&world, &held[place]).await;
        world.chain.finalize();
    }
    let left = |count| move |state: &FakeState| state.channels.demands.values().flatten().count() == count;
    world.until("one is shown", left(2)).await;
    let first = world.chain.calls().into_iter().find_map(|(_, call)| match call {
        Call::ShowReceipt { receipt, .. } => Some(receipt.statement.nonce),
        _ => None,
    });
    assert_eq!(first, Some(held[1].statement.nonce));
    has(&world, 10 * SHOW, 0);
    world.until("all are shown", left(0)).await;
    assert!(lock(&world) > 0);
    process.stop().await;
}
