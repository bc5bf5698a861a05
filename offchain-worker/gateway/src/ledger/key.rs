//! Keys, of which the ledger has a hash each.

use serde::{Deserialize, Serialize};

use super::amount;
use crate::api::now;

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyTerms {
    /// Most that it may spend, ever, in the token's smallest unit.
    #[serde(with = "amount")]
    pub cap: u128,
    /// Requests a minute.
    pub requests_per_minute: u32,
    /// Tokens a minute, asked and answered.
    pub tokens_per_minute: u32,
}

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// What it is called in lists: the first 16 bytes of its hash.
    pub id: String,
    /// All of the hash.
    pub(super) hash: String,
    /// For people.
    pub label: String,
    /// What it may do.
    pub terms: KeyTerms,
    /// Spent.
    #[serde(with = "amount")]
    pub spent: u128,
    /// Reserved by open calls.
    #[serde(with = "amount")]
    pub reserved: u128,
    /// It opens nothing any more.
    pub revoked: bool,
    /// Seconds since 1970.
    pub created_unix: u64,
}

impl Key {
    /// Whether somebody can use it.
    pub fn opens(&self) -> bool {
        !self.revoked && !self.hash.is_empty()
    }
}

pub(super) fn new_key(id: String, hash: String, label: &str, terms: KeyTerms) -> Key {
    Key {
        id,
        hash,
        label: label.chars().take(128).collect(),
        terms,
        spent: 0,
        reserved: 0,
        revoked: false,
        created_unix: now(),
    }
}

pub(super) fn hash(secret: &str) -> String {
    let hash = blake2b_simd::Params::new()
        .hash_length(32)
        .hash(secret.as_bytes());
    hex::encode(hash.as_bytes())
}

pub(super) fn id_of(hash: &str) -> String {
    hash.chars().take(32).collect()
}
