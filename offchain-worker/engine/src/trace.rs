//! What a result's trace is made of.

use surety_models::file_hash;
use surety_proofs::merkle_root;
use surety_types::{ContentHash, task::ResultClaim};

/// The trace leaf of one item embedded outside of the exact tier: `blake2_256(index ‖ blake2_256(ids) ‖
/// row)`, with the index and ids as u32 and the row as f32, all little-endian.
///
/// It binds one item's ids to one row, so that a single item can be checked against the root by itself.
pub fn embedding_leaf(index: u32, ids: &[u32], row: &[f32]) -> ContentHash {
    let ids: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    let values = row.iter().flat_map(|value| value.to_le_bytes());
    let mut preimage = Vec::with_capacity(4 + 32 + row.len() * 4);
    preimage.extend_from_slice(&index.to_le_bytes());
    preimage.extend_from_slice(file_hash(&ids).as_bytes());
    preimage.extend(values);
    file_hash(&preimage)
}

/// The claim that goes with an output blob of this content hash.
pub(crate) fn claim(
    output: ContentHash,
    leaves: impl Iterator<Item = ContentHash>,
    units: u32,
) -> ResultClaim {
    ResultClaim {
        output,
        trace_root: merkle_root(leaves),
        units,
    }
}
