//! Receipts on their way to the chain, and what is shown of them.

use std::collections::BTreeMap;

use codec::{Decode, Encode};
use sp_core::H256;
use surety_channels::{
    Batch, BatchEntry, BatchNumber, BatchRoot, Batched, ChannelId, ChannelOpening, ChunkStatement, Nonce,
    RECEIPTS_MAX, ReceiptLeaf, ReceiptOpening, Request,
};

use super::{Payee, PayeeEffect, call::CallRow};
use crate::{AccountId, Row, Step, Table, store::channel_key};

/// Receipts of consecutive requests: channel, the first of them, how many.
type Part = (ChannelId, Nonce, u32);

/// All requests of some parts.
pub(super) fn requests(parts: &[Part]) -> impl Iterator<Item = (ChannelId, Nonce)> {
    let of_part = |(channel, first, count): &Part| {
        let channel = *channel;
        (*first..first.saturating_add(*count)).map(move |nonce| (channel, nonce))
    };
    parts.iter().flat_map(of_part)
}

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

impl BatchRow {
    /// Whether the receipt of a request is in it.
    fn has(&self, channel: ChannelId, nonce: Nonce) -> bool {
        let found = self.parts.binary_search_by_key(&channel, |(of, ..)| *of);
        let part = found.ok().and_then(|place| self.parts.get(place));
        part.is_some_and(|(_, first, count)| (*first..first.saturating_add(*count)).contains(&nonce))
    }
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
    /// while another is not on the chain, or where there is nothing to be paid for, unless they take the
    /// places of others ([`Payee::is_crowded`]).
    pub fn make_batch(&mut self, limits: &BatchLimits) -> Step<PayeeEffect> {
        let price_min = u128::from(!self.is_crowded());
        self.make(limits, price_min, &[])
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
        for (channel, _) in in_turn.filter(|(channel, _)| !self.is_doubted(**channel)) {
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
    fn entries(&self, parts: &[Part]) -> Result<Vec<BatchEntry>, (ChannelId, Nonce)> {
        let entry = |of: (ChannelId, Nonce)| -> Result<BatchEntry, (ChannelId, Nonce)> {
            let receipt = self.row(of.0, of.1).and_then(CallRow::receipt);
            Ok(self.entry(of, receipt.ok_or(of)?))
        };
        requests(parts).map(entry).collect()
    }

    /// What a batch has of a receipt.
    pub(super) fn entry(
        &self,
        (channel, nonce): (ChannelId, Nonce),
        receipt: &ChunkStatement<AccountId>,
    ) -> BatchEntry {
        let genesis = &self.config.genesis;
        BatchEntry {
            channel,
            nonce,
            price: receipt.price,
            leaf: ReceiptLeaf {
                receipt: H256(receipt.message(genesis)),
                salt: self.start.salts.salt(genesis, channel, nonce),
            },
        }
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
        let last = self.batches.iter_mut().next_back();
        let Some((id, made)) = last.filter(|(_, made)| made.row.number.is_none() && made.row.root == *root)
        else {
            return step;
        };
        made.row.number = Some(number);
        step.put(Row::new(Table::Batches, id.to_be_bytes().to_vec(), &made.row));
        let parts = made.row.parts.clone();
        for (channel, nonce) in requests(&parts) {
            self.compact(channel, nonce);
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
        self.batches.values().any(|made| made.row.has(channel, nonce))
    }

    /// Whether the journal knows nothing of a batch of ours that a finalised block has, and that was not
    /// taken into account before: it is an old copy then, or was begun anew.
    pub fn lacks_batch(&self, number: BatchNumber, root: &BatchRoot) -> bool {
        let newest = self.on_chain().map(|(number, _)| number).max();
        let is_later = newest.is_none_or(|newest| number > newest) && number >= self.start.batches;
        is_later && self.batches.values().all(|made| made.row.root != *root)
    }

    /// Such a batch is said to be there, by somebody who may be wrong: nothing is written down. As long as
    /// this is not said again with 0 nothing is taken over the channels below `channels`, and of what was
    /// answered over them nothing is batched but what is demanded.
    pub const fn doubt(&mut self, channels: ChannelId) {
        self.doubted = channels;
    }

    /// Whether something may have been signed over a channel that the journal does not have, by what
    /// [`Payee::doubt`] was told last.
    pub const fn is_doubted(&self, channel: ChannelId) -> bool {
        channel < self.doubted
    }

    /// Such a batch is there: what was signed over the channels below `channels` is not in the journal, and
    /// nothing is taken or batched over them any more, for good.
    pub fn miss_batch(&mut self, number: BatchNumber, channels: ChannelId) -> Step<PayeeEffect> {
        self.start.batches = self.start.batches.max(number.saturating_add(1));
        self.start.first = self.start.first.max(channels);
        let mut step = Step::default();
        step.put(Row::new(Table::Start, Vec::new(), &self.start));
        step
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

    /// Whether the request of this hash may be the one under this number, as far as memory tells: for whoever
    /// does not know it nothing is read out of the journal.
    pub fn may_be_request(&self, channel: ChannelId, nonce: Nonce, request: H256) -> bool {
        let entry = self.channels.get(&channel);
        let kept = entry.and_then(|entry| entry.kept.get(&nonce));
        kept.is_none_or(|kept| kept.may_be(request))
    }

    /// The receipt of a request, whether a batch has it or not.
    pub fn receipt_of(&self, channel: ChannelId, nonce: Nonce) -> Option<&ChunkStatement<AccountId>> {
        self.row(channel, nonce)?.receipt()
    }

    /// The same, with what it answers.
    pub fn answered(
        &self,
        channel: ChannelId,
        nonce: Nonce,
    ) -> Option<(&ChunkStatement<AccountId>, &Request)> {
        let row = self.row(channel, nonce)?;
        Some((row.receipt()?, &row.request))
    }

    /// The same in its batch, for whoever misses it. There may be a thousand batches, and others wait for
    /// whoever looks: of those that do not have it no path is made.
    pub fn open_receipt(&self, channel: ChannelId, nonce: Nonce) -> Option<Shown> {
        let mut on_chain = self.on_chain();
        let (number, made) = on_chain.find(|(_, made)| made.row.has(channel, nonce))?;
        self.show(number, made.batch.open(channel, nonce)?)
    }

    /// The receipt that a point of a batch is in, for whoever drew it.
    pub fn open_point(&self, batch: BatchNumber, point: u128) -> Option<Shown> {
        self.show(batch, self.batch(batch)?.batch.leaf_at(point)?)
    }

    /// What a channel has in a batch.
    pub fn open_channel(&self, batch: BatchNumber, channel: ChannelId) -> Option<ChannelOpening> {
        self.batch(batch)?.batch.open_channel(channel)
    }

    fn show(&self, batch: BatchNumber, opening: ReceiptOpening) -> Option<Shown> {
        let nonce = opening.of.first.checked_add(opening.place)?;
        let (receipt, request) = self.answered(opening.of.channel, nonce)?;
        let statement = receipt.clone();
        Some(Shown {
            batch,
            batched: Batched { opening, statement },
            request: request.clone(),
        })
    }
}
