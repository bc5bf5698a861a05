//! What can be redeemed, and when.
//!
//! A voucher alone pays nothing: what it says was earned has to stand in batches whose windows are over and
//! whose disputes are. Batches of a channel count in the order of its requests, each once and none left out.
//! So whatever is paid has stood where a draw could meet it, and a receipt that is held back keeps back the
//! pay of all that came after it.

use core::fmt;

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::{ConstU32, bounded::BoundedVec};

use crate::{
    BatchRoot, ChannelId, Nonce, ProvenChannel, ProvenReceipt, Seasoned, Sums, Time, counted_for,
    deposit_season, kept_back_for, paid_after,
};

/// Most receipts of a batch that are struck out one by one. With more of them nothing of it is paid.
pub const STRUCK_MAX: u32 = 32;

/// A receipt that is not paid.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Struck {
    /// Channel id.
    pub channel: ChannelId,
    /// Number of the request.
    pub nonce: Nonce,
    /// What it would have paid, in plancks.
    pub price: u128,
}

impl From<ProvenReceipt> for Struck {
    fn from(receipt: ProvenReceipt) -> Self {
        Self {
            channel: receipt.channel,
            nonce: receipt.nonce,
            price: receipt.price,
        }
    }
}

/// A batch on its way to being paid.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct BatchWindow {
    /// What was committed.
    pub root: BatchRoot,
    /// Last time at which it can be disputed.
    pub until: Time,
    /// Disputes and demands about it that are open.
    pub disputes: u32,
    /// Receipts that were found wrong.
    pub struck: BoundedVec<Struck, ConstU32<STRUCK_MAX>>,
    /// Nothing of it is paid.
    pub is_void: bool,
}

impl BatchWindow {
    /// One that can be disputed until `until`.
    pub fn new(root: BatchRoot, until: Time) -> Self {
        Self {
            root,
            until,
            disputes: 0,
            struck: BoundedVec::new(),
            is_void: false,
        }
    }

    /// Whether nothing can change any more what it pays.
    pub const fn is_final(&self, now: Time) -> bool {
        self.until < now && self.disputes == 0
    }

    /// Whether all that it says has stood where it could be disputed.
    pub const fn is_settled(&self, now: Time) -> bool {
        self.is_final(now) && !self.is_void
    }

    /// Last time at which it may be counted, where it is kept for `redeem_by` after its window, and what is
    /// demanded is shown within `supply`: all that is counted after it for
    /// [`demandable_for`](crate::demandable_for) can be demanded for as long, and shown.
    pub const fn counted_until(&self, redeem_by: Time, supply: Time) -> Time {
        self.until.saturating_add(counted_for(redeem_by, supply))
    }

    /// Last time at which a receipt is demanded that may be in it: it is kept until that has to be shown.
    pub const fn demanded_until(&self, redeem_by: Time, supply: Time) -> Time {
        self.until.saturating_add(redeem_by).saturating_sub(supply)
    }

    /// A receipt was found wrong: it is not paid. With more than [`STRUCK_MAX`] of them nothing is.
    pub fn strike(&mut self, receipt: Struck) {
        if !self.has_struck(receipt.channel, receipt.nonce) {
            self.is_void |= self.struck.try_push(receipt).is_err();
        }
    }

    /// Whether the receipt of a request was struck out.
    pub fn has_struck(&self, channel: ChannelId, nonce: Nonce) -> bool {
        let mut struck = self.struck.iter();
        struck.any(|struck| (struck.channel, struck.nonce) == (channel, nonce))
    }

    /// A fault was found that says nothing of single receipts: none is paid.
    pub fn void(&mut self) {
        self.is_void = true;
    }

    /// Its receipts that were not found wrong, and what they cost; nothing where none is paid.
    pub fn settled(&self) -> Sums {
        if self.is_void {
            return Sums::default();
        }
        let struck = self.struck.iter();
        struck.fold(self.root.sums, |left, struck| Sums {
            receipts: left.receipts.saturating_sub(1),
            price: left.price.saturating_sub(struck.price),
        })
    }

