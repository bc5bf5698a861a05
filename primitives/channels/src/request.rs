//! What is asked for over a channel.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_types::{ContentHash, ModelId, input::Work, model::Operation};

/// Begins what is hashed.
const DOMAIN: &[u8] = b"surety-channel-request";

/// One piece of work, and what each unit of it costs.
///
/// Vouchers and statements name it by its hash. So the payer has signed what it wanted and at which price,
/// and the payee for what it answers.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Request {
    /// Model id.
    pub model: ModelId,
    /// What to do with it.
    pub operation: Operation,
    /// Content hash of the input: ids of tokens (`surety_types::input`).
    pub input: ContentHash,
    /// Size of the input, in bytes.
    pub input_bytes: u32,
    /// Most units that are paid for: items, or tokens with those of the prompt.
    pub units_max: u32,
    /// Price of a unit, in plancks.
    pub unit_price: u128,
}

impl Request {
    /// `blake2_256(SCALE(domain, request))`.
    pub fn hash(&self) -> H256 {
        H256(blake2_256(&(DOMAIN, self).encode()))
    }

    /// What its input has to fit.
    pub const fn work(&self) -> Work {
        Work {
            operation: self.operation,
            input_bytes: self.input_bytes,
            units_max: self.units_max,
        }
    }

    /// What so many units cost, in plancks; nothing where that is beyond 128 bits.
    pub fn price(&self, units: u32) -> Option<u128> {
        self.unit_price.checked_mul(units.into())
    }
}
