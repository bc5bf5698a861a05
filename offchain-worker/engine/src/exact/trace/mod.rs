//! What a result's trace is made of.
//!
//! How a trace is cut into leaves is defined in `surety-model-trace`, why in `docs/adr/0008-trace.md` and
//! `docs/adr/0011-what-a-trace-commits-to.md`. Here its leaves are hashed while a model runs.

mod generation;
pub(crate) mod hash;
mod top;

pub(crate) use generation::GenerationLeaves;
pub use hash::Digest;
pub use top::TopLevel;
pub(crate) use top::{place, place_of_heads};

use surety_types::ContentHash;

use hash::{roots, row_digests};

/// The leaf over rows of these bytes each.
pub(crate) fn leaf_of(rows: &[u8], row_bytes: usize) -> ContentHash {
    let digests = row_digests(rows, row_bytes);
    let root = roots(&digests, vec![digests.len()]);
    ContentHash::from(root.first().copied().unwrap_or_default())
}
