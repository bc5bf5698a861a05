//! The dispute game: two sides narrow a difference down to one cell, which a referee computes again.
//!
//! What the defender committed to is the root over the leaves of its trace. Below a leaf are the steps by
//! which it is computed, below a step its rows, below a row its segments of 1 KiB, and in a segment the
//! cells. A [`Shape`] says how many there are of each.
//!
//! ```text
//!        ┌──────────── Post, Name, until it is one leaf, step, row or segment ─────┐
//!  leaves of the trace ─Enter─> steps ────────> rows ──> segments ─Show, Pick─> cell ───────Open──────> Over
//!                      └─────── a fixed leaf ───────────────^     Evidence <──────┴─> NeedsCommittee ───^
//!                                                                    └─── Supply ────────^
//! ```
//!
//! The **defender** posts the children of the node in dispute, at most [`CHILDREN_MAX`]; the game refuses
//! what does not hash to the node. The **challenger** names the first that is not what it computed. An only
//! child is not worth a question and is taken at once. A leaf's digest says nothing of the steps, so to go
//! on the defender *enters* it: it commits to a root over the steps, of which the last is the leaf itself.
//! A leaf that is fixed, the input's or the output's blob, has segments and no steps; where it is not the
//! one that is fixed, the defender has lost. How long a leaf is may be a word of leaf 0, which is shown
//! with the entry. At last the defender shows a segment, the challenger picks a cell, the defender opens
//! it, and a [`Referee`] decides. A cell that no block can compute again ends play in
//! [`State::NeedsCommittee`]: somebody else decides. What those have to have for it, beside the model, the
//! defender shows before they are asked: the tokens of a generation, its prompt.
//!
//! **The honest side wins**, whatever the other does. An honest defender can always go on, and what it opens
//! is right wherever the challenger led it. An honest challenger keeps the node in dispute different from its
//! own: a node that differs has a child that differs, and steps that end in another leaf have another root,
//! so it can always name one. As it names the first, everything that the defender committed to before it is
//! right. Hence the cell's inputs, which come before it and are proven from the defender's own roots
//! ([`Roots`]), are right, and its value is not. Refused moves change nothing.
//!
//! Both sides' traces have the same shape: it follows from the task, from what the claim says of itself, and
//! from words of leaf 0, which is fixed.
//!
//! **What it has not got** a challenger [asks](Move::Ask) for, once: the tokens of a generation are nowhere
//! but with those who claim them. Their hash is known, so what the defender then shows proves itself; its
//! time runs meanwhile, and who shows nothing loses. So no honest challenger depends on being served.
//!
//! **Time**: each side has a number of blocks, and uses them up in its turns while blocks finalise
//! ([`Game::tick`]). Whoever runs out loses, so a game lasts at most both budgets together, and as long as it
//! waits for a committee.
//!
//! **Size**: at most [`BYTES_MAX`] of encoded moves. What the other moves leave is for the opening
//! ([`opening_room`]). What is asked for comes on top: at most [`PARTS_MAX`] parts of 8 KiB.

mod bounds;
mod clock;
mod cut;
mod game;
mod moves;
mod player;
mod referee;
mod shape;
mod showing;
mod state;

pub use bounds::opening_room;
pub use clock::Clocks;
pub use game::Game;
pub(crate) use game::value;
pub use moves::{Children, Entry, GameError, Move, Outcome, Reason, Side, StepsOpening};
pub use player::{PlayError, Trace, challenge, defend};
pub use referee::{Cell, CellValue, Judgement, Referee, Roots};
pub use shape::{LeafKind, LeafShape, Length, RowsShape, Shape};
pub use showing::{Asked, Blob, DuePart, Missing, missing_blobs, missing_parts};
pub use state::{Level, Place, State};

pub use surety_proofs::{PARTS_MAX, PartOpening};

/// Most children posted at once.
pub const CHILDREN_MAX: u32 = 16;

/// Most leaves of a trace: five postings.
pub const LEAVES_MAX: u32 = 1 << 20;
/// Most steps of a leaf: three postings.
pub const STEPS_MAX: u32 = 1 << 12;
/// Most rows of a step: four postings.
pub const ROWS_MAX: u32 = 1 << 16;
/// Most segments of a row, 64 MiB: four postings.
pub const SEGMENTS_MAX: u32 = 1 << 16;
/// Most postings in one game.
pub const POSTS_MAX: u32 = 16;

/// Most bytes of moves in one game, in SCALE.
pub const BYTES_MAX: u32 = 16 * 1024;

/// Most bytes of any opening of a cell; [`opening_room`] says how many of them a particular one may have.
pub const OPENING_BYTES_MAX: u32 = 12 * 1024;

#[cfg(test)]
mod tests;
