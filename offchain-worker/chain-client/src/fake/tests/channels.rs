//! Lives of channels, batches and receipts over the fake chain.

mod points;
mod windows;
mod world;

use sp_core::{H256, crypto::AccountId32};
use surety_channels::{ChunkStatement, Equivocation, SignedChunkStatement};
use surety_types::model::Operation;

use crate::{Call, ChannelChain, Funds, ReceiptSource, Remedy, When};
use world::*;

#[tokio::test]
async fn a_payee_is_paid_what_final_batches_have_and_the_rest_goes_back() {
    let world = World::new(10).await;
    assert_eq!(world.funds(&world.payer).await, Funds { free: 500, held: 0 });
    let channels = world.chain.channels_by(When::Best, world.payer.account()).await;
    let channels = channels.unwrap();
    assert_eq!(channels.len(), 1);
    assert_eq!(channels[0].purse.deposit, 500);
    let by_payee = world.chain.channels_of(When::Best, world.stash.account()).await;
    assert_eq!(by_payee.unwrap(), channels);

    let (batch, _) = world.batch(&world.receipt(0));
    world.commit(&batch).await.unwrap();
    let again = world.commit(&batch).await;
    assert_eq!(again.clone().unwrap_err().remedy(), Some(Remedy::Wait));
    assert_eq!(refused(again), "OneABlock");
    assert_eq!(world.standing().await.open, 40);

    let early = world
        .submit(&world.agent, world.redemption(60, &[(0, &batch)]))
        .await;
    assert_eq!(refused(early), "NotCounted");
    let batches = world
        .chain
        .batches(When::Best, world.stash.account())
        .await
        .unwrap();
    world.wait_until(batches[0].window.until + 1);
    // Nobody has called anything: it is final by time alone.
    assert_eq!(world.standing().await.open, 0);
    assert_eq!(world.redeem(60, &[(0, &batch)]).await, 40);
    assert_eq!(world.funds(&world.stash).await.free, 40);
    let twice = world
        .submit(&world.agent, world.redemption(60, &[(0, &batch)]))
        .await;
    assert_eq!(refused(twice), "NotCounted");
    let above = world.submit(&world.agent, world.redemption(501, &[])).await;
    assert_eq!(refused(above), "BadVoucher");

    let channel = world.channel;
    let by_another = world.submit(&world.key, Call::Close { channel }).await;
    assert_eq!(refused(by_another), "NotPayer");
    world.submit(&world.payer, Call::Close { channel }).await.unwrap();
    let early = world.submit(&world.payer, Call::End { channel }).await;
    assert_eq!(refused(early), "NotOver");
    let agreed = world.submit(&world.agent, Call::CloseAgreed { channel }).await;
    let agreed = agreed.unwrap();
    assert_eq!(field::<u128>(&agreed, "ClosedByPayee", "refund"), 450);
    assert_eq!(world.funds(&world.payer).await, Funds { free: 950, held: 0 });
    // It answers for what it has signed until the channel ends.
    assert_eq!(world.standing().await.channels, 1);
    world.wait_until(field::<u32>(&agreed, "ClosedByPayee", "until") + 1);
    let ended = world.submit(&world.key, Call::End { channel }).await;
    assert_eq!(field::<u128>(&ended.unwrap(), "Ended", "refund"), 10);
    assert_eq!(world.chain.channel(When::Best, channel).await, Ok(None));
    assert_eq!(world.standing().await.channels, 0);
}

#[tokio::test]
async fn a_channel_that_its_payer_closes_is_over_when_the_payee_s_time_is() {
    let world = World::new(10).await;
    let channel = world.channel;
    let more = Call::TopUp { channel, amount: 5 };
    world.submit(&world.payer, more.clone()).await.unwrap();
    let later = Call::Extend {
        channel,
        expiry: EXPIRY + 1,
    };
    world.submit(&world.payer, later.clone()).await.unwrap();
    let closing = world.submit(&world.payer, Call::Close { channel }).await.unwrap();
    for too_late in [more, later] {
        assert_eq!(refused(world.submit(&world.payer, too_late).await), "Closing");
    }
    world.wait_until(field::<u32>(&closing, "Closing", "until") + 1);
    let ended = world.submit(&world.agent, Call::End { channel }).await.unwrap();
    assert_eq!(field::<u128>(&ended, "Ended", "refund"), 505);
}

