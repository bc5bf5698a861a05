//! What a payer says: it asks, it pays, it has enough.

use surety_channels::{ChannelId, End, Nonce, SignedCancel, SignedVoucher, Time, VoucherRefusal};
use surety_types::model::Operation;

use super::{
    Channel, ChannelSeen, Payee, PayeeEffect,
    account::Account,
    call::{Call, CallRow, Live},
    send,
};
use crate::{
    AccountId, Ask, FromPayee, Millis, Refusal, Row, Step, Table,
    answer::Form,
    store::{call_key, channel_key},
};

impl Payee {
    /// Takes a request, or refuses it. `seen` is what the newest finalised block says of the channel: nothing
    /// also where it is older than the payee's last conviction, and pays nothing any more. `at` is the latest
    /// time at which its voucher might have to be redeemed.
    pub fn ask(&mut self, ask: Ask, seen: Option<&ChannelSeen>, at: Time) -> Step<PayeeEffect> {
        let (channel, nonce) = (ask.voucher.voucher.channel, ask.voucher.voucher.nonce);
        let taken = self.try_ask(ask, seen, at);
        taken.unwrap_or_else(|why| refused(channel, nonce, why))
    }

    /// The same, for whoever tells the asker itself: another answer may be under way under this number, over
    /// another connection.
    ///
    /// # Errors
    /// [`Refusal`]; nothing changes then.
    pub fn try_ask(
        &mut self,
        ask: Ask,
        seen: Option<&ChannelSeen>,
        at: Time,
    ) -> Result<Step<PayeeEffect>, Refusal> {
        let (account, form) = self.check_ask(&ask, seen, at)?;
        Ok(self.take(ask, account, form))
    }

