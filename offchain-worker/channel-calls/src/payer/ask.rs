//! Asking, and having enough.

use surety_channels::{Nonce, OPEN_REQUESTS_MAX, VoucherRefusal};

use super::{Broken, Call, Held, HeldState, Live, Payer, PayerEffect, Wanted, drop_rows, send};
use crate::{
    Ask, Refusal, Row, Step, Table, ToPayee, Unfit,
    answer::{Form, Said},
    message::Input,
    store::call_key,
};

/// Why nothing is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Another request was asked and not answered yet.
    #[error("another request is being asked over this channel: wait until it is taken")]
    Waiting,
    /// As many requests are open as may be.
    #[error("too many requests of the channel are open: wait for one to end")]
    TooManyOpen,
    /// As many statements are kept as may be.
    #[error("too many receipts of the channel are in no final batch: wait, or open another channel")]
    TooManyHeld,
    /// The channel has no money left.
    #[error("the channel lacks {missing} plancks: top it up")]
    Exhausted {
        /// How much it lacks.
        missing: u128,
    },
    /// The payee was found to have lied.
    #[error("the provider has signed something wrong: ask another one, and report it")]
    Distrusted,
    /// What is wanted is no request.
    #[error("this cannot be asked: {0}")]
    Unfit(#[from] Unfit),
}

impl Payer {
    /// Asks for something, and pays for its first chunk. Returns the number of the request.
    ///
    /// # Errors
    /// [`AskError`]; nothing changes then.
    pub fn ask(&mut self, wanted: Wanted) -> Result<(Nonce, Step<PayerEffect>), AskError> {
        if self.wallet.is_distrusted {
            return Err(AskError::Distrusted);
        }
        if self.asking.is_some() {
            return Err(AskError::Waiting);
        }
        if self.open.len() >= OPEN_REQUESTS_MAX as usize {
            return Err(AskError::TooManyOpen);
        }
        if self.calls.len() >= self.config.held_max {
            return Err(AskError::TooManyHeld);
        }
        let form = Form::of(&wanted.request, &wanted.input, &wanted.facts, wanted.chunk_units)?;
        let input = Input::try_from(wanted.input).map_err(|_| Unfit::TooLarge)?;
        let allowance = form.paid_ahead(0);
        let sum = self.spent().saturating_add(allowance).max(self.wallet.signed);
        if sum > self.terms.deposit {
            let missing = sum.saturating_sub(self.terms.deposit);
            return Err(AskError::Exhausted { missing });
        }
        let nonce = self.wallet.next;
        self.wallet.next = nonce.checked_add(1).ok_or(AskError::TooManyHeld)?;
        self.wallet.signed = sum;
        let row = Held {
            request: wanted.request.clone(),
            form,
            allowance,
            said: 0,
            statement: None,
            state: HeldState::Open,
            at: self.now,
        };
        let live = Live {
            carried: sum,
            is_paused: false,
            stop_ids: wanted.facts.stop_ids,
            said: Said::default(),
            output: Vec::new(),
            cancelled_at: None,
        };
        let mut step = Step::default();
        step.put(self.wallet_row());
        step.put(self.held_row(nonce, &row));
        if let Some(call) = wanted.call {
            let key = call_key(self.terms.channel, nonce);
            step.put(Row::new(Table::Asked, key, &call));
        }
        let ask = Ask {
            voucher: self.voucher(nonce, wanted.request.hash(), sum),
            request: wanted.request,
            chunk_units: wanted.chunk_units,
            input,
        };
        send(&mut step, nonce, ToPayee::Ask(ask));
        let live = Some(live);
        self.calls.insert(nonce, Call { row, live });
        self.open.insert(nonce);
        (self.asking, self.missed) = (Some(nonce), 0);
        Ok((nonce, step))
    }

    /// Asks for the same again, whose payee has `missed` so much when it was asked before: the sum that it
    /// has named. Enough time has passed for all to be heard that was on its way then: what it still misses
    /// of that is written off.
    ///
    /// # Errors
    /// [`AskError`]; nothing changes then.
    pub fn ask_again(
        &mut self,
        wanted: Wanted,
        missed: u128,
    ) -> Result<(Nonce, Step<PayerEffect>), AskError> {
        let asked = self.ask(wanted)?;
        self.missed = missed;
        Ok(asked)
    }

