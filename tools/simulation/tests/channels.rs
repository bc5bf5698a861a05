//! Cheats over channels: none gains, the honest side's loss is bounded, and the lock is what theory says.

#![allow(clippy::unwrap_used)]

use surety_dispute_game::testsuite::dice::Dice;
use surety_simulation::{
    books::Role,
    channels::{
        BATCHES_ANOTHER, BATCHES_ANOTHER_AND_STALLS, BATCHES_ANOTHER_ONCE, BATCHES_BESIDE, BATCHES_NOTHING,
        BATCHES_NOTHING_OF_LATER_ONES, BATCHES_NOTHING_OF_MANY, BREAKS_OFF, Bound, CHEATS, CHUNK, Chain,
        Cheat, FILLS_CAP_FOR_LONG, Found, Offer, Trade, Voided, break_even, detection, play,
    },
    report::CORRUPT,
};

const LIVES: u64 = 40;

fn played(name: &str, offer: &Offer, corrupt: u32, lives: u64) -> Found {
    let cheat = CHEATS.iter().find(|cheat| cheat.name == name).unwrap();
    play(cheat, offer, corrupt, 7, lives)
}

#[test]
fn no_cheat_over_channels_gains_and_nobody_honest_is_slashed() {
    for cheat in CHEATS {
        for corrupt in CORRUPT {
            // The rest is for a test of its own.
            let lives = match (cheat.is_rare, cheat.takes_hours) {
                (true, _) => 5 * LIVES,
                (_, true) => 2,
                _ => LIVES / 2,
            };
            let found = played(cheat.name, &cheat.offer(), corrupt, lives);
            assert!(
                found.profit < 0.0,
                "{}, {corrupt} % corrupt: {} +- {}",
                cheat.name,
                found.profit,
                found.error
            );
            assert_eq!(found.honest_slashes, 0, "{}", cheat.name);
            // A chunk, and what a transaction or two cost.
            let is_bounded = cheat.answers_wrong || found.honest_loss_chunks < 1.1;
            assert!(is_bounded, "{}: {}", cheat.name, found.honest_loss_chunks);
        }
    }
}

#[test]
fn one_wrong_receipt_in_a_thousand_loses_in_the_mean() {
    for corrupt in [0, 33] {
        let found = played("one wrong in a thousand", &Offer::usual(), corrupt, 400);
        assert!(
            found.profit + 3.0 * found.error < 0.0,
            "{corrupt}: {} +- {}",
            found.profit,
            found.error
        );
        // Few are met: it is the lock that makes it a loss.
        assert!(found.convicted > 0 && found.convicted < found.lives / 10);
    }
}

#[test]
fn one_wrong_receipt_in_a_thousand_is_found_as_often_as_its_price_says() {
    for corrupt in CORRUPT {
        let found = played("one wrong in a thousand", &Offer::usual(), corrupt, 500);
        let (promised, seen, sigmas) = detection(&Offer::usual(), corrupt, &found);
        assert!(sigmas.abs() < 3.0, "{corrupt}: {promised}, {seen}");
    }
}

/// With other rules, or those that there are.
fn under(name: &str, chain: Chain) -> f64 {
    let cheat = CHEATS.iter().find(|cheat| cheat.name == name).unwrap();
    let offer = Offer {
        chain,
        ..cheat.offer()
    };
    play(cheat, &offer, 0, 7, 4).profit
}

#[test]
fn a_payer_outlasts_its_payee_neither_by_cheap_bonds_nor_by_its_expiry() {
    let name = "sham disputes until the payee's time is over";
    let is = Chain::AS_IT_IS;
    let before = Chain {
        bonds_by_lock: false,
        holds_last: false,
        ..is
    };
    assert!(under(name, before) > 10.0, "{}", under(name, before));
    let held = Chain {
        bonds_by_lock: false,
        ..is
    };
    assert!(under(name, held) < 0.0);
    assert!(under(name, is) < under(name, held));
}

