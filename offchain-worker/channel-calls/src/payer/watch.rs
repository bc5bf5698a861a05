//! The payer's watch: every statement that it holds is covered by a batch, or demanded. That final batches
//! were counted with its number says nothing: they may have another receipt there. So it is kept until its
//! payee has shown that it is the one, and asked for as soon as a batch may have it.

use std::collections::BTreeMap;

use surety_channels::{
    BatchNumber, BatchRoot, Batched, ChannelId, Clash, Misstated, Nonce, SignedChunkStatement, Time, extends,
    incompatible,
};
use surety_proofs::SegmentOpening;

use super::{Held, HeldState, Payer, PayerEffect, drop_rows};
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
    /// It says more, and not that this begins with what was said.
    #[error("it is not shown that the receipt goes on from what the provider had said before")]
    Unproven,
    /// It may be right, and is paid for without having met a point.
    #[error("its number was counted, and this batch was not final by then")]
    NotFinal,
}

impl Payer {
    /// A payee shows the receipt of a request in a batch that a finalised block has. Of a receipt that says
    /// more than is held the `segment` of its output in which that ends shows that it goes on from there. The
    /// batch is final since after `until`, where it is: what was counted stands in one that was by then.
    ///
    /// # Errors
    /// [`NotCovered`]; nothing changes then.
    pub fn cover(
        &mut self,
        batch: BatchNumber,
        (root, until): (&BatchRoot, Option<Time>),
        shown: &Batched<AccountId>,
        segment: Option<&SegmentOpening>,
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
            if let Some(clash) = incompatible(&held.statement, said, segment) {
                return Err(NotCovered::Contradicts(clash));
            }
            if !said.covers(&held.statement) {
                return Err(NotCovered::SaysLess);
            }
        }
        said.check(&call.row.request).map_err(NotCovered::Misstated)?;
        let held = call.row.statement.as_ref();
        if held.is_some_and(|held| extends(&held.statement, said, segment) != Some(true)) {
            return Err(NotCovered::Unproven);
        }
        if call.row.state == HeldState::Counted && !is_counted_one(until, call.row.at) {
            return Err(NotCovered::NotFinal);
        }
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

    /// The payee has shown on the chain that a batch has the receipt of a request, or one that goes on from
    /// what was heard. Where that was demanded of what was counted it is what was counted, and nothing more
    /// is expected of it. Otherwise it is not demanded again before its number is counted: that may be with
    /// something else.
    pub fn shown(&mut self, nonce: Nonce, was_counted: bool) -> Step<PayerEffect> {
        let mut step = Step::default();
        let Some(call) = self.calls.get_mut(&nonce) else {
            return step;
        };
        match call.row.state {
            HeldState::Counted if was_counted => return self.forget(nonce),
            HeldState::Over | HeldState::Lost => {}
            _ => return step,
        }
        call.row.state = HeldState::Shown;
        let row = call.row.clone();
        step.put(self.held_row(nonce, &row));
        step
    }

    /// Final batches are counted with all requests below `next`. What nothing was said of is expected nothing
    /// more of. What was shown over a connection is kept until its own batch is final
    /// ([`Payer::settled_in`]), and all else until it is shown: also what was shown on the chain before, in
    /// some batch.
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
        let over: Vec<_> = over.collect();
        let before = self.uncounted_from;
        self.uncounted_from = before.max(next);
        for (nonce, state, says_something) in over {
            match state {
                HeldState::Counted => {}
                // When that was is what its batch has to be final by.
                HeldState::Covered(_) if nonce >= before => step.join(self.counted_as(nonce, state, at)),
                HeldState::Covered(_) => {}
                HeldState::Over | HeldState::Lost | HeldState::Shown if says_something => {
                    step.join(self.counted_as(nonce, HeldState::Counted, at));
                }
                _ => step.join(self.forget(nonce)),
            }
        }
        step
    }

    fn counted_as(&mut self, nonce: Nonce, state: HeldState, at: Time) -> Step<PayerEffect> {
        let mut step = Step::default();
        if let Some(call) = self.calls.get_mut(&nonce) {
            (call.row.state, call.row.at) = (state, at);
            let row = call.row.clone();
            step.put(self.held_row(nonce, &row));
        }
        step
    }

    /// These batches are final, since after these times: the receipts that were shown to be there are
    /// settled. But not where something was counted before that, which is something else then.
    pub fn settled_in(&mut self, batches: &BTreeMap<BatchNumber, Time>) -> Step<PayerEffect> {
        let covered = self
            .calls
            .iter()
            .filter_map(|(nonce, call)| match call.row.state {
                HeldState::Covered(batch) => Some((*nonce, batches.get(&batch).copied(), call.row.at)),
                _ => None,
            });
        let mut step = Step::default();
        for (nonce, until, at) in covered.collect::<Vec<_>>() {
            let is_counted = nonce < self.uncounted_from;
            if is_counted && !is_counted_one(until, at) {
                step.join(self.counted_as(nonce, HeldState::Counted, at));
            } else if until.is_some() {
                step.join(self.forget(nonce));
            }
        }
        step
    }

    /// Since when a request is counted, and nobody has shown that its receipt was.
    pub fn counted_since(&self, nonce: Nonce) -> Option<Time> {
        let row = &self.calls.get(&nonce)?.row;
        (row.state == HeldState::Counted).then_some(row.at)
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

    /// Those of them that were over by a time and are not counted: a batch that was committed then may have
    /// them.
    pub fn over_by(&self, time: Time) -> impl Iterator<Item = &SignedChunkStatement<AccountId>> {
        let over = self.waiting().filter(move |(held, _)| held.is_over_by(time));
        over.map(|(_, statement)| statement)
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
            drop_rows(self.terms.channel, nonce, &mut step);
        }
        step
    }

    /// The channel has ended: nothing more is expected of what was asked over it. Of receipts that nobody has
    /// shown to be in a final batch that stays known.
    pub fn end(&mut self) -> Step<PayerEffect> {
        let over = self.calls.iter().filter(|(_, call)| call.live.is_none());
        let over: Vec<_> = over
            .map(|(nonce, call)| (*nonce, call.row.says_something()))
            .collect();
        let mut step = Step::default();
        for (nonce, says_something) in over {
            self.calls.remove(&nonce);
            end_rows((self.terms.channel, nonce), says_something, &mut step);
        }
        step
    }
}

/// What stays known of a request whose channel has ended.
pub(super) fn end_rows(
    (channel, nonce): (ChannelId, Nonce),
    says_something: bool,
    step: &mut Step<PayerEffect>,
) {
    drop_rows(channel, nonce, step);
    if says_something {
        step.put(Row::new(Table::Unproven, call_key(channel, nonce), &()));
    }
}

/// Whether a batch that is final since after `until` was when a number was counted, `at` that time: what was
/// counted stands in no other. Of what was counted before anybody looked it has to be final now.
pub fn is_counted_one(until: Option<Time>, at: Time) -> bool {
    until.is_some_and(|until| at == 0 || until < at)
}
