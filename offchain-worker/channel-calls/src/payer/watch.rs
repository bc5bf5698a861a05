//! The payer's watch: every statement that it holds is covered by a batch, or demanded.

use surety_channels::{
    BatchNumber, BatchRoot, Batched, Clash, Misstated, Nonce, SignedChunkStatement, Time, incompatible,
};

use super::{HeldState, Payer, PayerEffect};
use crate::{AccountId, Row, Step, Table, store::call_key};

/// Why what a payee shows does not cover a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCovered {
    /// Nothing is held of such a request, or it is still being answered.
    #[error("no statement of this request waits for a batch")]
    NotHeld,
    /// It is not in this batch.
    #[error("the receipt is not in this batch")]
    NotThere,
    /// It says less than was said.
    #[error("the receipt says less than the provider had said before")]
    SaysLess,
    /// It says something else: the batch's evidence is this receipt and the statement that is held.
    #[error("the receipt contradicts what the provider had said before")]
    Contradicts(Clash),
    /// It does not follow from what was asked: the batch's evidence is this receipt and the request.
    #[error("the receipt is not about what was asked: {0}")]
    Misstated(Misstated),
}

impl Payer {
    /// A payee shows the receipt of a request in a batch that a finalised block has.
    ///
    /// Of a longer receipt only the kilobyte in which the held statement ends shows that it goes on from it.
    /// Who wants to see that has it shown; it is not asked for here.
    ///
    /// # Errors
    /// [`NotCovered`]; nothing changes then.
    pub fn cover(
        &mut self,
        batch: BatchNumber,
        root: &BatchRoot,
        shown: &Batched<AccountId>,
    ) -> Result<Step<PayerEffect>, NotCovered> {
        let nonce = shown.statement.nonce;
        let genesis = self.config.genesis;
        let call = self.calls.get_mut(&nonce).ok_or(NotCovered::NotHeld)?;
        if !matches!(
            call.row.state,
            HeldState::Over | HeldState::Lost | HeldState::Shown
        ) {
            return Err(NotCovered::NotHeld);
        }
        let said = &shown.statement;
        let is_ours = (&said.payee, said.channel) == (&self.terms.payee, self.terms.channel);
        if !is_ours || shown.place_in(&genesis, root).is_none() {
            return Err(NotCovered::NotThere);
        }
        if let Some(held) = &call.row.statement {
            if let Some(clash) = incompatible(&held.statement, said, None) {
                return Err(NotCovered::Contradicts(clash));
            }
            if !said.covers(&held.statement) {
                return Err(NotCovered::SaysLess);
            }
        }
        said.check(&call.row.request).map_err(NotCovered::Misstated)?;
        // What was lost on the way has its price now: what the payee has served, or says so. It gets no more
        // for that than what was signed.
        if call.row.state == HeldState::Lost && said.price < call.row.allowance {
            let less = call.row.allowance.saturating_sub(said.price);
            self.wallet.settled = self.wallet.settled.saturating_sub(less);
            call.row.allowance = said.price;
        }
        call.row.state = HeldState::Covered(batch);
        let row = call.row.clone();
        let mut step = Step::default();
        step.put(self.wallet_row());
        step.put(self.held_row(nonce, &row));
        Ok(step)
    }

    /// The payee has shown on the chain that a batch has the receipt of a request: it is demanded no more,
    /// and kept until a final batch is counted with it.
    pub fn shown(&mut self, nonce: Nonce) -> Step<PayerEffect> {
        let mut step = Step::default();
        let call = self.calls.get_mut(&nonce);
        let waiting = call.filter(|call| matches!(call.row.state, HeldState::Over | HeldState::Lost));
        if let Some(call) = waiting {
            call.row.state = HeldState::Shown;
            let row = call.row.clone();
            step.put(self.held_row(nonce, &row));
        }
        step
    }

    /// Statements of something that are in no batch that was shown and older than `patience`, or any once it
    /// is later than `latest`, in the order of their requests.
    pub fn demands(&self, patience: Time, latest: Time) -> Vec<SignedChunkStatement<AccountId>> {
        let due = |call: &super::Call| {
            let waits = matches!(call.row.state, HeldState::Over | HeldState::Lost);
            let is_late = self.now > call.row.at.saturating_add(patience).min(latest);
            let statement = call.row.statement.as_ref()?;
            let is_due = waits && is_late && !statement.statement.is_void();
            is_due.then(|| statement.clone())
        };
        self.calls.values().filter_map(due).collect()
    }

    /// A request that nothing more is expected of: its batch is final, or its channel has ended.
    pub fn forget(&mut self, nonce: Nonce) -> Step<PayerEffect> {
        let mut step = Step::default();
        if self.calls.get(&nonce).is_some_and(|call| call.live.is_none()) {
            self.calls.remove(&nonce);
            step.put(Row::gone(Table::Held, call_key(self.terms.channel, nonce)));
        }
        step
    }
}
