//! How many bytes the moves of a game take at most.

use super::cut::{Span, posts};
use super::shape::{playable_leaves, playable_rows, playable_steps};
use super::{BYTES_MAX, CHILDREN_MAX, LeafKind, Length, OPENING_BYTES_MAX, Shape};
use surety_proofs::SEGMENT_BYTES;

const HASH: u32 = 32;
/// A move's number.
const MOVE: u32 = 1;
/// How many children or siblings, at most 63.
const COUNT: u32 = 1;
/// How many bytes, at most 16,383.
const BYTES: u32 = 2;
/// A `u32`.
const NUMBER: u32 = 4;
/// Whether there is something or not.
const OPTION: u32 = 1;
/// A move's number, the child's.
const NAME: u32 = MOVE + 1;
/// A move's number, the byte's.
const PICK: u32 = MOVE + 2;

/// Most bytes that an opening of a cell of this step may have, so that no game that comes to one takes more
/// than [`BYTES_MAX`]; at most [`OPENING_BYTES_MAX`]. Nothing when there is no such step, or none that can be
/// played over.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "sizes of single moves, which are bounded by far less"
)]
pub fn opening_room(shape: &impl Shape, leaf: u32, length: u32, step: u32) -> Option<u32> {
    let rows = playable_rows(shape, leaf, length, step)?;
    let show = MOVE + BYTES + rows.row_bytes.min(SEGMENT_BYTES);
    let used = [
        trees(playable_leaves(shape)?),
        entry(shape, leaf, length)?,
        match shape.leaf(leaf)?.kind {
            LeafKind::Fixed(_) => 0,
            _ => trees(rows.rows),
        },
        trees(rows.segments()),
        show + PICK,
        MOVE + BYTES,
    ];
    let used = used.into_iter().fold(0, u32::saturating_add);
    BYTES_MAX
        .checked_sub(used)
        .map(|room| room.min(OPENING_BYTES_MAX))
}

/// To go down a tree of so many leaves: postings and namings.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "sizes of single moves, which are bounded by far less"
)]
fn trees(leaves: u32) -> u32 {
    let step = |children: u32| {
        let name = if children > 1 { NAME } else { 0 };
        MOVE + COUNT + HASH * children + name
    };
    let first = step(Span { first: 0, leaves }.children());
    first.saturating_add((posts(leaves) - 1).saturating_mul(step(CHILDREN_MAX)))
}

/// To enter a leaf and go down the tree of its steps.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "sizes of single moves, which are bounded by far less"
)]
fn entry(shape: &impl Shape, leaf: u32, length: u32) -> Option<u32> {
    let at = shape.leaf(leaf)?;
    let shown = match at.length {
        Length::Known(_) => 0,
        Length::Word { .. } => length_opening(shape)?,
    };
    let (steps, below) = match at.kind {
        LeafKind::Fixed(_) => (0, 0),
        LeafKind::Computed => {
            let steps = playable_steps(shape, leaf, length)?;
            (HASH + proof(steps), trees(steps))
        }
    };
    let entered = match shown + steps {
        0 => 0,
        bytes => MOVE + OPTION + OPTION + bytes,
    };
    Some(entered + below)
}

#[allow(
    clippy::arithmetic_side_effects,
    reason = "sizes of single moves, which are bounded by far less"
)]
fn length_opening(shape: &impl Shape) -> Option<u32> {
    let Length::Known(length) = shape.leaf(0)?.length else {
        return None;
    };
    let rows = playable_rows(shape, 0, length, 0)?;
    Some(NUMBER + BYTES + rows.row_bytes.min(SEGMENT_BYTES) + proof(rows.segments()))
}

/// A proof under the root over so many leaves.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "sizes of single moves, which are bounded by far less"
)]
fn proof(leaves: u32) -> u32 {
    let depth = leaves
        .saturating_sub(1)
        .checked_ilog2()
        .map_or(0, |bits| bits + 1);
    COUNT + HASH * depth
}
