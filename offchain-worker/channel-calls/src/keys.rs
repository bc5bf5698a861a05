//! What is handed in: who signs, who checks, and what salts are made of.

use std::{fmt, sync::Arc};

use codec::{Decode, Encode};
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_channels::{ChannelId, Nonce};

use crate::AccountId;

/// Begins what is hashed into a salt.
const DOMAIN: &[u8] = b"surety-receipt-salt";

/// Whether a key has signed some bytes, by sr25519.
pub type Verify = Arc<dyn Fn(&AccountId, &[u8], &[u8; 64]) -> bool + Send + Sync>;

/// Signs a message, by sr25519.
pub type Sign = Arc<dyn Fn(&[u8; 32]) -> [u8; 64] + Send + Sync>;

/// Salts of receipts: hashes of a secret, the channel and the request. So no journal has to keep them, and
/// the same batch comes out again.
#[derive(Clone, Encode, Decode)]
pub struct ReceiptSalts([u8; 32]);

impl ReceiptSalts {
    /// From a secret that is used for nothing else, for example one derived from the agent's key.
    pub const fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    pub(crate) fn salt(&self, genesis: &H256, channel: ChannelId, nonce: Nonce) -> H256 {
        H256(blake2_256(&(self.0, DOMAIN, genesis, channel, nonce).encode()))
    }
}

impl fmt::Debug for ReceiptSalts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceiptSalts")
    }
}
