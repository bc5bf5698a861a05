//! The payee's watch: what it has to do so that it is paid, by what a finalised block says.

use std::collections::BTreeMap;

use surety_channels::{
    BatchNumber, BatchWindow, ChannelId, ChannelOpening, Purse, REDEEMED_MAX, SignedVoucher, Time,
};

use super::{Channel, ChannelSeen, Payee};
use crate::AccountId;

/// When it is worth a fee to redeem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedeemPolicy {
    /// Less is not redeemed before it has to be, in plancks.
    pub amount_min: u128,
    /// So long before the payee's last time everything is done: for calls that fail at first.
    pub margin: Time,
    /// What is demanded is shown within this time, and what was counted paid a part of it later.
    pub supply: Time,
    /// For so long the chain counts a batch that is final. In the second half of that it is counted, whatever
    /// it pays: later neither it nor anything that comes after it is ever paid.
    pub redeem_by: Time,
}

/// What has to be done about a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Redeem its best voucher: for what is due, or for what is counted with it and due later. While a
    /// receipt of the channel is demanded nothing is; showing that pays then.
    Redeem {
        /// It.
        voucher: SignedVoucher<AccountId>,
        /// What the channel has in batches that are final and not counted, in their order.
        openings: Vec<(BatchNumber, ChannelOpening)>,
        /// What that pays at once, in plancks.
        amount: u128,
    },
    /// Keep the payer's money until a batch is final that will not be in time.
    Hold {
        /// Channel id.
        channel: ChannelId,
        /// The batch.
        batch: BatchNumber,
        /// What the channel has in it.
        opening: ChannelOpening,
    },
    /// Batch its receipts: the time for it ends.
    Batch,
}

impl Payee {
    /// What is due about a channel at `now`. `windows` are those of this payee's batches that the chain still
    /// has.
    pub fn duties(
        &self,
        seen: &ChannelSeen,
        windows: &BTreeMap<BatchNumber, BatchWindow>,
        now: Time,
        policy: &RedeemPolicy,
    ) -> Vec<Duty> {
        let mut duties = Vec::new();
        let Some(channel) = self.channels.get(&seen.terms.channel) else {
            return duties;
        };
        let Some(voucher) = &channel.account.voucher else {
            return duties;
        };
        let deadline = deadline(channel, seen).unwrap_or(Time::MAX);
        let is_late = now.saturating_add(policy.margin) >= deadline;
        let is_pressing = seen.purse.closing.is_some() || is_late;
        let unbatched = channel.calls.get(&channel.account.unbatched);
        if is_pressing && unbatched.is_some_and(|call| call.row.receipt().is_some()) {
            duties.push(Duty::Batch);
        }
        // All of it was paid, or has gone back, and there will be no more.
        if seen.purse.closing.is_some() && seen.purse.deposit <= seen.purse.paid {
            return duties;
        }
        let Countable {
            purse,
            openings,
            is_leaving,
            held,
        } = self.countable(seen, windows, now, (policy, deadline));
        duties.extend(held);
        let sum = voucher.voucher.sum;
        let amount = purse.redeemable(sum, now, policy.supply);
        let counted = purse.pending(sum).saturating_sub(seen.purse.pending(sum));
        let is_worth = |amount: u128| amount > 0 && (is_pressing || amount >= policy.amount_min);
        // One call counts no more, and what comes after these waits for them, though they pay nothing.
        let is_full = openings.len() >= REDEEMED_MAX as usize;
        // While there is more to come what is due is paid with that: it has a fee.
        let is_all_due = is_pressing || purse.due_at(now, policy.supply).is_none();
        if is_full || is_leaving || is_worth(counted) || (is_all_due && is_worth(amount)) {
            let voucher = voucher.clone();
            duties.push(Duty::Redeem {
                voucher,
                openings,
                amount,
            });
        }
        duties
    }
}

/// What of a channel the chain can count now.
struct Countable {
    /// As it is once that is counted.
    purse: Purse,
    /// What the channel has in those batches, in their order.
    openings: Vec<(BatchNumber, ChannelOpening)>,
    /// Whether the chain counts one of them no more before long.
    is_leaving: bool,
    /// The batch after them, where it will not be final in time.
    held: Option<Duty>,
}

