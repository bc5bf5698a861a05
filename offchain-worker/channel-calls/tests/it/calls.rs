//! What honest ends do.

use crate::{support::*, world::World};
use surety_channel_calls::{
    payee::{Duty, RedeemPolicy},
    payer::{AskError, Broken, HeldState},
    *,
};
use surety_channels::*;
use surety_proofs::content_hash;

#[test]
fn an_answer_streams_in_chunks_and_costs_what_it_has() {
    let mut world = World::new(10_000);
    let nonce = world.ask(text(10, 100, 0, 16)).unwrap();
    world.settle();
    let receipt = &world.done[&nonce].statement;
    assert_eq!((receipt.units, receipt.price), (110, 110 * TOKEN));
    assert_eq!(receipt.end.unwrap().how, End::Length);
    let wanted = &world.asked[&nonce];
    assert_eq!(world.got[&nonce], answer(&wanted.request, &wanted.input).0);
    // The first chunk pays for the prompt, and no more is ever signed than a chunk ahead.
    let sums: Vec<u128> = (1..=6)
        .map(|chunk| (10 + 16 * chunk) * TOKEN)
        .chain([110 * TOKEN])
        .collect();
    assert_eq!(world.sums, sums);
    assert_eq!(world.payee.account(CHANNEL), Some((110 * TOKEN, 110 * TOKEN)));
    assert_eq!(world.payer.spent(), 110 * TOKEN);
    // One for each chunk; the last has the end.
    assert_eq!(world.sent.len(), 7);
    world.assert_no_clash();
}

#[test]
fn a_part_of_a_chunk_is_said_when_it_is_due_and_neither_end_may_lose_more_than_a_chunk() {
    let (mut world, nonce) = World::answering(10_000, text(10, 100, 0, 16));
    assert!(world.tell_payer(nonce));
    let speak = |world: &mut World| {
        let (before, now) = (world.sent.len(), world.now);
        world.payee_does(|payee| payee.speak(CHANNEL, nonce, now));
        world.sent.len() > before
    };
    let hear = |world: &mut World| {
        while world.tell_payer(nonce) {}
        while world.tell_payee(nonce) {}
    };
    // The first token at once, then what there is: a chunk beyond what was heard is paid each time.
    let mut said = 0;
    for (more, is_heard) in [(1, true), (3, false), (12, true), (9, true), (7, true)] {
        world.compute(nonce, more);
        said += more as u128;
        assert!(speak(&mut world));
        let price = world.sent.last().unwrap().statement.price;
        assert_eq!(price, (10 + said) * TOKEN);
        if is_heard {
            hear(&mut world);
            assert_eq!(world.payer.spent(), price + 16 * TOKEN);
        }
    }
    // A whole chunk needs no word. What is not paid yet is said as soon as it is.
    world.compute(nonce, 16);
    world.compute(nonce, 5);
    assert!(!speak(&mut world));
    assert_eq!(world.sent.last().unwrap().statement.price, (10 + 48) * TOKEN);
    hear(&mut world);
    assert_eq!(world.sent.last().unwrap().statement.price, (10 + 53) * TOKEN);
    // No more than a chunk is computed beyond it.
    world.compute(nonce, 100);
    assert_eq!(world.payee.room(CHANNEL, nonce), 0);
    world.settle();
    assert_eq!(world.done[&nonce].statement.price, 110 * TOKEN);
    world.assert_no_clash();
}

#[test]
fn vectors_come_all_at_once_and_their_receipt_names_the_output_of_a_task() {
    let mut world = World::new(10_000);
    let nonce = world.ask(items(20, 8)).unwrap();
    world.settle();
    let wanted = &world.asked[&nonce];
    let (vectors, _) = answer(&wanted.request, &wanted.input);
    assert_eq!(world.got[&nonce], vectors);
    let output = [head(&wanted.request), vectors].concat();
    let receipt = &world.done[&nonce].statement;
    assert_eq!((receipt.units, receipt.price), (20, 20 * ITEM));
    assert_eq!(receipt.bytes as usize, output.len());
    assert_eq!(receipt.claimed_output(None), Some(content_hash(&output)));
    // No statement is about some of them.
    assert_eq!((world.sums.as_slice(), world.sent.len()), (&[20 * ITEM][..], 1));
    world.assert_no_clash();
}

#[test]
fn vectors_that_are_not_all_there_are_a_receipt_of_nothing() {
    let (mut world, nonce) = World::answering(10_000, items(20, 20));
    world.compute(nonce, 19);
    world.payer_does(|payer| payer.cancel(nonce));
    world.settle();
    assert!(world.done[&nonce].statement.is_void());
    assert_eq!(world.payer.spent(), 0);
}

