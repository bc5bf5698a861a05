//! Who cheats over channels, and how: one function each.

use codec::Encode;
use sp_core::H256;
use surety_channels::{BatchEvidence, Batched, ChunkStatement, Committed as HeldAgainst, Said};
use surety_proofs::content_hash;

use super::{
    hours,
    offer::{Offer, RECEIPTS},
    trade::{CLOSING, GENESIS, Trade},
};
use crate::books::Role;

/// Least lives of what is seldom met.
const RARE_LIVES: u64 = 1_000;

/// A way to cheat over channels.
#[derive(Clone, Copy)]
pub struct Cheat {
    /// A short name.
    pub name: &'static str,
    /// Whose money is the cheat's.
    pub cheat: &'static [Role],
    /// Who trades with it, and is honest.
    pub honest: Role,
    /// It is seldom met, and takes many lives to be told from luck.
    pub is_rare: bool,
    /// Its lives have many hours: their offer's cap is for one of them, and few are played.
    pub takes_hours: bool,
    /// Honest clients are answered wrong. Of what they pay for that, where nobody finds it, there is no bound
    /// but the cap.
    pub answers_wrong: bool,
    /// Theory says how often it is found.
    pub is_detected: bool,
    /// A life.
    pub play: fn(&mut Trade),
    /// The same, by the rules.
    pub baseline: fn(&mut Trade),
}

impl Cheat {
    /// What it is played with.
    pub fn offer(&self) -> Offer {
        if self.takes_hours {
            Offer::by_the_hour()
        } else {
            Offer::usual()
        }
    }

    /// How many lives are played of it where so many are of others.
    pub fn lives(&self, lives: u64) -> u64 {
        match (self.is_rare, self.takes_hours) {
            (true, _) => RARE_LIVES.max(20 * lives),
            // Hardly anything in them is chance.
            (_, true) => (lives / 50).max(2),
            _ => lives,
        }
    }
}

const fn provider(name: &'static str, play: fn(&mut Trade)) -> Cheat {
    Cheat {
        name,
        cheat: &[Role::Provider, Role::Challenger],
        honest: Role::Client,
        is_rare: false,
        takes_hours: false,
        answers_wrong: false,
        is_detected: false,
        play,
        baseline: honest,
    }
}

/// A provider that answers clients wrong.
pub(super) const fn liar(name: &'static str, play: fn(&mut Trade)) -> Cheat {
    Cheat {
        answers_wrong: true,
        ..provider(name, play)
    }
}

const fn client(name: &'static str, play: fn(&mut Trade), baseline: fn(&mut Trade)) -> Cheat {
    Cheat {
        name,
        cheat: &[Role::Client],
        honest: Role::Provider,
        is_rare: false,
        takes_hours: false,
        answers_wrong: false,
        is_detected: false,
        play,
        baseline,
    }
}

/// All of them.
pub const CHEATS: &[Cheat] = &[
    Cheat {
        is_rare: true,
        is_detected: true,
        ..liar("one wrong in a thousand", |trade| some_wrong(trade, 1))
    },
    liar("a tenth wrong", |trade| some_wrong(trade, RECEIPTS / 10)),
    liar("all wrong", |trade| some_wrong(trade, RECEIPTS)),
    liar("omitted receipt", omits),
    provider("receipt batched twice", batches_twice),
    provider("two receipts of one request", contradicts_itself),
    provider("voucher of another chain", replays_chain),
    provider("voucher of another channel", replays_channel),
    Cheat {
        is_rare: true,
        ..liar("bills a chunk that was never said", bills_more)
    },
    liar("padded batch", pads),
    liar("wrong, split over many batches", splits),
    Cheat {
        baseline: new_and_honest,
        ..liar("sells to itself while it is new", grows_up)
    },
    client("channel closed early", closes_early, honest),
    client("last voucher never signed", signs_no_more, honest_but_last),
    Cheat {
        cheat: &[Role::Client, Role::Challenger],
        ..client(
            "sham disputes until the payee's time is over",
            hours::shams,
            honest,
        )
    },
    hours::BATCHES_NOTHING,
    hours::BATCHES_NOTHING_OF_MANY,
    hours::BATCHES_NOTHING_OF_LATER_ONES,
    hours::BATCHES_ANOTHER,
    hours::FILLS_CAP,
    Cheat {
        takes_hours: true,
        baseline: hours::honest_hour,
        ..liar("deposit given back before anybody looks", hours::gives_back)
    },
    Cheat {
        cheat: &[Role::Provider, Role::Challenger, Role::Crony],
        baseline: |_| {},
        ..provider("ring: audits what it made up itself", hours::draws_own_levies)
    },
    liar("ring: convicts itself first", hours::convicts_itself),
];

