//! Receipts on their way to the chain, and what is shown of them.

use std::{collections::BTreeMap, ops::Range};

use codec::{Decode, Encode};
use sp_core::H256;
use surety_channels::{
    Batch, BatchEntry, BatchNumber, BatchRoot, Batched, ChannelId, ChannelOpening, ChunkStatement, Nonce,
    RECEIPTS_MAX, ReceiptLeaf, ReceiptOpening, Request,
};

use super::{Payee, PayeeEffect, call::CallRow};
use crate::{
    AccountId, Row, Step, Table,
    store::{call_key, channel_key, chunk_key},
};

/// Receipts of consecutive requests: channel, the first of them, how many.
type Part = (ChannelId, Nonce, u32);

/// What can be in a batch.
#[derive(Default)]
struct Gathered {
    /// How many receipts of each channel.
    counts: BTreeMap<ChannelId, u32>,
    receipts: u32,
    /// In plancks.
    price: u128,
    /// The channel that was looked at last and has something in it.
    last: Option<ChannelId>,
}

/// How much a batch may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// Most receipts.
    pub receipts_max: u32,
    /// Most that they cost, in plancks: what the standing lock still covers.
    pub price_max: u128,
}

/// What the journal keeps of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct BatchRow {
    pub root: BatchRoot,
    /// By channel.
    pub parts: Vec<Part>,
    /// Its number on the chain, once a finalised block has it.
    pub number: Option<BatchNumber>,
}

pub(crate) struct Made {
    pub row: BatchRow,
    pub batch: Batch,
}

impl Made {
    /// Nothing where the receipts do not make the root.
    pub fn new(row: BatchRow, entries: &[BatchEntry]) -> Option<Self> {
        let batch = Batch::new(entries).ok()?;
        (batch.root() == row.root).then_some(Self { row, batch })
    }
}

/// A receipt, as whoever drew it, or missed it, is shown it. Input and output are beside it in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The batch that it is in.
    pub batch: BatchNumber,
    /// It, and that it is there.
    pub batched: Batched<AccountId>,
    /// What it answers.
    pub request: Request,
}

impl Payee {
    /// Makes a batch of receipts that are in none, in the order of their requests, and promises it. Nothing
    /// while another is not on the chain, or where there is nothing to be paid for.
    pub fn make_batch(&mut self, limits: &BatchLimits) -> Step<PayeeEffect> {
        self.make(limits, 1, &[])
    }

    /// The same, also where there is nothing to be paid for: somebody demands these receipts, which go into
    /// it first, in that order, with all before them.
    pub fn make_demanded_batch(
        &mut self,
        limits: &BatchLimits,
        demanded: &[(ChannelId, Nonce)],
    ) -> Step<PayeeEffect> {
        self.make(limits, 0, demanded)
    }

    fn make(
        &mut self,
        limits: &BatchLimits,
        price_min: u128,
        demanded: &[(ChannelId, Nonce)],
    ) -> Step<PayeeEffect> {
        let mut step = Step::default();
        if self.uncommitted().is_some() {
            return step;
        }
        let gathered = self.gather(limits, demanded);
        let parts = self.parts(&gathered);
        let Ok(entries) = self.entries(&parts) else {
            return step;
        };
        // Receipts of nothing wait for one of something.
        let Some(batch) = Batch::new(&entries)
            .ok()
            .filter(|batch| batch.root().sums.price >= price_min)
        else {
            return step;
        };
        let id = self
            .batches
            .last_key_value()
            .map_or(0, |(id, _)| id.saturating_add(1));
        let root = batch.root();
        for (channel, first, count) in &parts {
            if let Some(entry) = self.channels.get_mut(channel) {
                entry.account.unbatched = first.saturating_add(*count);
                step.put(Row::new(Table::Accounts, channel_key(*channel), &entry.account));
            }
        }
        self.turn = gathered.last.map_or(0, |channel| channel.saturating_add(1));
        let number = None;
        let row = BatchRow { root, parts, number };
        step.put(Row::new(Table::Batches, id.to_be_bytes().to_vec(), &row));
        step.then(PayeeEffect::Commit { root });
        self.batches.insert(id, Made { row, batch });
        step
    }

    /// Receipts that are in no batch and could be, and what they cost, in plancks.
    pub fn unbatched(&self) -> (u32, u128) {
        let all = BatchLimits {
            receipts_max: RECEIPTS_MAX,
            price_max: u128::MAX,
        };
        let gathered = self.gather(&all, &[]);
        (gathered.receipts, gathered.price)
    }

