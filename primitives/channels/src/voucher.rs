//! What a payer signs.
//!
//! A voucher says how much of the channel's deposit the payee has earned **in all**, and which request made
//! the payer say so. The highest is worth all that were before it, so the payee keeps one and redeems one.
//!
//! Signing and checking is for those who have sr25519: they hand in a function. A payer's key may be a
//! wallet's, which signs bytes only between `<Bytes>` and `</Bytes>` ([`wallet_bytes`]); both forms count.

use core::fmt;

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;

use crate::{ChannelId, Nonce, Time};

/// Keeps a voucher from being taken for anything else that the key signs.
const DOMAIN: &[u8] = b"surety-channel-voucher";

/// The same of a cancellation.
const CANCEL_DOMAIN: &[u8] = b"surety-channel-cancel";

const OPENING_TAG: &[u8; 7] = b"<Bytes>";
const CLOSING_TAG: &[u8; 8] = b"</Bytes>";

/// What both sides read of a channel on the chain.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct ChannelTerms<AccountId> {
    /// Channel id.
    pub channel: ChannelId,
    /// Whom it pays: a provider's stash.
    pub payee: AccountId,
    /// The key that signs its vouchers.
    pub key: AccountId,
    /// All that was ever deposited, in plancks: what was paid out is not taken off.
    pub deposit: u128,
    /// Last time at which vouchers are redeemed.
    pub expiry: Time,
}

/// A payer's promise.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Voucher<AccountId> {
    /// Channel id.
    pub channel: ChannelId,
    /// Whom it pays.
    pub payee: AccountId,
    /// Last time at which it is redeemed.
    pub expiry: Time,
    /// The request that it was signed for, by its number.
    pub nonce: Nonce,
    /// The same, by its hash ([`Request::hash`](crate::Request::hash)).
    pub request: H256,
    /// What the payee has got and may still get over this channel, all together, in plancks.
    pub sum: u128,
}

/// Why a voucher is not taken.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum VoucherRefusal {
    /// It is for another channel: sign one for this one.
    OtherChannel,
    /// It pays somebody else than the channel does.
    OtherPayee,
    /// It says that it lives longer than its channel: extend the channel first.
    OutlivesChannel,
    /// It would have expired before it could be redeemed: extend the channel, and sign a later expiry.
    Expired,
    /// It is above the deposit: top the channel up.
    AboveDeposit {
        /// All that was ever deposited, in plancks.
        deposit: u128,
    },
    /// It adds nothing to an earlier one: sign a larger sum.
    NotLarger {
        /// The earlier one's sum, in plancks.
        last: u128,
    },
    /// Requests are taken one number after the other: sign this one.
    OtherNonce {
        /// The number of the channel's next request.
        next: Nonce,
    },
    /// Another request was taken under this number: take a new number for a new request.
    OtherRequest,
    /// As many requests of the channel are open as may be at once: wait until one is over.
    TooManyOpen,
}

impl fmt::Display for VoucherRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherChannel => write!(f, "the voucher is for another channel"),
            Self::OtherPayee => write!(f, "the voucher pays somebody else"),
            Self::OutlivesChannel => write!(f, "the voucher outlives its channel: extend the channel first"),
            Self::Expired => write!(
                f,
                "the voucher expires before it can be redeemed: extend the channel"
            ),
            Self::AboveDeposit { deposit } => {
                write!(
                    f,
                    "the voucher is above the deposit of {deposit} plancks: top the channel up"
                )
            }
            Self::NotLarger { last } => {
                write!(
                    f,
                    "the voucher adds nothing to an earlier one of {last} plancks: sign a larger sum"
                )
            }
            Self::OtherNonce { next } => write!(f, "the channel's next request is number {next}"),
            Self::OtherRequest => write!(f, "the number of the request was used for another one"),
            Self::TooManyOpen => write!(
                f,
                "too many requests of the channel are open: wait for one to end"
            ),
        }
    }
}

impl core::error::Error for VoucherRefusal {}

