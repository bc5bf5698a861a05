//! What must hold when something goes wrong around a provider: its disk, its journal, its payers.

use std::{fs, process::Command, sync::atomic::Ordering, time::Duration};

use surety_chain_client::{DemandView, FakeDemand};
use surety_channel_calls::Refusal;
use surety_channels::{
    End, Request,
    view::{Heard, Says, Wanted},
};
use surety_proofs::content_hash;
use surety_provider_calls::Owed;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::timeout,
};

use crate::world::{TOKEN, World};

/// Of an answer of which nothing was heard.
fn whatever(request: &Request) -> Says {
    Says::GoesOn(Heard {
        request: request.hash(),
        bytes: 0,
        output: content_hash(&[]),
        units: 0,
        price: 0,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_is_answered_than_batches_have_room_for() {
    let mut world = World::new(&[]).await;
    world.config.batch_blocks = 10_000;
    let process = world.start().await;
    let client = world.client(&process).await;
    let stash = world.stash.account().clone();
    world.chain.change(|state| {
        let standing = state.channels.standings.get_mut(&stash).unwrap();
        standing.cap = 250 * TOKEN;
    });
    world.settled().await;
    // One is open, and the receipt of the other, once there is one, counts as much.
    client.pays.store(false, Ordering::Relaxed);
    let open = client.ask(world.text(1, 5, 95, 8)).await;
    assert_eq!(open.refused, None);
    let beyond = client.ask(world.text(2, 5, 146, 8)).await;
    assert_eq!(beyond.refused, Some(Refusal::Busy));
    let fits = client.ask(world.text(3, 5, 145, 8)).await;
    assert_eq!(fits.refused, None);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_hangs_up_before_the_first_chunk_pays_for_it() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    drop(client.ask(world.text(2, 10, 100, 8)).await);
    let channel = world.channel;
    world
        .until("what it asked for is redeemed", |state| {
            state.channels.open[&channel].purse.paid == 18 * TOKEN
        })
        .await;
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_copy_of_the_journal_takes_nothing_over_channels_that_are_there() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    client.finish(client.ask(world.text(1, 5, 20, 8)).await).await;
    let stash = world.stash.account().clone();
    world
        .until("there is a batch", |state| {
            state.channels.batches.contains_key(&(stash.clone(), 0))
        })
        .await;
    world.settled().await;
    process.stop().await;
    let (file, copy) = (world.home().join("calls.redb"), world.home().join("copy"));
    fs::copy(&file, &copy).unwrap();

    let process = world.start().await;
    let client = world.client(&process).await;
    client.finish(client.ask(world.text(2, 5, 20, 8)).await).await;
    world
        .until("there is another batch", |state| {
            state.channels.batches.contains_key(&(stash.clone(), 1))
        })
        .await;
    process.kill().await;
    drop(world.store().await);
    fs::copy(&copy, &file).unwrap();

    let process = world.start().await;
    client.connect(&process);
    world.settled().await;
    // It may be the node that is wrong, until it has said so for long.
    let call = client.ask(world.text(3, 5, 20, 8)).await;
    assert_eq!(call.refused, Some(Refusal::Busy));
    for _ in 0..4 {
        world.settled().await;
    }
    world.followed_anew().await;
    let call = client.ask(world.text(3, 5, 20, 8)).await;
    assert_eq!(call.refused, Some(Refusal::Forgotten));
    // Whoever opens a channel now is served.
    let client = world.client(&process).await;
    let call = client.ask(world.text(4, 5, 20, 8)).await;
    assert_eq!(call.refused, None);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_says_wrongly_for_a_moment_of_the_batches_that_there_are_ends_nothing_for_good() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    client.finish(client.ask(world.text(1, 5, 20, 8)).await).await;
    let stash = world.stash.account().clone();
    let (first, false_one) = ((stash.clone(), 0), (stash, 9));
    world
        .until("there is a batch", |state| {
            state.channels.batches.contains_key(&first)
        })
        .await;
    world.settled().await;
    world.chain.change(|state| {
        let mut batch = state.channels.batches[&first].clone();
        batch.batch = 9;
        batch.window.root.hash = content_hash(b"somebody else's");
        state.channels.batches.insert(false_one.clone(), batch);
    });
    world.settled().await;
    let call = client.ask(world.text(2, 5, 20, 8)).await;
    assert_eq!(call.refused, Some(Refusal::Busy));
    world
        .chain
        .change(|state| state.channels.batches.remove(&false_one));
    world.followed_anew().await;
    let call = client.finish(client.ask(world.text(3, 5, 20, 8)).await).await;
    assert!(call.receipt.is_some());
    process.stop().await;
    let process = world.start().await;
    client.connect(&process);
    world.settled().await;
    let call = client.finish(client.ask(world.text(4, 5, 20, 8)).await).await;
    assert!(call.receipt.is_some());
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_of_nothing_is_batched_and_shown_where_it_is_demanded() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let wanted = world.items(256);
    let says = whatever(&wanted.request);
    let call = client.ask(wanted).await;
    assert_eq!(call.refused, None);
    process.kill().await;
    assert_eq!(call.chunks, 0);
    let (stash, key) = (world.stash.account().clone(), world.key.account().clone());
    let channel = world.channel;
    world.chain.change(|state| {
        let view = DemandView {
            provider: stash.clone(),
            demander: key.clone(),
            wanted: Wanted::Receipt {
                channel,
                nonce: 0,
                says,
                counted: None,
            },
            until: state.clock + 1_000,
        };
        let by = key.clone();
        state
            .channels
            .demands
            .insert((stash.clone(), key), vec![FakeDemand { view, by, surplus: 0 }]);
    });
    let process = world.start().await;
    world
        .until("it is shown", |state| state.channels.demands.is_empty())
        .await;
    let root = world
        .chain
        .change(|state| state.channels.batches[&(stash, 0)].window.root);
    assert_eq!((root.sums.receipts, root.sums.price), (1, 0));
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_several_demand_takes_one_place_where_hardly_any_is_left() {
    let mut world = World::new(&[]).await;
    world
        .chain
        .change(|state| state.channels.rules.supply_window = 200);
    let process = world.start().await;
    let client = world.client(&process).await;
    client.finish(client.ask(world.text(1, 5, 20, 8)).await).await;
    let stash = world.stash.account().clone();
    let first = (stash.clone(), 0);
    world
        .until("there is a batch", |state| {
            state.channels.batches.contains_key(&first)
        })
        .await;
    world.settled().await;
    client.pays.store(false, Ordering::Relaxed);
    let wanted = [2, 3].map(|seed| world.text(seed, 5, 100, 8));
    let says = wanted.each_ref().map(|wanted| whatever(&wanted.request));
    let [one, other] = wanted;
    let calls = [client.ask(one).await, client.ask(other).await];
    world.chain.change(|state| {
        let mut batch = state.channels.batches[&first].clone();
        batch.window.until = 1_000_000;
        for number in 1..=56 {
            batch.batch = number;
            state
                .channels
                .batches
                .insert((stash.clone(), number), batch.clone());
        }
        state.channels.standings.get_mut(&stash).unwrap().next = 57;
    });
    world.settled().await;
    let refused = client.ask(world.text(4, 5, 100, 8)).await;
    assert_eq!(refused.refused, Some(Refusal::Busy));
    let before = world.commits();
    let channel = world.channel;
    for ((call, says), by) in calls.iter().zip(says).zip([&world.key, &world.payer]) {
        let (nonce, by) = (call.nonce, by.account().clone());
        assert_eq!(call.refused, None);
        world.chain.change(|state| {
            let view = DemandView {
                provider: stash.clone(),
                demander: by.clone(),
                wanted: Wanted::Receipt {
                    channel,
                    nonce,
                    says,
                    counted: None,
                },
                until: state.clock + 200,
            };
            let of = (stash.clone(), by.clone());
            state
                .channels
                .demands
                .insert(of, vec![FakeDemand { view, by, surplus: 0 }]);
        });
        world.settled().await;
    }
    world
        .until("both are shown", |state| state.channels.demands.is_empty())
        .await;
    assert_eq!(world.commits() - before, 1);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_nothing_new_has_something_open_until_all_is_redeemed() {
    let mut world = World::new(&[]).await;
    world.config.redeem_min = u128::MAX;
    world.config.batch_blocks = 10_000;
    let process = world.start().await;
    let client = world.client(&process).await;
    let call = client.finish(client.ask(world.text(1, 5, 20, 8)).await).await;
    let price = call.receipt.unwrap().statement.price;
    process.stop().await;

    world.takes_new = false;
    let mut owed = world.owed.subscribe();
    let process = world.start().await;
    let (mut seen, mut left) = (Vec::new(), Owed::default());
    for _ in 0..1_000 {
        world.chain.finalize();
        let told = timeout(Duration::from_millis(5), owed.changed()).await;
        if told.is_err() {
            continue;
        }
        left = owed.borrow_and_update().clone().unwrap();
        if left.is_nothing() {
            break;
        }
        seen.push(left.to_string());
    }
    assert!(left.is_nothing(), "{left}");
    assert_eq!(world.paid(), price);
    for what in ["1 batches that are not final", "1 channels to be redeemed"] {
        assert!(seen.iter().any(|told| told.contains(what)), "{what}: {seen:?}");
    }
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_say_nothing_keep_nobody_out_and_are_closed() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let mut silent = Vec::new();
    // More than are answered at once, with all that may come beside them.
    for _ in 0..world.config.open_max + 64 {
        silent.push(client.line().await);
    }
    let call = client.ask(world.text(1, 5, 20, 8)).await;
    assert_eq!(call.refused, None);
    for (_to, mut from) in silent {
        assert_eq!(from.recv().await, None);
    }
    process.stop().await;
}

/// No file of this process grows any more, or all may again.
fn disk_is_full(is_full: bool) {
    let limit = if is_full { "0:" } else { "unlimited:" };
    let pid = std::process::id().to_string();
    let changed = Command::new("prlimit")
        .args(["--pid", &pid, &format!("--fsize={limit}")])
        .status();
    assert!(changed.unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_disk_is_full_nothing_is_taken_and_what_needs_no_disk_goes_on() {
    // Whoever writes beyond a limit is told by a signal that would end it: SIGXFSZ.
    let _told = signal(SignalKind::from_raw(25)).unwrap();
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let call = client.finish(client.ask(world.text(1, 5, 20, 8)).await).await;
    let price = call.receipt.unwrap().statement.price;
    let stash = world.stash.account().clone();
    world
        .until("there is a batch", |state| {
            state.channels.batches.contains_key(&(stash.clone(), 0))
        })
        .await;
    // An answer is under way when the disk is full, and the batch is not final yet.
    client.pays.store(false, Ordering::Relaxed);
    let mut open = client.ask(world.text(2, 5, 100, 8)).await;
    assert_eq!(open.refused, None);
    while open.chunks == 0 {
        assert!(client.hear(&mut open).await);
    }
    disk_is_full(true);
    client.cancel(&mut open).await;
    assert_eq!(world.paid(), 0);
    let channel = world.channel;
    world
        .until("the voucher is redeemed", |state| {
            state.channels.open[&channel].purse.paid == price
        })
        .await;
    let refused = client.ask(world.text(3, 5, 20, 8)).await;
    assert_eq!(refused.refused, Some(Refusal::Busy));
    assert!(open.receipt.is_none());
    disk_is_full(false);
    let open = client.finish(open).await;
    assert_eq!(open.receipt.unwrap().statement.end.unwrap().how, End::Cancelled);
    process.stop().await;
}
