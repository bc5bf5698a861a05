//! Cheats that take hours: what is signed and not batched, what is demanded, and disputes that only delay.

use surety_channels::{ChannelId, ChunkStatement, Time, view::Says};
use surety_proofs::{SegmentOpening, segments};

use super::{
    cheats::{Cheat, liar, sold},
    offer::{AN_HOUR, CHUNK, PLACES, RECEIPTS},
    trade::{CLOSING, GENESIS, SUPPLY, Trade, WINDOW, made_up},
};
use crate::books::Role;

/// Hours until a client demands what is in no batch, which is two, and until what is demanded was withheld.
const HOURS: u32 = 2 + SUPPLY / WINDOW;

/// Clients of a provider, where there are many.
const CLIENTS: u32 = 10;

/// The longest dispute of a receipt, of which both sides use up their clocks: six hours.
const DISPUTE: Time = 6 * WINDOW;

/// Answers everybody wrong, and batches nothing of that: it is not paid, and no point meets it.
pub const BATCHES_NOTHING: Cheat = Cheat {
    takes_hours: true,
    baseline: |trade| honest_hours(trade, 1),
    ..liar("wrong, and never batched", |trade| batches_nothing(trade, 1))
};

/// The same with many clients, who ask as much together.
pub const BATCHES_NOTHING_OF_MANY: Cheat = Cheat {
    takes_hours: true,
    baseline: |trade| honest_hours(trade, CLIENTS),
    ..liar("wrong for many, and never batched", |trade| {
        batches_nothing(trade, CLIENTS)
    })
};

/// The same with clients that come one after the other, each with as much as all before it.
pub const BATCHES_NOTHING_OF_LATER_ONES: Cheat = Cheat {
    takes_hours: true,
    baseline: |trade| honest_hours(trade, CLIENTS),
    ..liar("wrong for whoever comes next, and never batched", one_by_one)
};

/// Answers everybody wrong, and batches something else under the same numbers, which is right.
pub const BATCHES_ANOTHER: Cheat = Cheat {
    takes_hours: true,
    baseline: |trade| honest_hours(trade, 1),
    ..liar("says one thing and batches another", |trade| {
        batches_another(trade, HOURS)
    })
};

/// The same for an hour, beside an hour's honest trade: what it gives up for that is nothing to it.
pub const BATCHES_ANOTHER_ONCE: Cheat = Cheat {
    takes_hours: true,
    baseline: honest_hour,
    ..liar("says one thing and batches another, once", |trade| {
        batches_another(trade, 1)
    })
};

/// The same, and it shows nothing when it is asked: not what was right and comes first, either. That it shows
/// once it is demanded.
pub const BATCHES_ANOTHER_AND_STALLS: Cheat = Cheat {
    takes_hours: true,
    baseline: honest_hour,
    ..liar(
        "says one thing, batches another, and shows nothing that it is asked for",
        stalls,
    )
};

/// The same, and what it has said it batches beside that, as late as it can.
pub const BATCHES_BESIDE: Cheat = Cheat {
    takes_hours: true,
    baseline: honest_hour,
    ..liar(
        "says one thing, batches another, and that beside it",
        batches_beside,
    )
};

/// The same, and breaks each answer off before its end: what it batches is longer than what was heard.
pub const BREAKS_OFF: Cheat = Cheat {
    takes_hours: true,
    baseline: honest_hour,
    ..liar("breaks off, and batches something longer", breaks_off)
};

/// Answers an hour wrong, and fills its cap with what it has sold to itself, so that there is no room for
/// what is demanded.
pub const FILLS_CAP: Cheat = Cheat {
    takes_hours: true,
    baseline: honest_hour,
    ..liar("own receipts fill the cap", |trade| fills_cap(trade, 1))
};

/// The same for as long as nobody can make it batch anything.
pub const FILLS_CAP_FOR_LONG: Cheat = Cheat {
    baseline: |trade| honest_hours(trade, 1),
    play: |trade| fills_cap(trade, HOURS),
    ..FILLS_CAP
};

/// An hour's answers, as far as clients ask for them, and their batch where it makes one.
fn an_hour(trade: &mut Trade, channels: &[ChannelId], right: bool, is_batched: bool) {
    let mut parts = Vec::new();
    for &channel in channels {
        let said = |trade: &Trade| trade.channels[channel as usize].said.len() as u32;
        let first = said(trade);
        for _ in 0..AN_HOUR / channels.len() as u32 {
            if trade.may_ask(channel) {
                trade.answer(channel, right);
            }
        }
        parts.push((channel, first..said(trade)));
    }
    if is_batched && let Some(number) = trade.commit(&parts) {
        trade.audit(number);
    }
    trade.wait();
    for channel in channels.iter().filter(|_| is_batched) {
        trade.redeem(*channel);
    }
}