#[test]
fn what_one_answer_leaves_over_pays_for_the_next() {
    let mut world = World::new(10_000);
    let nonce = world.ask(text(10, 100, 3, 16)).unwrap();
    world.settle();
    assert_eq!(world.done[&nonce].statement.end.unwrap().how, End::Stop);
    assert_eq!(world.payer.spent(), 13 * TOKEN);
    assert_eq!(world.payer.signed(), 26 * TOKEN);
    world.ask(text(10, 100, 1, 3)).unwrap();
    world.settle();
    assert_eq!(world.sums, [26 * TOKEN, 26 * TOKEN]);
    assert_eq!(world.payee.account(CHANNEL), Some((26 * TOKEN, 24 * TOKEN)));
}

#[test]
fn what_pays_too_little_alone_keeps_no_later_batch_from_being_counted() {
    let mut world = World::new(1_000_000);
    for _ in 0..9 {
        world.ask(text(3, 5, 0, 8)).unwrap();
        world.settle();
        world.batch();
    }
    world.clock = 11;
    let patient = RedeemPolicy {
        amount_min: u128::MAX,
        ..POLICY
    };
    let duties = |world: &World| {
        world
            .payee
            .duties(&world.seen, &world.windows, world.clock, &patient)
    };
    let first = duties(&world);
    let [Duty::Redeem { openings, .. }] = &first[..] else {
        panic!("{first:?}")
    };
    let numbers: Vec<_> = openings.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
    // The last one waits until it is worth the fee.
    assert!(world.redeem() > 0);
    assert_eq!(duties(&world), []);
}

#[test]
fn thirty_two_answers_stream_at_once_over_one_channel_and_are_paid_in_the_order_of_their_requests() {
    let mut world = World::new(1_000_000);
    for call in 0..32 {
        let wanted = if call % 4 == 3 {
            items(5 + call, 4)
        } else {
            text(3 + call, 20 + 5 * call, u64::from(call % 3) * 7, 8)
        };
        let nonce = world.ask(wanted).unwrap();
        assert_eq!(nonce, call);
        // Asked, taken; nothing is computed yet.
        assert!(world.tell_payee(nonce) && world.tell_payer(nonce));
    }
    assert_eq!(world.payer.open_calls().count(), 32);
    // A chunk ahead of nothing each.
    let ahead = world.payer.signed();
    world.settle();
    assert_eq!(world.done.len(), 32);
    for (nonce, receipt) in &world.done {
        let wanted = &world.asked[nonce];
        let (output, how) = answer(&wanted.request, &wanted.input);
        assert_eq!(world.got[nonce], output);
        assert_eq!(receipt.statement.end.unwrap().how, how);
    }
    let price: u128 = world.done.values().map(|signed| signed.statement.price).sum();
    let (sum, served) = world.payee.account(CHANNEL).unwrap();
    assert_eq!(served, price);
    assert!(price <= sum && sum <= price + ahead);
    world.assert_no_clash();

    world.batch();
    assert_eq!(world.roots.len(), 1);
    assert_eq!(world.redeem(), 0, "its window is open");
    world.clock = 11;
    assert_eq!(world.redeem(), price);
    assert_eq!(world.redeem(), 0);
    // The payer sees each of its receipts in the batch.
    world.see_payer();
    assert_eq!(world.payer.demands((5, 5), u32::MAX).count(), 32);
    for nonce in 0..32 {
        let shown = world.shown(nonce);
        assert_eq!(shown.batched.statement, world.done[&nonce].statement);
        world.cover(nonce).unwrap();
    }
    assert_eq!(world.payer.demands((5, 5), 0).count(), 0);
    let mut held = world.payer.held();
    assert!(held.all(|(_, state, _)| state == HeldState::Covered(0)));
}

#[test]
fn of_what_is_lost_that_counts_which_its_payee_has_signed() {
    let lost = |says: bool| {
        let (mut world, nonce) = World::answering(10_000, text(10, 100, 0, 16));
        if says {
            world.compute(nonce, 16);
        }
        while world.tell_payer(nonce) {}
        world.drop_connection(nonce);
        world.payer.uncounted()
    };
    assert_eq!((lost(false), lost(true)), (0, 26 * TOKEN));
}

#[test]
fn what_was_shown_to_be_in_a_batch_is_demanded_no_more_and_counts_until_it_is_final() {
    let mut world = World::new(10_000);
    for _ in 0..3 {
        world.ask(text(3, 5, 0, 8)).unwrap();
        world.settle();
    }
    world.clock = 100;
    world.see_payer();
    let demanded = |world: &World| -> Vec<Nonce> {
        let demands = world.payer.demands((5, 5), u32::MAX);
        demands.map(|held| held.statement.nonce).collect()
    };
    assert_eq!(demanded(&world), [0, 1, 2]);
    world.payer_does(|payer| payer.shown(0, false));
    world.restart_payer();
    world.see_payer();
    assert_eq!(demanded(&world), [1, 2]);
    assert_eq!(world.payer.uncounted(), 3 * 8 * TOKEN);
    // What was shown on the chain may be shown to the payer, too.
    world.batch();
    world.cover(0).unwrap();
    assert_eq!(world.payer.uncounted(), 3 * 8 * TOKEN);
    for nonce in 0..2 {
        world.payer_does(|payer| payer.forget(nonce));
    }
    assert_eq!(world.payer.uncounted(), 8 * TOKEN);
}

