//! Whole lives of calls.

use std::{sync::atomic::Ordering, time::Duration};

use surety_audit_economics::channels::SURE;
use surety_chain_client::{Call, Chain, FixedU128};
use surety_channel_calls::Refusal;
use surety_channels::{End, Ending};
use tokio::task::JoinSet;

use crate::world::{TOKEN, World};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generation_streams_as_the_engine_alone_makes_it_and_is_batched_and_redeemed() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let wanted = world.text(1, 10, 40, 8);
    let call = client.ask(wanted.clone()).await;
    assert_eq!(call.refused, None);
    let call = client.finish(call).await;
    let receipt = call.receipt.unwrap();
    world.assert_is_alone(&wanted, &call.said, &receipt);
    assert!(call.chunks >= 5, "{}", call.chunks);
    let price = receipt.statement.price;
    assert_eq!(price, u128::from(receipt.statement.units) * TOKEN);
    let channel = world.channel;
    world
        .until("the voucher is redeemed", |state| {
            state.channels.open[&channel].purse.paid == price
        })
        .await;
    assert_eq!(world.commits(), 1);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_answers_stream_at_once_over_one_channel_and_all_are_paid() {
    let mut world = World::new(&[7, 70, 170]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let mut answers = JoinSet::new();
    for number in 0..8u32 {
        let wanted = match number % 4 {
            3 => world.items(3 + number),
            _ => world.text(number.into(), 1 + 5 * number as usize, 30, 4),
        };
        let call = client.ask(wanted.clone()).await;
        assert_eq!(call.refused, None);
        let client = client.clone();
        answers.spawn(async move { (wanted, client.finish(call).await) });
    }
    let (mut price, mut stops) = (0, 0);
    while let Some(answer) = answers.join_next().await {
        let (wanted, call) = answer.unwrap();
        let receipt = call.receipt.unwrap();
        world.assert_is_alone(&wanted, &call.said, &receipt);
        price += receipt.statement.price;
        stops += usize::from(receipt.statement.end.unwrap().how == End::Stop);
    }
    assert!(stops > 0, "no answer has ended by itself");
    let channel = world.channel;
    world
        .until("all is redeemed", |state| {
            state.channels.open[&channel].purse.paid == price
        })
        .await;
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payer_that_stops_paying_is_cut_and_has_paid_for_what_was_said() {
    let mut world = World::new(&[]).await;
    world.config.patience = Duration::from_millis(1);
    let process = world.start().await;
    let client = world.client(&process).await;
    let wanted = world.text(2, 10, 100, 8);
    client.pays.store(false, Ordering::Relaxed);
    let call = client.ask(wanted.clone()).await;
    let call = client.finish(call).await;
    let receipt = call.receipt.unwrap();
    assert_eq!(receipt.statement.end.unwrap().how, End::Cut);
    // The chunk that came with the request.
    assert_eq!(receipt.statement.units, 18);
    world.assert_is_alone(&wanted, &call.said, &receipt);
    let channel = world.channel;
    world
        .until("what was said is redeemed", |state| {
            state.channels.open[&channel].purse.paid == 18 * TOKEN
        })
        .await;
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_cancelled_has_the_trace_of_what_was_said() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let wanted = world.text(3, 10, 200, 4);
    let mut call = client.ask(wanted.clone()).await;
    assert!(client.hear(&mut call).await);
    client.cancel(&mut call).await;
    let call = client.finish(call).await;
    let receipt = call.receipt.unwrap();
    assert_eq!(receipt.statement.end.unwrap().how, End::Cancelled);
    world.assert_is_alone(&wanted, &call.said, &receipt);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_contradicts_nothing_and_shows_what_is_demanded() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let wanted = world.text(4, 10, 200, 4);
    client.pays.store(false, Ordering::Relaxed);
    let mut call = client.ask(wanted.clone()).await;
    // All that is paid for: nothing more was said.
    while call.said.len() < 4 * 4 {
        assert!(client.hear(&mut call).await);
    }
    process.kill().await;
    let nonce = call.nonce;
    drop(client.payer.lock().unwrap().lost(nonce));
    let held = client
        .payer
        .lock()
        .unwrap()
        .held()
        .next()
        .unwrap()
        .2
        .cloned()
        .unwrap();
    assert_eq!(held.statement.end, None);

    let process = world.start().await;
    let demand = Call::DemandReceipt {
        held: Box::new(held.clone()),
    };
    world.submit(&world.key, demand).await;
    let stash = world.stash.account().clone();
    let key = world.key.account().clone();
    world
        .until("it is shown", |state| {
            !state.channels.demands.contains_key(&(stash.clone(), key.clone()))
        })
        .await;
    let shown = world.chain.calls().into_iter().find_map(|(_, call)| match call {
        Call::ShowReceipt { batch, receipt, .. } => Some((batch, receipt)),
        _ => None,
    });
    let (batch, shown) = shown.unwrap();
    assert_eq!(shown.statement.end.unwrap().how, End::Cut);
    let lock = world.chain.change(|state| state.channels.standings[&stash].lock);
    assert!(lock > 0);
    let root = world
        .chain
        .change(|state| state.channels.batches[&(stash.clone(), batch)].window.root);
    // The payer finds it to go on from what it holds, and to claim what an engine by itself does.
    drop(
        client
            .payer
            .lock()
            .unwrap()
            .cover(batch, (&root, None), &shown, None)
            .unwrap(),
    );
    let receipt = surety_channels::SignedChunkStatement {
        statement: shown.statement.clone(),
        ..held
    };
    world.assert_is_alone(&wanted, &call.said, &receipt);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_closes_is_served_no_more_and_paid_in_time() {
    let mut world = World::new(&[]).await;
    world.config.batch_blocks = 10_000;
    let process = world.start().await;
    let client = world.client(&process).await;
    let wanted = world.text(5, 5, 20, 8);
    let call = client.finish(client.ask(wanted).await).await;
    let price = call.receipt.unwrap().statement.price;
    // It waits for others, and for an answer that nobody ends.
    client.pays.store(false, Ordering::Relaxed);
    let slow = client.ask(world.text(6, 5, 100, 8)).await;
    assert_eq!(slow.refused, None);
    world.settled().await;
    assert_eq!(world.paid(), 0);
    let channel = world.channel;
    world.submit(&world.payer, Call::Close { channel }).await;
    world.settled().await;
    let refused = client.ask(world.text(7, 5, 20, 8)).await;
    assert_eq!(refused.refused, Some(Refusal::Closing));
    let slow = client.finish(slow).await;
    let receipt = slow.receipt.unwrap();
    assert_eq!(receipt.statement.end.unwrap().how, End::Cut);
    let all = price + receipt.statement.price;
    world
        .until("both are redeemed", |state| {
            state
                .channels
                .open
                .get(&channel)
                .is_some_and(|view| view.purse.paid == all)
        })
        .await;
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_receipt_that_a_verifier_s_point_is_in_is_shown() {
    let mut world = World::new(&[7, 70, 170]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let mut ends = Vec::new();
    for seed in 0..4 {
        let call = client.ask(world.text(seed, 5, 30, 16)).await;
        ends.push(client.finish(call).await.receipt.unwrap().statement);
    }
    // Of one that a stop id has ended its first segment is shown with it.
    let is_stop = |end: &Option<Ending>| end.unwrap().how == End::Stop;
    let at = ends.iter().position(|receipt| is_stop(&receipt.end)).unwrap();
    let before: u128 = ends[..at].iter().map(|receipt| receipt.price).sum();
    world.demand_point(before).await;
    let shown = world.chain.calls().into_iter().find_map(|(_, call)| match call {
        Call::ShowPoint { receipt, head, .. } => Some((receipt, head)),
        _ => None,
    });
    let (receipt, head) = shown.unwrap();
    assert_eq!(receipt.statement, ends[at]);
    assert!(receipt.statement.claimed_output(head.as_ref()).is_some());
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_too_dear_for_its_audits_is_split() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let price = 35 * TOKEN;
    world.chain.change(|state| {
        // So many points for a SURE that a batch may cost one and a half of them.
        let most = 16 * SURE * 1_000_000_000_000_000_000;
        state.channels.rate = FixedU128::from_inner(most / (price * 3 / 2));
    });
    for seed in 0..2 {
        let call = client.ask(world.text(seed, 5, 30, 16)).await;
        let receipt = client.finish(call).await.receipt.unwrap();
        assert_eq!(receipt.statement.price, price);
    }
    let channel = world.channel;
    world
        .until("both are redeemed", |state| {
            state.channels.open[&channel].purse.paid == 2 * price
        })
        .await;
    let attempts = world.chain.attempts().into_iter();
    let roots = attempts.filter_map(|(_, call, _)| match call {
        Call::CommitBatch { root } => Some(root.sums.receipts),
        _ => None,
    });
    assert_eq!(roots.collect::<Vec<_>>(), [2, 1, 1]);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_taken_where_nothing_stands_behind_it() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let stash = world.stash.account().clone();
    world.chain.change(|state| {
        let standing = state.channels.standings.get_mut(&stash).unwrap();
        (standing.lock, standing.signers) = (0, Vec::new());
    });
    world.settled().await;
    let call = client.ask(world.text(8, 5, 20, 8)).await;
    assert_eq!(call.refused, Some(Refusal::NotOffered));
    assert_eq!(world.chain.sent(world.agent.account()).await.unwrap().all, 1);
    process.stop().await;
}