    /// What the receipts that no block has will cost at most, of open requests, too, in plancks: those that
    /// can come into a batch.
    pub fn at_risk(&self) -> u128 {
        let loose = self.channels.iter().flat_map(|(channel, entry)| {
            let is_whole = *channel >= self.start.first;
            let calls = entry.calls.range(entry.account.unbatched..);
            let end = entry.unpaid_from.unwrap_or(Nonce::MAX);
            let paid = calls.take_while(move |(nonce, _)| is_whole && **nonce < end);
            paid.map(|(_, call)| {
                let full = call.row.form.price(call.row.form.full);
                call.row.receipt().map_or(full, |receipt| receipt.price)
            })
        });
        let promised = self.uncommitted().map_or(0, |root| root.sums.price);
        loose.fold(promised, u128::saturating_add)
    }

    /// What can be in a batch: first what is demanded. Each time another channel is the next, so that no one
    /// takes up all that may be sold.
    fn gather(&self, limits: &BatchLimits, demanded: &[(ChannelId, Nonce)]) -> Gathered {
        let mut gathered = Gathered::default();
        for (channel, nonce) in demanded {
            self.gather_of(*channel, *nonce, limits, &mut gathered);
        }
        let in_turn = self
            .channels
            .range(self.turn..)
            .chain(self.channels.range(..self.turn));
        for (channel, _) in in_turn {
            if self.gather_of(*channel, Nonce::MAX, limits, &mut gathered) {
                gathered.last = Some(*channel);
            }
        }
        gathered
    }

    /// Receipts of a channel up to that of a request, as far as they are there in their order and the limits
    /// let them in. Whether there are any.
    fn gather_of(
        &self,
        channel: ChannelId,
        upto: Nonce,
        limits: &BatchLimits,
        gathered: &mut Gathered,
    ) -> bool {
        // What an old copy has may have been batched, or gone on with, before.
        let entry = self
            .channels
            .get(&channel)
            .filter(|_| channel >= self.start.first);
        let Some(entry) = entry else { return false };
        let before = gathered.counts.get(&channel).copied().unwrap_or(0);
        let first = entry.account.unbatched.saturating_add(before);
        let mut count = 0u32;
        for ((at, call), nonce) in entry.calls.range(first..).zip(first..) {
            let receipt = call.row.receipt().filter(|_| *at == nonce && nonce <= upto);
            let more = receipt.and_then(|receipt| gathered.price.checked_add(receipt.price));
            let Some(more) = more.filter(|more| *more <= limits.price_max) else {
                break;
            };
            if gathered.receipts >= limits.receipts_max.min(RECEIPTS_MAX) {
                break;
            }
            gathered.price = more;
            (gathered.receipts, count) = (gathered.receipts.saturating_add(1), count.saturating_add(1));
        }
        if count > 0 {
            gathered.counts.insert(channel, before.saturating_add(count));
        }
        count > 0
    }

    /// By channel.
    fn parts(&self, gathered: &Gathered) -> Vec<Part> {
        let parts = gathered.counts.iter().filter_map(|(channel, count)| {
            let first = self.channels.get(channel)?.account.unbatched;
            Some((*channel, first, *count))
        });
        parts.collect()
    }

    /// The entries of a batch, or which receipt is missing.
    pub(super) fn entries(&self, parts: &[Part]) -> Result<Vec<BatchEntry>, (ChannelId, Nonce)> {
        let genesis = &self.config.genesis;
        let mut entries = Vec::new();
        for (channel, first, count) in parts {
            for nonce in *first..first.saturating_add(*count) {
                let receipt = self.row(*channel, nonce).and_then(CallRow::receipt);
                let receipt = receipt.ok_or((*channel, nonce))?;
                entries.push(BatchEntry {
                    channel: *channel,
                    nonce,
                    price: receipt.price,
                    leaf: ReceiptLeaf {
                        receipt: H256(receipt.message(genesis)),
                        salt: self.start.salts.salt(genesis, *channel, nonce),
                    },
                });
            }
        }
        Ok(entries)
    }

    fn row(&self, channel: ChannelId, nonce: Nonce) -> Option<&CallRow> {
        Some(&self.channels.get(&channel)?.calls.get(&nonce)?.row)
    }

    /// The batch that was promised and that no finalised block has, as far as is known here: it has to be
    /// sent until one does.
    pub fn uncommitted(&self) -> Option<BatchRoot> {
        let (_, last) = self.batches.last_key_value()?;
        last.row.number.is_none().then_some(last.row.root)
    }

