//! Several providers that are asked the same.

use std::collections::BTreeSet;

use surety_channels::ChannelId;
use surety_gateway::{Finish, Receipt, Step, Upstream, UpstreamError};
use surety_payer_calls::{Config, Providers};

use crate::{
    provider::{Fault, Provider, tokens, vector},
    world::{PRICE, SPENDING, World, embed, failed, read, text},
};

/// What one racer's unit may cost, of as many as there are.
fn priced(mut ask: surety_gateway::GenerationAsk, racers: u128) -> surety_gateway::GenerationAsk {
    ask.price_max *= racers;
    ask
}

/// Asks so many at once, and has a channel to each provider.
pub async fn racing(world: &World, race: usize, providers: &[&Provider]) -> Providers {
    let config = Config {
        race,
        ..world.config(world.store(), SPENDING)
    };
    let payer = Providers::start(config).await.unwrap();
    let names: Vec<String> = providers.iter().map(|one| one.name()).collect();
    for name in &names {
        let others: Vec<String> = names.iter().filter(|other| *other != name).cloned().collect();
        let mut run = payer
            .generate(&priced(text(1, 1, 1), 2 * race as u128), &others)
            .await
            .unwrap();
        let (_, receipt) = read(&mut *run).await.unwrap();
        assert_eq!(receipt.provider, *name);
    }
    payer
}