/// Channels of so many clients for what they ask in so many hours together.
fn clients(trade: &mut Trade, count: u32, hours: u32) -> Vec<ChannelId> {
    let of_each = AN_HOUR / count * hours;
    (0..count).map(|_| trade.open(Role::Client, of_each)).collect()
}

fn honest_hours(trade: &mut Trade, count: u32) {
    let channels = clients(trade, count, HOURS);
    for _ in 0..HOURS {
        an_hour(trade, &channels, true, true);
    }
}

pub fn honest_hour(trade: &mut Trade) {
    let channels = clients(trade, 1, 1);
    an_hour(trade, &channels, true, true);
}

/// A client demands what is in no batch, and its provider shows nothing.
fn withholds(trade: &mut Trade, has_room: bool) {
    let price = trade.offer.transaction;
    trade.books.pay(Role::Client, Role::World, price);
    if has_room || trade.offer.chain.due_at_once {
        trade.convict(None);
    }
}

fn batches_nothing(trade: &mut Trade, count: u32) {
    let channels = clients(trade, count, HOURS);
    for _ in 0..HOURS {
        an_hour(trade, &channels, false, false);
    }
    withholds(trade, true);
}

/// Clients that come before the first can have demanded anything.
const LATER_ONES: u32 = 2 * HOURS;

fn one_by_one(trade: &mut Trade) {
    let mut deposit = AN_HOUR;
    for _ in 0..LATER_ONES {
        let channel = trade.open(Role::Client, deposit);
        if trade.now > 0 {
            deposit *= 2;
        }
        while trade.may_ask(channel) && trade.answer(channel, false) {}
        trade.now += WINDOW / 2;
    }
    withholds(trade, true);
}

/// Right answers of such a cheat, and how much is demanded before what was counted is due.
const STALLED: u32 = 10;
const DEMANDED: u32 = 8;

fn stalls(trade: &mut Trade) {
    let channels = clients(trade, 1, 1);
    for answer in 0..AN_HOUR {
        if trade.may_ask(channels[0]) {
            trade.answer(channels[0], answer < STALLED);
        }
    }
    trade.swap(channels[0]);
    let said = trade.channels[0].said.len() as u32;
    if let Some(number) = trade.commit(&[(channels[0], 0..said)]) {
        trade.audit(number);
    }
    trade.wait();
    trade.redeem(channels[0]);
    for shown in 0..DEMANDED {
        let others = CHUNK * u128::from(STALLED - shown);
        trade.demand(channels[0]);
        if trade.demands_swapped(others) {
            return withholds(trade, true);
        }
        trade.show(channels[0]);
        let price = trade.offer.transaction;
        trade.books.pay(Role::Client, Role::World, price);
    }
}

fn batches_another(trade: &mut Trade, hours: u32) {
    let channels = clients(trade, 1, hours);
    for _ in 0..hours {
        let first = trade.channels[0].said.len() as u32;
        for _ in 0..AN_HOUR {
            if trade.may_ask(channels[0]) {
                trade.answer(channels[0], false);
            }
        }
        trade.swap(channels[0]);
        let said = trade.channels[0].said.len() as u32;
        if let Some(number) = trade.commit(&[(channels[0], first..said)]) {
            trade.audit(number);
        }
        trade.wait();
        trade.redeem(channels[0]);
        if trade.offer.chain.compares && trade.has_swapped() {
            trade.demand(channels[0]);
        }
    }
    if trade.offer.chain.compares && trade.has_swapped() {
        withholds(trade, true);
    }
}

/// It shows what it has said in another batch, which it has committed when the right one was counted.
fn batches_beside(trade: &mut Trade) {
    let channels = clients(trade, 1, 1);
    for _ in 0..AN_HOUR {
        if trade.may_ask(channels[0]) {
            trade.answer(channels[0], false);
        }
    }
    let (told, wrong) = (trade.channels[0].said.clone(), trade.wrong.clone());
    trade.swap(channels[0]);
    let all = [(channels[0], 0..told.len() as u32)];
    if let Some(number) = trade.commit(&all) {
        trade.audit(number);
    }
    trade.wait();
    trade.redeem(channels[0]);
    // It is missed.
    trade.demand(channels[0]);
    (trade.channels[0].said, trade.wrong) = (told, wrong);
    let Some(beside) = trade.commit(&all) else {
        return withholds(trade, true);
    };
    if !trade.offer.chain.shows_final {
        trade.show(channels[0]);
        trade.finish();
    }
    trade.audit(beside);
    trade.wait();
    if !trade.is_convicted {
        trade.show(channels[0]);
    }
}

