//! What is redeemed of a channel, step by step.

use super::*;

/// Time to show what is demanded: what is counted is due after a quarter of it.
const SUPPLY: Time = 40;
const DUE: Time = paid_after(SUPPLY);

fn window(batch: &Batch) -> BatchWindow {
    BatchWindow::new(batch.root(), 100)
}

fn part(batch: &Batch) -> ProvenChannel {
    batch
        .open_channel(CHANNEL)
        .unwrap()
        .verify(&batch.root())
        .unwrap()
}

fn batch(first: Nonce, prices: &[u128]) -> Batch {
    Batch::new(&entries(&[(1, 0, vec![9]), (CHANNEL, first, prices.to_vec())])).unwrap()
}

#[test]
fn nothing_counts_before_its_window_and_its_disputes_are_over() {
    let batch = batch(0, &[3, 4]);
    let (mut window, mut purse) = (window(&batch), Purse::new(CHANNEL, 50, 0));
    assert_eq!(
        purse.count(&window, &part(&batch), 100, SUPPLY),
        Err(NotCounted::NotFinal)
    );
    window.disputes = 1;
    assert_eq!(
        purse.count(&window, &part(&batch), 101, SUPPLY),
        Err(NotCounted::NotFinal)
    );
    window.disputes = 0;
    assert_eq!(purse.redeemable(50, 101, SUPPLY), 0);
    assert_eq!(purse.count(&window, &part(&batch), 101, SUPPLY), Ok(()));
    let mut redeem = |sum| purse.redeem(sum, 101 + DUE, SUPPLY);
    assert_eq!([redeem(5), redeem(5), redeem(50), redeem(50)], [5, 0, 2, 0]);
}

#[test]
fn a_batch_counts_once_and_in_its_turn() {
    let (first, second) = (batch(0, &[3, 4]), batch(2, &[5]));
    let mut purse = Purse::new(CHANNEL, 50, 0);
    let later = purse.count(&window(&second), &part(&second), 200, SUPPLY);
    assert_eq!(later, Err(NotCounted::OtherNonce { next: 0 }));
    assert_eq!(purse.count(&window(&first), &part(&first), 200, SUPPLY), Ok(()));
    let again = purse.count(&window(&first), &part(&first), 200, SUPPLY);
    assert_eq!(again, Err(NotCounted::OtherNonce { next: 2 }));
    assert_eq!(purse.count(&window(&second), &part(&second), 200, SUPPLY), Ok(()));
    assert_eq!((purse.counted, purse.next), (12, 3));
    let other = second.open_channel(1).unwrap().verify(&second.root()).unwrap();
    assert_eq!(
        purse.count(&window(&second), &other, 200, SUPPLY),
        Err(NotCounted::OtherChannel)
    );
}

#[test]
fn what_is_left_out_keeps_back_what_came_after_it() {
    // Requests 0 and 2: the receipt of 1 was wrong, and is not shown.
    let mut purse = Purse::new(CHANNEL, 50, 0);
    for (batch, counts) in [
        (batch(0, &[3]), Ok(())),
        (batch(2, &[5]), Err(NotCounted::OtherNonce { next: 1 })),
    ] {
        assert_eq!(purse.count(&window(&batch), &part(&batch), 200, SUPPLY), counts);
    }
    assert_eq!(purse.redeemable(50, 200 + DUE, SUPPLY), 3);
}

#[test]
fn wrong_receipts_are_not_paid_and_too_many_make_none_of_a_batch_paid() {
    let many = vec![1; STRUCK as usize + 2];
    let batch = batch(0, &many);
    let mut of = window(&batch);
    let shown = |nonce| batch.open(CHANNEL, nonce).unwrap().verify(&batch.root()).unwrap();
    for _ in 0..2 {
        of.strike(shown(1).into());
    }
    // Another channel's is not this one's.
    of.strike(batch.open(1, 0).unwrap().verify(&batch.root()).unwrap().into());
    assert_eq!(of.payable(&part(&batch)), many.len() as u128 - 1);
    let settled = Sums {
        receipts: many.len() as u32 - 1,
        price: many.len() as u128 - 1,
    };
    assert_eq!(of.settled(), settled);
    for nonce in 0..STRUCK - 1 {
        of.strike(shown(nonce).into());
    }
    assert_eq!((of.is_void, of.payable(&part(&batch))), (false, 3));
    of.strike(shown(STRUCK).into());
    assert_eq!((of.is_void, of.payable(&part(&batch))), (true, 0));
    assert_eq!(of.settled(), Sums::default());
    let mut void = window(&batch);
    void.void();
    let mut purse = Purse::new(CHANNEL, 50, 0);
    assert_eq!(purse.count(&void, &part(&batch), 200, SUPPLY), Ok(()));
    // Its requests are over all the same.
    assert_eq!((purse.pending(50), purse.next), (0, many.len() as u32));
}

