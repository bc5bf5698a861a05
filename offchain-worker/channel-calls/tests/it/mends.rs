//! What must not hold up the pay of a channel for ever.

use crate::{support::*, world::World};
use surety_channel_calls::{
    payee::{BatchLimits, Duty, PayeeLimits, RedeemPolicy},
    *,
};
use surety_channels::*;

/// Receipts of a channel whose first answer goes on, and whose second is over.
fn held_back() -> (World, Nonce) {
    let (mut world, long) = World::answering(10_000, text(10, 100, 0, 16));
    world.compute(long, 16);
    world.tell_payer(long);
    world.tell_payer(long);
    answer_next_to_others(&mut world);
    assert_eq!(world.payee.unbatched(), (0, 0));
    (world, long)
}

#[test]
fn an_answer_that_takes_too_long_is_cut_and_keeps_no_receipt_back_any_more() {
    let (mut world, long) = held_back();
    // The next chunk is paid for: nobody is late but the engine.
    world.tell_payee(long);
    world.payee_does(|payee| payee.tick(0));
    let most = PayeeLimits::default().answer_max;
    world.payee_does(|payee| payee.tick(most - 1));
    assert!(world.payee.is_open(CHANNEL, long));
    world.payee_does(|payee| payee.tick(most));
    assert!(!world.payee.is_open(CHANNEL, long));
    assert_eq!(world.payee.unbatched(), (2, (26 + 15) * TOKEN));
    world.batch();
    let receipt = world.shown(long).batched.statement;
    assert_eq!((receipt.units, receipt.end.unwrap().how), (26, End::Cut));
    world.assert_no_clash();
}

#[test]
fn an_answer_over_a_channel_that_ends_is_cut_in_time_for_its_batch() {
    let (mut world, long) = held_back();
    world.seen.purse.close(100);
    let seen = world.seen.clone();
    world.payee_does(|payee| payee.end_in_time(&seen, 69, 30));
    assert!(world.payee.is_open(CHANNEL, long));
    world.payee_does(|payee| payee.end_in_time(&seen, 70, 30));
    assert!(!world.payee.is_open(CHANNEL, long));
    world.batch();
    world.clock = 100;
    assert_eq!(world.redeem(), (26 + 15) * TOKEN);
}

#[test]
fn an_answer_that_no_batch_could_have_the_receipt_of_is_not_taken() {
    let mut world = World::new(10_000);
    world.payee.limit_receipts(109 * TOKEN);
    world.ask(text(10, 100, 0, 16)).unwrap();
    world.settle();
    let price_max = 109 * TOKEN;
    assert_eq!(world.refused, [(0, Refusal::TooDear { price_max }, false)]);
    world.ask(text(10, 99, 0, 16)).unwrap();
    world.settle();
    assert_eq!(world.done[&0].statement.price, price_max);
}

#[test]
fn the_receipts_of_a_batch_that_is_taken_back_go_into_others() {
    let mut world = World::answered(100_000, &text(10, 20, 0, 16), 3);
    let make = |world: &mut World, price_max| {
        let receipts_max = 100;
        let limits = BatchLimits {
            receipts_max,
            price_max,
        };
        // Nobody commits it.
        let step = world.payee.make_batch(&limits);
        step.commit(&world.payee_disk).unwrap();
        world.payee.uncommitted()
    };
    let all = make(&mut world, u128::MAX).unwrap();
    assert_eq!(make(&mut world, u128::MAX), Some(all), "one at a time");
    let back = world.payee.recall(&all);
    back.commit(&world.payee_disk).unwrap();
    assert_eq!(world.payee.uncommitted(), None);
    let less = make(&mut world, 60 * TOKEN).unwrap();
    assert_eq!((all.sums.receipts, less.sums.receipts), (3, 2));
    // What is taken back by mistake is another one.
    world.payee_does(|payee| payee.recall(&all));
    assert_eq!(world.payee.uncommitted(), Some(less));
    // The disk knows the same.
    world.restart_payee();
    assert_eq!(world.roots, [less]);
    world.batch();
    world.clock = 100;
    let mut paid = 0;
    for _ in 0..2 {
        paid += world.redeem();
    }
    assert_eq!(paid, 90 * TOKEN);
    world.assert_no_clash();
}