/// The cheat of that name.
pub fn named(name: &str) -> &'static Cheat {
    let found = CHEATS.iter().find(|cheat| cheat.name == name);
    found.expect("a cheat that is played")
}

/// Answers of a batch that is wrong as a whole, for the break-even.
pub const ALL_OF_A_SMALL_BATCH: u32 = 20;

/// A batch of a few answers, all of them wrong.
pub const SMALL_BATCH: Cheat = Cheat {
    baseline: |_| {},
    ..liar("small batch, all wrong", |trade| {
        let channel = trade.open(Role::Client, ALL_OF_A_SMALL_BATCH);
        for _ in 0..ALL_OF_A_SMALL_BATCH {
            trade.answer(channel, false);
        }
        trade.settle(u32::MAX);
    })
};

fn honest(trade: &mut Trade) {
    some_wrong(trade, 0);
}

/// One client is answered a thousand times, the first few times wrong.
fn some_wrong(trade: &mut Trade, wrong: u32) {
    sold(trade, wrong);
    trade.settle(u32::MAX);
}

pub(super) fn sold(trade: &mut Trade, wrong: u32) {
    let channel = trade.open(Role::Client, RECEIPTS);
    for at in 0..RECEIPTS {
        trade.answer(channel, at >= wrong);
    }
}

/// Leaves the wrong receipt out, so that no point meets it. What comes after it does not count; its client
/// holds it, demands it, and it is not shown.
fn omits(trade: &mut Trade) {
    let channel = trade.open(Role::Client, RECEIPTS);
    for at in 0..RECEIPTS {
        trade.answer(channel, at != RECEIPTS / 2);
    }
    let parts = [0..RECEIPTS / 2, RECEIPTS / 2 + 1..RECEIPTS];
    for part in parts {
        if let Some(number) = trade.commit(&[(channel, part)]) {
            trade.audit(number);
        }
    }
    trade
        .books
        .pay(Role::Client, Role::World, trade.offer.transaction);
    let is_covered = trade
        .committed
        .iter()
        .any(|of| of.batch.open(channel, RECEIPTS / 2).is_some());
    if !is_covered {
        trade.convict(None);
    }
    trade.wait();
    trade.redeem(channel);
}

/// Batches what it has batched already.
fn batches_twice(trade: &mut Trade) {
    sold(trade, 0);
    trade.settle(u32::MAX);
    if let Some(number) = trade.commit(&[(0, 0..RECEIPTS)]) {
        trade.audit(number);
    }
    trade.wait();
    trade.redeem(0);
}

/// Batches another receipt for a request that it has answered: two that differ are an offence.
fn contradicts_itself(trade: &mut Trade) {
    sold(trade, 0);
    let first = trade.commit(&[(0, 0..RECEIPTS)]);
    let before = trade.channels[0].said[0].clone();
    let bytes = b"something else".encode();
    let after = ChunkStatement {
        bytes: bytes.len() as u32,
        output: content_hash(&bytes),
        ..before.clone()
    };
    trade.channels[0].said[0] = after.clone();
    trade.is_guilty = true;
    let second = trade.commit(&[(0, 0..RECEIPTS)]);
    if let (Some(first), Some(second)) = (first, second) {
        trade.audit(first);
        let (one, other) = (&trade.committed[first], &trade.committed[second]);
        let openings = (one.batch.open(0, 0), other.batch.open(0, 0));
        let (Some(opened), Some(contradicting)) = openings else {
            return;
        };
        let evidence = BatchEvidence::Contradiction {
            batched: Batched {
                opening: opened,
                statement: before,
            },
            said: Said::Batched(Batched {
                opening: contradicting,
                statement: after,
            }),
            shown: None,
        };
        let against = HeldAgainst {
            genesis: GENESIS,
            payee: Role::Provider.account(),
            batch: one.window.root,
            other: Some(other.window.root),
        };
        if evidence.verify(&against, |_, _, _| false).is_some() {
            trade.convict(Some(first));
        }
    }
    trade.wait();
    trade.redeem(0);
}

