//! What becomes of the receipts that are kept.

use surety_channel_calls::{PayerEffect, Step};
use surety_channels::Nonce;

use super::{
    super::{Covered, Drawn, Seen, draw::draw_all},
    Task,
};

impl Task {
    pub(super) fn see(&mut self, seen: Seen) -> Step<PayerEffect> {
        self.payer.see(seen.terms, seen.signers, seen.now);
        let step = match std::mem::take(&mut self.is_new) {
            true => self.payer.counted_before(seen.purse.next),
            false => self.payer.counted(seen.purse.next),
        };
        self.recounts |= !step.is_empty();
        let waits = ((self.patience.batched, seen.counted), seen.demanded_by);
        let committed = self.handle.status().committed;
        let drawn = draw_all(&self.payer, waits, committed);
        let waiting = self.payer.unshown().map(|held| held.statement.nonce);
        let waiting = waiting.collect();
        let mut status = self.handle.status();
        (status.due, status.uncompared, status.unshown) = (drawn.due, drawn.others, drawn.unshown);
        status.waiting = waiting;
        step
    }

    /// It is not asked for again before the next block says what is.
    pub(super) fn is_not_due(&self, nonce: Nonce) {
        let mut status = self.handle.status();
        let is_other = |drawn: &Drawn| drawn.held.statement.nonce != nonce;
        status.due.retain(is_other);
        status.unshown.retain(is_other);
        status.uncompared.retain(is_other);
        status.waiting.remove(&nonce);
    }

    /// A receipt that is forgotten, or was shown before, is covered no more than it is.
    pub(super) fn covered(&mut self, shown: &Covered) -> Step<PayerEffect> {
        self.recounts = true;
        self.is_not_due(shown.batched.statement.nonce);
        let segment = shown.segment.as_ref();
        let covered = self
            .payer
            .cover(shown.batch, (&shown.root, shown.until), &shown.batched, segment);
        covered.unwrap_or_else(|why| {
            let channel = self.payer.channel();
            tracing::debug!(channel, batch = shown.batch, %why, "nothing is covered");
            Step::default()
        })
    }
}
