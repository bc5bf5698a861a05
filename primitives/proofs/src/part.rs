//! Content that is shown on chain, in parts of a few kilobytes that prove themselves.

use alloc::vec::Vec;
use core::ops::Range;

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::{ConstU32, H256, bounded::BoundedVec};
use sp_crypto_hashing::blake2_256;
use surety_types::limits;

use crate::{SEGMENT_BYTES, merkle_root, node_hash, row_digest};

/// Segments of a part: a power of two, so that each part is a whole subtree of its blob's.
pub const PART_SEGMENTS: u32 = 8;

/// Bytes of a part. The last may be shorter.
pub const PART_BYTES: u32 = PART_SEGMENTS * SEGMENT_BYTES;

/// Most parts of content that is demanded whole, as games do: 32 KiB.
pub const PARTS_MAX: u32 = limits::SHOWN_PARTS_MAX;

/// Bytes of a leaf of a trace.
pub const LEAF_BYTES: u32 = 32;

/// Most levels of the tree over the parts of a blob: of one whose length fits a `u32`.
const LEVELS_MAX: u32 = u32::BITS - PART_BYTES.ilog2();

/// How many parts a blob of so many bytes has.
pub const fn parts(bytes: u32) -> u32 {
    bytes.div_ceil(PART_BYTES)
}

/// Some of a blob, with what shows that it is there.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct PartOpening {
    /// Its place in the blob.
    pub part: u32,
    /// What it holds.
    pub bytes: BoundedVec<u8, ConstU32<PART_BYTES>>,
    /// From its root to the blob's, from the bottom up.
    pub siblings: BoundedVec<H256, ConstU32<LEVELS_MAX>>,
}

impl PartOpening {
    /// Most bytes of a part.
    pub const fn bytes_max() -> u32 {
        PART_BYTES
    }

    /// Of part `part` of a blob; nothing when there is no such part.
    pub fn new(blob: &[u8], part: u32) -> Option<Self> {
        Self::under(blob, part, row_digest)
    }

    /// Of part `part` of the leaves of a trace, 32 bytes each: it leads to the root over them.
    pub fn of_leaves(leaves: &[u8], part: u32) -> Option<Self> {
        Self::under(leaves, part, leaves_root)
    }

    fn under(blob: &[u8], part: u32, digest: fn(&[u8]) -> H256) -> Option<Self> {
        let bytes = blob.chunks(PART_BYTES as usize).nth(part as usize)?;
        let mut level: Vec<H256> = blob.chunks(PART_BYTES as usize).map(digest).collect();
        let (mut place, mut siblings) = (part as usize, Vec::new());
        while level.len() > 1 {
            siblings.extend(level.get(place ^ 1).copied());
            level = level.chunks(2).map(joined).collect();
            place /= 2;
        }
        Some(Self {
            part,
            bytes: bytes.to_vec().try_into().ok()?,
            siblings: siblings.try_into().ok()?,
        })
    }

    /// The [`content_hash`](crate::content_hash) of the blob of `blob_bytes` bytes in which this part stands
    /// at its place; nothing when there can be no such blob.
    pub fn content(&self, blob_bytes: u32) -> Option<H256> {
        self.root(blob_bytes, row_digest)
    }

    /// The [`merkle_root`] over leaves of 32 bytes, `bytes` in all, among which this part stands at its
    /// place; nothing when there can be none.
    pub fn trace_root(&self, bytes: u32) -> Option<H256> {
        bytes
            .is_multiple_of(LEAF_BYTES)
            .then(|| self.root(bytes, leaves_root))?
    }

    #[allow(clippy::arithmetic_side_effects, reason = "places of parts that there are")]
    fn root(&self, blob_bytes: u32, digest: fn(&[u8]) -> H256) -> Option<H256> {
        if self.bytes.len() != range(self.part, blob_bytes)?.len() {
            return None;
        }
        let mut siblings = self.siblings.iter();
        let mut root = digest(&self.bytes);
        let (mut place, mut last) = (self.part, parts(blob_bytes).checked_sub(1)?);
        while last > 0 {
            // The last node of an odd level has no sibling: it is promoted unchanged.
            if place % 2 == 1 {
                root = node_hash(siblings.next()?, &root);
            } else if place < last {
                root = node_hash(&root, siblings.next()?);
            }
            (place, last) = (place / 2, last / 2);
        }
        siblings.next().is_none().then_some(root)
    }
}

/// Where in a blob a part is.
fn range(part: u32, blob_bytes: u32) -> Option<Range<u32>> {
    let start = part.checked_mul(PART_BYTES)?;
    let end = start.saturating_add(PART_BYTES).min(blob_bytes);
    (start < end).then_some(start..end)
}