/// What a voucher pays that is not of this channel, or not signed for this chain: what it says.
fn redeem_another(trade: &mut Trade, genesis: H256, channel: u64) {
    let key = Role::Client.account();
    let Some(voucher) = trade.voucher(0) else { return };
    let replayed = surety_channels::Voucher { channel, ..voucher };
    let signed = trade.signed(replayed, &genesis, &key);
    trade
        .books
        .pay(Role::Provider, Role::World, trade.offer.transaction);
    let is_signed = signed.is_signed(&GENESIS, &key, |key, message, signature| {
        trade.is_signature(key, message, signature)
    });
    let terms = &trade.channels[0].tally.terms;
    if is_signed && signed.voucher.check(terms, trade.now).is_ok() {
        trade.books.pay(Role::Client, Role::Provider, signed.voucher.sum);
    }
}

/// Redeems what its client has signed for the same channel of another chain.
fn replays_chain(trade: &mut Trade) {
    honest(trade);
    redeem_another(trade, H256::repeat_byte(1), 0);
}

/// Redeems what its client has signed for another channel.
fn replays_channel(trade: &mut Trade) {
    honest(trade);
    redeem_another(trade, GENESIS, 1);
}

/// The last chunk was paid ahead. It says nothing, and bills something that it has made up.
fn bills_more(trade: &mut Trade) {
    let channel = trade.open(Role::Client, RECEIPTS);
    trade.answers(channel, RECEIPTS - 1);
    trade.answer(channel, false);
    trade.settle(u32::MAX);
}

/// Ten wrong receipts among a thousand that it has sold to itself.
fn pads(trade: &mut Trade) {
    let channel = trade.open(Role::Client, RECEIPTS);
    for at in 0..RECEIPTS {
        trade.answer(channel, at >= RECEIPTS / 100);
    }
    let own = trade.open(Role::Challenger, RECEIPTS);
    trade.answers(own, RECEIPTS);
    trade.settle(u32::MAX);
}

/// All wrong, in batches of twenty.
fn splits(trade: &mut Trade) {
    sold(trade, RECEIPTS);
    trade.settle(RECEIPTS / 50);
}

/// A new provider sells to itself, which costs work and levy, until as much of it was audited as points met,
/// and cheats at the rate of points that it has then, with the lock that belongs to that.
fn grows_up(trade: &mut Trade) {
    trade.points = trade.offer.rates.expected(0);
    let own = trade.open(Role::Challenger, RECEIPTS);
    trade.answers(own, RECEIPTS);
    trade.settle(u32::MAX);
    after_probation(trade, false);
}

fn new_and_honest(trade: &mut Trade) {
    trade.points = trade.offer.rates.expected(0);
    after_probation(trade, true);
}

fn after_probation(trade: &mut Trade, right: bool) {
    trade.points = trade.offer.rates.expected(trade.audited);
    let channel = trade.open(Role::Client, RECEIPTS);
    for _ in 0..RECEIPTS {
        trade.answer(channel, right);
    }
    if let Some(number) = trade.commit(&[(channel, 0..RECEIPTS)]) {
        trade.audit(number);
    }
    trade.wait();
    trade.redeem(channel);
}

/// The payer closes as soon as it was answered, to have its deposit back before it is redeemed.
fn closes_early(trade: &mut Trade) {
    sold(trade, 0);
    trade
        .books
        .pay(Role::Client, Role::World, trade.offer.transaction);
    let until = trade.now + CLOSING;
    trade.channels[0].purse.close(until);
    // Nothing goes back before the payee's time is over, in which it redeems.
    let refund = trade.channels[0].purse.refund(trade.now, until);
    if refund.is_some() {
        return;
    }
    trade.settle(u32::MAX);
}

/// The payer takes all answers, and would have the last without a voucher.
fn signs_no_more(trade: &mut Trade) {
    let channel = trade.open(Role::Client, RECEIPTS);
    trade.answers(channel, RECEIPTS - 1);
    let chunk = super::offer::CHUNK;
    if trade.channels[0].tally.serve(chunk).is_ok() {
        // It was served for nothing: a chunk's work.
        let work = chunk * super::offer::WORK_PERCENT / 100;
        trade.books.pay(Role::Provider, Role::World, work);
        trade.books.pay(Role::World, Role::Client, chunk);
    }
    trade
        .books
        .pay(Role::Client, Role::World, trade.offer.transaction);
    trade.settle(u32::MAX);
}

/// The payer wants one answer less.
fn honest_but_last(trade: &mut Trade) {
    let channel = trade.open(Role::Client, RECEIPTS);
    trade.answers(channel, RECEIPTS - 1);
    trade.settle(u32::MAX);
}
