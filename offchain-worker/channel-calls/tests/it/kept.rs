//! How much a payee keeps in memory, and what it knows of what it has forgotten.

use crate::{refusals::ask_of, support::*, world::World};
use surety_channel_calls::{
    payee::{BatchLimits, ChannelSeen, PayeeLimits},
    *,
};
use surety_channels::*;

const ALL: BatchLimits = BatchLimits {
    receipts_max: 1_000,
    price_max: u128::MAX,
};

fn limited(change: impl FnOnce(&mut PayeeLimits)) -> PayeeConfig {
    let mut config = payee_config();
    change(&mut config.limits);
    config
}

fn payee(disk: &Disk, change: impl FnOnce(&mut PayeeLimits)) -> Payee {
    let (payee, start) = Payee::open_over(limited(change), disk.reader(), [], 0).unwrap();
    start.commit(disk).unwrap();
    payee
}

/// An answer, in a batch that is on the chain if it is to be.
fn answer_one(world: &mut World, is_batched: bool) {
    world.ask(text(10, 20, 0, 16)).unwrap();
    world.settle();
    if is_batched {
        world.batch();
    }
}

/// What is asked under this number of a channel, and what the chain says of that.
fn asked(channel: ChannelId, nonce: Nonce) -> (Ask, ChannelSeen) {
    let of = |voucher: &mut Voucher<AccountId>| (voucher.channel, voucher.nonce) = (channel, nonce);
    let seen = ChannelSeen {
        terms: ChannelTerms {
            channel,
            ..terms(10_000)
        },
        purse: Purse::new(channel, 10_000, 0),
    };
    (ask_of(text(10, 100, 0, 16), 26 * TOKEN, of, GENESIS), seen)
}

/// Why a request under the first number of a channel would not be taken.
fn refusal(payee: &Payee, channel: ChannelId) -> Option<Refusal> {
    let (ask, seen) = asked(channel, 0);
    payee.would_take(&ask, Some(&seen), 50).err()
}

/// Asks, and it comes to nothing. Whether it was taken.
fn comes_to_nothing(payee: &mut Payee, disk: &Disk, (channel, nonce): (ChannelId, Nonce)) -> bool {
    let (ask, seen) = asked(channel, nonce);
    let Ok(taken) = payee.try_ask(ask, Some(&seen), 50) else {
        return false;
    };
    taken.commit(disk).unwrap();
    payee.abandon(channel, nonce).commit(disk).unwrap();
    true
}

#[test]
fn what_final_blocks_have_takes_nobodys_place_and_is_shown_out_of_the_journal() {
    let mut world = World::with(100_000, limited(|limits| limits.calls_max = 8));
    for call in 0..24 {
        answer_one(&mut world, call % 2 == 1);
    }
    assert!(world.refused.is_empty(), "{:?}", world.refused);
    let check = |world: &World| {
        assert_eq!(world.payee.kept(), (0, 24));
        for nonce in 0..24 {
            let (receipt, request) = (&world.done[&nonce].statement, &world.asked[&nonce].request);
            let shown = world.shown(nonce);
            assert_eq!((&shown.batched.statement, &shown.request), (receipt, request));
            assert_eq!(world.payee.receipt_of(CHANNEL, nonce), Some(receipt));
            // It is read for whoever knows what was asked.
            assert!(world.payee.may_be_request(CHANNEL, nonce, receipt.request));
            assert!(!world.payee.may_be_request(CHANNEL, nonce, GENESIS));
        }
    };
    check(&world);
    // What was read is let go of, and read again.
    world.wait();
    check(&world);
    world.restart_payee();
    check(&world);
}

#[test]
fn what_is_promised_is_kept_whole_until_a_final_block_has_it() {
    let mut world = World::answered(100_000, &text(10, 20, 0, 16), 3);
    // Nobody commits it.
    world.payee.make_batch(&ALL).commit(&world.payee_disk).unwrap();
    assert_eq!(world.payee.kept(), (3, 0));
    let (rows, read) = (world.payee_disk.rows(), world.payee_disk.reader());
    let (mut payee, _) = Payee::open_over(world.config.clone(), read, rows, 0).unwrap();
    assert_eq!(payee.kept(), (3, 0));
    let root = payee.uncommitted().unwrap();
    payee.recall(&root).commit(&world.payee_disk).unwrap();
    assert_eq!(payee.unbatched().0, 3);
    payee.make_batch(&ALL).commit(&world.payee_disk).unwrap();
    payee.committed(&root, 0).commit(&world.payee_disk).unwrap();
    assert_eq!((payee.uncommitted(), payee.kept()), (None, (0, 3)));
}

