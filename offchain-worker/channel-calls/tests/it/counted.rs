//! What final batches were counted with, and what a payer holds.

use crate::{support::*, world::World};
use surety_channel_calls::{
    Table,
    payee::{Duty, RedeemPolicy},
    payer::{HeldState, NotCovered, end_unseen},
    segment_of_end,
};
use surety_channels::*;
use surety_proofs::content_hash;

impl World {
    /// The payee shows the receipt of a request, and where in its output that ends which the payer holds.
    pub fn cover(&mut self, nonce: Nonce) -> Result<(), NotCovered> {
        let shown = self.shown(nonce);
        let held = self
            .payer
            .held()
            .find_map(|(of, _, held)| held.filter(|_| of == nonce).cloned());
        let wanted = &self.asked[&nonce];
        let mut output = head(&wanted.request);
        output.extend(answer(&wanted.request, &wanted.input).0);
        let said = &shown.batched.statement;
        output.truncate(said.bytes as usize);
        let segment = held.and_then(|held| segment_of_end(&held.statement, said, &output));
        let root = self.roots[shown.batch as usize];
        let window = &self.windows[&shown.batch];
        let until = window.is_final(self.clock).then_some(window.until);
        let covered = self
            .payer
            .cover(shown.batch, (&root, until), &shown.batched, segment.as_ref())?;
        self.payer_does(|_| covered);
        Ok(())
    }
}

/// Three answers, in a final batch that was counted.
fn counted() -> World {
    let mut world = World::answered(10_000, &text(3, 5, 0, 8), 3);
    world.batch();
    world.clock = 11;
    assert_eq!(world.redeem(), 3 * 8 * TOKEN);
    world.see_payer();
    let next = world.seen.purse.next;
    assert_eq!(next, 3);
    world.payer_does(|payer| payer.counted(next));
    world
}

fn uncompared(world: &World) -> Vec<Nonce> {
    let held = world.payer.uncompared();
    held.map(|held| held.statement.nonce).collect()
}

#[test]
fn what_was_counted_is_kept_and_counts_until_it_was_shown() {
    let mut world = counted();
    world.restart_payer();
    world.see_payer();
    assert_eq!(uncompared(&world), [0, 1, 2]);
    assert_eq!(world.payer.uncounted(), 3 * 8 * TOKEN);
    // Over a connection, and on the chain.
    world.cover(0).unwrap();
    world.payer_does(|payer| payer.shown(1, true));
    // What was shown over a connection counts until that batch is final, whatever was counted.
    world.payer_does(|payer| payer.counted(3));
    assert_eq!(
        (uncompared(&world), world.payer.uncounted()),
        (vec![2], 2 * 8 * TOKEN)
    );
    world.payer_does(|payer| payer.settled_in(&[(0, 10)].into()));
    assert_eq!(world.payer.kept(), 1);
    // The chain takes demands of it for a while, however patient the payer is.
    let at = world.clock;
    let mut is_late = |clock| {
        world.clock = clock;
        world.see_payer();
        world.payer_does(|payer| payer.counted(3));
        world.payer.demands((1_000, 5), u32::MAX).count() == 1
    };
    assert!(!is_late(at + 5) && is_late(at + 6));
}

#[test]
fn what_was_counted_before_the_first_block_that_is_seen_is_late_at_once() {
    let mut world = World::answered(10_000, &text(3, 5, 0, 8), 1);
    world.clock = 100;
    world.see_payer();
    world.payer_does(|payer| payer.counted_before(1));
    assert_eq!(world.payer.demands((1_000, 90), u32::MAX).count(), 1);
}

#[test]
fn something_else_that_was_batched_under_the_same_number_settles_nothing() {
    let mut world = counted();
    let held = world.done[&1].statement.clone();
    let instead = ChunkStatement {
        output: content_hash(b"something else, computed right"),
        ..held
    };
    let (root, shown) = batched(instead);
    let covered = world.payer.cover(0, (&root, Some(0)), &shown, None);
    assert_eq!(covered.err(), Some(NotCovered::Contradicts(Clash::Output)));
    assert_eq!(uncompared(&world), [0, 1, 2]);
    world.clock = 100;
    world.see_payer();
    assert_eq!(world.payer.demands((5, 5), u32::MAX).count(), 3);
}

