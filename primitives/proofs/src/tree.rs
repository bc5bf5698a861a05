//! A tree of which some leaves' proofs are wanted, built once for all of them.

use std::{num::NonZero, thread};

use sp_core::H256;

use crate::{Proof, merkle_root, node_hash};

/// Levels that are not kept: a tree of 2^22 leaves keeps 64 kB, and a proof hashes 4,096 leaves again.
const LOWER_LEVELS: u32 = 12;

/// The upper levels of the tree of [`merkle_root`]: the roots of parts of 2^n leaves each, of which the last
/// may have fewer, and all that is above them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The n of these parts.
    lower: u32,
    /// From the roots of parts up. The last level has one node, or none.
    levels: Vec<Vec<H256>>,
}

impl Tree {
    /// Over leaves, each of which is hashed once, on so many threads.
    pub fn new(leaves: &[H256], threads: NonZero<usize>) -> Self {
        let root = |part: &[H256]| merkle_root(part.iter().copied());
        Self::build(leaves, LOWER_LEVELS, threads, root)
    }

    /// Above the roots of parts of `2^lower` leaves each, at most 2^31, of which the last may have fewer.
    pub fn above(lower: u32, roots: Vec<H256>) -> Self {
        let mut levels = Vec::new();
        let mut level = roots;
        while level.len() > 1 {
            // A node without a sibling is promoted unchanged.
            let above = level.chunks(2).filter_map(|pair| match pair {
                [left, right] => Some(node_hash(left, right)),
                _ => pair.first().copied(),
            });
            let above = above.collect();
            levels.push(level);
            level = above;
        }
        levels.push(level);
        let lower = lower.min(31);
        Self { lower, levels }
    }

    #[allow(
        clippy::arithmetic_side_effects,
        reason = "parts have far fewer leaves than 2^31"
    )]
    fn build(
        leaves: &[H256],
        lower: u32,
        threads: NonZero<usize>,
        root: impl Fn(&[H256]) -> H256 + Sync,
    ) -> Self {
        let part = 1usize << lower;
        let mut roots = vec![H256::zero(); leaves.len().div_ceil(part)];
        let share = roots.len().div_ceil(threads.get()).max(1);
        let fill = |roots: &mut [H256], leaves: &[H256]| {
            for (its, part) in roots.iter_mut().zip(leaves.chunks(part)) {
                *its = root(part);
            }
        };
        if share >= roots.len() {
            fill(&mut roots, leaves);
        } else {
            thread::scope(|scope| {
                let shares = roots
                    .chunks_mut(share)
                    .zip(leaves.chunks(share.saturating_mul(part)));
                for (roots, leaves) in shares {
                    scope.spawn(move || fill(roots, leaves));
                }
            });
        }
        Self::above(lower, roots)
    }

    /// What [`merkle_root`] gives for the leaves.
    pub fn root(&self) -> H256 {
        let top = self.levels.last().and_then(|level| level.first());
        top.copied().unwrap_or_else(|| merkle_root(core::iter::empty()))
    }

    /// What [`Proof::new`] gives for leaf `index`, from the leaves that the tree is of.
    pub fn proof(&self, leaves: &[H256], index: u32) -> Option<Proof> {
        let part = 1usize.checked_shl(self.lower)?;
        let number = index.checked_shr(self.lower)? as usize;
        self.proof_within(leaves.chunks(part).nth(number)?, index)
    }

    /// The same from the leaves of that one's part alone.
    pub fn proof_within(&self, part: &[H256], index: u32) -> Option<Proof> {
        let mut place = index.checked_shr(self.lower)?;
        self.levels.first()?.get(place as usize)?;
        let within = index ^ place.checked_shl(self.lower)?;
        let Proof(mut siblings) = Proof::new(part, within)?;
        for level in &self.levels {
            // The last node of an odd level has no sibling.
            if let Some(sibling) = level.get((place ^ 1) as usize) {
                siblings.try_push(*sibling).ok()?;
            }
            place /= 2;
        }
        Some(Proof(siblings))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn threads(threads: usize) -> NonZero<usize> {
        NonZero::new(threads).unwrap()
    }

    proptest! {
        #[test]
        fn it_has_the_root_and_the_proofs_of_the_definition(
            leaves in vec(any::<[u8; 32]>().prop_map(H256), 0..150),
            lower in 0u32..7,
            among in 1usize..6,
        ) {
            let root = |part: &[H256]| merkle_root(part.iter().copied());
            let tree = Tree::build(&leaves, lower, threads(among), root);
            prop_assert_eq!(tree.root(), merkle_root(leaves.iter().copied()));
            // Also for the one behind the last, and for one that is in no part.
            for index in (0..=leaves.len() as u32).chain([u32::MAX]) {
                prop_assert_eq!(tree.proof(&leaves, index), Proof::new(&leaves, index));
            }
        }
    }

    /// Two of its parts, and a third that has one leaf.
    #[test]
    fn a_large_one_has_the_root_and_the_proofs_of_the_definition() {
        let leaves: Vec<_> = (0..2u64 << LOWER_LEVELS).map(H256::from_low_u64_be).collect();
        let leaves = [&leaves[..], &[H256::repeat_byte(1)]].concat();
        for among in [1, 2, 3, 7] {
            let tree = Tree::new(&leaves, threads(among));
            assert_eq!(tree.root(), merkle_root(leaves.iter().copied()));
            for index in [0, 4_095, 4_096, 8_191, 8_192] {
                assert_eq!(tree.proof(&leaves, index), Proof::new(&leaves, index));
            }
        }
    }

    /// However many proofs are wanted.
    #[test]
    fn each_leaf_is_hashed_once_while_it_is_built_and_those_of_one_part_for_a_proof() {
        let leaves: Vec<_> = (0..1_001).map(H256::from_low_u64_be).collect();
        let hashed = AtomicUsize::new(0);
        let tree = Tree::build(&leaves, 4, threads(3), |part| {
            hashed.fetch_add(part.len(), Ordering::Relaxed);
            merkle_root(part.iter().copied())
        });
        assert_eq!(hashed.into_inner(), leaves.len());
        for (index, leaf) in (0..).zip(&leaves) {
            let part = leaves.chunks(16).nth(index as usize / 16).unwrap();
            let proof = tree.proof_within(part, index).unwrap();
            assert!(proof.verify(&tree.root(), leaf, index, 1_001));
        }
    }
}
