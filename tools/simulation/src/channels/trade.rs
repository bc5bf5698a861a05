//! A life of an offer: answers over channels, their batches, the points on them, and the money.

use std::collections::BTreeSet;

use codec::Encode;
use sp_arithmetic::FixedU128;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_audit_economics::{AuditPay, drawn_points, points_mean};
use surety_channels::{
    Batch, BatchEntry, BatchWindow, ChannelId, ChannelTerms, ChunkStatement, End, Ending, Nonce, Purse,
    ReceiptLeaf, Request, SignedVoucher, Standing, Tally, Time, Voucher,
};
use surety_dispute_game::testsuite::dice::Dice;
use surety_proofs::content_hash;
use surety_types::model::Operation;

use super::offer::{Bound, CHUNK, Offer, Voided, WORK_PERCENT};
use crate::books::{Books, Role};

/// The chain that all is on.
pub const GENESIS: H256 = H256::repeat_byte(9);

/// Time that a batch can be disputed: an hour, as with the runtime's parameters.
pub const WINDOW: Time = 10;
/// That a provider has to show what is demanded: six hours.
pub const SUPPLY: Time = 6 * WINDOW;
/// That a payee has when its payer closes, longer than any receipt needs to become final: a day.
pub const CLOSING: Time = 24 * WINDOW;
/// Last time of a channel: in a week.
pub const EXPIRY: Time = 7 * 24 * WINDOW;

/// What is new of a deposit counts for so much less, as `surety-payer-calls` has it.
const NEW_PART: u128 = 8;

type Account = H256;

/// A channel, on the chain and as its payee keeps it.
pub struct Channel {
    /// Who pays: an honest client, or somebody of the provider's.
    pub payer: Role,
    /// On the chain.
    pub purse: Purse,
    /// The payee's.
    pub tally: Tally<Account>,
    /// What was said, by request.
    pub said: Vec<ChunkStatement<Account>>,
    /// When it was opened.
    opened: Time,
    /// What was signed and something else was batched for, in plancks.
    swapped: u128,
}

/// A batch on the chain, and what its provider has of it.
pub struct Committed {
    /// The provider's.
    pub batch: Batch,
    /// The chain's.
    pub window: BatchWindow,
    /// It is out of the open sum.
    pub is_finished: bool,
}

/// A life of an offer.
pub struct Trade<'a> {
    /// Its terms.
    pub offer: &'a Offer,
    /// Points per SURE at the moment.
    pub points: FixedU128,
    /// The time.
    pub now: Time,
    /// Everybody's money.
    pub books: Books,
    /// Channels by id.
    pub channels: Vec<Channel>,
    /// Batches by number.
    pub committed: Vec<Committed>,
    /// What the lock covers.
    pub standing: Standing,
    /// Answers that are wrong.
    pub wrong: BTreeSet<(ChannelId, Nonce)>,
    /// What of the receipts that points were in was right, in plancks.
    pub audited: u128,
    /// Batches committed.
    pub batches: u64,
    /// The lock was taken.
    pub is_convicted: bool,
    /// The provider has done something wrong.
    pub is_guilty: bool,
    /// Corrupt verifiers compute their points, too: otherwise they know what the provider says there.
    pub do_cronies_compute: bool,
    cronies: u32,
    dice: Dice,
    /// One coin for all who find something.
    is_accurate: bool,
}

/// What is batched in the place of a wrong answer: longer than that, and right for what it says it answers.
pub fn made_up(call: (ChannelId, Nonce)) -> Vec<u8> {
    (call, "made up, and longer than what was said").encode()
}

/// A signature that only whoever has `key` makes.
fn signature(key: &Account, message: &[u8]) -> [u8; 64] {
    let half = blake2_256(&(b"signed", key, message).encode());
    let mut whole = [0; 64];
    whole[..32].copy_from_slice(&half);
    whole
}

impl<'a> Trade<'a> {
    /// Nothing was asked yet.
    pub fn new(offer: &'a Offer, corrupt: u32, mut dice: Dice) -> Self {
        let accuracy = offer.policy.accuracy.deconstruct() as f64 / 1e18;
        let is_accurate = dice.chance(accuracy);
        Self {
            offer,
            points: offer.points,
            now: 0,
            books: Books::default(),
            channels: Vec::new(),
            committed: Vec::new(),
            standing: Standing {
                cap: offer.cap,
                open: 0,
            },
            wrong: BTreeSet::new(),
            audited: 0,
            batches: 0,
            is_convicted: false,
            is_guilty: false,
            do_cronies_compute: true,
            cronies: offer.verifiers * corrupt / 100,
            dice,
            is_accurate,
        }
    }

