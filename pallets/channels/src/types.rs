//! What is kept.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_arithmetic::Perquintill;
use surety_channels::{BatchNumber, ChannelTerms, Purse, Standing, Time};

/// Says whether a key has signed some bytes: 32 of a message, or 47 where a wallet has wrapped them.
pub trait SignedBytes<AccountId> {
    /// Whether `key` has signed `bytes`, by sr25519.
    fn is_signed(key: &AccountId, bytes: &[u8], signature: &[u8; 64]) -> bool;
}

/// A channel.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Channel<AccountId> {
    /// Who deposits.
    pub payer: AccountId,
    /// Whom it pays: a provider's stash.
    pub payee: AccountId,
    /// The key that signs its vouchers.
    pub key: AccountId,
    /// Last time at which vouchers are redeemed.
    pub expiry: Time,
    /// Its money.
    pub purse: Purse,
}

impl<AccountId: Clone> Channel<AccountId> {
    /// What vouchers are checked against.
    pub fn terms(&self) -> ChannelTerms<AccountId> {
        ChannelTerms {
            channel: self.purse.channel,
            payee: self.payee.clone(),
            key: self.key.clone(),
            deposit: self.purse.deposit,
            expiry: self.expiry,
        }
    }

    /// What is on hold for it, in plancks.
    pub const fn held(&self) -> u128 {
        self.purse.deposit.saturating_sub(self.purse.paid)
    }
}

/// What a payer has in channels.
#[derive(
    Clone, Copy, Default, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Payer {
    /// How many.
    pub channels: u32,
}

/// What a provider stands behind its offer with. Batches are final in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Provider {
    /// Its lock, in plancks; 0 where it sells nothing.
    pub lock: u128,
    /// What that is for.
    pub standing: Standing,
    /// The part of what it redeems that pays for audits.
    pub levy: Perquintill,
    /// Channels that pay it.
    pub channels: u32,
    /// The oldest batch that is kept.
    pub oldest: BatchNumber,
    /// The oldest batch whose price is in the open sum.
    pub unfinished: BatchNumber,
    /// Its next batch.
    pub next: BatchNumber,
    /// Block of the chain with its latest batch.
    pub batched_at: u32,
}
