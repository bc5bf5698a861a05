//! What final batches were counted with, and what a payer holds.

use crate::{support::*, world::World};
use surety_channel_calls::payer::{HeldState, NotCovered};
use surety_channels::*;
use surety_proofs::content_hash;

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
    let shown = world.shown(0);
    let covered = world.payer.cover(shown.batch, &world.roots[0], &shown.batched);
    world.payer_does(|_| covered.unwrap());
    world.payer_does(|payer| payer.shown(1));
    // What was shown over a connection counts until that batch is final, whatever was counted.
    world.payer_does(|payer| payer.counted(3));
    assert_eq!(
        (uncompared(&world), world.payer.uncounted()),
        (vec![2], 2 * 8 * TOKEN)
    );
    world.payer_does(|payer| payer.settled_in(&[0].into()));
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
    let covered = world.payer.cover(0, &root, &shown);
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
    let shown = world.shown(0);
    let covered = world.payer.cover(shown.batch, &world.roots[0], &shown.batched);
    world.payer_does(|_| covered.unwrap());
    world.payer_does(|payer| payer.counted(3));
    assert_eq!(uncompared(&world), [1, 2]);
    world.payer_does(|payer| payer.settled_in(&[0].into()));
    assert_eq!(world.payer.kept(), 2);
    // Its receipt has all of them.
    world.payee_does(|payee| payee.abandon(CHANNEL, lost));
    world.batch();
    let shown = world.shown(lost);
    let covered = world.payer.cover(shown.batch, &world.roots[1], &shown.batched);
    world.payer_does(|_| covered.unwrap());
    assert_eq!(uncompared(&world), [1]);
}

#[test]
fn what_was_shown_in_a_final_batch_is_settled_before_it_is_counted() {
    let mut world = World::answered(10_000, &text(3, 5, 0, 8), 2);
    world.batch();
    let shown = world.shown(0);
    let covered = world.payer.cover(shown.batch, &world.roots[0], &shown.batched);
    world.payer_does(|_| covered.unwrap());
    assert_eq!(world.payer.covering().collect::<Vec<_>>(), [0]);
    world.payer_does(|payer| payer.settled_in(&[7].into()));
    assert_eq!(world.payer.uncounted(), 2 * 8 * TOKEN);
    world.payer_does(|payer| payer.settled_in(&[0].into()));
    assert_eq!(world.payer.uncounted(), 8 * TOKEN);
    let held: Vec<_> = world
        .payer
        .held()
        .map(|(nonce, state, _)| (nonce, state))
        .collect();
    assert_eq!(held, [(1, HeldState::Over)]);
}
