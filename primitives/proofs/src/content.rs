//! How the inputs and outputs of tasks are addressed.

use sp_core::H256;

use crate::row_digest;

/// The address of a blob, an input or an output of a task: its [`row_digest`], the Merkle root over
/// `blake2_256` of its segments of 1 KiB.
///
/// A blob may be megabytes, and a dispute is about a few bytes of it. Under a flat hash those could not be
/// shown without all the others; under this one a [`SegmentOpening`](crate::SegmentOpening) shows any of
/// them, so that the chain can look at the word in dispute, and can demand that a piece be published which
/// somebody holds back. The files of models are never taken apart like this and keep flat hashes.
pub fn content_hash(bytes: &[u8]) -> H256 {
    row_digest(bytes)
}