    /// A finalised block has the promised batch under this number.
    pub fn committed(&mut self, root: &BatchRoot, number: BatchNumber) -> Step<PayeeEffect> {
        let mut step = Step::default();
        if let Some((id, made)) = self.batches.iter_mut().next_back()
            && made.row.number.is_none()
            && made.row.root == *root
        {
            made.row.number = Some(number);
            step.put(Row::new(Table::Batches, id.to_be_bytes().to_vec(), &made.row));
        }
        step
    }

    /// The chain will never take the promised batch: its receipts go into others. Nothing that was sent of it
    /// may be able to be carried out any more: a receipt that is in two batches keeps back the pay of all
    /// after it.
    pub fn recall(&mut self, root: &BatchRoot) -> Step<PayeeEffect> {
        let mut step = Step::default();
        if self.uncommitted() != Some(*root) {
            return step;
        }
        let Some((id, made)) = self.batches.pop_last() else {
            return step;
        };
        step.put(Row::gone(Table::Batches, id.to_be_bytes().to_vec()));
        for (channel, first, count) in made.row.parts {
            let Some(entry) = self.channels.get_mut(&channel) else {
                continue;
            };
            if entry.account.is_over {
                for nonce in first..first.saturating_add(count) {
                    self.forget_call(channel, nonce, &mut step);
                }
                self.drop_account(channel, &mut step);
            } else {
                entry.account.unbatched = first;
                step.put(Row::new(Table::Accounts, channel_key(channel), &entry.account));
            }
        }
        step
    }

    /// Whether a request is in a batch that is kept.
    pub(super) fn is_batched(&self, channel: ChannelId, nonce: Nonce) -> bool {
        self.batches.values().any(|made| {
            let parts = &made.row.parts;
            let found = parts.binary_search_by_key(&channel, |(of, ..)| *of);
            let part = found.ok().and_then(|place| parts.get(place));
            part.is_some_and(|(_, first, count)| (*first..first.saturating_add(*count)).contains(&nonce))
        })
    }

    /// A finalised block has this batch of ours. Where the journal knows nothing of it, it is an old copy, or
    /// was begun anew: what was signed over the channels below `channels` is not in it, and nothing is taken
    /// or batched over them any more. Nothing is returned where it is known, or was taken into account
    /// before.
    pub fn check_batch(
        &mut self,
        number: BatchNumber,
        root: &BatchRoot,
        channels: ChannelId,
    ) -> Option<Step<PayeeEffect>> {
        let newest = self.on_chain().map(|(number, _)| number).max();
        let is_later = newest.is_none_or(|newest| number > newest) && number >= self.start.batches;
        if !is_later || self.batches.values().any(|made| made.row.root == *root) {
            return None;
        }
        self.start.batches = number.saturating_add(1);
        self.start.first = self.start.first.max(channels);
        let mut step = Step::default();
        step.put(Row::new(Table::Start, Vec::new(), &self.start));
        Some(step)
    }