#[test]
fn of_receipts_whose_channels_stay_so_many_are_kept_and_their_operator_can_know_before() {
    let mut world = World::with(100_000, limited(|limits| limits.kept_max = 4));
    let filling = [(); 4].map(|()| {
        answer_one(&mut world, true);
        world.payee.is_filling_up()
    });
    assert_eq!(filling, [false, false, false, true]);
    let nonce = world.ask(text(10, 20, 0, 16)).unwrap();
    world.settle();
    assert_eq!(world.refused, [(nonce, Refusal::Busy, false)]);
    // With their channel all go but those of the last batch.
    for batch in 0..4 {
        world.payee_does(|payee| payee.forget(batch));
    }
    world.payee_does(|payee| payee.forget_channel(CHANNEL));
    assert_eq!((world.payee.kept(), world.payee.has_place()), ((0, 1), true));
}

#[test]
fn what_comes_to_nothing_over_many_channels_is_batched_before_it_has_all_places() {
    let disk = Disk::default();
    let mut payee = payee(&disk, |limits| limits.calls_max = 8);
    let mut batches = 0;
    for call in 0..80 {
        let of = (call / 2, call as Nonce % 2);
        assert!(comes_to_nothing(&mut payee, &disk, of), "{of:?}");
        let is_crowded = payee.is_crowded();
        payee.make_batch(&ALL).commit(&disk).unwrap();
        let Some(root) = payee.uncommitted() else {
            assert!(!is_crowded);
            continue;
        };
        assert_eq!((is_crowded, root.sums.price), (true, 0));
        payee.committed(&root, batches).commit(&disk).unwrap();
        batches += 1;
    }
    // No sooner than that: each has a fee.
    assert_eq!((batches, payee.kept()), (16, (0, 80)));
}

#[test]
fn no_channel_has_more_than_a_quarter_of_the_places() {
    let disk = Disk::default();
    let mut payee = payee(&disk, |limits| limits.calls_max = 8);
    let taken = [0, 1, 2].map(|nonce| comes_to_nothing(&mut payee, &disk, (7, nonce)));
    assert_eq!(taken, [true, true, false]);
    assert!(comes_to_nothing(&mut payee, &disk, (8, 0)));
}

#[test]
fn a_channel_that_was_forgotten_is_not_begun_anew_though_a_block_has_it_again() {
    let mut world = World::new(10_000);
    answer_one(&mut world, false);
    world.payee_does(|payee| payee.forget_channel(CHANNEL));
    for _ in 0..2 {
        assert_eq!(refusal(&world.payee, CHANNEL), Some(Refusal::Forgotten));
        assert_eq!(refusal(&world.payee, CHANNEL - 1), None);
        world.restart_payee();
    }
    // Nothing else is left of it.
    let left: Vec<Table> = world
        .payee_disk
        .of(|_| true)
        .iter()
        .map(|row| row.table)
        .collect();
    assert_eq!(left, [Table::Start, Table::Gone]);
}

#[test]
fn of_forgotten_channels_the_newest_are_known_and_nothing_is_begun_that_is_older_than_all_of_them() {
    let disk = Disk::default();
    let mut payee = payee(&disk, |limits| limits.gone_max = 2);
    let refused = |payee: &Payee| [1, 2, 3, 4, 5].map(|channel| refusal(payee, channel).is_some());
    for (channel, expected) in [
        (2, [false, true, false, false, false]),
        (3, [true, true, true, false, false]),
        (4, [true, true, true, true, false]),
    ] {
        assert!(comes_to_nothing(&mut payee, &disk, (channel, 0)));
        payee.forget_channel(channel).commit(&disk).unwrap();
        assert_eq!(refused(&payee), expected);
    }
    assert_eq!(disk.of(|table| table == Table::Gone).len(), 2);
    let config = limited(|limits| limits.gone_max = 2);
    let (payee, _) = Payee::open_over(config, disk.reader(), disk.rows(), 0).unwrap();
    assert_eq!(refused(&payee), [true, true, true, true, false]);
}
