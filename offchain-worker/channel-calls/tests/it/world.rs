//! A payer and a payee, the connections between them, the engine of one and the chain of both.

use std::collections::{BTreeMap, VecDeque};

use codec::Encode;
use surety_channel_calls::{
    payee::{BatchLimits, ChannelSeen, Duty, Shown},
    payer::{AskError, Broken, Evidence, Wanted},
    *,
};
use surety_channels::*;
use surety_proofs::{SEGMENT_BYTES, SegmentOpening, content_hash};

use crate::support::*;

struct Engine {
    output: Vec<u8>,
    how: End,
    request: Request,
    made: usize,
}

#[derive(Default)]
struct Connection {
    to_payee: VecDeque<Vec<u8>>,
    to_payer: VecDeque<Vec<u8>>,
}

pub struct World {
    pub config: PayeeConfig,
    pub payee: Payee,
    pub payer: Payer,
    pub payee_disk: Disk,
    pub payer_disk: Disk,
    pub seen: ChannelSeen,
    pub now: Millis,
    pub clock: Time,
    connections: BTreeMap<Nonce, Connection>,
    engines: BTreeMap<Nonce, Engine>,
    /// What was asked under which number, last.
    pub asked: BTreeMap<Nonce, Wanted>,
    /// All statements that have left the payee.
    pub sent: Vec<SignedChunkStatement<AccountId>>,
    /// All sums that the payer has sent, in their order.
    pub sums: Vec<u128>,
    pub got: BTreeMap<Nonce, Vec<u8>>,
    pub done: BTreeMap<Nonce, SignedChunkStatement<AccountId>>,
    pub broken: Vec<(Nonce, Broken, u128, Option<Evidence>)>,
    pub refused: Vec<(Nonce, Refusal, bool)>,
    pub roots: Vec<BatchRoot>,
    pub windows: BTreeMap<BatchNumber, BatchWindow>,
    pub kills: usize,
    pub lost: usize,
}

impl World {
    pub fn new(deposit: u128) -> Self {
        Self::with(deposit, payee_config())
    }

    /// One whose payee is this.
    pub fn with(deposit: u128, config: PayeeConfig) -> Self {
        let (payee_disk, payer_disk) = (Disk::default(), Disk::default());
        let (payee, start) = Payee::open_over(config.clone(), payee_disk.reader(), [], 0).unwrap();
        start.commit(&payee_disk).unwrap();
        let (payer, start) =
            Payer::open(payer_config(), terms(deposit), vec![account(AGENT)], 0, []).unwrap();
        start.commit(&payer_disk).unwrap();
        Self {
            config,
            payee,
            payer,
            payee_disk,
            payer_disk,
            seen: ChannelSeen {
                terms: terms(deposit),
                purse: Purse::new(CHANNEL, deposit, 0),
            },
            now: 0,
            clock: 0,
            connections: BTreeMap::new(),
            engines: BTreeMap::new(),
            asked: BTreeMap::new(),
            sent: Vec::new(),
            sums: Vec::new(),
            got: BTreeMap::new(),
            done: BTreeMap::new(),
            broken: Vec::new(),
            refused: Vec::new(),
            roots: Vec::new(),
            windows: BTreeMap::new(),
            kills: 0,
            lost: 0,
        }
    }

    /// One in which this was asked, and the payee has taken it.
    pub fn answering(deposit: u128, wanted: Wanted) -> (Self, Nonce) {
        let mut world = Self::new(deposit);
        let nonce = world.ask(wanted).unwrap();
        assert!(world.tell_payee(nonce));
        (world, nonce)
    }

    /// One in which this was asked so often, and answered each time.
    pub fn answered(deposit: u128, wanted: &Wanted, times: usize) -> Self {
        let mut world = Self::new(deposit);
        for _ in 0..times {
            world.ask(wanted.clone()).unwrap();
            world.settle();
        }
        world
    }

    /// What the payee decides is written and done, or it dies over it and starts again.
    pub fn payee_does(&mut self, act: impl FnOnce(&mut Payee) -> Step<PayeeEffect>) {
        let step = act(&mut self.payee);
        self.payee_did(step);
    }

