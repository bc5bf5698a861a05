//! What is counted, and what was signed.

use sp_core::H256;
use surety_chain_client::{AccountId, Call, ChannelChain, Signer, When};
use surety_channel_calls::message::Chunk;
use surety_channels::SignedChunkStatement;
use surety_gateway::{NoProof, Upstream, UpstreamError, Verdict};
use surety_payer_calls::Providers;
use surety_proofs::content_hash;

use crate::{
    provider::Fault,
    world::{PRICE, SPENDING, World, answered, answered_once_covered, ask, becomes, text},
};

/// Tokens of an answer of one chunk, and what it costs.
const TOKENS: u32 = 16;
const ANSWER: u128 = 26 * PRICE;

/// Signs other tokens than were computed.
pub fn say_other(
    bytes: &mut Chunk,
    signed: &mut SignedChunkStatement<AccountId>,
    last: Option<&SignedChunkStatement<AccountId>>,
    (agent, genesis): (&Signer, H256),
) {
    let mut other = bytes.to_vec();
    for word in other.chunks_mut(4) {
        word[0] ^= 1;
    }
    let output = match last.filter(|_| other.is_empty()) {
        Some(last) => last.statement.output,
        None => content_hash(&[&[0; 4][..], &other].concat()),
    };
    *bytes = other.try_into().unwrap();
    signed.statement.output = output;
    signed.signature = agent.sign_hash(&signed.statement.message(&genesis));
}