    /// Opens a channel with a deposit for so many answers. Returns its id.
    pub fn open(&mut self, payer: Role, answers: u32) -> ChannelId {
        let channel = self.channels.len() as ChannelId;
        let deposit = CHUNK * u128::from(answers);
        self.books.pay(payer, Role::World, self.offer.transaction);
        let terms = ChannelTerms {
            channel,
            payee: Role::Provider.account(),
            key: payer.account(),
            deposit,
            expiry: EXPIRY,
        };
        self.channels.push(Channel {
            payer,
            purse: Purse::new(channel, deposit, self.now),
            tally: Tally::new(terms),
            said: Vec::new(),
            opened: self.now,
            swapped: 0,
        });
        channel
    }

    fn request(nonce: Nonce) -> Request {
        Request {
            model: H256::repeat_byte(3),
            operation: Operation::Embed,
            input: H256(blake2_256(&nonce.encode())),
            input_bytes: 64,
            units_max: 1,
            unit_price: CHUNK,
        }
    }

    /// The payer's promise for its next request, a chunk ahead.
    pub fn voucher(&self, channel: ChannelId) -> Option<Voucher<Account>> {
        let of = self.channels.get(channel as usize)?;
        let nonce = of.said.len() as Nonce;
        Some(Voucher {
            channel,
            payee: Role::Provider.account(),
            expiry: EXPIRY,
            nonce,
            request: Self::request(nonce).hash(),
            sum: of.tally.served() + CHUNK,
        })
    }

    /// As its key signs it, for the chain of `genesis`.
    pub fn signed(&self, voucher: Voucher<Account>, genesis: &H256, key: &Account) -> SignedVoucher<Account> {
        let signature = signature(key, &voucher.message(genesis));
        SignedVoucher { voucher, signature }
    }

    /// Whether it is one.
    pub fn is_signature(&self, key: &Account, message: &[u8], signed: &[u8; 64]) -> bool {
        signature(key, message) == *signed
    }

    /// A payer asks, a chunk ahead, and is answered: right, or wrong at no cost. Whether the payee served it.
    pub fn answer(&mut self, channel: ChannelId, right: bool) -> bool {
        let Some(voucher) = self.voucher(channel) else {
            return false;
        };
        let of = &mut self.channels[channel as usize];
        let nonce = of.said.len() as Nonce;
        if of.tally.take(&voucher, self.now).is_err() || of.tally.serve(CHUNK).is_err() {
            return false;
        }
        of.tally.end(nonce);
        let bytes = (channel, nonce, right).encode();
        of.said.push(ChunkStatement {
            channel,
            payee: Role::Provider.account(),
            nonce,
            request: voucher.request,
            bytes: bytes.len() as u32,
            output: content_hash(&bytes),
            units: 1,
            price: CHUNK,
            end: Some(Ending {
                how: End::Length,
                trace_root: H256(blake2_256(&bytes)),
            }),
        });
        let payer = of.payer;
        if right {
            self.books
                .pay(Role::Provider, Role::World, CHUNK * WORK_PERCENT / 100);
            if payer == Role::Client {
                // Worth what it costs.
                self.books.pay(Role::World, payer, CHUNK);
            }
            return true;
        }
        self.is_guilty = true;
        self.wrong.insert((channel, nonce));
        if payer == Role::Client {
            let worth = self.offer.at_risk.into_inner() * CHUNK / FixedU128::from_u32(1).into_inner();
            self.books.pay(Role::World, Role::Provider, worth);
        }
        true
    }

    /// So many right answers.
    pub fn answers(&mut self, channel: ChannelId, count: u32) {
        for _ in 0..count {
            self.answer(channel, true);
        }
    }