    fn payee_did(&mut self, step: Step<PayeeEffect>) {
        let effects = match step.commit(&self.payee_disk) {
            Ok(effects) => effects,
            Err(_) => return self.restart_payee(),
        };
        let kills = self.kills;
        for effect in effects {
            // It has died over an earlier one.
            if self.kills != kills {
                return;
            }
            match effect {
                PayeeEffect::Send { nonce, message, .. } => {
                    if let FromPayee::Chunk { statement, .. } = &message {
                        self.sent.push(statement.clone());
                    }
                    if let Some(connection) = self.connections.get_mut(&nonce) {
                        connection.to_payer.push_back(message.encode());
                    }
                }
                PayeeEffect::Compute {
                    nonce,
                    request,
                    input,
                    ..
                } => {
                    let (output, how) = answer(&request, &input);
                    let made = 0;
                    let engine = Engine {
                        output,
                        how,
                        request,
                        made,
                    };
                    self.engines.insert(nonce, engine);
                }
                PayeeEffect::Trace { nonce, said, .. } => {
                    self.engines.remove(&nonce);
                    let root = trace_root(&self.asked[&nonce].request, said);
                    let step = self.payee.traced(CHANNEL, nonce, root);
                    self.payee_did(step);
                }
                PayeeEffect::Stop { nonce, .. } => {
                    self.engines.remove(&nonce);
                }
                PayeeEffect::Commit { root } => self.commit(root),
            }
        }
    }

    /// A finalised block has it.
    fn commit(&mut self, root: BatchRoot) {
        let number = self.roots.len() as BatchNumber;
        self.roots.push(root);
        self.windows
            .insert(number, BatchWindow::new(root, self.clock + 10));
        self.payee_does(|payee| payee.committed(&root, number));
    }

    pub fn restart_payee(&mut self) {
        self.kills += 1;
        self.payee_disk.dies_at.set(None);
        self.engines.clear();
        self.drop_connections();
        let (rows, read) = (self.payee_disk.rows(), self.payee_disk.reader());
        let opened = Payee::open_over(self.config.clone(), read, rows, CHANNEL + 100);
        let (payee, step) = opened.unwrap();
        self.payee = payee;
        self.payee_does(|_| step);
        // It was promised, and nobody knows whether it was sent.
        if let Some(root) = self.payee.uncommitted() {
            let known = self.roots.iter().position(|known| *known == root);
            match known {
                Some(number) => self.payee_does(|payee| payee.committed(&root, number as BatchNumber)),
                None => self.commit(root),
            }
        }
    }

    pub fn payer_does(&mut self, act: impl FnOnce(&mut Payer) -> Step<PayerEffect>) {
        let step = act(&mut self.payer);
        let effects = match step.commit(&self.payer_disk) {
            Ok(effects) => effects,
            Err(_) => return self.restart_payer(),
        };
        for effect in effects {
            match effect {
                PayerEffect::Send { nonce, message } => {
                    match &message {
                        ToPayee::Ask(ask) => self.sums.push(ask.voucher.voucher.sum),
                        ToPayee::Pay(signed) => self.sums.push(signed.voucher.sum),
                        ToPayee::Cancel(_) => {}
                    }
                    if let Some(connection) = self.connections.get_mut(&nonce) {
                        connection.to_payee.push_back(message.encode());
                    }
                }
                PayerEffect::Taken { .. } => {}
                PayerEffect::Said { nonce, bytes } => self.got.entry(nonce).or_default().extend(bytes),
                PayerEffect::Done { nonce, receipt } => {
                    self.done.insert(nonce, receipt);
                    self.connections.remove(&nonce);
                }
                PayerEffect::Refused {
                    nonce,
                    why,
                    is_worth_retry,
                    ..
                } => self.refused.push((nonce, why, is_worth_retry)),
                PayerEffect::Broken {
                    nonce,
                    why,
                    spent,
                    evidence,
                } => {
                    self.broken.push((nonce, why, spent, evidence));
                    self.lost += 1;
                    self.connections.remove(&nonce);
                }
            }
        }
    }

    pub fn restart_payer(&mut self) {
        self.kills += 1;
        self.payer_disk.dies_at.set(None);
        self.connections.clear();
        let rows = self.payer_disk.rows();
        let seen = self.seen.terms.clone();
        let opened = Payer::open(payer_config(), seen, vec![account(AGENT)], self.clock, rows);
        let (payer, step) = opened.unwrap();
        self.payer = payer;
        self.payer_does(|_| step);
    }

    pub fn drop_connections(&mut self) {
        self.connections.clear();
        let open: Vec<Nonce> = self.payer.open_calls().collect();
        for nonce in open {
            self.payer_does(|payer| payer.lost(nonce));
        }
    }

