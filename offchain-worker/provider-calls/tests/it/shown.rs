//! Whoever holds receipts is shown where they are in batches, and nobody else is.

use codec::Encode;
use surety_chain_client::{Call, Chain};
use surety_channel_calls::{
    AccountId,
    message::{self, Asked, FromHolder, InBatch, NotShown, ToHolder},
};
use surety_channels::{Batched, ChunkStatement, SignedChunkStatement, extends};

use crate::{client::Client, world::World};

/// One question, and all answers.
async fn ask(client: &Client, held: &[ChunkStatement<AccountId>]) -> Vec<ToHolder> {
    let (to, mut from) = client.line().await;
    let asked = Asked::try_from(held.to_vec()).unwrap();
    to.send(FromHolder::Show(asked).encode()).await.unwrap();
    let mut answers = Vec::new();
    while let Some(frame) = from.recv().await {
        answers.push(message::read(&frame).unwrap());
    }
    answers
}

/// Once all of it is in a batch.
async fn shown(world: &World, client: &Client, held: &[ChunkStatement<AccountId>]) -> Vec<InBatch> {
    loop {
        let answers = ask(client, held).await;
        assert_eq!(answers.len(), held.len());
        let shown: Vec<_> = answers
            .into_iter()
            .filter_map(|answer| match answer {
                ToHolder::Receipt(shown) => Some(shown),
                ToHolder::NotShown(why) => {
                    assert_eq!(why, NotShown::NoBatch);
                    None
                }
            })
            .collect();
        if shown.len() == held.len() {
            return shown;
        }
        world.settled().await;
    }
}

fn is_there(world: &World, shown: &InBatch, statement: &ChunkStatement<AccountId>) -> bool {
    let (stash, genesis) = (world.stash.account().clone(), world.chain.info().genesis);
    let root = world
        .chain
        .change(|state| state.channels.batches[&(stash, shown.batch)].window.root);
    let batched = Batched {
        opening: shown.opening.clone(),
        statement: statement.clone(),
    };
    batched.place_in(&genesis, &root).is_some() && shown.request.hash() == statement.request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_says_all_that_receipts_say_is_shown_where_they_are() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let mut all = Vec::new();
    for seed in 5..8 {
        let call = client.finish(client.ask(world.text(seed, 5, 20, 8)).await).await;
        all.push(call.receipt.unwrap().statement);
    }
    for (shown, held) in shown(&world, &client, &all).await.iter().zip(&all) {
        assert!(is_there(&world, shown, held));
        assert_eq!((&shown.receipt, &shown.segment), (&None, &None));
    }

    // The channel and the number are known to many; the rest to whom it was said.
    let held = &all[0];
    let guessed = [
        ChunkStatement {
            units: held.units - 1,
            ..held.clone()
        },
        ChunkStatement {
            nonce: held.nonce + 9,
            ..held.clone()
        },
    ];
    let lost = ToHolder::NotShown(NotShown::Lost);
    assert_eq!(ask(&client, &guessed).await, [lost.clone(), lost]);
    // Nothing is looked for as often as somebody names it.
    assert_eq!(ask(&client, &[held.clone(), held.clone()]).await, []);
    process.stop().await;
}

/// Of an answer that is over the statement of its first words.
pub async fn beginning(world: &World, client: &Client) -> SignedChunkStatement<AccountId> {
    let mut call = client.ask(world.text(5, 5, 60, 8)).await;
    while call.said.is_empty() {
        assert!(client.hear(&mut call).await);
    }
    let heard = {
        let payer = client.payer.lock().unwrap();
        let mut held = payer.held();
        held.find_map(|(.., held)| held.cloned()).unwrap()
    };
    assert_eq!(heard.statement.end, None);
    client.finish(call).await;
    heard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demand_of_an_answer_that_broke_off_is_met_with_how_its_receipt_goes_on_from_there() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let held = beginning(&world, &client).await;
    let heard = held.statement.clone();
    let demand = Call::DemandReceipt { held: Box::new(held) };
    world.submit(&world.key, demand).await;
    world
        .until("it is shown", |state| state.channels.demands.is_empty())
        .await;
    let shown = world.chain.calls().into_iter().find_map(|(_, call)| match call {
        Call::ShowReceipt { receipt, shown, .. } => Some((receipt.statement, shown)),
        _ => None,
    });
    let (receipt, shown) = shown.unwrap();
    assert!(receipt.bytes > heard.bytes);
    assert_eq!(extends(&heard, &receipt, shown.as_ref()), Some(true));
    let stash = world.stash.account().clone();
    let lock = world.chain.change(|state| state.channels.standings[&stash].lock);
    assert!(lock > 0);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_has_heard_the_beginning_of_an_answer_is_shown_how_its_receipt_goes_on_from_there() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let heard = beginning(&world, &client).await.statement;
    let [shown] = &shown(&world, &client, std::slice::from_ref(&heard)).await[..] else {
        panic!("one is asked for");
    };
    let receipt = shown.receipt.as_ref().unwrap();
    assert!(receipt.bytes > heard.bytes && is_there(&world, shown, receipt));
    assert_eq!(extends(&heard, receipt, shown.segment.as_ref()), Some(true));
    // Who makes up what it has heard is shown nothing.
    let made_up = ChunkStatement {
        output: receipt.output,
        ..heard
    };
    let answers = ask(&client, &[made_up]).await;
    assert_eq!(answers, [ToHolder::NotShown(NotShown::Lost)]);
    process.stop().await;
}