impl<AccountId: Encode> Voucher<AccountId> {
    /// What is signed: `blake2_256(SCALE(domain, genesis, voucher))`. `genesis` is that of the chain the
    /// channel is on.
    pub fn message(&self, genesis: &H256) -> [u8; 32] {
        blake2_256(&(DOMAIN, genesis, self).encode())
    }
}

impl<AccountId: PartialEq> Voucher<AccountId> {
    /// Whether it is one of the channel that can be redeemed at `at`. A payee asks for the latest time at
    /// which it might have to redeem it, the chain for now. Whether it is signed is asked elsewhere
    /// ([`SignedVoucher::is_signed`]).
    ///
    /// # Errors
    /// The first [`VoucherRefusal`] that is found.
    pub fn check(&self, terms: &ChannelTerms<AccountId>, at: Time) -> Result<(), VoucherRefusal> {
        if self.channel != terms.channel {
            return Err(VoucherRefusal::OtherChannel);
        }
        if self.payee != terms.payee {
            return Err(VoucherRefusal::OtherPayee);
        }
        if self.expiry > terms.expiry {
            return Err(VoucherRefusal::OutlivesChannel);
        }
        if at > self.expiry {
            return Err(VoucherRefusal::Expired);
        }
        if self.sum > terms.deposit {
            let deposit = terms.deposit;
            return Err(VoucherRefusal::AboveDeposit { deposit });
        }
        Ok(())
    }
}

/// A voucher with its signature.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct SignedVoucher<AccountId> {
    /// What was promised.
    pub voucher: Voucher<AccountId>,
    /// The channel's key's sr25519 signature of [`Voucher::message`], bare or as [`wallet_bytes`].
    pub signature: [u8; 64],
}

impl<AccountId: Encode> SignedVoucher<AccountId> {
    /// Whether `key` has signed it. `verify` says whether a key has signed some bytes.
    pub fn is_signed(
        &self,
        genesis: &H256,
        key: &AccountId,
        verify: impl Fn(&AccountId, &[u8], &[u8; 64]) -> bool,
    ) -> bool {
        is_payers(&self.voucher.message(genesis), key, &self.signature, verify)
    }
}

/// A payer's word that it wants no more of a request: an answer may end anywhere then.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Cancel<AccountId> {
    /// Channel id.
    pub channel: ChannelId,
    /// Whom the channel pays.
    pub payee: AccountId,
    /// The request, by its number.
    pub nonce: Nonce,
    /// The same, by its hash.
    pub request: H256,
}

impl<AccountId: Encode> Cancel<AccountId> {
    /// What is signed: `blake2_256(SCALE(domain, genesis, cancel))`.
    pub fn message(&self, genesis: &H256) -> [u8; 32] {
        blake2_256(&(CANCEL_DOMAIN, genesis, self).encode())
    }
}

/// A cancellation with its signature.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct SignedCancel<AccountId> {
    /// What was said.
    pub cancel: Cancel<AccountId>,
    /// The channel's key's sr25519 signature of [`Cancel::message`], bare or as [`wallet_bytes`].
    pub signature: [u8; 64],
}

impl<AccountId: Encode> SignedCancel<AccountId> {
    /// Whether `key` has signed it, as [`SignedVoucher::is_signed`].
    pub fn is_signed(
        &self,
        genesis: &H256,
        key: &AccountId,
        verify: impl Fn(&AccountId, &[u8], &[u8; 64]) -> bool,
    ) -> bool {
        is_payers(&self.cancel.message(genesis), key, &self.signature, verify)
    }
}

fn is_payers<AccountId>(
    message: &[u8; 32],
    key: &AccountId,
    signature: &[u8; 64],
    verify: impl Fn(&AccountId, &[u8], &[u8; 64]) -> bool,
) -> bool {
    verify(key, message, signature) || verify(key, &wallet_bytes(message), signature)
}

/// A message between `<Bytes>` and `</Bytes>`: all that a wallet signs which is no transaction.
pub fn wallet_bytes(message: &[u8; 32]) -> [u8; 47] {
    let mut wrapped = [0; 47];
    let parts = OPENING_TAG.iter().chain(message).chain(CLOSING_TAG);
    for (to, from) in wrapped.iter_mut().zip(parts) {
        *to = *from;
    }
    wrapped
}