/// What comes behind words that are wrong is never paid: it binds nothing of what may be sold, and there is
/// no more of it. What came before them is paid as ever.
#[test]
fn behind_words_that_are_wrong_nothing_is_answered_over_their_channel() {
    let mut world = World::answered(10_000, &text(10, 5, 0, 16), 1);
    let long = world.ask(text(10, 100, 0, 16)).unwrap();
    world.tell_payee(long);
    world.compute(long, 16);
    world.tell_payer(long);
    world.tell_payer(long);
    answer_next_to_others(&mut world);
    assert_eq!(world.payee.at_risk(), (15 + 110 + 15) * TOKEN);
    world.payee_does(|payee| payee.contradicted(CHANNEL, long));
    assert_eq!(world.payee.open_calls().count(), 0);
    assert_eq!(world.payee.at_risk(), 15 * TOKEN);
    assert_eq!(world.payee.unbatched(), (1, 15 * TOKEN));
    world.ask(text(10, 5, 0, 16)).unwrap();
    world.settle();
    let is_refused = matches!(world.refused[..], [(_, Refusal::Closing, _)]);
    assert!(is_refused, "{:?}", world.refused);
    // The next start asks again for a trace that there is not.
    let opened = Payee::open(payee_config(), world.payee_disk.rows(), CHANNEL + 100);
    let effects = opened.unwrap().1.commit(&Disk::default()).unwrap();
    let traced = effects.iter().filter_map(|effect| match effect {
        PayeeEffect::Trace { nonce, .. } => Some(*nonce),
        _ => None,
    });
    assert_eq!(traced.collect::<Vec<_>>(), [long]);
    world.batch();
    world.clock = 100;
    let paid: u128 = (0..3).map(|_| world.redeem()).sum();
    assert_eq!(paid, 15 * TOKEN);
}

#[test]
fn what_is_sold_can_change_and_what_was_taken_goes_on() {
    let (mut world, nonce) = World::answering(10_000, text(10, 20, 0, 16));
    let mut offers = payee_config().offers;
    offers[0].unit_price = TOKEN + 1;
    world.payee.sell(offers);
    world.settle();
    assert_eq!(world.done[&nonce].statement.price, 30 * TOKEN);
    let next = world.ask(text(10, 20, 0, 16)).unwrap();
    world.settle();
    let unit_price = TOKEN + 1;
    assert_eq!(world.refused, [(next, Refusal::Price { unit_price }, false)]);
}

#[test]
fn who_hangs_up_before_the_first_chunk_has_paid_for_it() {
    let (mut world, nonce) = World::answering(10_000, text(10, 100, 0, 16));
    world.drop_connection(nonce);
    world.payee_does(|payee| payee.leave(CHANNEL, nonce));
    assert!(world.payee.is_open(CHANNEL, nonce));
    world.compute(nonce, 16);
    assert!(!world.payee.is_open(CHANNEL, nonce));
    world.batch();
    let receipt = world.shown(nonce).batched.statement;
    assert_eq!((receipt.units, receipt.end.unwrap().how), (26, End::Cut));
    world.clock = 100;
    assert_eq!(world.redeem(), 26 * TOKEN);
    // One of which something was said ends at once.
    let next = world.ask(text(10, 100, 0, 16)).unwrap();
    world.tell_payee(next);
    world.compute(next, 16);
    world.payee_does(|payee| payee.leave(CHANNEL, next));
    assert!(!world.payee.is_open(CHANNEL, next));
    world.assert_no_clash();
}

#[test]
fn a_receipt_of_nothing_is_batched_when_it_is_demanded_and_counted_before_its_batch_goes() {
    let (mut world, nonce) = World::answering(10_000, text(10, 100, 0, 16));
    world.payee_does(|payee| payee.abandon(CHANNEL, nonce));
    world.batch();
    assert!(world.roots.is_empty(), "it is worth no fee");
    let limits = BatchLimits {
        receipts_max: 100,
        price_max: 0,
    };
    world.payee_does(|payee| payee.make_demanded_batch(&limits, &[(CHANNEL, nonce)]));
    assert_eq!(world.shown(nonce).batched.statement.price, 0);
    let duties = |world: &World, clock| world.payee.duties(&world.seen, &world.windows, clock, &POLICY);
    let half = world.windows[&0].until + POLICY.redeem_by / 2;
    assert_eq!(duties(&world, half - 1), []);
    let due = duties(&world, half);
    let [
        Duty::Redeem {
            amount: 0, openings, ..
        },
    ] = &due[..]
    else {
        panic!("{due:?}")
    };
    assert_eq!(openings.len(), 1);
}

#[test]
fn what_is_not_worth_its_fee_is_counted_before_its_batch_goes() {
    let mut world = World::new(10_000);
    world.ask(text(10, 5, 0, 16)).unwrap();
    world.settle();
    world.batch();
    let patient = RedeemPolicy {
        amount_min: u128::MAX,
        ..POLICY
    };
    let until = world.windows[&0].until;
    let duties = |clock| world.payee.duties(&world.seen, &world.windows, clock, &patient);
    assert_eq!(duties(until + POLICY.redeem_by / 2 - 1), []);
    assert_eq!(duties(until + POLICY.redeem_by / 2).len(), 1);
}
