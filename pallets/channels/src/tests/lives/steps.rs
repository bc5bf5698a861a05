//! What is done in random lives: every call, with any two numbers for what it takes.

use std::collections::BTreeMap;

use surety_channels::{
    BatchEvidence, Equivocation, PointsFound, Said, SignedVoucher, SumFlaw, Voucher, points_seal,
};
use surety_proofs::SegmentOpening;
use surety_types::{
    TaskId,
    trust::{FaultKind, ItemLeaves},
};

use super::points_of;
use super::{
    super::*,
    HONEST, Life, TRACE,
    seller::{Made, Seller, Statement, asked},
};
use crate::{Convictions, DisputedReceipts, NextChannel, PointsAudits, ReceiptSource};

const SALT: H256 = H256::repeat_byte(11);

impl Life {
    /// A step of this kind. Most are refused.
    pub(super) fn step(&mut self, kind: u8, a: usize, b: usize) -> Option<()> {
        let channel = a as ChannelId % (NextChannel::<Test>::get() + 1);
        let seller = b % 2;
        let stash = self.sellers[seller].stash.clone();
        let batch = (a % (self.sellers[seller].made.len() + 1)) as BatchNumber;
        let latest = (self.sellers[seller].made.len() as BatchNumber).saturating_sub(1 + a as u32 % 2);
        let amount = [1, 1_000, SURE, CAP][a % 4];
        match kind {
            0 => self.open(a, b),
            1 => ignore(ChannelsPallet::top_up(
                signed(self.anybody(4 + b)),
                channel,
                amount,
            )),
            2 => {
                let expiry = ChannelsPallet::time() + 5 * (b as u32 % 110);
                ignore(ChannelsPallet::extend(
                    signed(self.anybody(4 + b)),
                    channel,
                    expiry,
                ));
            }
            3..=6 => self.ask(channel, b)?,
            7 | 8 => self.commit(seller, a, b),
            9 | 10 => self.redeem(channel, b)?,
            11 => self.hold(channel, b)?,
            12 => ignore(ChannelsPallet::close(signed(self.anybody(4 + b)), channel)),
            13 if b.is_multiple_of(3) => {
                ignore(ChannelsPallet::close_agreed(signed(self.anybody(b)), channel))
            }
            14 => ignore(ChannelsPallet::end(signed(self.anybody(b)), channel)),
            15 | 16 => (0..=b % 4).try_for_each(|more| self.dispute(a + more, b))?,
            17 => self.decide(a, b)?,
            18 | 19 => self.demand(a, b)?,
            20 => self.show(seller),
            21 => self.end_demand(seller, a)?,
            22 => self.report_equivocation(a, b)?,
            23 => self.report_batch(seller, a, b)?,
            24 | 25 => self.announce(seller, latest, self.is_verifier_honest || !a.is_multiple_of(3))?,
            26 => self.open_points(seller, batch)?,
            27 => ignore(ChannelsPallet::end_points(
                signed(reporter()),
                stash,
                batch,
                verifier(),
            )),
            28 => self.refute(a, b)?,
            29 => self.sell(seller, a, b),
            30 => {
                let (lock, cap) = [(0, 0), (LOCK, CAP), (2 * LOCK, 2 * CAP), (LOCK, CAP / 2)][a % 4];
                ignore(ChannelsPallet::stand(signed(stash), lock, cap));
            }
            31 => ignore(ChannelsPallet::add_signer(signed(self.anybody(a % 4)))),
            32 => self.pass(if a.is_multiple_of(16) { 300 } else { a as u32 % 15 }),
            _ => self.pass(1),
        }
        Some(())
    }