    /// Batches that finalised blocks have, with their roots.
    pub fn batches(&self) -> impl Iterator<Item = (BatchNumber, BatchRoot)> + '_ {
        self.on_chain().map(|(number, made)| (number, made.row.root))
    }

    /// Batches that finalised blocks have, and what is kept of them.
    pub(super) fn on_chain(&self) -> impl Iterator<Item = (BatchNumber, &Made)> {
        self.batches
            .values()
            .filter_map(|made| Some((made.row.number?, made)))
    }

    fn batch(&self, number: BatchNumber) -> Option<&Made> {
        self.on_chain()
            .find(|(of, _)| *of == number)
            .map(|(_, made)| made)
    }

    /// The receipt of a request, whether a batch has it or not.
    pub fn receipt_of(&self, channel: ChannelId, nonce: Nonce) -> Option<&ChunkStatement<AccountId>> {
        self.row(channel, nonce)?.receipt()
    }

    /// The same in its batch, for whoever misses it.
    pub fn open_receipt(&self, channel: ChannelId, nonce: Nonce) -> Option<Shown> {
        let mut on_chain = self.on_chain();
        let found = on_chain.find_map(|(number, made)| Some((number, made.batch.open(channel, nonce)?)));
        let (number, opening) = found?;
        self.show(number, opening)
    }

    /// The receipt that a point of a batch is in, for whoever drew it.
    pub fn open_point(&self, batch: BatchNumber, point: u128) -> Option<Shown> {
        self.show(batch, self.batch(batch)?.batch.leaf_at(point)?)
    }

    /// All receipts that are kept, with what they answer.
    pub fn receipts(&self) -> impl Iterator<Item = (&ChunkStatement<AccountId>, &Request)> {
        let calls = self.channels.values().flat_map(|entry| entry.calls.values());
        calls.filter_map(|call| Some((call.row.receipt()?, &call.row.request)))
    }

    /// What a channel has in a batch.
    pub fn open_channel(&self, batch: BatchNumber, channel: ChannelId) -> Option<ChannelOpening> {
        self.batch(batch)?.batch.open_channel(channel)
    }

    fn show(&self, batch: BatchNumber, opening: ReceiptOpening) -> Option<Shown> {
        let nonce = opening.of.first.checked_add(opening.place)?;
        let row = self.row(opening.of.channel, nonce)?;
        let statement = row.receipt()?.clone();
        Some(Shown {
            batch,
            batched: Batched { opening, statement },
            request: row.request.clone(),
        })
    }

    /// Nobody can ask for a batch any more: it was redeemed, and its time is over. Nothing changes while it
    /// is the last one: this has to be said again once there is another.
    ///
    /// Its receipts are kept for as long as their channels are there: whoever holds what was signed can
    /// dispute it until then. Only those of nothing go, which nobody can.
    pub fn forget(&mut self, batch: BatchNumber) -> Step<PayeeEffect> {
        let mut step = Step::default();
        let found = self
            .batches
            .iter()
            .find(|(_, made)| made.row.number == Some(batch));
        let Some(id) = found.map(|(id, _)| *id) else {
            return step;
        };
        // The last is kept: the next one's number follows from it.
        if self.batches.last_key_value().is_some_and(|(last, _)| *last == id) {
            return step;
        }
        let Some(made) = self.batches.remove(&id) else {
            return step;
        };
        step.put(Row::gone(Table::Batches, id.to_be_bytes().to_vec()));
        for (channel, first, count) in made.row.parts {
            let is_over = self
                .channels
                .get(&channel)
                .is_some_and(|entry| entry.account.is_over);
            for nonce in first..first.saturating_add(count) {
                if is_over || self.row(channel, nonce).is_some_and(CallRow::is_void) {
                    self.forget_call(channel, nonce, &mut step);
                }
            }
            self.drop_account(channel, &mut step);
        }
        step
    }

    /// A finalised block says that a channel has ended: nothing of it can be paid or disputed any more. What
    /// batches have of it stays until they are forgotten. Nothing changes while a request of it is open: this
    /// has to be said again once that has its receipt.
    pub fn forget_channel(&mut self, channel: ChannelId) -> Step<PayeeEffect> {
        let mut step = Step::default();
        let parts = self.batches.values().flat_map(|made| &made.row.parts);
        let kept: Vec<Range<Nonce>> = parts
            .filter(|(of, ..)| *of == channel)
            .map(|(_, first, count)| *first..first.saturating_add(*count))
            .collect();
        let Some(entry) = self.channels.get_mut(&channel).filter(|entry| entry.open == 0) else {
            return step;
        };
        let is_loose = |nonce: &Nonce| !kept.iter().any(|kept| kept.contains(nonce));
        let loose: Vec<Nonce> = entry.calls.keys().copied().filter(is_loose).collect();
        if entry.account.is_over && loose.is_empty() && !entry.calls.is_empty() {
            return step;
        }
        entry.account.unbatched = entry.account.next;
        entry.account.is_over = true;
        step.put(Row::new(Table::Accounts, channel_key(channel), &entry.account));
        for nonce in loose {
            self.forget_call(channel, nonce, &mut step);
        }
        self.drop_account(channel, &mut step);
        step
    }

    fn drop_account(&mut self, channel: ChannelId, step: &mut Step<PayeeEffect>) {
        let entry = self.channels.get(&channel);
        if entry.is_some_and(|entry| entry.account.is_over && entry.calls.is_empty()) {
            self.channels.remove(&channel);
            step.put(Row::gone(Table::Accounts, channel_key(channel)));
        }
    }

    fn forget_call(&mut self, channel: ChannelId, nonce: Nonce, step: &mut Step<PayeeEffect>) {
        let Some(entry) = self.channels.get_mut(&channel) else {
            return;
        };
        let Some(call) = entry.calls.remove(&nonce) else {
            return;
        };
        entry.voids = entry.voids.saturating_sub(usize::from(call.row.is_void()));
        self.calls = self.calls.saturating_sub(1);
        step.put(Row::gone(Table::Calls, call_key(channel, nonce)));
        step.put(Row::gone(Table::Inputs, call_key(channel, nonce)));
        for chunk in 0..call.row.chunks {
            step.put(Row::gone(Table::Outputs, chunk_key(channel, nonce, chunk)));
        }
    }
}
