//! Weights, committed row by row.

use alloc::vec::Vec;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;

/// The leaf of one row of a model's weights: `blake2_256(name length as u32 ‖ name ‖ row as u32 ‖ q ‖ scales
/// as f32 ‖ bias as f32, where there is one)`, numbers little-endian, `q` one or two bytes for each value, as
/// the model's precision has it. How many values and scales a row has follows from the model's dimensions.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "lengths of slices that are in memory"
)]
pub fn weight_row_leaf(name: &[u8], row: u32, q: &[u8], scales: &[f32], bias: Option<f32>) -> H256 {
    let mut bytes = Vec::with_capacity(12 + name.len() + q.len() + 4 * scales.len());
    bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(&row.to_le_bytes());
    bytes.extend_from_slice(q);
    bytes.extend(scales.iter().chain(&bias).flat_map(|value| value.to_le_bytes()));
    H256(blake2_256(&bytes))
}
