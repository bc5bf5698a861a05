//! Random lives of a channel: asking, serving, batching, finding receipts wrong, topping up, redeeming and
//! closing, in any order. Nobody's money is made or lost, nobody pays what it has not signed, and whatever
//! either side does, the other loses a chunk of each open request at most.

use super::*;
use proptest::{collection::vec, prelude::*};

/// What a chunk costs, in plancks.
const CHUNK: u128 = 10;

/// Most requests that the payer has open at once.
const AT_ONCE: usize = 3;

/// What the payer had at first.
const FORTUNE: u128 = 1_000;

/// Time that a batch can be disputed, and that a payee has when its payer closes.
const WINDOW: Time = 5;
const CLOSING: Time = 30;

/// Time to show what is demanded, and until what is counted is due.
const SUPPLY: Time = 8;
const DUE: Time = paid_after(SUPPLY);
const EXPIRY: Time = 1_000;

#[derive(Clone, Copy, Debug)]
enum Step {
    Ask,
    Chunk(usize),
    End(usize),
    /// With prices so much higher than they were: a dishonest payee.
    Batch(u128),
    Wait(Time),
    Strike(usize),
    Void(usize),
    Dispute(usize),
    Decide(usize),
    TopUp(u128),
    Redeem,
    OldVoucher(u128),
    Demand,
    Show,
    Close,
    Leave,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Ask),
        12 => (0usize..AT_ONCE).prop_map(Step::Chunk),
        4 => (0usize..AT_ONCE).prop_map(Step::End),
        4 => prop_oneof![3 => Just(0u128), 1 => 0u128..40].prop_map(Step::Batch),
        4 => (1u32..8).prop_map(Step::Wait),
        1 => any::<usize>().prop_map(Step::Strike),
        1 => any::<usize>().prop_map(Step::Void),
        1 => any::<usize>().prop_map(Step::Dispute),
        2 => any::<usize>().prop_map(Step::Decide),
        1 => (1u128..100).prop_map(Step::TopUp),
        4 => Just(Step::Redeem),
        1 => (0u128..200).prop_map(Step::OldVoucher),
        2 => Just(Step::Demand),
        3 => Just(Step::Show),
        1 => Just(Step::Close),
        1 => Just(Step::Leave),
    ]
}

/// A request that is being answered, or was.
#[derive(Clone, Copy, Debug)]
struct Answer {
    price: u128,
    is_over: bool,
}

/// Everybody, and the chain.
struct World {
    now: Time,
    purse: Purse,
    standing: Standing,
    windows: Vec<(Batch, BatchWindow, bool)>,
    tally: Tally<Account>,
    /// By nonce.
    answers: Vec<Answer>,
    /// How many of them are in batches.
    batched: usize,
    /// What the payer has in hand, and the payee.
    payers: u128,
    payees: u128,
    /// Highest sum that the payer has signed.
    signed: u128,
    /// The channel is gone, and the rest with it.
    is_closed: bool,
    /// The payer signs nothing any more.
    has_left: bool,
    /// The payee has lied about prices, or was found wrong.
    is_plain: bool,
    /// What was counted by when.
    counts: Vec<(Time, u128)>,
}

impl World {
    fn new(deposit: u128) -> Self {
        Self {
            now: 0,
            purse: Purse::new(CHANNEL, deposit, 0),
            standing: Standing { cap: 400, open: 0 },
            windows: Vec::new(),
            tally: Tally::new(terms(deposit)),
            answers: Vec::new(),
            batched: 0,
            payers: FORTUNE - deposit,
            payees: 0,
            signed: 0,
            is_closed: false,
            has_left: false,
            is_plain: true,
            counts: Vec::new(),
        }
    }

    fn open(&self) -> Vec<usize> {
        (0..self.answers.len())
            .filter(|nonce| !self.answers[*nonce].is_over)
            .collect()
    }

    /// What the payer was served.
    fn got(&self) -> u128 {
        self.answers.iter().map(|answer| answer.price).sum()
    }

    /// The payer signs a chunk ahead for each open request, and for the one that it asks for.
    fn sign(&mut self, nonce: usize, ahead: usize) {
        let sum = self.got() + CHUNK * ahead as u128;
        if self.has_left || sum > self.tally.terms.deposit {
            return;
        }
        if self.tally.take(&voucher(nonce as Nonce, sum), self.now).is_ok() {
            self.signed = self.signed.max(sum);
            if nonce == self.answers.len() {
                self.answers.push(Answer {
                    price: 0,
                    is_over: false,
                });
            }
        }
    }