#[test]
fn a_demand_that_waits_for_room_or_a_channel_that_is_forgotten_would_let_lies_pay() {
    let is = Chain::AS_IT_IS;
    let waits = Chain {
        due_at_once: false,
        // Less is asked otherwise than it would take.
        bound: Bound::None,
        ..is
    };
    let long = |chain| {
        let offer = Offer {
            chain,
            ..Offer::by_the_hour()
        };
        play(&FILLS_CAP_FOR_LONG, &offer, 0, 7, 2).profit
    };
    assert!(long(waits) > 5.0, "{}", long(waits));
    let name = "deposit given back before anybody looks";
    let forgotten = Chain {
        record_stays: false,
        ..is
    };
    assert!(under(name, forgotten) > 0.0);
    assert!(under(name, is) < 0.0);
}

#[test]
fn what_is_never_batched_pays_unless_all_clients_together_ask_within_what_the_lock_covers() {
    let with = |cheat: &Cheat, bound| {
        let chain = Chain {
            bound,
            ..Chain::AS_IT_IS
        };
        let offer = Offer {
            chain,
            ..Offer::by_the_hour()
        };
        play(cheat, &offer, 0, 7, 2).profit
    };
    let (one, many) = (&BATCHES_NOTHING, &BATCHES_NOTHING_OF_MANY);
    for (cheat, bound) in [(one, Bound::None), (many, Bound::None), (many, Bound::Each)] {
        let profit = with(cheat, bound);
        assert!(profit > 5.0, "{}, {bound:?}: {profit}", cheat.name);
    }
    let bounded = [(one, Bound::Each), (one, Bound::All), (many, Bound::All)];
    let seasoned = [(one, Bound::Seasoned), (many, Bound::Seasoned)];
    for (cheat, bound) in bounded.into_iter().chain(seasoned) {
        let profit = with(cheat, bound);
        assert!(profit < 0.0, "{}, {bound:?}: {profit}", cheat.name);
    }
}

/// What a cheat of hours wins, in SURE.
fn over_hours(cheat: &Cheat, chain: Chain) -> f64 {
    let offer = Offer {
        chain,
        ..Offer::by_the_hour()
    };
    play(cheat, &offer, 0, 7, 2).profit
}

#[test]
fn lies_to_clients_that_come_one_after_the_other_pay_unless_new_deposits_count_in_part() {
    let before = Chain {
        bound: Bound::All,
        ..Chain::AS_IT_IS
    };
    let cheat = &BATCHES_NOTHING_OF_LATER_ONES;
    let (pays, loses) = (over_hours(cheat, before), over_hours(cheat, Chain::AS_IT_IS));
    assert!(pays > 5.0 && loses < -50.0, "{pays}, {loses}");
}

#[test]
fn saying_one_thing_and_batching_another_pays_unless_what_is_counted_is_compared() {
    let before = Chain {
        compares: false,
        ..Chain::AS_IT_IS
    };
    let (pays, loses) = (
        over_hours(&BATCHES_ANOTHER, before),
        over_hours(&BATCHES_ANOTHER, Chain::AS_IT_IS),
    );
    assert!(pays > 5.0 && loses < -50.0, "{pays}, {loses}");
}

#[test]
fn whoever_shows_nothing_that_it_is_asked_for_loses_its_lock_as_what_is_demanded_is_drawn_of_all() {
    const LIVES: u64 = 20;
    let under = |draws_of_all| {
        let chain = Chain {
            draws_of_all,
            ..Chain::AS_IT_IS
        };
        let offer = Offer {
            chain,
            ..Offer::by_the_hour()
        };
        play(&BATCHES_ANOTHER_AND_STALLS, &offer, 0, 7, LIVES)
    };
    let (before, is) = (under(false), under(true));
    assert_eq!((before.convicted, is.convicted), (0, LIVES));
    // What is burned of its lock, and what it is not paid.
    assert!(
        is.profit < before.profit - 50.0,
        "{}, {}",
        is.profit,
        before.profit
    );
}