    /// Wants no more of an answer. Its receipt is still to come; what is said until then is paid.
    pub fn cancel(&mut self, nonce: Nonce) -> Step<PayerEffect> {
        let mut step = Step::default();
        let Some(call) = self.calls.get_mut(&nonce) else {
            return step;
        };
        let Some(live) = call.live.as_mut().filter(|live| live.cancelled_at.is_none()) else {
            return step;
        };
        live.cancelled_at = Some(call.row.said);
        let request = call.row.request.hash();
        let cancel = self.signed_cancel(nonce, request);
        send(&mut step, nonce, ToPayee::Cancel(cancel));
        self.carry_on(&mut step);
        step
    }

    /// Whoever reads an answer is behind. What is said of it counts, as the payee may take what was signed
    /// for others; no more is paid ahead, so that it makes no more for long.
    pub fn pause(&mut self, nonce: Nonce) {
        if let Some(live) = self.calls.get_mut(&nonce).and_then(|call| call.live.as_mut()) {
            live.is_paused = true;
        }
    }

    /// Whoever reads it has caught up.
    pub fn resume(&mut self, nonce: Nonce) -> Step<PayerEffect> {
        let mut step = Step::default();
        let Some(call) = self.calls.get_mut(&nonce) else {
            return step;
        };
        let (row, Some(live)) = (&mut call.row, call.live.as_mut()) else {
            return step;
        };
        let is_due = live.is_paused && live.cancelled_at.is_none() && row.said > 0;
        live.is_paused = false;
        if !is_due {
            return step;
        }
        let before = row.allowance;
        row.allowance = before.max(row.form.paid_ahead(row.said));
        let message = self.pay_ahead(nonce, before);
        step.put(self.wallet_row());
        if let Some(call) = self.calls.get(&nonce) {
            step.put(self.held_row(nonce, &call.row));
        }
        if let Some(message) = message {
            send(&mut step, nonce, message);
        }
        step
    }

    /// Sends the voucher of an answer again that was refused, when the payee may take it by now.
    pub fn pay_again(&mut self, nonce: Nonce) -> Step<PayerEffect> {
        let mut step = Step::default();
        let is_answered = self.answered().any(|answered| answered == nonce);
        if is_answered
            && !self.wallet.is_distrusted
            && let Some(message) = self.carry(nonce)
        {
            send(&mut step, nonce, message);
        }
        step
    }

    /// Nothing more comes of an answer: its connection is gone, or it takes too long.
    pub fn lost(&mut self, nonce: Nonce) -> Step<PayerEffect> {
        self.give_up(nonce, Broken::Lost, None)
    }

    /// What was signed for it counts as spent.
    pub(super) fn give_up(
        &mut self,
        nonce: Nonce,
        why: Broken,
        evidence: Option<super::Evidence>,
    ) -> Step<PayerEffect> {
        let mut step = Step::default();
        let spent = self.spent();
        if !self.open.remove(&nonce) {
            return step;
        }
        let was_answered = self.asking.take_if(|asked| *asked == nonce).is_none();
        if !was_answered {
            // It may have been taken.
            self.granted = self.wallet.signed;
        }
        let has_others = was_answered && evidence.is_none() && self.answered().any(|other| other != nonce);
        let room = self.terms.deposit.saturating_sub(spent);
        let Some(call) = self.calls.get_mut(&nonce) else {
            return step;
        };
        if has_others && call.live.as_ref().is_some_and(|live| live.cancelled_at.is_none()) {
            // What was on its way the payee may have said out of what was signed for others.
            let one_more = call.row.said.saturating_add(call.row.form.chunk);
            let before = call.row.allowance;
            let most = before.saturating_add(room);
            call.row.allowance = before.max(call.row.form.paid_ahead(one_more).min(most));
        }
        call.live = None;
        call.row.state = HeldState::Lost;
        call.row.at = self.now;
        let (row, spent) = (call.row.clone(), call.row.spent());
        self.wallet.settled = self.wallet.settled.saturating_add(spent);
        self.wallet.is_distrusted |= evidence.is_some();
        step.put(self.wallet_row());
        step.put(self.held_row(nonce, &row));
        if let Some(evidence) = &evidence {
            let key = call_key(self.terms.channel, nonce);
            step.put(Row::new(Table::Evidence, key, evidence));
        }
        step.then(PayerEffect::Broken {
            nonce,
            why,
            spent,
            evidence,
        });
        self.carry_on(&mut step);
        step
    }