    /// What is paid of a channel's receipts in it, in plancks.
    pub fn payable(&self, channel: &ProvenChannel) -> u128 {
        if self.is_void {
            return 0;
        }
        let of_channel = |struck: &&Struck| struck.channel == channel.channel && channel.has(struck.nonce);
        let struck = self.struck.iter().filter(of_channel).map(|struck| struck.price);
        struck.fold(channel.total.sums.price, u128::saturating_sub)
    }
}

/// A provider's standing lock is for no more than this at a time.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Standing {
    /// Most that its batches may cost which are not final (E), in plancks.
    pub cap: u128,
    /// What they cost, in plancks.
    pub open: u128,
}

/// A batch is refused: wait until earlier ones are final, or lock more.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct BeyondCap {
    /// What it may cost at most now, in plancks.
    pub room: u128,
}

impl fmt::Display for BeyondCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the standing lock covers {} plancks more: wait until earlier batches are final, or lock more",
            self.room
        )
    }
}

impl core::error::Error for BeyondCap {}

impl Standing {
    /// A batch of this price is committed.
    ///
    /// # Errors
    /// [`BeyondCap`]; nothing changes then.
    pub fn commit(&mut self, price: u128) -> Result<(), BeyondCap> {
        let room = self.cap.saturating_sub(self.open);
        if price > room {
            return Err(BeyondCap { room });
        }
        self.open = self.open.saturating_add(price);
        Ok(())
    }

    /// A batch of this price is final.
    pub fn finish(&mut self, price: u128) {
        self.open = self.open.saturating_sub(price);
    }
}

/// Why a batch does not count for a channel.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum NotCounted {
    /// It can still be disputed, or is: wait.
    NotFinal,
    /// The opening is of another channel.
    OtherChannel,
    /// The batch with this request has to be counted first.
    OtherNonce {
        /// The first request that was not counted.
        next: Nonce,
    },
    /// There are more requests than can be numbered, or they cost more than can be counted.
    Overflow,
}

impl fmt::Display for NotCounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFinal => write!(f, "the batch is not final: wait"),
            Self::OtherChannel => write!(f, "the opening is of another channel"),
            Self::OtherNonce { next } => write!(f, "the batch with request {next} has to be counted first"),
            Self::Overflow => write!(f, "the requests are more than can be counted"),
        }
    }
}

impl core::error::Error for NotCounted {}

/// Why a batch holds nothing back for a channel.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum NotHeld {
    /// It is final: count it.
    Final,
    /// The opening is of another channel.
    OtherChannel,
    /// It was counted.
    Counted,
}

impl fmt::Display for NotHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Final => "the batch is final: count it",
            Self::OtherChannel => "the opening is of another channel",
            Self::Counted => "the batch was counted",
        })
    }
}

impl core::error::Error for NotHeld {}

/// The channel is being closed: open another one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the channel is being closed: open another one")
    }
}

impl core::error::Error for Closed {}

/// The money of a channel. In each state `paid <= counted` and `paid <= deposit`; what there is for it is
/// `deposit - paid + kept`. In all of this `supply` is the time within which what is demanded is shown.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Purse {
    /// Channel id.
    pub channel: ChannelId,
    /// All that was ever deposited, in plancks; without what the payee has given back.
    pub deposit: u128,
    /// When that was.
    pub deposits: Seasoned,
    /// What it has given back, in plancks: it may have been asked for as much.
    pub returned: u128,
    /// What of that goes to the payer only when the channel ends, in plancks: its record stays until then.
    pub kept: u128,
    /// What final batches have of it, in plancks.
    pub counted: u128,
    /// When they were counted: it is due a while later ([`paid_after`]).
    pub counts: Seasoned,
    /// The same: no demand keeps it back any longer than [`kept_back_for`].
    pub old_counts: Seasoned,
    /// The first request that they do not have.
    pub next: Nonce,
    /// The largest sum of a voucher that was redeemed, in plancks.
    pub signed: u128,
    /// What the payee has got, in plancks.
    pub paid: u128,
    /// Receipts of it that are demanded now. While there are any nothing is paid of what was counted lately,
    /// and it does not end.
    pub demands: u32,
    /// Last time for the payee, where the payer wants to close.
    pub closing: Option<Time>,
    /// Last time for the payee, where it had to wait: for a batch that is late to become final, for what was
    /// counted to be due, or for a demand to be met.
    pub held_until: Time,
}