    /// The connection of a call is lost; the payee does not know.
    pub fn drop_connection(&mut self, nonce: Nonce) {
        self.connections.remove(&nonce);
        self.payer_does(|payer| payer.lost(nonce));
    }

    pub fn ask(&mut self, wanted: Wanted) -> Result<Nonce, AskError> {
        let (nonce, step) = self.payer.ask(wanted.clone())?;
        self.connections.insert(nonce, Connection::default());
        // It may be another one than the payee takes under this number.
        let is_taken = self.payee_calls().contains(&nonce);
        if !is_taken {
            self.asked.insert(nonce, wanted);
            self.got.remove(&nonce);
        }
        self.payer_does(|_| step);
        Ok(nonce)
    }

    fn payee_calls(&self) -> Vec<Nonce> {
        let is_call = |table| table == Table::Calls;
        let rows = self.payee_disk.of(is_call);
        let nonce = |row: &Row| u32::from_be_bytes(*row.key.last_chunk().unwrap());
        rows.iter().map(nonce).collect()
    }

    /// One message of a call to the payee; whether there was one.
    pub fn tell_payee(&mut self, nonce: Nonce) -> bool {
        let connection = self.connections.get_mut(&nonce);
        let Some(bytes) = connection.and_then(|connection| connection.to_payee.pop_front()) else {
            return false;
        };
        let (seen, clock, now) = (self.seen.clone(), self.clock, self.now);
        self.payee_does(|payee| match message::read(&bytes).unwrap() {
            ToPayee::Ask(ask) => payee.ask(ask, Some(&seen), clock + 50),
            ToPayee::Pay(signed) => payee.pay(signed, clock + 50, now),
            ToPayee::Cancel(signed) => payee.cancel(signed),
        });
        true
    }

    pub fn tell_payer(&mut self, nonce: Nonce) -> bool {
        let connection = self.connections.get_mut(&nonce);
        let Some(bytes) = connection.and_then(|connection| connection.to_payer.pop_front()) else {
            return false;
        };
        self.payer_does(|payer| payer.hear(nonce, message::read(&bytes).unwrap()));
        true
    }

    /// The engine makes so many units, as far as it may.
    pub fn compute(&mut self, nonce: Nonce, units: usize) -> bool {
        let Some(engine) = self.engines.get_mut(&nonce) else {
            return false;
        };
        let unit = unit_bytes(&engine.request);
        let room = self.payee.room(CHANNEL, nonce) as usize;
        let upto = (engine.made + unit * units.min(room)).min(engine.output.len());
        let bytes = engine.output[engine.made..upto].to_vec();
        let is_whole = upto == engine.output.len();
        let how = engine.how;
        let root = trace_root(&engine.request, (upto / unit) as u32);
        if bytes.is_empty() && !is_whole {
            return false;
        }
        engine.made = upto;
        if is_whole {
            self.engines.remove(&nonce);
        }
        let now = self.now;
        let trace_root = root;
        let end = Ending { how, trace_root };
        self.payee_does(|payee| match is_whole {
            true => payee.ended(CHANNEL, nonce, &bytes, end, now).unwrap(),
            false => payee.said(CHANNEL, nonce, &bytes, now).unwrap(),
        });
        true
    }

    pub fn calls(&self) -> Vec<Nonce> {
        let mut calls: Vec<_> = self
            .connections
            .keys()
            .chain(self.engines.keys())
            .copied()
            .collect();
        calls.sort_unstable();
        calls.dedup();
        calls
    }

    /// Everything goes on until nothing moves any more.
    pub fn settle(&mut self) {
        loop {
            let mut has_moved = false;
            for nonce in self.calls() {
                has_moved |= self.tell_payee(nonce);
                has_moved |= self.compute(nonce, 5);
                has_moved |= self.tell_payer(nonce);
            }
            if !has_moved {
                return;
            }
        }
    }

    /// Time passes until the payee waits for nobody.
    pub fn wait(&mut self) {
        self.now += PATIENCE;
        let now = self.now;
        self.payee_does(|payee| payee.tick(now));
    }

    /// A payee that ends what nobody can hear any more.
    pub fn end_all(&mut self) {
        self.settle();
        self.wait();
        let open: Vec<_> = self.payee.open_calls().collect();
        for (_, nonce) in open {
            if !self.connections.contains_key(&nonce) {
                self.payee_does(|payee| payee.abandon(CHANNEL, nonce));
            }
        }
        self.settle();
    }