/// What the leaves of a trace are named by where content is named by its hash. No blob has such a hash: those
/// are of other preimages. So the root of a trace that is chosen to be the hash of something else stands for
/// nothing but its leaves.
pub fn leaves_name(trace_root: &H256) -> H256 {
    const NAME: u8 = 2;
    let mut preimage = [NAME; 33];
    preimage[1..].copy_from_slice(trace_root.as_bytes());
    H256(blake2_256(&preimage))
}

/// The root over leaves: one subtree, as there are a power of two of them in each part but the last.
fn leaves_root(leaves: &[u8]) -> H256 {
    let leaves = leaves.as_chunks::<{ LEAF_BYTES as usize }>().0.iter();
    merkle_root(leaves.copied().map(H256))
}

fn joined(pair: &[H256]) -> H256 {
    match pair {
        [left, right] => node_hash(left, right),
        [single] => *single,
        _ => H256::zero(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::content_hash;
    use alloc::vec;

    fn blob(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at / 7) as u8).collect()
    }

    #[test]
    fn every_part_of_every_length_leads_to_the_content_hash() {
        for bytes in [
            1, 1_023, 1_024, 1_025, 8_191, 8_192, 8_193, 16_384, 16_392, 17_408, 24_576, 24_577, 32_768,
            32_769, 65_537, 100_000,
        ] {
            let blob = blob(bytes);
            let count = parts(bytes as u32);
            let mut together = Vec::new();
            for part in 0..count {
                let opening = PartOpening::new(&blob, part).unwrap();
                assert_eq!(
                    opening.content(bytes as u32),
                    Some(content_hash(&blob)),
                    "{bytes}/{part}"
                );
                together.extend(opening.bytes);
            }
            assert_eq!(together, blob);
            assert_eq!(PartOpening::new(&blob, count), None);
        }
    }

    #[test]
    fn another_place_length_or_byte_leads_elsewhere() {
        let blob = blob(20_000);
        let right = content_hash(&blob);
        let opening = PartOpening::new(&blob, 2).unwrap();
        for bytes in [0, 8_192, 16_384, 24_577, 40_000] {
            assert_ne!(opening.content(bytes), Some(right), "{bytes}");
        }
        let moved = PartOpening {
            part: 1,
            ..opening.clone()
        };
        assert_ne!(moved.content(20_000), Some(right));
        let mut altered = opening.clone();
        altered.bytes[17] ^= 1;
        assert_ne!(altered.content(20_000), Some(right));
        let mut longer = opening;
        longer.siblings = vec![right].try_into().unwrap();
        assert_ne!(longer.content(20_000), Some(right));
    }

    #[test]
    fn of_nothing_there_is_no_part() {
        assert_eq!(PartOpening::new(&[], 0), None);
        assert_eq!(PartOpening::of_leaves(&[], 0), None);
    }

    #[test]
    fn every_part_of_however_many_leaves_leads_to_their_root_and_no_other_number_does() {
        for count in [1, 2, 255, 256, 257, 300, 511, 512, 513, 768, 1_025, 3_000] {
            let leaves: Vec<H256> = (0..count).map(H256::from_low_u64_be).collect();
            let root = merkle_root(leaves.iter().copied());
            let blob: Vec<u8> = leaves.iter().flat_map(|leaf| leaf.0).collect();
            let bytes = blob.len() as u32;
            let mut together = Vec::new();
            for part in 0..parts(bytes) {
                let opening = PartOpening::of_leaves(&blob, part).unwrap();
                assert_eq!(opening.trace_root(bytes), Some(root), "{count}/{part}");
                assert_ne!(opening.content(bytes), Some(root));
                assert_eq!(opening.trace_root(bytes + 1), None);
                if part + 1 == parts(bytes) {
                    for other in [bytes - 32, bytes + 32, 2 * bytes] {
                        assert_ne!(opening.trace_root(other), Some(root), "{count} of {other}");
                    }
                }
                let mut altered = opening.clone();
                altered.bytes[17] ^= 1;
                assert_ne!(altered.trace_root(bytes), Some(root));
                together.extend(opening.bytes);
            }
            assert_eq!(together, blob);
        }
    }

    #[test]
    fn leaves_have_the_name_of_no_blob() {
        let hashes: Vec<H256> = blob(4_000).chunks(1_024).map(|s| H256(blake2_256(s))).collect();
        let root = merkle_root(hashes.iter().copied());
        assert_eq!(root, content_hash(&blob(4_000)));
        assert_ne!(leaves_name(&root), root);
    }
}