#[test]
fn what_no_batch_has_is_demanded_after_a_while_and_before_its_channel_ends() {
    let mut world = World::new(10_000);
    let nonce = world.ask(text(3, 5, 0, 8)).unwrap();
    world.settle();
    let receipt = world.done[&nonce].clone();
    let at = world.clock;
    let mut demands = |after: u32, patience, latest| {
        world.clock = at + after;
        world.see_payer();
        let late = world.payer.demands((patience, 1), latest);
        late.cloned().collect::<Vec<_>>()
    };
    assert_eq!(demands(5, 5, u32::MAX), []);
    assert_eq!(demands(6, 5, u32::MAX), std::slice::from_ref(&receipt));
    // Its channel ends before it is late.
    assert_eq!(demands(6, 100, at + 6), []);
    assert_eq!(demands(7, 100, at + 6), std::slice::from_ref(&receipt));
    assert_eq!(demands(7, u32::MAX, at + 6), [receipt]);
}

#[test]
fn a_cancelled_answer_ends_where_it_is_and_one_of_nothing_costs_nothing() {
    let (mut world, begun) = World::answering(10_000, text(10, 100, 0, 16));
    world.compute(begun, 16);
    world.tell_payer(begun);
    world.tell_payer(begun);
    let empty = world.ask(text(10, 100, 0, 16)).unwrap();
    world.tell_payee(empty);
    for nonce in [begun, empty] {
        world.payer_does(|payer| payer.cancel(nonce));
    }
    world.settle();
    let receipt = &world.done[&begun].statement;
    assert_eq!((receipt.units, receipt.end.unwrap().how), (26, End::Cancelled));
    assert_eq!(
        receipt.end.unwrap().trace_root,
        trace_root(&world.asked[&begun].request, 16)
    );
    assert!(world.done[&empty].statement.is_void());
    assert_eq!(world.payer.spent(), 26 * TOKEN);
    world.batch();
    assert!(world.shown(empty).batched.statement.is_void());
    world.assert_no_clash();
}

#[test]
fn an_answer_that_is_not_paid_for_is_cut_after_a_while_and_loses_a_chunk_of_computing() {
    let (mut world, nonce) = World::answering(10_000, text(10, 100, 0, 16));
    world.compute(nonce, 100);
    // The payer hears the first chunk, and its voucher never arrives.
    for _ in 0..10 {
        world.compute(nonce, 100);
    }
    assert_eq!(world.payee.room(CHANNEL, nonce), 0);
    assert_eq!(world.sent.len(), 1);
    world.now += PATIENCE - 1;
    let now = world.now;
    world.payee_does(|payee| payee.tick(now));
    assert_eq!(world.payee.open_calls().count(), 1);
    world.wait();
    assert_eq!(world.payee.open_calls().count(), 0);
    let receipt = &world.sent.last().unwrap().statement;
    assert_eq!((receipt.units, receipt.end.unwrap().how), (26, End::Cut));
    // What it had computed of the second chunk was all that it lost; what it served was paid.
    assert_eq!(world.payee.account(CHANNEL), Some((26 * TOKEN, 26 * TOKEN)));
    world.tell_payer(nonce);
    world.tell_payer(nonce);
    world.tell_payer(nonce);
    assert_eq!(world.done[&nonce].statement.end.unwrap().how, End::Cut);
    world.assert_no_clash();
}

#[test]
fn a_payer_whose_payee_falls_silent_loses_a_chunk() {
    let (mut world, nonce) = World::answering(10_000, text(10, 100, 0, 16));
    world.compute(nonce, 16);
    world.tell_payer(nonce);
    world.tell_payer(nonce);
    world.payer_does(|payer| payer.lost(nonce));
    let (_, why, spent, evidence) = world.broken.pop().unwrap();
    assert_eq!((why, evidence), (Broken::Lost, None));
    assert_eq!(spent, world.got_value() + 16 * TOKEN);
    assert_eq!(world.payer.spent(), spent);
    // The receipt that it finds in a batch later says what it did cost.
    world.end_all();
    world.batch();
    let shown = world.shown(nonce);
    world.cover(nonce).unwrap();
    assert_eq!(world.payer.spent(), shown.batched.statement.price);
    assert!(world.payer.spent() <= spent);
}

