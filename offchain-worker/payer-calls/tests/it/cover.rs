//! How much is asked of one provider.

use std::time::Duration;

use surety_gateway::{Receipt, UpstreamError};
use surety_payer_calls::Providers;

use crate::{
    provider::{Fault, Provider},
    world::{PRICE, SPENDING, World, answered, answered_once_covered, ask, text},
};

/// Tokens of an answer, and what it costs.
const TOKENS: u32 = 50;
const ANSWER: u128 = 60 * PRICE;

impl World {
    /// All that a provider has answered is in a final batch, and that was counted up to an answer.
    async fn counts(&self, provider: &Provider, receipt: &Receipt) {
        provider.batch().await;
        self.blocks(5).await;
        self.counted(receipt, ANSWER);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_is_asked_of_a_provider_than_its_lock_covers_and_others_are_asked() {
    let world = World::new();
    let cheap = world.provider("cheap", PRICE, Fault::None);
    let dear = world.provider("dear", 2 * PRICE, Fault::None);
    world.stands_behind(&cheap, 2 * ANSWER + 1);
    let payer = world.payer().await;
    let mut receipts = Vec::new();
    for provider in [&cheap, &cheap, &dear, &dear] {
        receipts.push(answered(&payer, TOKENS).await);
        assert_eq!(receipts.last().unwrap().provider, provider.name());
    }
    // It stands behind as much again as is shown to be final, also after a start.
    world.counts(&cheap, &receipts[0]).await;
    // It is asked for them, shows them, and it is seen which batches are final.
    world.blocks(40).await;
    drop(payer);
    let store = world.until(|| world.try_store()).await;
    let payer = Providers::start(world.config(store, SPENDING)).await.unwrap();
    for provider in [&cheap, &cheap, &dear] {
        assert_eq!(answered(&payer, TOKENS).await.provider, provider.name());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_stands_behind_more_nothing_is_asked_before_a_batch_is_final() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    world.stands_behind(&provider, 2 * ANSWER);
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
    answered_once_covered(&payer, TOKENS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_have_deposited_lessens_what_is_asked() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    world.stands_behind(&provider, 2 * ANSWER - 1);
    // As much as this payer deposits: each has half.
    let of_other = world.others_deposit(&provider, SPENDING.deposit);
    let payer = world.payer().await;
    let refused = ask(&payer, &text(10, 50, 1)).await.unwrap_err();
    assert_eq!((refused.1, provider.state().asked), (UpstreamError::Uncovered, 0));
    // What final batches have of it is over.
    world.chain.change(|state| {
        let purse = &mut state.channels.open.get_mut(&of_other).unwrap().purse;
        purse.counted = SPENDING.deposit;
    });
    answered_once_covered(&payer, TOKENS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_lost_before_its_first_word_takes_nothing_of_what_a_lock_covers() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::Waits);
    world.stands_behind(&provider, ANSWER + PRICE);
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
    answered(&payer, TOKENS).await;
}
