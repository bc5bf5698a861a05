//! Random lives of a channel: calls, losses, deaths, batches and money, in any order.

use crate::{support::*, world::World};
use proptest::{collection::vec, prelude::*};
use surety_channels::*;

/// Most requests that the payer has open at once.
const AT_ONCE: usize = 4;

/// The dearest first chunk.
const CHUNK: u128 = (20 + 20) * TOKEN;

#[derive(Clone, Copy, Debug)]
enum Event {
    Ask {
        prompt: u32,
        tokens: u32,
        stops: u64,
        chunk: u32,
    },
    ToPayee(usize),
    ToPayer(usize),
    Compute(usize, usize),
    Cancel(usize),
    Drop(usize),
    KillPayee(usize, bool),
    KillPayer(usize, bool),
    Wait,
    Batch,
    Redeem(Time),
    TopUp(u128),
}

fn any_event() -> impl Strategy<Value = Event> {
    let call = || 0..AT_ONCE;
    prop_oneof![
        8 => (1u32..20, 1u32..60, 0u64..30, 1u32..20).prop_map(|(prompt, tokens, stops, chunk)| {
            Event::Ask { prompt, tokens, stops, chunk }
        }),
        24 => call().prop_map(Event::ToPayee),
        24 => call().prop_map(Event::ToPayer),
        24 => (call(), 1usize..20).prop_map(|(call, units)| Event::Compute(call, units)),
        2 => call().prop_map(Event::Cancel),
        1 => call().prop_map(Event::Drop),
        1 => (0usize..3, any::<bool>()).prop_map(|(at, is_durable)| Event::KillPayee(at, is_durable)),
        1 => (0usize..3, any::<bool>()).prop_map(|(at, is_durable)| Event::KillPayer(at, is_durable)),
        2 => Just(Event::Wait),
        2 => Just(Event::Batch),
        2 => (1u32..8).prop_map(Event::Redeem),
        1 => (1u128..200).prop_map(Event::TopUp),
    ]
}

fn play(world: &mut World, event: Event) {
    let calls = world.calls();
    let at = |place: usize| calls.get(place.checked_rem(calls.len())?).copied();
    match event {
        Event::Ask {
            prompt,
            tokens,
            stops,
            chunk,
        } => {
            if world.payer.open_calls().count() < AT_ONCE {
                // It may lack money, or wait for an answer to another one.
                let _ = world.ask(text(prompt, tokens, stops, chunk));
            }
        }
        Event::ToPayee(call) => {
            at(call).map(|nonce| world.tell_payee(nonce));
        }
        Event::ToPayer(call) => {
            at(call).map(|nonce| world.tell_payer(nonce));
        }
        Event::Compute(call, units) => {
            at(call).map(|nonce| world.compute(nonce, units));
        }
        Event::Cancel(call) => {
            if let Some(nonce) = at(call) {
                world.payer_does(|payer| payer.cancel(nonce));
            }
        }
        Event::Drop(call) => {
            if let Some(nonce) = at(call) {
                world.drop_connection(nonce);
            }
        }
        Event::KillPayee(after, is_durable) => {
            let at = world.payee_disk.puts.get() + after;
            world.payee_disk.dies_at.set(Some((at, is_durable)));
        }
        Event::KillPayer(after, is_durable) => {
            let at = world.payer_disk.puts.get() + after;
            world.payer_disk.dies_at.set(Some((at, is_durable)));
        }
        Event::Wait => world.wait(),
        Event::Batch => world.batch(),
        Event::Redeem(time) => {
            world.clock += time;
            world.redeem();
        }
        Event::TopUp(amount) => world.top_up(amount),
    }
}

fn check(world: &World) {
    let (sum, served) = world.payee.account(CHANNEL).unwrap_or_default();
    let signed = world.payer.signed();
    assert!(served <= sum, "something was served that is not paid");
    assert!(sum <= signed && signed <= world.seen.terms.deposit);
    assert!(world.payer.spent() <= signed);
    assert!(world.seen.purse.paid <= sum && world.seen.purse.paid <= served);
    assert!(world.sums.is_sorted(), "a payer has signed a lower sum");
    assert!(
        !world.payer.is_distrusted(),
        "an honest payee is taken for a liar"
    );
    // A chunk of each open request, and as much again for each connection that was lost.
    let at_risk = CHUNK * (AT_ONCE * (world.lost + 1)) as u128;
    assert!(
        signed <= world.got_value() + at_risk,
        "a payer has lost more than a chunk"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn nobody_loses_more_than_a_chunk_and_all_that_was_served_is_paid(
        deposit in 0u128..4_000, events in vec(any_event(), 1..250),
    ) {
        let mut world = World::new(deposit);
        for event in events {
            play(&mut world, event);
            check(&world);
        }
        world.payee_disk.dies_at.set(None);
        world.payer_disk.dies_at.set(None);
        world.end_all();
        check(&world);
        world.assert_no_clash();
        prop_assert_eq!(world.payee.open_calls().count(), 0);
        world.batch();
        world.clock += 100;
        while world.redeem() > 0 {}
        let (_, served) = world.payee.account(CHANNEL).unwrap_or_default();
        prop_assert_eq!(world.seen.purse.paid, served);
    }

    #[test]
    fn while_no_connection_is_lost_no_more_than_a_chunk_ahead_of_each_answer_is_ever_signed(
        events in vec(any_event(), 1..250),
    ) {
        let mut world = World::new(100_000);
        for event in events {
            if matches!(event, Event::Drop(_) | Event::KillPayee(..) | Event::KillPayer(..)) {
                continue;
            }
            play(&mut world, event);
            prop_assert_eq!(world.lost, 0);
            let signed = world.payer.signed();
            prop_assert!(signed <= world.got_value() + CHUNK * AT_ONCE as u128);
        }
        // Everybody has got what it wanted, or what it has not cancelled.
        world.end_all();
        let (_, served) = world.payee.account(CHANNEL).unwrap_or_default();
        prop_assert_eq!(world.got_value(), served);
    }
}
