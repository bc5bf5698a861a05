//! What becomes of a channel's money.

use sp_core::crypto::AccountId32;
use surety_channels::{
    BatchNumber, ChannelId, ChannelOpening, Counted, Demanded, ProvenChannel, Purse, SignedVoucher, Time,
    demandable_for, paid_after,
};
use surety_types::stake::Role;

use super::{
    super::{
        blocks::genesis,
        state::{Applied, FakeState},
    },
    event, field, refused, verify,
};
use crate::{Balance, BatchView, ChainError, ChainEvent, ChannelOpenings, ChannelView};

/// Most channels of a payer.
const CHANNELS_MAX: usize = 128;

impl FakeState {
    pub(super) fn open_channel(
        &mut self,
        payer: &AccountId32,
        (payee, key): (&AccountId32, &AccountId32),
        deposit: Balance,
        expiry: Time,
    ) -> Applied {
        if payer == payee {
            return Err(refused("OwnChannel"));
        }
        if deposit < self.channels.rules.min_deposit {
            return Err(refused("DepositTooSmall"));
        }
        self.check_expiry(expiry, self.clock)?;
        let standing = self.standing(payee)?;
        if standing.lock == 0 {
            return Err(refused("NotStanding"));
        }
        self.ensure_takes_new(standing)?;
        let next_batch = standing.next;
        let of_payer = self.channels.open.values();
        if of_payer.filter(|channel| channel.payer == *payer).count() >= CHANNELS_MAX {
            return Err(refused("TooManyChannels"));
        }
        self.take(payer, deposit)?;
        let channel = self.channels.next;
        self.channels.next = channel.saturating_add(1);
        let view = ChannelView {
            channel,
            payer: payer.clone(),
            payee: payee.clone(),
            key: key.clone(),
            expiry,
            purse: Purse::new(channel, deposit, self.clock),
            demanded_until: Time::MAX,
            demanded: Demanded::default(),
        };
        self.channels.open.insert(channel, view);
        self.channels.counted.insert(channel, next_batch);
        self.channels.marks.insert(channel, Counted::new(next_batch));
        self.change_standing(payee, |standing| {
            standing.channels = standing.channels.saturating_add(1);
        });
        let fields = vec![
            field("channel", &channel),
            field("payer", payer),
            field("payee", payee),
        ];
        Ok(vec![event("Opened", fields)])
    }

    pub(super) fn top_up(&mut self, payer: &AccountId32, id: ChannelId, amount: Balance) -> Applied {
        let mut channel = self.own_channel(payer, id)?;
        let standing = self.standing(&channel.payee)?;
        if standing.since_channel > id {
            return Err(refused("NotStanding"));
        }
        self.ensure_takes_new(standing)?;
        let topped_up = channel
            .purse
            .top_up(amount, self.clock, self.channels.rules.supply_window);
        topped_up.map_err(|_| refused("Closing"))?;
        self.take(payer, amount)?;
        self.channels.open.insert(id, channel);
        Ok(vec![event("Changed", vec![field("channel", &id)])])
    }

    pub(super) fn extend_channel(&mut self, payer: &AccountId32, id: ChannelId, expiry: Time) -> Applied {
        let mut channel = self.own_channel(payer, id)?;
        if channel.purse.closing.is_some() {
            return Err(refused("Closing"));
        }
        self.check_expiry(expiry, channel.expiry.max(self.clock))?;
        let standing = self.standing(&channel.payee)?;
        if standing.since_channel > id {
            return Err(refused("NotStanding"));
        }
        self.ensure_takes_new(standing)?;
        channel.expiry = expiry;
        self.channels.open.insert(id, channel);
        Ok(vec![event("Changed", vec![field("channel", &id)])])
    }

    pub(super) fn close_channel(&mut self, payer: &AccountId32, id: ChannelId) -> Applied {
        let mut channel = self.own_channel(payer, id)?;
        let until = self.clock.saturating_add(self.channels.rules.closing_period);
        channel.purse.close(until);
        let refund = match self.ensure_pays(&channel) {
            Ok(()) => 0,
            Err(_) => channel.purse.give_back(until, 0),
        };
        self.pay(payer, refund);
        let until = channel.purse.closing.unwrap_or(until);
        self.channels.open.insert(id, channel);
        let fields = vec![
            field("channel", &id),
            field("until", &until),
            field("refund", &refund),
        ];
        Ok(vec![event("Closing", fields)])
    }

    pub(super) fn close_agreed(&mut self, who: &AccountId32, id: ChannelId) -> Applied {
        let mut channel = self.channel_of(id)?;
        self.ensure_payee(who, &channel.payee)?;
        let until = self.clock.saturating_add(self.channels.rules.closing_period);
        let refund = channel.purse.give_back(until, self.channels.rules.min_deposit);
        self.pay(&channel.payer, refund);
        let until = channel.purse.last(channel.expiry);
        self.channels.open.insert(id, channel);
        let fields = vec![
            field("channel", &id),
            field("refund", &refund),
            field("until", &until),
        ];
        Ok(vec![event("ClosedByPayee", fields)])
    }

    pub(super) fn end_channel(&mut self, id: ChannelId) -> Applied {
        let channel = self.channel_of(id)?;
        let refund = channel.purse.refund(self.clock, channel.expiry);
        let refund = refund.ok_or_else(|| refused("NotOver"))?;
        self.pay(&channel.payer, refund);
        self.channels.open.remove(&id);
        self.channels.counted.remove(&id);
        self.channels.marks.remove(&id);
        self.channels.demanded.remove(&id);
        self.change_standing(&channel.payee, |standing| {
            standing.channels = standing.channels.saturating_sub(1);
        });
        let fields = vec![field("channel", &id), field("refund", &refund)];
        Ok(vec![event("Ended", fields)])
    }