    fn open(&mut self, a: usize, b: usize) {
        let by = [payer(), reporter(), self.sellers[1].stash.clone()][a % 3].clone();
        let stash = self.sellers[b % 2].stash.clone();
        let (deposit, expiry) = (
            SURE << (b % 5),
            ChannelsPallet::time() + 40 + 10 * (a as u32 % 50),
        );
        let id = NextChannel::<Test>::get();
        // Wallets sign for themselves; all of them have one key here.
        let opened = ChannelsPallet::open(signed(by.clone()), stash, payer(), deposit, expiry);
        if opened.is_ok() {
            self.payers.insert(id, by);
        }
    }

    /// A request is answered. Its client holds what was said, or some of it, and signs for it, or does not.
    fn ask(&mut self, channel: ChannelId, b: usize) -> Option<()> {
        let of = Channels::<Test>::get(channel)?;
        let seller = self.sellers.iter_mut().find(|seller| seller.stash == of.payee)?;
        let provider = Standings::<Test>::get(&of.payee).expect("is paid");
        if provider.lock == 0 || channel < provider.since.channel {
            return None;
        }
        let now = seller.taken.get(&channel).copied().unwrap_or_default();
        let is_honest = seller.stash == stash();
        // Who is honest takes no more than its cap still covers.
        if is_honest && seller.receipt(channel, now).price > seller.room() {
            return None;
        }
        seller.taken.insert(channel, now + 1);
        let is_lie = !is_honest && b.is_multiple_of(5);
        let tokens = if b.is_multiple_of(3) {
            1 + b as u32 % 4
        } else {
            u32::MAX
        };
        let statement = seller.statement(channel, now, tokens, is_lie.into());
        let price = seller.receipt(channel, now).price;
        self.held.push(signed_by(&seller.pair, statement));
        if !b.is_multiple_of(4) {
            let sum = self.signed.entry(channel).or_default();
            *sum = (*sum + price).min(of.purse.deposit);
        }
        Some(())
    }

    /// Commits what was not batched, a few receipts of each channel. A liar changes something sometimes.
    fn commit(&mut self, number: usize, a: usize, b: usize) {
        let honest = number == HONEST;
        if honest {
            // What is demanded comes first, and has places.
            self.show(HONEST);
            if Standings::<Test>::get(stash()).is_none_or(|of| of.unfinished.len() > 40) {
                return;
            }
        }
        let seller = &self.sellers[number];
        let mut receipts = Vec::new();
        for (channel, taken) in &seller.taken {
            let mut left = (0..*taken).skip_while(|nonce| seller.batched.contains_key(&(*channel, *nonce)));
            let first = left.next().into_iter();
            let run = first.chain(left.take_while(|nonce| !seller.batched.contains_key(&(*channel, *nonce))));
            receipts.extend(run.take(1 + a % 6).map(|nonce| seller.receipt(*channel, nonce)));
        }
        let mut prices: Vec<_> = receipts.iter().map(|receipt| receipt.price).collect();
        let at = b % receipts.len().max(1);
        if let (Some(receipt), false) = (receipts.get_mut(at), honest) {
            match b % 7 {
                0 => prices[at] += 1,
                1 => *receipt = seller.statement(receipt.channel, receipt.nonce, u32::MAX, 1),
                2 => receipt.end = None,
                3 => receipt.nonce += 1,
                4 => (receipt.price, prices[at]) = (receipt.price + 1, receipt.price + 1),
                _ => {}
            }
        }
        self.put(number, receipts, &prices);
    }

