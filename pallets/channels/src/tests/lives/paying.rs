//! What is demanded is shown, and whoever tells the truth is paid all that was counted for it, whatever its
//! payers demand meanwhile.

use std::collections::BTreeMap;

use surety_channels::{ChannelOpening, REDEEMED_MAX, view::Says};

use super::{
    super::*,
    HONEST, Life,
    seller::{Seller, asked},
};
use crate::{Channel, Wanted};

impl Life {
    /// Shows all that is demanded of a seller, batching first what is not batched.
    pub(super) fn show(&mut self, number: usize) {
        self.batch_demanded(number);
        for (demander, demand) in self.sellers[number].owed() {
            let seller = &self.sellers[number];
            let who = signed(seller.agent());
            match demand.wanted {
                Wanted::Receipt {
                    channel, nonce, says, ..
                } => {
                    let Some((batch, shown)) = seller.shown(channel, nonce) else {
                        continue;
                    };
                    let segment = match says {
                        Says::GoesOn(heard) => heard.segment_in(&shown.statement),
                        Says::This(_) => None,
                    };
                    let goes_on = segment.and_then(|segment| Seller::segment(channel, nonce, segment));
                    let begins = goes_on.is_some();
                    let paid = || Channels::<Test>::get(channel).map_or(0, |of| of.purse.paid);
                    let before = paid();
                    let is_shown =
                        ChannelsPallet::show_receipt(who, demander, batch, Box::new(shown), goes_on).is_ok();
                    if is_shown && begins {
                        self.seen.insert("GoneOn".into());
                    }
                    if paid() > before {
                        self.seen.insert("PaidAsShown".into());
                    }
                }
                Wanted::Point { batch, point } => {
                    let opening = seller.made[batch as usize].batch.leaf_at(point);
                    let Some(opening) = opening else { continue };
                    let nonce = opening.of.first + opening.place;
                    let Some((_, shown)) = seller.shown(opening.of.channel, nonce) else {
                        continue;
                    };
                    let (request, head) = asked(&shown.statement);
                    ignore(ChannelsPallet::show_point(
                        who,
                        demander,
                        batch,
                        Box::new(shown),
                        request,
                        head,
                    ));
                }
            }
        }
    }

    /// One batch of what is demanded and in none, with what is between that in each channel.
    fn batch_demanded(&mut self, number: usize) {
        let seller = &self.sellers[number];
        let mut runs = BTreeMap::<ChannelId, (u32, u32)>::new();
        for (_, demand) in seller.owed() {
            if let Wanted::Receipt { channel, nonce, .. } = demand.wanted
                && !seller.batched.contains_key(&(channel, nonce))
            {
                let run = runs.entry(channel).or_insert((nonce, nonce));
                *run = (run.0.min(nonce), run.1.max(nonce));
            }
        }
        let receipts: Vec<_> = runs
            .into_iter()
            .flat_map(|(channel, (first, last))| {
                (first..=last)
                    .take_while(move |nonce| !seller.batched.contains_key(&(channel, *nonce)))
                    .map(move |nonce| seller.receipt(channel, nonce))
            })
            .collect();
        let prices: Vec<_> = receipts.iter().map(|receipt| receipt.price).collect();
        self.put(number, receipts, &prices);
    }

    /// The honest provider counts what is final, and redeems.
    pub(super) fn redeem_due(&mut self) {
        let now = ChannelsPallet::time();
        for (id, of) in self.channels_of_honest() {
            let (seller, mut purse) = (&self.sellers[HONEST], of.purse);
            let sum = self.signed.get(&id).copied().unwrap_or_default();
            let mut batches = Vec::new();
            while batches.len() < REDEEMED_MAX as usize {
                let Some(number) = seller.batched.get(&(id, purse.next)) else {
                    break;
                };
                let Some(record) = Batches::<Test>::get(stash(), number) else {
                    break;
                };
                let opening = seller.made[*number as usize].batch.open_channel(id);
                let opening = opening.expect("it has it");
                let shown = opening.verify(&record.window.root).expect("it is in it");
                let is_late = purse.last(of.expiry) < record.begun;
                if is_late || purse.count(&record.window, &shown, now, SUPPLY).is_err() {
                    break;
                }
                batches.push((*number, opening));
            }
            let due = of.purse.counts.stood(now, WAIT).min(sum).min(of.purse.deposit);
            if of.purse.demands > 0 && due > of.purse.paid {
                self.seen.insert("HeldBack".into());
            }
            // What is demanded is shown for the best voucher.
            let is_better = of.purse.signed < sum && of.purse.pending(sum) > 0;
            if !batches.is_empty() || is_better || purse.redeemable(sum, now, SUPPLY) > 0 {
                ignore(ChannelsPallet::redeem(
                    signed(agent()),
                    voucher(id, sum, false),
                    Openings::truncate_from(batches),
                ));
            }
        }
    }

    /// No channel ends in the next block that owes the honest provider what was counted, and batched in time.
    pub(super) fn is_paid(&self) {
        let now = ChannelsPallet::time();
        for (id, of) in self.channels_of_honest() {
            let sum = self.signed.get(&id).copied().unwrap_or_default();
            let is_over = |at| of.purse.refund(at, of.expiry).is_some();
            let ends = is_over(now + 1) && !is_over(now);
            if ends && !self.late.contains(&id) {
                assert_eq!(of.purse.pending(sum), 0, "who told the truth was not paid");
            }
        }
    }

    /// What was batched after a channel was over may not be paid.
    pub(super) fn note_late(
        &mut self,
        id: ChannelId,
        of: &Channel<AccountId32>,
        batches: &[(BatchNumber, ChannelOpening)],
    ) {
        let last = of.purse.last(of.expiry);
        let is_late = |(number, _): &(BatchNumber, ChannelOpening)| {
            Batches::<Test>::get(&of.payee, number).is_none_or(|record| last < record.begun)
        };
        if batches.iter().any(is_late) {
            self.late.insert(id);
        }
    }

    fn channels_of_honest(&self) -> Vec<(ChannelId, Channel<AccountId32>)> {
        let all = Channels::<Test>::iter();
        all.filter(|(_, of)| of.payee == stash()).collect()
    }
}
