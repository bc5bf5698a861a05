//! The payer's watch: every statement that it holds is covered by a batch, or demanded. That final batches
//! were counted with its number says nothing: they may have another receipt there. So it is kept until its
//! payee has shown that it is the one.

use std::collections::BTreeSet;

use surety_channels::{
    BatchNumber, BatchRoot, Batched, Clash, Misstated, Nonce, SignedChunkStatement, Time, incompatible,
};

use super::{Held, HeldState, Payer, PayerEffect};
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
            HeldState::Over | HeldState::Lost | HeldState::Shown | HeldState::Counted
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
        let is_lost = call.row.statement.as_ref();
        let is_lost = is_lost.is_none_or(|held| held.statement.end.is_none());
        if is_lost && said.price < call.row.allowance {
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
    /// and kept until a final batch is counted with its number.
    pub fn shown(&mut self, nonce: Nonce) -> Step<PayerEffect> {
        let mut step = Step::default();
        let state = self.calls.get(&nonce).map(|call| call.row.state);
        if state == Some(HeldState::Counted) {
            return self.forget(nonce);
        }
        let call = self.calls.get_mut(&nonce);
        let waiting = call.filter(|call| matches!(call.row.state, HeldState::Over | HeldState::Lost));
        if let Some(call) = waiting {
            call.row.state = HeldState::Shown;
            let row = call.row.clone();
            step.put(self.held_row(nonce, &row));
        }
        step
    }

    /// Final batches are counted with all requests below `next`. What was shown on the chain, and what
    /// nothing was said of, is expected nothing more of. What was shown over a connection is kept until its
    /// own batch is final ([`Payer::settled_in`]), and all else until it is shown.
    pub fn counted(&mut self, next: Nonce) -> Step<PayerEffect> {
        self.counted_at(next, self.now)
    }

    /// The same by the first block that this program has seen: it does not know since when.
    pub fn counted_before(&mut self, next: Nonce) -> Step<PayerEffect> {
        self.counted_at(next, 0)
    }

    fn counted_at(&mut self, next: Nonce, at: Time) -> Step<PayerEffect> {
        let mut step = Step::default();
        let below = self.calls.range(..next);
        let over = below.filter(|(_, call)| call.live.is_none());
        let over = over.map(|(nonce, call)| (*nonce, call.row.state, call.row.says_something()));
        for (nonce, state, says_something) in over.collect::<Vec<_>>() {
            match (state, says_something) {
                (HeldState::Counted | HeldState::Covered(_), _) => {}
                (HeldState::Over | HeldState::Lost, true) => step.join(self.counted_unseen(nonce, at)),
                _ => step.join(self.forget(nonce)),
            }
        }
        step
    }

    fn counted_unseen(&mut self, nonce: Nonce, at: Time) -> Step<PayerEffect> {
        let mut step = Step::default();
        if let Some(call) = self.calls.get_mut(&nonce) {
            (call.row.state, call.row.at) = (HeldState::Counted, at);
            let row = call.row.clone();
            step.put(self.held_row(nonce, &row));
        }
        step
    }

    /// These batches are final: the receipts that were shown to be there are settled, whatever was counted.
    pub fn settled_in(&mut self, batches: &BTreeSet<BatchNumber>) -> Step<PayerEffect> {
        let is_one = |state| matches!(state, HeldState::Covered(batch) if batches.contains(&batch));
        let calls = self.calls.iter().filter(|(_, call)| is_one(call.row.state));
        let over: Vec<Nonce> = calls.map(|(nonce, _)| *nonce).collect();
        let mut step = Step::default();
        for nonce in over {
            step.join(self.forget(nonce));
        }
        step
    }

    /// Batches in which receipts were shown to be that are kept.
    pub fn covering(&self) -> impl Iterator<Item = BatchNumber> {
        let states = self.calls.values().map(|call| call.row.state);
        states.filter_map(|state| match state {
            HeldState::Covered(batch) => Some(batch),
            _ => None,
        })
    }

    /// Statements of numbers that were counted, of which nobody has shown that they are what was, and of what
    /// was shown on the chain alone, in their order.
    pub fn uncompared(&self) -> impl Iterator<Item = &SignedChunkStatement<AccountId>> {
        let calls = self.calls.values();
        let asked = calls.filter(|call| matches!(call.row.state, HeldState::Counted | HeldState::Shown));
        asked.filter_map(|call| call.row.statement.as_ref())
    }

    /// Statements of something that nobody has shown to be in a batch, in the order of their requests.
    pub fn unshown(&self) -> impl Iterator<Item = &SignedChunkStatement<AccountId>> {
        self.waiting().map(|(_, statement)| statement)
    }

    /// Those of them that are older than `patience`, or any once it is later than `latest`. Those that were
    /// counted grow older from then on, and wait no longer than `counted`.
    pub fn demands(
        &self,
        (patience, counted): (Time, Time),
        latest: Time,
    ) -> impl Iterator<Item = &SignedChunkStatement<AccountId>> {
        let late = self.waiting().filter(move |(held, _)| {
            let wait = match held.state {
                HeldState::Counted => patience.min(counted),
                _ => patience,
            };
            self.now > held.at.saturating_add(wait).min(latest)
        });
        late.map(|(_, statement)| statement)
    }

    fn waiting(&self) -> impl Iterator<Item = (&Held, &SignedChunkStatement<AccountId>)> {
        let rows = self.calls.values().map(|call| &call.row);
        let rows = rows.filter(|row| {
            let waits = matches!(row.state, HeldState::Over | HeldState::Lost | HeldState::Counted);
            waits && row.says_something()
        });
        rows.filter_map(|row| Some((row, row.statement.as_ref()?)))
    }

    /// A request that nothing more is expected of: it was shown in a final batch, or its channel has ended.
    pub fn forget(&mut self, nonce: Nonce) -> Step<PayerEffect> {
        let mut step = Step::default();
        if self.calls.get(&nonce).is_some_and(|call| call.live.is_none()) {
            self.calls.remove(&nonce);
            step.put(Row::gone(Table::Held, call_key(self.terms.channel, nonce)));
        }
        step
    }
}
