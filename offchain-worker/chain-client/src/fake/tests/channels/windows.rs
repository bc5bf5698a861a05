//! Batches that are late, and what is disputed and demanded meanwhile.

use surety_channels::{ChunkStatement, End, Ending};

use super::*;

async fn batches(world: &World) -> Vec<crate::BatchView> {
    let stash = world.stash.account();
    world.chain.batches(When::Best, stash).await.unwrap()
}

async fn demands(world: &World) -> Vec<crate::DemandView> {
    let stash = world.stash.account();
    ChannelChain::demands(&world.chain, When::Best, stash)
        .await
        .unwrap()
}

fn dispute(world: &World, receipt: ReceiptSource) -> Call {
    Call::Dispute {
        receipt: Box::new(receipt),
        request: Box::new(world.request()),
        head: None,
    }
}

fn signed(world: &World, nonce: u32) -> ReceiptSource {
    ReceiptSource::Signed(world.signed(world.receipt(nonce)))
}

fn demand(world: &World, receipt: ChunkStatement<AccountId32>) -> Call {
    Call::DemandReceipt {
        held: Box::new(world.signed(receipt)),
    }
}

fn end_demand(world: &World) -> Call {
    Call::EndDemand {
        provider: world.stash.account().clone(),
        demander: world.payer.account().clone(),
    }
}

#[tokio::test]
async fn a_batch_that_is_late_takes_no_more_of_the_cap_than_its_own_price() {
    let world = World::new(10).await;
    let (late, batched) = world.batch(&world.receipt(0));
    world.commit(&late).await.unwrap();
    world.chain.finalize();
    world.commit(&world.batch(&world.receipt(1)).0).await.unwrap();
    let disputed = dispute(&world, ReceiptSource::Batch(0, batched.clone()));
    let disputed = world.submit(&world.payer, disputed).await.unwrap();
    let standing = world.standing().await;
    assert_eq!((standing.open, standing.unfinished, standing.next), (80, 0, 2));
    world.wait_until(batches(&world).await[1].window.until + 1);
    let standing = world.standing().await;
    assert_eq!((standing.open, standing.unfinished, standing.next), (40, 0, 2));

    // It is open still, but nothing new of it can be disputed.
    let too_late = dispute(&world, ReceiptSource::Batch(0, batched));
    assert_eq!(refused(world.submit(&world.key, too_late).await), "TooLate");
    let round = field(&disputed, "Disputed", "round");
    world.chain.change(|state| state.decide_receipt(round, true));
    let standing = world.standing().await;
    assert_eq!((standing.open, standing.unfinished), (0, 2));
}

#[tokio::test]
async fn while_all_places_for_disputes_are_taken_windows_stand_still() {
    let world = World::new(10).await;
    world.commit(&world.batch(&world.receipt(30)).0).await.unwrap();
    let mut rounds = Vec::new();
    for nonce in 0..16 {
        assert!(batches(&world).await[0].window.until < u32::MAX);
        let disputed = world
            .submit(&world.payer, dispute(&world, signed(&world, nonce)))
            .await;
        rounds.push(field(&disputed.unwrap(), "Disputed", "round"));
    }
    let full = world
        .submit(&world.payer, dispute(&world, signed(&world, 16)))
        .await;
    assert_eq!(refused(full), "TooManyDisputed");
    world.chain.finalize();
    world.commit(&world.batch(&world.receipt(31)).0).await.unwrap();
    world.wait_until(1_000);
    let until = |batch: crate::BatchView| batch.window.until;
    let stand_still: Vec<_> = batches(&world).await.into_iter().map(until).collect();
    assert_eq!(stand_still, [u32::MAX; 2]);
    assert_eq!(world.standing().await.open, 80);

    world
        .chain
        .change(|state| state.decide_receipt(rounds.remove(0), true));
    let rules = world.chain.rules(When::Best).await.unwrap();
    let again = 1_000 + rules.batch_window.max(rules.dispute_window);
    let go_on: Vec<_> = batches(&world).await.into_iter().map(until).collect();
    assert_eq!(go_on, [again; 2]);
}

#[tokio::test]
async fn what_was_counted_is_demanded_and_not_disputed_and_what_says_nothing_is_neither() {
    let world = World::new(10).await;
    let (batch, _) = world.batch(&world.receipt(0));
    world.commit(&batch).await.unwrap();
    world.wait_until(batches(&world).await[0].window.until + 1);
    world
        .submit(&world.agent, world.redemption(60, &[(0, &batch)]))
        .await
        .unwrap();
    let disputed = dispute(&world, signed(&world, 0));
    let refusal = world.submit(&world.payer, disputed).await;
    assert_eq!(refused(refusal), "AlreadyCounted");
    let demanded = demand(&world, world.receipt(0));
    world.submit(&world.payer, demanded).await.unwrap();
    let nothing = ChunkStatement {
        bytes: 0,
        units: 0,
        price: 0,
        ..world.receipt(1)
    };
    let refusal = world.submit(&world.payer, demand(&world, nothing)).await;
    assert_eq!(refused(refusal), "MayNotDemand");
}

#[tokio::test]
async fn a_full_cap_is_no_excuse_for_a_receipt_that_was_signed() {
    let world = World::new(10).await;
    // Together they take the whole cap.
    for nonce in 1..=25 {
        world.commit(&world.batch(&world.receipt(nonce)).0).await.unwrap();
        world.chain.finalize();
    }
    let standing = world.standing().await;
    assert_eq!((standing.open, standing.cap), (1_000, 1_000));
    world
        .submit(&world.payer, demand(&world, world.receipt(0)))
        .await
        .unwrap();
    let early = world.submit(&world.payer, end_demand(&world)).await;
    assert_eq!(refused(early), "WrongTime");
    world.wait_until(demands(&world).await.remove(0).until + 1);
    let ended = world.submit(&world.payer, end_demand(&world)).await.unwrap();
    assert!(ended.event("Channels", "Convicted").is_some());
    assert_eq!(world.funds(&world.payer).await.free, 500);
}

