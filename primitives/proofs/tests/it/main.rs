//! Proofs and openings: what is there can be shown, and nothing else can.

#![allow(clippy::unwrap_used)]

mod opening;
mod proof;
mod vectors;

use sp_core::H256;
use sp_crypto_hashing::blake2_256;

/// Hashes that all differ.
fn leaves(count: u32) -> Vec<H256> {
    (0..count)
        .map(|number| H256(blake2_256(format!("leaf {number}").as_bytes())))
        .collect()
}

/// A hash that differs in one bit.
fn flipped(hash: &H256, bit: usize) -> H256 {
    let mut other = *hash;
    other.0[bit / 8 % 32] ^= 1 << (bit % 8);
    other
}

/// Bytes as `vectors/generate.py` makes them.
fn row_bytes(seed: u64, length: u64) -> Vec<u8> {
    (0..length).map(|i| (i * i + seed * i + i / 251) as u8).collect()
}