/// The channel to a provider, by what is in its books.
pub fn channel(provider: &Provider) -> ChannelId {
    *provider.state().sums.keys().next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_says_something_first_answers_and_one_that_has_said_nothing_is_paid_nothing() {
    let world = World::new();
    let slow = world.provider("slow", PRICE, Fault::None);
    let fast = world.provider("fast", PRICE + 1, Fault::None);
    let payer = racing(&world, 2, &[&slow, &fast]).await;
    let before = slow.served(channel(&slow));
    slow.state().fault = Fault::Waits;
    let mut run = payer.generate(&priced(text(10, 100, 1), 2), &[]).await.unwrap();
    let beside = run.beside();
    let (ids, receipt) = read(&mut *run).await.unwrap();
    assert_eq!(ids, tokens(100, 1));
    assert_eq!(
        (&receipt.provider, receipt.finish),
        (&fast.name(), Finish::Length)
    );
    assert_eq!(receipt.price, 110 * (PRICE + 1));
    // Its receipt is there before the answer ends, and is one of nothing.
    assert_eq!(slow.state().open(), 0);
    assert_eq!(
        (slow.served(channel(&slow)), beside.take()),
        (before, (Vec::new(), 0))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_loses_is_paid_for_what_was_on_its_way_and_no_more() {
    let world = World::new();
    let one = world.provider("one", PRICE, Fault::None);
    let two = world.provider("two", PRICE, Fault::None);
    let three = world.provider("three", PRICE, Fault::None);
    let providers = [&one, &two, &three];
    let payer = racing(&world, 3, &providers).await;
    let served = |provider: &Provider| provider.served(channel(provider));
    let before = providers.map(served);
    let mut run = payer.generate(&priced(text(10, 400, 1), 3), &[]).await.unwrap();
    let beside = run.beside();
    let (ids, receipt) = read(&mut *run).await.unwrap();
    assert_eq!((ids, receipt.price), (tokens(400, 1), 410 * PRICE));
    let (receipts, spent) = beside.take();
    let paid = |name: String| {
        let mut of = receipts.iter().chain([&receipt]);
        of.find(|receipt| receipt.provider == name)
            .map_or(0, |receipt| receipt.price)
    };
    for (provider, before) in providers.into_iter().zip(before) {
        // What their receipts say is what all of them have in their books.
        assert_eq!(served(provider) - before, paid(provider.name()));
    }
    // The prompt, the chunk that was paid at once, and the one after it.
    let is_bounded = |receipt: &Receipt| receipt.price <= (10 + 32) * PRICE;
    assert!(receipts.iter().all(is_bounded), "{receipts:?}");
    assert_eq!((receipts.len() <= 2, spent), (true, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_race_goes_on_without_one_that_dies_and_is_cancelled_as_a_whole() {
    let world = World::new();
    let dying = world.provider("dying", PRICE, Fault::None);
    let other = world.provider("other", PRICE, Fault::None);
    let payer = racing(&world, 2, &[&dying, &other]).await;
    // It is gone when it is asked.
    let said = dying.state().chunks;
    dying.state().fault = Fault::Dies(said);
    let asked = priced(text(10, 400, 1), 2);
    let mut run = payer.generate(&asked, &[]).await.unwrap();
    let first = run.next().await.unwrap();
    assert_eq!(first, Step::Tokens(tokens(16, 1)));
    let beside = run.beside();
    let receipt = run.cancel().await.unwrap();
    assert_eq!(
        (&receipt.provider, receipt.finish),
        (&other.name(), Finish::Cancelled)
    );
    assert!(receipt.price < 410 * PRICE);
    // Its voucher may be worth the prompt and a chunk, as far as anybody here knows.
    let (receipts, spent) = beside.take();
    assert!(receipts.is_empty() && spent <= (10 + 16) * PRICE, "{spent}");
    assert_eq!(other.state().open(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_sign_different_answers_neither_is_believed_and_both_receipts_are_kept() {
    let world = World::new();
    let liar = world.provider("liar", PRICE, Fault::None);
    let honest = world.provider("honest", PRICE, Fault::None);
    let payer = racing(&world, 2, &[&liar, &honest]).await;
    liar.state().fault = Fault::Errs;
    let asked = priced(text(10, 100, 1), 2);
    let mut run = payer.generate(&asked, &[]).await.unwrap();
    let beside = run.beside();
    let (_, error) = read(&mut *run).await.unwrap_err();
    let (who, spent) = failed(error);
    let (receipts, more) = beside.take();
    let mut signed: Vec<&str> = receipts.iter().map(|receipt| receipt.provider.as_str()).collect();
    signed.sort_unstable();
    let (liar_name, honest_name) = (liar.name(), honest.name());
    let mut both = [liar_name.as_str(), honest_name.as_str()];
    both.sort_unstable();
    assert_eq!((signed, spent, more), (both.to_vec(), 0, 0));
    assert!(both.contains(&who.as_str()));
    // Nobody here knows which of them lies: a third one is asked.
    let asked_again = payer.generate(&asked, &[]).await;
    assert!(matches!(asked_again, Err(UpstreamError::NoProvider)));
    let third = world.provider("third", PRICE, Fault::None);
    let mut run = loop {
        match payer.generate(&asked, &[]).await {
            Ok(run) => break run,
            // No block that was read has its offer.
            Err(UpstreamError::NoProvider) => world.blocks(1).await,
            Err(error) => panic!("{error}"),
        }
    };
    let (ids, receipt) = read(&mut *run).await.unwrap();
    assert_eq!((ids, receipt.provider), (tokens(100, 1), third.name()));
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_are_confirmed_by_another_for_an_eighth_of_their_price() {
    let world = World::new();
    let one = world.provider("one", PRICE, Fault::None);
    let two = world.provider("two", PRICE, Fault::None);
    let payer = racing(&world, 2, &[&one, &two]).await;
    let items: Vec<Vec<u32>> = (1..=40u32).map(|item| vec![item, 1]).collect();
    let most = 2 * 40 * PRICE;
    let done = embed(&payer, &items, most).await.unwrap();
    let vectors: Vec<Vec<f32>> = items.iter().map(|ids| vector(ids)).collect();
    assert_eq!(done.vectors, vectors);
    let prices: Vec<u128> = done.receipts.iter().map(|receipt| receipt.price).collect();
    assert_eq!(prices, [40 * PRICE, 5 * PRICE]);
    assert_ne!(done.receipts[0].provider, done.receipts[1].provider);

    // With other vectors there is no answer, and it is said what it has cost.
    two.state().fault = Fault::Errs;
    let item = &items[..1];
    let wrong = embed(&payer, item, 2 * PRICE).await.unwrap_err();
    assert_eq!(failed(wrong).1, 2 * PRICE);
    let again = embed(&payer, item, 2 * PRICE).await.unwrap_err();
    assert_eq!(again, UpstreamError::NoProvider);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_confirms_too_late_is_counted_with_all_that_it_may_be_paid() {
    let world = World::new();
    let one = world.provider("one", PRICE, Fault::None);
    let slow = world.provider("slow", 2 * PRICE, Fault::None);
    let payer = racing(&world, 2, &[&one, &slow]).await;
    slow.state().fault = Fault::Waits;
    let items: Vec<Vec<u32>> = (1..=40u32).map(|item| vec![item, 1]).collect();
    // Each may cost twice what the first asks.
    let most = 2 * 40 * 2 * PRICE;
    let done = embed(&payer, &items, most).await.unwrap();
    let prices: Vec<u128> = done.receipts.iter().map(|receipt| receipt.price).collect();
    assert_eq!((prices, done.spent), (vec![40 * PRICE], 5 * 2 * PRICE));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_better_one_that_cannot_be_asked_keeps_nobody_from_confirming() {
    let mut world = World::new();
    let one = world.provider("one", PRICE, Fault::None);
    let three = world.provider("three", PRICE + 2, Fault::None);
    let payer = racing(&world, 2, &[&one, &three]).await;
    // It is cheaper than both, and no block opens a channel to it.
    let _two = world.provider("two", PRICE / 2, Fault::None);
    world.blocks(20).await;
    world.stop_blocks().await;
    let items: Vec<Vec<u32>> = (1..=8u32).map(|item| vec![item, 1]).collect();
    let done = embed(&payer, &items, 2 * 8 * 2 * PRICE).await.unwrap();
    let by: Vec<&str> = done
        .receipts
        .iter()
        .map(|receipt| receipt.provider.as_str())
        .collect();
    assert_eq!(by, [one.name(), three.name()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_confirms_is_drawn_among_all_that_are_fit() {
    let world = World::new();
    let one = world.provider("one", PRICE / 2, Fault::None);
    let two = world.provider("two", PRICE, Fault::None);
    let three = world.provider("three", PRICE + 2, Fault::None);
    let payer = racing(&world, 2, &[&one, &two, &three]).await;
    let (mut asked, mut confirmed) = (0, BTreeSet::new());
    while confirmed.len() < 2 {
        asked += 1;
        assert!(asked < 100, "{confirmed:?}");
        let done = embed(&payer, &[vec![1]], 4 * PRICE).await.unwrap();
        let by: Vec<_> = done
            .receipts
            .into_iter()
            .map(|receipt| receipt.provider)
            .collect();
        assert_eq!((&by[0], by.len()), (&one.name(), 2));
        confirmed.extend(by.into_iter().nth(1));
    }
    assert_eq!(confirmed, [two.name(), three.name()].into());
}