impl Purse {
    /// Of a channel that is opened `now`.
    pub const fn new(channel: ChannelId, deposit: u128, now: Time) -> Self {
        Self {
            channel,
            deposit,
            deposits: Seasoned::since(deposit, now),
            returned: 0,
            kept: 0,
            counted: 0,
            counts: Seasoned::since(0, now),
            old_counts: Seasoned::since(0, now),
            next: 0,
            signed: 0,
            paid: 0,
            demands: 0,
            closing: None,
            held_until: 0,
        }
    }

    /// The payer deposits more.
    ///
    /// # Errors
    /// [`Closed`] while it is being closed, or where nobody can have as much; nothing changes then.
    pub fn top_up(&mut self, amount: u128, now: Time, supply: Time) -> Result<(), Closed> {
        let deposit = self
            .deposit
            .checked_add(amount)
            .filter(|_| self.closing.is_none());
        self.deposit = deposit.ok_or(Closed)?;
        self.deposits.grow(self.deposit, now, deposit_season(supply));
        Ok(())
    }

    /// What of the deposit has stood for [`deposit_season`], in plancks.
    pub fn stood(&self, now: Time, supply: Time) -> u128 {
        let stood = self.deposits.stood(now, deposit_season(supply));
        stood.min(self.deposit)
    }

    /// Counts what a batch has of it: `channel` was shown under that batch's root. It is due a while later
    /// ([`paid_after`]).
    ///
    /// # Errors
    /// [`NotCounted`]; nothing changes then.
    pub fn count(
        &mut self,
        window: &BatchWindow,
        channel: &ProvenChannel,
        now: Time,
        supply: Time,
    ) -> Result<(), NotCounted> {
        if !window.is_final(now) {
            return Err(NotCounted::NotFinal);
        }
        if channel.channel != self.channel {
            return Err(NotCounted::OtherChannel);
        }
        if channel.first != self.next {
            return Err(NotCounted::OtherNonce { next: self.next });
        }
        let next = self.next.checked_add(channel.total.sums.receipts);
        let counted = self.counted.checked_add(window.payable(channel));
        let (Some(next), Some(counted)) = (next, counted) else {
            return Err(NotCounted::Overflow);
        };
        (self.next, self.counted) = (next, counted);
        self.counts.grow(counted, now, paid_after(supply));
        self.old_counts.grow(counted, now, kept_back_for(supply));
        Ok(())
    }

    /// What a voucher of this sum, or an earlier one, gets the payee now, in plancks. Its signature, channel
    /// and expiry were checked.
    pub fn redeemable(&self, sum: u128, now: Time, supply: Time) -> u128 {
        let due = match self.demands {
            0 => self.counts.stood(now, paid_after(supply)),
            _ => self.old_counts.stood(now, kept_back_for(supply)),
        };
        self.covered(sum, due)
    }

    /// What such a voucher gets it in the end, in plancks: also what is not due yet, or held back by what is
    /// demanded.
    pub fn pending(&self, sum: u128) -> u128 {
        self.covered(sum, self.counted)
    }

    fn covered(&self, sum: u128, counted: u128) -> u128 {
        let signed = sum.max(self.signed);
        signed.min(counted).min(self.deposit).saturating_sub(self.paid)
    }