#[tokio::test]
async fn what_was_batched_too_long_ago_is_not_demanded() {
    let world = World::new(10).await;
    for nonce in [0, 30] {
        world.commit(&world.batch(&world.receipt(nonce)).0).await.unwrap();
        let window = batches(&world).await.pop().unwrap().window;
        let kept = world.chain.rules(When::Best).await.unwrap().redeem_by;
        world.wait_until(window.until + kept + 1);
    }
    assert_eq!(world.standing().await.oldest, 1);
    let refusal = world.submit(&world.payer, demand(&world, world.receipt(0))).await;
    assert_eq!(refused(refusal), "TooLate");
}

#[tokio::test]
async fn a_round_that_is_lost_after_the_lock_was_takes_nothing_more() {
    let world = World::new(10).await;
    let disputed = world
        .submit(&world.payer, dispute(&world, signed(&world, 0)))
        .await;
    let round = field(&disputed.unwrap(), "Disputed", "round");
    let other = ChunkStatement {
        end: Some(Ending {
            how: End::Length,
            trace_root: H256([9; 32]),
        }),
        ..world.receipt(1)
    };
    let report = Call::ReportChunkEquivocation {
        equivocation: Box::new(Equivocation {
            one: world.signed(world.receipt(1)),
            other: world.signed(other),
            shown: None,
        }),
    };
    let reported = world.submit(&world.payer, report).await.unwrap();
    let by: Option<AccountId32> = field(&reported, "Convicted", "by");
    assert_eq!(by.as_ref(), Some(world.payer.account()));
    let stand = Call::Stand {
        lock: 1_000,
        cap: 1_000,
    };
    world.submit(&world.stash, stand).await.unwrap();
    world.chain.change(|state| state.decide_receipt(round, false));
    assert_eq!(world.standing().await.lock, 1_000);
}

#[tokio::test]
async fn what_is_demanded_keeps_back_the_pay_until_it_is_shown_and_a_conviction_voids_it() {
    let world = World::new(10).await;
    let (batch, batched) = world.batch(&world.receipt(0));
    world.commit(&batch).await.unwrap();
    world.wait_until(batches(&world).await[0].window.until + 1);
    let demanded = demand(&world, world.receipt(0));
    world.submit(&world.payer, demanded.clone()).await.unwrap();
    let again = world.submit(&world.payer, demanded).await;
    assert_eq!(refused(again), "AlreadyDemanded");
    assert_eq!(world.redeem(60, &[(0, &batch)]).await, 0);
    let show = Call::ShowReceipt {
        demander: world.payer.account().clone(),
        batch: 0,
        receipt: Box::new(batched),
        shown: None,
    };
    let shown = world.submit(&world.agent, show).await.unwrap();
    assert_eq!(field::<u128>(&shown, "Redeemed", "paid"), 40);

    let demanded = demand(&world, world.receipt(1));
    world.submit(&world.payer, demanded).await.unwrap();
    world.wait_until(demands(&world).await.remove(0).until + 1);
    world.submit(&world.payer, end_demand(&world)).await.unwrap();
    let redeem = world.redemption(60, &[]);
    assert_eq!(refused(world.submit(&world.agent, redeem).await), "TooLate");
    let channel = world.channel;
    let closed = world.submit(&world.payer, Call::Close { channel }).await;
    assert_eq!(field::<u128>(&closed.unwrap(), "Closing", "refund"), 460);
}

#[tokio::test]
async fn what_is_batched_beside_what_was_counted_is_shown_once_it_is_final() {
    let world = World::new(10).await;
    // Time to show it after a batch is final, and to count that.
    world
        .chain
        .change(|state| state.channels.rules.supply_window = 200);
    let other = ChunkStatement {
        output: H256([9; 32]),
        ..world.receipt(0)
    };
    let (counted, _) = world.batch(&other);
    world.commit(&counted).await.unwrap();
    world.wait_until(batches(&world).await[0].window.until + 1);
    let demanded = demand(&world, world.receipt(0));
    world.submit(&world.payer, demanded).await.unwrap();
    assert_eq!(world.redeem(60, &[(0, &counted)]).await, 0);

    let (beside, batched) = world.batch(&world.receipt(0));
    world.commit(&beside).await.unwrap();
    let show = Call::ShowReceipt {
        demander: world.payer.account().clone(),
        batch: 1,
        receipt: Box::new(batched),
        shown: None,
    };
    let early = world.submit(&world.agent, show.clone()).await;
    assert_eq!(early.clone().unwrap_err().remedy(), Some(Remedy::Wait));
    assert_eq!(refused(early), "NotSettled");
    world.wait_until(batches(&world).await[1].window.until + 1);
    let shown = world.submit(&world.agent, show).await.unwrap();
    assert_eq!(field::<u128>(&shown, "Redeemed", "paid"), 40);
}

#[tokio::test]
async fn no_more_receipts_are_demanded_at_once_than_may_be() {
    let world = World::new(10).await;
    world.chain.change(|state| state.channels.rules.demand_price = 1);
    for nonce in 0..32 {
        let demanded = demand(&world, world.receipt(nonce));
        world.submit(&world.payer, demanded).await.unwrap();
    }
    let more = world
        .submit(&world.payer, demand(&world, world.receipt(32)))
        .await;
    assert_eq!(refused(more), "TooManyDemands");
}