    fn batch(&mut self, more: u128) {
        // Consecutive answers that are over.
        let ended = self.answers[self.batched..]
            .iter()
            .take_while(|answer| answer.is_over);
        let prices: Vec<u128> = ended.map(|answer| answer.price + more).collect();
        if prices.is_empty() {
            return;
        }
        let count = prices.len();
        let batch = Batch::new(&entries(&[(CHANNEL, self.batched as Nonce, prices)])).unwrap();
        if self.standing.commit(batch.root().sums.price).is_ok() {
            self.is_plain &= more == 0;
            self.batched += count;
            let window = BatchWindow::new(batch.root(), self.now + WINDOW);
            self.windows.push((batch, window, false));
        }
    }

    /// The chain pays for a voucher of so much.
    fn redeem(&mut self, sum: u128) {
        for (batch, window, is_counted) in &mut self.windows {
            let shown = batch.open_channel(CHANNEL).unwrap().verify(&window.root).unwrap();
            if self.purse.closing.is_some() {
                // It says nothing of those that are final, or were counted.
                let _ = self.purse.hold(window, &shown, self.now, self.now + CLOSING);
            }
            let counted = self.purse.count(window, &shown, self.now, SUPPLY);
            if counted.is_ok() {
                assert!(!*is_counted, "counted twice");
                *is_counted = true;
                self.standing.finish(window.root.sums.price);
            }
        }
        self.counts.push((self.now, self.purse.counted));
        let can_redeem = voucher(0, sum).check(&self.tally.terms, self.now).is_ok();
        if can_redeem && !self.is_closed {
            let paid = self.purse.redeem(sum, self.now, SUPPLY);
            // But for what was counted so long ago that a demand of before it was due is over.
            let long_ago = self.now.checked_sub(kept_back_for(SUPPLY));
            let old = self
                .counts
                .iter()
                .rfind(|(at, _)| long_ago.is_some_and(|ago| *at <= ago));
            let is_old = self.purse.paid <= old.map_or(0, |(_, counted)| *counted);
            assert!(
                paid == 0 || self.purse.demands == 0 || is_old,
                "paid past a demand"
            );
            self.payees += paid;
        }
    }

    fn play(&mut self, step: Step) {
        match step {
            Step::Ask => {
                let open = self.open().len();
                if open < AT_ONCE && !self.is_closed {
                    self.sign(self.answers.len(), open + 1);
                }
            }
            Step::Chunk(which) => {
                let open = self.open();
                let Some(nonce) = open.get(which).copied() else {
                    return;
                };
                if self.tally.serve(CHUNK).is_ok() {
                    self.answers[nonce].price += CHUNK;
                }
                self.sign(nonce, open.len());
            }
            Step::End(which) => {
                if let Some(nonce) = self.open().get(which).copied() {
                    self.answers[nonce].is_over = true;
                    self.tally.end(nonce as Nonce);
                }
            }
            Step::Batch(more) => self.batch(more),
            Step::Wait(time) => self.now += time,
            Step::Strike(at) => {
                let now = self.now;
                let Some(place) = at.checked_rem(self.windows.len()) else {
                    return;
                };
                let (batch, window, _) = &mut self.windows[place];
                if !window.is_final(now) {
                    let point = at as u128 % batch.root().sums.price.max(1);
                    if let Some(opening) = batch.leaf_at(point) {
                        window.strike(opening.verify(&window.root).unwrap().into());
                        self.is_plain = false;
                    }
                }
            }
            Step::Void(at) => {
                let now = self.now;
                let Some(place) = at.checked_rem(self.windows.len()) else {
                    return;
                };
                if !self.windows[place].1.is_final(now) {
                    self.windows[place].1.void();
                    self.is_plain = false;
                }
            }
            Step::Dispute(at) => {
                let now = self.now;
                let Some(place) = at.checked_rem(self.windows.len()) else {
                    return;
                };
                if !self.windows[place].1.is_final(now) {
                    self.windows[place].1.disputes += 1;
                }
            }
            Step::Decide(at) => {
                let Some(place) = at.checked_rem(self.windows.len()) else {
                    return;
                };
                let disputes = &mut self.windows[place].1.disputes;
                *disputes = disputes.saturating_sub(1);
            }
            Step::TopUp(amount) => {
                if amount <= self.payers
                    && !self.is_closed
                    && self.purse.top_up(amount, self.now, SUPPLY).is_ok()
                {
                    self.payers -= amount;
                    self.tally.terms.deposit = self.purse.deposit;
                }
            }
            Step::Redeem => self.redeem(self.tally.sum()),
            Step::OldVoucher(sum) => self.redeem(sum.min(self.tally.sum())),
            Step::Demand if !self.is_closed => self.purse.demand(self.now + 2 * SUPPLY),
            Step::Demand => {}
            // What it has kept back is paid now.
            Step::Show => {
                self.purse.end_demand();
                self.redeem(0);
            }
            Step::Close => {
                self.purse.close(self.now + CLOSING);
                self.refund();
            }
            Step::Leave => self.has_left = true,
        }
    }