    /// Commits these, at the places that they come in.
    pub(super) fn put(
        &mut self,
        number: usize,
        receipts: Vec<Statement>,
        prices: &[u128],
    ) -> Option<BatchNumber> {
        let seller = &mut self.sellers[number];
        let mut places: BTreeMap<ChannelId, u32> = BTreeMap::new();
        let mut entries = Vec::new();
        for (receipt, price) in receipts.iter().zip(prices) {
            // The first of a channel says where it begins, unless it lies.
            let first = places.entry(receipt.channel).or_insert(receipt.nonce);
            let nonce = *first;
            *first += 1;
            let leaf = ReceiptLeaf {
                receipt: H256(receipt.message(&GENESIS)),
                salt: H256::zero(),
            };
            let (channel, price) = (receipt.channel, *price);
            entries.push(BatchEntry {
                channel,
                nonce,
                price,
                leaf,
            });
        }
        let batch = Batch::new(&entries).ok()?;
        let committed = ChannelsPallet::commit_batch(signed(seller.agent()), batch.root());
        committed.ok()?;
        let batch_number = seller.made.len() as BatchNumber;
        let all = entries
            .iter()
            .map(|entry| ((entry.channel, entry.nonce), batch_number));
        seller.batched.extend(all);
        seller.made.push(Made { batch, receipts });
        Some(batch_number)
    }

    fn redeem(&mut self, channel: ChannelId, b: usize) -> Option<()> {
        let of = Channels::<Test>::get(channel)?;
        let seller = self.sellers.iter().find(|seller| seller.stash == of.payee)?;
        let with = (0..)
            .zip(&seller.made)
            .filter_map(|(number, made): (BatchNumber, _)| {
                let opening = made.batch.open_channel(channel)?;
                let is_due = opening.first >= of.purse.next || b.is_multiple_of(6);
                is_due.then_some((number, opening))
            });
        let mut batches: Vec<_> = with.take(b % 4).collect();
        batches.sort_by_key(|(_, opening)| opening.first);
        self.note_late(channel, &of, &batches);
        let is_forged = b.is_multiple_of(5);
        let sum = self.signed.get(&channel).copied().unwrap_or_default() + u128::from(is_forged);
        let voucher = Voucher {
            channel: channel + ChannelId::from(b.is_multiple_of(11)),
            payee: of.payee,
            expiry: of.expiry,
            nonce: 0,
            request: H256::zero(),
            sum,
        };
        let key = if is_forged { agent_pair() } else { pair() };
        let signature = key.sign(&voucher.message(&GENESIS)).0;
        let voucher = SignedVoucher { voucher, signature };
        let who = signed(self.anybody(b));
        ignore(ChannelsPallet::redeem(
            who,
            voucher,
            Openings::truncate_from(batches),
        ));
        Some(())
    }

    fn hold(&self, channel: ChannelId, b: usize) -> Option<()> {
        let of = Channels::<Test>::get(channel)?;
        let seller = self.sellers.iter().find(|seller| seller.stash == of.payee)?;
        let number = b.checked_rem(seller.made.len())?;
        if let Some(opening) = seller.made[number].batch.open_channel(channel) {
            let who = signed(seller.agent());
            ignore(ChannelsPallet::hold(who, channel, number as BatchNumber, opening));
        }
        Some(())
    }

    fn any_batched(&self, a: usize, b: usize) -> Option<(usize, BatchNumber, Batched<AccountId32>)> {
        let seller = &self.sellers[b % 2];
        let count = seller.batched.len();
        let (channel, nonce) = *seller.batched.keys().nth(a.checked_rem(count)?)?;
        let (number, batched) = seller.shown(channel, nonce)?;
        Some((b % 2, number, batched))
    }

    fn dispute(&self, a: usize, b: usize) -> Option<()> {
        let source = if b.is_multiple_of(3) {
            let at = a.checked_rem(self.held.len())?;
            ReceiptSource::Signed(self.held[at].clone())
        } else {
            let (_, number, batched) = self.any_batched(a, b)?;
            ReceiptSource::Batch(number, batched)
        };
        let said = match &source {
            ReceiptSource::Batch(_, batched) => &batched.statement,
            ReceiptSource::Signed(signed) => &signed.statement,
        };
        let (request, head) = asked(said);
        let who = signed(self.anybody(a));
        ignore(ChannelsPallet::dispute(who, Box::new(source), request, head));
        Some(())
    }

