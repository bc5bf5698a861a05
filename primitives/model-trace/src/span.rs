//! That neighboring leaves stand at their place under a root.
//!
//! For a single one the hashes are those of a [`Proof`](surety_proofs::Proof), in another order: from left to
//! right. How many there are follows from the place, so none are counted in an opening.

use alloc::vec::Vec;
use core::ops::Range;

use sp_core::H256;

use surety_proofs::{leaf_hash, merkle_root, node_hash};

/// A part of a tree: its first leaf and how many it has, at least 1.
#[derive(Clone, Copy)]
struct Branch {
    first: u32,
    leaves: u32,
}

impl Branch {
    fn is_outside(self, span: &Range<u32>) -> bool {
        self.first >= span.end || self.first.saturating_add(self.leaves) <= span.start
    }

    /// Its two halves; the left one is the largest complete tree. Nothing for a leaf.
    #[allow(clippy::arithmetic_side_effects, reason = "places within a span")]
    fn halves(self) -> Option<[Self; 2]> {
        if self.leaves < 2 {
            return None;
        }
        let left = self.leaves.div_ceil(2).next_power_of_two();
        let right = Self {
            first: self.first.saturating_add(left),
            leaves: self.leaves - left,
        };
        Some([Self { leaves: left, ..self }, right])
    }
}

/// A span of at least one leaf, in a tree of so many.
fn top(span: &Range<u32>, leaves: u32) -> Option<Branch> {
    (!span.is_empty() && span.end <= leaves).then_some(Branch { first: 0, leaves })
}

/// How many hashes lead from a span of leaves to the root; nothing when there is no such span.
pub(super) fn siblings(span: &Range<u32>, leaves: u32) -> Option<u32> {
    #[allow(clippy::arithmetic_side_effects, reason = "places within a span")]
    fn count(branch: Branch, span: &Range<u32>) -> u32 {
        match (branch.is_outside(span), branch.halves()) {
            (true, _) => 1,
            (false, Some([left, right])) => count(left, span) + count(right, span),
            (false, None) => 0,
        }
    }
    top(span, leaves).map(|top| count(top, span))
}

/// Those hashes, of a tree of these leaves.
pub(super) fn prove(span: &Range<u32>, leaves: &[H256]) -> Option<Vec<H256>> {
    fn collect(branch: Branch, span: &Range<u32>, leaves: &[H256], into: &mut Vec<H256>) -> Option<()> {
        match (branch.is_outside(span), branch.halves()) {
            (true, _) => {
                let start = branch.first as usize;
                let below = leaves.get(start..start.checked_add(branch.leaves as usize)?)?;
                into.push(merkle_root(below.iter().copied()));
            }
            (false, Some(halves)) => {
                for half in halves {
                    collect(half, span, leaves, into)?;
                }
            }
            (false, None) => {}
        }
        Some(())
    }
    let mut hashes = Vec::new();
    let top = top(span, u32::try_from(leaves.len()).ok()?)?;
    collect(top, span, leaves, &mut hashes)?;
    Some(hashes)
}

/// The root that a span of leaves and those hashes lead to; nothing when there are too few.
pub(super) fn root(
    span: &Range<u32>,
    leaves: u32,
    known: &[H256],
    mut next: impl FnMut() -> Option<H256>,
) -> Option<H256> {
    fn hash(
        branch: Branch,
        span: &Range<u32>,
        known: &[H256],
        next: &mut dyn FnMut() -> Option<H256>,
    ) -> Option<H256> {
        if branch.is_outside(span) {
            return next();
        }
        match branch.halves() {
            Some([left, right]) => {
                let left = hash(left, span, known, next)?;
                Some(node_hash(&left, &hash(right, span, known, next)?))
            }
            None => known
                .get(branch.first.checked_sub(span.start)? as usize)
                .map(leaf_hash),
        }
    }
    hash(top(span, leaves)?, span, known, &mut next)
}
