//! What the payee says.

use sp_core::H256;
use surety_channels::{Nonce, SignedChunkStatement};

use super::{HeldState, Payer, PayerEffect, send};
use crate::{AccountId, FromPayee, Step, ToPayee};

impl Payer {
    /// Takes in what the payee says to a request.
    pub fn hear(&mut self, nonce: Nonce, message: FromPayee) -> Step<PayerEffect> {
        match message {
            FromPayee::Taken { nonce: taken } if taken == nonce => {
                let mut step = Step::default();
                self.taken(nonce, &mut step);
                step
            }
            FromPayee::Refused { nonce: refused, why } if refused == nonce => self.refused(nonce, why),
            FromPayee::Taken { .. } | FromPayee::Refused { .. } => Step::default(),
            FromPayee::Chunk { bytes, statement } => self.chunk(nonce, &bytes, statement),
        }
    }

    fn taken(&mut self, nonce: Nonce, step: &mut Step<PayerEffect>) {
        if self.asking == Some(nonce) {
            self.asking = None;
            step.then(PayerEffect::Taken { nonce });
        }
    }

    fn chunk(
        &mut self,
        nonce: Nonce,
        bytes: &[u8],
        signed: SignedChunkStatement<AccountId>,
    ) -> Step<PayerEffect> {
        let mut step = Step::default();
        let Some(call) = self.calls.get(&nonce).filter(|call| call.live.is_some()) else {
            return step;
        };
        let total = match self.check_statement(nonce, call, bytes, &signed) {
            Ok(total) => total,
            Err(wrong) => {
                let evidence = wrong.evidence.map(|evidence| *evidence);
                return self.give_up(nonce, wrong.why, evidence);
            }
        };
        self.taken(nonce, &mut step);
        let now = self.now;
        let Some(call) = self.calls.get_mut(&nonce) else {
            return step;
        };
        let (row, Some(live)) = (&mut call.row, call.live.as_mut()) else {
            return step;
        };
        let end = signed.statement.end;
        let hash = signed.statement.request;
        row.form.say(&mut live.said, bytes);
        row.form.keep(&mut live.output, bytes);
        let before = row.allowance;
        let pays = end.is_none() && !live.is_cancelled;
        if pays {
            row.allowance = before.max(row.form.paid_ahead(total));
        }
        row.said = total;
        row.statement = Some(signed.clone());
        row.at = now;
        if end.is_some() {
            row.state = HeldState::Over;
            call.live = None;
            self.open.remove(&nonce);
            self.wallet.settled = self.wallet.settled.saturating_add(row.spent());
        }
        let message = if pays {
            self.pay_ahead(nonce, hash, before)
        } else {
            None
        };
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
        step
    }

    /// The voucher for more of an answer, where others do not leave over enough. It is cancelled where the
    /// channel has no money for more than was signed for it `before`.
    fn pay_ahead(&mut self, nonce: Nonce, request: H256, before: u128) -> Option<ToPayee> {
        let sum = self.spent();
        if sum <= self.wallet.signed {
            return None;
        }
        if sum <= self.terms.deposit {
            self.wallet.signed = sum;
            return Some(ToPayee::Pay(self.voucher(nonce, request, sum)));
        }
        if let Some(call) = self.calls.get_mut(&nonce) {
            call.row.allowance = before;
            if let Some(live) = &mut call.live {
                live.is_cancelled = true;
            }
        }
        Some(ToPayee::Cancel(self.signed_cancel(nonce, request)))
    }
}
