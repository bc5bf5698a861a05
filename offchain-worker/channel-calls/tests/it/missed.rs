//! A payee that says that it has served more than its payer knows.

use crate::{support::*, world::World};
use surety_channel_calls::*;
use surety_channels::*;

#[test]
fn a_payee_has_no_more_written_off_than_it_may_have_served() {
    let refused = |nonce, sum| FromPayee::Refused {
        nonce,
        why: Refusal::Unpaid { sum },
    };
    let mut world = World::new(10_000);
    // What it does not take it was not paid for, however often it is asked.
    for time in 1..=4 {
        let nonce = world.ask(text(10, 20, 0, 16)).unwrap();
        world.payer_does(|payer| payer.hear(nonce, refused(nonce, 26 * TOKEN * time + 1)));
        assert_eq!((world.payer.spent(), world.payer.signed()), (0, 26 * TOKEN));
    }
    // It was paid for 30 tokens, and its answer has 27: three more it may have served, and nothing beside.
    let first = world.ask(text(10, 20, 17, 16)).unwrap();
    world.settle();
    let price = world.done[&first].statement.price;
    let slack = world.payer.signed() - price;
    assert_eq!((price, slack), (27 * TOKEN, 3 * TOKEN));
    for (over, spent) in [(1, price), (0, price + slack)] {
        let nonce = world.ask(text(10, 20, 0, 16)).unwrap();
        let sum = price + slack + 26 * TOKEN + over;
        world.payer_does(|payer| payer.hear(nonce, refused(nonce, sum)));
        assert_eq!(world.refused.last().unwrap().2, over == 0);
        assert_eq!(world.payer.spent(), spent);
    }
    // Once it is written off nothing is left to be.
    let nonce = world.ask(text(10, 20, 0, 16)).unwrap();
    let signed = world.payer.signed();
    world.payer_does(|payer| payer.hear(nonce, refused(nonce, signed + 26 * TOKEN)));
    assert_eq!(world.payer.spent(), price + slack);
}

/// An answer that is open, of which the payee has said something out of what another has left over, and a
/// request that it refuses for that.
fn refused_for_what_is_on_its_way() -> (World, Nonce, Nonce) {
    let mut world = World::new(100_000);
    let long = world.ask(text(10, 100, 0, 8)).unwrap();
    world.tell_payee(long);
    world.compute(long, 8);
    // What was said of it is not heard yet, but that it was taken.
    world.tell_payer(long);
    let short = world.ask(text(10, 20, 1, 16)).unwrap();
    world.tell_payee(short);
    world.compute(short, 1);
    while world.tell_payer(short) {}
    assert_eq!(world.done[&short].statement.price, 11 * TOKEN);
    world.compute(long, 8);
    let served = (18 + 11 + 8) * TOKEN;
    assert_eq!(world.payee.account(CHANNEL), Some((44 * TOKEN, served)));
    let next = world.ask(text(10, 20, 0, 16)).unwrap();
    world.tell_payee(next);
    (world, long, next)
}

#[test]
fn what_is_on_its_way_is_not_written_off() {
    for heard_first in [false, true] {
        let (mut world, long, next) = refused_for_what_is_on_its_way();
        if heard_first {
            while world.tell_payer(long) {}
        }
        let spent = |world: &World| world.payer.spent();
        world.tell_payer(next);
        let sum = (18 + 11 + 8 + 26) * TOKEN;
        assert_eq!(world.refused, [(next, Refusal::Unpaid { sum }, true)]);
        while world.tell_payer(long) {}
        // The last chunk of it that was said, and one ahead.
        assert_eq!(spent(&world), (34 + 11) * TOKEN);
        let again = world.ask(text(10, 20, 0, 16)).unwrap();
        world.settle();
        assert_eq!(world.refused.len(), 1);
        assert_eq!(world.done[&again].statement.price, 30 * TOKEN);
        let (_, served) = world.payee.account(CHANNEL).unwrap();
        assert_eq!(spent(&world), served);
    }
}

#[test]
fn what_a_payee_goes_on_to_miss_is_written_off_at_last() {
    let (mut world, _, next) = refused_for_what_is_on_its_way();
    world.tell_payer(next);
    let spent = world.payer.spent();
    let why = world.refused[0].1;
    let refuse = |world: &mut World, nonce| {
        world.payer_does(|payer| payer.hear(nonce, FromPayee::Refused { nonce, why }));
        assert_eq!(world.refused.last(), Some(&(nonce, why, true)));
    };
    // Others that ask meanwhile have not waited for it.
    for _ in 0..6 {
        let other = world.ask(text(10, 20, 0, 16)).unwrap();
        refuse(&mut world, other);
        assert_eq!(world.payer.spent(), spent);
    }
    let again = ask_again(&mut world, why);
    refuse(&mut world, again);
    assert_eq!(world.payer.spent(), spent + 8 * TOKEN);
    // With that it takes it, and nothing is missed any more.
    let last = world.ask(text(10, 20, 0, 16)).unwrap();
    world.settle();
    assert_eq!(world.done[&last].statement.price, 30 * TOKEN);
}

/// Asks for what was refused, once all is heard that was on its way then.
fn ask_again(world: &mut World, why: Refusal) -> Nonce {
    let Refusal::Unpaid { sum } = why else {
        panic!("{why}")
    };
    let (nonce, step) = world.payer.ask_again(text(10, 20, 0, 16), sum).unwrap();
    world.payer_does(|_| step);
    nonce
}

#[test]
fn what_is_missed_anew_is_not_written_off_where_what_was_missed_before_was_heard() {
    let (mut world, long, next) = refused_for_what_is_on_its_way();
    world.tell_payer(next);
    let mut why = world.refused[0].1;
    while world.tell_payer(long) {}
    let spent = world.payer.spent();
    for written_off in [0, 8 * TOKEN] {
        let again = ask_again(&mut world, why);
        let sum = spent + (26 + 8) * TOKEN;
        why = Refusal::Unpaid { sum };
        world.payer_does(|payer| payer.hear(again, FromPayee::Refused { nonce: again, why }));
        assert_eq!(world.refused.last(), Some(&(again, why, true)));
        assert_eq!(world.payer.spent(), spent + written_off);
    }
}

#[test]
fn what_a_payee_says_again_that_it_cannot_mean_is_asked_no_more() {
    let mut world = World::new(100_000);
    let long = world.ask(text(10, 100, 0, 8)).unwrap();
    world.tell_payee(long);
    world.tell_payer(long);
    let asks = 44 * TOKEN;
    for why in [
        // It was paid as much with that very request, or asked for that number.
        Refusal::Unpaid { sum: asks },
        Refusal::Voucher(VoucherRefusal::NotLarger { last: asks }),
        Refusal::Voucher(VoucherRefusal::OtherNonce { next: 1 }),
    ] {
        let nonce = world.ask(text(10, 20, 0, 16)).unwrap();
        assert_eq!((nonce, world.sums.last()), (1, Some(&asks)));
        world.payer_does(|payer| payer.hear(nonce, FromPayee::Refused { nonce, why }));
        assert_eq!(world.refused.last(), Some(&(nonce, why, false)));
        assert_eq!(world.payer.spent(), 18 * TOKEN);
    }
}
