//! The numbers that tokens are drawn with.

use sp_core::H256;
use sp_crypto_hashing::blake2_256;

/// The number that draws token `position` of a continuation, counted from 0: the first 8 bytes of
/// `blake2_256(input ‖ seed as u64 ‖ position as u32)`. All numbers are little-endian; `input` is the content
/// hash of the request.
///
/// The task's number is not in it: one input has one continuation, whoever asks and whenever.
pub fn sampling_random(input: &H256, seed: u64, position: u32) -> u64 {
    let mut preimage = [0; 44];
    preimage[..32].copy_from_slice(input.as_bytes());
    preimage[32..40].copy_from_slice(&seed.to_le_bytes());
    preimage[40..].copy_from_slice(&position.to_le_bytes());
    let [a, b, c, d, e, f, g, h, ..] = blake2_256(&preimage);
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}