#[tokio::test]
async fn a_late_batch_holds_the_payer_s_money_back() {
    let world = World::new(10).await;
    let channel = world.channel;
    world.submit(&world.payer, Call::Close { channel }).await.unwrap();
    let until = world
        .chain
        .change(|state| state.clock + state.channels.rules.closing_period);
    world.wait_until(until - 1);
    let (batch, _) = world.batch(&world.receipt(0));
    world.commit(&batch).await.unwrap();
    let hold = Call::Hold {
        channel,
        batch: 0,
        opening: batch.open_channel(channel).unwrap(),
    };
    assert_eq!(
        refused(world.submit(&world.payer, hold.clone()).await),
        "NotPayee"
    );
    world.submit(&world.agent, hold).await.unwrap();
    let window = world.chain.change(|state| state.channels.rules.batch_window);
    world.wait_until(until + window);
    let early = world.submit(&world.payer, Call::End { channel }).await;
    assert_eq!(refused(early), "NotOver");
    assert_eq!(world.redeem(60, &[(0, &batch)]).await, 40);
}

#[tokio::test]
async fn offers_say_what_they_cost_and_what_can_still_be_sold() {
    let world = World::new(10).await;
    let (model, operation) = (H256([1; 32]), Operation::Embed);
    let offer = |unit_price, places| Call::Offer {
        model,
        operation,
        unit_price,
        places,
        region: "DE".parse().ok(),
    };
    let by_agent = world.submit(&world.agent, offer(3, 2)).await;
    assert_eq!(refused(by_agent), "NotStanding");
    world.submit(&world.stash, offer(3, 2)).await.unwrap();
    let busy = |busy| Call::ReportBusy {
        model,
        operation,
        busy,
    };
    assert_eq!(refused(world.submit(&world.agent, busy(3)).await), "TooBusy");
    world.submit(&world.agent, busy(2)).await.unwrap();
    let again = world.submit(&world.agent, busy(1)).await;
    assert_eq!(refused(again), "ReportedAlready");
    world.commit(&world.batch(&world.receipt(0)).0).await.unwrap();

    let seen = || async { world.chain.offers(When::Best).await.unwrap() };
    let one = seen().await.remove(0);
    assert_eq!((one.unit_price, one.places, one.busy, one.room), (3, 2, 2, 960));
    assert_eq!(one.signers, vec![world.agent.account().clone()]);
    assert_eq!(one.region.map(|region| region.to_string()), Some("DE".into()));
    assert_eq!((one.record.settled.receipts, one.record.batches), (0, 0));
    let window = world.chain.rules(When::Best).await.unwrap().batch_window;
    world.chain.change(|state| state.clock += window + 1);
    let record = seen().await[0].record;
    assert_eq!((record.settled.price, record.batches), (40, 1));
    let bond = world.chain.dispute_bond(When::Best).await;
    assert_eq!(bond, Ok(1_000 / 8));
    world.chain.change(|state| {
        state.channels.pool_prices.insert((model, operation), 7);
    });
    assert_eq!(seen().await[0].unit_price, 7);
    let pool = world.chain.pools(When::Best).await.unwrap().remove(0);
    assert_eq!((pool.price, pool.places, pool.busy), (7, 2, 2));

    // What is sold may still have to be looked at.
    let withdraw = Call::WithdrawOffer { model, operation };
    let early = world.submit(&world.stash, withdraw).await.unwrap_err();
    assert_eq!(early.remedy(), Some(Remedy::Wait));
    world.submit(&world.stash, offer(3, 0)).await.unwrap();
    assert_eq!(seen().await[0].places, 0);
    let less = Call::Stand { lock: 500, cap: 500 };
    assert_eq!(refused(world.submit(&world.stash, less).await), "InUse");
    // Nothing new comes to who wants its lock back.
    let leave = Call::Stand { lock: 0, cap: 0 };
    world.submit(&world.stash, leave.clone()).await.unwrap();
    assert_eq!(refused(world.submit(&world.stash, leave).await), "InUse");
    assert!(world.standing().await.is_leaving && seen().await.is_empty());
    let channel = world.channel;
    let top_up = Call::TopUp { channel, amount: 5 };
    assert_eq!(refused(world.submit(&world.payer, top_up).await), "Leaving");
}