impl World {
    pub fn demands(&self) -> usize {
        let attempts = self.chain.attempts().into_iter();
        let demands = attempts.filter(|(_, call, _)| matches!(call, Call::DemandReceipt { .. }));
        demands.count()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_says_one_thing_and_batches_another_is_asked_no_more_and_loses_its_lock() {
    let world = World::new();
    let liar = world.provider("liar", PRICE, Fault::SaysOther);
    let other = world.provider("other", 2 * PRICE, Fault::None);
    world.stands_behind(&liar, ANSWER + 1);
    let mut config = world.config(world.store(), SPENDING);
    config.patience.batched = 100;
    let payer = Providers::start(config).await.unwrap();
    let receipt = answered(&payer, TOKENS).await;
    assert_eq!(receipt.provider, liar.name());
    liar.batch().await;
    world.counted(&receipt, ANSWER);
    // That it was counted frees nothing of what its lock covers.
    world.blocks(20).await;
    assert_eq!(answered(&payer, TOKENS).await.provider, other.name());
    assert_eq!(payer.verdict(&receipt).await, Verdict::Unbatched);
    let shown = payer.proof(&receipt).await;
    assert!(matches!(shown, Err(NoProof::Unshown(_))), "{shown:?}");

    let demanded = world.sends(|call| match call {
        Call::DemandReceipt { held } => Some((held.statement.channel, held.statement.nonce)),
        _ => None,
    });
    assert_eq!(demanded.await, (receipt.channel, receipt.nonce));
    // What it has counted is not what it has signed.
    let payer_account = world.payer.account();
    let shown = liar.show(payer_account, receipt.channel, receipt.nonce).await;
    assert!(format!("{shown:?}").contains("NotDemanded"), "{shown:?}");
    let stash = liar.stash.clone();
    let lock = || world.chain.change(|state| state.channels.standings[&stash].lock);
    world.until(|| (lock() == 0).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_counted_is_settled_once_its_provider_has_shown_that_it_is_what_was_signed() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    world.stands_behind(&provider, 3 * ANSWER + 1);
    // What was counted and is not shown is demanded after an eighth of the window: not before the start.
    world.chain.change(|state| {
        let rules = &mut state.channels.rules;
        (rules.supply_window, rules.redeem_by) = (2_400, 12_000);
    });
    world.chain.finalize();
    let mut config = world.config(world.store(), SPENDING);
    config.patience.batched = 400;
    let payer = Providers::start(config).await.unwrap();
    let mut receipts = Vec::new();
    for _ in 0..3 {
        receipts.push(answered(&payer, TOKENS).await);
    }
    provider.state().fault = Fault::ShowsOther;
    provider.batch().await;
    world.blocks(5).await;
    world.counted(&receipts[2], ANSWER);
    world.blocks(20).await;
    assert_eq!(payer.verdict(&receipts[0]).await, Verdict::Unbatched);
    // After a start it is asked again: it had its reasons.
    drop(payer);
    provider.state().fault = Fault::None;
    let store = world.until(|| world.try_store()).await;
    let payer = Providers::start(world.config(store, SPENDING)).await.unwrap();
    for receipt in &receipts {
        becomes(&payer, receipt, Verdict::Final).await;
    }
    // It stands behind as much again, over the same channel.
    let next = answered_once_covered(&payer, TOKENS).await;
    assert_eq!((next.channel, next.nonce), (receipts[0].channel, 3));
    assert_eq!(world.demands(), 0);
    let standing = world.chain.standing(When::Finalized, &provider.stash).await;
    assert!(standing.unwrap().unwrap().lock > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_batches_what_it_has_said_beside_what_is_counted_is_demanded_that() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    world.chain.change(|state| {
        let rules = &mut state.channels.rules;
        (rules.batch_window, rules.supply_window, rules.redeem_by) = (60, 600, 5_000);
    });
    world.chain.finalize();
    let payer = world.payer().await;
    let receipt = answered(&payer, TOKENS).await;
    // What it has said is in a batch, and shown, before something else is counted with its number.
    provider.batch().await;
    becomes(&payer, &receipt, Verdict::Challengeable).await;
    world.counted(&receipt, ANSWER);
    let demanded = world.sends(|call| match call {
        Call::DemandReceipt { held } => Some(held.statement.nonce),
        _ => None,
    });
    assert_eq!(demanded.await, receipt.nonce);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_shown_in_a_final_batch_is_settled_whenever_it_is_counted() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    world.stands_behind(&provider, ANSWER + 1);
    let payer = world.payer().await;
    let receipt = answered(&payer, TOKENS).await;
    provider.batch().await;
    payer.proof(&receipt).await.unwrap();
    answered_once_covered(&payer, TOKENS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_channel_that_is_older_than_a_conviction_nothing_is_asked() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    let payer = world.payer().await;
    let first = answered(&payer, TOKENS).await.channel;
    world.chain.change(|state| {
        let standing = state.channels.standings.get_mut(&provider.stash).unwrap();
        standing.since_channel = first + 1;
    });
    world.blocks(20).await;
    assert!(answered(&payer, TOKENS).await.channel > first);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_does_not_show_what_is_late_is_demanded_something_of_all_that_it_has_said() {
    const PATIENCE: u32 = 240;
    let world = World::new();
    let _stalls = world.provider("one", PRICE, Fault::ShowsOther);
    let mut config = world.config(world.store(), SPENDING);
    config.patience.batched = PATIENCE;
    let payer = Providers::start(config).await.unwrap();
    for seed in 1..=30 {
        ask(&payer, &text(1, 1, seed)).await.unwrap();
    }
    world.blocks(100).await;
    let dear = ask(&payer, &text(300, 100, 2)).await.unwrap().1;
    let clock = || world.chain.change(|state| state.clock);
    let asked = clock();
    // It is drawn: nearly always among the first.
    world
        .sends(|call| match call {
            Call::DemandReceipt { held } => (held.statement.nonce == dear.nonce).then_some(()),
            _ => None,
        })
        .await;
    assert!(
        clock() < asked + PATIENCE,
        "it was demanded as it was late itself"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_channel_that_nothing_is_counted_of_for_long_nothing_more_is_asked() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    world.stands_behind(&provider, 3 * ANSWER);
    let payer = world.payer().await;
    let first = answered(&payer, TOKENS).await.channel;
    provider.batch().await;
    world.chain.change(|state| {
        let rules = &mut state.channels.rules;
        rules.redeem_by = rules.closing_period + rules.supply_window;
    });
    world.blocks(20).await;
    assert!(answered(&payer, TOKENS).await.channel > first);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_answer_that_broke_off_that_settles_it_which_is_shown_to_begin_with_what_was_heard() {
    let world = World::new();
    // Its second chunk is signed, and never heard.
    let provider = world.provider("one", PRICE, Fault::Dies(1));
    world.stands_behind(&provider, 60 * PRICE);
    let payer = world.payer().await;
    let broken = ask(&payer, &text(10, 48, 1)).await.unwrap_err();
    assert_eq!(broken.0.len(), 16);
    provider.state().fault = Fault::ShowsNoBeginning;
    provider.state().abandon_all();
    provider.batch().await;
    world.blocks(40).await;
    let next = text(10, 30, 1);
    let refused = ask(&payer, &next).await.unwrap_err();
    assert_eq!(refused.1, UpstreamError::Uncovered);
    assert!(provider.state().questions > 0);
    // After a start it is asked again: it had its reasons.
    drop(payer);
    provider.state().fault = Fault::None;
    let store = world.until(|| world.try_store()).await;
    let payer = Providers::start(world.config(store, SPENDING)).await.unwrap();
    answered_once_covered(&payer, 30).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_answer_that_broke_off_its_provider_shows_what_begins_with_what_was_heard_or_loses_its_lock() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::Dies(1));
    let mut config = world.config(world.store(), SPENDING);
    config.patience.batched = 100;
    let payer = Providers::start(config).await.unwrap();
    let broken = ask(&payer, &text(10, 48, 1)).await.unwrap_err();
    assert_eq!(broken.0.len(), 16);
    provider.state().fault = Fault::ShowsNoBeginning;
    provider.state().abandon_all();
    provider.batch().await;
    let demanded = world.sends(|call| match call {
        Call::DemandReceipt { held } => Some(held.statement.clone()),
        _ => None,
    });
    let heard = demanded.await;
    assert_eq!(heard.end, None);
    // That it says more is not enough.
    let shown = provider
        .show(world.payer.account(), heard.channel, heard.nonce)
        .await;
    assert!(format!("{shown:?}").contains("BeginningNotShown"), "{shown:?}");
    let stash = provider.stash.clone();
    let lock = || world.chain.change(|state| state.channels.standings[&stash].lock);
    world.until(|| (lock() == 0).then_some(())).await;
}
