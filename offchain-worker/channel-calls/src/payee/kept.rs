//! What is kept of requests once final blocks have their receipts, and when it is forgotten.

use std::ops::Range;

use surety_channels::{BatchNumber, ChannelId, Nonce};

use super::{
    Payee, PayeeEffect,
    batches::requests,
    call::{CallRow, Kept},
};
use crate::{
    Row, Step, Table,
    store::{call_key, channel_key, chunk_key},
};

impl Payee {
    /// A request, out of memory or the journal.
    pub(super) fn row(&self, channel: ChannelId, nonce: Nonce) -> Option<&CallRow> {
        let entry = self.channels.get(&channel)?;
        if let Some(call) = entry.calls.get(&nonce) {
            return Some(&call.row);
        }
        let kept = entry.kept.get(&nonce)?;
        if let Some(row) = kept.row.get() {
            return Some(row);
        }
        let read = self.read.as_ref()?;
        let row = read(Table::Calls, &call_key(channel, nonce))?;
        let row = row.read::<CallRow>().ok()?;
        self.read_lately.borrow_mut().push((channel, nonce));
        Some(kept.row.get_or_init(|| Box::new(row)))
    }

    /// What was read out of the journal is let go of.
    pub(super) fn forget_what_was_read(&mut self) {
        for (channel, nonce) in self.read_lately.take() {
            let entry = self.channels.get_mut(&channel);
            if let Some(kept) = entry.and_then(|entry| entry.kept.get_mut(&nonce)) {
                drop(kept.row.take());
            }
        }
    }

    /// A final block has the receipt of a request, and the journal all of it.
    pub(super) fn compact(&mut self, channel: ChannelId, nonce: Nonce) {
        if self.read.is_none() {
            return;
        }
        let Some(entry) = self.channels.get_mut(&channel) else {
            return;
        };
        if let Some(call) = entry.calls.remove(&nonce) {
            entry.kept.insert(nonce, Kept::from(&call.row));
            self.calls = self.calls.saturating_sub(1);
            self.kept = self.kept.saturating_add(1);
        }
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
        for (channel, nonce) in requests(&made.row.parts) {
            let entry = self.channels.get(&channel);
            if entry.is_some_and(|entry| entry.account.is_over || entry.is_void(nonce)) {
                self.forget_call(channel, nonce, &mut step);
            }
        }
        for (channel, ..) in made.row.parts {
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
        let batched: Vec<Range<Nonce>> = parts
            .filter(|(of, ..)| *of == channel)
            .map(|(_, first, count)| *first..first.saturating_add(*count))
            .collect();
        let Some(entry) = self.channels.get_mut(&channel).filter(|entry| entry.open == 0) else {
            return step;
        };
        let is_loose = |nonce: &Nonce| !batched.iter().any(|part| part.contains(nonce));
        let all = entry.calls.keys().chain(entry.kept.keys());
        let loose: Vec<Nonce> = all.copied().filter(is_loose).collect();
        if entry.account.is_over && loose.is_empty() && !entry.is_empty() {
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

    /// The account of a channel that has ended goes with the last of its requests. It is known as one that
    /// there was: whoever begins it anew would sign something else under the same numbers.
    pub(super) fn drop_account(&mut self, channel: ChannelId, step: &mut Step<PayeeEffect>) {
        let entry = self.channels.get(&channel);
        let is_done = entry.is_some_and(|entry| entry.account.is_over && entry.is_empty());
        if !is_done {
            return;
        }
        self.channels.remove(&channel);
        step.put(Row::gone(Table::Accounts, channel_key(channel)));
        self.gone.insert(channel);
        step.put(Row::new(Table::Gone, channel_key(channel), &()));
        if self.gone.len() > self.config.limits.gone_max
            && let Some(oldest) = self.gone.pop_first()
        {
            step.put(Row::gone(Table::Gone, channel_key(oldest)));
        }
    }

    /// Whether a channel had an account here that was forgotten, or may have had one: once as many are known
    /// as may be, nobody knows of those that are older than all of them. Numbers of channels grow, so that
    /// this refuses none but one that was opened before all of these, and not used until now.
    pub(super) fn was_forgotten(&self, channel: ChannelId) -> bool {
        let is_full = self.gone.len() >= self.config.limits.gone_max;
        let is_older = self.gone.first().is_some_and(|oldest| channel < *oldest);
        (is_full && is_older) || self.gone.contains(&channel)
    }

    pub(super) fn forget_call(&mut self, channel: ChannelId, nonce: Nonce, step: &mut Step<PayeeEffect>) {
        let Some(entry) = self.channels.get_mut(&channel) else {
            return;
        };
        let kept = if let Some(call) = entry.calls.remove(&nonce) {
            self.calls = self.calls.saturating_sub(1);
            Kept::from(&call.row)
        } else if let Some(kept) = entry.kept.remove(&nonce) {
            self.kept = self.kept.saturating_sub(1);
            kept
        } else {
            return;
        };
        entry.voids = entry.voids.saturating_sub(usize::from(kept.is_void));
        step.put(Row::gone(Table::Calls, call_key(channel, nonce)));
        step.put(Row::gone(Table::Inputs, call_key(channel, nonce)));
        for chunk in 0..kept.chunks {
            step.put(Row::gone(Table::Outputs, chunk_key(channel, nonce, chunk)));
        }
    }
}
