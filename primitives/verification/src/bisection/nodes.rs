//! Where the nodes of a trace's trees are, and how they hash.

use alloc::vec::Vec;
use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::{bounded::BoundedVec, ConstU32, H256};

use super::{CHILDREN_MAX, LEVELS_MAX};
use crate::merkle::{leaf_hash, node_hash};

/// How many leaves the trees of a trace have.
pub trait Shape {
    /// Most leaves of a tree of each level, the committed root's first. As many as the trace has levels.
    fn levels(&self) -> &[u32];

    /// Leaves of the tree that one comes to by taking the leaves `path` from the root: one to the level's most.
    ///
    /// `path` is shorter than [`levels`](Self::levels), and leads to a tree that exists. The same answer throughout a
    /// game.
    fn leaves(&self, path: &[u32]) -> u32;
}

/// All trees of a level alike.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Uniform(pub BoundedVec<u32, ConstU32<LEVELS_MAX>>);

impl Shape for Uniform {
    fn levels(&self) -> &[u32] {
        &self.0
    }

    fn leaves(&self, path: &[u32]) -> u32 {
        self.0.get(path.len()).copied().unwrap_or(1)
    }
}

/// Neighbouring leaves of one tree that have a node of their own.
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
    /// Leaves of each child but the last, which may have fewer: the least power of 16 that leaves at most 16 children.
    /// A power of two, so that every child is a node of the binary tree.
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

/// The node over `nodes`, all complete and of equal height but for the last. Pairs as [`merkle_root`] does, which
/// promotes a node without a sibling.
///
/// [`merkle_root`]: crate::merkle_root
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
    join(match lowest {
        true => children.iter().map(leaf_hash).collect(),
        false => children.to_vec(),
    })
}

/// What a defender posts for a node, and what a challenger compares with: the digests of its children.
///
/// `leaves` are the leaves of the node ([`Game::leaves_in_dispute`](super::Game::leaves_in_dispute) says which), all of
/// them.
pub fn children(leaves: &[H256]) -> Vec<H256> {
    let count = u32::try_from(leaves.len()).unwrap_or(u32::MAX);
    let stride = Span {
        first: 0,
        leaves: count,
    }
    .stride();
    if stride == 1 {
        return leaves.to_vec();
    }
    let stride = usize::try_from(stride).unwrap_or(usize::MAX);
    leaves
        .chunks(stride)
        .filter_map(|leaves| parent(leaves, true))
        .collect()
}

/// Which of the `posted` children a challenger with the children `own` names. None when they are all its own.
pub fn first_difference(own: &[H256], posted: &[H256]) -> Option<u8> {
    let first = posted
        .iter()
        .enumerate()
        .find(|(index, child)| own.get(*index) != Some(*child))?;
    u8::try_from(first.0).ok()
}

/// A complete subtree that both sides agree on.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Peak {
    /// The level of its tree: it is the tree that the first `level` steps of the path to the cell lead to.
    pub level: u32,
    /// Its first leaf in that tree.
    pub first: u32,
    /// How many leaves it has: a power of two.
    pub leaves: u32,
    /// Its digest. That of a subtree of one leaf is the leaf's hash, not the leaf.
    pub digest: H256,
}

impl Peak {
    /// Whether leaf `index` of the peak's tree is `leaf`, given the siblings of the nodes above it from the bottom up.
    ///
    /// What lies below the leaf is then proven from the leaf, which is the root of a tree of the next level.
    pub fn has_leaf(&self, index: u32, leaf: &H256, siblings: &[H256]) -> bool {
        let Some(place) = index.checked_sub(self.first).filter(|place| *place < self.leaves) else {
            return false;
        };
        if usize::try_from(self.leaves.ilog2()) != Ok(siblings.len()) {
            return false;
        }
        let root = (0u32..)
            .zip(siblings)
            .fold(leaf_hash(leaf), |node, (height, sibling)| {
                match place.checked_shr(height).unwrap_or(0) % 2 {
                    0 => node_hash(&node, sibling),
                    _ => node_hash(sibling, &node),
                }
            });
        root == self.digest
    }
}

/// The children before number `index` as the fewest complete subtrees, from the left.
pub(super) fn peaks<'a>(
    children: &'a [H256],
    index: u32,
    span: Span,
    level: u32,
) -> impl Iterator<Item = Peak> + 'a {
    let stride = span.stride();
    let lowest = span.is_lowest();
    let mut start = 0u32;
    // The bits of `index` from the highest down: each is a run of children that starts at a multiple of its length.
    (0..CHILDREN_MAX.ilog2()).rev().filter_map(move |bit| {
        let run = 1u32 << bit;
        if index & run == 0 {
            return None;
        }
        let from = start;
        start = start.saturating_add(run);
        let covered = children.get(usize::try_from(from).ok()?..usize::try_from(start).ok()?)?;
        Some(Peak {
            level,
            first: span.first.saturating_add(from.saturating_mul(stride)),
            leaves: run.saturating_mul(stride),
            digest: parent(covered, lowest)?,
        })
    })
}