    /// Whether [`Self::try_ask`] would take it.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn would_take(&self, ask: &Ask, seen: Option<&ChannelSeen>, at: Time) -> Result<(), Refusal> {
        self.check_ask(ask, seen, at).map(drop)
    }

    /// A channel's account, where what is answered over it next can be paid.
    fn account_of(&self, seen: &ChannelSeen) -> Result<Account, Refusal> {
        if seen.terms.payee != self.config.stash {
            return Err(Refusal::Voucher(VoucherRefusal::OtherPayee));
        }
        if seen.purse.closing.is_some() {
            return Err(Refusal::Closing);
        }
        let channel = seen.terms.channel;
        if channel < self.start.first {
            return Err(Refusal::Forgotten);
        }
        // It may turn out otherwise: nobody has to open another channel for that.
        if self.is_doubted(channel) {
            return Err(Refusal::Busy);
        }
        let known = self.channels.get(&channel);
        // What is left of it goes with the batches that have it.
        if known.is_some_and(|channel| channel.account.is_over) {
            return Err(Refusal::Forgotten);
        }
        if known.is_some_and(|channel| channel.unpaid_from.is_some()) {
            return Err(Refusal::Closing);
        }
        let mut account = match known {
            Some(channel) => channel.account.clone(),
            None if self.was_forgotten(channel) => return Err(Refusal::Forgotten),
            None if self.channels.len() >= self.config.limits.channels_max => return Err(Refusal::Busy),
            None => Account::new(seen.terms.clone()),
        };
        // The chain has receipts that this journal has not: it is an old copy.
        let next = seen.purse.next;
        if account.unbatched < next {
            return Err(Refusal::Forgotten);
        }
        // What comes next is in a batch that nobody has any more: nothing after it is ever paid.
        if next < account.unbatched && !self.is_batched(channel, next) {
            return Err(Refusal::Forgotten);
        }
        account.terms = seen.terms.clone();
        Ok(account)
    }

    /// The channel's account as it is once the request is taken, and the form of its answer.
    fn check_ask(&self, ask: &Ask, seen: Option<&ChannelSeen>, at: Time) -> Result<(Account, Form), Refusal> {
        let voucher = &ask.voucher.voucher;
        let seen = seen.filter(|seen| seen.terms.channel == voucher.channel);
        let seen = seen.ok_or(Refusal::NoChannel)?;
        let mut account = self.account_of(seen)?;
        let known = self.channels.get(&voucher.channel);
        let open = known.map_or(0, |channel| channel.open);
        let offer = self.offer(&ask.request).ok_or(Refusal::NotOffered)?;
        // What costs nothing is in no batch that is worth its fee.
        let unit_price = offer.unit_price.max(1);
        if ask.request.unit_price < unit_price {
            return Err(Refusal::Price { unit_price });
        }
        let chunk_units = match ask.request.operation {
            Operation::Embed => ask.request.units_max.max(1),
            Operation::Generate => ask.chunk_units,
        };
        if !offer.chunk_units.contains(&chunk_units) {
            let (least, most) = (*offer.chunk_units.start(), *offer.chunk_units.end());
            return Err(Refusal::ChunkUnits { least, most });
        }
        account.check_ask(voucher, at, open).map_err(Refusal::Voucher)?;
        if voucher.request != ask.request.hash() {
            return Err(Refusal::Voucher(VoucherRefusal::OtherRequest));
        }
        let limits = &self.config.limits;
        let voids = known.map_or(0, |channel| channel.voids);
        let whole = known.map_or(0, |channel| channel.calls.len());
        let is_much = voids >= limits.voids_max || whole >= (limits.calls_max / 4).max(1);
        if !self.has_place() || is_much {
            return Err(Refusal::Busy);
        }
        // Before the input is hashed: only a payer can have that done.
        if !self.is_signed(&ask.voucher, &account) {
            return Err(Refusal::BadSignature);
        }
        let form =
            Form::of(&ask.request, &ask.input, &offer.facts, ask.chunk_units).map_err(Refusal::Input)?;
        let price_max = self.receipt_price_max;
        if form.price(form.full) > price_max {
            return Err(Refusal::TooDear { price_max });
        }
        let first = form.paid_ahead(0);
        let sum = account.served.saturating_add(first);
        if sum > voucher.sum {
            return Err(Refusal::Unpaid { sum });
        }
        // No payer can cover what its other answers come to before they are heard: that has to wait for them.
        let others = known.filter(|entry| !entry.forgives(first, limits));
        if sum.saturating_add(others.map_or(0, Channel::unsaid)) > voucher.sum {
            return Err(Refusal::Busy);
        }
        account.next = account.next.saturating_add(1);
        account.voucher = Some(ask.voucher.clone());
        Ok((account, form))
    }

    fn take(&mut self, ask: Ask, account: Account, form: Form) -> Step<PayeeEffect> {
        let Ask {
            request,
            input,
            voucher,
            ..
        } = ask;
        let (channel, nonce) = (voucher.voucher.channel, voucher.voucher.nonce);
        let row = CallRow {
            hash: voucher.voucher.request,
            request: request.clone(),
            form,
            said: 0,
            chunks: 0,
            statement: None,
            cancel: None,
        };
        let mut step = Step::default();
        step.put(Row::new(Table::Accounts, channel_key(channel), &account));
        step.put(Row::new(Table::Calls, call_key(channel, nonce), &row));
        step.put(Row {
            table: Table::Inputs,
            key: call_key(channel, nonce),
            value: Some(input.to_vec()),
        });
        send(&mut step, channel, nonce, FromPayee::Taken { nonce });
        step.then(PayeeEffect::Compute {
            channel,
            nonce,
            request,
            input: input.into_inner(),
        });
        let live = Some(Live::new());
        let known = self.channels.entry(channel);
        let entry = known.or_insert_with(|| Channel::new(account.clone()));
        entry.account = account;
        entry.calls.insert(nonce, Call { row, live });
        entry.open = entry.open.saturating_add(1);
        self.open.insert((channel, nonce));
        self.calls = self.calls.saturating_add(1);
        // What waits for a voucher has done so since before: the time of this one does not matter.
        self.flush_all(channel, 0, &mut step);
        step
    }

    /// Says what is paid for of all answers over a channel.
    fn flush_all(&mut self, channel: ChannelId, now: Millis, step: &mut Step<PayeeEffect>) {
        let of_channel = self.open.range((channel, 0)..=(channel, Nonce::MAX));
        let open: Vec<Nonce> = of_channel.map(|(_, nonce)| *nonce).collect();
        for nonce in open {
            self.flush(channel, nonce, now, step);
        }
    }

    /// Takes a voucher for an answer that is being made. What it pays for is said at once. One that another
    /// has overtaken, or that comes after the end, changes nothing.
    ///
    /// It is written down with what it pays for, and not before: a voucher that is lost was not earned.
    pub fn pay(&mut self, signed: SignedVoucher<AccountId>, at: Time, now: Millis) -> Step<PayeeEffect> {
        let (channel, nonce) = (signed.voucher.channel, signed.voucher.nonce);
        match self.check_pay(&signed, at) {
            Ok(()) => {}
            Err(Refusal::NoCall | Refusal::Voucher(VoucherRefusal::NotLarger { .. })) => {
                return Step::default();
            }
            Err(why) => return refused(channel, nonce, why),
        }
        let mut step = Step::default();
        let Some(entry) = self.channels.get_mut(&channel) else {
            return step;
        };
        entry.account.voucher = Some(signed);
        self.flush_all(channel, now, &mut step);
        step
    }

    fn check_pay(&self, signed: &SignedVoucher<AccountId>, at: Time) -> Result<(), Refusal> {
        let voucher = &signed.voucher;
        let channel = self.channels.get(&voucher.channel).ok_or(Refusal::NoCall)?;
        let call = channel
            .calls
            .get(&voucher.nonce)
            .filter(|call| call.live.is_some());
        let call = call.ok_or(Refusal::NoCall)?;
        let checked = channel.account.check_pay(voucher, at);
        checked.map_err(Refusal::Voucher)?;
        if call.row.hash != voucher.request {
            return Err(Refusal::Voucher(VoucherRefusal::OtherRequest));
        }
        if !self.is_signed(signed, &channel.account) {
            return Err(Refusal::BadSignature);
        }
        Ok(())
    }

    fn is_signed(&self, signed: &SignedVoucher<AccountId>, account: &Account) -> bool {
        let verify = &*self.config.verify;
        signed.is_signed(&self.config.genesis, &account.terms.key, verify)
    }

    /// Ends an answer that its payer wants no more of. One of which nothing was said costs nothing, but for
    /// whoever has much computed for nothing ([`super::PayeeLimits::free_chunks`]): its voucher has paid for
    /// the first chunk, and the first words of that, or all vectors, are said before it ends. Whether an
    /// answer that waits for its turn has begun is not known here: it counts as one that has.
    pub fn cancel(&mut self, signed: SignedCancel<AccountId>) -> Step<PayeeEffect> {
        let (channel, nonce) = (signed.cancel.channel, signed.cancel.nonce);
        let config = self.config.clone();
        let mut step = Step::default();
        let known = self.channels.get_mut(&channel);
        let Some(entry) = known.filter(|entry| entry.knows(nonce)) else {
            return refused(channel, nonce, Refusal::NoCall);
        };
        let open = entry.calls.get_mut(&nonce);
        let Some(call) = open.filter(|call| call.live.is_some() && call.row.cancel.is_none()) else {
            return step;
        };
        let is_of_it = signed.cancel.request == call.row.hash && signed.cancel.payee == config.stash;
        if !is_of_it || !signed.is_signed(&config.genesis, &entry.account.terms.key, &*config.verify) {
            return refused(channel, nonce, Refusal::BadSignature);
        }
        call.row.cancel = Some(signed);
        step.put(Row::new(Table::Calls, call_key(channel, nonce), &call.row));
        let (says_nothing, first) = (call.row.statement.is_none(), call.row.form.paid_ahead(0));
        if says_nothing && !entry.forgives(first, &config.limits) {
            let open = entry.calls.get_mut(&nonce);
            if let Some(live) = open.and_then(|call| call.live.as_mut()) {
                live.is_left = true;
            }
            // Since when it waits does not matter: no more is paid.
            self.flush(channel, nonce, 0, &mut step);
            return step;
        }
        entry.forgive(nonce);
        self.end_early(channel, nonce, End::Cancelled, &mut step);
        step
    }
}

fn refused(channel: ChannelId, nonce: Nonce, why: Refusal) -> Step<PayeeEffect> {
    let mut step = Step::default();
    send(&mut step, channel, nonce, FromPayee::Refused { nonce, why });
    step
}
