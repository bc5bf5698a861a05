//! How a tree is cut into nodes of at most 16 children, and how they hash.

use alloc::vec::Vec;
use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::H256;

use super::CHILDREN_MAX;
use surety_proofs::{leaf_hash, merkle_root, node_hash};

/// Neighboring leaves of one tree that have a node of their own.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub(super) struct Span {
    /// The first of them.
    pub first: u32,
    /// How many.
    pub leaves: u32,
}

impl Span {
    /// Leaves of each child but the last, which may have fewer: the least power of 16 that leaves at most 16
    /// children. A power of two, so that every child is a node of the binary tree.
    pub fn stride(&self) -> u32 {
        let mut stride = 1u32;
        while self.leaves.div_ceil(stride) > CHILDREN_MAX {
            // At most 16^7 = 2^28: 2^32 leaves are 16 children of that.
            stride = stride.saturating_mul(CHILDREN_MAX);
        }
        stride
    }

    /// How many children are to be posted.
    pub fn children(&self) -> u32 {
        self.leaves.div_ceil(self.stride())
    }

    /// Leaves under child `index`, which has to exist.
    pub fn child(&self, index: u32) -> Self {
        let stride = self.stride();
        let before = index.saturating_mul(stride).min(self.leaves);
        Self {
            first: self.first.saturating_add(before),
            leaves: stride.min(self.leaves.saturating_sub(before)),
        }
    }

    /// Which child has a leaf, if any has.
    pub fn child_of(&self, leaf: u32) -> Option<u8> {
        let place = leaf
            .checked_sub(self.first)
            .filter(|place| *place < self.leaves)?;
        u8::try_from(place.checked_div(self.stride())?).ok()
    }

    /// The digest of child `index` in a tree that has these leaves; nothing when it lacks some of the
    /// child's.
    pub fn digest(&self, index: u32, leaves: &[H256]) -> Option<H256> {
        let child = self.child(index);
        let first = usize::try_from(child.first).ok()?;
        let count = usize::try_from(child.leaves).ok()?;
        let leaves = leaves.get(first..first.checked_add(count)?)?;
        if self.is_lowest() {
            leaves.first().copied()
        } else {
            Some(merkle_root(leaves.iter().copied()))
        }
    }

    /// Whether children are leaves, which are posted as they are and not hashed.
    pub fn is_lowest(&self) -> bool {
        self.stride() == 1
    }
}

/// Postings needed at most to come from the root of a tree to one of its leaves.
pub(super) fn posts(leaves: u32) -> u32 {
    let mut posts = 1u32;
    let mut reach = CHILDREN_MAX;
    while reach < leaves {
        reach = reach.saturating_mul(CHILDREN_MAX);
        posts = posts.saturating_add(1);
    }
    posts
}

/// The node over `nodes`, all complete and of equal height but for the last. Pairs as [`merkle_root`] does,
/// which promotes a node without a sibling.
fn join(mut nodes: Vec<H256>) -> Option<H256> {
    while nodes.len() > 1 {
        nodes = nodes
            .chunks(2)
            .filter_map(|pair| match pair {
                [left, right] => Some(node_hash(left, right)),
                [single] => Some(*single),
                _ => None,
            })
            .collect();
    }
    nodes.pop()
}

/// The digest of the node that has `children`.
pub(super) fn parent(children: &[H256], lowest: bool) -> Option<H256> {
    join(if lowest {
        children.iter().map(leaf_hash).collect()
    } else {
        children.to_vec()
    })
}
