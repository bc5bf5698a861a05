//! A piece of a committed computation or of committed weights, with what shows that it is the committed one.
//!
//! How many rows there are and how long they are is not part of an opening: whoever checks knows it from the
//! model's dimensions.

use core::ops::Range;

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::{ConstU32, H256, bounded::BoundedVec};
use sp_crypto_hashing::blake2_256;

use crate::{Proof, SEGMENT_BYTES, row_digest, segment_hashes, segments};

/// The bytes of a segment.
pub type Segment = BoundedVec<u8, ConstU32<SEGMENT_BYTES>>;

/// That a row is one of several under a [`crate::rows_digest`].
#[derive(
    Clone, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct RowOpening {
    /// Its place among them.
    pub row: u32,
    /// From its digest to theirs.
    pub proof: Proof,
}

impl RowOpening {
    /// Of row `row` among rows of these digests; nothing when there is no such row.
    pub fn new(digests: &[H256], row: u32) -> Option<Self> {
        let proof = Proof::new(digests, row)?;
        Some(Self { row, proof })
    }

    /// Whether the row of digest `row_digest` is number `self.row` of `rows` rows under `root`.
    pub fn verify_digest(&self, root: &H256, rows: u32, row_digest: &H256) -> bool {
        self.proof.verify(root, row_digest, self.row, rows)
    }

    /// Whether these bytes are row `self.row` of `rows` rows under `root`. That they are as many as a row
    /// must have is for the caller to see to.
    pub fn verify(&self, root: &H256, rows: u32, bytes: &[u8]) -> bool {
        self.verify_digest(root, rows, &row_digest(bytes))
    }
}

/// A segment of a row.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct SegmentOpening {
    /// Its place in the row.
    pub segment: u32,
    /// What it holds.
    pub bytes: Segment,
    /// From its hash to the row's digest.
    pub proof: Proof,
}

impl SegmentOpening {
    /// Of segment `segment` of a row of these bytes; nothing when there is no such segment.
    pub fn new(row: &[u8], segment: u32) -> Option<Self> {
        let bytes = row.chunks(SEGMENT_BYTES as usize).nth(segment as usize)?;
        Some(Self {
            segment,
            bytes: bytes.to_vec().try_into().ok()?,
            proof: Proof::new(&segment_hashes(row), segment)?,
        })
    }

    /// The digest of the row of `row_bytes` bytes in which this segment stands at its place; nothing when
    /// there can be no such row.
    pub fn row_digest(&self, row_bytes: u32) -> Option<H256> {
        let range = self.range(row_bytes)?;
        if self.bytes.len() != range.len() {
            return None;
        }
        let hash = H256(blake2_256(&self.bytes));
        self.proof.root(&hash, self.segment, segments(row_bytes))
    }

    /// Those of the bytes at `at` of the row, which must all be in this segment.
    pub fn slice(&self, at: Range<u32>) -> Option<&[u8]> {
        let start = self.segment.checked_mul(SEGMENT_BYTES)?;
        let (from, to) = (at.start.checked_sub(start)?, at.end.checked_sub(start)?);
        self.bytes.get(from as usize..to as usize)
    }

    /// The bytes of the row that the segment is about.
    fn range(&self, row_bytes: u32) -> Option<Range<u32>> {
        let start = self.segment.checked_mul(SEGMENT_BYTES)?;
        let end = start.saturating_add(SEGMENT_BYTES).min(row_bytes);
        (start < end).then_some(start..end)
    }
}

/// A segment of one of several rows: enough for any one cell in it.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct CellOpening {
    /// The row.
    pub row: RowOpening,
    /// The part of it with the cell.
    pub segment: SegmentOpening,
}

impl CellOpening {
    /// Of the segment with byte `byte` of row `row`, which has these bytes, among rows of these digests;
    /// nothing when there is no such byte or row.
    pub fn new(digests: &[H256], row: u32, bytes: &[u8], byte: u32) -> Option<Self> {
        Some(Self {
            row: RowOpening::new(digests, row)?,
            segment: SegmentOpening::new(bytes, byte / SEGMENT_BYTES)?,
        })
    }

    /// The bytes at `at` of row `self.row.row`, of `rows` rows of `row_bytes` bytes each under `root`.
    /// Nothing unless they are shown to be.
    pub fn bytes(&self, root: &H256, rows: u32, row_bytes: u32, at: Range<u32>) -> Option<&[u8]> {
        let digest = self.segment.row_digest(row_bytes)?;
        if self.row.verify_digest(root, rows, &digest) {
            self.segment.slice(at)
        } else {
            None
        }
    }

    /// Likewise number `column` of a row of `f32`, little-endian.
    pub fn number(&self, root: &H256, rows: u32, row_bytes: u32, column: u32) -> Option<f32> {
        let start = column.checked_mul(4)?;
        let bytes = self.bytes(root, rows, row_bytes, start..start.checked_add(4)?)?;
        bytes.try_into().ok().map(f32::from_le_bytes)
    }
}

/// That a row of weights is the model's, under its manifest's `weight_root`.
///
/// The leaf names the tensor and the row, so being anywhere in the tree is enough: `index` and `leaves` need
/// not be trusted.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct WeightOpening {
    /// The row's place among all rows of the model.
    pub index: u32,
    /// Rows of the model.
    pub leaves: u32,
    /// From the row to the root.
    pub proof: Proof,
}

impl WeightOpening {
    /// Whether the row of this [`crate::weight_row_leaf`] is under `root`.
    pub fn verify(&self, root: &H256, leaf: &H256) -> bool {
        self.proof.verify(root, leaf, self.index, self.leaves)
    }
}
