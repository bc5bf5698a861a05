//! What is said, chunk by chunk, and how an answer ends.

use sp_core::H256;
use surety_channels::{ChannelId, ChunkStatement, End, Ending, Nonce, SignedChunkStatement, Time};
use surety_proofs::content_hash;

use super::{
    ChannelSeen, Payee, PayeeConfig, PayeeEffect,
    call::{CallRow, Live, Stage},
    duties::deadline,
    send,
};
use crate::{
    AccountId, FromPayee, Millis, Row, Step, Table,
    message::Chunk,
    store::{call_key, channel_key, chunk_key},
};

/// Why what was computed is not taken: the caller has made a mistake, or is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// No answer to such a request is being computed: it was ended meanwhile.
    #[error("no answer to this request is being computed: stop computing it")]
    NotRunning,
    /// It is no whole number of units.
    #[error("the bytes are no whole number of units")]
    Ragged,
    /// There is more than may be computed before it is paid for, or than was asked for.
    #[error("only {room} more units may be computed before the next voucher")]
    TooMuch {
        /// How much may be.
        room: u32,
    },
    /// It cannot end like this here.
    #[error("an answer of these units does not end like this")]
    WrongEnd,
}

impl Payee {
    /// How many more units may be computed of an answer by now: a chunk ahead of what is paid for.
    pub fn room(&self, channel: ChannelId, nonce: Nonce) -> u32 {
        let call = self
            .channels
            .get(&channel)
            .and_then(|channel| channel.calls.get(&nonce));
        let parts = call.and_then(|call| Some((&call.row, call.live.as_ref()?)));
        parts.map_or(0, |(row, live)| room(row, live))
    }

    /// More of an answer was computed: whole units. They are said once they are a whole chunk and paid for,
    /// or after [`Payee::speak`]. A stop id comes by [`Payee::ended`] alone: no answer that is ended before
    /// may have it.
    ///
    /// # Errors
    /// [`Misuse`]; nothing changes then.
    pub fn said(
        &mut self,
        channel: ChannelId,
        nonce: Nonce,
        output: &[u8],
        now: Millis,
    ) -> Result<Step<PayeeEffect>, Misuse> {
        self.add(channel, nonce, output)?;
        let mut step = Step::default();
        self.flush(channel, nonce, now, &mut step);
        Ok(step)
    }

    /// The rest of an answer was computed, and how it ends: as [`Payee::said`] and [`Payee::finished`], where
    /// nothing is said in between.
    ///
    /// # Errors
    /// [`Misuse`]: the answer is to be abandoned then, or has ended.
    pub fn ended(
        &mut self,
        channel: ChannelId,
        nonce: Nonce,
        output: &[u8],
        end: Ending,
        now: Millis,
    ) -> Result<Step<PayeeEffect>, Misuse> {
        self.add(channel, nonce, output)?;
        self.finished(channel, nonce, end, now)
    }

    fn add(&mut self, channel: ChannelId, nonce: Nonce, output: &[u8]) -> Result<(), Misuse> {
        let (_, call) = self.call(channel, nonce).ok_or(Misuse::NotRunning)?;
        let live = call.live.as_mut().filter(|live| live.stage == Stage::Running);
        let live = live.ok_or(Misuse::NotRunning)?;
        let units = call.row.form.units_in(output).ok_or(Misuse::Ragged)?;
        let room = room(&call.row, live);
        if units > room {
            return Err(Misuse::TooMuch { room });
        }
        live.pending.extend_from_slice(output);
        Ok(())
    }

    /// What was computed of an answer is said as soon as it is paid for, though it is no whole chunk: a
    /// chunk is what is paid ahead. Vectors are one.
    pub fn speak(&mut self, channel: ChannelId, nonce: Nonce, now: Millis) -> Step<PayeeEffect> {
        let mut step = Step::default();
        let Some((_, call)) = self.call(channel, nonce) else {
            return step;
        };
        if let Some(live) = call.live.as_mut().filter(|_| call.row.form.has_parts()) {
            live.is_due = true;
            self.flush(channel, nonce, now, &mut step);
        }
        step
    }