    /// A round ends: what an honest provider says stands, or nobody could decide.
    fn decide(&mut self, a: usize, b: usize) -> Option<()> {
        let rounds: Vec<(TaskId, _)> = DisputedReceipts::<Test>::iter().collect();
        let at = a.checked_rem(rounds.len())?;
        let (round, of) = &rounds[at];
        let is_wrong = of.provider != stash() && b.is_multiple_of(3);
        if is_wrong && let Some(lock) = ChannelsPallet::receipt_convicted(*round, &of.provider) {
            AtOnce::convict(&of.provider, FaultKind::WrongResult, lock, Some(&reporter()));
        }
        ChannelsPallet::receipt_decided(*round, !is_wrong && !b.is_multiple_of(4));
        Some(())
    }

    fn demand(&mut self, a: usize, b: usize) -> Option<()> {
        if b.is_multiple_of(3) {
            let seller = &self.sellers[b % 2];
            let (batch, place) = ((a % (seller.made.len() + 1)) as BatchNumber, b as u32 % 3);
            let who = signed(verifier_agent());
            let of = seller.stash.clone();
            ignore(ChannelsPallet::demand_point(who, of, batch, place, PROOF));
        } else {
            let at = a.checked_rem(self.held.len())?;
            let held = self.held[at].clone();
            let who = signed(self.anybody(4 + b));
            ignore(ChannelsPallet::demand_receipt(who, Box::new(held)));
        }
        Some(())
    }

    pub(super) fn end_demand(&self, number: usize, a: usize) -> Option<()> {
        let owed = self.sellers[number].owed();
        let at = a.checked_rem(owed.len())?;
        let (stash, demander) = (self.sellers[number].stash.clone(), owed[at].0.clone());
        ignore(ChannelsPallet::end_demand(signed(reporter()), stash, demander));
        Some(())
    }

    fn report_equivocation(&self, a: usize, b: usize) -> Option<()> {
        let at = a.checked_rem(self.held.len())?;
        let one = self.held[at].clone();
        let said = &one.statement;
        let seller = &self.sellers[usize::from(said.payee != stash())];
        // What it says later, or another answer, or a lie.
        let nonce = said.nonce + u32::from(b.is_multiple_of(5));
        let lie = u32::from(said.payee != stash() && b.is_multiple_of(3));
        let other = signed_by(&seller.pair, seller.statement(said.channel, nonce, u32::MAX, lie));
        let bytes = Seller::said(said.channel, nonce, Seller::size(said.channel, nonce).1, lie);
        let shown = SegmentOpening::new(&bytes, b as u32 % 2);
        let two = Equivocation { one, other, shown };
        ignore(ChannelsPallet::report_equivocation(
            signed(reporter()),
            Box::new(two),
        ));
        Some(())
    }

    fn report_batch(&self, number: usize, a: usize, b: usize) -> Option<()> {
        let (_, batch, batched) = self.any_batched(a, number)?;
        let (_, other, second) = self.any_batched(b, number)?;
        let (request, shown) = asked(&batched.statement);
        let evidence = match b % 4 {
            0 => BatchEvidence::Order {
                one: batched.opening.of,
                other: second.opening.of,
            },
            1 => BatchEvidence::Receipt {
                batched,
                request: (!a.is_multiple_of(3)).then_some(*request),
            },
            2 => BatchEvidence::Sum(SumFlaw {
                of: (a.is_multiple_of(2)).then(|| batched.opening.of.clone()),
                level: a as u32 % 2,
                place: 0,
                claimed: batched.opening.of.total.sums,
                left: batched.opening.of.total,
                right: second.opening.of.total,
                path: batched.opening.path,
            }),
            _ => {
                let at = a.checked_rem(self.held.len());
                let signed = at.map(|at| Said::Signed(self.held[at].clone()));
                let said = signed
                    .filter(|_| !a.is_multiple_of(3))
                    .unwrap_or(Said::Batched(second));
                BatchEvidence::Contradiction { batched, said, shown }
            }
        };
        let stash = self.sellers[number].stash.clone();
        let reported =
            ChannelsPallet::report_batch(signed(reporter()), stash, batch, Some(other), Box::new(evidence));
        ignore(reported);
        Some(())
    }

