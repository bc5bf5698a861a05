//! What a payee keeps of a channel: whether it goes on serving.
//!
//! Requests of one channel are served at once, and paid out of one sum: what was served in all may not be
//! more than the best voucher. So vouchers may overtake each other, what one request leaves over is the next
//! one's, and **whatever either side does, neither loses more than what is paid ahead**: a chunk of each open
//! request.

use alloc::vec::Vec;
use core::fmt;

use sp_core::H256;

use crate::{ChannelTerms, Nonce, OPEN_REQUESTS_MAX, Time, Voucher, VoucherRefusal};

/// The payee's account of a channel. It is as good as the journal that it is kept in: a payee that has lost
/// it takes nothing more over the channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally<AccountId> {
    /// What the chain says of the channel.
    pub terms: ChannelTerms<AccountId>,
    /// Sum of the best voucher, in plancks.
    sum: u128,
    /// What was served costs, in plancks.
    served: u128,
    /// Number of the next request.
    next: Nonce,
    /// Requests that are being answered, [`OPEN_REQUESTS_MAX`] at most.
    open: Vec<(Nonce, H256)>,
}

/// Nothing more is served before a voucher of this much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unpaid {
    /// The least sum that would do, in plancks.
    pub sum: u128,
}

impl fmt::Display for Unpaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a voucher of {} plancks in all has to come first", self.sum)
    }
}

impl core::error::Error for Unpaid {}

impl<AccountId: PartialEq> Tally<AccountId> {
    /// Of a channel over which nothing was asked.
    pub const fn new(terms: ChannelTerms<AccountId>) -> Self {
        Self {
            terms,
            sum: 0,
            served: 0,
            next: 0,
            open: Vec::new(),
        }
    }

    /// Takes a voucher whose signature was checked. One for the next number opens that request, and need not
    /// add anything if enough is left of others; one for an open request has to. `at` is the latest time at
    /// which it might have to be redeemed. It is worth keeping if its sum is [`Self::sum`] now.
    ///
    /// # Errors
    /// [`VoucherRefusal`]; nothing changes then.
    pub fn take(&mut self, voucher: &Voucher<AccountId>, at: Time) -> Result<(), VoucherRefusal> {
        voucher.check(&self.terms, at)?;
        let last = self.sum;
        let known = self.open.iter().find(|(nonce, _)| *nonce == voucher.nonce);
        match known {
            Some((_, request)) if *request != voucher.request => return Err(VoucherRefusal::OtherRequest),
            Some(_) if voucher.sum <= last => return Err(VoucherRefusal::NotLarger { last }),
            Some(_) => {}
            None if voucher.nonce != self.next => {
                return Err(VoucherRefusal::OtherNonce { next: self.next });
            }
            None if voucher.sum < last => return Err(VoucherRefusal::NotLarger { last }),
            None if self.open.len() >= OPEN_REQUESTS_MAX as usize => return Err(VoucherRefusal::TooManyOpen),
            None => {
                self.next = self.next.checked_add(1).ok_or(VoucherRefusal::TooManyOpen)?;
                self.open.push((voucher.nonce, voucher.request));
            }
        }
        self.sum = voucher.sum;
        Ok(())
    }

    /// Counts a chunk that is about to be said, of any open request.
    ///
    /// # Errors
    /// [`Unpaid`] where vouchers do not cover it; nothing changes then.
    pub fn serve(&mut self, price: u128) -> Result<(), Unpaid> {
        let sum = self.served.saturating_add(price);
        if sum > self.sum {
            return Err(Unpaid { sum });
        }
        self.served = sum;
        Ok(())
    }

    /// A request is over.
    pub fn end(&mut self, nonce: Nonce) {
        self.open.retain(|(open, _)| *open != nonce);
    }

    /// Sum of the best voucher, in plancks.
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// What was served costs, in plancks: never more than [`Self::sum`].
    pub const fn served(&self) -> u128 {
        self.served
    }
}