/// As many as are struck out one by one.
const STRUCK: u32 = window::STRUCK_MAX;

#[test]
fn a_standing_lock_covers_so_much_at_a_time() {
    let mut standing = Standing { cap: 10, open: 0 };
    assert_eq!(
        (standing.commit(6), standing.commit(5)),
        (Ok(()), Err(BeyondCap { room: 4 }))
    );
    assert_eq!(standing.commit(u128::MAX), Err(BeyondCap { room: 4 }));
    standing.finish(6);
    assert_eq!(standing.commit(10), Ok(()));
    standing.cap = 0;
    assert_eq!(standing.commit(1), Err(BeyondCap { room: 0 }));
}

#[test]
fn nothing_goes_back_before_the_payee_has_had_its_time() {
    let mut purse = Purse::new(CHANNEL, 50, 0);
    assert_eq!(purse.refund(1_000, 1_000), None);
    assert_eq!(purse.refund(1_001, 1_000), Some(50));
    purse.close(500);
    purse.close(3);
    assert_eq!(purse.refund(500, 1_000), None, "asking again has moved it");
    assert_eq!(purse.top_up(5, 200, SUPPLY), Err(Closed));
    let batch = batch(0, &[30]);
    purse.count(&window(&batch), &part(&batch), 400, SUPPLY).unwrap();
    assert_eq!(
        purse.redeem(20, 400 + DUE, SUPPLY),
        20,
        "what is redeemed meanwhile is paid"
    );
    assert_eq!(purse.refund(501, 1_000), Some(30));
}

#[test]
fn what_the_payee_gives_back_goes_back_at_once_and_the_channel_ends_no_sooner() {
    let mut purse = Purse::new(CHANNEL, 50, 0);
    let batch = batch(0, &[30]);
    purse.count(&window(&batch), &part(&batch), 400, SUPPLY).unwrap();
    assert_eq!(purse.redeem(20, 400 + DUE, SUPPLY), 20);
    assert_eq!(purse.give_back(500, 0), 30);
    assert_eq!((purse.pending(50), purse.give_back(900, 0)), (0, 0));
    // It may have been asked for all of it: others see that it is not counted.
    assert_eq!((purse.deposit, purse.uncounted()), (20, 20));
    assert_eq!(purse.top_up(5, 200, SUPPLY), Err(Closed));
    assert_eq!(
        (purse.refund(500, 1_000), purse.refund(501, 1_000)),
        (None, Some(0))
    );
    assert_eq!((purse.last(1_000), purse.last(450)), (500, 450));
}

#[test]
fn a_part_of_what_is_given_back_is_nobodys_until_the_channel_ends() {
    let mut purse = Purse::new(CHANNEL, 50, 0);
    let batch = batch(0, &[45]);
    assert_eq!(purse.give_back(500, 10), 40);
    assert_eq!((purse.deposit, purse.returned, purse.held()), (0, 50, 10));
    // Its payee gets nothing of that, and who asks again neither more nor less of it.
    purse.count(&window(&batch), &part(&batch), 400, SUPPLY).unwrap();
    assert_eq!(purse.redeem(50, 400 + DUE, SUPPLY), 0);
    assert_eq!((purse.give_back(900, 10), purse.held()), (0, 10));
    assert_eq!(
        (purse.refund(500, 1_000), purse.refund(501, 1_000)),
        (None, Some(10))
    );
    // Of one that has less left all of that is kept.
    let mut poor = Purse::new(CHANNEL, 50, 0);
    poor.count(&window(&batch), &part(&batch), 400, SUPPLY).unwrap();
    assert_eq!(poor.redeem(50, 400 + DUE, SUPPLY), 45);
    assert_eq!((poor.give_back(500, 10), poor.refund(501, 1_000)), (0, Some(5)));
}

