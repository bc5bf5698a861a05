//! A blob by its chunks: each can be checked as it arrives, from whomever.
//!
//! A blob's content hash is the root of RFC 6962's tree over its segments (`surety_proofs::merkle_root`). A
//! chunk is a power of two of segments, so that its own content hash is the node above them in that tree; the
//! last chunk may be shorter, and stands where its node has been promoted to. From these nodes the root
//! follows.

use sp_crypto_hashing::blake2_256;
use surety_proofs::content_hash;
use surety_types::ContentHash;

use crate::wire::CHUNK_BYTES;

/// The content hashes of a blob's chunks. An empty blob has one chunk, which is empty.
pub(crate) fn outline(blob: &[u8]) -> Vec<ContentHash> {
    if blob.is_empty() {
        return vec![content_hash(blob)];
    }
    blob.chunks(CHUNK_BYTES as usize).map(content_hash).collect()
}

/// How many chunks a blob of so many bytes has.
pub(crate) fn chunks_of(bytes: u64) -> u64 {
    bytes.div_ceil(u64::from(CHUNK_BYTES)).max(1)
}

/// The content hash of the blob with these chunks; none without any.
pub(crate) fn root(chunks: &[ContentHash]) -> Option<ContentHash> {
    let mut level = chunks.to_vec();
    while level.len() > 1 {
        level = level
            .chunks(2)
            .map(|pair| match pair {
                [left, right] => node(left, right),
                single => single.first().copied().unwrap_or_default(),
            })
            .collect();
    }
    level.first().copied()
}

fn node(left: &ContentHash, right: &ContentHash) -> ContentHash {
    let mut preimage = [1; 65];
    preimage[1..33].copy_from_slice(left.as_bytes());
    preimage[33..].copy_from_slice(right.as_bytes());
    ContentHash::from(blake2_256(&preimage))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_chunks_of_every_blob_lead_to_its_content_hash() {
        let chunk = CHUNK_BYTES as usize;
        let blob: Vec<u8> = (0..7 * chunk + 5)
            .map(|i| (i % 251) as u8 ^ (i / chunk) as u8)
            .collect();
        let sizes = (0..=7).flat_map(|n| {
            [
                n * chunk,
                n * chunk + 1,
                (n * chunk).saturating_sub(1),
                n * chunk + 5,
            ]
        });
        for size in sizes {
            let part = &blob[..size];
            let chunks = outline(part);
            assert_eq!(chunks.len() as u64, chunks_of(size as u64));
            assert_eq!(root(&chunks), Some(content_hash(part)), "{size} bytes");
        }
    }

    #[test]
    fn another_chunk_or_another_order_is_another_blob() {
        let chunks: Vec<_> = (0..5).map(ContentHash::from_low_u64_be).collect();
        let (mut swapped, mut altered) = (chunks.clone(), chunks.clone());
        swapped.swap(1, 3);
        altered[4] = ContentHash::zero();
        assert_ne!(root(&chunks), root(&swapped));
        assert_ne!(root(&chunks), root(&altered));
        assert_ne!(root(&chunks), root(&chunks[..4]));
        assert_eq!(root(&[]), None);
    }
}
