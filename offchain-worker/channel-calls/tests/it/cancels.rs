//! What comes to nothing before its first words: as long as that is less than what is paid for, it is free.

use crate::{refusals::ask_of, support::*, world::World};
use surety_channel_calls::{payer::Wanted, *};
use surety_channels::*;

/// A payee that lets go of so many first chunks.
fn letting_go(free_chunks: u32) -> World {
    World::with(100_000, config(free_chunks))
}

fn config(free_chunks: u32) -> PayeeConfig {
    let mut config = payee_config();
    config.limits.free_chunks = free_chunks;
    config
}

/// Asks, and wants no more of it before anything was computed.
fn cancel(world: &mut World, wanted: Wanted) -> Nonce {
    let nonce = world.ask(wanted).unwrap();
    assert!(world.tell_payee(nonce));
    world.payer_does(|payer| payer.cancel(nonce));
    assert!(world.tell_payee(nonce));
    nonce
}

#[test]
fn whoever_cancels_before_the_first_words_again_and_again_pays_for_these() {
    let mut world = letting_go(2);
    let wanted = || text(10, 100, 0, 16);
    for _ in 0..2 {
        let nonce = cancel(&mut world, wanted());
        world.settle();
        assert!(world.done[&nonce].statement.is_void());
    }
    let third = cancel(&mut world, wanted());
    assert!(world.payee.is_open(CHANNEL, third));
    world.compute(third, 1);
    assert!(!world.payee.is_open(CHANNEL, third));
    world.settle();
    // The payer takes it for what it is, and has paid no more than it had signed for it.
    let receipt = world.done[&third].statement.clone();
    assert_eq!((receipt.units, receipt.end.unwrap().how), (11, End::Cancelled));
    assert_eq!(world.payer.spent(), 11 * TOKEN);
    assert_eq!(world.payer.signed(), 26 * TOKEN);
    assert!(world.broken.is_empty() && !world.payer.is_distrusted());
    // Now that it has paid for something another one is free, and the one after that is not.
    for is_free in [true, false] {
        let nonce = cancel(&mut world, wanted());
        world.settle();
        assert_eq!(world.done[&nonce].statement.is_void(), is_free);
    }
    world.assert_no_clash();
    world.batch();
    world.clock = 11;
    let (_, served) = world.payee.account(CHANNEL).unwrap();
    assert_eq!((world.redeem(), world.payer.spent()), (served, served));
}

#[test]
fn of_vectors_that_are_cancelled_all_are_said_where_they_are_paid_for() {
    let mut world = letting_go(0);
    let nonce = cancel(&mut world, items(20, 20));
    world.settle();
    let receipt = &world.done[&nonce].statement;
    assert_eq!((receipt.units, receipt.end.unwrap().how), (20, End::Length));
    assert_eq!(world.payer.spent(), 20 * ITEM);
    world.assert_no_clash();
}

#[test]
fn what_was_computed_when_it_is_cancelled_is_said_at_once_and_ends_as_cancelled_after_a_crash() {
    let mut world = letting_go(0);
    let nonce = world.ask(text(10, 100, 0, 16)).unwrap();
    assert!(world.tell_payee(nonce));
    world.compute(nonce, 3);
    assert!(world.sent.is_empty(), "it is no whole chunk");
    world.payer_does(|payer| payer.cancel(nonce));
    assert!(world.tell_payee(nonce));
    world.settle();
    let receipt = &world.done[&nonce].statement;
    assert_eq!((receipt.units, receipt.end.unwrap().how), (13, End::Cancelled));
    world.assert_no_clash();

    let mut world = letting_go(0);
    let next = cancel(&mut world, text(10, 100, 0, 16));
    assert!(world.payee.is_open(CHANNEL, next));
    world.restart_payee();
    let last = world.sent.last().unwrap().statement.clone();
    assert!(last.is_void());
    assert_eq!((last.nonce, last.end.unwrap().how), (next, End::Cancelled));
    world.assert_no_clash();
}

/// An answer that was cut would claim other bytes than those that were said, if it ended with a stop id.
#[test]
fn an_answer_that_ends_with_its_first_chunk_has_its_own_end_though_nobody_hears_it() {
    for is_cancelled in [false, true] {
        let mut world = letting_go(0);
        let wanted = text(10, 100, 16, 16);
        let nonce = if is_cancelled {
            cancel(&mut world, wanted)
        } else {
            let nonce = world.ask(wanted).unwrap();
            assert!(world.tell_payee(nonce));
            world.drop_connection(nonce);
            world.payee_does(|payee| payee.leave(CHANNEL, nonce));
            nonce
        };
        world.compute(nonce, 16);
        let receipt = &world.sent.last().unwrap().statement;
        assert_eq!((receipt.units, receipt.end.unwrap().how), (26, End::Stop));
        world.assert_no_clash();
    }
}

#[test]
fn what_is_asked_at_once_is_paid_for_beside_each_other_once_much_was_computed_and_never_paid() {
    let (mut payee, _) = Payee::open(config(2), [], 0).unwrap();
    let seen = World::new(10_000).seen;
    let first = 26 * TOKEN;
    let ask = |payee: &mut Payee, nonce, sum| {
        let ask = ask_of(
            text(10, 100, 0, 16),
            sum,
            |voucher| voucher.nonce = nonce,
            GENESIS,
        );
        payee.try_ask(ask, Some(&seen), 50).map(drop)
    };
    for (begins, sum) in [(0, first), (3, 2 * first)] {
        for nonce in begins..begins + 3 {
            assert_eq!(ask(&mut payee, nonce, sum), Ok(()));
        }
        for nonce in begins..begins + 3 {
            drop(payee.said(CHANNEL, nonce, &[0; 64], 0).unwrap());
        }
        // One of them has taken what was paid, and nothing comes of the others.
        drop(payee.tick(PATIENCE));
    }
    assert_eq!(payee.account(CHANNEL), Some((2 * first, 2 * first)));
    assert_eq!(payee.open_calls().count(), 2);
    assert_eq!(ask(&mut payee, 6, 3 * first), Ok(()));
    // A payer cannot know what the others come to: it is not told that it owes that.
    assert_eq!(ask(&mut payee, 7, 3 * first), Err(Refusal::Busy));
    assert_eq!(ask(&mut payee, 7, 4 * first), Ok(()));
}
