//! What stays known of what was signed.

use std::time::Duration;

use surety_channel_calls::Table;
use surety_gateway::{Finish, Receipt, SignedFor, Upstream, Verdict};
use surety_payer_calls::{Providers, signed_for};
use tokio::{task::yield_now, time::timeout};

use crate::{
    provider::Fault,
    world::{PRICE, SPENDING, World, ask, becomes, text},
};

#[tokio::test(flavor = "multi_thread")]
async fn what_was_signed_for_a_call_is_found_by_its_id_while_it_is_answered_and_after_it() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    let store = world.store();
    let config = world.config(store.clone(), SPENDING);
    let payer = Providers::start(config).await.unwrap();
    let of = |call, tokens| {
        let mut asked = text(10, tokens, 1);
        asked.call = call;
        asked
    };
    let (_, whole) = ask(&payer, &of(3, 20)).await.unwrap();
    // As it is when the gateway is killed.
    let mut open = payer.generate(&of(5, 400), &[]).await.unwrap();
    open.next().await.unwrap();
    let served = || provider.served(0) - whole.price;
    world
        .until(|| (served() >= (10 + 16 * 5) * PRICE).then_some(()))
        .await;
    provider.state().fault = Fault::Busy;
    ask(&payer, &of(6, 20)).await.unwrap_err();
    let signed = signed_for(&store).unwrap();
    assert_eq!(signed.keys().copied().collect::<Vec<_>>(), [3, 5]);
    let (spent, receipts) = (whole.price, vec![whole.clone()]);
    assert_eq!(signed[&3], SignedFor { receipts, spent });
    let SignedFor { receipts, spent } = &signed[&5];
    let said: Vec<(Finish, u32)> = receipts.iter().map(|one| (one.finish, one.nonce)).collect();
    assert_eq!(said, [(Finish::Cut, 1)]);
    // A chunk ahead of what was said, and far less than all of it.
    assert!(
        *spent >= receipts[0].price && *spent <= served() + 16 * PRICE,
        "{spent}"
    );
    assert!(*spent < 410 * PRICE / 2, "{spent}");
}

async fn restarted(world: &World, payer: Providers) -> Providers {
    drop(payer);
    let store = world.until(|| world.try_store()).await;
    Providers::start(world.config(store, SPENDING)).await.unwrap()
}

/// All channels have ended.
fn end_all(world: &World) {
    world.chain.change(|state| state.channels.open.clear());
    world.chain.finalize();
}

/// What a receipt that no batch has becomes first.
async fn after_the_end(payer: &Providers, receipt: &Receipt) -> Verdict {
    let changed = async {
        loop {
            match payer.verdict(receipt).await {
                Verdict::Unbatched => yield_now().await,
                verdict => return verdict,
            }
        }
    };
    timeout(Duration::from_secs(30), changed).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_has_shown_when_its_channel_ends_is_never_final() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    world.stands_behind(&provider, 1_000_000);
    let mut payer = world.payer().await;
    let (_, shown) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    provider.batch().await;
    world.blocks(5).await;
    world.counted(&shown, shown.price);
    becomes(&payer, &shown, Verdict::Final).await;
    let (_, never) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    assert_eq!(never.channel, shown.channel);
    end_all(&world);
    for _ in 0..2 {
        assert_eq!(after_the_end(&payer, &never).await, Verdict::Unproven);
        assert_eq!(payer.verdict(&shown).await, Verdict::Final);
        payer = restarted(&world, payer).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_has_shown_of_a_channel_that_ends_while_nobody_looks_is_never_final() {
    let world = World::new();
    let _provider = world.provider("one", PRICE, Fault::None);
    let payer = world.payer().await;
    let (_, never): (_, Receipt) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    drop(payer);
    end_all(&world);
    let store = world.until(|| world.try_store()).await;
    let config = world.config(store.clone(), SPENDING);
    let payer = Providers::start(config).await.unwrap();
    assert_eq!(payer.verdict(&never).await, Verdict::Unproven);
    let rows = |table| store.read(table, &[]).unwrap().len();
    assert_eq!([Table::Held, Table::Asked, Table::Unproven].map(rows), [0, 0, 1]);
}
