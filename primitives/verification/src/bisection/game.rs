//! The state machine of one game.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use core::{fmt, ops::Range};
use scale_info::TypeInfo;
use sp_core::{bounded::BoundedVec, ConstU32, H256};

use super::nodes::{parent, peaks, posts, Span};
use super::{Clocks, Peak, Shape, AGREED_MAX, CHILDREN_MAX, LEVELS_MAX, OPENING_BYTES_MAX, POSTS_MAX};

/// Who plays.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Side {
    /// Stands by the committed root.
    Defender,
    /// Says that it is wrong.
    Challenger,
}

impl Side {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Defender => Self::Challenger,
            Self::Challenger => Self::Defender,
        }
    }
}

/// Digests of the children of a node.
pub type Children = BoundedVec<H256, ConstU32<CHILDREN_MAX>>;

/// What a side sends.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub enum Move {
    /// Defender: the children of the node in dispute. Children that are leaves are posted unhashed.
    Post(Children),
    /// Challenger: the first child that differs, counted from 0.
    Name(u8),
    /// Defender: the cell, with whatever the referee needs to compute it again.
    Open(BoundedVec<u8, ConstU32<OPENING_BYTES_MAX>>),
    /// Either, at any time: the other side is right.
    Concede,
}

/// Where a game stands.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub enum State {
    /// The defender is to post.
    Posting,
    /// The challenger is to name one of `children`.
    Naming {
        /// What was posted.
        children: Children,
    },
    /// The defender is to open the cell.
    Opening,
    /// Nothing more is to be done.
    Over(Outcome),
}

/// How a game ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Outcome {
    /// Who won.
    pub winner: Side,
    /// Why.
    pub reason: Reason,
}

/// Why a game ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Reason {
    /// The cell was computed again and is what the defender said, or is not.
    Judged,
    /// The loser's time ran out.
    TimeOut,
    /// The loser conceded.
    Conceded,
}

/// The cell that a game came to.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Cell {
    /// The leaves taken from the root, one of each level.
    pub path: BoundedVec<u32, ConstU32<LEVELS_MAX>>,
    /// The cell's digest according to the defender.
    pub digest: H256,
}

/// What a referee finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The cell's inputs give the cell.
    Holds,
    /// They give something else.
    Refuted,
    /// The opening is no opening of this cell: it does not hash to its digest, or its inputs are not proven.
    Unproven,
}

/// Computes cells again.
pub trait Referee {
    /// Judges `cell`. Its inputs have to be proven from `agreed`, from the task's input or from the model's weights.
    ///
    /// [`Judgement::Unproven`] refuses the move, and nothing else: the defender may try again while it has time.
    fn judge(&self, cell: &Cell, agreed: &[Peak], opening: &[u8]) -> Judgement;
}

/// Why a move, or a game, is refused.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum GameError {
    /// The game is over.
    Over,
    /// It is the other side's turn, or the move is not one that can be made now.
    NotNow,
    /// The node in dispute has another number of children.
    WrongCount,
    /// The children do not hash to the node in dispute.
    WrongHash,
    /// There is no child with this number.
    NoSuchChild,
    /// The opening does not prove the cell.
    Unproven,
    /// The trace has more levels or leaves than a game can go through, or a tree without leaves.
    Shape,
}

impl fmt::Display for GameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Over => "the game is over",
            Self::NotNow => "this move cannot be made now",
            Self::WrongCount => "the node in dispute has another number of children",
            Self::WrongHash => "the children do not hash to the node in dispute",
            Self::NoSuchChild => "there is no child with this number",
            Self::Unproven => "the opening does not prove the cell",
            Self::Shape => "the trace has a shape that cannot be played over",
        })
    }
}

impl core::error::Error for GameError {}

/// A dispute between two sides about the root of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Game {
    state: State,
    clocks: Clocks,
    /// Digest of the node in dispute; of the cell, once it was reached.
    digest: H256,
    /// The node's leaves, in the tree that `path` leads to.
    span: Span,
    path: BoundedVec<u32, ConstU32<LEVELS_MAX>>,
    agreed: BoundedVec<Peak, ConstU32<AGREED_MAX>>,
}

impl Game {
    /// A game about `root`, which the defender committed to and the challenger says is wrong.
    ///
    /// # Errors
    /// [`GameError::Shape`] when the trace could take more than [`POSTS_MAX`] postings.
    pub fn new(root: H256, shape: &impl Shape, clocks: Clocks) -> Result<Self, GameError> {
        let levels = shape.levels();
        let needed = levels
            .iter()
            .map(|leaves| posts(*leaves))
            .fold(0, u32::saturating_add);
        if levels.contains(&0) || needed > POSTS_MAX {
            return Err(GameError::Shape);
        }
        let mut game = Self {
            state: State::Opening,
            clocks,
            digest: root,
            span: Span { first: 0, leaves: 1 },
            path: BoundedVec::new(),
            agreed: BoundedVec::new(),
        };
        game.enter(shape)?;
        Ok(game)
    }

