//! Providers that die, lie, and have no place.

use std::time::Duration;

use surety_chain_client::{Call, address};
use surety_channel_calls::{Table, call_key};
use surety_gateway::{Upstream, UpstreamError, Verdict};
use surety_payer_calls::{Patience, Providers};

use crate::{
    provider::{Fault, tokens},
    world::{PRICE, SPENDING, World, ask, failed, read, text},
};

#[tokio::test(flavor = "multi_thread")]
async fn of_an_answer_that_breaks_off_it_is_said_what_may_have_been_paid_for_it() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::Dies(3));
    let payer = world.payer().await;
    let (ids, error) = ask(&payer, &text(10, 100, 1)).await.unwrap_err();
    assert_eq!(ids, tokens(48, 1));
    let (name, spent) = failed(error);
    // What was said, and the chunk that was paid ahead.
    assert_eq!((name, spent), (address(&provider.stash), (10 + 64) * PRICE));
    let sums = provider.state().sums[&0].clone();
    assert!(sums.iter().all(|sum| *sum <= spent), "{sums:?}");
    // It is not asked for what it does not answer any more.
    let gone = ask(&payer, &text(10, 100, 1)).await.unwrap_err();
    assert!(matches!(gone.1, UpstreamError::Failed { .. }), "{}", gone.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_signs_something_else_than_it_says_is_never_asked_again_and_what_shows_it_is_kept() {
    let world = World::new();
    let liar = world.provider("liar", PRICE, Fault::OtherBytes(1));
    let honest = world.provider("honest", PRICE + 1, Fault::None);
    let store = world.store();
    let config = world.config(store.clone(), SPENDING);
    let payer = Providers::start(config).await.unwrap();
    let mut run = payer.generate(&text(10, 100, 1), &[]).await.unwrap();
    let (ids, error) = read(&mut *run).await.unwrap_err();
    // What it lied about is told to nobody.
    assert_eq!(ids, tokens(16, 1));
    let (provider, spent) = failed(error);
    assert_eq!((provider, spent), (address(&liar.stash), (10 + 32) * PRICE));
    let kept = store.read(Table::Evidence, &call_key(0, 0)).unwrap();
    assert_eq!(kept.len(), 1);
    let (_, receipt) = ask(&payer, &text(10, 100, 1)).await.unwrap();
    assert_eq!(receipt.provider, address(&honest.stash));
    assert_eq!(liar.state().asked, 1);
    let lie = surety_gateway::Receipt {
        provider: address(&liar.stash),
        channel: 0,
        nonce: 0,
        ..receipt
    };
    assert_eq!(payer.verdict(&lie).await, Verdict::Wrong);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_contradicts_itself_is_reported() {
    let world = World::new();
    let liar = world.provider("liar", PRICE, Fault::Twice(1));
    let payer = world.payer().await;
    let failed = ask(&payer, &text(10, 100, 1)).await.unwrap_err();
    assert!(matches!(failed.1, UpstreamError::Failed { .. }));
    let reported = world.sends(|call| match call {
        Call::ReportChunkEquivocation { equivocation } => Some(equivocation.one.statement.payee.clone()),
        _ => None,
    });
    assert_eq!(reported.await, liar.stash);
    // Its lock is gone; so is the channel, which is worth nothing any more.
    world
        .sends(|call| matches!(call, Call::Close { channel: 0 }).then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_signs_two_receipts_for_one_answer_is_reported() {
    let world = World::new();
    let liar = world.provider("liar", PRICE, Fault::EndsTwice);
    let payer = world.payer().await;
    let (ids, receipt) = ask(&payer, &text(10, 100, 1)).await.unwrap();
    assert_eq!(ids, tokens(100, 1));
    let reported = world.sends(|call| match call {
        Call::ReportChunkEquivocation { equivocation } => Some(equivocation.one.statement.payee.clone()),
        _ => None,
    });
    assert_eq!(reported.await, liar.stash);
    assert_eq!(payer.verdict(&receipt).await, Verdict::Wrong);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_no_place_for_a_moment_is_asked_again_and_for_good_is_told_so() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::Busy);
    let payer = world.payer().await;
    let refused = ask(&payer, &text(10, 20, 1)).await.unwrap_err();
    assert_eq!(refused.1, UpstreamError::Busy);
    assert_eq!(provider.state().asked, 1);
    // It costs nothing, and a little later it is answered.
    provider.state().fault = Fault::None;
    let answered = async {
        loop {
            match ask(&payer, &text(10, 20, 1)).await {
                Ok(done) => return done,
                Err((_, UpstreamError::Busy | UpstreamError::NoProvider)) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err((_, error)) => panic!("{error}"),
            }
        }
    };
    let (_, receipt) = answered.await;
    assert_eq!((receipt.nonce, receipt.price), (0, 30 * PRICE));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contradiction_that_was_not_reported_before_a_kill_is_reported_after_it() {
    let world = World::new();
    let liar = world.provider("liar", PRICE, Fault::Twice(1));
    let standing = world
        .chain
        .change(|state| state.channels.standings[&liar.stash].clone());
    let payer = world.payer().await;
    ask(&payer, &text(10, 100, 1)).await.unwrap_err();
    let reports = || {
        let is_report = |call: &&Call| matches!(call, Call::ReportChunkEquivocation { .. });
        world.sent().iter().filter(is_report).count()
    };
    world.until(|| (reports() == 1).then_some(())).await;
    drop(payer);
    // As if no block had it.
    world.chain.change(|state| {
        state.channels.standings.insert(liar.stash.clone(), standing);
    });
    world.chain.finalize();
    let store = world.until(|| world.try_store()).await;
    let _payer = Providers::start(world.config(store, SPENDING)).await.unwrap();
    world.until(|| (reports() == 2).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_says_that_it_was_paid_too_little_before_loses_its_channel() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::None);
    let payer = world.payer().await;
    // It ends two tokens before what was paid for it.
    let (_, receipt) = ask(&payer, &text(10, 100, 7)).await.unwrap();
    let paid = provider.state().sums[&0].iter().max().copied().unwrap();
    assert_eq!((receipt.price, paid), (40 * PRICE, 42 * PRICE));
    provider.state().fault = Fault::Ratchets;
    let (_, error) = ask(&payer, &text(10, 100, 1)).await.unwrap_err();
    let (name, spent) = failed(error);
    // A planck more is believed once; whoever says so twice is not asked a third time.
    assert_eq!((name, spent), (address(&provider.stash), 2));
    assert_eq!(provider.state().asked, 3);
    world
        .sends(|call| matches!(call, Call::Close { channel: 0 }).then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_takes_nothing_has_no_sum_raised_by_saying_that_it_is_too_low() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::Ratchets);
    let payer = world.payer().await;
    let refused = ask(&payer, &text(10, 100, 1)).await.unwrap_err();
    assert_eq!(refused.1, UpstreamError::Busy);
    assert_eq!(provider.state().sums[&0], [26 * PRICE]);
}

/// One that gives up after so long.
async fn impatient(world: &World, words: Duration, answer: Duration) -> Providers {
    let mut config = world.config(world.store(), SPENDING);
    config.patience = Patience {
        words,
        answer,
        ..config.patience
    };
    Providers::start(config).await.unwrap()
}

/// Well before what it would take otherwise.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(5), what).await.unwrap()
}

const SHORT: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_only_refuses_vouchers_keeps_nobody_waiting() {
    // Slowly, without end; and without a pause.
    for (every, words) in [(SHORT / 2, SHORT), (Duration::ZERO, LONG)] {
        let world = World::new();
        let _provider = world.provider("one", PRICE, Fault::Refuses(every));
        let payer = impatient(&world, words, LONG).await;
        let failed = soon(ask(&payer, &text(10, 100, 1))).await.unwrap_err();
        assert!(matches!(failed.1, UpstreamError::Failed { .. }), "{}", failed.1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_trickles_ends_in_time_and_soon_after_it_is_cancelled() {
    let world = World::new();
    let every = Duration::from_millis(50);
    let _provider = world.provider("one", PRICE, Fault::Trickles(every));
    let payer = impatient(&world, SHORT, SHORT * 2).await;
    let (ids, error) = soon(ask(&payer, &text(10, 400, 1))).await.unwrap_err();
    assert!(
        !ids.is_empty() && matches!(error, UpstreamError::Failed { .. }),
        "{error}"
    );

    let world = World::new();
    let _provider = world.provider("one", PRICE, Fault::Trickles(every));
    let payer = impatient(&world, SHORT, LONG).await;
    let mut run = payer.generate(&text(10, 400, 1), &[]).await.unwrap();
    run.next().await.unwrap();
    let error = soon(run.cancel()).await.unwrap_err();
    assert!(matches!(error, UpstreamError::Failed { .. }), "{error}");
}
