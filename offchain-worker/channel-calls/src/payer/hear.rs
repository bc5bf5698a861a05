//! What the payee says.

use surety_channels::{Equivocation, Nonce, SignedChunkStatement, incompatible};

use super::{Broken, Evidence, Held, HeldState, Live, Payer, PayerEffect, send};
use crate::{AccountId, FromPayee, Row, Step, Table, ToPayee, store::call_key};

impl Payer {
    /// Takes in what the payee says to a request.
    pub fn hear(&mut self, nonce: Nonce, message: FromPayee) -> Step<PayerEffect> {
        match message {
            FromPayee::Taken { nonce: taken } if taken == nonce => {
                let mut step = Step::default();
                if self.taken(nonce, &mut step) {
                    // Answers that ended before may have left nobody to carry what was signed for them.
                    self.carry_on(&mut step);
                }
                step
            }
            FromPayee::Refused { nonce: refused, why } if refused == nonce => self.refused(nonce, why),
            FromPayee::Taken { .. } | FromPayee::Refused { .. } => Step::default(),
            FromPayee::Chunk { bytes, statement } => self.chunk(nonce, &bytes, statement),
        }
    }

    /// Whether it was not known before.
    fn taken(&mut self, nonce: Nonce, step: &mut Step<PayerEffect>) -> bool {
        let is_new = self.asking.take_if(|asked| *asked == nonce).is_some();
        if is_new {
            self.granted = self.wallet.signed;
            step.then(PayerEffect::Taken { nonce });
        }
        is_new
    }

    fn chunk(
        &mut self,
        nonce: Nonce,
        bytes: &[u8],
        signed: SignedChunkStatement<AccountId>,
    ) -> Step<PayerEffect> {
        let mut step = Step::default();
        let Some(call) = self.calls.get(&nonce).filter(|call| call.live.is_some()) else {
            return self.said_after_the_end(nonce, &signed);
        };
        let total = match self.check_statement(nonce, call, bytes, &signed) {
            Ok(total) => total,
            Err(wrong) => {
                let evidence = wrong.evidence.map(|evidence| *evidence);
                return self.give_up(nonce, wrong.why, evidence);
            }
        };
        self.taken(nonce, &mut step);
        let has_others = self.answered().any(|other| other != nonce);
        let (signed_sum, deposit, spent) = (self.wallet.signed, self.terms.deposit, self.spent());
        let now = self.now;
        let Some(call) = self.calls.get_mut(&nonce) else {
            return step;
        };
        let (row, Some(live)) = (&mut call.row, call.live.as_mut()) else {
            return step;
        };
        let end = signed.statement.end;
        row.form.say(&mut live.said, bytes);
        row.form.keep(&mut live.output, bytes);
        let before = row.allowance;
        let pays = end.is_none() && live.cancelled_at.is_none();
        let most = match pays || has_others {
            true => deposit,
            false => signed_sum,
        };
        row.allowance = allowance(row, live, total, (pays, has_others), most.saturating_sub(spent));
        row.said = total;
        row.statement = Some(signed.clone());
        row.at = now;
        if end.is_some() {
            row.state = HeldState::Over;
            call.live = None;
            self.open.remove(&nonce);
            self.wallet.settled = self.wallet.settled.saturating_add(row.spent());
        }
        let message = if pays { self.pay_ahead(nonce, before) } else { None };
        step.put(self.wallet_row());
        if let Some(call) = self.calls.get(&nonce) {
            step.put(self.held_row(nonce, &call.row));
        }
        if let Some(message) = message {
            send(&mut step, nonce, message);
        }
        if !bytes.is_empty() {
            let bytes = bytes.to_vec();
            step.then(PayerEffect::Said { nonce, bytes });
        }
        if end.is_some() {
            let receipt = signed;
            step.then(PayerEffect::Done { nonce, receipt });
        }
        if !pays {
            self.carry_on(&mut step);
        }
        step
    }

    /// Of an answer that is over nothing more is signed. What contradicts what was shows that its payee lies.
    fn said_after_the_end(
        &mut self,
        nonce: Nonce,
        signed: &SignedChunkStatement<AccountId>,
    ) -> Step<PayerEffect> {
        let mut step = Step::default();
        let held = self
            .calls
            .get(&nonce)
            .and_then(|call| call.row.statement.as_ref());
        let Some(held) = held.filter(|_| !self.wallet.is_distrusted) else {
            return step;
        };
        let said = &signed.statement;
        let is_of_it =
            (said.channel, &said.payee, said.nonce) == (self.terms.channel, &self.terms.payee, nonce);
        let is_signed = self.signers.contains(&signed.agent)
            && signed.is_signed(&self.config.genesis, &*self.config.verify);
        if !is_of_it || !is_signed || incompatible(&held.statement, said, None).is_none() {
            return step;
        }
        let evidence = Evidence::Equivocation(Box::new(Equivocation {
            one: held.clone(),
            other: signed.clone(),
            shown: None,
        }));
        self.wallet.is_distrusted = true;
        step.put(self.wallet_row());
        let key = call_key(self.terms.channel, nonce);
        step.put(Row::new(Table::Evidence, key, &evidence));
        step.then(PayerEffect::Broken {
            nonce,
            why: Broken::Equivocation,
            // What it has cost was told with its receipt.
            spent: 0,
            evidence: Some(evidence),
        });
        step
    }

    /// The voucher for more of an answer, where others do not leave over enough. It is cancelled where the
    /// channel has no money for more than was signed for it `before`.
    pub(super) fn pay_ahead(&mut self, nonce: Nonce, before: u128) -> Option<ToPayee> {
        let sum = self.spent();
        if sum <= self.carried() {
            return None;
        }
        if sum <= self.terms.deposit {
            self.wallet.signed = self.wallet.signed.max(sum);
            return self.carry(nonce);
        }
        let call = self.calls.get_mut(&nonce)?;
        let request = call.row.request.hash();
        call.row.allowance = before;
        let said = call.row.said;
        call.live.as_mut()?.cancelled_at = Some(said);
        Some(ToPayee::Cancel(self.signed_cancel(nonce, request)))
    }
}

/// What is signed for an answer of which there are so many units now, in plancks, where `room` can be signed
/// beyond what is.
///
/// What was said is paid, also out of what was signed for others, as far as that can be signed for again. Of
/// what is said after a cancellation that is a chunk: what was on its way.
fn allowance(row: &Held, live: &Live, total: u32, (pays, has_others): (bool, bool), room: u128) -> u128 {
    let before = row.allowance;
    let said_price = row.form.price(total).min(before.saturating_add(room));
    let paid = match live.cancelled_at {
        None if pays && !live.is_paused => row.form.paid_ahead(total),
        None => said_price,
        Some(at) if has_others => said_price.min(row.form.paid_ahead(at.saturating_add(row.form.chunk))),
        Some(_) => before,
    };
    before.max(paid)
}