    /// A refusal. Of a request that was not taken nothing is left but the sum that was signed. An answer
    /// whose voucher is not taken waits for another one.
    pub(super) fn refused(&mut self, nonce: Nonce, why: Refusal) -> Step<PayerEffect> {
        let mut step = Step::default();
        let (mut is_worth_retry, mut written_off) = (false, 0);
        let was_asked = self.asking == Some(nonce);
        if was_asked {
            self.asking = None;
            self.open.remove(&nonce);
            let Some(call) = self.calls.remove(&nonce) else {
                return step;
            };
            drop_rows(self.terms.channel, nonce, &mut step);
            self.wallet.next = nonce;
            let asked_with = call.live.as_ref().map_or(0, |live| live.carried);
            is_worth_retry = match why {
                // It is asked for this very number, or was paid as much.
                Refusal::Voucher(VoucherRefusal::OtherNonce { next }) if next == nonce => false,
                Refusal::Unpaid { sum } | Refusal::Voucher(VoucherRefusal::NotLarger { last: sum })
                    if sum <= asked_with =>
                {
                    false
                }
                Refusal::Voucher(VoucherRefusal::OtherNonce { next }) => self.renumber(next, &mut step),
                Refusal::Unpaid { sum } => {
                    let waits = self.is_on_its_way(sum, call.row.allowance);
                    if !waits {
                        written_off = self.write_off(sum, call.row.allowance);
                    }
                    waits || written_off > 0
                }
                // A voucher for another request has overtaken it.
                Refusal::Voucher(VoucherRefusal::NotLarger { last }) => last <= self.wallet.signed,
                _ => false,
            };
            step.put(self.wallet_row());
        } else if let Some(live) = self.calls.get_mut(&nonce).and_then(|call| call.live.as_mut()) {
            live.carried = 0;
            is_worth_retry = match why {
                // The payee has not seen the block with more money, or more time, that this end has.
                Refusal::Voucher(VoucherRefusal::AboveDeposit { deposit }) => deposit < self.terms.deposit,
                Refusal::Voucher(VoucherRefusal::OutlivesChannel | VoucherRefusal::Expired) => true,
                _ => false,
            };
        }
        step.then(PayerEffect::Refused {
            nonce,
            why,
            is_worth_retry,
            written_off,
        });
        // What was refused of an answer would be refused again at once.
        if was_asked {
            self.carry_on(&mut step);
        }
        step
    }

    /// The payee counts from `next` on. Requests from there on that are lost were never taken then, and cost
    /// nothing; those that it has said something of it cannot have forgotten.
    fn renumber(&mut self, next: Nonce, step: &mut Step<PayerEffect>) -> bool {
        let untaken = |call: &Call| call.row.state == HeldState::Lost && call.row.statement.is_none();
        if !self.calls.range(next..).all(|(_, call)| untaken(call)) {
            return false;
        }
        for (nonce, call) in self.calls.split_off(&next) {
            self.wallet.settled = self.wallet.settled.saturating_sub(call.row.allowance);
            drop_rows(self.terms.channel, nonce, step);
        }
        self.wallet.next = next;
        true
    }

    /// The payee may have said something that was not heard yet, out of what answers that have ended sooner
    /// left over: a refusal overtakes what comes over other connections. Then nothing is written off, which
    /// would count it twice. What it has missed before was heard by now, where that was on its way.
    fn is_on_its_way(&self, sum: u128, allowance: u128) -> bool {
        let known = self.spent().saturating_add(allowance);
        let may_be = sum <= self.granted.saturating_add(allowance);
        may_be && (sum <= known || (self.missed <= known && !self.open.is_empty()))
    }

    /// The payee has served more than is known here: it may have, as far as it was paid before it was asked.
    /// Returns how much that is.
    fn write_off(&mut self, sum: u128, allowance: u128) -> u128 {
        let known = self.spent().saturating_add(allowance);
        if sum > self.granted.saturating_add(allowance) {
            return 0;
        }
        let more = sum.saturating_sub(known);
        self.wallet.settled = self.wallet.settled.saturating_add(more);
        more
    }
}
