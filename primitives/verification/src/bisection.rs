//! The dispute game: two sides narrow a difference down to one cell, which a referee computes again.
//!
//! A trace is a tree of trees. The cells' digests are the leaves of Merkle trees ([`merkle_root`](crate::merkle_root)),
//! whose roots are leaves of the trees of the level above, up to the one root a provider committed to. A [`Shape`] says
//! how many leaves each of these trees has.
//!
//! ```text
//!  Posting ──Post──> Naming ──Name──> Posting, or Opening once a cell is reached ──Open──> Over
//! ```
//!
//! The **defender** posts the children of the node in dispute, at most [`CHILDREN_MAX`]; the game refuses what does not
//! hash to the node. The **challenger** names the first that is not what it computed. Everything before it is agreed,
//! and kept in [`Game::agreed`], so that the inputs of the cell, which were computed earlier, can be proven. An only
//! child is not worth a question and is taken at once. At last the defender opens the cell and a [`Referee`] decides.
//!
//! **The honest side wins**, whatever the other does. An honest defender can always post and open, and what it opens is
//! right wherever the challenger led it. An honest challenger keeps the node in dispute different from its own: a
//! node that differs has a child that differs, so it can always name one, and the first of them has only right ones
//! before it. Hence the cell's inputs are right and its result is not. Refused moves change nothing.
//!
//! Both sides' traces have the same shape: it follows from the task and from what the result says of itself (units,
//! lengths), which is settled before a game.
//!
//! **Time**: each side has a number of blocks, and uses them up in its turns while blocks finalise ([`Game::tick`]).
//! Whoever runs out loses, so a game lasts at most both budgets together.
//!
//! **Size**: at most [`BYTES_MAX`] of encoded moves.

mod clock;
mod game;
mod nodes;
mod play_off;

pub use clock::Clocks;
pub use game::{Cell, Children, Game, GameError, Judgement, Move, Outcome, Reason, Referee, Side, State};
pub use nodes::{children, first_difference, Peak, Shape, Uniform};
pub use play_off::{Pairing, PlayOff, PlayOffError};

/// Most children posted at once.
pub const CHILDREN_MAX: u32 = 16;

/// Most levels of trees in a trace.
pub const LEVELS_MAX: u32 = 6;

/// Most postings in one game. [`Game::new`] refuses shapes that could need more.
pub const POSTS_MAX: u32 = 12;

/// Most bytes of moves in one game, in SCALE.
pub const BYTES_MAX: u32 = 16 * 1024;

/// Longest opening of a cell, in bytes: what is left when as much as possible was posted and named.
pub const OPENING_BYTES_MAX: u32 = BYTES_MAX - POSTS_MAX * (POST_BYTES_MAX + NAME_BYTES) - OPEN_HEADER_BYTES;

/// A move's number, the number of children, the children.
const POST_BYTES_MAX: u32 = 1 + 1 + 32 * CHILDREN_MAX;
/// A move's number, the child's.
const NAME_BYTES: u32 = 2;
/// A move's number, the number of bytes.
const OPEN_HEADER_BYTES: u32 = 1 + 2;

/// Most subtrees agreed on in one game: those before a named child are at most one of each power of two.
const AGREED_MAX: u32 = POSTS_MAX * 4;

/// Most claims that one play-off takes.
pub const CLAIMS_MAX: u32 = 32;

#[cfg(test)]
mod tests;