    /// All of an answer was computed: a stop id, or as much as was asked for.
    ///
    /// # Errors
    /// [`Misuse`]; nothing changes then.
    pub fn finished(
        &mut self,
        channel: ChannelId,
        nonce: Nonce,
        end: Ending,
        now: Millis,
    ) -> Result<Step<PayeeEffect>, Misuse> {
        let (_, call) = self.call(channel, nonce).ok_or(Misuse::NotRunning)?;
        let live = call.live.as_mut().filter(|live| live.stage == Stage::Running);
        let live = live.ok_or(Misuse::NotRunning)?;
        let computed = computed(&call.row, live);
        let is_whole = match end.how {
            End::Stop => computed > 0,
            End::Length => computed == call.row.form.full,
            End::Cancelled | End::Cut => false,
        };
        if !is_whole {
            return Err(Misuse::WrongEnd);
        }
        live.stage = Stage::Finished(end);
        let mut step = Step::default();
        self.flush(channel, nonce, now, &mut step);
        Ok(step)
    }

    /// An answer cannot be computed further: what was said of it is its receipt.
    pub fn abandon(&mut self, channel: ChannelId, nonce: Nonce) -> Step<PayeeEffect> {
        let mut step = Step::default();
        self.end_early(channel, nonce, End::Cut, &mut step);
        step
    }

    /// Nobody hears an answer any more. The first chunk is paid for, prompt and all, and is computed and said
    /// first: whoever hangs up before it pays for it.
    pub fn leave(&mut self, channel: ChannelId, nonce: Nonce) -> Step<PayeeEffect> {
        if let Some((_, call)) = self.call(channel, nonce)
            && call.row.said < call.row.form.chunk
            && let Some(live) = call.live.as_mut().filter(|live| live.stage == Stage::Running)
        {
            live.is_left = true;
            let mut step = Step::default();
            // Since when it waits does not matter: no more is paid.
            self.flush(channel, nonce, 0, &mut step);
            return step;
        }
        self.abandon(channel, nonce)
    }

    /// The root of the trace of what was said, as [`PayeeEffect::Trace`] asks for.
    pub fn traced(&mut self, channel: ChannelId, nonce: Nonce, trace_root: H256) -> Step<PayeeEffect> {
        let mut step = Step::default();
        let config = self.config.clone();
        let Some((_, call)) = self.call(channel, nonce) else {
            return step;
        };
        let (Some(live), Some(last)) = (&call.live, &call.row.statement) else {
            return step;
        };
        if let Stage::Tracing(how) = live.stage {
            let end = Some(Ending { how, trace_root });
            let statement = ChunkStatement {
                end,
                ..last.statement.clone()
            };
            let signed = sign(&config, statement);
            self.receipt(channel, nonce, signed, &mut step);
        }
        step
    }

    /// Something was signed of an answer that is wrong: no receipt of it would be right, and nothing from it
    /// on is ever paid. Nothing more is taken over its channel, and what is being answered from there on ends
    /// without a receipt. Nothing of that is written down: the next start asks for the trace again.
    pub fn contradicted(&mut self, channel: ChannelId, nonce: Nonce) -> Step<PayeeEffect> {
        let mut step = Step::default();
        let Some(entry) = self.channels.get_mut(&channel) else {
            return step;
        };
        let call = entry.calls.get(&nonce);
        if call.is_none_or(|call| call.row.receipt().is_some()) {
            return step;
        }
        let first = entry.unpaid_from.map_or(nonce, |first| first.min(nonce));
        entry.unpaid_from = Some(first);
        let from_there = self.open.range((channel, first)..=(channel, Nonce::MAX));
        let open: Vec<Nonce> = from_there.map(|(_, nonce)| *nonce).collect();
        for nonce in open {
            step.then(PayeeEffect::Stop { channel, nonce });
            self.close(channel, nonce);
        }
        step
    }

