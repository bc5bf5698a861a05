//! Processes that die at each of their writes, before it is durable or just after, and start again.

use crate::{support::*, world::World};
use surety_channel_calls::{
    payer::{AskError, Wanted},
    *,
};
use surety_channels::*;

/// Asks until it is taken, or the process has died over it.
fn ask(world: &mut World, wanted: &Wanted) -> Option<Nonce> {
    for _ in 0..6 {
        let kills = world.kills;
        match world.ask(wanted.clone()) {
            Ok(nonce) if world.kills == kills => {
                let refused = world.refused.len();
                world.tell_payee(nonce);
                world.tell_payer(nonce);
                if world.kills == kills && world.refused.len() == refused {
                    return Some(nonce);
                }
            }
            Ok(_) => {}
            Err(AskError::Waiting) => world.settle(),
            Err(error) => panic!("{error}"),
        }
    }
    None
}

fn life(world: &mut World) {
    let long = text(10, 60, 0, 16);
    let asked = [long, items(10, 4), text(5, 40, 9, 8)];
    let calls: Vec<_> = asked.iter().map(|wanted| ask(world, wanted)).collect();
    assert!(world.kills > 0 || calls.iter().all(Option::is_some));
    world.settle();
    world.batch();
    if let Some(nonce) = ask(world, &text(10, 90, 0, 16)) {
        for _ in 0..4 {
            world.tell_payee(nonce);
            world.compute(nonce, 16);
            world.tell_payer(nonce);
        }
        world.payer_does(|payer| payer.cancel(nonce));
    }
    world.settle();
    world.batch();
}

fn check(world: &mut World) {
    world.end_all();
    // Whatever has happened, they go on with each other.
    let last = ask(world, &text(20, 30, 0, 16)).unwrap();
    world.end_all();
    assert_eq!(world.done[&last].statement.units, 50);
    assert_eq!(world.payee.open_calls().count(), 0);
    world.batch();

    world.assert_no_clash();
    assert!(world.sums.is_sorted(), "{:?}", world.sums);
    let (sum, served) = world.payee.account(CHANNEL).unwrap();
    assert!(served <= sum && sum <= world.payer.signed());
    // Every request has a receipt in a batch, and together they cost what was served.
    let receipts: Vec<_> = (0..=last).map(|nonce| world.shown(nonce)).collect();
    let price: u128 = receipts.iter().map(|shown| shown.batched.statement.price).sum();
    assert_eq!(price, served);
    for (nonce, receipt) in &world.done {
        assert_eq!(receipts[*nonce as usize].batched.statement, receipt.statement);
    }
    world.clock = 100;
    let mut paid = 0;
    for _ in 0..3 {
        paid += world.redeem();
    }
    assert_eq!(paid, served);
    // What the payer holds is covered by what the payee shows.
    world.see_payer();
    let held: Vec<Nonce> = world.payer.held().map(|(nonce, ..)| nonce).collect();
    for nonce in held {
        world.cover(nonce).unwrap();
    }
    assert_eq!(world.payer.demands((0, 0), 100).count(), 0);
    assert!(!world.payer.is_distrusted());
    assert!(world.payer.spent() <= world.payer.signed());
}

/// Returns how many writes there were.
fn dies_at_each_write(disk: fn(&World) -> &Disk) -> usize {
    for more in 0.. {
        for is_durable in [false, true] {
            let mut world = World::new(100_000);
            let at = disk(&world).puts.get() + more;
            disk(&world).dies_at.set(Some((at, is_durable)));
            life(&mut world);
            if world.kills == 0 {
                return more;
            }
            check(&mut world);
        }
    }
    unreachable!()
}

#[test]
fn a_payee_that_dies_at_any_write_contradicts_nothing_that_it_has_sent_and_loses_no_pay() {
    let writes = dies_at_each_write(|world| &world.payee_disk);
    assert!(writes > 20, "{writes}");
}

#[test]
fn a_payer_that_dies_at_any_write_signs_no_lower_sum_and_knows_its_receipts() {
    let writes = dies_at_each_write(|world| &world.payer_disk);
    assert!(writes > 15, "{writes}");
}

#[test]
fn what_was_cancelled_before_a_crash_ends_as_cancelled_after_it() {
    let mut world = World::new(10_000);
    let nonce = ask(&mut world, &text(10, 90, 0, 16)).unwrap();
    world.compute(nonce, 16);
    world.tell_payer(nonce);
    world.payer_does(|payer| payer.cancel(nonce));
    // It pays first; the cancellation is written, and what is to be signed after it is not.
    world.tell_payee(nonce);
    let at = world.payee_disk.puts.get();
    world.payee_disk.dies_at.set(Some((at, true)));
    world.tell_payee(nonce);
    assert_eq!(world.kills, 1);
    let receipt = &world.sent.last().unwrap().statement;
    assert_eq!((receipt.end.unwrap().how, receipt.units), (End::Cancelled, 26));
    world.assert_no_clash();
}

#[test]
fn nothing_is_said_before_it_is_written() {
    let mut world = World::new(10_000);
    let nonce = ask(&mut world, &text(10, 90, 0, 16)).unwrap();
    let at = world.payee_disk.puts.get();
    world.payee_disk.dies_at.set(Some((at, false)));
    world.compute(nonce, 16);
    // It has died over its first chunk, which nobody has seen: what it says of it now is nothing.
    assert_eq!(world.kills, 1);
    let [only] = &world.sent[..] else {
        panic!("{:?}", world.sent);
    };
    assert!(only.statement.is_void() && only.statement.end.is_some());
    let at = world.payer_disk.puts.get();
    let signed = world.payer.signed();
    world.payer_disk.dies_at.set(Some((at, false)));
    let sums = world.sums.len();
    world.ask(text(10, 90, 0, 60)).unwrap();
    assert_eq!((world.kills, world.sums.len()), (2, sums));
    assert_eq!(world.payer.signed(), signed);
}

#[test]
fn steps_of_many_streams_are_written_at_once() {
    let disk = Disk::default();
    let (mut payee, mut step) = Payee::open(payee_config(), [], 0).unwrap();
    let (mut payer, _) = Payer::open(payer_config(), terms(10_000), vec![account(AGENT)], 0, []).unwrap();
    let seen = World::new(10_000).seen;
    for nonce in 0..3 {
        let (_, asked) = payer.ask(text(10, 90, 0, 16)).unwrap();
        for effect in asked.commit(&Disk::default()).unwrap() {
            if let PayerEffect::Send {
                message: ToPayee::Ask(ask),
                ..
            } = effect
            {
                step.join(payee.ask(ask, Some(&seen), 50));
            }
        }
        let taken = payer.hear(nonce, FromPayee::Taken { nonce });
        taken.commit(&Disk::default()).unwrap();
    }
    // A write that fails gives the step back, with all that it has decided.
    disk.dies_at.set(Some((0, false)));
    let failed = step.commit(&disk).unwrap_err();
    assert_eq!(disk.rows(), []);
    let effects = failed.step.commit(&disk).unwrap();
    assert_eq!((effects.len(), disk.puts.get()), (6, 2));
    let (again, _) = Payee::open(payee_config(), disk.rows(), 0).unwrap();
    assert_eq!(again.account(CHANNEL), payee.account(CHANNEL));
}
