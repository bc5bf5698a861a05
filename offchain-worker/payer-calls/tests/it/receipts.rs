//! What becomes of receipts.

use std::{collections::BTreeSet, time::Duration};

use surety_chain_client::{Call, ChannelChain, When};
use surety_channels::view::Wanted;
use surety_gateway::{Upstream, Verdict};
use surety_payer_calls::{Providers, Spending};

use crate::{
    provider::Fault,
    world::{PRICE, SPENDING, World, ask, becomes, read, text},
};

async fn payer(world: &World) -> Providers {
    let mut config = world.config(world.store(), SPENDING);
    config.patience.batched = 20;
    Providers::start(config).await.unwrap()
}

/// The request whose receipt is demanded.
async fn demanded(world: &World) -> (u64, u32) {
    world
        .sends(|call| match call {
            Call::DemandReceipt { held } => Some((held.statement.channel, held.statement.nonce)),
            _ => None,
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_that_no_batch_has_in_time_is_demanded_and_its_provider_loses_its_lock_over_it() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    let payer = payer(&world).await;
    let (_, receipt) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    assert_eq!(payer.verdict(&receipt).await, Verdict::Unbatched);
    assert_eq!(demanded(&world).await, (receipt.channel, receipt.nonce));
    let ended = world.sends(|call| match call {
        Call::EndDemand { provider, demander } => Some((provider.clone(), demander.clone())),
        _ => None,
    });
    assert_eq!(
        ended.await,
        (provider.stash.clone(), world.payer.account().clone())
    );
    let stash = provider.stash.clone();
    world
        .until(|| {
            let lock = world.chain.change(|state| state.channels.standings[&stash].lock);
            (lock == 0).then_some(())
        })
        .await;
    // It has nothing more to lose: the chain would take a fee, and refuse.
    world.blocks(40).await;
    let demands = world.chain.attempts().into_iter();
    let demands = demands.filter(|(_, call, _)| matches!(call, Call::DemandReceipt { .. }));
    assert_eq!(demands.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_that_no_batch_has_is_demanded_before_its_channel_ends_however_patient_its_payer_is() {
    let world = World::new();
    world
        .chain
        .change(|state| state.channels.rules.supply_window = 200);
    world.chain.finalize();
    let _provider = world.provider("one", PRICE, Fault::None);
    let mut config = world.config(world.store(), SPENDING);
    config.patience.idle = 30;
    config.patience.batched = u32::MAX;
    let payer = Providers::start(config).await.unwrap();
    let (_, receipt) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    assert_eq!(demanded(&world).await, (receipt.channel, receipt.nonce));
    let sent = world.sent();
    let closed = sent.iter().position(|call| matches!(call, Call::Close { .. }));
    let demanded = sent
        .iter()
        .position(|call| matches!(call, Call::DemandReceipt { .. }));
    assert!(closed.is_some() && closed < demanded, "{sent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_demanded_is_shown_on_the_chain_and_what_is_batched_with_it_over_a_connection() {
    let world = World::new();
    world
        .chain
        .change(|state| state.channels.rules.supply_window = 5_000);
    world.chain.finalize();
    let provider = world.provider("one", PRICE, Fault::None);
    let payer = payer(&world).await;
    let mut receipts = Vec::new();
    for _ in 0..3 {
        receipts.push(ask(&payer, &text(10, 20, 1)).await.unwrap().1);
    }
    let (channel, nonce) = demanded(&world).await;
    provider.batch().await;
    let account = world.payer.account().clone();
    let by = (provider.stash.clone(), account.clone());
    world
        .until(|| {
            world.chain.change(|state| {
                let mut demands = state.channels.demands.get(&by)?.iter();
                demands.find_map(|demand| match demand.view.wanted {
                    Wanted::Receipt {
                        channel: of,
                        nonce: at,
                        ..
                    } if (of, at) == (channel, nonce) => Some(()),
                    _ => None,
                })
            })
        })
        .await;
    provider.show(&account, channel, nonce).await.unwrap();
    for receipt in &receipts {
        becomes(&payer, receipt, Verdict::Challengeable).await;
    }
    // Nothing is demanded again.
    world.blocks(40).await;
    assert!(world.demands() <= 3, "{}", world.demands());
    let standing = world
        .chain
        .standing(When::Finalized, &provider.stash)
        .await
        .unwrap();
    assert!(standing.unwrap().lock > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_is_final_once_a_final_batch_is_counted_and_shown_to_have_it() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    world.stands_behind(&provider, 1_000_000);
    world
        .chain
        .change(|state| state.channels.rules.supply_window = 2_000);
    world.chain.finalize();
    let payer = world.payer().await;
    let mut receipts = Vec::new();
    for _ in 0..2 {
        receipts.push(ask(&payer, &text(10, 20, 1)).await.unwrap().1);
    }
    provider.state().fault = Fault::ShowsOther;
    provider.batch().await;
    world.blocks(5).await;
    // Its provider has redeemed a batch with the first, as it seems.
    world
        .chain
        .change(|state| state.channels.open.get_mut(&0).unwrap().purse.next = 1);
    world.chain.finalize();
    world.blocks(10).await;
    assert_eq!(payer.verdict(&receipts[0]).await, Verdict::Unbatched);
    drop(payer);
    provider.state().fault = Fault::None;
    let store = world.until(|| world.try_store()).await;
    let payer = Providers::start(world.config(store, SPENDING)).await.unwrap();
    becomes(&payer, &receipts[0], Verdict::Final).await;
    becomes(&payer, &receipts[1], Verdict::Challengeable).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_shows_what_it_is_asked_for_is_demanded_nothing() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    let mut config = world.config(world.store(), SPENDING);
    config.patience.batched = 100;
    let payer = Providers::start(config).await.unwrap();
    let mut receipts = Vec::new();
    for _ in 0..3 {
        receipts.push(ask(&payer, &text(10, 20, 1)).await.unwrap().1);
    }
    provider.batch().await;
    world.blocks(140).await;
    for receipt in &receipts {
        becomes(&payer, receipt, Verdict::Challengeable).await;
    }
    let attempts = world.chain.attempts().into_iter();
    let mut demands = attempts.filter(|(_, call, _)| matches!(call, Call::DemandReceipt { .. }));
    assert!(demands.next().is_none());
}

// On one thread, and with time between blocks: both are asked, and have answered, by one block.
#[tokio::test]
async fn of_several_that_are_late_the_one_whose_channel_ends_first_is_demanded_first() {
    let world = World::with_blocks(Duration::from_millis(300));
    let mut providers = ["one", "two"].map(|name| world.provider(name, PRICE, Fault::None));
    providers.sort_by_key(|provider| provider.stash.clone());
    let spending = Spending {
        demands_max: 1,
        ..SPENDING
    };
    let mut config = world.config(world.store(), spending);
    config.patience.batched = u32::MAX;
    let payer = Providers::start(config).await.unwrap();
    let mut channels = Vec::new();
    for other in providers.iter().rev() {
        let run = payer.generate(&text(10, 20, 1), &[other.name()]).await;
        channels.push(read(&mut *run.unwrap()).await.unwrap().1.channel);
    }
    // There is no time for either to wait; the one whose account comes last has less.
    world.chain.change(|state| {
        for (channel, left) in channels.iter().zip([70, 60]) {
            let until = state.clock + left;
            state.channels.open.get_mut(channel).unwrap().purse.close(until);
        }
    });
    assert_eq!(demanded(&world).await, (channels[1], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_signed_over_a_channel_that_is_given_back_is_demanded_at_once() {
    let world = World::new();
    let _provider = world.provider("one", PRICE, Fault::None);
    let mut config = world.config(world.store(), SPENDING);
    config.patience.batched = u32::MAX;
    let payer = Providers::start(config).await.unwrap();
    let (_, receipt) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    // There is time to wait.
    world.chain.change(|state| {
        let until = state.clock + 5_000;
        let channel = state.channels.open.get_mut(&receipt.channel).unwrap();
        channel.purse.give_back(until, 0);
    });
    assert_eq!(demanded(&world).await, (receipt.channel, receipt.nonce));
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_are_asked_for_many_at_once_as_soon_as_a_batch_may_have_them() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    let payer = world.payer().await;
    let mut receipts = Vec::new();
    for _ in 0..150 {
        receipts.push(ask(&payer, &text(2, 2, 1)).await.unwrap().1);
    }
    assert_eq!(provider.state().questions, 0);
    provider.batch().await;
    // Nothing is counted, nor late.
    for receipt in &receipts {
        becomes(&payer, receipt, Verdict::Challengeable).await;
    }
    let questions = provider.state().questions;
    assert!(questions <= 6, "{questions}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_shows_others_something_is_asked_again_and_demanded_nothing() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::BusyShowing(2));
    let mut config = world.config(world.store(), SPENDING);
    config.patience.batched = 100;
    let payer = Providers::start(config).await.unwrap();
    let (_, receipt) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    provider.batch().await;
    becomes(&payer, &receipt, Verdict::Challengeable).await;
    world.blocks(140).await;
    assert_eq!(world.demands(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_always_busy_with_others_is_demanded_what_it_does_not_show() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::BusyShowing(usize::MAX));
    let mut config = world.config(world.store(), SPENDING);
    config.patience.taken = Duration::from_millis(500);
    config.patience.batched = 20;
    let payer = Providers::start(config).await.unwrap();
    let (_, receipt) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    provider.batch().await;
    assert_eq!(demanded(&world).await, (receipt.channel, receipt.nonce));
    assert!(provider.state().questions > 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_whoever_shows_nothing_several_receipts_are_demanded_at_once_and_no_more_for_a_while() {
    let world = World::new();
    world
        .chain
        .change(|state| state.channels.rules.supply_window = 1_000);
    world.chain.finalize();
    let _provider = world.provider("one", PRICE, Fault::ShowsOther);
    let payer = world.payer().await;
    let mut receipts = Vec::new();
    for seed in 1..=12 {
        receipts.push(ask(&payer, &text(5, 5, seed)).await.unwrap().1);
    }
    world.counted(&receipts[11], receipts[11].price);
    world.until(|| (world.demands() >= 8).then_some(())).await;
    world.blocks(40).await;
    let sent = world.sent().into_iter();
    let demanded: BTreeSet<_> = sent
        .filter_map(|call| match call {
            Call::DemandReceipt { held } => Some(held.statement.nonce),
            _ => None,
        })
        .collect();
    assert_eq!((demanded.len(), world.demands()), (8, 8));
}
