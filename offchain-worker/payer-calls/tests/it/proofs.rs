//! Where receipts are in batches, as their providers show it.

use codec::DecodeAll;
use surety_chain_client::{Call, Chain, ChannelChain, When, is_message_signed};
use surety_channels::{Batched, ReceiptOpening, Request, SignedChunkStatement};
use surety_gateway::{NoProof, Upstream, Verdict};
use surety_payer_calls::{AccountId, Providers};

use crate::{
    provider::Fault,
    world::{PRICE, SPENDING, World, ask, becomes, text},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_is_proven_by_the_root_that_the_chain_has() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    let payer = world.payer().await;
    let mut receipts = Vec::new();
    for seed in 1..=3 {
        receipts.push(ask(&payer, &text(10, 20, seed)).await.unwrap().1);
    }
    let receipt = &receipts[1];
    assert_eq!(payer.proof(receipt).await, Err(NoProof::NotBatched));
    provider.batch().await;

    let proof = payer.proof(receipt).await.unwrap();
    let signed = SignedChunkStatement::<AccountId>::decode_all(&mut &*proof.signed).unwrap();
    let genesis = world.chain.info().genesis;
    assert!(
        signed.is_signed(&genesis, |key, bytes, signature| is_message_signed(
            key, bytes, *signature
        ))
    );
    assert_eq!(proof.genesis, format!("{genesis:?}"));
    let request = Request::decode_all(&mut &*proof.request).unwrap();
    assert_eq!(signed.statement.check(&request), Ok(()));
    let batches = world
        .chain
        .batches(When::Finalized, &provider.stash)
        .await
        .unwrap();
    let view = batches.iter().find(|view| view.batch == proof.batch).unwrap();
    let batched = Batched {
        opening: ReceiptOpening::decode_all(&mut &*proof.opening).unwrap(),
        statement: signed.statement,
    };
    let place = batched.place_in(&genesis, &view.window.root).unwrap();
    assert_eq!((place.nonce, place.price), (1, receipt.price));
    assert_eq!(
        (proof.says.nonce, proof.says.price, proof.says.unit_price),
        (1, 30 * PRICE, PRICE)
    );

    // What was shown can be disputed until it is final.
    becomes(&payer, receipt, Verdict::Challengeable).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_shown_is_not_demanded() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    let mut config = world.config(world.store(), SPENDING);
    config.patience.batched = 200;
    let payer = Providers::start(config).await.unwrap();
    let (_, receipt) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    provider.batch().await;
    payer.proof(&receipt).await.unwrap();
    let (_, other) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    let demanded = world.sends(|call| match call {
        Call::DemandReceipt { held } => Some(held.statement.nonce),
        _ => None,
    });
    assert_eq!(demanded.await, other.nonce);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_in_the_batch_that_the_chain_has_proves_nothing() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    let payer = world.payer().await;
    let (_, receipt) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    provider.state().fault = Fault::ShowsOther;
    provider.batch().await;
    let lied = payer.proof(&receipt).await.unwrap_err();
    assert!(matches!(lied, NoProof::Unshown(_)), "{lied}");
    assert_eq!(payer.verdict(&receipt).await, Verdict::Unbatched);

    provider.state().fault = Fault::None;
    payer.proof(&receipt).await.unwrap();
    // One that was signed before signatures were kept.
    let mut old = receipt;
    old.signed.clear();
    assert_eq!(payer.proof(&old).await, Err(NoProof::NotKept));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_is_proven_after_a_restart_and_once_it_is_final() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    world.stands_behind(&provider, 1_000_000);
    let payer = world.payer().await;
    let (_, receipt) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    provider.batch().await;
    world.blocks(5).await;
    world
        .chain
        .change(|state| state.channels.open.get_mut(&0).unwrap().purse.next = 1);
    world.chain.finalize();
    becomes(&payer, &receipt, Verdict::Final).await;
    drop(payer);
    let store = loop {
        match world.try_store() {
            Some(store) => break store,
            None => tokio::task::yield_now().await,
        }
    };
    let again = Providers::start(world.config(store, SPENDING)).await.unwrap();
    assert_eq!(again.proof(&receipt).await.unwrap().says.nonce, 0);
}
