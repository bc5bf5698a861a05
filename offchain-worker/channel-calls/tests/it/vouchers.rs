//! Vouchers that are lost with a connection, or refused: they are sent again.

use crate::{support::*, world::World};
use surety_channel_calls::*;
use surety_channels::*;

fn taken(world: &mut World, tokens: u32) -> Nonce {
    let nonce = world.ask(text(10, tokens, 0, 16)).unwrap();
    assert!(world.tell_payee(nonce) && world.tell_payer(nonce));
    nonce
}

fn is_whole(world: &World, nonce: Nonce) {
    let wanted = &world.asked[&nonce];
    assert_eq!(world.got[&nonce], answer(&wanted.request, &wanted.input).0);
    assert_eq!(world.done[&nonce].statement.end.unwrap().how, End::Length);
}

#[test]
fn a_voucher_that_was_lost_with_its_connection_is_sent_again_over_one_that_lasts() {
    let mut world = World::new(10_000);
    let (one, other) = (taken(&mut world, 100), taken(&mut world, 100));
    // The first takes what was signed for the other: two chunks of it are said before anything is paid again.
    world.compute(one, 16);
    world.compute(one, 16);
    world.compute(other, 16);
    assert_eq!(world.payee.account(CHANNEL), Some((52 * TOKEN, 42 * TOKEN)));
    while world.tell_payer(one) {}
    assert_eq!(world.payer.signed(), (10 + 48 + 26) * TOKEN);
    // What pays for all of it goes with the first's connection.
    world.drop_connection(one);
    world.payee_does(|payee| payee.abandon(CHANNEL, one));
    world.settle();
    is_whole(&world, other);
    assert!(world.sums.is_sorted());
}

#[test]
fn a_voucher_that_an_ended_answer_may_not_have_read_is_sent_again_over_one_that_lasts() {
    let mut world = World::new(10_000);
    let (one, other) = (taken(&mut world, 40), taken(&mut world, 100));
    for _ in 0..3 {
        world.compute(one, 16);
        world.tell_payer(one);
    }
    // The payee is done with a connection, and has read none of the vouchers that came over it.
    assert_eq!(world.payee.account(CHANNEL), Some((52 * TOKEN, 50 * TOKEN)));
    world.compute(other, 16);
    assert!(world.done.contains_key(&one));
    world.settle();
    is_whole(&world, other);
}

#[test]
fn a_voucher_that_an_ended_answer_may_not_have_read_is_sent_again_over_one_that_is_taken_later() {
    let mut world = World::new(10_000);
    let one = taken(&mut world, 40);
    let other = world.ask(text(10, 100, 0, 16)).unwrap();
    // The payee has taken it, and the payer has not heard so.
    assert!(world.tell_payee(other));
    for _ in 0..3 {
        world.compute(one, 16);
        world.tell_payer(one);
    }
    assert_eq!(world.payee.account(CHANNEL), Some((52 * TOKEN, 50 * TOKEN)));
    assert!(world.done.contains_key(&one) && !world.got.contains_key(&other));
    world.settle();
    is_whole(&world, other);
}

#[test]
fn what_was_signed_for_a_request_that_was_refused_is_carried_by_the_answers_that_go_on() {
    let mut world = World::new(10_000);
    let nonce = taken(&mut world, 100);
    let refused = world.ask(text(10, 600, 0, 60)).unwrap();
    let (spent, why) = (26 * TOKEN, Refusal::Busy);
    world.payer_does(|payer| payer.hear(refused, FromPayee::Refused { nonce: refused, why }));
    world.drop_connection(refused);
    assert_eq!((world.payer.spent(), world.payer.signed()), (spent, 96 * TOKEN));
    world.settle();
    is_whole(&world, nonce);
}

#[test]
fn a_voucher_that_the_payee_cannot_take_yet_is_taken_when_it_is_sent_again() {
    let mut world = World::new(30 * TOKEN);
    let nonce = taken(&mut world, 100);
    // The payer has seen the block with its money, the payee has not.
    let (more, clock) = (terms(10_000), world.clock);
    world.payer.see(more, vec![account(AGENT)], clock);
    world.settle();
    let deposit = 30 * TOKEN;
    let why = Refusal::Voucher(VoucherRefusal::AboveDeposit { deposit });
    assert_eq!(world.refused, [(nonce, why, true)]);
    // Too early.
    world.payer_does(|payer| payer.pay_again(nonce));
    world.settle();
    assert_eq!(world.refused.len(), 2);
    world.top_up(10_000 - deposit);
    let seen = world.seen.clone();
    world.payee.see(&seen);
    world.payer_does(|payer| payer.pay_again(nonce));
    world.settle();
    is_whole(&world, nonce);
    assert_eq!(world.payer.signed(), 110 * TOKEN);
    // Nothing is sent again for what is over.
    let sums = world.sums.len();
    world.payer_does(|payer| payer.pay_again(nonce));
    assert_eq!(world.sums.len(), sums);
}

#[test]
fn a_refusal_that_will_not_pass_is_not_worth_sending_again() {
    let mut world = World::new(30 * TOKEN);
    let nonce = taken(&mut world, 20);
    for why in [
        Refusal::BadSignature,
        Refusal::Voucher(VoucherRefusal::AboveDeposit { deposit: 30 * TOKEN }),
    ] {
        world.payer_does(|payer| payer.hear(nonce, FromPayee::Refused { nonce, why }));
        assert_eq!(world.refused.last(), Some(&(nonce, why, false)));
    }
    // The answer goes on all the same, as far as what was signed pays for it.
    world.settle();
    assert!(world.got[&nonce].len() >= 16 * 4);
}

#[test]
fn an_answer_that_nobody_reads_is_not_paid_ahead_and_takes_nothing_from_others() {
    let mut world = World::new(10_000);
    let alone = taken(&mut world, 100);
    world.payer.pause(alone);
    world.settle();
    // The chunk that was asked with, and no voucher since.
    assert_eq!(world.got[&alone].len(), 16 * 4);
    assert_eq!((world.payer.spent(), world.sums.len()), (26 * TOKEN, 1));
    world.payer_does(|payer| payer.resume(alone));
    world.settle();
    is_whole(&world, alone);

    // What one that is paused takes of another's money is signed for, too: both go on.
    let mut world = World::new(10_000);
    let (paused, other) = (taken(&mut world, 100), taken(&mut world, 100));
    world.payer.pause(paused);
    world.settle();
    is_whole(&world, other);
    assert!(world.payer.spent() <= 220 * TOKEN);
    world.payer_does(|payer| payer.resume(paused));
    world.settle();
    is_whole(&world, paused);
    assert_eq!(world.payer.signed(), 220 * TOKEN);
}

#[test]
fn what_was_on_its_way_when_an_answer_was_cancelled_keeps_no_other_waiting() {
    let mut world = World::new(10_000);
    let (one, other) = (taken(&mut world, 100), taken(&mut world, 100));
    // It takes what was signed for the other, and is cancelled before that is heard.
    world.compute(one, 16);
    world.compute(one, 16);
    world.payer_does(|payer| payer.cancel(one));
    world.settle();
    is_whole(&world, other);
    assert_eq!(world.done[&one].statement.end.unwrap().how, End::Cancelled);
    let (_, served) = world.payee.account(CHANNEL).unwrap();
    assert_eq!(world.payer.spent(), served);
}
