//! What honest ends do.

use surety_chain_client::Call;
use surety_gateway::{Finish, Step, Upstream, UpstreamError, Verdict};

use crate::{
    provider::{Fault, tokens, vector},
    world::{PRICE, SPENDING, World, ask, embed, read, text},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_paid_chunk_by_chunk_over_a_channel_that_is_opened_for_it() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    let payer = world.payer().await;
    assert_eq!(payer.models().len(), 2);
    let (ids, receipt) = ask(&payer, &text(10, 100, 1)).await.unwrap();
    assert_eq!(ids, tokens(100, 1));
    assert_eq!(
        (receipt.units, receipt.price, receipt.finish),
        (110, 110 * PRICE, Finish::Length)
    );
    // The first chunk pays for the prompt, too; then a chunk ahead, and never more than all of it.
    let sums: Vec<u128> = (1..=6)
        .map(|chunk| (10 + 16 * chunk) * PRICE)
        .chain([110 * PRICE])
        .collect();
    assert_eq!(provider.state().sums[&receipt.channel], sums);
    assert_eq!(provider.served(receipt.channel), receipt.price);
    let opened = world.sends(|call| match call {
        Call::Open { payee, deposit, .. } => Some((payee.clone(), *deposit)),
        _ => None,
    });
    assert_eq!(opened.await, (provider.stash.clone(), SPENDING.deposit));

    // The next one needs no other channel, and ends by itself.
    let (ids, receipt) = ask(&payer, &text(10, 100, 7)).await.unwrap();
    assert_eq!(
        (ids, receipt.finish, receipt.nonce),
        (tokens(100, 7), Finish::Stop, 1)
    );
    assert_eq!(world.sent().len(), 1);
    assert_eq!(payer.verdict(&receipt).await, Verdict::Unbatched);
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_come_in_the_order_of_their_items_in_as_many_requests_as_they_need() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    let payer = world.payer().await;
    let items: Vec<Vec<u32>> = (0..300u32)
        .map(|item| vec![1 + item % 200; 1 + item as usize % 3])
        .collect();
    let most = items.len() as u128 * PRICE;
    let (mut done, mut receipts) = (Vec::new(), Vec::new());
    while done.len() < items.len() {
        let rest = &items[done.len()..];
        let some = embed(&payer, rest, rest.len() as u128 * PRICE).await.unwrap();
        done.extend(some.vectors);
        receipts.extend(some.receipts);
    }
    let vectors: Vec<Vec<f32>> = items.iter().map(|ids| vector(ids)).collect();
    assert_eq!(done, vectors);
    let prices: Vec<u128> = receipts.iter().map(|receipt| receipt.price).collect();
    assert_eq!(prices, [128 * PRICE, 128 * PRICE, 44 * PRICE]);
    assert_eq!(provider.served(receipts[0].channel), most);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_at_once_take_as_many_channels_as_they_need() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::Waits);
    let payer = std::sync::Arc::new(
        world
            .payer_with(surety_payer_calls::Spending {
                deposit: 200_000,
                ..SPENDING
            })
            .await,
    );
    // All are taken before anything of one is computed: two channels are full of them.
    let mut begun = Vec::new();
    for call in 0..64 {
        let payer = payer.clone();
        begun.push(tokio::spawn(async move {
            let asked = text(3 + call % 7, 150 + call, 1);
            let run = payer.generate(&asked, &[]).await.unwrap();
            (asked, run)
        }));
    }
    let mut running = Vec::new();
    for one in begun {
        running.push(one.await.unwrap());
    }
    assert_eq!(provider.state().open(), 64);
    provider.state().go_on();
    let mut channels = std::collections::BTreeMap::<u64, (u32, u128)>::new();
    for (asked, mut run) in running {
        let (ids, receipt) = read(&mut *run).await.unwrap();
        assert_eq!(ids, tokens(asked.settings.max_tokens as usize, 1));
        let of = channels.entry(receipt.channel).or_default();
        *of = (of.0 + 1, of.1 + receipt.price);
    }
    let calls: Vec<u32> = channels.values().map(|(calls, _)| *calls).collect();
    assert_eq!(calls, [32, 32]);
    for (channel, (_, price)) in channels {
        assert_eq!(provider.served(channel), price);
        // All of it was signed for, and no lower sum after a higher one than what was on its way beside it.
        assert_eq!(provider.state().sums[&channel].iter().max(), Some(&price));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_reads_is_neither_computed_nor_paid() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    let payer = world.payer().await;
    let mut run = payer.generate(&text(10, 400, 1), &[]).await.unwrap();
    let first = run.next().await.unwrap();
    assert_eq!(first, Step::Tokens(tokens(16, 1)));
    // Four pieces wait to be read, and a fifth was read: one more is on its way, and one is paid ahead of it.
    let most = (10 + 16 * 7) * PRICE;
    world
        .until(|| (provider.served(0) >= (10 + 16 * 5) * PRICE).then_some(()))
        .await;
    assert!(provider.served(0) <= most, "{}", provider.served(0));
    // It goes on as it is read.
    let (ids, receipt) = read(&mut *run).await.unwrap();
    assert_eq!(ids, tokens(400, 1)[16..]);
    assert_eq!(receipt.units, 410);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_cancelled_has_a_receipt_of_what_was_said_and_one_that_is_dropped_ends() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    let payer = world.payer().await;
    let mut run = payer.generate(&text(10, 400, 1), &[]).await.unwrap();
    run.next().await.unwrap();
    let receipt = run.cancel().await.unwrap();
    assert_eq!(receipt.finish, Finish::Cancelled);
    assert!(receipt.price < 410 * PRICE && receipt.price == u128::from(receipt.units) * PRICE);
    assert_eq!(provider.served(receipt.channel), receipt.price);

    let dropped = payer.generate(&text(10, 400, 1), &[]).await.unwrap();
    drop(dropped);
    // What it was asked for ends, and its place is another's.
    world.until(|| (provider.state().open() == 0).then_some(())).await;
    assert!(provider.served(0) < (2 * 410) * PRICE);
    let (_, next) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    assert_eq!(next.nonce, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cheaper_provider_is_asked_and_the_next_one_where_it_has_no_place_or_is_avoided() {
    let world = World::new();
    let cheap = world.provider("cheap", PRICE, Fault::None);
    let dear = world.provider("dear", PRICE * 6 / 5, Fault::None);
    let payer = world.payer().await;
    let provider_of = |(_, receipt): (Vec<u32>, surety_gateway::Receipt)| receipt.provider;
    let cheap_name = surety_chain_client::address(&cheap.stash);
    let dear_name = surety_chain_client::address(&dear.stash);
    let asked = text(10, 20, 1);
    assert_eq!(provider_of(ask(&payer, &asked).await.unwrap()), cheap_name);
    let mut other = payer
        .generate(&asked, std::slice::from_ref(&cheap_name))
        .await
        .unwrap();
    assert_eq!(provider_of(read(&mut *other).await.unwrap()), dear_name);
    cheap.state().fault = Fault::Busy;
    assert_eq!(provider_of(ask(&payer, &asked).await.unwrap()), dear_name);
    // For less than both ask nobody does it.
    let mut poor = asked;
    poor.price_max = 30 * (PRICE - 1);
    let refused = ask(&payer, &poor).await.unwrap_err();
    assert_eq!(refused, (Vec::new(), UpstreamError::NoProvider));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_asks_more_than_the_chain_said_is_paid_that_up_to_what_it_may_cost() {
    let world = World::new();
    let provider = world.provider("one", PRICE + 2, Fault::None);
    // The chain still has its old price.
    world.chain.change(|state| {
        for offer in state.channels.offers.values_mut() {
            offer.unit_price = PRICE;
        }
    });
    world.chain.finalize();
    let payer = world.payer().await;
    let (_, receipt) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    assert_eq!(receipt.price, 30 * (PRICE + 2));
    let mut poor = text(10, 20, 1);
    poor.price_max = 30 * (PRICE + 1);
    assert!(ask(&payer, &poor).await.is_err());
    assert_eq!(provider.served(receipt.channel), receipt.price);
}