#[test]
fn saying_one_thing_and_batching_another_once_pays_unless_what_is_counted_waits_for_who_misses_it() {
    let before = Chain {
        pay_waits: false,
        ..Chain::AS_IT_IS
    };
    for cheat in [&BATCHES_ANOTHER_ONCE, &BATCHES_ANOTHER_AND_STALLS] {
        let (pays, loses) = (over_hours(cheat, before), over_hours(cheat, Chain::AS_IT_IS));
        assert!(pays > 20.0 && loses < -10.0, "{}: {pays}, {loses}", cheat.name);
    }
}

#[test]
fn batching_what_was_said_beside_what_is_counted_pays_unless_it_is_shown_once_it_is_final() {
    const LIVES: u64 = 20;
    let under = |shows_final| {
        let chain = Chain {
            shows_final,
            ..Chain::AS_IT_IS
        };
        let offer = Offer {
            chain,
            ..Offer::by_the_hour()
        };
        play(&BATCHES_BESIDE, &offer, 0, 7, LIVES)
    };
    let (before, is) = (under(false), under(true));
    // It is convicted either way, but for what nobody can decide.
    assert!(
        before.convicted == is.convicted && is.convicted > LIVES / 2,
        "{is:?}"
    );
    assert!(
        before.profit > 20.0 && is.profit < -10.0,
        "{}, {}",
        before.profit,
        is.profit
    );
}

#[test]
fn breaking_off_and_batching_something_longer_pays_unless_that_has_to_go_on_from_what_was_heard() {
    let before = Chain {
        goes_on: false,
        ..Chain::AS_IT_IS
    };
    let (pays, loses) = (
        over_hours(&BREAKS_OFF, before),
        over_hours(&BREAKS_OFF, Chain::AS_IT_IS),
    );
    assert!(pays > 20.0 && loses < -10.0, "{pays}, {loses}");
}

#[test]
fn the_honest_are_paid_all_the_same_by_who_demands_of_them() {
    let offer = Offer::by_the_hour();
    let earned = |demands: bool| {
        let mut trade = Trade::new(&offer, 0, Dice::new(7, 1));
        let channel = trade.open(Role::Client, 100);
        trade.answers(channel, 100);
        if demands {
            trade.demand(channel);
        }
        trade.settle(u32::MAX);
        assert_eq!(trade.channels[0].purse.paid, 0, "it waits");
        if demands {
            trade.show(channel);
        }
        trade.finish();
        trade.channels[0].purse.paid
    };
    assert_eq!((earned(true), earned(false)), (100 * CHUNK, 100 * CHUNK));
}

#[test]
fn who_stops_signing_costs_the_other_a_chunk_at_most() {
    for name in ["last voucher never signed", "bills a chunk that was never said"] {
        let found = played(name, &Offer::usual(), 33, LIVES);
        assert!(
            found.honest_loss_chunks <= 1.0,
            "{name}: {}",
            found.honest_loss_chunks
        );
    }
    let closed = played("channel closed early", &Offer::usual(), 0, 3);
    assert!(closed.honest_loss_chunks <= 0.0);
}

#[test]
fn the_standing_lock_breaks_even_where_theory_says() {
    for corrupt in [0, 33] {
        let (promised, seen) = break_even(&Offer::usual(), corrupt, 7, 4_000);
        assert!(
            (seen / promised - 1.0).abs() < 0.1,
            "{corrupt}: {promised}, {seen}"
        );
    }
}

#[test]
fn a_conviction_has_to_void_all_open_batches_or_splitting_pays() {
    let with = |voided| {
        let offer = Offer {
            voided,
            ..Offer::without_risk()
        };
        played("wrong, split over many batches", &offer, 0, LIVES).profit
    };
    assert!(with(Voided::TheBatch) > 1.0, "{}", with(Voided::TheBatch));
    assert!(with(Voided::AllOpen) < 0.0, "{}", with(Voided::AllOpen));
}