    fn announce(&mut self, number: usize, batch: BatchNumber, is_right: bool) -> Option<()> {
        let provider = self.sellers[number].stash.clone();
        let count = points_of(&provider, batch)?;
        let root = if is_right { TRACE } else { H256::repeat_byte(99) };
        let found = PointsFound::truncate_from(vec![root; count]);
        let seal = points_seal(&provider, batch, &verifier(), &found, &SALT);
        let who = signed(verifier_agent());
        if ChannelsPallet::announce_points(who, provider, batch, PROOF, seal).is_ok() {
            self.sealed.insert((number, batch), found);
        }
        Some(())
    }

    fn open_points(&self, number: usize, batch: BatchNumber) -> Option<()> {
        let found = self.sealed.get(&(number, batch))?;
        let provider = self.sellers[number].stash.clone();
        let origin = frame_system::RawOrigin::Authorized.into();
        let found = found.clone();
        ignore(ChannelsPallet::open_points(
            origin,
            provider,
            batch,
            verifier(),
            found,
            SALT,
        ));
        Some(())
    }

    /// Holds what the verifier has sealed against the receipt at one of its points.
    fn refute(&self, a: usize, b: usize) -> Option<()> {
        let (number, batch) = *self.sealed.keys().nth(b.checked_rem(self.sealed.len())?)?;
        let seller = &self.sellers[number];
        let audit = PointsAudits::<Test>::get((&seller.stash, batch), verifier())?;
        let made = &seller.made[batch as usize].batch;
        let points = drawn_points(&audit.output.0, made.root().sums.price, audit.mean);
        let place = a.checked_rem(points.len())?;
        // Seldom at another one.
        let opening = made.leaf_at(if a.is_multiple_of(5) { 0 } else { points[place] })?;
        let nonce = opening.of.first + opening.place;
        let (_, shown) = seller.shown(opening.of.channel, nonce)?;
        let (request, _) = asked(&shown.statement);
        let receipt = Box::new((shown, *request, None::<ItemLeaves>));
        let (who, stash) = (signed(reporter()), seller.stash.clone());
        ignore(ChannelsPallet::refute_points(
            who,
            stash,
            batch,
            verifier(),
            place as u32,
            receipt,
        ));
        Some(())
    }

    fn sell(&self, number: usize, a: usize, b: usize) {
        let (seller, model) = (&self.sellers[number], model(1 + a as u8 % 3));
        let (stash, agent) = (signed(seller.stash.clone()), signed(seller.agent()));
        let (operation, places) = (Operation::Generate, b as u32 % 120);
        ignore(match a % 4 {
            0 | 1 => ChannelsPallet::offer(stash, model, operation, FLOOR, places, None),
            2 => ChannelsPallet::withdraw_offer(stash, model, operation),
            _ => ChannelsPallet::report_busy(agent, model, operation, places),
        });
    }

    /// The clock runs. Whoever is honest does what it has to before that.
    pub(super) fn pass(&mut self, blocks: u32) {
        for _ in 0..blocks {
            self.redeem_due();
            self.show(HONEST);
            self.redeem_due();
            self.is_paid();
            for (number, batch) in self.sealed.keys().copied().collect::<Vec<_>>() {
                // Another one opens what it has not computed, and forgets the rest.
                let is_lazy = self.sealed[&(number, batch)].iter().any(|root| *root != TRACE);
                if self.is_verifier_honest || is_lazy {
                    self.open_points(number, batch);
                }
            }
            pass(1);
            Drawn::set(Some((H256::repeat_byte(6), System::block_number())));
        }
    }
}