#[test]
fn what_was_lost_after_some_words_is_kept_when_it_is_counted_as_receipts_are() {
    let mut world = World::answered(10_000, &text(3, 5, 0, 8), 2);
    // Of the third something was heard, and not the end.
    let lost = world.ask(text(10, 100, 0, 16)).unwrap();
    world.tell_payee(lost);
    world.compute(lost, 16);
    while world.tell_payer(lost) {}
    world.drop_connection(lost);
    world.batch();
    world.cover(0).unwrap();
    world.payer_does(|payer| payer.counted(3));
    assert_eq!(uncompared(&world), [1, 2]);
    world.payer_does(|payer| payer.settled_in(&[(0, 10)].into()));
    assert_eq!(world.payer.kept(), 2);
    // Its receipt has all of them.
    world.payee_does(|payee| payee.abandon(CHANNEL, lost));
    world.batch();
    world.clock = 20;
    world.cover(lost).unwrap();
    assert_eq!(uncompared(&world), [1]);
}

#[test]
fn what_was_shown_in_a_final_batch_is_settled_before_it_is_counted() {
    let mut world = World::answered(10_000, &text(3, 5, 0, 8), 2);
    world.batch();
    world.cover(0).unwrap();
    assert_eq!(world.payer.covering().collect::<Vec<_>>(), [0]);
    world.payer_does(|payer| payer.settled_in(&[(7, 10)].into()));
    assert_eq!(world.payer.uncounted(), 2 * 8 * TOKEN);
    world.payer_does(|payer| payer.settled_in(&[(0, 10)].into()));
    assert_eq!(world.payer.uncounted(), 8 * TOKEN);
    let held: Vec<_> = world
        .payer
        .held()
        .map(|(nonce, state, _)| (nonce, state))
        .collect();
    assert_eq!(held, [(1, HeldState::Over)]);
}

/// An answer of which the first chunk was heard, and whose receipt has all of it, in a batch.
fn broken_off() -> (World, Nonce) {
    let (mut world, nonce) = World::answering(10_000, text(10, 600, 0, 300));
    world.compute(nonce, 300);
    while world.tell_payer(nonce) {}
    world.tell_payee(nonce);
    world.compute(nonce, 300);
    world.drop_connection(nonce);
    world.end_all();
    world.batch();
    (world, nonce)
}

#[test]
fn a_longer_receipt_is_taken_where_it_is_shown_to_begin_with_what_was_heard() {
    let (mut world, nonce) = broken_off();
    let (shown, root) = (world.shown(nonce), world.roots[0]);
    let unproven = world.payer.cover(0, (&root, None), &shown.batched, None);
    assert_eq!(unproven.err(), Some(NotCovered::Unproven));
    // Right, as far as points can see, and not what was heard.
    let held = world.payer.unshown().next().unwrap().statement.clone();
    let receipt = shown.batched.statement;
    assert!(held.bytes < receipt.bytes);
    let other = vec![7; receipt.bytes as usize];
    let segment = segment_of_end(&held, &receipt, &other);
    let instead = ChunkStatement {
        output: content_hash(&other),
        ..receipt
    };
    let (of_other, instead) = batched(instead);
    let covered = world
        .payer
        .cover(0, (&of_other, None), &instead, segment.as_ref());
    assert_eq!(covered.err(), Some(NotCovered::Contradicts(Clash::Output)));
    assert_eq!(world.cover(nonce), Ok(()));
    assert_eq!(world.payer.unshown().count(), 0);
}

#[test]
fn what_was_counted_of_an_answer_that_broke_off_is_settled_by_what_was_shown_on_the_chain_alone() {
    let (mut world, nonce) = broken_off();
    world.payer_does(|payer| payer.counted(nonce + 1));
    assert_eq!(uncompared(&world), [nonce]);
    assert!(world.payer.uncounted() > 0);
    // The chain has seen that it goes on from what was heard.
    world.payer_does(|payer| payer.shown(nonce, true));
    world.restart_payer();
    world.see_payer();
    assert_eq!(world.payer.uncompared().count(), 0);
    assert_eq!((world.payer.uncounted(), world.payer.kept()), (0, 0));
}

#[test]
fn what_was_over_when_a_batch_was_committed_may_be_there_and_what_is_counted_is_asked_for_as_such() {
    let mut world = World::new(10_000);
    for clock in [10, 20] {
        world.clock = clock;
        world.see_payer();
        world.ask(text(3, 5, 0, 8)).unwrap();
        world.settle();
    }
    let over_by = |world: &World, time| -> Vec<Nonce> {
        let over = world.payer.over_by(time);
        over.map(|held| held.statement.nonce).collect()
    };
    assert_eq!([9, 10, 20].map(|time| over_by(&world, time).len()), [0, 1, 2]);
    world.restart_payer();
    world.see_payer();
    world.payer_does(|payer| payer.counted(1));
    assert_eq!((over_by(&world, 20), uncompared(&world)), (vec![1], vec![0]));
}

