//! One hash for a list of hashes.
//!
//! The tree is RFC 6962's with `blake2_256` in the place of SHA-256:
//!
//! - no leaves: `blake2_256("")`
//! - leaf: `blake2_256(0x00 ‖ leaf)`
//! - node: `blake2_256(0x01 ‖ left ‖ right)`
//! - a node without a sibling is promoted unchanged to the level above; it is never paired with itself, so no
//!   two lists of leaves share a root.
//!
//! The prefixes keep a node from being passed off as a leaf.

use alloc::vec::Vec;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;

const LEAF: u8 = 0;
const NODE: u8 = 1;

/// The hash that stands for a leaf in the tree.
pub fn leaf_hash(leaf: &H256) -> H256 {
    let mut preimage = [LEAF; 33];
    preimage[1..].copy_from_slice(leaf.as_bytes());
    H256(blake2_256(&preimage))
}

/// The hash of a node above two others.
pub fn node_hash(left: &H256, right: &H256) -> H256 {
    let mut preimage = [NODE; 65];
    preimage[1..33].copy_from_slice(left.as_bytes());
    preimage[33..].copy_from_slice(right.as_bytes());
    H256(blake2_256(&preimage))
}

/// Root over `leaves` in their order. Keeps one hash per level in memory, however many leaves there are.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "a tree is no higher than a number of leaves has bits"
)]
pub fn merkle_root(leaves: impl Iterator<Item = H256>) -> H256 {
    // Roots of complete subtrees, left to right, with their heights: strictly falling between two leaves.
    let mut subtrees: Vec<(u32, H256)> = Vec::new();
    for leaf in leaves {
        let mut height = 0;
        let mut root = leaf_hash(&leaf);
        while let Some((_, left)) = subtrees.pop_if(|(tallest, _)| *tallest == height) {
            root = node_hash(&left, &root);
            height += 1;
        }
        subtrees.push((height, root));
    }
    // What is left over on the right has been promoted until it met the next taller subtree.
    subtrees
        .into_iter()
        .map(|(_, root)| root)
        .rev()
        .reduce(|right, left| node_hash(&left, &right))
        .unwrap_or_else(|| H256(blake2_256(&[])))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::{collection::vec, prelude::*};
    use serde_json::Value;
    use std::collections::BTreeSet;

    fn hash(value: &Value) -> H256 {
        H256::from_slice(&hex::decode(value.as_str().unwrap()).unwrap())
    }

    /// The definition, level by level.
    fn root_by_levels(leaves: &[H256]) -> H256 {
        let mut level: Vec<H256> = leaves.iter().map(leaf_hash).collect();
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|pair| match pair {
                    [left, right] => node_hash(left, right),
                    single => single[0],
                })
                .collect();
        }
        level.first().copied().unwrap_or_else(|| H256(blake2_256(b"")))
    }

    #[test]
    fn roots_match_the_golden_vectors() {
        let vectors: Value = serde_json::from_str(include_str!("../vectors/merkle_root.json")).unwrap();
        let vectors = vectors.as_array().unwrap();
        assert!(vectors.len() >= 8);
        for vector in vectors {
            let leaves = vector["leaves"].as_array().unwrap().iter().map(hash);
            assert_eq!(merkle_root(leaves), hash(&vector["root"]), "{vector}");
        }
    }

    #[test]
    fn a_node_cannot_be_passed_off_as_a_leaf() {
        let (left, right) = (H256::repeat_byte(1), H256::repeat_byte(2));
        let inner = [leaf_hash(&left), leaf_hash(&right)];
        assert_ne!(
            merkle_root([left, right].into_iter()),
            merkle_root(inner.into_iter())
        );
    }

    #[test]
    fn lists_of_one_repeated_leaf_differ_by_their_length() {
        let roots: BTreeSet<H256> = (0..200)
            .map(|n| merkle_root(core::iter::repeat_n(H256::repeat_byte(7), n)))
            .collect();
        assert_eq!(roots.len(), 200);
    }

    proptest! {
        #[test]
        fn streaming_gives_the_root_of_the_definition(leaves in vec(any::<[u8; 32]>().prop_map(H256), 0..70)) {
            prop_assert_eq!(merkle_root(leaves.iter().copied()), root_by_levels(&leaves));
        }

        #[test]
        fn every_leaf_and_its_place_count(
            leaves in vec(any::<[u8; 32]>().prop_map(H256), 2..40),
            one in any::<prop::sample::Index>(),
            other in any::<prop::sample::Index>(),
        ) {
            let root = merkle_root(leaves.iter().copied());
            let (one, other) = (one.index(leaves.len()), other.index(leaves.len()));

            let mut altered = leaves.clone();
            altered[one].0[0] ^= 1;
            prop_assert_ne!(root, merkle_root(altered.into_iter()));

            let mut swapped = leaves.clone();
            swapped.swap(one, other);
            prop_assert_eq!(root == merkle_root(swapped.iter().copied()), swapped == leaves);
        }
    }
}
