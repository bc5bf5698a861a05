//! How the blobs of tasks are named.

use surety_types::ContentHash;

use crate::row_digest;

/// The name of a task's input or output: the [`row_digest`] of its bytes, so that any 1 KiB of it can be shown to be a
/// part of it.
///
/// The files of a model are not blobs: those are read whole, and named by `blake2_256` of all of their bytes.
pub fn content_hash(blob: &[u8]) -> ContentHash {
    row_digest(blob)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use alloc::{vec, vec::Vec};

    use super::*;
    use crate::{segments, Proof, SegmentOpening, SEGMENT_BYTES};
    use sp_core::H256;
    use sp_crypto_hashing::blake2_256;

    #[test]
    fn any_segment_of_a_blob_can_be_shown() {
        for len in [1, 1024, 1025, 5000] {
            let blob: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let pieces: Vec<&[u8]> = blob.chunks(SEGMENT_BYTES as usize).collect();
            let hashes: Vec<H256> = pieces.iter().map(|piece| H256(blake2_256(piece))).collect();
            assert_eq!(segments(len), pieces.len() as u32);
            for (number, piece) in (0..).zip(&pieces) {
                let opening = SegmentOpening {
                    segment: number,
                    bytes: piece.to_vec().try_into().unwrap(),
                    proof: Proof::new(&hashes, number).unwrap(),
                };
                assert_eq!(opening.row_digest(len), Some(content_hash(&blob)));
            }
        }
    }

    #[test]
    fn a_blob_of_one_segment_is_not_named_by_its_plain_hash() {
        let blob = vec![7; 100];
        assert_ne!(content_hash(&blob).0, blake2_256(&blob));
        assert_ne!(content_hash(&[]), content_hash(&[0]));
    }
}
