//! A Merkle tree whose nodes say how much is below them.
//!
//! Its shape is that of `surety_proofs::merkle_root` (RFC 6962): a node without a sibling is promoted
//! unchanged. A node's hash is `blake2_256(0x01 ‖ left ‖ right)`, each side being hash, receipts and price as
//! [`SumNode`] encodes them; what is hashed into a leaf is for its tree to say.
//!
//! Whoever climbs from a leaf adds up what it meets. So **what stands on the left of a leaf is a fact, not a
//! claim**: leaves have places on the line of prices that do not overlap, whoever built the tree.

use alloc::{vec, vec::Vec};

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::{ConstU32, H256, bounded::BoundedVec};
use sp_crypto_hashing::blake2_256;

use crate::RECEIPTS_MAX;

/// Most siblings of a path.
pub const DEPTH_MAX: u32 = RECEIPTS_MAX.ilog2();

const NODE: u8 = 1;

/// How much is below a node.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Sums {
    /// How many receipts.
    pub receipts: u32,
    /// What they cost, in plancks.
    pub price: u128,
}

impl Sums {
    /// Both together; nothing where that is beyond what can be counted.
    pub fn plus(self, other: Self) -> Option<Self> {
        Some(Self {
            receipts: self.receipts.checked_add(other.receipts)?,
            price: self.price.checked_add(other.price)?,
        })
    }
}

/// A node: 52 bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct SumNode {
    /// Its hash.
    pub hash: H256,
    /// What is below it.
    pub sums: Sums,
}

impl SumNode {
    /// The hash of the node above two others, whatever it says that is below it.
    pub fn hash_above(left: &Self, right: &Self) -> H256 {
        H256(blake2_256(&(NODE, left, right).encode()))
    }

    /// The node above two others; nothing where their sums are beyond what can be counted.
    pub fn above(left: &Self, right: &Self) -> Option<Self> {
        Some(Self {
            hash: Self::hash_above(left, right),
            sums: left.sums.plus(right.sums)?,
        })
    }
}

/// Where a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Climbed {
    /// The root.
    pub root: SumNode,
    /// What stands on the left of where it began.
    pub before: Sums,
}

/// The siblings of a node's way to the root, from the bottom up.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct SumPath(pub BoundedVec<SumNode, ConstU32<DEPTH_MAX>>);

impl SumPath {
    /// Climbs from leaf `place` of `leaves`; nothing when there is no such place, the way there has another
    /// length, or its sums are beyond what can be counted.
    pub fn climb(&self, leaf: SumNode, place: u32, leaves: u32) -> Option<Climbed> {
        self.climb_from(leaf, 0, place, leaves)
    }

    /// The same from node `place` of the level that is `level` above the leaves.
    #[allow(clippy::arithmetic_side_effects, reason = "places of nodes that there are")]
    pub fn climb_from(&self, node: SumNode, level: u32, place: u32, leaves: u32) -> Option<Climbed> {
        let (mut place, mut last) = (place, leaves.checked_sub(1)?.checked_shr(level)?);
        if place > last {
            return None;
        }
        let mut siblings = self.0.iter();
        let (mut root, mut before) = (node, Sums::default());
        while last > 0 {
            if place % 2 == 1 {
                let left = siblings.next()?;
                before = before.plus(left.sums)?;
                root = SumNode::above(left, &root)?;
            } else if place < last {
                root = SumNode::above(&root, siblings.next()?)?;
            }
            (place, last) = (place / 2, last / 2);
        }
        siblings.next().is_none().then_some(Climbed { root, before })
    }
}

/// A whole tree, for whoever builds it and shows parts of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumTree {
    /// From the leaves to the root: each level half as long as the one below it.
    levels: Vec<Vec<SumNode>>,
}

impl SumTree {
    /// Over some leaves; nothing where there are none, more than [`RECEIPTS_MAX`], or their sums are beyond
    /// what can be counted.
    pub fn new(leaves: Vec<SumNode>) -> Option<Self> {
        if leaves.is_empty() || leaves.len() > RECEIPTS_MAX as usize {
            return None;
        }
        let mut levels = vec![leaves];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            let above = below.chunks(2).map(|pair| match pair {
                [left, right] => SumNode::above(left, right),
                single => single.first().copied(),
            });
            levels.push(above.collect::<Option<_>>()?);
        }
        Some(Self { levels })
    }

    /// Its root.
    pub fn root(&self) -> SumNode {
        let top = self.levels.last().and_then(|level| level.first());
        top.copied().unwrap_or_default()
    }

    /// The way of leaf `place` to the root; nothing where there is no such leaf.
    #[allow(clippy::arithmetic_side_effects, reason = "places of leaves that there are")]
    pub fn path(&self, place: u32) -> Option<SumPath> {
        let (leaves, mut place) = (self.levels.first()?, place as usize);
        if place >= leaves.len() {
            return None;
        }
        let mut siblings = Vec::new();
        for level in &self.levels {
            siblings.extend(level.get(place ^ 1).copied());
            place /= 2;
        }
        Some(SumPath(siblings.try_into().ok()?))
    }

    /// The leaf that a point on the line of prices is in, and what stands on its left; nothing beyond the
    /// end.
    #[allow(clippy::arithmetic_side_effects, reason = "places of nodes that there are")]
    pub fn leaf_at(&self, point: u128) -> Option<(u32, Sums)> {
        if point >= self.root().sums.price {
            return None;
        }
        let (mut place, mut before) = (0usize, Sums::default());
        for level in self.levels.iter().rev().skip(1) {
            place *= 2;
            let after = before.plus(level.get(place)?.sums)?;
            if point >= after.price {
                (place, before) = (place + 1, after);
            }
        }
        Some((u32::try_from(place).ok()?, before))
    }
}
