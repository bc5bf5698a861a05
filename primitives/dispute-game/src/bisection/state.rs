//! Where a game stands.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;

use super::{Asked, Cell, Children, GameError, Outcome, RowsShape, Shape, shape::playable_rows};
use surety_proofs::Segment;

/// Where a game stands.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub enum State {
    /// The defender is to post the children of the node in dispute.
    Posting,
    /// The challenger is to name one of `children`.
    Naming {
        /// What was posted.
        children: Children,
    },
    /// The defender is to enter the leaf in dispute.
    Entering,
    /// The defender is to show the segment in dispute.
    Showing,
    /// The challenger is to pick a byte of `bytes`.
    Picking {
        /// What was shown.
        bytes: Segment,
    },
    /// The defender is to open the cell.
    Opening {
        /// What is in dispute.
        cell: Cell,
    },
    /// No block can compute the cell again: the game waits for [`Game::decided`], and nobody's time runs.
    NeedsCommittee {
        /// What is in dispute.
        cell: Cell,
    },
    /// Nothing more is to be done.
    Over(Outcome),
    /// No block can compute the cell again, and the defender is to show what a committee has to have for it.
    Evidence {
        /// What is in dispute.
        cell: Cell,
        /// What is to be shown.
        owed: Asked,
    },
}

/// Which of the trees a game is in.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Level {
    /// That of the leaves of the trace.
    #[default]
    Leaves,
    /// That of the steps of a leaf.
    Steps,
    /// That of the rows of a step.
    Rows,
    /// That of the segments of a row.
    Segments,
}

/// How far down a game has come. What it has not come to is 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Place {
    /// The tree that it is in, or was in last.
    pub level: Level,
    /// The leaf of the trace.
    pub leaf: u32,
    /// How long the leaf is.
    pub length: u32,
    /// The step of the leaf; 0 where it is fixed.
    pub step: u32,
    /// The row of the step.
    pub row: u32,
    /// The segment of the row.
    pub segment: u32,
}

impl Place {
    pub(super) fn rows(&self, shape: &impl Shape) -> Result<RowsShape, GameError> {
        playable_rows(shape, self.leaf, self.length, self.step).ok_or(GameError::Shape)
    }
}
