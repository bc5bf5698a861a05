//! Whoever holds a receipt is shown where it is in a batch, and nobody else is.

use codec::Encode;
use surety_chain_client::Chain;
use surety_channel_calls::{
    AccountId,
    message::{self, FromHolder, NotShown, ToHolder},
};
use surety_channels::{Batched, ChunkStatement};

use crate::{client::Client, world::World};

/// One question, one answer.
async fn ask(client: &Client, held: &ChunkStatement<AccountId>) -> ToHolder {
    let (to, mut from) = client.line().await;
    to.send(FromHolder::Show(held.clone()).encode()).await.unwrap();
    message::read(&from.recv().await.unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_says_all_that_a_receipt_says_is_shown_where_it_is() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let call = client.finish(client.ask(world.text(5, 5, 20, 8)).await).await;
    let held = call.receipt.unwrap().statement;
    let shown = loop {
        match ask(&client, &held).await {
            ToHolder::Receipt(shown) => break shown,
            ToHolder::NotShown(why) => assert_eq!(why, NotShown::NoBatch),
        }
        world.settled().await;
    };
    assert_eq!(shown.request.hash(), held.request);
    let (stash, genesis) = (world.stash.account().clone(), world.chain.info().genesis);
    let root = world
        .chain
        .change(|state| state.channels.batches[&(stash, shown.batch)].window.root);
    let batched = Batched {
        opening: shown.opening,
        statement: held.clone(),
    };
    assert!(batched.place_in(&genesis, &root).is_some());

    // The channel and the number are known to many; the rest to whom it was said.
    for guessed in [
        ChunkStatement {
            units: held.units - 1,
            ..held.clone()
        },
        ChunkStatement {
            nonce: held.nonce + 1,
            ..held.clone()
        },
    ] {
        assert_eq!(ask(&client, &guessed).await, ToHolder::NotShown(NotShown::Lost));
    }
    process.stop().await;
}