    /// Time passes: an answer whose next voucher has not come for long is cut, and one that takes too long in
    /// all.
    pub fn tick(&mut self, now: Millis) -> Step<PayeeEffect> {
        self.forget_what_was_read();
        let mut step = Step::default();
        let limits = self.config.limits;
        let open: Vec<_> = self.open.iter().copied().collect();
        for (channel, nonce) in open {
            let call = self.call(channel, nonce);
            let Some(live) = call.and_then(|(_, call)| call.live.as_mut()) else {
                continue;
            };
            let is_over = |since: Millis, most: Millis| now.saturating_sub(since) >= most;
            let takes_long = is_over(*live.since.get_or_insert(now), limits.answer_max);
            let unpaid = live.unpaid_since;
            let is_unpaid = unpaid.is_some_and(|since| is_over(since, limits.patience));
            if let Some(entry) = self.channels.get_mut(&channel).filter(|_| is_unpaid) {
                entry.forgive(nonce);
            }
            if takes_long || is_unpaid {
                self.end_early(channel, nonce, End::Cut, &mut step);
            }
        }
        step
    }

    /// Cuts the answers of a channel whose end is near, so that their receipts, and all after them, are
    /// batched in time: `notice` before the payee's last time.
    pub fn end_in_time(&mut self, seen: &ChannelSeen, now: Time, notice: Time) -> Step<PayeeEffect> {
        let mut step = Step::default();
        let channel = seen.terms.channel;
        let deadline = self
            .channels
            .get(&channel)
            .and_then(|entry| deadline(entry, seen));
        if deadline.is_some_and(|deadline| now.saturating_add(notice) >= deadline) {
            let of_channel = self.open.range((channel, 0)..=(channel, Nonce::MAX));
            let open: Vec<Nonce> = of_channel.map(|(_, nonce)| *nonce).collect();
            for nonce in open {
                self.end_early(channel, nonce, End::Cut, &mut step);
            }
        }
        step
    }

    /// Says what is a whole chunk, or due, or the rest, if it is paid for.
    pub(super) fn flush(
        &mut self,
        channel: ChannelId,
        nonce: Nonce,
        now: Millis,
        step: &mut Step<PayeeEffect>,
    ) {
        let config = self.config.clone();
        let Some((account, call)) = self.call(channel, nonce) else {
            return;
        };
        let row = &mut call.row;
        let Some(live) = &mut call.live else { return };
        let Some((paid, end)) = to_say(row, live, account.left()) else {
            return;
        };
        let said = row.said.saturating_add(paid);
        let price = row.form.price(said);
        let more = price.saturating_sub(row.form.price(row.said));
        if account.check_serve(more).is_err() || (paid == 0 && !live.pending.is_empty()) {
            live.unpaid_since.get_or_insert(now);
            return;
        }
        let mut now_said = live.pending.clone();
        let rest = now_said.split_off(row.form.bytes_of(paid).min(now_said.len()));
        let Ok(bytes) = Chunk::try_from(now_said) else {
            return;
        };
        account.served = account.served.saturating_add(more);
        live.is_due = !rest.is_empty();
        live.unpaid_since = live
            .is_due
            .then(|| live.unpaid_since.unwrap_or_default().max(now));
        let left = live.is_left.then(|| row.early_end());
        live.pending = rest;
        row.form.say(&mut live.said, &bytes);
        let statement = ChunkStatement {
            channel,
            payee: config.stash.clone(),
            nonce,
            request: row.hash,
            bytes: live.said.bytes(),
            output: live.said.hash(),
            units: row.form.units(said),
            price,
            end,
        };
        let signed = sign(&config, statement);
        if paid > 0 {
            step.put(Row {
                table: Table::Outputs,
                key: chunk_key(channel, nonce, row.chunks),
                value: Some(bytes.to_vec()),
            });
            row.chunks = row.chunks.saturating_add(1);
        }
        row.said = said;
        row.statement = Some(signed.clone());
        step.put(Row::new(Table::Accounts, channel_key(channel), account));
        step.put(Row::new(Table::Calls, call_key(channel, nonce), row));
        let statement = signed;
        send(step, channel, nonce, FromPayee::Chunk { bytes, statement });
        if end.is_some() {
            self.close(channel, nonce);
        } else if let Some(how) = left {
            self.end_early(channel, nonce, how, step);
        }
    }