#[test]
fn a_payer_does_not_get_back_by_disputes_what_it_has_to_pay() {
    let mut purse = Purse::new(CHANNEL, 50, 0);
    purse.close(500);
    let batch = batch(0, &[30]);
    let mut of = window(&batch);
    of.disputes = 1;
    assert_eq!(purse.hold(&of, &part(&batch), 499, 700), Ok(()));
    assert_eq!(
        purse.hold(&of, &part(&batch), 499, 600),
        Ok(()),
        "an earlier time changes nothing"
    );
    assert_eq!((purse.refund(700, 1_000), purse.refund(700, 650)), (None, None));
    of.disputes = 0;
    assert_eq!(purse.hold(&of, &part(&batch), 699, 900), Err(NotHeld::Final));
    purse.count(&of, &part(&batch), 699, SUPPLY).unwrap();
    let paid = purse.redeem(30, 699 + DUE, SUPPLY);
    assert_eq!((paid, purse.refund(701, 1_000)), (30, Some(20)));
    // Held by what is not of it, or was counted: by nothing.
    of.disputes = 1;
    assert_eq!(purse.hold(&of, &part(&batch), 699, 900), Err(NotHeld::Counted));
    let other = batch.open_channel(1).unwrap().verify(&batch.root()).unwrap();
    assert_eq!(purse.hold(&of, &other, 699, 900), Err(NotHeld::OtherChannel));
}

#[test]
fn sums_beyond_counting_change_nothing() {
    let mut purse = Purse::new(CHANNEL, u128::MAX, 0);
    assert_eq!(purse.top_up(1, 200, SUPPLY), Err(Closed));
    purse.counted = u128::MAX;
    let batch = batch(0, &[1]);
    let before = purse;
    assert_eq!(
        purse.count(&window(&batch), &part(&batch), 200, SUPPLY),
        Err(NotCounted::Overflow)
    );
    assert_eq!(purse, before);
    purse.counts = Seasoned::since(u128::MAX, 0);
    assert_eq!(purse.redeem(u128::MAX, 200, SUPPLY), u128::MAX);
    assert_eq!(purse.redeem(u128::MAX, 200, SUPPLY), 0);
}

#[test]
fn what_is_counted_is_paid_a_while_later_and_not_while_anything_is_demanded() {
    let mut purse = Purse::new(CHANNEL, 50, 0);
    let batch = batch(0, &[30]);
    purse.count(&window(&batch), &part(&batch), 200, SUPPLY).unwrap();
    assert_eq!(purse.due_at(200, SUPPLY), Some(200 + DUE));
    assert_eq!((purse.redeem(40, 199 + DUE, SUPPLY), purse.pending(0)), (0, 30));
    purse.demand(900);
    purse.demand(700);
    assert_eq!(purse.redeem(40, 200 + DUE, SUPPLY), 0);
    // Nor does it end meanwhile, nor before what was waited for.
    assert_eq!(purse.refund(2_000, 1_000), None);
    purse.end_demand();
    assert_eq!(purse.redeem(40, 200 + DUE, SUPPLY), 0);
    purse.end_demand();
    assert_eq!((purse.refund(900, 600), purse.refund(901, 600)), (None, Some(50)));
    // Of the best voucher that was shown.
    assert_eq!(purse.redeem(0, 200 + DUE, SUPPLY), 30);
    assert_eq!((purse.pending(40), purse.due_at(200 + DUE, SUPPLY)), (0, None));
}

#[test]
fn no_demand_keeps_back_for_ever_what_was_counted() {
    let mut purse = Purse::new(CHANNEL, 50, 0);
    let (first, second) = (batch(0, &[30]), batch(1, &[9]));
    purse.count(&window(&first), &part(&first), 200, SUPPLY).unwrap();
    purse.demand(900);
    let later = 200 + kept_back_for(SUPPLY);
    assert_eq!(purse.redeem(50, later - 1, SUPPLY), 0);
    purse
        .count(&window(&second), &part(&second), later, SUPPLY)
        .unwrap();
    assert_eq!(purse.redeem(50, later, SUPPLY), 30);
    assert_eq!(purse.redeem(50, later + DUE, SUPPLY), 0);
    purse.end_demand();
    assert_eq!(purse.redeem(50, later + DUE, SUPPLY), 9);
}

#[test]
fn a_deposit_has_stood_for_a_season_after_one_and_what_is_given_back_has_not() {
    let season = deposit_season(SUPPLY);
    let mut purse = Purse::new(CHANNEL, 50, 100);
    let stood = |purse: &Purse, now| purse.stood(now, SUPPLY);
    assert_eq!(stood(&purse, 99 + season), 0);
    purse.top_up(20, 100 + season, SUPPLY).unwrap();
    assert_eq!(stood(&purse, 100 + season), 50);
    assert_eq!(stood(&purse, 100 + 2 * season), 70);
    purse.give_back(900, 0);
    assert_eq!(stood(&purse, 100 + 2 * season), 0);
}
