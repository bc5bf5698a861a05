//! That a leaf stands at its place under a root.

use alloc::vec::Vec;
use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::{ConstU32, H256, bounded::BoundedVec};

use crate::{leaf_hash, merkle_root, node_hash};

/// Most siblings of a proof: leaves are counted in 32 bits.
pub const DEPTH_MAX: u32 = 32;

/// The siblings of a leaf's way to the root of [`merkle_root`], from the bottom up (RFC 6962, section 2.1.1).
///
/// Where it starts, and in a tree of how many leaves, is not part of it: whoever checks says so, because they
/// know. Who does not know how many leaves there are learns that the leaf is in the tree, but not where.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Proof(pub BoundedVec<H256, ConstU32<DEPTH_MAX>>);

impl Proof {
    /// The proof of leaf `index`; nothing when there is no such leaf, or more than 2^32 - 1 of them.
    #[allow(clippy::arithmetic_side_effects, reason = "places of leaves that there are")]
    pub fn new(leaves: &[H256], index: u32) -> Option<Self> {
        let mut range = 0..u32::try_from(leaves.len()).ok()? as usize;
        let index = index as usize;
        if !range.contains(&index) {
            return None;
        }
        // From the root down: the sibling is the part that the leaf is not in.
        let mut siblings = Vec::new();
        while range.len() > 1 {
            let middle = range.start + range.len().next_power_of_two() / 2;
            let (left, right) = (range.start..middle, middle..range.end);
            let sibling;
            (range, sibling) = if index < middle {
                (left, right)
            } else {
                (right, left)
            };
            siblings.push(merkle_root(leaves.get(sibling)?.iter().copied()));
        }
        siblings.reverse();
        siblings.try_into().ok().map(Self)
    }

    /// The root that the proof leads to from a leaf; nothing when a tree of so many leaves has no such place
    /// or the way there has another length.
    #[allow(clippy::arithmetic_side_effects, reason = "places of leaves that there are")]
    pub fn root(&self, leaf: &H256, index: u32, leaves: u32) -> Option<H256> {
        if index >= leaves {
            return None;
        }
        let mut siblings = self.0.iter();
        let mut root = leaf_hash(leaf);
        // The place of the node on this level, and of the last one.
        let (mut place, mut last) = (index, leaves - 1);
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

    /// Whether `leaf` is number `index` of `leaves` leaves under `root`.
    pub fn verify(&self, root: &H256, leaf: &H256, index: u32, leaves: u32) -> bool {
        self.root(leaf, index, leaves).as_ref() == Some(root)
    }
}