    /// A batch of requests `of` a channel each. Its number; nothing where there can be none, or the lock
    /// covers no more.
    pub fn commit(&mut self, of: &[(ChannelId, std::ops::Range<u32>)]) -> Option<usize> {
        let mut entries = Vec::new();
        for (channel, nonces) in of {
            let said = &self.channels.get(*channel as usize)?.said;
            let said = said.get(nonces.start as usize..nonces.end as usize)?;
            entries.extend(said.iter().map(|said| BatchEntry {
                channel: said.channel,
                nonce: said.nonce,
                price: said.price,
                leaf: ReceiptLeaf {
                    receipt: H256(said.message(&GENESIS)),
                    salt: H256(blake2_256(&(b"salt", said.channel, said.nonce).encode())),
                },
            }));
        }
        let batch = Batch::new(&entries).ok()?;
        self.standing.commit(batch.root().sums.price).ok()?;
        self.books
            .pay(Role::Provider, Role::World, self.offer.transaction);
        let levy = self.offer.levy(self.points).mul_ceil(batch.root().sums.price);
        self.books.pay(Role::Provider, Role::Pool, levy);
        let window = BatchWindow::new(batch.root(), self.now + WINDOW);
        let is_finished = false;
        self.committed.push(Committed {
            batch,
            window,
            is_finished,
        });
        self.batches += 1;
        Some(self.committed.len() - 1)
    }

    /// All verifiers draw their points on a batch, audit them and are paid. What honest ones find is
    /// disputed.
    pub fn audit(&mut self, number: usize) {
        let Some(of) = self.committed.get(number) else {
            return;
        };
        let price = of.window.root.sums.price;
        let mean = points_mean(self.points, price, 1, self.offer.verifiers.into());
        let (mut met, mut drawn) = (false, [0u128; 2]);
        for verifier in 0..self.offer.verifiers {
            let is_honest = verifier >= self.cronies;
            for point in drawn_points(&self.dice.vrf_output(), price, mean) {
                drawn[usize::from(is_honest)] += 1;
                let shown = of
                    .batch
                    .leaf_at(point)
                    .and_then(|opening| opening.verify(&of.window.root));
                let Some(shown) = shown else {
                    // What cannot be opened is withheld.
                    met |= is_honest;
                    continue;
                };
                if self.wrong.contains(&(shown.channel, shown.nonce)) {
                    met |= is_honest;
                } else {
                    self.audited += shown.price;
                }
            }
        }
        let pay = AuditPay::default().point(self.offer.point_cost);
        for (who, count) in [(Role::Crony, drawn[0]), (Role::Verifier, drawn[1])] {
            self.books.pay(Role::Pool, who, pay * count);
            if who == Role::Verifier || self.do_cronies_compute {
                self.books.pay(who, Role::World, self.offer.point_cost * count);
            }
        }
        if met && self.is_accurate {
            self.convict(Some(number));
        }
    }

    /// The provider has lost: its lock is taken once, and nothing is paid of what is void. What is not burned
    /// of the lock goes to the cheat's own finder and client, which is the worst that can be.
    pub fn convict(&mut self, number: Option<usize>) {
        if !self.is_convicted {
            let burned = self.offer.burned(self.points);
            self.books.pay(Role::Provider, Role::Burned, burned);
        }
        self.is_convicted = true;
        for (at, of) in self.committed.iter_mut().enumerate() {
            let is_void = self.offer.voided == Voided::AllOpen || Some(at) == number;
            if is_void && !of.window.is_final(self.now) {
                of.window.void();
            }
        }
    }

    /// Counts batches of a channel and pays what is due of its best voucher. What the payee has got.
    pub fn redeem(&mut self, channel: ChannelId) -> u128 {
        self.books
            .pay(Role::Provider, Role::World, self.offer.transaction);
        // A conviction voids what was not paid.
        let waits = self.offer.chain.pay_waits;
        if waits && self.is_convicted && self.offer.voided == Voided::AllOpen {
            return 0;
        }
        let Some(of) = self.channels.get_mut(channel as usize) else {
            return 0;
        };
        for one in &self.committed {
            let shown = one
                .batch
                .open_channel(channel)
                .and_then(|shown| shown.verify(&one.window.root));
            if let Some(shown) = shown {
                // It says nothing of those that are not final, or were counted.
                let _ = of.purse.count(&one.window, &shown, self.now, SUPPLY);
            }
        }
        let at = if waits { self.now } else { Time::MAX };
        let paid = of.purse.redeem(of.tally.sum(), at, SUPPLY);
        self.books.pay(of.payer, Role::Provider, paid);
        paid
    }

