//! What becomes of receipts.

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
                let demand = state.channels.demands.get(&by)?.first();
                let wanted = demand.map(|demand| demand.view.wanted.clone());
                let is_it = |wanted: &Wanted| match wanted {
                    Wanted::Receipt {
                        channel: of,
                        nonce: at,
                        ..
                    } => (*of, *at) == (channel, nonce),
                    Wanted::Point { .. } => false,
                };
                wanted.filter(is_it)
            })
        })
        .await;
    provider.show(&account, channel, nonce).await.unwrap();
    for receipt in &receipts {
        becomes(&payer, receipt, Verdict::Challengeable).await;
    }
    // Nothing is demanded again.
    world.blocks(40).await;
    let demands = world.chain.attempts().into_iter();
    let again = demands.filter(|(_, call, _)| matches!(call, Call::DemandReceipt { .. }));
    assert_eq!(again.count(), 1);
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
    let payer = world.payer().await;
    let mut receipts = Vec::new();
    for _ in 0..2 {
        receipts.push(ask(&payer, &text(10, 20, 1)).await.unwrap().1);
    }
    // Its provider has redeemed a batch with the first, as it seems.
    world
        .chain
        .change(|state| state.channels.open.get_mut(&0).unwrap().purse.next = 1);
    world.chain.finalize();
    world.blocks(10).await;
    assert_eq!(payer.verdict(&receipts[0]).await, Verdict::Unbatched);
    drop(payer);
    provider.batch().await;
    let store = world.until(|| world.try_store()).await;
    let payer = Providers::start(world.config(store, SPENDING)).await.unwrap();
    becomes(&payer, &receipts[0], Verdict::Final).await;
    assert_eq!(payer.verdict(&receipts[1]).await, Verdict::Unbatched);
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

#[tokio::test(flavor = "multi_thread")]
async fn of_several_that_are_late_the_one_whose_channel_ends_first_is_demanded_first() {
    let world = World::new();
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
        channel.purse.give_back(until);
    });
    assert_eq!(demanded(&world).await, (receipt.channel, receipt.nonce));
}
