//! What keeps a provider that takes nothing new: what it still owes, and what it is still owed.

use std::fmt;

use surety_chain_client::BatchView;
use surety_channels::view::Wanted;

use crate::{desk::Desk, sight::Sight};

/// What is open over a provider's channels, by the newest finalised block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owed {
    /// Requests that have no receipt.
    pub requests: usize,
    /// Receipts with a price that are in no batch.
    pub receipts: u32,
    /// Batches that are not final: any of their receipts may be demanded or disputed.
    pub batches: usize,
    /// Receipts that are demanded.
    pub demands: usize,
    /// Receipts that are disputed.
    pub disputes: u32,
    /// Channels over which something is still to be redeemed.
    pub channels: usize,
}

impl Owed {
    /// Whether the provider may end.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Owed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.requests, "requests without a receipt"),
            (self.receipts as usize, "receipts in no batch"),
            (self.batches, "batches that are not final"),
            (self.demands, "receipts that are demanded"),
            (self.disputes as usize, "receipts that are disputed"),
            (self.channels, "channels to be redeemed"),
        ];
        let open = counts.iter().filter(|(count, _)| *count > 0);
        for (place, (count, what)) in open.enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            write!(f, "{comma}{count} {what}")?;
        }
        Ok(())
    }
}

impl Desk {
    /// Tells whoever waits for the end what is open.
    pub(crate) fn tell_what_is_owed(&self, sight: &Sight) {
        // Only what is written down is over.
        if self.parts.takes_new || self.is_stuck() {
            return;
        }
        let standing = sight.standing.as_ref().filter(|standing| standing.lock > 0);
        // Nothing is batched without a lock.
        let loose = standing.map(|_| self.payee.unbatched());
        let promised = self.payee.uncommitted().filter(|_| standing.is_some());
        let is_open = |view: &&BatchView| !view.window.is_final(sight.time);
        let kept = standing.map_or(0, |standing| standing.unfinished);
        let batches = sight.batches.iter().filter(|view| view.batch >= kept);
        let windows = sight.windows();
        let owed = Owed {
            requests: self.payee.open_calls().count(),
            receipts: loose.map_or(0, |(receipts, price)| if price > 0 { receipts } else { 0 }),
            batches: batches
                .filter(is_open)
                .count()
                .saturating_add(usize::from(promised.is_some())),
            demands: sight
                .demands
                .iter()
                .filter(|demand| self.can_show(&demand.wanted))
                .count(),
            disputes: sight.standing.as_ref().map_or(0, |standing| standing.disputes),
            channels: self
                .watch
                .channels
                .range(sight.since_channel()..)
                .filter(|(_, seen)| self.payee.is_owed(seen, &windows, sight.time))
                .count(),
        };
        // Receipts over channels that are doubted are not counted, and are owed if that was not true.
        if owed.is_nothing() && self.watch.unknown.is_in_doubt() {
            return;
        }
        self.parts.owed.send_if_modified(|told| {
            let is_other = told.as_ref() != Some(&owed);
            *told = Some(owed);
            is_other
        });
    }

    /// What is lost cannot be waited for.
    fn can_show(&self, wanted: &Wanted) -> bool {
        match wanted {
            Wanted::Receipt { channel, nonce, .. } => self.payee.knows(*channel, *nonce),
            Wanted::Point { .. } => true,
        }
    }
}