    /// Where the game stands.
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// How it ended, if it has.
    pub const fn outcome(&self) -> Option<Outcome> {
        match self.state {
            State::Over(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Whose turn it is.
    pub const fn to_move(&self) -> Option<Side> {
        match self.state {
            State::Posting | State::Opening => Some(Side::Defender),
            State::Naming { .. } => Some(Side::Challenger),
            State::Over(_) => None,
        }
    }

    /// What time the sides have left.
    pub const fn clocks(&self) -> Clocks {
        self.clocks
    }

    /// The leaves taken so far, one of each level that was gone through: they lead to the tree in dispute, or to the
    /// cell.
    pub fn path(&self) -> &[u32] {
        &self.path
    }

    /// Which leaves of that tree are under the node in dispute.
    pub const fn leaves_in_dispute(&self) -> Range<u32> {
        self.span.first..self.span.first.saturating_add(self.span.leaves)
    }

    /// What is agreed: everything that comes before the node in dispute, and nothing else.
    pub fn agreed(&self) -> &[Peak] {
        &self.agreed
    }

    /// Has `blocks` more blocks finalised, which the side to move used up.
    ///
    /// To be told before a move that comes after them, or the wrong side pays.
    pub fn tick(&mut self, blocks: u32) -> &State {
        if let Some(side) = self.to_move() {
            if self.clocks.run(side, blocks) {
                self.end(side.other(), Reason::TimeOut);
            }
        }
        &self.state
    }

    /// Plays a move of `side`. A refused move changes nothing; to try is not against the rules.
    ///
    /// # Errors
    /// A [`GameError`] for every move that cannot be made.
    pub fn step(
        &mut self,
        side: Side,
        played: Move,
        shape: &impl Shape,
        referee: &impl Referee,
    ) -> Result<&State, GameError> {
        let mut next = self.clone();
        next.play(side, played, shape, referee)?;
        *self = next;
        Ok(&self.state)
    }

    fn play(
        &mut self,
        side: Side,
        played: Move,
        shape: &impl Shape,
        referee: &impl Referee,
    ) -> Result<(), GameError> {
        let to_move = self.to_move().ok_or(GameError::Over)?;
        if played == Move::Concede {
            self.end(side.other(), Reason::Conceded);
            return Ok(());
        }
        if side != to_move {
            return Err(GameError::NotNow);
        }
        match (&self.state, played) {
            (State::Posting, Move::Post(children)) => self.post(children, shape),
            (State::Naming { children }, Move::Name(index)) => {
                let children = children.clone();
                self.take(&children, index.into(), shape)
            }
            (State::Opening, Move::Open(opening)) => self.open(&opening, referee),
            _ => Err(GameError::NotNow),
        }
    }

    fn post(&mut self, children: Children, shape: &impl Shape) -> Result<(), GameError> {
        if u32::try_from(children.len()) != Ok(self.span.children()) {
            return Err(GameError::WrongCount);
        }
        if parent(&children, self.span.is_lowest()) != Some(self.digest) {
            return Err(GameError::WrongHash);
        }
        match children.len() {
            1 => self.take(&children, 0, shape),
            _ => {
                self.state = State::Naming { children };
                Ok(())
            }
        }
    }

    /// Goes on with child `index`; what comes before it is agreed.
    fn take(&mut self, children: &Children, index: u32, shape: &impl Shape) -> Result<(), GameError> {
        let place = usize::try_from(index).map_err(|_| GameError::NoSuchChild)?;
        self.digest = *children.get(place).ok_or(GameError::NoSuchChild)?;
        let level = u32::try_from(self.path.len()).unwrap_or(u32::MAX);
        for peak in peaks(children, index, self.span, level) {
            self.agreed.try_push(peak).map_err(|_| GameError::Shape)?;
        }
        let child = self.span.child(index);
        if self.span.is_lowest() {
            self.path.try_push(child.first).map_err(|_| GameError::Shape)?;
            return self.enter(shape);
        }
        self.span = child;
        self.state = State::Posting;
        Ok(())
    }

    /// Begins with the tree that `path` leads to, or with the cell.
    fn enter(&mut self, shape: &impl Shape) -> Result<(), GameError> {
        let Some(most) = shape.levels().get(self.path.len()) else {
            self.span = Span { first: 0, leaves: 1 };
            self.state = State::Opening;
            return Ok(());
        };
        let leaves = shape.leaves(&self.path);
        if leaves == 0 || leaves > *most {
            return Err(GameError::Shape);
        }
        self.span = Span { first: 0, leaves };
        self.state = State::Posting;
        Ok(())
    }

    fn open(&mut self, opening: &[u8], referee: &impl Referee) -> Result<(), GameError> {
        let cell = Cell {
            path: self.path.clone(),
            digest: self.digest,
        };
        let winner = match referee.judge(&cell, &self.agreed, opening) {
            Judgement::Holds => Side::Defender,
            Judgement::Refuted => Side::Challenger,
            Judgement::Unproven => return Err(GameError::Unproven),
        };
        self.end(winner, Reason::Judged);
        Ok(())
    }

    fn end(&mut self, winner: Side, reason: Reason) {
        self.state = State::Over(Outcome { winner, reason });
    }
}