#[test]
fn what_is_counted_is_redeemed_when_it_is_due_and_nothing_while_something_is_demanded() {
    let mut world = World::answered(10_000, &text(3, 5, 0, 8), 1);
    world.batch();
    world.clock = 11;
    let policy = RedeemPolicy { supply: 40, ..POLICY };
    let due = |world: &World, clock| -> Vec<(usize, u128)> {
        let duties = world.payee.duties(&world.seen, &world.windows, clock, &policy);
        let redeemed = duties.into_iter().map(|duty| match duty {
            Duty::Redeem { openings, amount, .. } => (openings.len(), amount),
            duty => panic!("{duty:?}"),
        });
        redeemed.collect()
    };
    let price = 8 * TOKEN;
    // It is counted first.
    assert_eq!(due(&world, 11), [(1, 0)]);
    let shown = world.payee.open_channel(0, CHANNEL).unwrap();
    let shown = shown.verify(&world.roots[0]).unwrap();
    let purse = &mut world.seen.purse;
    purse
        .count(&world.windows[&0], &shown, 11, policy.supply)
        .unwrap();
    assert_eq!(purse.redeem(price, 11, policy.supply), 0);
    assert!(world.payee.is_owed(&world.seen, &world.windows, 11));
    assert_eq!((due(&world, 20), due(&world, 21)), (vec![], vec![(0, price)]));
    world.seen.purse.demand(1_000);
    assert_eq!(due(&world, 21), []);
    world.seen.purse.end_demand();
    assert_eq!(world.seen.purse.redeem(0, 21, policy.supply), price);
    assert!(!world.payee.is_owed(&world.seen, &world.windows, 21));
}

#[test]
fn a_void_batch_is_not_counted_as_what_it_has_could_not_be_shown_then() {
    let mut world = World::answered(10_000, &text(3, 5, 0, 8), 1);
    world.batch();
    let duties = |world: &World| world.payee.duties(&world.seen, &world.windows, 11, &POLICY).len();
    assert_eq!(duties(&world), 1);
    assert!(world.payee.is_owed(&world.seen, &world.windows, 11));
    world.windows.get_mut(&0).unwrap().void();
    assert_eq!(duties(&world), 0);
    assert!(!world.payee.is_owed(&world.seen, &world.windows, 11));
}

#[test]
fn what_is_counted_is_settled_by_no_batch_that_was_not_final_by_then() {
    let mut world = World::answered(10_000, &text(3, 5, 0, 8), 2);
    world.clock = 5;
    world.see_payer();
    world.batch();
    let until = world.windows[&0].until;
    // One was shown in it before something was counted with its number, the other not.
    world.cover(0).unwrap();
    world.payer_does(|payer| payer.counted(2));
    assert_eq!(uncompared(&world), [1]);
    for clock in [6, 50] {
        world.clock = clock;
        world.see_payer();
        assert_eq!(world.cover(1), Err(NotCovered::NotFinal));
    }
    world.payer_does(|payer| payer.settled_in(&[(0, until)].into()));
    assert_eq!(uncompared(&world), [0, 1]);
    // Nor by what was demanded before, but by what is demanded now.
    world.payer_does(|payer| payer.shown(0, false));
    assert_eq!(world.payer.unshown().count(), 2);
    for nonce in 0..2 {
        world.payer_does(|payer| payer.shown(nonce, true));
    }
    assert_eq!((world.payer.unshown().count(), world.payer.kept()), (0, 0));
}

#[test]
fn what_was_shown_on_the_chain_before_its_number_was_counted_is_asked_for_and_demanded_again() {
    let mut world = World::answered(10_000, &text(3, 5, 0, 8), 1);
    world.payer_does(|payer| payer.shown(0, false));
    assert_eq!(world.payer.unshown().count(), 0);
    world.clock = 20;
    world.see_payer();
    world.payer_does(|payer| payer.counted(1));
    let since = world.payer.counted_since(0);
    assert_eq!((world.payer.unshown().count(), since), (1, Some(20)));
}

#[test]
fn of_a_channel_that_has_ended_unseen_that_stays_known_which_nobody_has_shown() {
    let world = counted();
    let rows = world.payer_disk.rows();
    let end = |there: &[ChannelId], now| {
        let there = there.iter().copied().collect();
        end_unseen(&rows, &there, now).unwrap()
    };
    // It is there, or newer than that block.
    assert!(end(&[CHANNEL], 11).is_empty() && end(&[], 10).is_empty());
    let kept = || {
        let count = |wanted: Table| world.payer_disk.of(|table| table == wanted).len();
        [Table::Wallets, Table::Held, Table::Unproven].map(count)
    };
    assert_eq!(kept(), [1, 3, 0]);
    end(&[], 11).commit(&world.payer_disk).unwrap();
    assert_eq!(kept(), [1, 0, 3]);
}