    pub(super) fn redeem(
        &mut self,
        signed: &SignedVoucher<AccountId32>,
        batches: &ChannelOpenings,
    ) -> Applied {
        let (id, now) = (signed.voucher.channel, self.clock);
        let mut channel = self.channel_of(id)?;
        self.ensure_pays(&channel)?;
        // What its payee has to wait for keeps its voucher alive.
        let at = match now <= channel.purse.held_until {
            true => now.min(signed.voucher.expiry),
            false => now,
        };
        let checked = signed.voucher.check(&channel.terms(), at);
        checked.map_err(|_| refused("BadVoucher"))?;
        if !signed.is_signed(&genesis(), &channel.key, verify) {
            return Err(refused("BadSignature"));
        }
        for (batch, opening) in batches {
            let (view, shown) = self.shown(&channel, *batch, opening)?;
            let (next, rules) = (channel.purse.next, self.channels.rules);
            let supply = rules.supply_window;
            let counted = channel.purse.count(&view.window, &shown, now, supply);
            counted.map_err(|_| refused("NotCounted"))?;
            if now > view.window.counted_until(rules.redeem_by, supply) {
                return Err(refused("NotCounted"));
            }
            let last = self.channels.counted.entry(id).or_default();
            *last = (*last).max(*batch);
            if let Some(marks) = self.channels.marks.get_mut(&id) {
                marks.note(now, next, *batch, demandable_for(supply));
            }
            let begun = view.announce_until.saturating_sub(rules.announce_window);
            if begun <= channel.purse.last(channel.expiry) {
                let due = now.saturating_add(paid_after(supply));
                channel.purse.wait(due.saturating_add(supply));
            }
        }
        let supply = self.channels.rules.supply_window;
        let paid = channel.purse.redeem(signed.voucher.sum, now, supply);
        self.pay(&channel.payee, paid);
        self.channels.open.insert(id, channel);
        let fields = vec![field("channel", &id), field("paid", &paid)];
        Ok(vec![event("Redeemed", fields)])
    }

    pub(super) fn hold_channel(
        &mut self,
        who: &AccountId32,
        id: ChannelId,
        (batch, opening): (BatchNumber, &ChannelOpening),
    ) -> Applied {
        let mut channel = self.channel_of(id)?;
        self.ensure_payee(who, &channel.payee)?;
        self.ensure_pays(&channel)?;
        let (view, shown) = self.shown(&channel, batch, opening)?;
        let rules = self.channels.rules;
        let begun = view.announce_until.saturating_sub(rules.announce_window);
        if begun > channel.purse.last(channel.expiry) {
            return Err(refused("NotHeld"));
        }
        let until = self.clock.saturating_add(rules.closing_period);
        let held = channel.purse.hold(&view.window, &shown, self.clock, until);
        held.map_err(|_| refused("NotHeld"))?;
        self.channels.open.insert(id, channel);
        let fields = vec![field("channel", &id), field("until", &until)];
        Ok(vec![event("Held", fields)])
    }

    fn shown(
        &self,
        channel: &ChannelView,
        batch: BatchNumber,
        opening: &ChannelOpening,
    ) -> Result<(BatchView, ProvenChannel), ChainError> {
        let view = self.batch_of(&(channel.payee.clone(), batch))?.clone();
        let shown = opening.verify(&view.window.root);
        Ok((view, shown.ok_or_else(|| refused("BadOpening"))?))
    }

    /// What was not paid when its provider was convicted is not paid any more.
    fn ensure_pays(&self, channel: &ChannelView) -> Result<(), ChainError> {
        match channel.channel >= self.standing(&channel.payee)?.since_channel {
            true => Ok(()),
            false => Err(refused("TooLate")),
        }
    }

    /// A demand of a receipt is over. What it has kept back is paid, where it was shown.
    pub(super) fn end_hold(&mut self, id: ChannelId, is_shown: bool) -> Option<ChainEvent> {
        let mut channel = self.channel_of(id).ok()?;
        channel.purse.end_demand();
        let mut paid = 0;
        if is_shown && self.ensure_pays(&channel).is_ok() {
            let supply = self.channels.rules.supply_window;
            paid = channel.purse.redeem(0, self.clock, supply);
            self.pay(&channel.payee, paid);
        }
        self.channels.open.insert(id, channel);
        let fields = vec![field("channel", &id), field("paid", &paid)];
        (paid > 0).then(|| event("Redeemed", fields))
    }

    pub(super) fn channel_of(&self, id: ChannelId) -> Result<ChannelView, ChainError> {
        let channel = self.channels.open.get(&id).cloned();
        channel.ok_or_else(|| refused("NoChannel"))
    }

    fn own_channel(&self, payer: &AccountId32, id: ChannelId) -> Result<ChannelView, ChainError> {
        let channel = self.channel_of(id)?;
        match channel.payer == *payer {
            true => Ok(channel),
            false => Err(refused("NotPayer")),
        }
    }

    fn ensure_payee(&self, who: &AccountId32, payee: &AccountId32) -> Result<(), ChainError> {
        let is_payee = who == payee || self.stash_in(who, Role::Provider).as_ref() == Some(payee);
        is_payee.then_some(()).ok_or_else(|| refused("NotPayee"))
    }

    fn check_expiry(&self, expiry: Time, after: Time) -> Result<(), ChainError> {
        let last = self.clock.saturating_add(self.channels.rules.max_life);
        let is_good = after < expiry && expiry <= last;
        is_good.then_some(()).ok_or_else(|| refused("BadExpiry"))
    }
}