    /// Windows are over: what is final takes nothing of the cap.
    pub fn wait(&mut self) {
        self.now += WINDOW + 1;
        for of in &mut self.committed {
            if of.window.is_final(self.now) && !of.is_finished {
                of.is_finished = true;
                self.standing.finish(of.window.root.sums.price);
            }
        }
    }

    /// A receipt of one's own whose price is made up: next to nothing is computed for it.
    pub fn make_up(&mut self, channel: ChannelId, price: u128) {
        let Some(of) = self.channels.get_mut(channel as usize) else {
            return;
        };
        let nonce = of.said.len() as Nonce;
        let bytes = (channel, nonce, price).encode();
        of.said.push(ChunkStatement {
            channel,
            payee: Role::Provider.account(),
            nonce,
            request: Self::request(nonce).hash(),
            bytes: bytes.len() as u32,
            output: content_hash(&bytes),
            units: 1,
            price,
            end: Some(Ending {
                how: End::Length,
                trace_root: H256(blake2_256(&bytes)),
            }),
        });
    }

    /// Puts something else in the place of all wrong answers of a channel, for batches: as dear, made up for
    /// next to nothing, and right.
    pub fn swap(&mut self, channel: ChannelId) {
        let wrong = (channel, 0)..=(channel, Nonce::MAX);
        let wrong: Vec<_> = self.wrong.range(wrong).copied().collect();
        let Some(of) = self.channels.get_mut(channel as usize) else {
            return;
        };
        for call in wrong {
            self.wrong.remove(&call);
            if let Some(said) = of.said.get_mut(call.1 as usize) {
                of.swapped += said.price;
                let instead = made_up(call);
                (said.bytes, said.output) = (instead.len() as u32, content_hash(&instead));
            }
        }
    }

    /// Whether a client that is shown nothing of its channels demands something that no batch has, where it
    /// was asked for so much else before.
    pub fn demands_swapped(&mut self, others: u128) -> bool {
        let swapped: u128 = self.channels.iter().map(|of| of.swapped).sum();
        let found = swapped as f64 / (swapped + others).max(1) as f64;
        let is_drawn = self.offer.chain.draws_of_all || others == 0;
        is_drawn && self.dice.chance(found)
    }

    /// Whether somebody holds what no batch has, though one was counted with its number.
    pub fn has_swapped(&self) -> bool {
        self.channels.iter().any(|of| of.swapped > 0)
    }

    /// Whether a client asks for one more over a channel of its own: of what is deposited and not counted it
    /// keeps to its part of what the lock covers, where anybody looks at that.
    pub fn may_ask(&self, channel: ChannelId) -> bool {
        let Some(of) = self.channels.get(channel as usize) else {
            return false;
        };
        let mut asked = of.tally.served().saturating_sub(of.purse.counted) + CHUNK;
        if self.offer.chain.compares {
            asked += of.swapped;
        }
        let deposited = |of: &Channel| of.purse.deposit.saturating_sub(of.purse.counted);
        let all: u128 = self.channels.iter().map(deposited).sum();
        let cap = self.offer.cap;
        match self.offer.chain.bound {
            Bound::None => true,
            Bound::Each => asked <= cap,
            Bound::All if all <= cap => true,
            Bound::All => asked * all <= cap * deposited(of),
            // What was there before the life begins has stood for a season.
            Bound::Seasoned => {
                let own = deposited(of);
                let counts = if of.opened == 0 { own } else { own / NEW_PART };
                asked <= cap.saturating_sub(all - own) || asked * all <= cap * counts
            }
        }
    }

    /// Batches of so many answers of each channel, all committed, audited, and redeemed when they are final.
    pub fn settle(&mut self, of_each: u32) {
        let mut parts: Vec<(ChannelId, std::ops::Range<u32>)> = Vec::new();
        for (channel, of) in (0..).zip(&self.channels) {
            let said = of.said.len() as u32;
            let starts = (0..said).step_by(of_each.max(1) as usize);
            parts.extend(starts.map(|start| (channel, start..said.min(start + of_each))));
        }
        let numbers: Vec<usize> = match of_each {
            u32::MAX => self.commit(&parts).into_iter().collect(),
            _ => parts
                .iter()
                .filter_map(|part| self.commit(std::slice::from_ref(part)))
                .collect(),
        };
        for number in numbers {
            self.audit(number);
        }
        self.wait();
        for channel in 0..self.channels.len() as ChannelId {
            self.redeem(channel);
        }
    }
}