    /// Says no more of an answer. Where nothing was said that is a receipt of nothing.
    pub(super) fn end_early(
        &mut self,
        channel: ChannelId,
        nonce: Nonce,
        how: End,
        step: &mut Step<PayeeEffect>,
    ) {
        let config = self.config.clone();
        let Some((_, call)) = self.call(channel, nonce) else {
            return;
        };
        let Some(live) = call.live.as_mut() else { return };
        if matches!(live.stage, Stage::Tracing(_)) {
            return;
        }
        live.pending = Vec::new();
        live.unpaid_since = None;
        live.stage = Stage::Tracing(how);
        if call.row.statement.is_some() {
            let said = call.row.said;
            step.then(PayeeEffect::Trace { channel, nonce, said });
            return;
        }
        let nothing = ChunkStatement {
            channel,
            payee: config.stash.clone(),
            nonce,
            request: call.row.hash,
            bytes: 0,
            output: content_hash(&[]),
            units: 0,
            price: 0,
            end: Some(Ending {
                how,
                trace_root: H256::zero(),
            }),
        };
        let signed = sign(&config, nothing);
        step.then(PayeeEffect::Stop { channel, nonce });
        self.receipt(channel, nonce, signed, step);
        // Nobody asks what was done with it.
        step.put(Row::gone(Table::Inputs, call_key(channel, nonce)));
        if let Some(entry) = self.channels.get_mut(&channel) {
            entry.voids = entry.voids.saturating_add(1);
        }
    }

    fn receipt(
        &mut self,
        channel: ChannelId,
        nonce: Nonce,
        signed: SignedChunkStatement<AccountId>,
        step: &mut Step<PayeeEffect>,
    ) {
        let Some((_, call)) = self.call(channel, nonce) else {
            return;
        };
        call.row.statement = Some(signed.clone());
        step.put(Row::new(Table::Calls, call_key(channel, nonce), &call.row));
        let message = FromPayee::Chunk {
            bytes: Chunk::default(),
            statement: signed,
        };
        send(step, channel, nonce, message);
        self.close(channel, nonce);
    }

    fn close(&mut self, channel: ChannelId, nonce: Nonce) {
        self.open.remove(&(channel, nonce));
        let Some(entry) = self.channels.get_mut(&channel) else {
            return;
        };
        let live = entry.calls.get_mut(&nonce).and_then(|call| call.live.take());
        if live.is_some() {
            entry.open = entry.open.saturating_sub(1);
        }
    }
}

fn computed(row: &CallRow, live: &Live) -> u32 {
    let pending = row.form.units_in(&live.pending).unwrap_or(0);
    row.said.saturating_add(pending)
}

/// Units that are said now, where so many plancks are left for them, and how the answer ends with them.
/// Nothing where it waits for more of it.
fn to_say(row: &CallRow, live: &Live, left: u128) -> Option<(u32, Option<Ending>)> {
    let pending = row.form.units_in(&live.pending).unwrap_or(0);
    // Whoever has left has paid for the first chunk. Of a text that is cancelled a word is enough.
    let enough = match row.cancel {
        Some(_) if row.form.has_parts() => 1,
        _ => row.form.chunk,
    };
    let is_due = match live.is_left {
        true => row.said.saturating_add(pending) >= enough,
        false => live.is_due,
    };
    let end = match live.stage {
        // What is the last of it waits for how it ends.
        Stage::Running if pending == 0 || computed(row, live) >= row.form.full => return None,
        Stage::Running if pending < row.form.chunk && !is_due => return None,
        Stage::Running => None,
        Stage::Finished(end) => Some(end),
        Stage::Tracing(_) => return None,
    };
    // Of what is due, or the rest, that which is paid for: what is left, and the end, wait for a voucher.
    let paid = match (is_due || end.is_some()) && row.form.has_parts() {
        true => row.form.affordable(row.said, left).min(pending),
        false => pending,
    };
    Some((paid, end.filter(|_| paid == pending)))
}

fn room(row: &CallRow, live: &Live) -> u32 {
    if live.stage != Stage::Running {
        return 0;
    }
    let ahead = row.said.saturating_add(row.form.chunk).min(row.form.full);
    ahead.saturating_sub(computed(row, live))
}

fn sign(config: &PayeeConfig, statement: ChunkStatement<AccountId>) -> SignedChunkStatement<AccountId> {
    let signature = (config.sign)(&statement.message(&config.genesis));
    SignedChunkStatement {
        statement,
        agent: config.agent.clone(),
        signature,
    }
}
