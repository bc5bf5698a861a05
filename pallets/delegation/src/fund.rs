//! Money that many have shares of: a part of it is lost in the same time for one holder as for all.
//!
//! A share begins as a planck, and is never worth more than before: who comes pays for what does not divide,
//! who leaves leaves it behind. So nobody gains by coming and going in pieces, a share is worth a planck at
//! most, and in a fund that has lost nothing exactly that.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_arithmetic::{Rounding, helpers_128bit::multiply_by_rational_with_rounding};
use sp_runtime::Perquintill;

/// A fund in which a share is worth less than one planck by so much takes no more money: its shares would
/// come to outgrow 128 bits.
const DEPLETION: u128 = 1_000;

/// Money, and the shares of it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Fund {
    /// In plancks. Never more than there are shares.
    pub amount: u128,
    /// All holders' together.
    pub shares: u128,
}

impl Fund {
    /// Whether it lost more than 99.9 % of what was put in.
    pub fn is_depleted(&self) -> bool {
        self.amount.saturating_mul(DEPLETION) < self.shares
    }

    /// What so many shares are worth, rounded down.
    pub fn worth(&self, shares: u128) -> u128 {
        scaled(shares, self.amount, self.shares, Rounding::Down).unwrap_or_default()
    }

    /// Shares for which `amount` would be taken. `None` of a fund that is depleted.
    pub fn shares_for(&self, amount: u128) -> Option<u128> {
        if self.is_depleted() {
            return None;
        }
        if self.shares == 0 {
            return Some(amount);
        }
        scaled(amount, self.shares, self.amount, Rounding::Down)
    }

    /// Fewest shares that are worth `amount`. `None` where there are not so many.
    pub fn shares_worth(&self, amount: u128) -> Option<u128> {
        let shares = scaled(amount, self.shares, self.amount, Rounding::Up)?;
        (shares <= self.shares).then_some(shares)
    }

    /// Takes `amount` in. Returns the shares that it is given for; `None`, and nothing changes, of a fund
    /// that is depleted.
    pub fn add(&mut self, amount: u128) -> Option<u128> {
        let shares = self.shares_for(amount)?;
        let worth = match self.shares {
            0 => amount,
            _ => self.worth(shares),
        };
        *self = Self {
            amount: self.amount.checked_add(worth)?,
            shares: self.shares.checked_add(shares)?,
        };
        Some(shares)
    }

    /// Gives so many shares back. Returns what they were worth.
    pub fn remove(&mut self, shares: u128) -> u128 {
        let worth = self.worth(shares);
        let gone = scaled(shares, self.amount, self.shares, Rounding::Up).unwrap_or_default();
        self.amount = self.amount.saturating_sub(gone);
        self.shares = self.shares.saturating_sub(shares);
        worth
    }

    /// Loses a part, rounded up. Returns how much that is.
    pub fn slash(&mut self, part: Perquintill) -> u128 {
        let lost = part.mul_ceil(self.amount);
        self.amount = self.amount.saturating_sub(lost);
        lost
    }
}

/// `value * numerator / denominator`; `None` where that is too large, or divides by zero.
fn scaled(value: u128, numerator: u128, denominator: u128, rounding: Rounding) -> Option<u128> {
    multiply_by_rational_with_rounding(value, numerator, denominator, rounding)
}