impl Payee {
    fn countable(
        &self,
        seen: &ChannelSeen,
        windows: &BTreeMap<BatchNumber, BatchWindow>,
        now: Time,
        (policy, deadline): (&RedeemPolicy, Time),
    ) -> Countable {
        let channel = seen.terms.channel;
        let mut found = Countable {
            purse: seen.purse,
            openings: Vec::new(),
            is_leaving: false,
            held: None,
        };
        for (batch, made) in self.on_chain() {
            let opening = made.batch.open_channel(channel);
            let Some(opening) = opening.filter(|one| one.first >= found.purse.next) else {
                continue;
            };
            let (Some(window), Some(shown)) = (windows.get(&batch), opening.verify(&made.row.root)) else {
                break;
            };
            if !window.is_final(now) {
                let is_too_late = window.until.max(now).saturating_add(policy.margin) >= deadline;
                // While all places for disputes are taken nobody knows how long, and nothing is held for
                // ever.
                let until = Some(window.until)
                    .filter(|until| *until < Time::MAX)
                    .unwrap_or(now);
                let is_held = seen.purse.held_until > until.max(now).saturating_add(policy.margin);
                if is_too_late && !is_held {
                    found.held = Some(Duty::Hold {
                        channel,
                        batch,
                        opening,
                    });
                }
                break;
            }
            let is_over = window.until.saturating_add(policy.redeem_by) < now;
            let is_full = found.openings.len() >= REDEEMED_MAX as usize;
            // What a void batch has cannot be shown once it is counted, and who cannot show loses its lock.
            if is_over
                || is_full
                || window.is_void
                || found.purse.count(window, &shown, now, policy.supply).is_err()
            {
                break;
            }
            found.is_leaving |= window.until.saturating_add(policy.redeem_by / 2) <= now;
            found.openings.push((batch, opening));
        }
        found
    }

    /// Whether something is still paid over a channel by batches that the chain has: `windows` are as for
    /// [`Payee::duties`].
    pub fn is_owed(
        &self,
        seen: &ChannelSeen,
        windows: &BTreeMap<BatchNumber, BatchWindow>,
        now: Time,
    ) -> bool {
        let id = seen.terms.channel;
        let account = self.channels.get(&id).map(|channel| &channel.account);
        let Some(voucher) = account.and_then(|account| account.voucher.as_ref()) else {
            return false;
        };
        if voucher.voucher.expiry.max(seen.purse.held_until) < now {
            return false;
        }
        let mut purse = seen.purse;
        for (number, made) in self.on_chain() {
            let opening = made.batch.open_channel(id);
            let is_paid = windows.get(&number).is_some_and(|window| !window.is_void);
            let Some(opening) = opening.filter(|one| one.first == purse.next && is_paid) else {
                continue;
            };
            let sums = &opening.total.sums;
            purse.next = purse.next.saturating_add(sums.receipts);
            purse.counted = purse.counted.saturating_add(sums.price);
        }
        purse.pending(voucher.voucher.sum) > 0
    }

    /// Whether nothing is open, unbatched, uncounted, unpaid or demanded over a channel: its payee gives up
    /// nothing with what is left of the deposit.
    pub fn is_settled(&self, seen: &ChannelSeen) -> bool {
        let account = self
            .channels
            .get(&seen.terms.channel)
            .map(|channel| &channel.account);
        let (next, sum) = account.map_or((0, 0), |account| (account.next, account.sum()));
        let is_counted = seen.purse.next >= next;
        is_counted && seen.purse.demands == 0 && seen.purse.pending(sum) == 0
    }
}

/// The payee's last time for what was earned over a channel; nothing where that is nothing.
pub(super) fn deadline(channel: &Channel, seen: &ChannelSeen) -> Option<Time> {
    let voucher = &channel.account.voucher.as_ref()?.voucher;
    Some(voucher.expiry.min(seen.purse.closing.unwrap_or(Time::MAX)))
}
