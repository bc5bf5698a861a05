//! How much is asked of one provider.

use std::time::Duration;

use surety_chain_client::{ChannelView, Signer};
use surety_channels::Purse;
use surety_gateway::{Receipt, UpstreamError};
use surety_payer_calls::Providers;

use crate::{
    provider::{Fault, Provider},
    world::{PRICE, SPENDING, World, ask, text},
};

/// What one answer costs.
const ANSWER: u128 = 60 * PRICE;

impl World {
    /// A provider's lock is for so much.
    fn stands_for(&self, provider: &Provider, cap: u128) {
        self.chain.change(|state| {
            let standing = state.channels.standings.get_mut(&provider.stash).unwrap();
            standing.cap = cap;
            // Its batches take nothing of that for long.
            state.channels.rules.batch_window = 1;
        });
        self.chain.finalize();
    }

    /// All that a provider has answered is in a final batch, and that was counted up to an answer.
    async fn counts(&self, provider: &Provider, receipt: &Receipt) {
        provider.batch().await;
        self.chain.change(|state| {
            let channel = state.channels.open.get_mut(&receipt.channel).unwrap();
            let purse = &mut channel.purse;
            purse.next = receipt.nonce + 1;
            purse.counted = u128::from(purse.next) * ANSWER;
        });
        // It is asked for them, shows them, and it is seen which batches are final.
        self.blocks(40).await;
    }
}

async fn answered(payer: &Providers) -> Receipt {
    let mut asked = text(10, 50, 1);
    asked.price_max *= 2;
    ask(payer, &asked).await.unwrap().1
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_is_asked_of_a_provider_than_its_lock_covers_and_others_are_asked() {
    let world = World::new();
    let cheap = world.provider("cheap", PRICE, Fault::None);
    let dear = world.provider("dear", 2 * PRICE, Fault::None);
    world.stands_for(&cheap, 2 * ANSWER + 1);
    let payer = world.payer().await;
    let mut receipts = Vec::new();
    for provider in [&cheap, &cheap, &dear, &dear] {
        receipts.push(answered(&payer).await);
        assert_eq!(receipts.last().unwrap().provider, provider.name());
    }
    // It stands behind as much again as is final, also after a start.
    world.counts(&cheap, &receipts[0]).await;
    drop(payer);
    let store = world.until(|| world.try_store()).await;
    let payer = Providers::start(world.config(store, SPENDING)).await.unwrap();
    for provider in [&cheap, &dear] {
        assert_eq!(answered(&payer).await.provider, provider.name());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_stands_behind_more_nothing_is_asked_before_a_batch_is_final() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    world.stands_for(&provider, 2 * ANSWER);
    let payer = world.payer().await;
    // At once, so that all of them look before any has cost something.
    let asked = text(10, 50, 1);
    let one = || ask(&payer, &asked);
    let (first, second, third, fourth) = tokio::join!(one(), one(), one(), one());
    let (mut receipts, mut refused) = (Vec::new(), Vec::new());
    for asked in [first, second, third, fourth] {
        match asked {
            Ok((_, receipt)) => receipts.push(receipt),
            Err((_, error)) => refused.push(error),
        }
    }
    assert_eq!(refused, [UpstreamError::Uncovered, UpstreamError::Uncovered]);
    assert_eq!((receipts.len(), provider.state().asked), (2, 2));
    world.counts(&provider, &receipts[0]).await;
    answered(&payer).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_have_deposited_lessens_what_is_asked() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    world.stands_for(&provider, 2 * ANSWER - 1);
    let other = Signer::from_uri("//Other").unwrap().account().clone();
    // As much as this payer deposits: each has half.
    let of_other = ChannelView {
        channel: 1_000,
        payer: other.clone(),
        payee: provider.stash.clone(),
        key: other,
        expiry: 1_000_000,
        purse: Purse::new(1_000, SPENDING.deposit),
        demanded_until: u32::MAX,
    };
    world
        .chain
        .change(|state| state.channels.open.insert(1_000, of_other));
    world.chain.finalize();
    let payer = world.payer().await;
    let refused = ask(&payer, &text(10, 50, 1)).await.unwrap_err();
    assert_eq!((refused.1, provider.state().asked), (UpstreamError::Uncovered, 0));
    // What final batches have of it is over.
    world.chain.change(|state| {
        let purse = &mut state.channels.open.get_mut(&1_000).unwrap().purse;
        purse.counted = SPENDING.deposit;
    });
    world.blocks(20).await;
    answered(&payer).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_lost_before_its_first_word_takes_nothing_of_what_a_lock_covers() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::Waits);
    world.stands_for(&provider, ANSWER + PRICE);
    let mut config = world.config(world.store(), SPENDING);
    config.patience.words = Duration::from_millis(500);
    let payer = Providers::start(config).await.unwrap();
    let lost = ask(&payer, &text(10, 50, 1)).await.unwrap_err();
    assert!(
        matches!(lost.1, UpstreamError::Failed { spent: 1.., .. }),
        "{}",
        lost.1
    );
    provider.state().go_on();
    answered(&payer).await;
}
