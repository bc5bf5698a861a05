//! A tree four levels at a time, for finding the first leaf in which two of them differ.

use alloc::vec::Vec;
use core::ops::Range;

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::{bounded::BoundedVec, ConstU32, H256};

use crate::merkle::{merkle_root, node_hash};

/// Most children of a node, four levels of the tree of [`merkle_root`] further down.
pub const CHILDREN_MAX: u32 = 16;

/// 16^8 leaves are more than there can be.
const HEIGHT_MAX: u32 = 8;

/// The hashes of a node's children, from left to right.
pub type Children = BoundedVec<H256, ConstU32<CHILDREN_MAX>>;

/// The place of a node that stands for up to `16^height` neighbouring leaves.
///
/// At height 0 it is one leaf, as [`crate::leaf_hash`] of it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Node {
    /// How often one goes down to come to a leaf.
    pub height: u32,
    /// Its place among the nodes of its height, from the left.
    pub index: u32,
}

impl Node {
    /// The lowest node that stands for all leaves. Its hash is the root.
    pub fn top(leaves: u32) -> Self {
        let height = leaves
            .saturating_sub(1)
            .checked_ilog2()
            .map_or(0, |bits| bits / 4 + 1);
        Self { height, index: 0 }
    }

    /// The leaves under it; nothing when there is no such node in a tree of so many leaves.
    pub fn leaves(self, leaves: u32) -> Option<Range<u32>> {
        if self.height > HEIGHT_MAX {
            return None;
        }
        let width = 1u64 << (4 * self.height);
        let start = u32::try_from(width * u64::from(self.index)).ok()?;
        let end = (u64::from(start) + width).min(u64::from(leaves)) as u32;
        (start < end).then_some(start..end)
    }

    /// How many children it has: 0 for a leaf, and where there is no such node.
    pub fn children(self, leaves: u32) -> u32 {
        match (self.height.checked_sub(1), self.leaves(leaves)) {
            (Some(below), Some(range)) => (range.len() as u64).div_ceil(1 << (4 * below)) as u32,
            _ => 0,
        }
    }

    /// The place of a child. Whether there is one, [`Self::children`] tells.
    pub fn child(self, number: u32) -> Option<Self> {
        let index = self.index.checked_mul(CHILDREN_MAX)?.checked_add(number)?;
        let height = self.height.checked_sub(1)?;
        (number < CHILDREN_MAX).then_some(Self { height, index })
    }

    /// Its hash in the tree of these leaves.
    pub fn hash(self, leaves: &[H256]) -> Option<H256> {
        let range = self.leaves(u32::try_from(leaves.len()).ok()?)?;
        let below = leaves.get(range.start as usize..range.end as usize)?;
        Some(merkle_root(below.iter().copied()))
    }

    /// The hashes of its children in the tree of these leaves; nothing for a leaf.
    pub fn open(self, leaves: &[H256]) -> Option<Children> {
        let children = self.children(u32::try_from(leaves.len()).ok()?);
        if children == 0 {
            return None;
        }
        let hashes: Option<Vec<H256>> = (0..children)
            .map(|number| self.child(number)?.hash(leaves))
            .collect();
        hashes?.try_into().ok()
    }

    /// Whether these are the children of a node of this hash, in a tree of so many leaves.
    pub fn verify(self, hash: &H256, children: &[H256], leaves: u32) -> bool {
        children.len() == self.children(leaves) as usize && combine(children).as_ref() == Some(hash)
    }
}

/// The hash of the node above neighbouring ones of equal size, of which the last may be smaller; nothing for none.
pub fn combine(children: &[H256]) -> Option<H256> {
    let mut level = children.to_vec();
    while level.len() > 1 {
        level = level
            .chunks(2)
            .map(|pair| match pair {
                [left, right] => node_hash(left, right),
                single => single.first().copied().unwrap_or_default(),
            })
            .collect();
    }
    level.first().copied()
}