    fn refund(&mut self) {
        if self.is_closed {
            return;
        }
        if let Some(rest) = self.purse.refund(self.now, EXPIRY) {
            self.payers += rest;
            self.is_closed = true;
        }
    }

    fn held(&self) -> u128 {
        if self.is_closed {
            0
        } else {
            self.purse.deposit - self.purse.paid
        }
    }

    fn check(&self) {
        assert_eq!(
            self.payers + self.payees + self.held(),
            FORTUNE,
            "money was made or lost"
        );
        assert_eq!(self.payees, self.purse.paid);
        assert!(self.purse.paid <= self.signed, "paid more than was signed");
        assert!(self.purse.paid <= self.purse.counted.min(self.purse.deposit));
        let final_ones = self.windows.iter().filter(|(.., is_counted)| *is_counted);
        let final_price: u128 = final_ones.map(|(batch, ..)| batch.root().sums.price).sum();
        assert!(self.purse.counted <= final_price, "counted more than was batched");
        assert!(self.standing.open <= self.standing.cap);
        assert!(self.tally.served() <= self.tally.sum());
        // Whatever the payee says of prices.
        assert!(
            self.payees <= self.got() + CHUNK * AT_ONCE as u128,
            "the payer has lost more than a chunk"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn no_money_is_made_or_lost_and_nobody_loses_more_than_a_chunk(
        deposit in 0u128..400, steps in vec(any_step(), 1..120),
    ) {
        let mut world = World::new(deposit);
        for step in steps {
            world.play(step);
            world.check();
        }
        // In the end the payee ends what is open, batches it and waits; the payer may have left.
        for nonce in world.open() {
            world.answers[nonce].is_over = true;
        }
        for (_, window, _) in &mut world.windows {
            window.disputes = 0;
        }
        let was_closed = world.is_closed;
        while world.purse.demands > 0 {
            world.play(Step::Show);
        }
        for _ in 0..2 {
            world.now += WINDOW + 1;
            world.redeem(world.tally.sum());
            world.batch(0);
            world.check();
        }
        world.now += WINDOW + 1;
        world.redeem(world.tally.sum());
        world.now += DUE;
        world.redeem(world.tally.sum());
        world.check();
        // An honest payee has got all that it has served, unless its batches were beyond what it has locked.
        if world.is_plain && !was_closed && world.batched == world.answers.len() {
            assert_eq!(world.payees, world.got());
        }
        if !world.is_closed {
            world.payers += world.purse.give_back(world.now + CLOSING, 0);
        }
        world.check();
        assert_eq!(world.held(), 0);
    }
}

#[test]
fn a_payer_that_closes_early_pays_for_what_it_has_got() {
    let mut world = World::new(100);
    world.play(Step::Ask);
    for _ in 0..3 {
        world.play(Step::Chunk(0));
    }
    world.play(Step::Close);
    world.play(Step::End(0));
    world.play(Step::Batch(0));
    world.now += CLOSING;
    world.play(Step::Close);
    assert!(!world.is_closed, "the payee's time is not over");
    world.play(Step::Redeem);
    // The chain waits for what it has counted now.
    world.purse.wait(world.now + DUE);
    world.now += DUE;
    world.play(Step::Close);
    assert!(!world.is_closed);
    world.play(Step::Redeem);
    assert_eq!((world.payees, world.got()), (30, 30));
    world.now += 1;
    world.play(Step::Close);
    assert!(world.is_closed);
    assert_eq!(world.payers, FORTUNE - 30);
}

#[test]
fn a_payer_that_signs_no_more_gets_no_more() {
    let mut world = World::new(100);
    world.play(Step::Ask);
    world.play(Step::Chunk(0));
    world.play(Step::Leave);
    for _ in 0..5 {
        world.play(Step::Chunk(0));
    }
    // What was paid ahead is served; nothing is that was not.
    assert_eq!((world.got(), world.signed), (20, 20));
}

#[test]
fn a_payee_that_bills_what_it_has_not_served_gets_what_was_signed() {
    let mut world = World::new(100);
    world.play(Step::Ask);
    world.play(Step::Chunk(0));
    world.play(Step::End(0));
    world.play(Step::Batch(90));
    world.now += WINDOW + 1;
    world.play(Step::Redeem);
    world.now += DUE;
    world.play(Step::Redeem);
    assert_eq!((world.got(), world.payees), (10, 20));
}