    /// When more of what was counted is due; nothing where all is. What is demanded may hold it back.
    pub fn due_at(&self, now: Time, supply: Time) -> Option<Time> {
        self.counts.next(now, paid_after(supply))
    }

    /// Pays what is redeemable. Returns how much it is.
    pub fn redeem(&mut self, sum: u128, now: Time, supply: Time) -> u128 {
        self.signed = self.signed.max(sum);
        let amount = self.redeemable(sum, now, supply);
        self.paid = self.paid.saturating_add(amount);
        amount
    }

    /// A receipt of it is demanded: nothing that was counted lately is paid until it is shown, or its payee
    /// convicted. The payee has until `until` for what that keeps back.
    pub fn demand(&mut self, until: Time) {
        self.demands = self.demands.saturating_add(1);
        self.wait(until);
    }

    /// One of those demands is over.
    pub fn end_demand(&mut self) {
        self.demands = self.demands.saturating_sub(1);
    }

    /// The payer wants to close: the payee has until `until` for what it has not redeemed. That is later than
    /// any receipt there can be needs to become final. Who asks again gains nothing.
    pub fn close(&mut self, until: Time) {
        self.closing.get_or_insert(until);
    }

    /// The payee wants nothing more: all that it has not got is the payer's again. Up to `kept` of it only
    /// when the channel ends, so that its record is not there for nothing. Returns what goes back now, in
    /// plancks. The channel ends no sooner: until then the payee answers for what it has signed.
    pub fn give_back(&mut self, until: Time, kept: u128) -> u128 {
        self.close(until);
        let left = self.deposit.saturating_sub(self.paid);
        let keep = kept.saturating_sub(self.kept).min(left);
        self.deposit = self.paid;
        self.returned = self.returned.saturating_add(left);
        self.kept = self.kept.saturating_add(keep);
        left.saturating_sub(keep)
    }

    /// What there is for it, in plancks.
    pub const fn held(&self) -> u128 {
        self.deposit.saturating_sub(self.paid).saturating_add(self.kept)
    }

    /// What may have been asked for over the channel and no final batch has, in plancks: all that was
    /// deposited, also where the payee has given it back.
    pub const fn uncounted(&self) -> u128 {
        let all = self.deposit.saturating_add(self.returned);
        all.saturating_sub(self.counted)
    }

    /// A batch with something of it is not final yet, because it is disputed or was committed late: nothing
    /// goes back to the payer until `until`. So nobody gets its money back by disputing what it has to pay.
    /// `channel` was shown under that batch's root.
    ///
    /// # Errors
    /// [`NotHeld`]; nothing changes then.
    pub fn hold(
        &mut self,
        window: &BatchWindow,
        channel: &ProvenChannel,
        now: Time,
        until: Time,
    ) -> Result<(), NotHeld> {
        if window.is_final(now) {
            return Err(NotHeld::Final);
        }
        if channel.channel != self.channel {
            return Err(NotHeld::OtherChannel);
        }
        if channel.first < self.next {
            return Err(NotHeld::Counted);
        }
        self.wait(until);
        Ok(())
    }

    /// The payee has to wait: nothing goes back to the payer until `until`.
    pub fn wait(&mut self, until: Time) {
        self.held_until = self.held_until.max(until);
    }

    /// What is still there for the payer when the channel ends, in plancks: once the payee's time is over, or
    /// after its expiry, and nothing of it is demanded. Nothing before.
    pub fn refund(&self, now: Time, expiry: Time) -> Option<u128> {
        let is_over = self.demands == 0 && self.last(expiry).max(self.held_until) < now;
        is_over.then(|| self.held())
    }

    /// The payee's last time, but for what it has to wait for.
    pub fn last(&self, expiry: Time) -> Time {
        self.closing.map_or(expiry, |until| until.min(expiry))
    }
}