#[test]
fn an_answer_that_the_channel_cannot_pay_is_cancelled_and_none_is_asked_beyond_it() {
    let mut world = World::new(40 * TOKEN);
    let nonce = world.ask(text(10, 100, 0, 16)).unwrap();
    world.settle();
    let receipt = &world.done[&nonce].statement;
    assert_eq!((receipt.units, receipt.end.unwrap().how), (26, End::Cancelled));
    let refused = world.ask(text(10, 100, 0, 16)).unwrap_err();
    let missing = 12 * TOKEN;
    assert_eq!(refused, AskError::Exhausted { missing });
    world.top_up(missing);
    let next = world.ask(text(10, 16, 0, 16)).unwrap();
    world.settle();
    assert_eq!(world.done[&next].statement.end.unwrap().how, End::Length);
}

#[test]
fn a_receipt_is_held_back_by_an_answer_before_it_that_goes_on() {
    let (mut world, long) = World::answering(10_000, text(10, 100, 0, 16));
    world.tell_payer(long);
    let short = answer_next_to_others(&mut world);
    world.batch();
    assert_eq!(world.roots, []);
    world.settle();
    world.batch();
    assert_eq!(world.roots[0].sums.receipts, 2);
    world.shown(short);
}

#[test]
fn a_payer_that_closes_is_held_to_what_its_batches_will_say() {
    let mut world = World::new(10_000);
    world.ask(text(10, 5, 0, 16)).unwrap();
    world.settle();
    world.seen.purse.close(12);
    let duties = |world: &World| {
        world
            .payee
            .duties(&world.seen, &world.windows, world.clock, &POLICY)
    };
    assert_eq!(duties(&world), [Duty::Batch]);
    world.batch();
    // The batch can be disputed until 10: too late to be sure of.
    let due = duties(&world);
    let [
        Duty::Hold {
            channel,
            batch,
            opening,
        },
    ] = &due[..]
    else {
        panic!("{due:?}");
    };
    assert_eq!((*channel, *batch), (CHANNEL, 0));
    let window = world.windows[&0].clone();
    let shown = opening.verify(&window.root).unwrap();
    world.seen.purse.hold(&window, &shown, world.clock, 30).unwrap();
    assert_eq!(duties(&world), []);
    world.clock = 11;
    assert_eq!(world.redeem(), 15 * TOKEN);
}

/// How many the payee has of the first ten.
fn receipts(world: &World) -> usize {
    let is_there = |nonce: &Nonce| world.payee.answered(CHANNEL, *nonce).is_some();
    (0..10).filter(is_there).count()
}

#[test]
fn what_can_be_disputed_is_kept_and_what_is_forgotten_leaves_nothing_behind() {
    let mut world = World::new(10_000);
    for _ in 0..3 {
        world.ask(text(10, 50, 0, 16)).unwrap();
        world.settle();
        world.batch();
    }
    assert_eq!(world.roots.len(), 3);
    let rows_of = |world: &World, table| world.payee_disk.of(|of| of == table).len();
    assert_eq!(rows_of(&world, Table::Calls), 3);
    world.clock = 11;
    assert_eq!(world.redeem(), 3 * 60 * TOKEN);
    for number in 0..2 {
        world.payee_does(|payee| payee.forget(number));
    }
    let tables = [Table::Calls, Table::Inputs, Table::Batches];
    // The channel is there: whoever holds what was signed can dispute it.
    assert_eq!(tables.map(|table| rows_of(&world, table)), [3, 3, 1]);
    assert_eq!(rows_of(&world, Table::Outputs), 12);
    assert_eq!(world.payee.open_receipt(CHANNEL, 0), None);
    assert_eq!(receipts(&world), 3);
    // It starts again from what is left, and goes on.
    world.restart_payee();
    world.shown(2);
    world.ask(text(10, 50, 0, 16)).unwrap();
    world.settle();
    assert_eq!(world.done.len(), 4);
    world.batch();
    for number in 2..4 {
        world.payee_does(|payee| payee.forget(number));
    }
    assert_eq!(receipts(&world), 4);
    // With the channel all go but those of the last batch.
    world.payee_does(|payee| payee.forget_channel(CHANNEL));
    assert_eq!(tables.map(|table| rows_of(&world, table)), [1, 1, 1]);
    assert_eq!(rows_of(&world, Table::Outputs), 4);
    world.restart_payee();
    assert_eq!(receipts(&world), 1);
    // The payer is done with all of it; nothing is left of its statements either.
    for nonce in 0..4 {
        world.payer_does(|payer| payer.forget(nonce));
    }
    assert_eq!(world.payer_disk.of(|of| of == Table::Held), []);
    assert_eq!(world.payer.spent(), 4 * 60 * TOKEN);
}
