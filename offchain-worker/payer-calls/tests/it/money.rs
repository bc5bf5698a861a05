//! What is deposited, and what never is.

use surety_chain_client::{Call, Chain, ChannelChain, Until, When};
use surety_gateway::{Upstream, UpstreamError};
use surety_payer_calls::{Providers, Spending};

use crate::{
    provider::Fault,
    world::{MONEY, PRICE, SPENDING, World, ask, text},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_is_topped_up_before_it_is_exhausted_and_for_a_request_that_needs_more() {
    let world = World::new();
    let _provider = world.provider("one", PRICE, Fault::None);
    let spending = Spending {
        deposit: 2_000,
        least_left: 500,
        ..SPENDING
    };
    let payer = world.payer_with(spending).await;
    let mut spent = 0;
    for _ in 0..5 {
        let (_, receipt) = ask(&payer, &text(10, 100, 1)).await.unwrap();
        assert_eq!(receipt.channel, 0);
        spent += receipt.price;
    }
    assert_eq!(spent, 5_500);
    assert!(world.deposited() >= spent);
    // More than a deposit at once.
    let (_, receipt) = ask(&payer, &text(10, 400, 1)).await.unwrap();
    assert_eq!((receipt.channel, receipt.price), (0, 4_100));
    assert_eq!(world.opened(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_is_ever_deposited_than_the_budget() {
    let world = World::new();
    let _provider = world.provider("one", PRICE, Fault::None);
    let spending = Spending {
        budget: 5_000,
        deposit: 2_000,
        least_left: 1_000,
        ..SPENDING
    };
    let mut config = world.config(world.store(), spending);
    config.patience.place = std::time::Duration::from_millis(300);
    let payer = Providers::start(config).await.unwrap();
    let (mut spent, mut refused) = (0, 0);
    for _ in 0..8 {
        match ask(&payer, &text(10, 60, 1)).await {
            Ok((_, receipt)) => spent += receipt.price,
            Err((_, error)) => {
                assert_eq!(error, UpstreamError::Exhausted);
                refused += 1;
            }
        }
    }
    // Two deposits of 2,000 are within the budget, a third is not.
    assert_eq!((spent, refused), (5 * 700, 3));
    assert_eq!(world.deposited(), 4_000);
    drop(payer);
    // Nor after it has started again, or with what is left of channels that have ended.
    let channel = world
        .chain
        .change(|state| state.channels.open.pop_first().unwrap().0);
    world.chain.finalize();
    let mut config = world.config(reopened(&world).await, spending);
    config.patience.place = std::time::Duration::from_millis(300);
    let payer = Providers::start(config).await.unwrap();
    let refused = ask(&payer, &text(10, 200, 1)).await.unwrap_err();
    assert_eq!((channel, refused.1), (0, UpstreamError::Busy));
    assert_eq!(world.deposited(), 4_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deposited_until_what_was_sent_before_a_kill_is_final() {
    let mut world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    let spending = Spending {
        budget: 5_000,
        deposit: 4_000,
        ..SPENDING
    };
    // A block has the call of an earlier run, and no final one does.
    world.stop_blocks().await;
    let life = world.chain.rules(When::Finalized).await.unwrap().max_life;
    let call = Call::Open {
        payee: provider.stash.clone(),
        key: world.payer.account().clone(),
        deposit: 4_000,
        expiry: world.chain.time(When::Finalized).await.unwrap() + life,
    };
    let sent = world.chain.submit(&world.payer, call, Until::Included.into());
    sent.await.unwrap();
    let mut config = world.config(world.store(), spending);
    config.patience.place = std::time::Duration::from_secs(1);
    let payer = Providers::start(config).await.unwrap();
    let refused = ask(&payer, &text(10, 20, 1)).await.unwrap_err();
    assert_eq!((refused.1, world.deposited()), (UpstreamError::Busy, 4_000));
    world.chain.finalize();
    let (_, receipt) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    assert_eq!((receipt.channel, world.deposited()), (0, 4_000));
    // What is final is gone by again.
    world.chain.finalize();
    let (_, receipt) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    assert_eq!(receipt.nonce, 1);
}

/// The journal, once the one before has let go of it.
async fn reopened(world: &World) -> std::sync::Arc<surety_journal::CallStore> {
    world.until(|| world.try_store()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payer_that_starts_again_signs_no_lower_sum_and_goes_on_over_its_channel() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    let payer = world.payer().await;
    for _ in 0..3 {
        ask(&payer, &text(10, 50, 1)).await.unwrap();
    }
    // One is under way when it stops.
    let mut run = payer.generate(&text(10, 200, 1), &[]).await.unwrap();
    surety_gateway::Generating::next(&mut *run).await.unwrap();
    drop((run, payer));
    let before = *provider.state().sums[&0].iter().max().unwrap();
    let store = reopened(&world).await;
    let payer = Providers::start(world.config(store, SPENDING)).await.unwrap();
    let (_, receipt) = ask(&payer, &text(10, 50, 1)).await.unwrap();
    assert_eq!((receipt.channel, receipt.nonce), (0, 4));
    let sums = provider.state().sums[&0].clone();
    let after: Vec<u128> = sums.iter().copied().filter(|sum| *sum > before).collect();
    assert!(!after.is_empty() && *sums.last().unwrap() > before, "{sums:?}");
    assert_eq!(world.opened(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_nobody_uses_is_closed_and_its_money_comes_back() {
    let world = World::new();
    let _provider = world.provider("one", PRICE, Fault::None);
    world
        .chain
        .change(|state| state.channels.rules.closing_period = 20);
    world.chain.finalize();
    let mut config = world.config(world.store(), SPENDING);
    config.patience.idle = 30;
    // Demands have their own tests.
    config.spending.demands_max = 0;
    let payer = Providers::start(config).await.unwrap();
    ask(&payer, &text(10, 20, 1)).await.unwrap();
    world
        .sends(|call| matches!(call, Call::Close { channel: 0 }).then_some(()))
        .await;
    world
        .sends(|call| matches!(call, Call::End { channel: 0 }).then_some(()))
        .await;
    let funds = world.chain.change(|state| state.funds[world.payer.account()]);
    // Its provider has redeemed nothing.
    assert_eq!((funds.free, funds.held), (MONEY, 0));
    // Whoever asks then has another one opened.
    let (_, receipt) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    assert_eq!(receipt.channel, 1);
}
