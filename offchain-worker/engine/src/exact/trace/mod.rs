//! What a result's trace is made of, and a view of it for disputes.
//!
//! How a trace is cut into leaves is defined in `surety-verification`, why in `docs/adr/0008-trace.md` and
//! `docs/adr/0011-disputes.md`. Here its leaves are hashed while a model runs.

mod generation;
pub(crate) mod hash;
mod top;

pub(crate) use generation::GenerationLeaves;
pub use top::TopLevel;

use surety_types::ContentHash;
use surety_verification::leaf_hash;

use hash::{roots, row_digests};

/// The leaf over rows of these bytes each.
pub(crate) fn leaf_of(rows: &[u8], row_bytes: usize) -> ContentHash {
    let digests = row_digests(rows, row_bytes);
    let root = roots(&digests, vec![digests.len()]);
    ContentHash::from(root.first().copied().unwrap_or_default())
}

/// The last leaf of every trace: the output blob as its only row, from the blob's content hash.
pub(crate) fn output_leaf(output: &ContentHash) -> ContentHash {
    leaf_hash(output)
}

/// Words of a row, little-endian, and zeros up to a length.
pub(crate) fn words(values: impl IntoIterator<Item = u32>, count: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = values
        .into_iter()
        .take(count)
        .flat_map(u32::to_le_bytes)
        .collect();
    bytes.resize(4 * count, 0);
    bytes
}