    pub fn batch(&mut self) {
        let limits = BatchLimits {
            receipts_max: 1_000,
            price_max: u128::MAX,
        };
        self.payee_does(|payee| payee.make_batch(&limits));
    }

    /// Redeems what can be, as the chain does. Returns how much that was.
    pub fn redeem(&mut self) -> u128 {
        let duties = self.payee.duties(&self.seen, &self.windows, self.clock, &POLICY);
        let redeem = duties.into_iter().find_map(|duty| match duty {
            Duty::Redeem {
                voucher,
                openings,
                amount,
            } => Some((voucher, openings, amount)),
            _ => None,
        });
        let Some((voucher, openings, amount)) = redeem else {
            return 0;
        };
        assert_eq!(voucher.voucher.check(&self.seen.terms, self.clock), Ok(()));
        assert!(voucher.is_signed(&GENESIS, &account(KEY), is_signed));
        for (number, opening) in openings {
            let window = &self.windows[&number];
            let shown = opening.verify(&window.root).unwrap();
            let purse = &mut self.seen.purse;
            purse.count(window, &shown, self.clock, POLICY.supply).unwrap();
        }
        let sum = voucher.voucher.sum;
        let paid = self.seen.purse.redeem(sum, self.clock, POLICY.supply);
        assert_eq!(paid, amount);
        // What paid nothing was only in the way.
        if amount == 0 { self.redeem() } else { amount }
    }

    pub fn top_up(&mut self, amount: u128) {
        let purse = &mut self.seen.purse;
        purse.top_up(amount, self.clock, POLICY.supply).unwrap();
        self.seen.terms.deposit = self.seen.purse.deposit;
        self.see_payer();
    }

    pub fn see_payer(&mut self) {
        let (terms, clock) = (self.seen.terms.clone(), self.clock);
        self.payer.see(terms, vec![account(AGENT)], clock);
    }

    /// What a payer was served, in plancks.
    pub fn got_value(&self) -> u128 {
        let value = |(nonce, bytes): (&Nonce, &Vec<u8>)| {
            let request = &self.asked[nonce].request;
            let said = bytes.len() / unit_bytes(request);
            let units = if said == 0 {
                0
            } else {
                said as u32 + request.work().prompt_tokens()
            };
            request.price(units).unwrap()
        };
        self.got.iter().map(value).sum()
    }

    /// No two statements that have left the payee contradict each other, nor any receipt that it batches; and
    /// whoever has heard the shorter of two is shown all that it can demand by the longer.
    pub fn assert_no_clash(&self) {
        let mut by_nonce: BTreeMap<Nonce, Vec<ChunkStatement<AccountId>>> = BTreeMap::new();
        for signed in &self.sent {
            assert!(signed.is_signed(&GENESIS, is_signed));
            let of = by_nonce.entry(signed.statement.nonce).or_default();
            of.push(signed.statement.clone());
        }
        for (nonce, of) in &mut by_nonce {
            let shown = self.payee.open_receipt(CHANNEL, *nonce);
            of.extend(shown.map(|shown| shown.batched.statement));
            let wanted = &self.asked[nonce];
            let mut output = head(&wanted.request);
            output.extend(answer(&wanted.request, &wanted.input).0);
            for one in of.iter() {
                assert_eq!(one.check(&wanted.request), Ok(()));
                assert_eq!(one.output, content_hash(&output[..one.bytes as usize]));
                for other in of.iter() {
                    let (shorter, longer) = (one.bytes.min(other.bytes), one.bytes.max(other.bytes));
                    let last = shorter.saturating_sub(1) / SEGMENT_BYTES;
                    let shown = SegmentOpening::new(&output[..longer as usize], last);
                    assert_eq!(
                        incompatible(one, other, shown.as_ref()),
                        None,
                        "{one:?} {other:?}"
                    );
                    let is_demandable = one.end.is_none() && !one.is_void();
                    if is_demandable && one.bytes <= other.bytes {
                        let goes_on = goes_on(one, other, shown.as_ref());
                        assert_eq!(goes_on, Some(true), "{one:?} {other:?}");
                    }
                }
            }
        }
    }

    /// The payee's root is that of its receipts.
    pub fn shown(&self, nonce: Nonce) -> Shown {
        let shown = self.payee.open_receipt(CHANNEL, nonce).unwrap();
        let root = &self.roots[shown.batch as usize];
        let proven = shown.batched.opening.verify(root).unwrap();
        assert_eq!((proven.channel, proven.nonce), (CHANNEL, nonce));
        shown
    }
}