#[tokio::test]
async fn a_receipt_that_is_demanded_is_shown_or_costs_the_lock() {
    let world = World::new(10).await;
    let receipt = world.receipt(0);
    let held = || Box::new(world.signed(receipt.clone()));
    let demand = || Call::DemandReceipt { held: held() };
    let by_another = world.submit(&world.agent, demand()).await;
    assert_eq!(refused(by_another), "MayNotDemand");
    world.submit(&world.payer, demand()).await.unwrap();
    let price = world.chain.rules(When::Best).await.unwrap().demand_price;
    assert_eq!(world.funds(&world.payer).await.free, 500 - price);

    let (batch, batched) = world.batch(&receipt);
    world.commit(&batch).await.unwrap();
    let show = Call::ShowReceipt {
        demander: world.payer.account().clone(),
        batch: 0,
        receipt: Box::new(batched),
        shown: None,
    };
    world.submit(&world.agent, show.clone()).await.unwrap();
    assert_eq!(refused(world.submit(&world.agent, show).await), "NotDemanded");
    assert_eq!(world.funds(&world.payer).await.free, 500 - price / 2);
    assert_eq!(world.funds(&world.stash).await.free, price / 2);

    world.submit(&world.payer, demand()).await.unwrap();
    let open = ChannelChain::demands(&world.chain, When::Best, world.stash.account()).await;
    let open = open.unwrap().remove(0);
    let end = Call::EndDemand {
        provider: open.provider,
        demander: open.demander,
    };
    let early = world.submit(&world.payer, end.clone()).await;
    assert_eq!(refused(early), "WrongTime");
    world.wait_until(open.until + 1);
    let ended = world.submit(&world.payer, end).await.unwrap();
    assert!(ended.event("Channels", "Convicted").is_some());
    let standing = world.standing().await;
    assert_eq!((standing.lock, standing.demands), (0, 0));
    let batches = world.chain.batches(When::Best, world.stash.account()).await;
    assert!(batches.unwrap()[0].window.is_void);
    let stopped = world.commit(&batch).await;
    assert_eq!(refused(stopped), "NotStanding");
}

#[tokio::test]
async fn a_disputed_receipt_keeps_its_batch_from_being_final() {
    let world = World::new(10).await;
    let (batch, batched) = world.batch(&world.receipt(0));
    world.commit(&batch).await.unwrap();
    let dispute = || Call::Dispute {
        receipt: Box::new(ReceiptSource::Batch(0, batched.clone())),
        request: Box::new(world.request()),
        head: None,
    };
    let disputed = world.submit(&world.payer, dispute()).await.unwrap();
    assert_eq!(
        refused(world.submit(&world.key, dispute()).await),
        "AlreadyDisputed"
    );
    let until = world
        .chain
        .batches(When::Best, world.stash.account())
        .await
        .unwrap()[0]
        .window
        .until;
    world.wait_until(until + 1);
    let redeem = || world.redemption(60, &[(0, &batch)]);
    assert_eq!(refused(world.submit(&world.agent, redeem()).await), "NotCounted");
    let round = field(&disputed, "Disputed", "round");
    world.chain.change(|state| state.decide_receipt(round, true));
    assert_eq!(world.redeem(60, &[(0, &batch)]).await, 40);
}

#[tokio::test]
async fn who_says_two_things_loses_its_lock() {
    let world = World::new(10).await;
    let one = world.signed(world.receipt(0));
    let other = world.signed(ChunkStatement {
        output: H256([9; 32]),
        ..world.receipt(0)
    });
    let report = |other: &SignedChunkStatement<AccountId32>| Call::ReportChunkEquivocation {
        equivocation: Box::new(Equivocation {
            one: one.clone(),
            other: other.clone(),
            shown: None,
        }),
    };
    assert_eq!(refused(world.submit(&world.payer, report(&one)).await), "NoFault");
    world.submit(&world.payer, report(&other)).await.unwrap();
    assert_eq!(world.standing().await.lock, 0);
    assert_eq!(
        refused(world.submit(&world.payer, report(&other)).await),
        "TooLate"
    );
}
