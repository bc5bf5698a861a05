//! What was demanded over a channel, and what one more receipt costs for that.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;

use crate::Nonce;

/// Most demands over a channel for which each costs no more than the least.
pub const DEMANDS_AT_BASE: u32 = 32;

/// How often receipts of a channel were demanded, by whomever.
#[derive(
    Clone, Copy, Default, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Demanded {
    /// How often, for as long as there is the channel.
    pub times: u32,
    /// Requests that it has had at least, by the numbers that were demanded.
    pub requests: u32,
}

impl Demanded {
    /// Receipt `nonce` is demanded once more. Returns what that costs beside `of_receipt`, the least price,
    /// in plancks: nothing for each request of the channel once, 32 times at most, and `of_receipt` more for
    /// each time that as many were demanded before. So having the same shown again and again costs its
    /// provider no more than it can keep for the channel.
    pub fn demand(&mut self, nonce: Nonce, of_receipt: u128) -> u128 {
        self.requests = self.requests.max(nonce.saturating_add(1));
        let in_a_round = self.requests.min(DEMANDS_AT_BASE);
        let rounds = self.times.checked_div(in_a_round).unwrap_or(0);
        self.times = self.times.saturating_add(1);
        of_receipt.saturating_mul(rounds.into())
    }
}
