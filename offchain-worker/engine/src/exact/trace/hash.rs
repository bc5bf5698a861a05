//! Merkle roots of many rows at once.
//!
//! Equal to `surety_proofs`'s one row at a time, but several hashes share a register: that is what keeps a
//! trace at a few per cent of the work that it records.

use blake2b_simd::{
    Params,
    many::{HashManyJob, hash_many},
};
use rayon::prelude::*;
use surety_proofs::content_hash;
use surety_types::ContentHash;

/// A `blake2_256` hash.
pub type Digest = [u8; 32];

/// Bytes of a row under one leaf of its tree.
pub(crate) const SEGMENT_BYTES: usize = 1024;

/// Bytes that are worth a task of their own.
const TASK_BYTES: usize = 64 * 1024;

const LEAF: u8 = 0;
const NODE: u8 = 1;

/// Digests of rows of `row_bytes` bytes: for each the Merkle root over its segments.
pub(crate) fn row_digests(rows: &[u8], row_bytes: usize) -> Vec<Digest> {
    if row_bytes == 0 {
        return Vec::new();
    }
    let each = (TASK_BYTES / row_bytes).max(1) * row_bytes;
    if rows.len() < 2 * each || rayon::current_num_threads() == 1 {
        return some_row_digests(rows, row_bytes);
    }
    let tasks: Vec<_> = rows
        .par_chunks(each)
        .map(|rows| some_row_digests(rows, row_bytes))
        .collect();
    tasks.concat()
}

fn some_row_digests(rows: &[u8], row_bytes: usize) -> Vec<Digest> {
    let segments = rows.chunks(row_bytes).flat_map(|row| row.chunks(SEGMENT_BYTES));
    let each = vec![row_bytes.div_ceil(SEGMENT_BYTES); rows.len() / row_bytes];
    roots(&hash_all(segments), each)
}

/// The [`content_hash`] of a blob, whose segments are hashed side by side.
pub(crate) fn blob_hash(blob: &[u8]) -> ContentHash {
    let whole = row_digests(blob, blob.len());
    whole
        .first()
        .map_or_else(|| content_hash(blob), |digest| ContentHash::from(*digest))
}

/// Merkle roots of trees that have so many leaves, each at least 1, one tree after the other.
pub(crate) fn roots(leaves: &[Digest], mut sizes: Vec<usize>) -> Vec<Digest> {
    let mut level = leaf_hashes(leaves);
    while sizes.iter().any(|size| *size > 1) {
        level = parents(&level, &sizes);
        sizes.iter_mut().for_each(|size| *size = size.div_ceil(2));
    }
    level
}

/// The next level of trees that have so many nodes: pairs hashed, single ones as they are.
fn parents(level: &[Digest], sizes: &[usize]) -> Vec<Digest> {
    let mut preimages: Vec<[u8; 65]> = Vec::with_capacity(level.len() / 2);
    for tree in trees(level, sizes) {
        preimages.extend(tree.as_chunks::<2>().0.iter().map(|[left, right]| {
            let mut preimage = [NODE; 65];
            preimage[1..33].copy_from_slice(left);
            preimage[33..].copy_from_slice(right);
            preimage
        }));
    }
    let mut hashed = hash_all(preimages.iter().map(|preimage| &preimage[..])).into_iter();
    let mut next = Vec::with_capacity(level.len().div_ceil(2));
    for tree in trees(level, sizes) {
        let (pairs, single) = tree.as_chunks::<2>();
        next.extend(hashed.by_ref().take(pairs.len()));
        next.extend(single);
    }
    next
}

fn trees<'a>(mut level: &'a [Digest], sizes: &'a [usize]) -> impl Iterator<Item = &'a [Digest]> {
    sizes.iter().map(move |size| {
        let (tree, rest) = level.split_at((*size).min(level.len()));
        level = rest;
        tree
    })
}

/// Siblings of a leaf and its ancestors, lowest first, where they have one: what shows that it is under the
/// root.
pub(crate) fn path(leaves: &[Digest], leaf: usize) -> Vec<ContentHash> {
    let mut path = Vec::new();
    let mut level = leaf_hashes(leaves);
    let mut at = leaf;
    while level.len() > 1 {
        path.extend(level.get(at ^ 1).copied().map(ContentHash::from));
        level = parents(&level, &[level.len()]);
        at /= 2;
    }
    path
}

fn leaf_hashes(leaves: &[Digest]) -> Vec<Digest> {
    let mut preimages = vec![[LEAF; 33]; leaves.len()];
    for (preimage, leaf) in preimages.iter_mut().zip(leaves) {
        preimage[1..].copy_from_slice(leaf);
    }
    hash_all(preimages.iter().map(|preimage| &preimage[..]))
}

/// The hash of each input.
pub(crate) fn hash_all<'a>(inputs: impl Iterator<Item = &'a [u8]>) -> Vec<Digest> {
    let mut params = Params::new();
    params.hash_length(32);
    let mut jobs: Vec<_> = inputs.map(|input| HashManyJob::new(&params, input)).collect();
    hash_many(jobs.iter_mut());
    jobs.iter()
        .map(|job| {
            let mut digest = Digest::default();
            digest.copy_from_slice(job.to_hash().as_bytes());
            digest
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use surety_proofs::merkle_root;

    use super::*;
    use surety_models::file_hash;

    /// The definition.
    fn row_digest(row: &[u8]) -> Digest {
        merkle_root(row.chunks(SEGMENT_BYTES).map(file_hash)).0
    }

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * i % 251) as u8).collect()
    }

    #[test]
    fn many_rows_have_the_digests_of_the_definition() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build();
        for row_bytes in [1, 4, 1023, 1024, 1025, 1536, 5 * 1024, 9000] {
            let rows = bytes(row_bytes * 67);
            let expected: Vec<Digest> = rows.chunks(row_bytes).map(row_digest).collect();
            assert_eq!(row_digests(&rows, row_bytes), expected, "{row_bytes}");
            let shared = pool
                .as_ref()
                .map(|pool| pool.install(|| row_digests(&rows, row_bytes)));
            assert_eq!(shared.ok(), Some(expected), "{row_bytes}");
        }
    }

    #[test]
    fn a_blob_has_the_hash_of_the_definition() {
        for len in [0, 1, 1024, 1025, 200 * 1024 + 3] {
            assert_eq!(blob_hash(&bytes(len)), content_hash(&bytes(len)), "{len}");
        }
    }

    #[test]
    fn many_trees_have_the_roots_of_the_definition() {
        let sizes: Vec<usize> = (1..40).chain([1, 1, 64, 2]).collect();
        let mut leaves = hash_all(bytes(sizes.iter().sum()).chunks(1)).into_iter();
        let all: Vec<Digest> = leaves.clone().collect();
        let mut of_one = |size: &usize| {
            let tree = leaves.by_ref().take(*size).map(ContentHash::from);
            merkle_root(tree).0
        };
        let expected: Vec<Digest> = sizes.iter().map(&mut of_one).collect();
        assert_eq!(roots(&all, sizes), expected);
    }
}