/// It shows what it has batched, with whatever shows best that this goes on from what was heard.
fn breaks_off(trade: &mut Trade) {
    let channels = clients(trade, 1, 1);
    for _ in 0..AN_HOUR {
        if trade.may_ask(channels[0]) {
            trade.answer(channels[0], false);
        }
    }
    let heard: Vec<_> = trade.channels[0]
        .said
        .iter()
        .map(|said| ChunkStatement {
            end: None,
            ..said.clone()
        })
        .collect();
    trade.swap(channels[0]);
    if let Some(number) = trade.commit(&[(channels[0], 0..heard.len() as u32)]) {
        trade.audit(number);
    }
    trade.wait();
    trade.redeem(channels[0]);
    // Its client demands what it has heard of each.
    trade.demand(channels[0]);
    let receipts = trade.channels[0].said.iter();
    let are_met = heard.iter().zip(receipts).all(|(heard, receipt)| {
        if !trade.offer.chain.goes_on {
            return heard.bytes < receipt.bytes;
        }
        let (says, output) = (
            Says::of(heard, &GENESIS),
            made_up((receipt.channel, receipt.nonce)),
        );
        let mut shown = (0..segments(receipt.bytes)).map(|segment| SegmentOpening::new(&output, segment));
        shown.any(|shown| says.met_by(receipt, shown.as_ref(), &GENESIS).is_ok())
    });
    if !are_met {
        return withholds(trade, true);
    }
    trade.show(channels[0]);
    let price = trade.offer.transaction * heard.len() as u128;
    trade.books.pay(Role::Client, Role::World, price);
}

fn fills_cap(trade: &mut Trade, wrong: u32) {
    let channel = trade.open(Role::Client, AN_HOUR * wrong);
    let own = trade.open(Role::Challenger, 0);
    for hour in 0..HOURS {
        trade.make_up(own, trade.offer.cap);
        if let Some(number) = trade.commit(&[(own, hour..hour + 1)]) {
            trade.audit(number);
        }
        let asked = if hour < wrong { AN_HOUR } else { 0 };
        for _ in 0..asked {
            if trade.may_ask(channel) {
                trade.answer(channel, false);
            }
        }
        trade.wait();
    }
    withholds(trade, false);
}

/// Answers wrong, and gives the client its deposit back: over a channel that is gone nothing is demanded.
pub fn gives_back(trade: &mut Trade) {
    let channels = clients(trade, 1, 1);
    an_hour(trade, &channels, false, false);
    if !trade.offer.chain.record_stays {
        return;
    }
    let (now, purse) = (trade.now, &mut trade.channels[channels[0] as usize].purse);
    purse.give_back(now + CLOSING, 0);
    // What is demanded before the channel goes has to be shown.
    if purse.refund(now + SUPPLY, now + 2 * CLOSING).is_none() {
        withholds(trade, true);
    }
}

/// A payer that owes for a thousand answers closes, and somebody of its own disputes their batch at all
/// places there are, again and again, so that it is not final before the payee's time is over.
pub fn shams(trade: &mut Trade) {
    sold(trade, 0);
    let Some(number) = trade.commit(&[(0, 0..RECEIPTS)]) else {
        return;
    };
    trade.audit(number);
    let (offer, expiry) = (trade.offer, trade.now + WINDOW);
    let lost = offer.bond() * u128::from(PLACES);
    let last = expiry + CLOSING;
    while trade.now <= last {
        trade.books.pay(Role::Challenger, Role::Burned, lost / 2);
        trade.books.pay(Role::Challenger, Role::Provider, lost / 2);
        let window = &mut trade.committed[number].window;
        (window.disputes, window.until) = (PLACES, Time::MAX);
        hold(trade, number, last);
        trade.now += DISPUTE;
    }
    let window = &mut trade.committed[number].window;
    (window.disputes, window.until) = (0, trade.now + WINDOW);
    hold(trade, number, last);
    if trade.channels[0].purse.refund(trade.now, expiry).is_none() {
        trade.wait();
        trade.redeem(0);
    }
}

/// The payee has a late batch hold back what it is owed.
fn hold(trade: &mut Trade, number: usize, last: Time) {
    let (now, of) = (trade.now, &trade.committed[number]);
    let shown = of
        .batch
        .open_channel(0)
        .and_then(|shown| shown.verify(&of.window.root));
    let until = if trade.offer.chain.holds_last {
        now + CLOSING
    } else {
        (now + CLOSING).min(last)
    };
    if let Some(shown) = shown {
        // It is not final, and of this channel.
        let _ = trade.channels[0].purse.hold(&of.window, &shown, now, until);
    }
}

/// Makes up what it has sold to itself, and has verifiers of its own paid for looking at that.
pub fn draws_own_levies(trade: &mut Trade) {
    trade.do_cronies_compute = false;
    let own = trade.open(Role::Challenger, 0);
    trade.make_up(own, CHUNK * u128::from(RECEIPTS));
    if let Some(number) = trade.commit(&[(own, 0..1)]) {
        trade.audit(number);
    }
    trade.wait();
}

/// Answers all wrong, and shows a fault of its own before anybody finds them: what came before a conviction
/// is not punished again.
pub fn convicts_itself(trade: &mut Trade) {
    sold(trade, RECEIPTS);
    trade.convict(None);
}
