//! What shows to anybody that a receipt is in a batch on the chain.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::ApiError;

/// What shows that a receipt is in a batch on the chain, to whoever has that batch's root from the chain
/// itself: `clients/js` has a verifier for browsers. SCALE is that of `surety-channels`, hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Proof {
    /// Hash of the chain's first block, hexadecimal.
    pub genesis: String,
    /// The batch, of its provider's: they are numbered from 0.
    pub batch: u32,
    /// What was signed, with the signature: `SignedChunkStatement`.
    #[serde(with = "scale")]
    #[schema(value_type = String)]
    pub signed: Vec<u8>,
    /// What was asked: `Request`.
    #[serde(with = "scale")]
    #[schema(value_type = String)]
    pub request: Vec<u8>,
    /// Where in the batch that is: `ReceiptOpening`.
    #[serde(with = "scale")]
    #[schema(value_type = String)]
    pub opening: Vec<u8>,
    /// The same for people. A verifier reads it out of the others.
    pub says: Says,
}

/// What a receipt says, and the request that it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Says {
    /// The provider's account.
    pub provider: String,
    /// Its agent's, whose key has signed.
    pub agent: String,
    /// The channel that it is paid over.
    pub channel: u64,
    /// The request's number in it.
    pub nonce: u32,
    /// The model's id, hexadecimal.
    pub model: String,
    /// `generate`, or `embed`.
    pub operation: String,
    /// Content hash of the input, hexadecimal.
    pub input: String,
    /// Content hash of the output, hexadecimal: of a generation, of the words 0 and then its ids.
    pub output: String,
    /// Bytes of that.
    pub bytes: u32,
    /// Units: items, or tokens with those of the prompt.
    pub units: u32,
    /// What one of them costs, in plancks, as a decimal number.
    #[serde(with = "crate::ledger::amount")]
    #[schema(value_type = String)]
    pub unit_price: u128,
    /// What all of them cost, in plancks, as a decimal number.
    #[serde(with = "crate::ledger::amount")]
    #[schema(value_type = String)]
    pub price: u128,
    /// How it ended: `stop`, `length`, `cancelled` or `cut`.
    pub end: String,
}

/// Why there is no proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoProof {
    /// It may be in one soon.
    #[error("no batch on the chain that its provider still knows has this receipt: ask again in a while")]
    NotBatched,
    /// There is nothing to ask with.
    #[error("this gateway has not kept what the provider has signed")]
    NotKept,
    /// Its provider shows nothing, or nothing that holds.
    #[error("its provider does not show where the receipt is: {0}")]
    Unshown(String),
}

impl NoProof {
    /// For programs.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::NotBatched => "not_batched",
            Self::NotKept => "not_kept",
            Self::Unshown(_) => "not_shown",
        }
    }
}

impl From<NoProof> for ApiError {
    fn from(why: NoProof) -> Self {
        let (status, retry_after) = match why {
            NoProof::NotBatched => (StatusCode::CONFLICT, Some(RETRY_SECONDS)),
            NoProof::NotKept => (StatusCode::CONFLICT, None),
            NoProof::Unshown(_) => (StatusCode::SERVICE_UNAVAILABLE, Some(RETRY_SECONDS)),
        };
        Self {
            retry_after,
            ..Self::new(status, why.code(), why.to_string())
        }
    }
}

/// Providers batch in minutes at the soonest.
const RETRY_SECONDS: u64 = 60;

/// Bytes, as hexadecimal digits after `0x`.
pub(crate) mod scale {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("0x{}", hex::encode(bytes)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        let digits = text.strip_prefix("0x").ok_or_else(|| D::Error::custom("no 0x"))?;
        hex::decode(digits).map_err(D::Error::custom)
    }
}
